"""Reduced forms against full tensors; Gaussian variances against exact quadrature and Monte Carlo."""

import itertools
import math

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.theory.ge_wang_zhao.monomials import multi_indices
from offtangent.theory.ge_wang_zhao.tensors import (
    SymmetricTensor,
    decoupled_variance,
    decoupled_variance_floor,
    gaussian_variance,
    gaussian_variance_floor,
    hermite_basis,
    hermite_expansion,
    isometric_power,
    leading_hermite,
    log_covering_bound,
    reduced_power,
    rv_norm_floor,
    symmetric_product,
)

SHAPES = [(1, 1), (4, 1), (3, 2), (2, 3), (3, 4)]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def full_power(x, power):
    tensor = np.ones(())
    for _ in range(power):
        tensor = np.multiply.outer(tensor, x)
    return tensor


def symmetrised(tensor):
    orders = list(itertools.permutations(range(tensor.ndim)))
    return sum(tensor.transpose(order) for order in orders) / len(orders)


def random_tensor(rng, dim, power):
    return SymmetricTensor.of(symmetrised(rng.standard_normal((dim,) * power)))


def grid(dim, nodes=8):
    """Points and weights that integrate polynomials of degree 15 in each variable against N(0, I)."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    mesh = np.stack(np.meshgrid(*[points] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    mass = np.stack(np.meshgrid(*[weights / math.sqrt(2 * math.pi)] * dim, indexing="ij"), axis=-1)
    return mesh, mass.reshape(-1, dim).prod(axis=1)


@pytest.mark.parametrize(("dim", "power"), SHAPES)
def test_the_reduced_form_has_the_entries_and_norms_of_the_full_tensor(rng, dim, power):
    M = random_tensor(rng, dim, power)
    full = M.dense()
    for index, value in zip(multi_indices(dim, power), M.coefficients, strict=True):
        assert full[tuple(np.repeat(np.arange(dim), index))] == value
    assert M.norm == pytest.approx(np.linalg.norm(full), rel=1e-12)
    assert SymmetricTensor.of(full).coefficients.tolist() == M.coefficients.tolist()
    np.testing.assert_allclose(SymmetricTensor.from_isometric(M.isometric, dim, power).coefficients, M.coefficients)
    x = rng.standard_normal((2, dim))
    np.testing.assert_allclose(M(x), [np.sum(full * full_power(one, power)) for one in x], rtol=1e-10)


@pytest.mark.parametrize(("dim", "power"), SHAPES)
def test_powers_are_those_of_the_full_tensor(rng, dim, power):
    X = rng.standard_normal((3, dim))
    for row, x in zip(reduced_power(X, power), X, strict=True):
        np.testing.assert_allclose(row, SymmetricTensor.of(full_power(x, power)).coefficients, rtol=1e-12)
    iso = isometric_power(X, power)
    np.testing.assert_allclose(iso @ iso.T, (X @ X.T) ** power, rtol=1e-10)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 2), (2, 2)])
def test_the_symmetric_product_is_the_projection_of_the_outer_product(rng, p, q):
    A, B = random_tensor(rng, 3, p), random_tensor(rng, 3, q)
    truth = symmetrised(np.multiply.outer(A.dense(), B.dense()))
    np.testing.assert_allclose(symmetric_product(A, B).dense(), truth, atol=1e-12)


@pytest.mark.parametrize(("dim", "power"), SHAPES)
def test_lemma_6_holds_and_is_attained_by_distinct_indices(rng, dim, power):
    M = random_tensor(rng, dim, power)
    assert rv_norm_floor(M.norm, power) * (1 - 1e-12) <= M.rv_norm <= M.norm * (1 + 1e-12)
    if dim >= power:
        distinct = SymmetricTensor((multi_indices(dim, power).max(axis=1) == 1).astype(float), dim, power)
        assert rv_norm_floor(distinct.norm, power) == pytest.approx(distinct.rv_norm, rel=1e-12)


def test_lemma_7_is_beaten_by_the_exact_covering_number_of_the_circle():
    """N(ε) of the unit circle: arcs of half-angle 2 arcsin(ε/2)."""
    for epsilon in (0.01, 0.1, 0.5, 1.0):
        exact = math.ceil(math.pi / (2 * math.asin(epsilon / 2)) - 1e-12)
        assert math.log(exact) <= log_covering_bound(2, 1, epsilon)
    assert log_covering_bound(3, 2, 0.5, euclidean=True) == pytest.approx(6 * math.log(5))
    assert log_covering_bound(3, 2, 0.5) == pytest.approx(6 * math.log(1 + 4 * math.sqrt(2)))


@pytest.mark.parametrize(("dim", "order"), [(1, 5), (2, 3), (3, 2)])
def test_the_hermite_basis_is_orthonormal_by_exact_quadrature(dim, order):
    points, weights = grid(dim)
    basis = hermite_basis(points, order)
    assert basis.shape[1] == math.comb(dim + order, order)
    np.testing.assert_allclose(basis.T @ (weights[:, None] * basis), np.eye(basis.shape[1]), atol=1e-12)


@pytest.mark.parametrize(("dim", "power"), [(1, 1), (2, 3), (3, 2), (2, 4)])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_the_hermite_expansion_is_the_polynomial_and_gives_its_moments(rng, dim, power, scale):
    M, shift = random_tensor(rng, dim, power), scale * rng.standard_normal(dim)
    expansion = hermite_expansion(M, shift)
    points, weights = grid(dim)
    truth = M(shift + points)
    np.testing.assert_allclose(expansion(points), truth, atol=1e-9 * np.abs(truth).max())
    mean = weights @ truth
    assert expansion.mean == pytest.approx(mean, abs=1e-10)
    assert gaussian_variance(M, shift) == pytest.approx(weights @ (truth - mean) ** 2, rel=1e-10)


@pytest.mark.parametrize(("dim", "power"), SHAPES)
def test_proposition_4_gives_the_leading_coefficients_for_every_shift(rng, dim, power):
    M = random_tensor(rng, dim, power)
    leading = leading_hermite(M)
    for shift in (None, rng.standard_normal(dim)):
        np.testing.assert_allclose(hermite_expansion(M, shift).coefficients[-len(leading) :], leading, rtol=1e-12)
    root = np.sqrt([math.prod(map(math.factorial, one)) for one in multi_indices(dim, power).tolist()])
    np.testing.assert_allclose(M.polynomial, leading / root, rtol=1e-12)
    assert leading @ leading == pytest.approx(gaussian_variance_floor(M).sharp, rel=1e-12)


@pytest.mark.parametrize(("dim", "power"), SHAPES)
def test_lemma_9_holds_and_is_exact_for_linear_forms(rng, dim, power):
    M = random_tensor(rng, dim, power)
    floor, found = gaussian_variance_floor(M), gaussian_variance(M, rng.standard_normal(dim))
    assert floor.lemma * (1 - 1e-12) <= floor.sharp <= found * (1 + 1e-12)
    if power == 1:
        assert found == pytest.approx(floor.lemma, rel=1e-12)


@pytest.mark.parametrize(("dim", "power"), [(1, 1), (2, 1), (2, 2)])
def test_the_decoupled_variance_is_that_of_exact_quadrature_and_above_lemma_10(rng, dim, power):
    M = random_tensor(rng, dim, 2 * power)
    u0, v0 = rng.standard_normal((2, dim))
    points, weights = grid(2 * dim, nodes=4)
    full = M.dense().reshape(dim**power, dim**power)
    left, right = (
        np.stack([full_power(one, power).ravel() for one in at])
        for at in (u0 + points[:, :dim], v0 + points[:, dim:])
    )  # fmt: skip
    values = np.einsum("na,ab,nb->n", left, full, right)
    truth = weights @ values**2 - (weights @ values) ** 2
    assert decoupled_variance(M, u0, v0) == pytest.approx(truth, rel=1e-9)
    floor = decoupled_variance_floor(M)
    assert floor.lemma <= floor.sharp * (1 + 1e-12)
    assert floor.sharp <= decoupled_variance(M) * (1 + 1e-12)
    assert floor.sharp <= truth * (1 + 1e-12)


def test_the_variance_is_that_of_random_draws(rng):
    M, shift = random_tensor(rng, 6, 3), rng.standard_normal(6)
    values = M(shift + rng.standard_normal((40_000, 6)))
    squares = (values - values.mean()) ** 2
    error = squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - gaussian_variance(M, shift)) < 4 * error


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SymmetricTensor.of([[0.0, 1.0], [0.0, 0.0]]), "not symmetric in its axes 0 and 1"),
        (lambda: SymmetricTensor.of(np.ones((2, 3))), "expected \\(d, …, d\\)"),
        (lambda: SymmetricTensor(np.ones(4), 2, 2), "has 3 of them"),
        (lambda: SymmetricTensor(np.array([np.nan]), 1, 1), "finite"),
        (lambda: SymmetricTensor.from_isometric(np.ones(4), 2, 2), "expected \\(3,\\)"),
        (lambda: decoupled_variance(SymmetricTensor(np.ones(2), 2, 1)), "even order 2p"),
        (lambda: gaussian_variance(SymmetricTensor(np.ones(2), 2, 1), [1.0]), "expected \\(2,\\)"),
        (lambda: symmetric_product(SymmetricTensor(np.ones(2), 2, 1), SymmetricTensor(np.ones(3), 3, 1)), "R\\^3"),
        (lambda: reduced_power([[1.0]], 0), "power=0"),
        (lambda: reduced_power(np.ones((1, 200)), 4), "at most 2000000"),
        (lambda: reduced_power([[math.inf]], 1), "infinite"),
        (lambda: hermite_basis([[1.0]], -1), "order=-1"),
        (lambda: log_covering_bound(2, 1, 0.0), "epsilon=0"),
        (lambda: rv_norm_floor(-1.0, 2), "norm=-1"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(InputError, match=said):
        call()
