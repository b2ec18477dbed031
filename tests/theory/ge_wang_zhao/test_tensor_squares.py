"""σ_min of tensor squares against the explicit d² × n matrix, and what cannot be told."""

import jax
import mpmath
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.linalg import factor as factor_module
from offtangent.theory.ge_wang_zhao import tensor_squares as module
from offtangent.theory.ge_wang_zhao.tensor_squares import leave_one_out_distances, smallest_singular

RNG = np.random.default_rng(0)


def explicit(X):
    return np.einsum("ni,nj->nij", X, X).reshape(len(X), -1).T


@pytest.mark.parametrize(("n", "dim"), [(2, 2), (9, 4), (40, 12)])
def test_it_is_the_smallest_singular_value_of_the_tensors(n, dim):
    X = RNG.standard_normal((n, dim))
    found, truth = smallest_singular(X), np.linalg.svd(explicit(X), compute_uv=False)
    assert found.resolved
    assert found.certified
    assert 0.3 * truth[-1] < found.lower <= truth[-1] <= found.upper
    assert found.upper == pytest.approx(truth[-1], rel=1e-6)
    assert found.largest == pytest.approx(truth[0], rel=1e-12)
    assert found.condition == pytest.approx((truth[-1] / truth[0]) ** 2, rel=1e-6)


def test_leave_one_out_distances_are_those_of_least_squares_and_lemma_8_holds():
    X = RNG.standard_normal((12, 5))
    columns = explicit(X)
    for i, distance in enumerate(leave_one_out_distances(X)):
        others = np.delete(columns, i, axis=1)
        left = columns[:, i] - others @ np.linalg.lstsq(others, columns[:, i], rcond=None)[0]
        assert distance == pytest.approx(np.linalg.norm(left), rel=1e-9)
    least, found = leave_one_out_distances(X).min(), smallest_singular(X)
    assert least / 12**0.5 <= found.upper
    assert found.lower <= least


def test_more_samples_than_quadratic_forms_have_none():
    X = RNG.standard_normal((8, 3))
    found = smallest_singular(X)
    assert (found.upper, found.lower) == (0.0, 0.0)
    assert "8 samples, and only 6 independent" in found.rests_on
    assert not leave_one_out_distances(X).any()


def routes(monkeypatch, route):
    """Small problems by the way of large ones."""
    if route != "stored":
        monkeypatch.setattr(module, "DENSE", 5)
        monkeypatch.setattr(factor_module, "factor_rows", lambda: 64)
        monkeypatch.setattr(module, "factor_rows", lambda: 64)
    if route == "some rows":
        monkeypatch.setattr(module, "FACTORED", {jax.default_backend(): 10})
        monkeypatch.setattr(module, "SOME", 86)  # 64 + 22, as 150 is 64 + 64 + 22: the same programs
        monkeypatch.setattr(module, "RANK", 30)


ROUTES = ["stored", "factorised", "some rows"]


@pytest.mark.parametrize("route", ROUTES)
def test_samples_a_small_distance_apart_have_the_singular_value_of_it(monkeypatch, route):
    """σ² is far below the rounding of G, σ is not: the upper bound has its digits, and there is no lower one."""
    routes(monkeypatch, route)
    X = RNG.standard_normal((150, 20))
    X[101] = X[40] + 1e-9 * RNG.standard_normal(20)
    found, truth = smallest_singular(X), np.linalg.svd(explicit(X), compute_uv=False)
    assert 1e-9 < truth[-1] < 1e-7
    assert truth[-1] * (1 - 1e-4) <= found.upper <= 1.6 * truth[-1]
    assert found.upper < found.floor
    assert (found.resolved, found.certified, found.lower) == (False, False, 0.0)
    assert "below the floating-point floor" in found.rests_on


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("size", [1.0, 1e50, 1e-50])
def test_near_duplicates_above_the_floor_are_bracketed_at_any_scale(monkeypatch, route, size):
    routes(monkeypatch, route)
    X = RNG.standard_normal((150, 20))
    X[101] = X[40] + 1e-3 * RNG.standard_normal(20)
    found, truth = smallest_singular(size * X), np.linalg.svd(explicit(X), compute_uv=False)
    assert truth[-1] <= found.upper / size**2 * (1 + 1e-12)
    assert found.upper / size**2 <= (1.6 if route == "some rows" else 1 + 1e-5) * truth[-1]
    assert found.resolved
    assert found.largest / size**2 == pytest.approx(truth[0], rel=1e-5)
    if route == "some rows":
        assert found.lower == 0
        assert "86 of 150 rows" in found.method
    else:
        assert 0.9 * truth[-1] < found.lower / size**2 <= truth[-1]


@pytest.mark.parametrize("route", ["stored", "factorised"])
def test_a_lower_bound_is_not_above_the_truth(monkeypatch, route):
    """Samples on the verge of dependence, where rounding decides: the truth is known to 40 digits."""
    routes(monkeypatch, route)
    rng = np.random.default_rng(1)
    base = rng.standard_normal((12, 3))
    for distance in (1e-2, 1e-4, 1e-6, 1e-8):
        X = np.concatenate([base[:5], base[:1] + distance * base[5:6]])
        found = smallest_singular(X)
        with mpmath.workdps(60):
            G = mpmath.matrix([[mpmath.fdot(map(float, a), map(float, b)) ** 2 for b in X] for a in X])
            truth = float(mpmath.sqrt(min(mpmath.eigsy(G, eigvals_only=True))))
        assert found.lower <= truth <= found.upper
        assert found.certified or distance < 1e-5
        assert not found.certified or distance > 1e-7


@pytest.mark.parametrize("factor", [3.0, -0.5])
def test_multiples_are_named_whatever_their_sign(factor):
    X = RNG.standard_normal((6, 4))
    X[4] = factor * X[1]
    with pytest.raises(InputError, match="Rows 1 and 4 of X"):
        smallest_singular(X)


def test_pixels_that_are_always_zero_do_not_count():
    X = np.concatenate([RNG.standard_normal((8, 3)), np.zeros((8, 5))], axis=1)
    found = smallest_singular(X)
    assert (found.upper, found.lower) == (0.0, 0.0)
    assert "only 6 independent" in found.rests_on


def test_a_long_computation_says_where_it_is(monkeypatch):
    routes(monkeypatch, "factorised")
    heard = []
    smallest_singular(RNG.standard_normal((150, 20)), watch=heard.append)
    assert list(dict.fromkeys(text.split(":")[0] for text in heard)) == [
        "power method", "factorising G", "inverse Lanczos", "factorising G − 0.99λI",
    ]  # fmt: skip


def test_few_rows_give_a_bound_that_fewer_do_not_undercut(monkeypatch):
    """Cauchy: the more rows an eigenvector may live on, the lower."""
    routes(monkeypatch, "some rows")
    X = RNG.standard_normal((150, 20))
    found = []
    for some in (64, 86, 150):
        monkeypatch.setattr(module, "SOME", some)
        found.append(smallest_singular(X).upper)
    truth = np.linalg.svd(explicit(X), compute_uv=False)[-1]
    assert found[0] > found[1] > found[2] >= truth
    assert found[2] == pytest.approx(truth, rel=1e-5)
