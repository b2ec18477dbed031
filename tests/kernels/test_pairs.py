"""Pairs of inputs against mpmath: the angle, its supplement, and rows joined end to end, to rounding at every angle."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offtangent.kernels.pairs import Pair, polar

EPS = np.finfo(np.float64).eps
SMALL = [1e-150, 1e-20, 1e-14, 3e-9, 1e-6, 1e-3, 0.1, 0.9]


def pair(minus, plus, r=1.0, s=1.0, dtype=np.float64):
    return Pair(*(np.atleast_2d(np.asarray(part, dtype)) for part in (r, s, minus, plus)))


def exact_angles(minus, plus):
    """θ and π − θ from one end's distance, the smaller, with 50 digits."""
    with mp.workdps(200):
        small = 2 * mp.asin(mp.sqrt(mp.mpf(float(min(minus, plus))) / 2))
        both = (small, mp.pi - small)
        return both if minus <= plus else both[::-1]


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("swap", [False, True])
def test_both_angles_are_accurate_relative_to_themselves(small, swap):
    ends = (2 - small, small) if swap else (small, 2 - small)
    for found, truth in zip(pair(*ends).angles(np), exact_angles(*ends), strict=True):
        assert abs(float(found.item() / truth) - 1) <= 4 * EPS


def test_in_float32_both_angles_are_accurate_to_three_ulp():
    u = np.concatenate([np.geomspace(1e-37, 1, 20_000), np.linspace(0, 1, 20_000)]).astype(np.float32)
    wide = u.astype(np.float64)
    small = 2 * np.arcsin(np.sqrt(wide / 2))
    angles = jax.jit(lambda minus, plus: Pair(1, 1, minus, plus).angles(jnp))
    acute, obtuse = angles(u, 2 - u), angles(2 - u, u)
    for found, truth in ((acute[0], small), (obtuse[1], small), (acute[1], np.pi - small), (obtuse[0], np.pi - small)):
        assert found.dtype == np.float32
        assert (abs(np.asarray(found) - truth) <= 3 * np.spacing(truth.astype(np.float32))).all()


def test_the_angles_add_up_to_pi_and_meet_at_the_right_angle():
    u = np.linspace(0, 2, 1001)
    first, second = Pair(1, 1, u, 2 - u).angles(np)
    np.testing.assert_allclose(first + second, np.pi, rtol=2 * EPS)
    assert first[500] == second[500] == np.pi / 2


def exact_pair(x, z):
    """1 − cos, 1 + cos and the lengths of two rows, from their float64 coordinates, with 400 digits."""
    with mp.workdps(400):
        x, z = ([mp.mpf(float(c)) for c in row] for row in (x, z))
        r, s = (mp.sqrt(mp.fsum(c * c for c in row)) for row in (x, z))
        cosine = mp.fsum(a * b for a, b in zip(x, z, strict=True)) / (r * s)
        return r, s, 1 - cosine, 1 + cosine


@given(st.integers(0, 2**32 - 1), st.sampled_from(SMALL), st.sampled_from([1, -1]))
def test_joining_rows_keeps_every_digit(seed, small, sign):
    """Two parts that are each nearly parallel or opposite, with lengths over twelve orders of magnitude."""
    rng = np.random.default_rng(seed)
    r1, r2, s1, s2 = 10.0 ** rng.uniform(-6, 6, 4)
    near = pair(*((small, 2 - small) if sign > 0 else (2 - small, small)), r1, s1)
    found = near.joined(pair(0.0, 2.0, r2, s2), np)
    with mp.workdps(400):
        r1, r2, s1, s2, small = (mp.mpf(float(v)) for v in (r1, r2, s1, s2, small))
        r, s = mp.sqrt(r1**2 + r2**2), mp.sqrt(s1**2 + s2**2)
        cosine = (sign * (1 - small) * r1 * s1 + r2 * s2) / (r * s)
        truth = (r, s, 1 - cosine, 1 + cosine)
        # r₁s₂ − r₂s₁ is what the given numbers leave of it
        loss = 1 + float((r1 * s2 + r2 * s1) / max(abs(r1 * s2 - r2 * s1), mp.mpf(10) ** -300))
        for part, exact in zip(found, truth, strict=True):
            assert abs(float(part.item() / exact) - 1) <= 12 * EPS * min(loss, 1e6)


def test_a_constant_coordinate_is_one_more_column():
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 4))
    r, s, minus, plus = map(float, exact_pair(x, z))
    found = pair(minus, plus, r, s).scaled(3.0).with_constant(0.7, np)
    truth = exact_pair(np.append(3 * x, 0.7), np.append(3 * z, 0.7))
    np.testing.assert_allclose([part.item() for part in found], [float(part) for part in truth], rtol=8 * EPS)


@pytest.mark.parametrize("xp", [np, jnp])
def test_a_zero_row_has_cosine_zero_until_a_constant_gives_it_a_direction(xp):
    zero = Pair(*(xp.asarray([[value]]) for value in (0.0, 0.0, 1.0, 1.0)))

    def both(zero):
        return zero.joined(zero, xp), zero.with_constant(2.0, xp)

    twice, moved = (jax.jit(both) if xp is jnp else both)(zero)
    assert [part.item() for part in twice] == [0, 0, 1, 1]
    np.testing.assert_allclose([part.item() for part in moved], [2, 2, 0, 2], atol=1e-7)


def test_the_squared_distance_does_not_cancel():
    x = np.array([1.0, 2.0, 3.0])
    z = x + 1e-9 * np.array([1.0, -1.0, 0.5])
    r, s, minus, plus = map(float, exact_pair(x, z))
    found = pair(minus, plus, r, s).squared_distance().item()
    np.testing.assert_allclose(found, ((x - z) ** 2).sum(), rtol=1e-6)  # r − s has lost those digits before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_and_lengths_survive_tiny_huge_and_zero_rows(dtype):
    tiny, huge = (1e-30, 1e30) if dtype == np.float32 else (1e-300, 1e300)
    X = np.array([[3 * tiny, 4 * tiny], [3 * huge, -4 * huge], [0, 0]], dtype)
    with jax.enable_x64(dtype == np.float64):
        for xp in (np, jnp):
            U, r = polar(X, np) if xp is np else jax.jit(lambda X: polar(X, jnp))(jnp.asarray(X))
            np.testing.assert_allclose(U, [[0.6, 0.8], [0.6, -0.8], [0, 0]], rtol=4 * np.finfo(dtype).eps)
            np.testing.assert_allclose(r[:, 0], np.array([5 * tiny, 5 * huge, 0]), rtol=4 * np.finfo(dtype).eps)


def test_gradients_are_finite_at_both_ends_and_for_zero_rows():
    def total(minus, r):
        return sum(part.sum() for part in Pair(r, r, minus, 2 - minus).with_constant(0.5, jnp).angles(jnp))

    for slope in jax.jit(jax.grad(total, argnums=(0, 1)))(jnp.asarray([0.0, 1.0, 2.0]), jnp.asarray([0.0, 1.0, 2.0])):
        assert jnp.isfinite(slope).all()
    of_rows = jax.jit(jax.grad(lambda X: sum(part.sum() for part in polar(X, jnp))))
    assert jnp.isfinite(of_rows(jnp.zeros((2, 3)))).all()
