"""Q, Z and S_(i,j) against full tensors; the bounds against arithmetic by hand and random draws."""

import math

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.features import (
    decoupled_subspace,
    feature_norm_bound,
    feature_rows,
    feature_square_floor,
    most_features,
    net_expansion,
    perturbed_feature_norm_bound,
    perturbed_singular_floor,
    product_rows,
    spanning_floor,
    squared_features,
)
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular
from offtangent.theory.ge_wang_zhao.tensors import isometric_power


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def kronecker_power(x, power):
    found = np.ones(1)
    for _ in range(power):
        found = np.kron(found, x)
    return found


def explicit(R, X, power):
    """Q ⊗ Q, k² × d^{2p}, and X̄, d^{2p} × n."""
    Q = np.stack([kronecker_power(r, power) for r in R])
    return np.kron(Q, Q), np.stack([kronecker_power(x, 2 * power) for x in X], axis=1)


@pytest.mark.parametrize(("dim", "features", "power"), [(3, 4, 1), (2, 3, 2), (3, 5, 2), (2, 2, 3)])
def test_the_squares_are_the_product_of_the_paper(rng, dim, features, power):
    R, X = rng.standard_normal((features, dim)), rng.standard_normal((4, dim))
    QQ, full = explicit(R, X, power)
    Z = QQ @ full
    z = (X @ R.T) ** power
    np.testing.assert_allclose(Z, np.stack([np.kron(one, one) for one in z], axis=1), atol=1e-10 * np.abs(Z).max())
    found = squared_features(R, X, power)
    assert found.shape == (features * (features + 1) // 2, 4)
    np.testing.assert_allclose(found.T @ found, Z.T @ Z, atol=1e-12 * np.abs(Z).max() ** 2)
    np.testing.assert_allclose(feature_rows(R, power) @ isometric_power(X, power).T, z.T, rtol=1e-9)
    if len(found) >= 4:
        assert smallest_singular(z).upper == pytest.approx(np.linalg.svd(found, compute_uv=False)[-1], rel=1e-5)


def test_the_rows_have_the_smallest_image_of_a_symmetric_tensor(rng):
    """Over c in the symmetric subspace, by an orthonormal basis of it inside all d^p entries."""
    R = rng.standard_normal((20, 3))
    Q = np.stack([kronecker_power(r, 2) for r in R])
    every = [(np.outer(a, b) + np.outer(b, a)).ravel() for a in np.eye(3) for b in np.eye(3)]
    basis = np.linalg.svd(np.array(every).T)[0][:, :6]
    truth = np.linalg.svd(Q @ basis, compute_uv=False)[-1]
    assert np.linalg.svd(feature_rows(R, 2), compute_uv=False)[-1] == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("power", [1, 2])
def test_product_rows_are_projections_of_the_full_tensors(rng, power):
    X, Y = rng.standard_normal((2, 3, 3))
    rows = product_rows(X, Y, power)
    test = rng.standard_normal((5, 3))
    truth = (X @ test.T) ** power * (Y @ test.T) ** power  # ⟨x^p ⊗ y^p, t^{2p}⟩
    np.testing.assert_allclose(rows @ isometric_power(test, 2 * power).T, truth, rtol=1e-8)
    np.testing.assert_allclose(product_rows(X, X, power), isometric_power(X, 2 * power), rtol=1e-10)


@pytest.mark.parametrize(("dim", "power", "features"), [(4, 1, 4), (5, 1, 5), (3, 2, 4), (4, 2, 5)])
def test_all_other_rows_lie_in_the_decoupled_subspace_of_the_stated_dimension(rng, dim, power, features):
    R = rng.standard_normal((features, dim))
    S = decoupled_subspace(R, power, (0, 1))
    small, large = symmetric_dimension(dim, power), symmetric_dimension(dim, 2 * power)
    assert S.shape == (large, (features - 2) * small)
    dimension = np.linalg.matrix_rank(S)
    # counted once: Proj(r_l ⊗ r_m), which belongs to both l and m
    assert dimension == min((features - 2) * small - math.comb(features - 2, 2), large)
    pairs = [(i, j) for i in range(features) for j in range(i, features) if {i, j} - {0, 1}]
    rows = product_rows(R[[i for i, _ in pairs]], R[[j for _, j in pairs]], power)
    assert np.linalg.matrix_rank(np.hstack([S, rows.T])) == dimension
    assert decoupled_subspace(R, power, (2, 2)).shape[1] == (features - 1) * small


def test_eq_4_is_what_it_is_by_hand():
    found = perturbed_singular_floor(9, 31, 7, 1, variance=0.25, delta=0.1)
    rooms = (31 * 32 / 2 - 7 * 31 * 2) * (28 - 9)
    by_hand = (rooms / math.factorial(4) ** 3) ** 0.25 * 0.25 * 0.1**4 / (9**2.5 * 7**4)
    assert found.value == pytest.approx(by_hand, rel=1e-12)
    assert (found.failure, found.least, found.most) == (0.1, 6.0, 8)
    assert perturbed_singular_floor(9, 31, 8, 1, variance=0.25, delta=0.1).value == 0.0  # no room is left


def test_outside_of_its_range_eq_4_is_not_applicable_and_says_why():
    few = perturbed_singular_floor(25, 31, 7, 1, variance=0.25, delta=0.1)
    assert not few.applies
    assert few.why == "7 features are fewer than 2√n = 10"
    many = perturbed_singular_floor(9, 31, 9, 1, variance=0.25, delta=0.1)
    assert (many.value, many.why) == (None, "9 features are more than the 8 that are admissible")
    wider = perturbed_singular_floor(9, 31, 9, 1, variance=0.25, delta=0.1, placings=False)
    assert wider.applies
    assert wider.most == most_features(31, 1) == 17
    mnist = {"variance": 0.05**2, "delta": 0.1}
    assert not perturbed_singular_floor(60_000, 100, 750, 2, **mnist).applies
    assert perturbed_singular_floor(60_000, 100, 750, 2, placings=False, **mnist).value > 0


@pytest.mark.parametrize("power", [1, 2])
def test_perturbed_features_are_above_eq_4(rng, power):
    dim, features, samples = (23 if power == 1 else 19), 5, 6
    floor = perturbed_singular_floor(samples, dim, features, power, variance=0.1, delta=0.5)
    for _ in range(20):
        X = math.sqrt(0.1) * rng.standard_normal((samples, dim))
        Z = squared_features(rng.standard_normal((features, dim)), X, power)
        assert np.linalg.svd(Z, compute_uv=False)[-1] > floor.value > 0


def test_lemma_18_is_what_its_proof_says_by_hand():
    small, k, p, delta = 6, 24, 2, 0.2  # d = 3, α = 2
    tau = math.sqrt(k * (2 * math.log((1 + 20 * math.sqrt(2)) ** small * k / delta)) ** p)
    by_hand = delta ** (1 / small) / (tau * (4 * math.sqrt(2)) ** 2)  # α/(α − 1) = 2
    found = spanning_floor(3, k, p, delta=delta)
    assert found.value == pytest.approx(by_hand, rel=1e-12)
    assert (found.failure, found.least, found.most) == (delta, 13, math.inf)
    assert spanning_floor(3, 12, 2, delta=delta).why == "12 features are not more than pD = 12"
    squared = feature_square_floor(3, k, p, smallest=3.0, delta=delta)
    assert squared.value == pytest.approx(3 * by_hand**2, rel=1e-12)
    assert feature_square_floor(3, 12, 2, smallest=3.0, delta=delta).value is None


def test_the_chain_of_lemma_19_holds_for_every_matrix(rng):
    for _ in range(20):
        R, X = rng.standard_normal((14, 3)), rng.standard_normal((8, 3))
        of_rows = np.linalg.svd(feature_rows(R, 2), compute_uv=False)[-1]
        of_inputs = np.linalg.svd(isometric_power(X, 4).T, compute_uv=False)[-1]
        of_squares = np.linalg.svd(squared_features(R, X, 2), compute_uv=False)[-1]
        assert of_squares >= of_rows**2 * of_inputs * (1 - 1e-9)


def test_lemma_17_expands_every_unit_tensor_in_a_net(rng):
    """A net of the circle with spacing 2π/40: σ is half of it, at most."""
    angles = np.arange(40) * 2 * math.pi / 40
    net = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sigma = 2 * math.sin(math.pi / 80)
    rows = rng.standard_normal((5, 2))
    tau = np.linalg.norm(rows @ net.T, axis=0).max()
    for angle in rng.uniform(0, 2 * math.pi, 20):
        c = np.array([math.cos(angle), math.sin(angle)])
        found = net_expansion(c, net, terms=6)
        assert found.weights[0] == pytest.approx(1.0)
        assert (found.weights[1:] <= sigma * found.weights[:-1] * (1 + 1e-9)).all()
        assert np.linalg.norm(c - found.weights @ net[found.chosen]) == pytest.approx(found.left, abs=1e-14)
        assert found.left <= sigma**6 * (1 + 1e-6)
        assert np.linalg.norm(rows @ c) <= tau / (1 - sigma)
    assert net_expansion(net[3], net, terms=9).left < 1e-12


def test_norm_bounds_are_what_they_are_by_hand():
    L = math.log(7 * 3 / math.sqrt(0.04))
    found = perturbed_feature_norm_bound(5, 3, 2, 2, radius=1.5, variance=0.3, delta=0.04)
    by_hand = math.sqrt(2) * (2 * (1.5 + 2 * math.sqrt(0.3 * 3 * L)) * math.sqrt(3 * L)) ** 2
    assert found.value == pytest.approx(by_hand, rel=1e-12)
    assert found.failure == pytest.approx(0.04 / (math.sqrt(2 * math.pi * L) * 21), rel=1e-12)
    L = math.log(2 * 3 / math.sqrt(0.04))
    still = feature_norm_bound(3, 2, 2, radius=1.5, delta=0.04)
    assert still.value == pytest.approx(math.sqrt(2) * (3 * math.sqrt(3 * L)) ** 2, rel=1e-12)
    assert still.failure == pytest.approx(0.04 / (math.sqrt(2 * math.pi * L) * 6), rel=1e-12)


def test_the_stated_failure_is_above_the_exact_chance_that_a_coordinate_is_too_large():
    for vectors, delta in ((1, 0.1), (2, 0.5), (50, 0.01)):
        bound = feature_norm_bound(1, vectors, 1, radius=1.0, delta=delta)
        tail = math.erfc(bound.coordinate / math.sqrt(2))
        exact = 1 - (1 - tail) ** vectors
        assert 0.5 * bound.failure < exact <= bound.failure


def test_norms_are_within_the_bounds_but_for_the_stated_fraction(rng):
    bound = feature_norm_bound(1, 1, 2, radius=1.0, delta=0.1)
    norms = rng.standard_normal(20_000) ** 2  # a single weight, x = 1
    assert bound.failure < 0.05
    assert (norms > bound.value).mean() < bound.failure


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: perturbed_singular_floor(0, 3, 2, 1, variance=1.0, delta=0.1), "samples=0"),
        (lambda: perturbed_singular_floor(1, 3, 2, 1, variance=0.0, delta=0.1), "variance=0"),
        (lambda: perturbed_singular_floor(1, 3, 2, 1, variance=1.0, delta=1.0), "delta=1"),
        (lambda: spanning_floor(3, 0, 1, delta=0.1), "features=0"),
        (lambda: feature_square_floor(3, 12, 1, smallest=0.0, delta=0.1), "smallest=0"),
        (lambda: feature_norm_bound(3, 2, 1, radius=0.0, delta=0.1), "radius=0"),
        (lambda: perturbed_feature_norm_bound(1, 3, 2, 1, radius=1.0, variance=-1.0, delta=0.1), "variance=-1"),
        (lambda: squared_features(np.ones((2, 3)), np.ones((2, 4)), 1), "R has 3 columns and X has 4"),
        (lambda: product_rows(np.ones((2, 3)), np.ones((3, 3)), 1), "expected the same"),
        (lambda: decoupled_subspace(np.ones((2, 3)), 1, (0, 2)), "rows 0 to 1"),
        (lambda: net_expansion([1.0, 1.0], np.eye(2), terms=1), "a vector of length 1"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_what_is_no_net_and_a_bound_beyond_float64_are_refused():
    with pytest.raises(InputError, match="No row of net is nearer than 1"):
        net_expansion([0.6, 0.8], [[1.0, 0.0]], terms=3)
    with pytest.raises(InputError, match="rows that are not of length 1"):
        net_expansion([0.6, 0.8], 2 * np.eye(2), terms=1)
    with pytest.raises(InputError, match="the bound is beyond float64"):
        feature_norm_bound(10**6, 10**6, 300, radius=1e10, delta=0.1)
