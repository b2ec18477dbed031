"""Lemmas 5 and 8, M_{x,op}: against brute force over all signs, ascent and loops over neurons."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import hypercube, sphere
from offtangent.networks import TwoLayer
from offtangent.special import activation as named
from offtangent.theory.bai_lee.complexity import (
    expected_input_spread,
    feature_rademacher,
    feature_term,
    input_spread,
    matrix_rademacher,
    sphere_spread_bound,
    widest_gap_weights,
)
from offtangent.theory.bai_lee.expressivity import column_norm, quadratic_part


def network(width, *, dim=3, paired=True, seed=0):
    rng = np.random.default_rng(seed)
    W0, a = rng.standard_normal((dim, width)), rng.choice([1.0, -1.0], width)
    if paired:
        W0[:, width // 2 :], a = W0[:, : width // 2], np.repeat([1.0, -1.0], width // 2)
    f32 = (W0.astype(np.float32), a.astype(np.float32))
    return TwoLayer(*map(jnp.asarray, f32), named("relu3"), paired=paired)


def unit(n, dim=3, seed=1):
    X = np.random.default_rng(seed).standard_normal((n, dim))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def all_signs(n):
    return np.array(list(itertools.product((1.0, -1.0), repeat=n)))


def feature_matrices(net, X, signs):
    """a_rA_r for every neuron, by loops."""
    W0, a = np.asarray(net.W0, np.float64), np.asarray(net.a, np.float64)
    return np.array(
        [
            a[r] * sum(s * max(W0[:, r] @ x, 0.0) * np.outer(x, x) for s, x in zip(signs, X, strict=True)) / len(X)
            for r in range(net.width)
        ]
    )


def highest(gradient, value, start, norm, steps=200):
    """The largest value of a function of W on the ball ‖W‖_{2,4} ≤ `norm` that ascent within the ball finds.

    Each step goes towards the W of the ball with the largest ⟨gradient, W⟩: the columns of the gradient, with their
    lengths to the power 1/3. It goes as far as the value grows.
    """
    W = start * norm / column_norm(start)
    best = value(W)
    for _ in range(steps):
        G = gradient(W)
        corner = G * np.maximum(np.linalg.norm(G, axis=0), 1e-30) ** (-2 / 3)
        corner *= norm / column_norm(corner)
        for step in 0.5 ** np.arange(20):
            tried = (1 - step) * W + step * corner
            if (higher := value(tried)) > best:
                W, best = tried, higher
                break
        else:
            break
    return best


def test_spread_is_one_for_inputs_on_a_line_and_smallest_for_an_orthogonal_frame():
    assert input_spread(np.outer([1.0, -1.0, 1.0], [3.0, 4.0])) == pytest.approx(1.0, rel=1e-14)  # V-A9
    assert input_spread(7 * np.vstack([np.eye(5), -np.eye(5)])) == pytest.approx(5**-0.5, rel=1e-14)
    X = unit(20, 6)
    covariance = sum(np.outer(x, x) for x in X) / 20
    assert input_spread(2.5 * X) == pytest.approx(math.sqrt(np.linalg.eigvalsh(covariance)[-1]), rel=1e-13)


@pytest.mark.parametrize("law", ["sphere", "cube"])
@pytest.mark.parametrize("dim", [5, 20])
def test_spread_of_isotropic_inputs_is_near_one_over_root_d(law, dim):
    """V-A9: at least 1/√d always, and at most (1 + √(d/n))/√d, the norm of a Gaussian matrix of this size."""
    n = 50 * dim
    found = expected_input_spread(
        (lambda key: sphere(n, dim, radius=3.0, key=key))
        if law == "sphere"
        else (lambda key: hypercube(n, dim, key=key)),
        draws=8,
        key=jax.random.key(dim),
    )
    assert found.draws == 8
    assert dim**-0.5 <= found.value <= (1 + math.sqrt(dim / n)) * dim**-0.5
    assert 0 < found.error < 0.01 * found.value


@pytest.mark.parametrize("paired", [True, False])
def test_the_feature_term_equals_brute_force_over_signs_and_neurons(paired):
    net, X = network(6, paired=paired), unit(5)
    found = feature_term(net, X)
    matrices = [feature_matrices(net, X, signs) for signs in all_signs(5)]
    largest = [max(np.linalg.norm(A, 2) for A in each) for each in matrices]
    typical = [math.sqrt(np.mean([max(np.linalg.eigvalsh(A)[-1], 0) ** 2 for A in each])) for each in matrices]
    assert found.largest.value == pytest.approx(np.mean(largest), rel=1e-13)
    assert found.typical.value == pytest.approx(np.mean(typical), rel=1e-13)
    assert found.largest.error == found.typical.error == 0.0


def test_random_signs_estimate_the_feature_term_within_their_error():
    """Thirteen inputs: all 2¹³ signs by hand against 400 random pairs."""
    net, X = network(4, dim=2), unit(13, 2)
    curvature = np.maximum(X @ np.asarray(net.W0, np.float64), 0)
    A = np.einsum("sn,nr,ni,nj->srij", all_signs(13), curvature, X, X, optimize=True) / 13
    values = np.linalg.eigvalsh(A * np.asarray(net.a, np.float64)[:, None, None])
    largest = np.abs(values).max(axis=(1, 2)).mean()
    typical = np.sqrt((np.maximum(values[..., -1], 0) ** 2).mean(axis=1)).mean()
    found = feature_term(net, X, draws=400, key=jax.random.key(0))
    for estimate, truth in ((found.largest, largest), (found.typical, typical)):
        assert 0 < estimate.error < 0.05 * truth
        assert abs(estimate.value - truth) <= 4 * estimate.error


@pytest.mark.parametrize("paired", [True, False])
def test_the_complexity_is_what_ascent_within_the_ball_finds(paired):
    """The supremum of n⁻¹Σσᵢf^Q_W(xᵢ) over the ball, averaged over all signs of four inputs."""
    net, X, norm = network(6, paired=paired), unit(4), 1.7
    found = []
    for signs in all_signs(4):
        A = feature_matrices(net, X, signs) / (2 * math.sqrt(6))

        def gradient(W, A=A):
            return 2 * np.einsum("rij,jr->ir", A, W)

        def value(W, A=A):
            return float(np.einsum("ir,rij,jr->", W, A, W))

        start = np.random.default_rng(0).standard_normal((3, 6))
        found.append(max(highest(gradient, value, start, norm), 0.0))
    complexity = feature_term(net, X).complexity(norm).value
    assert np.mean(found) <= complexity * (1 + 1e-12)
    assert np.mean(found) >= 0.98 * complexity


@pytest.mark.parametrize("paired", [True, False])
def test_the_weights_that_fit_signs_best_reach_the_supremum(paired):
    """V-A8 by loops: moving away from it in the ball only loses."""
    net, X, signs = network(6, paired=paired), unit(7), np.array([1.0, -1, 1, 1, -1, 1, -1])
    W = widest_gap_weights(net, X, signs, norm=1.5)
    assert column_norm(W) == pytest.approx(1.5, rel=1e-12)
    tops = [max(np.linalg.eigvalsh(A)[-1], 0.0) for A in feature_matrices(net, X, signs)]

    def value(V):
        return float(np.mean(signs * quadratic_part(net, V, X)))

    assert value(W) == pytest.approx(1.5**2 / 2 * math.sqrt(np.mean(np.square(tops))), rel=1e-6)
    rng = np.random.default_rng(3)
    for size in (0.01, 0.3, 10.0):
        other = W + size * rng.standard_normal(W.shape)
        assert value(1.5 / column_norm(other) * other) < value(W)


def test_weights_for_inputs_that_no_neuron_sees_are_zero():
    net = network(4)
    blind = TwoLayer(-jnp.abs(net.W0), net.a, net.activation, paired=True)
    assert not widest_gap_weights(blind, np.abs(unit(5)), np.ones(5), norm=1.0).any()


@pytest.mark.parametrize(("n", "dim"), [(8, 4), (40, 4), (60, 20), (600, 20)])
def test_the_spread_of_the_sphere_is_below_its_bound_and_not_far(n, dim):
    found = expected_input_spread(lambda key: sphere(n, dim, key=key), draws=200, key=jax.random.key(n))
    bound = sphere_spread_bound(n, dim)
    assert found.value + 4 * found.error < bound < 1.4 * found.value
    lengths = np.linalg.norm(np.random.default_rng(0).standard_normal((400_000, dim)), axis=1)
    assert math.sqrt((1 + math.sqrt(dim / n)) ** 2 + 1 / n) / bound == pytest.approx(lengths.mean(), rel=2e-3)


def test_lemma_5_bounds_the_loss_of_the_quadratic_model():
    """V-A8: the logistic loss, its supremum over the ball by ascent, all signs of six inputs.

    The complexity alone bounds it too, by contraction.
    """
    net, X, norm = network(12), unit(6), 4.0
    y = np.array([1, -1, 1, 1, -1, -1.0])
    curvature = np.maximum(X @ np.asarray(net.W0, np.float64), 0) * np.asarray(net.a, np.float64) / (2 * math.sqrt(12))

    def output(W):
        return (curvature * (X @ W) ** 2).sum(axis=1)

    found = []
    for signs in all_signs(6):

        def gradient(W, signs=signs):
            slope = -y / (1 + np.exp(y * output(W))) * signs / 6
            return 2 * X.T @ (slope[:, None] * curvature * (X @ W))

        def value(W, signs=signs):
            return float(signs @ np.log1p(np.exp(-y * output(W)))) / 6

        starts = np.random.default_rng(1).standard_normal((2, 3, 12))
        found.append(max(highest(gradient, value, start, norm, 60) for start in starts))
    term = feature_term(net, X)
    assert 0.1 * term.complexity(norm).value <= np.mean(found) <= term.complexity(norm).value
    assert term.complexity(norm).value < term.loss_bound(norm).value
    assert term.loss_bound(norm).value == pytest.approx(2 * 16 * term.largest.value + 6**-0.5, rel=1e-14)


@pytest.mark.parametrize(("m", "n", "d"), [(1, 6, 1), (1, 8, 3), (5, 8, 3), (20, 6, 2)])
def test_lemma_8_bounds_the_mean_over_all_signs(m, n, d):
    A = np.random.default_rng(m).standard_normal((m, n, d, d))
    A = A + np.swapaxes(A, -1, -2)
    sums = np.einsum("sn,rnij->srij", all_signs(n), A)
    exact = np.abs(np.linalg.eigvalsh(sums)).max(axis=(1, 2)).mean()
    squares = (sums @ sums).mean(axis=0)  # E Y², by its definition
    found = matrix_rademacher(A)
    assert found.variance == pytest.approx(np.linalg.eigvalsh(squares)[:, -1].max(), rel=1e-12)
    assert exact <= found.tropp <= found.lemma
    assert found.lemma == pytest.approx(4 * math.sqrt(found.variance * math.log(2 * m * d)), rel=1e-14)


def test_the_steps_of_theorem_6_bound_the_feature_term_one_after_the_other():
    net, X = network(10), 1.3 * unit(9)
    curvature = np.maximum(X @ np.asarray(net.W0, np.float64), 0)
    found = feature_rademacher(net, X)
    explicit = matrix_rademacher(np.einsum("nr,ni,nj->rnij", curvature, X, X) / 9)
    assert found.lemma == pytest.approx(explicit.lemma, rel=1e-12)
    last = 4 * 1.3 * math.sqrt(math.log(2 * 3 * 10) / 9) * curvature.max() * 1.3 * input_spread(X)
    assert feature_term(net, X).largest.value <= found.tropp <= found.lemma <= last


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: widest_gap_weights(network(4), unit(5), np.ones(4), norm=1.0), "signs has shape"),
        (lambda: widest_gap_weights(network(4), unit(5), np.zeros(5), norm=1.0), "±1"),
        (lambda: sphere_spread_bound(0, 4), "n"),
        (lambda: feature_term(network(4), unit(13)), "too many to try"),
        (lambda: feature_term(network(4), unit(13), draws=1, key=jax.random.key(0)), "draws=1"),
        (lambda: feature_term(network(4), unit(3)).complexity(0.0), "norm=0"),
        (lambda: input_spread(np.zeros((2, 2))), "Every row"),
        (lambda: matrix_rademacher(np.arange(4.0).reshape(1, 1, 2, 2)), "not symmetric"),
    ],
)
def test_bad_arguments_are_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()
