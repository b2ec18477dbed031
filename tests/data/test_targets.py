"""Energies against Fourier series on the circle, moments by hand, and Monte Carlo within 5 standard errors."""

import functools
import math
import pickle

import jax
import numpy as np
import pytest
from scipy.special import eval_gegenbauer

from offtangent._errors import InputError
from offtangent.data import targets
from offtangent.data.targets import LowDegreePlusSparse, gaussian_target, quadratic_plus_cubic, sphere_target

KEY = jax.random.key(3)
N = 100_000
SHAPES = [(6, 2, 2), (20, 1, 1), (7, 3, 0), (4, 0, 2)]


@functools.cache
def made(dim, degree, rank):
    return LowDegreePlusSparse.random(dim, degree, rank, key=KEY)


def normal(dim, seed=0, n=N):
    return np.random.default_rng(seed).standard_normal((n, dim))


def draw(dim, seed=0, n=N):
    X = normal(dim, seed, n)
    return math.sqrt(dim) * X / np.linalg.norm(X, axis=1, keepdims=True)


def has_mean(sample, truth):
    return abs(sample.mean() - truth) <= 5 * sample.std() / math.sqrt(len(sample)) + 1e-15


@pytest.mark.parametrize(("dim", "degree", "rank"), SHAPES)
def test_the_low_part_has_norm_one_exactly_and_by_monte_carlo(dim, degree, rank):
    target = made(dim, degree, rank)
    assert target.energies().low.sum() == pytest.approx(1, rel=1e-13)
    assert has_mean(target.low(draw(dim)) ** 2, 1.0)


@pytest.mark.parametrize(("dim", "degree", "rank"), SHAPES)
def test_the_energies_of_all_degrees_make_the_norm_by_monte_carlo(dim, degree, rank):
    target, X = made(dim, degree, rank), draw(dim)
    energies = target.energies()
    for values, parts in ((target.sparse(X), energies.sparse), (target(X), energies.total)):
        assert len(parts) == degree + 2
        assert has_mean(values**2, parts.sum())


@pytest.mark.parametrize("part", ["low", "sparse", "total"])
def test_on_the_circle_energies_are_those_of_the_fourier_series(part):
    """Exact: a trigonometric polynomial of degree 5 on 64 equal angles."""
    target = made(2, 4, 3)
    angles = 2 * math.pi * np.arange(64) / 64
    X = math.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    values = {"low": target.low, "sparse": target.sparse, "total": target}[part](X)
    series = np.abs(np.fft.rfft(values) / 64) ** 2
    np.testing.assert_allclose(
        getattr(target.energies(), part), [series[0], *(2 * series[1:6])], rtol=1e-10, atol=1e-13
    )


def test_each_degree_s_energy_is_right_by_monte_carlo():
    """E[f(x) f(x') B Q_j(⟨x, x'⟩/d)] over independent x, x' is the energy of degree j; Q_j here is SciPy's."""
    dim, n = 4, 200_000
    target = made(dim, 2, 2)
    X, Y = draw(dim, 1, n), draw(dim, 2, n)
    cosine, energies = (X * Y).sum(axis=1) / dim, target.energies()
    for j in range(4):
        kernel = (j + 1) * eval_gegenbauer(j, 1, cosine)  # B(4, j) = (j+1)² and C_j(1) = j + 1
        for values, parts in ((target.low, energies.low), (target.sparse, energies.sparse), (target, energies.total)):
            assert has_mean(values(X) * values(Y) * kernel, parts[j])


@pytest.mark.parametrize("low", [(0.0, 1.0, 0.0), (0.25, 0.25, 0.5)])
def test_planted_energies_are_there(low):
    target = LowDegreePlusSparse.random(6, 2, 2, low_energies=low, key=KEY)
    np.testing.assert_allclose(target.energies().low, [*low, 0], rtol=1e-13)


@pytest.mark.parametrize(("dim", "degree"), [(3, 1), (10, 2), (100, 3), (1000, 5)])
def test_a_power_s_energies_sum_to_its_moment(dim, degree):
    """E[(βᵀx)^{2p}] = d^p (2p−1)!!/(d(d+2)…(d+2p−2))."""
    power = degree + 1
    moment = math.prod(dim * (2 * i + 1) / (dim + 2 * i) for i in range(power))
    unit = np.eye(1, dim)
    found = LowDegreePlusSparse(unit, np.zeros((power, 1)), np.ones(1), unit).energies().sparse
    assert found.sum() == pytest.approx(moment, rel=1e-12)
    assert (found[::-1][1::2] == 0).all()  # of the other parity there is none


def test_the_low_part_is_a_sum_of_gegenbauer_ridges():
    target, X = made(7, 3, 0), draw(7, n=50)
    expected = np.zeros(50)
    for v, column in zip(target.directions, target.weights.T, strict=True):
        for j, weight in enumerate(column):
            expected += weight * eval_gegenbauer(j, 2.5, X @ v / math.sqrt(7)) / eval_gegenbauer(j, 2.5, 1.0)
    np.testing.assert_allclose(target.low(X), expected, atol=1e-12)


def test_the_quadratic_part_is_dense():
    """By polarisation: a matrix of full rank, whose largest eigenvalue does not carry it."""
    dim = 12
    target = LowDegreePlusSparse.random(dim, 2, 0, low_energies=(0, 0, 1), key=KEY)

    def form(x):
        return target.low(x) - target.low(np.zeros((1, dim)))

    pairs = np.eye(dim)[:, None] + np.eye(dim)
    P = form(pairs.reshape(-1, dim)).reshape(dim, dim)  # A_ii + A_jj + 2A_ij, and so 4A_ii on the diagonal
    A = (P - np.diag(P)[:, None] / 4 - np.diag(P) / 4) / 2
    values = np.abs(np.linalg.eigvalsh(A))
    assert values.min() > 1e-3 * values.max()
    assert values.max() ** 2 < 0.5 * (values**2).sum()


def test_many_samples_are_taken_in_blocks(monkeypatch):
    target, X = made(6, 2, 2), draw(6, n=101)
    whole = target(X)
    monkeypatch.setattr(targets, "BLOCK", 300)
    np.testing.assert_allclose(target(X), whole, rtol=1e-13, atol=1e-13)


def test_the_same_key_gives_the_same_target_and_pickles_keep_it():
    first, again, other = (LowDegreePlusSparse.random(6, 2, 2, key=jax.random.key(s)) for s in (3, 3, 4))
    X = draw(6, n=10)
    assert np.array_equal(first(X), again(X))
    assert not np.array_equal(first(X), other(X))
    assert np.array_equal(first(X), pickle.loads(pickle.dumps(first))(X))  # noqa: S301
    assert first(X).dtype == np.float64
    assert (first.dim, first.degree, first.rank) == (6, 2, 2)


def test_the_low_part_is_the_same_for_every_rank():
    X = draw(6, n=10)
    assert np.array_equal(made(6, 2, 2).low(X), made(6, 2, 0).low(X))


def test_the_text_s_target_is_the_printed_formula_with_its_energies():
    target, X = sphere_target(100, key=KEY), draw(100, n=20_000)
    beta = target.betas[0]
    np.testing.assert_allclose(target(X), X[:, 0] - 1 + (X @ beta) ** 2, atol=1e-12)
    energies = target.energies()
    assert energies.low.sum() == pytest.approx(2)
    np.testing.assert_allclose(energies.total, [0, 1, 2 * 99 / 102], atol=1e-12)  # a variance of 2.94
    assert has_mean((target(X) - target(X).mean()) ** 2, energies.total.sum())


def test_the_code_s_target_is_its_formula_with_mean_zero_and_variance_one():
    target, X = gaussian_target(30, key=KEY), normal(30)
    z = X @ target.betas[0]
    np.testing.assert_allclose(target(X), (z**2 - 1 + z) / math.sqrt(3), atol=1e-12)
    assert has_mean(target(X), 0.0)
    assert has_mean(target(X) ** 2, 1.0)


@pytest.mark.parametrize(
    ("dim", "second", "variance"),
    [
        (10, 0.036, 0.012),
        (20, 0.147, 0.027),
        (30, 0.33, 0.041),
        (40, 0.59, 0.056),
        (50, 0.92, 0.071),
        (100, 3.70, 0.145),
    ],
)
def test_figure_2_s_code_has_the_sizes_of_the_specification(dim, second, variance):
    low = quadratic_plus_cubic(dim, normalised=False, key=KEY).energies().low
    assert low.sum() == pytest.approx(second, abs=0.005)
    assert low[2] == pytest.approx(variance, abs=0.0006)


@pytest.mark.parametrize("dim", [3, 10, 11])
@pytest.mark.parametrize("normalised", [False, True])
def test_figure_2_s_target_is_its_formula_with_its_energies(dim, normalised):
    target = quadratic_plus_cubic(dim, normalised=normalised, key=KEY)
    X = normal(dim)
    A = np.diag([1.0 if i > dim / 2 else 0.0 for i in range(dim)])
    form, s = np.einsum("ni,ij,nj->n", X, A, X, optimize=True), np.trace(A)
    z = X @ target.beta
    low = (form - s) / math.sqrt(2 * s) if normalised else form / math.sqrt(675)
    np.testing.assert_allclose(target(X), low + (z**3 - 3 * z) / math.sqrt(6), atol=1e-11)
    energies = target.energies()
    assert has_mean(target.low(X) ** 2, energies.low.sum())
    assert has_mean(target(X) ** 2, energies.total.sum())
    if normalised:
        np.testing.assert_allclose(energies.total, [0, 0, 1, 1])


UNITS = np.eye(2, 4)


def unchecked(*fields):
    """Past the type checker of the tests, which has its own say on shapes."""
    target = object.__new__(LowDegreePlusSparse)
    for name, value in zip(("directions", "weights", "alphas", "betas"), fields, strict=True):
        object.__setattr__(target, name, value)
    target.__post_init__()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LowDegreePlusSparse.random(1, 1, 1, key=KEY), "dim ≥ 2"),
        (lambda: LowDegreePlusSparse.random(5, -1, 1, key=KEY), "degree=-1"),
        (lambda: LowDegreePlusSparse.random(5, 1, -1, key=KEY), "rank=-1"),
        (lambda: LowDegreePlusSparse.random(5, 1, 1, ridges=0, key=KEY), "ridges=0"),
        (lambda: LowDegreePlusSparse.random(5, 1, 1, low_energies=(0.5, 0.6), key=KEY), "whose sum is 1"),
        (lambda: LowDegreePlusSparse.random(5, 1, 1, low_energies=(1.0,), key=KEY), "2 numbers"),
        (lambda: LowDegreePlusSparse.random(5, 1, 1, key=7), "one JAX key"),
        (lambda: LowDegreePlusSparse(UNITS, np.ones((2, 2)), np.ones(2), 2 * UNITS), "row 0 of betas has norm 2"),
        (lambda: LowDegreePlusSparse(UNITS, np.ones((2, 2)), np.full(2, 1.5), UNITS), "α_i| ≤ 1"),
        (lambda: unchecked(UNITS, np.ones((2, 3)), np.ones(2), UNITS), "column for each"),
        (lambda: unchecked(UNITS, np.ones((2, 2)), np.ones(1), UNITS), "1 alphas and 2 betas"),
        (lambda: unchecked(UNITS, np.ones((2, 2)), np.ones(2), np.eye(2, 3)), "coordinates"),
        (lambda: LowDegreePlusSparse(UNITS, np.full((2, 2), np.nan), np.ones(2), UNITS), "NaN"),
        (lambda: sphere_target(4, key=KEY)(np.ones((3, 5))), "expected 4 columns"),
        (lambda: quadratic_plus_cubic(2, normalised=True, key=KEY), "at least 3"),
        (lambda: sphere_target(1, key=KEY), "at least 2"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
