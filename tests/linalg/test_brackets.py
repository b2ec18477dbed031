"""Brackets of yᵀA⁻¹y and floors of λ_min against mpmath, at 50 digits."""

import mpmath
import numpy as np
import pytest
import scipy.linalg

from offtangent._errors import InputError
from offtangent.linalg.brackets import Floor, bracket, cholesky_floor, factorise, inverse_quadratic, matrix_product

EPS = float(np.finfo(np.float64).eps)


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def truth(A, y):
    y = mpmath.matrix(y.tolist())
    return (y.T * mpmath.cholesky_solve(mpmath.matrix(A.tolist()), y))[0]


def smallest(A):
    return min(mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True))


def holds(found, expected):
    return mpmath.mpf(found.lower) <= expected <= mpmath.mpf(found.upper)


def case(number):
    """A random matrix of 2 to 12 rows with a condition up to 1e10, and y in general or along an extreme eigenvector."""
    rng = np.random.default_rng(number)
    n, condition = int(rng.integers(2, 13)), 10 ** rng.uniform(0, 10)
    values = condition ** -np.concatenate(([0, 1], rng.uniform(0, 1, n - 2))) * 10 ** rng.uniform(-6, 6)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = Q * values @ Q.T
    general = rng.standard_normal(n)
    vectors = (general, np.sign(general), Q[:, 0], Q[:, 1], Q[:, 0] + 1e-8 * Q[:, 1])
    return (A + A.T) / 2, vectors[number % 5], condition


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_in_200_random_cases_the_bracket_is_certified_narrow_and_holds_the_truth(start):
    """Width: xᵀ|E|x ≤ (n+1)ε √n λ_max ‖x‖² and ‖x‖² ≤ yᵀA⁻¹y/λ_min, on both sides, and 2ⁿᵈ for smaller terms."""
    for number in range(start, start + 20):
        A, y, condition = case(number)
        found = inverse_quadratic(A, y)
        assert holds(found, truth(A, y)), number
        assert found.certified
        assert found.lower <= found.value <= found.upper
        assert found.width <= 4 * (len(A) + 4) * np.sqrt(len(A)) * EPS * condition, number


@pytest.mark.parametrize("number", range(0, 200, 8))
def test_the_floor_lies_below_the_smallest_eigenvalue_and_not_far(number):
    """Nine tenths, less Rump's (n+2)ε tr A, which is a tenth of λ_min at a condition of 1e12 or so."""
    A, _, _ = case(number)
    found = cholesky_floor(A)
    assert found.certified
    assert mpmath.mpf(found.value) <= smallest(A)
    assert found.value >= 0.4 * float(smallest(A))


@pytest.mark.parametrize("n", [3, 6, 8, 10, 11, 12])
def test_hilbert_matrices_are_bracketed_or_nothing_is_claimed_of_them(n):
    """Conditions from 5e2 to 1e16."""
    A = scipy.linalg.hilbert(n)
    floor = cholesky_floor(A) if n < 12 else None
    if floor is not None:
        assert mpmath.mpf(floor.value) <= smallest(A)
        found = inverse_quadratic(A, np.ones(n))
        assert found.certified == (found.floor > 0)
        assert holds(found, truth(A, np.ones(n)))
        assert found.certified or found.upper == np.inf
        assert found.certified or "within the rounding" in found.rests_on
    else:
        with pytest.raises(InputError, match=r"condition number is \de\+1\d.*ridge=1e-6.*regularised"):
            inverse_quadratic(A, np.ones(n))


@pytest.mark.parametrize("too_large", [1.2, 10.0])
def test_a_floor_that_is_wrong_would_be_noticed_here(too_large):
    """With x = 0 the upper bound is ‖y‖²/floor: it misses the truth along the last eigenvector if the floor is high."""
    A, _, _ = case(0)
    values, vectors = np.linalg.eigh(A)
    y, zero = vectors[:, 0], np.zeros(len(A))
    right, wrong = (
        bracket(y, zero, zero, zero, Floor(float(share * values[0]), True, ""), method="") for share in (0.9, too_large)
    )
    assert holds(right, truth(A, y))
    assert not holds(wrong, truth(A, y))


@pytest.mark.parametrize("number", range(0, 100, 10))
@pytest.mark.parametrize("spoilt", [0.0, 1e-6, 1e-2, 1.0])
def test_any_approximate_solution_gives_a_bracket_that_holds(number, spoilt):
    A, y, _ = case(number)
    rng = np.random.default_rng(1)
    x = np.linalg.solve(A, y) * (1 + spoilt * rng.standard_normal(len(A)))
    found = bracket(y, x, *matrix_product(A, x), cholesky_floor(A), method="guessed", iterations=3)
    assert holds(found, truth(A, y))
    assert (found.method, found.iterations) == ("guessed", 3)
    np.testing.assert_allclose(found.residual, np.linalg.norm(y - A @ x) / np.linalg.norm(y), rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("number", range(0, 100, 10))
def test_an_error_of_the_product_is_covered_when_it_is_declared(number):
    A, y, _ = case(number)
    x = np.linalg.solve(A, y)
    off = 1e-3 * np.abs(y).max() * np.random.default_rng(1).uniform(-1, 1, len(A))
    product, rounding = matrix_product(A, x)
    floor, expected = cholesky_floor(A), truth(A, y)
    assert holds(bracket(y, x, product + off, rounding + np.abs(off), floor, method=""), expected)


def test_a_residual_that_only_seems_to_vanish_is_not_believed():
    """Ax is said to be y itself, give or take y: all of yᵀA⁻¹y is in the residual then."""
    A, y, _ = case(0)
    found = bracket(y, np.zeros(len(y)), y, np.abs(y), cholesky_floor(A), method="")
    assert found.residual == 0
    assert holds(found, truth(A, y))


@pytest.mark.parametrize("number", range(0, 100, 10))
def test_a_product_errs_by_no_more_than_its_bound(number):
    A, y, _ = case(number)
    product, bound = matrix_product(A, y)
    exact = mpmath.matrix(A.tolist()) * mpmath.matrix(y.tolist())
    assert all(abs(mpmath.mpf(p) - e) <= b for p, b, e in zip(product, bound, exact, strict=True))


@pytest.mark.parametrize("A", [np.ones((3, 3)), np.diag([1.0, 0.0]), np.diag([1.0, -1.0]), np.zeros((2, 2))])
def test_a_singular_or_indefinite_matrix_is_refused_with_a_remedy(A):
    with pytest.raises(InputError, match=rf"The {len(A)} × {len(A)} matrix is singular.*ridge=1e-6.*regularised"):
        inverse_quadratic(A, np.ones(len(A)))


def test_without_a_floor_there_is_no_upper_bound_and_nothing_is_certified():
    found = bracket(np.ones(2), np.zeros(2), np.zeros(2), np.zeros(2), Floor(0.0, True, "nothing"), method="")
    assert (found.upper, found.certified) == (np.inf, False)
    assert found.width == np.inf


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(2), r"shape \(2,\): expected \(3,\)"),
        (np.array([1.0, np.nan, 1.0]), "1 entries that are NaN"),
        (np.full(3, 1e-200), "Scale it"),
        (np.full(3, 1e200), "Scale it"),
    ],
)
def test_a_vector_it_cannot_work_with_is_refused(y, message):
    with pytest.raises((InputError, TypeError), match=f"{message}|Type-check"):
        inverse_quadratic(np.eye(3), y)


@pytest.mark.parametrize("A", [np.array([[1.0, 0.5], [0.4, 1.0]]), np.array([[1.0, np.nan], [np.nan, 1.0]])])
def test_a_matrix_that_is_not_symmetric_is_refused(A):
    with pytest.raises(InputError, match="not symmetric"):
        inverse_quadratic(A, np.ones(2))


@pytest.fixture
def as_scipy_1_18_answers(monkeypatch):
    """cho_factor with rows one after another and a 0-dimensional array for its bool, under any SciPy."""
    present = scipy.linalg.cho_factor  # noqa: TID251

    def answer(*args, **options):
        factor, lower = present(*args, **options)
        return np.ascontiguousarray(factor), np.array(bool(lower))

    monkeypatch.setattr(scipy.linalg, "cho_factor", answer)


@pytest.mark.usefixtures("as_scipy_1_18_answers")
def test_a_factor_is_a_matrix_in_fortran_order_and_a_bool_under_every_scipy():
    factor, lower = factorise(np.array([[4.0, 2.0], [2.0, 5.0]]))
    assert lower is True
    assert factor.flags.f_contiguous
    np.testing.assert_allclose(np.tril(factor), [[2.0, 0.0], [1.0, 2.0]])


@pytest.mark.usefixtures("as_scipy_1_18_answers")
def test_a_bracket_holds_under_every_scipy():
    A, y, _ = case(10)
    assert holds(inverse_quadratic(A, y), truth(A, y))
    assert cholesky_floor(A).certified
