"""Conjugate gradients against a dense solve, and what they say of themselves."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from offtangent.linalg.conjugate import conjugate_gradients
from offtangent.linalg.preconditioner import low_rank

N = 20


class Dense(eqx.Module):
    A: jax.Array

    def __matmul__(self, v):
        return self.A @ v


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def with_condition(condition, seed=0, n=N):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    A = Q * np.geomspace(1, 1 / condition, n) @ Q.T
    return (A + A.T) / 2


def sides(columns=3):
    return np.random.default_rng(1).standard_normal((N, columns))


def half(A):
    """A preconditioner from half of the eigenpairs."""
    values, vectors = np.linalg.eigh(A)
    F = vectors[:, N // 2 :] * np.sqrt(values[N // 2 :])
    return low_rank(jnp.asarray(F), float(values[N // 2])), F @ F.T + values[N // 2] * np.eye(N)


def run(A, b, *, tolerance=1e-10, most=200, **options):
    return conjugate_gradients(Dense(jnp.asarray(A)), jnp.asarray(b), tolerance=tolerance, most=most, **options)


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("preconditioned", [False, True])
def test_the_solution_is_that_of_a_dense_solve(condition, preconditioned):
    A, b = with_condition(condition), sides()
    found = run(A, b, preconditioner=half(A)[0] if preconditioned else None)
    assert found.converged
    assert found.residual <= 1e-10
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=0, atol=1e-9 * condition)


def test_in_exact_arithmetic_n_steps_suffice_and_as_many_as_there_are_eigenvalues():
    values = np.repeat([1.0, 2.0, 5.0], [7, 7, 6])
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((N, N)))[0]
    assert run(Q * values @ Q.T, sides(1)).iterations == 3


@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_ritz_values_lie_inside_the_preconditioned_spectrum(preconditioned, most):
    A = with_condition(1e3)
    preconditioner, P = half(A) if preconditioned else (None, np.eye(N))
    spectrum = scipy.linalg.eigh(A, P, eigvals_only=True)
    b = np.concatenate([sides(), np.linalg.eigh(A)[1][:, :1]], axis=1)  # one column converges long before the others
    low, high = run(A, b, preconditioner=preconditioner, most=most).ritz
    room = 1e-8 * spectrum[-1]  # what is left after a column has converged is rounding
    assert spectrum[0] - room <= low <= high <= spectrum[-1] + room
    if most == 200:
        np.testing.assert_allclose([low, high], spectrum[[0, -1]], rtol=1e-3)


def test_at_most_steps_it_stops_and_says_that_it_has_not_converged():
    A, b = with_condition(1e6), sides()
    found = run(A, b, most=4)
    assert (found.iterations, found.converged) == (4, False)
    true = np.linalg.norm(b - A @ np.asarray(found.x), axis=0) / np.linalg.norm(b, axis=0)
    np.testing.assert_allclose(found.residual, true.max(), rtol=1e-8)
    assert found.residual > 1e-10


def test_it_is_patient_while_the_residual_does_not_fall():
    """At a condition of 1e6: the residual may rise up to √condition before it falls for good."""
    seen = []
    values = np.geomspace(1, 1e-6, 100)
    b = np.random.default_rng(0).standard_normal((100, 1)) * np.sqrt(values)[:, None]
    found = run(np.diag(values), b, tolerance=1e-9, most=2000, watch=lambda _, residual: seen.append(residual))
    best = np.minimum.accumulate(seen)
    assert max(len(list(group)) for _, group in itertools.groupby(best)) > 20
    assert found.converged
    np.testing.assert_allclose(found.x, b / values[:, None], rtol=1e-2)


def test_every_column_is_solved_whatever_its_size():
    A, b = with_condition(1e2), sides() * [1e-12, 1.0, 1e12]
    found = run(A, b)
    expected = np.linalg.solve(A, b)
    assert found.converged
    np.testing.assert_allclose(np.asarray(found.x) / expected, 1, atol=1e-6)


@pytest.mark.parametrize("which", [[0], [1], [0, 1, 2]])
def test_a_column_of_zeros_has_the_solution_zero(which):
    A, b = with_condition(1e2), sides()
    b[:, which] = 0
    found = run(A, b)
    assert found.converged
    assert not np.asarray(found.x)[:, which].any()
    np.testing.assert_allclose(found.x, np.linalg.solve(A, b), rtol=0, atol=1e-7)


def test_it_can_be_watched_step_by_step():
    seen = []
    found = run(with_condition(1e2), sides(), watch=lambda step, residual: seen.append((step, residual)))
    assert [step for step, _ in seen] == list(range(1, found.iterations + 1))
    assert seen[-1][1] == found.residual


def test_in_float32_a_residual_well_above_rounding_is_honest():
    A, b = with_condition(1e2).astype(np.float32), sides().astype(np.float32)
    found = run(A, b, tolerance=1e-5)
    assert found.converged
    assert found.x.dtype == np.float32
    true = np.linalg.norm(b - A.astype(np.float64) @ np.asarray(found.x), axis=0) / np.linalg.norm(b, axis=0)
    assert true.max() <= 2e-5


@pytest.mark.parametrize("A", [np.diag([0.0, *np.ones(N - 1)]), -np.eye(N), np.full((N, N), np.nan), np.zeros((N, N))])
def test_a_matrix_that_is_not_positive_definite_never_counts_as_solved(A):
    found = run(A, sides())
    assert not found.converged
    assert np.isfinite(found.x).all()
