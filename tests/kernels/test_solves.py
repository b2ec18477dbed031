"""Solves, brackets and eigenpairs of Gram operators, by both methods, against mpmath and dense eigh."""

import functools

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp

from foreign import Linear
from offtangent._errors import InputError
from offtangent.kernels import Gram, gaussian, relu_hidden, solves
from offtangent.kernels.closed_forms import arc_cosine, relu_output
from offtangent.kernels.ridges import regularised
from offtangent.linalg.brackets import EPS

N, D = 30, 4  # one size for all: compiled once
METHODS = ["cholesky", "conjugate gradients"]
Y = np.random.default_rng(1).standard_normal(N)


@pytest.fixture(autouse=True)
def short_series(monkeypatch):
    """Fewer lengths of the head to try and to compile: 1, 2, …, 32."""
    monkeypatch.setattr(solves, "TERMS", 33)


@pytest.fixture
def large(monkeypatch):
    """As if the matrix were too large to be stored."""
    monkeypatch.setitem(solves.DIRECT_ROWS, "cpu", 0)
    monkeypatch.setattr(solves, "DENSE_ROWS", 0)


def rows(angle=None):
    """Random rows of different lengths; with an angle, the first five pairs are that far apart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    if angle is not None:
        unit = X[:10:2] / np.linalg.norm(X[:10:2], axis=1, keepdims=True)
        across = X[1:10:2] - (X[1:10:2] * unit).sum(axis=1, keepdims=True) * unit
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        X[1:10:2] = 1.5 * (np.cos(angle) * unit + np.sin(angle) * across)
    return X


@functools.cache
def true_matrix(angle=None):
    """H∞ at 40 digits, exact for the floats that X holds."""
    with mpmath.workdps(40):
        X = [[mpmath.mpf(entry) for entry in row] for row in rows(angle).tolist()]
        lengths = [mpmath.sqrt(mpmath.fdot(x, x)) for x in X]
        H = mpmath.matrix(N, N)
        for i in range(N):
            for j in range(i, N):
                inner = mpmath.fdot(X[i], X[j])
                turn = mpmath.acos(inner / lengths[i] / lengths[j]) if i != j else 0
                H[i, j] = H[j, i] = inner * (mpmath.pi - turn) / (2 * mpmath.pi)
        return H


def truth(angle=None, ridge=0.0):
    with mpmath.workdps(40):
        y = mpmath.matrix(Y.tolist())
        return (y.T * mpmath.cholesky_solve(true_matrix(angle) + mpmath.mpf(ridge) * mpmath.eye(N), y))[0]


def holds(found, expected):
    return mpmath.mpf(found.lower) <= expected <= mpmath.mpf(found.upper)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_the_bracket_is_certified_and_holds_the_truth(method, ridge):
    found = Gram(relu_hidden, rows(), ridge).inverse_quadratic(Y, method=method)
    assert holds(found, truth(ridge=ridge))
    assert found.certified
    assert found.method == method
    assert found.width <= 1e-3
    assert 0 < found.floor <= np.linalg.eigvalsh(Gram(relu_hidden, rows(), ridge).dense())[0]
    if method == "cholesky":
        assert "Cholesky factor of A − σI" in found.rests_on
    else:
        assert "power series" in found.rests_on
        assert ("the ridge 0.5" in found.rests_on) == (ridge > 0)
        assert found.iterations > 0


@pytest.mark.parametrize("angle", [1e-3, 1e-4, 1e-5, 1e-6])
def test_nearly_parallel_inputs_are_bracketed_by_cholesky(angle):
    """λ_min is about θ/2π of the diagonal: conditions from 1e5 to 1e8. The kernel's rounding is (δ/θ) of that."""
    H = Gram(relu_hidden, rows(angle))
    found = H.inverse_quadratic(Y)
    assert np.linalg.cond(H.dense()) > 10 / angle
    assert holds(found, truth(angle))
    assert found.certified
    assert found.width <= 8 * (2 * D + 8) * EPS / angle**2 * 100


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4, 1e-6])
def test_nearly_parallel_inputs_by_iteration_are_bracketed_or_given_up_with_numbers(angle):
    """In float32 an angle below √ε = 3e-4 cannot be told from 0."""
    H = Gram(relu_hidden, rows(angle))
    if angle > 3e-4:
        found = H.inverse_quadratic(Y, method="conjugate gradients")
        assert holds(found, truth(angle))
        assert found.certified or (angle == 1e-3 and "an estimate of λ_min" in found.rests_on)
        return
    with pytest.raises(InputError, match=r"30 inputs.*iterations.*residual.*λ_min.*λ_max.*regularised"):
        H.inverse_quadratic(Y, method="conjugate gradients")


def test_without_a_series_or_a_ridge_the_bracket_is_conditional_and_names_its_estimate():
    H = Gram(gaussian(2.0), rows())
    found = H.inverse_quadratic(Y, method="conjugate gradients")
    assert not found.certified
    assert "an estimate of λ_min" in found.rests_on
    assert "Ritz value" in found.rests_on
    assert found.lower <= Y @ np.linalg.solve(H.dense(), Y) <= found.upper
    assert 0 < found.floor <= np.linalg.eigvalsh(H.dense())[0]


def test_a_ridge_alone_certifies_it_too():
    H = Gram(gaussian(2.0), rows(), 0.1)
    found = H.inverse_quadratic(Y, method="conjugate gradients")
    assert (found.certified, found.floor) == (True, 0.1)
    assert "the ridge 0.1" in found.rests_on
    assert found.lower <= Y @ np.linalg.solve(H.dense(), Y) <= found.upper


def test_of_rows_of_zeros_the_series_says_nothing():
    """Two of them make the step's kernel singular: all that is left of λ_min is the ridge."""
    X = rows()
    X[:2] = 0.0
    H = Gram(arc_cosine(0), X, 1e-3)
    assert solves.proven_floor(H, None).value <= np.linalg.eigvalsh(H.dense())[0] * (1 + 1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_foreign_kernel_is_never_certified_for_its_rounding_is_unknown(method):
    found = Gram(Linear(), rows(), 0.5).inverse_quadratic(Y, method=method)
    assert not found.certified
    assert "if linear errs by no more than an inner product" in found.rests_on
    assert found.lower <= Y @ np.linalg.solve(rows() @ rows().T + 0.5 * np.eye(N), Y) <= found.upper


@pytest.mark.parametrize("method", METHODS)
def test_a_singular_system_says_so_with_numbers_and_offers_the_curve(method):
    """More than d antiparallel pairs in d dimensions (V-B10)."""
    X = rows()
    X[1::2] = -X[::2]
    with pytest.raises(InputError, match=r"(30 × 30 matrix is singular|for these 30 inputs).*\d.*regularised"):
        Gram(relu_hidden, X).inverse_quadratic(Y, method=method)


def test_the_width_asked_for_is_reached_by_more_corrections():
    H = Gram(relu_hidden, rows())
    wide, narrow = (H.inverse_quadratic(Y, width=w, method="conjugate gradients") for w in (1e-1, 1e-8))
    assert narrow.width <= 1e-8
    assert narrow.iterations > wide.iterations
    assert narrow.residual < wide.residual
    assert holds(narrow, truth())
    assert holds(wide, truth())


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("method", METHODS)
def test_a_solve_is_the_dense_solve_and_says_how_it_was_found(method, columns):
    b = np.random.default_rng(2).standard_normal((N, columns) if columns else N)
    H = Gram(relu_hidden, rows())
    found = H.solve(b, method=method, tolerance=1e-9)
    assert (found.method, found.converged) == (method, True)
    assert (found.iterations > 0) == (method == "conjugate gradients")
    assert found.value.shape == b.shape
    true = (np.linalg.norm(b - H.dense() @ found.value, axis=0) / np.linalg.norm(b, axis=0)).max()
    assert found.residual <= 1e-9
    np.testing.assert_allclose(found.residual, true, rtol=1e-3, atol=1e-14)
    np.testing.assert_allclose(found.value, np.linalg.solve(H.dense(), b), rtol=0, atol=1e-6)


def test_a_solve_that_cannot_reach_its_tolerance_says_so():
    found = Gram(relu_hidden, rows(1e-5)).solve(Y, method="conjugate gradients")
    assert not found.converged
    assert found.residual > 1e-6
    true = np.linalg.norm(Y - Gram(relu_hidden, rows(1e-5)).dense() @ found.value) / np.linalg.norm(Y)
    np.testing.assert_allclose(found.residual, true, rtol=1e-6)


def test_the_method_is_chosen_by_size_and_memory_and_can_be_overridden(monkeypatch):
    H = Gram(relu_hidden, rows())
    assert H.solve(Y).method == "cholesky"
    with monkeypatch.context() as patch:
        patch.setitem(solves.DIRECT_ROWS, "cpu", N - 1)
        assert H.solve(Y).method == "conjugate gradients"
        assert H.solve(Y, method="cholesky").method == "cholesky"
    monkeypatch.setattr(solves, "memory_to_spare", lambda *_: 24 * N**2 - 1)
    assert H.solve(Y).method == "conjugate gradients"
    assert H.inverse_quadratic(Y).method == "conjugate gradients"


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("which", ["largest", "smallest"])
@pytest.mark.usefixtures("large")
def test_eigenpairs_by_iteration_are_those_of_dense_eigh_with_honest_residuals(which, k):
    H = Gram(relu_hidden, rows())
    found, dense = H.eigh(k, which=which), np.linalg.eigvalsh(H.dense())
    expected = dense[::-1][:k] if which == "largest" else dense[:k][::-1]
    true = np.linalg.norm(H.dense() @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, true, rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(found.values, expected, rtol=1e-4 if which == "smallest" else 1e-8)
    assert all(np.abs(dense - value).min() <= residual for value, residual in zip(found.values, true, strict=True))


@pytest.mark.usefixtures("large")
def test_the_largest_eigenvalue_is_found_where_its_vector_is_orthogonal_to_ones():
    """Pairs ±x: K is even or odd in every eigenvector, and the odd ones lead."""
    X = rows() * 0.3 + np.eye(D)[0]
    X[1::2] = -X[::2]
    H = Gram(relu_hidden, X, 1e-3)
    values, vectors = np.linalg.eigh(H.dense())
    assert abs(vectors[:, -1].sum()) < 1e-10
    np.testing.assert_allclose(H.eigh(1).values, values[-1:], rtol=1e-8)


def test_the_curve_over_ridges_is_the_same_by_iteration(monkeypatch):
    ridges = np.array([0.1, 1.0])
    direct = regularised(relu_hidden, rows(), Y, ridges)
    monkeypatch.setitem(solves.DIRECT_ROWS, "cpu", 0)
    iterated = regularised(relu_hidden, rows(), Y, ridges)
    assert (iterated.lower <= direct.upper).all()
    assert (direct.lower <= iterated.upper).all()
    np.testing.assert_allclose(iterated.values, direct.values, rtol=1e-3)


def test_long_work_can_be_watched():
    told = []
    Gram(relu_hidden, rows()).inverse_quadratic(Y, method="conjugate gradients", watch=told.append)
    for part in (
        "tiles",
        "preconditioner",
        "bounding λ_min",
        "conjugate gradients: step 1",
        "checking in float64: 100%",
    ):
        assert any(part in text for text in told)


@pytest.mark.parametrize("method", METHODS)
def test_whole_numbers_and_jax_arrays_will_do(method):
    H, y = Gram(relu_hidden, rows()), np.arange(N)
    expected = y @ np.linalg.solve(H.dense(), y)
    for given in (y, jnp.asarray(y, jnp.float32)):
        found = H.inverse_quadratic(given, method=method)
        assert found.lower <= expected <= found.upper


EXACT = {  # k(x, x') from lengths r, s, the cosine c and the angle t, in mpmath
    "relu_hidden": (relu_hidden, lambda r, s, c, t: r * s * c * (mp.pi - t) / (2 * mp.pi)),
    "relu_output": (relu_output, lambda r, s, c, t: r * s * (mp.sin(t) + (mp.pi - t) * c) / (2 * mp.pi)),
    "gaussian": (gaussian(), lambda r, s, c, _: mp.exp(-(r * r + s * s - 2 * r * s * c) / 2)),
}


def truth_of(formula, X, y):
    with mp.workdps(40):
        rows_ = [[mp.mpf(float(v)) for v in row] for row in X]
        lengths = [mp.sqrt(mp.fdot(row, row)) for row in rows_]
        n = len(X)
        K = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                c = mp.mpf(1) if i == j else mp.fdot(rows_[i], rows_[j]) / (lengths[i] * lengths[j])
                K[i, j] = formula(lengths[i], lengths[j], c, mp.acos(min(c, mp.mpf(1))))
        labels = mp.matrix([float(v) for v in y])
        return (labels.T * mp.lu_solve(K, labels))[0]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", EXACT)
def test_brackets_hold_for_rows_as_close_as_you_like(name, method):
    """16 sets of 10 rows, the last 1e-2 to 1e-8 from the first, certified or not; refused when hopeless."""
    kernel, formula = EXACT[name]
    found = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((10, 4)), rng.choice([-1.0, 1.0], 10)
        X[-1] = X[0] + 10 ** -(2 + 6 * seed / 15) * rng.standard_normal(4)
        try:
            one = Gram(kernel, X).inverse_quadratic(y, method=method)
        except InputError:  # singular to rounding
            continue
        expected = truth_of(formula, X, y)
        assert one.lower <= expected <= one.upper
        if method == "cholesky" and name != "gaussian" and seed <= 10:  # conditions up to 10¹²
            assert abs(one.value / expected - 1) < 1e-3
        found += 1
    assert found >= 8


@pytest.mark.parametrize("method", METHODS)
def test_many_columns_are_bracketed_each_as_alone(method):
    H, columns = Gram(relu_hidden, rows()), np.random.default_rng(5).standard_normal((N, 4)) * [1e-3, 1.0, 1.0, 1e3]
    found = H.inverse_quadratics(columns, width=1e-6, method=method)
    inverse = np.linalg.inv(H.dense())
    for y, one in zip(columns.T, found, strict=True):
        assert one.lower <= y @ inverse @ y <= one.upper
        assert one.certified
        assert one.width <= 1e-6


def test_columns_that_are_none_are_refused():
    with pytest.raises((InputError, TypeError), match=r"expected \(30, c\)|Type-check"):
        Gram(relu_hidden, rows()).inverse_quadratics(Y)
    with pytest.raises(InputError, match="y is zero"):
        Gram(relu_hidden, rows()).inverse_quadratics(np.stack([Y, 0 * Y], axis=1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ridge", [1.0, 1e20])
def test_inputs_of_zeros_and_a_ridge_without_end_are_no_problem(method, ridge):
    found = Gram(relu_hidden, np.zeros((N, D)), ridge).inverse_quadratic(Y, method=method)
    np.testing.assert_allclose(found.value, Y @ Y / ridge, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_inputs_too_small_or_large_for_float32_are_solved_in_float64_and_refused_by_iteration(scale):
    H = Gram(relu_hidden, scale * rows())
    found = H.inverse_quadratic(Y)
    np.testing.assert_allclose(found.value * scale**2, float(truth()), rtol=1e-9)
    assert found.certified
    with pytest.raises(InputError, match=r"float32 over- or underflow.*'cholesky'"):
        H.inverse_quadratic(Y, method="conjugate gradients")
    with pytest.raises(InputError, match=r"float32 over- or underflows.*Scale X"):
        H @ np.ones(N, np.float32)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(N - 1), r"shape \(29,\): expected \(30,\)"),
        (np.where(np.arange(N) == 3, np.nan, 1.0), "1 entries that are NaN"),
        (np.zeros(N), "y is zero"),
        (np.ones((N, 2)), "one vector"),
        (np.full(N, 1e-170), "Scale it"),
        (np.full(N, 1e170), "Scale it"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_labels_it_cannot_work_with_are_refused(y, message, method):
    with pytest.raises((InputError, TypeError), match=f"{message}|Type-check"):
        Gram(relu_hidden, rows()).inverse_quadratic(y, method=method)


@pytest.mark.parametrize(
    "b", [np.ones(N + 1), np.full(N, np.inf), np.ones((N, 0)), np.ones((1, N)), np.ones((N, 1, 1))]
)
def test_right_sides_it_cannot_work_with_are_refused(b):
    with pytest.raises(InputError, match=r"The right side has"):
        Gram(relu_hidden, rows()).solve(b)


def test_an_unknown_method_or_end_of_the_spectrum_is_refused_with_the_known_ones():
    H = Gram(relu_hidden, rows())
    for call in (H.solve, H.inverse_quadratic):
        with pytest.raises((InputError, TypeError), match=r"'cholesky', 'conjugate gradients'|Type-check"):
            call(Y, method="magic")
    with pytest.raises((InputError, TypeError), match=r"'largest' or 'smallest'|Type-check"):
        H.eigh(2, which="middle")
    with pytest.raises(InputError, match="between 1 and 30"):
        H.eigh(31)
