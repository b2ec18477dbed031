"""Estimates from a few products, against matrices whose spectra are known."""

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.linalg.stochastic import moments

N, DRAWS = 60, 400


def matrix(power):
    """Eigenvalues 1, 2^-power, 3^-power, …, in directions of chance."""
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((N, N)))
    return (Q * np.arange(1.0, N + 1) ** -power) @ Q.T


@pytest.mark.parametrize("power", [0.5, 1.5])
@pytest.mark.parametrize("what", ["trace", "square", "frobenius", "effective_rank"])
def test_estimates_are_off_by_their_standard_errors(power, what):
    """400 draws with 48 products each: the mean within 5 standard errors, the claimed spread within a fifth."""
    A = matrix(power)
    trace, square = np.trace(A), np.sum(A**2)
    truth = {"trace": trace, "square": square, "frobenius": square**0.5, "effective_rank": trace**2 / square}[what]
    keys = jax.random.split(jax.random.key(0), DRAWS)
    found = [getattr(moments(lambda v: A @ v, N, products=48, key=key), what) for key in keys]
    values, errors = np.array([(one.value, one.error) for one in found]).T
    spread = values.std(ddof=1)
    # Ratios and roots are biased by a part of their spread squared, which is far below five standard errors here.
    assert abs(values.mean() - truth) < 5 * spread / DRAWS**0.5 + spread**2 / truth
    # A standard deviation of 16 numbers is itself off by about 1/√30 each, and by 1/√(2·400) over all draws.
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(spread, rel=0.2)


def test_with_as_many_products_as_rows_nothing_is_left_to_chance():
    A = matrix(1.0)
    found = moments(lambda v: A @ v, N, products=3 * N, key=jax.random.key(0))
    assert found.trace.value == pytest.approx(np.trace(A), rel=1e-12)
    assert found.trace.error < 1e-12
    assert found.square.value == pytest.approx(np.sum(A**2), rel=1e-12)
    assert found.square.error < 1e-12


def test_the_basis_takes_what_is_of_low_rank_exactly():
    B = np.random.default_rng(0).standard_normal((N, 5))
    A = B @ B.T
    found = moments(lambda v: A @ v, N, products=24, key=jax.random.key(3))
    assert found.trace.value == pytest.approx(np.trace(A), rel=1e-10)
    assert found.frobenius.value == pytest.approx(np.linalg.norm(A), rel=1e-10)
    y = B[:, 0] / np.linalg.norm(B[:, 0])
    expected = y @ A @ y / np.linalg.norm(A)
    assert found.alignment(float(y @ A @ y)).value == pytest.approx(expected, rel=1e-10)


def test_the_matrix_zero_has_no_rank_and_no_alignment():
    found = moments(lambda v: 0 * v, 4, products=6, key=jax.random.key(0))
    assert (found.frobenius.value, found.effective_rank.value, found.alignment(0.0).value) == (0.0, 0.0, 0.0)


def test_too_few_products_are_refused():
    with pytest.raises(InputError, match="at least 6"):
        moments(lambda v: v, 4, products=5, key=jax.random.key(0))
