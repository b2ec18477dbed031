"""Functions of a matrix by Lanczos, against its eigenpairs."""

import numpy as np
import pytest

from offtangent.linalg.krylov import lanczos


def problem(n: int, columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (Q * np.geomspace(1, 1e-3, n)) @ Q.T, rng.standard_normal((n, columns)) * [10.0**i for i in range(columns)]


def of_matrix(A: np.ndarray, f) -> np.ndarray:
    values, V = np.linalg.eigh(A)
    return (V * f(values)) @ V.T


@pytest.mark.parametrize(
    "f", [np.exp, lambda x: (1 - x) ** 50, lambda x: 1 / (x + 0.01)], ids=["exp", "power", "inverse"]
)
def test_a_function_of_the_matrix_is_applied_to_every_column(f):
    A, Y = problem(60, 3)
    *_, found = lanczos(lambda v: A @ v, Y, 59)
    np.testing.assert_allclose(found.apply(f), of_matrix(A, f) @ Y, rtol=1e-8, atol=1e-10 * np.abs(Y).max())


def test_polynomials_of_a_degree_below_the_number_of_products_are_exact():
    A, Y = problem(60, 1)
    *_, found = lanczos(lambda v: A @ v, Y, 5)
    np.testing.assert_allclose(found.apply(lambda x: x**4), A @ A @ A @ A @ Y, rtol=1e-10, atol=1e-12)
    off = found.apply(lambda x: x**6) - np.linalg.matrix_power(A, 6) @ Y
    assert np.linalg.norm(off) > 1e-6  # and others are not


def test_the_basis_is_orthonormal_and_makes_the_matrix_tridiagonal():
    A, Y = problem(40, 2)
    *_, found = lanczos(lambda v: A @ v, Y, 30)
    for column in range(2):
        Q = found.basis[:, :, column].T
        np.testing.assert_allclose(Q.T @ Q, np.eye(30), atol=1e-12)
        alpha, beta = found.tridiagonal(column)
        T = np.diag(alpha) + np.diag(beta[:-1], 1) + np.diag(beta[:-1], -1)
        np.testing.assert_allclose(Q.T @ A @ Q, T, atol=1e-12)


def test_a_column_within_a_small_invariant_space_and_one_of_zeros_end_early():
    A = np.diag([4.0, 1.0, 0.5, 0.25])
    Y = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]).T
    *_, found = lanczos(lambda v: A @ v, Y, 4)
    np.testing.assert_allclose(found.apply(np.sqrt), np.sqrt(A) @ Y, atol=1e-10)
    assert len(found.tridiagonal(0)[0]) == 2
