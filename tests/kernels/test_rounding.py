"""Bounds on the rounding of kernels in float64 against mpmath, at every angle."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from foreign import Linear
from offtangent.kernels import deep, gaussian, relu_hidden
from offtangent.kernels.closed_forms import arc_cosine, relu_output
from offtangent.kernels.rounding import DiagonalWithError, OfCosine, WithError

ANGLES = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 3e-8, 1e-8, 1e-9]
EPS = float(np.finfo(np.float64).eps)


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def polar(x, z):
    """Lengths, inner product and angle of two rows, at 40 digits: exact for the floats that they are."""
    x, z = ([mpmath.mpf(entry) for entry in row] for row in (x.tolist(), z.tolist()))
    r, s, inner = (mpmath.sqrt(mpmath.fdot(x, x)), mpmath.sqrt(mpmath.fdot(z, z)), mpmath.fdot(x, z))
    cosine = max(min(inner / (r * s), mpmath.mpf(1)), mpmath.mpf(-1))
    return r, s, inner, mpmath.acos(cosine)


def true_hidden(x, z):
    _, _, inner, angle = polar(x, z)
    return inner * (mpmath.pi - angle) / (2 * mpmath.pi)


def true_output(x, z):
    r, s, _, angle = polar(x, z)
    return r * s * (mpmath.sin(angle) + (mpmath.pi - angle) * mpmath.cos(angle)) / (2 * mpmath.pi)


def true_square(x, z):
    r, s, _, angle = polar(x, z)
    cosine = mpmath.cos(angle)
    return (r * s) ** 2 * (3 * mpmath.sin(angle) * cosine + (mpmath.pi - angle) * (1 + 2 * cosine**2)) / mpmath.pi


def true_gaussian(x, z):
    apart = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(x.tolist(), z.tolist(), strict=True)]
    return mpmath.exp(-mpmath.fdot(apart, apart) / 2)


def true_deep(x, z):
    """The NTK with two hidden layers of ReLU, by the recursion of the definition."""
    r, s, inner, _ = polar(x, z)
    first, second, between, tangent = r * r, s * s, inner, inner
    for _ in range(2):
        length = mpmath.sqrt(first * second)
        angle = mpmath.acos(max(min(between / length, mpmath.mpf(1)), mpmath.mpf(-1)))
        rest = mpmath.pi - angle
        between = length * (mpmath.sin(angle) + rest * mpmath.cos(angle)) / (2 * mpmath.pi)
        tangent = between + tangent * rest / (2 * mpmath.pi)
        first, second = first / 2, second / 2
    return tangent


KERNELS = {
    "relu_hidden": (relu_hidden, true_hidden),
    "relu_output": (relu_output, true_output),
    "arc_cosine(2)": (arc_cosine(2), true_square),
    "gaussian": (gaussian(), true_gaussian),
    "deep": (deep(2), true_deep),
}


def rows():
    """One row; others at every angle to it and to its opposite, of its length; and the same again of other lengths."""
    rng = np.random.default_rng(0)
    a, b = np.linalg.qr(rng.standard_normal((5, 2)))[0].T
    other = np.array([sign * (np.cos(t) * a + np.sin(t) * b) for t in ANGLES for sign in (1, -1)])
    return a[None], np.concatenate([other, other * rng.uniform(0.2, 5, (len(other), 1))])


@functools.cache
def measured(name):
    """Errors and their bounds, and the scale √(k(x,x) k(x',x')) of each entry; then the same of the diagonal."""
    kernel, truth = KERNELS[name]
    one, others = rows()
    with jax.enable_x64(True):
        both = jax.jit(lambda X, Y: (WithError(kernel)(X, Y), DiagonalWithError(kernel)(Y)))
        (K, E), (D, F) = jax.tree.map(np.asarray, both(jnp.asarray(one), jnp.asarray(others)))
    error = [abs(mpmath.mpf(k) - truth(one[0], row)) for k, row in zip(K[0].tolist(), others, strict=True)]
    apart = [abs(mpmath.mpf(k) - truth(row, row)) for k, row in zip(D.tolist(), others, strict=True)]
    scale = np.sqrt(kernel.diag(one)[0] * kernel.diag(others))
    return (np.array(error, np.float64), E[0], scale), (np.array(apart, np.float64), F, D)


@pytest.mark.parametrize("name", KERNELS)
def test_the_error_is_within_its_bound_at_every_angle(name):
    error, bound, _ = measured(name)[0]
    assert (error <= bound).all()


@pytest.mark.parametrize("name", KERNELS)
def test_the_bound_is_no_more_than_the_loss_of_digits_near_the_ends_explains(name):
    """With δ = 18 ε in the cosine, the angle moves by δ/sin θ, at worst √δ; eight times that, and 32 ε a layer."""
    _, bound, scale = measured(name)[0]
    moved = np.repeat([min(1 / np.sin(t), 1 / np.sqrt(18 * EPS)) for t in ANGLES], 2)
    assert (bound <= (8 * 18 * np.tile(moved, 2) + 18 + 2 * 32) * 5 * EPS * scale).all()


def test_a_bound_a_hundred_times_smaller_would_be_noticed_here():
    error, bound, _ = measured("relu_hidden")[0]
    assert (error > bound / 100).any()


@pytest.mark.parametrize("name", KERNELS)
def test_the_error_of_the_diagonal_is_within_its_bound(name):
    error, bound, value = measured(name)[1]
    assert (error <= bound).all()
    assert (bound <= 100 * EPS * value).all()


def test_deeper_kernels_are_allowed_more():
    """Each layer rounds: relative to the value, three layers 3·32 ε + 18 ε against 32 ε + 18 ε for one."""
    one, _ = rows()
    with jax.enable_x64(True):
        found = [jax.jit(DiagonalWithError(kernel))(jnp.asarray(one)) for kernel in (deep(1), deep(3))]
        shallow, far = (float(bound[0] / value[0]) for value, bound in found)
    np.testing.assert_allclose([shallow, far], [(18 + 32) * EPS, (18 + 3 * 32) * EPS], rtol=1e-10)


def test_a_foreign_kernel_is_allowed_the_error_of_an_inner_product():
    one, others = rows()
    with jax.enable_x64(True):
        K, E = (np.asarray(part)[0] for part in WithError(Linear())(jnp.asarray(one), jnp.asarray(others)))
    error = [abs(mpmath.mpf(k) - polar(one[0], row)[2]) for k, row in zip(K.tolist(), others, strict=True)]
    assert (np.array(error, np.float64) <= E).all()
    assert (100 * EPS * np.linalg.norm(others, axis=1) >= E).all()


def test_as_a_function_of_the_cosine_it_is_the_kernel_of_unit_vectors():
    u = np.array([-1.0, -0.5, 0.0, 0.3, 1.0])
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(OfCosine(relu_hidden))(jnp.asarray(u)))
    np.testing.assert_allclose(found, u * (np.pi - np.arccos(u)) / (2 * np.pi), rtol=0, atol=1e-16)
