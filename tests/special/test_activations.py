"""Activations against mpmath at 40 digits, against autodiff, and at the edges: kinks, tails, dtypes."""

import dataclasses
import functools
import inspect
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.special import activation
from offtangent.special.activations import CATALOGUE, Activation, quadratic, relu, relu3, shifted, sigmoid, tanh

SMOOTH = {
    "quadratic": lambda z: z**2,
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
    "sigmoid(1.5)": lambda z: 1 / (1 + mp.exp(mp.mpf(3) / 2 - z)),
    "tanh": mp.tanh,
    "tanh(z − 0.5)": lambda z: mp.tanh(z - mp.mpf(1) / 2),
    "softplus": lambda z: mp.log(1 + mp.exp(z)),
    "erf": mp.erf,
    "gelu": lambda z: z * mp.ncdf(z),
    "sin": mp.sin,
}
POINTS = np.array([-6.25, -2.5, -0.75, 0.0, 0.375, 1.0, 3.0, 6.25])  # exact in binary


def own(z):
    """A user's function without closed forms."""
    return jnp.exp(-(z**2)) * jnp.sin(z)


def orders(sigma, highest):
    return range((highest if sigma.smooth is None else min(sigma.smooth, highest)) + 1)


def derivatives(sigma, z, highest=6):
    """Every derivative up to the highest that exists, in one compiled program."""
    return np.stack(jax.jit(lambda z: [sigma.derivative(k)(z) for k in orders(sigma, highest)])(z))


def autodiffs(sigma, z, highest=6):
    """The same by nested autodiff of σ itself, which is what a network's derivatives go through."""

    def slope(function):
        return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]

    def everything(z):
        function, values = sigma, []
        for _ in orders(sigma, highest):
            values.append(function(z))
            function = slope(function)
        return values

    return np.stack(jax.jit(everything)(z))


@functools.cache
def derivatives_at_points(sigma):
    """In float64, compiled once for two tests."""
    with jax.enable_x64(True):
        return derivatives(sigma, jnp.asarray(POINTS))


def truth(function):
    with mp.workdps(40):
        return [[float(mp.diff(function, mp.mpf(float(z)), order)) for z in POINTS] for order in range(7)]


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_equal_those_of_mpmath(name):
    ours = derivatives_at_points(activation(name))
    np.testing.assert_allclose(ours, truth(SMOOTH[name]), rtol=2e-12, atol=1e-13)


def test_a_function_of_ones_own_is_differentiated_to_every_order():
    with jax.enable_x64(True):
        ours = derivatives(activation(own), jnp.asarray(POINTS))
    np.testing.assert_allclose(ours, truth(lambda z: mp.exp(-(z**2)) * mp.sin(z)), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", CATALOGUE)
def test_closed_forms_agree_with_autodiff_kinks_included(name):
    sigma = activation(name)
    with jax.enable_x64(True):
        nested = autodiffs(sigma, jnp.asarray(POINTS), 4)
    np.testing.assert_allclose(nested, derivatives_at_points(sigma)[: len(nested)], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("order", "value"), [(1, 800.0), (2, 40.0), (3, 1.0)])
def test_derivatives_of_relu3_are_relu_powers(order, value):
    assert relu3.derivative(order)(jnp.array([-40.0, 40.0])).tolist() == [0.0, value]


def test_relu_takes_the_subgradient_one_at_zero_under_autodiff_too():
    assert (jax.grad(relu)(0.0), relu.derivative(1)(0.0), relu3.derivative(3)(0.0)) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize("name", CATALOGUE)
def test_nan_is_passed_on_not_hidden(name):
    assert jnp.isnan(activation(name)(jnp.nan))


TAILS = np.array([-3e18, -1e6, -1000, -104, -88, -50, -14, 14, 50, 88, 104, 1000, 1e6, 3e18], np.float32)


@pytest.mark.parametrize("name", ["relu", "relu3", *SMOOTH])
def test_derivatives_are_finite_in_float32_tails(name):
    z = TAILS[np.abs(TAILS) < 1e12] if name == "relu3" else TAILS  # its value itself overflows beyond
    values = derivatives(activation(name), jnp.asarray(z))
    assert values.dtype == np.float32
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "softplus", "erf", "gelu"])
def test_autodiff_of_the_function_is_finite_in_float32_tails(name):
    assert np.isfinite(autodiffs(activation(name), jnp.asarray(TAILS), highest=3)).all()


@pytest.mark.parametrize("z", [-50.0, 50.0])
def test_sigmoid_derivatives_keep_their_relative_accuracy_in_both_tails(z):
    """Far out s^(k) ≈ (∓1)^(k−1) e^(−|z|); the naive s(1 − s) is 0 at z = 50 in float32."""
    values = derivatives(sigmoid(), jnp.float32(z))[1:]
    expected = [(-np.sign(z)) ** (k - 1) * np.exp(-50.0) for k in range(1, 7)]
    np.testing.assert_allclose(values, expected, rtol=1e-5)


@given(
    name=st.sampled_from([*CATALOGUE, "sigmoid(-0.5)", "gelu(z + 1)"]),
    order=st.integers(0, 3),
    shape=st.lists(st.integers(0, 3), max_size=3),
    dtype=st.sampled_from(["float32", "bfloat16", "float64"]),
)
def test_shape_and_dtype_are_kept_under_strict_promotion(name, order, shape, dtype):
    sigma = activation(name)
    order = order if sigma.smooth is None else min(order, sigma.smooth)
    with jax.enable_x64(dtype == "float64"), jax.numpy_dtype_promotion("strict"):
        z = jax.ShapeDtypeStruct(tuple(shape), dtype)
        for function in (sigma, sigma.derivative(order)):
            result = jax.eval_shape(function, z)
            assert (result.shape, result.dtype) == (z.shape, z.dtype)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_shifted_sigmoid_is_found_again_by_its_name(shift):
    assert activation(sigmoid(shift).name) == sigmoid(shift)


@given(st.sampled_from([*CATALOGUE, "sigmoid(2.0)"]), st.floats(allow_nan=False, allow_infinity=False))
def test_any_shifted_activation_is_found_again_by_its_name(name, by):
    moved = shifted(name, by)
    assert activation(moved.name) == moved
    assert hash(activation(moved.name)) == hash(moved)


def test_a_shift_moves_the_kinks_and_keeps_the_smoothness():
    moved = shifted("relu3", -1.25)
    assert (moved.name, moved.smooth, moved.kinks) == ("relu3(z + 1.25)", 3, (-1.25,))
    assert [float(moved.derivative(3)(z)) for z in (-1.5, -1.25, 0.0)] == [0.0, 1.0, 1.0]
    with pytest.raises(InputError, match=r"relu3\(z \+ 1.25\) has derivatives up to order 3; .* delta at -1.25"):
        moved.derivative(4)


def test_shifts_add_up_and_no_shift_changes_nothing():
    assert shifted(shifted("tanh", 1), 0.5) == shifted(tanh, 1.5)
    assert shifted(shifted("tanh", 1), -1) is shifted(tanh, 0) is tanh


def test_a_shifted_sigmoid_agrees_with_the_sigmoid_that_takes_a_shift():
    with jax.enable_x64(True):
        z = jnp.asarray(POINTS)
        assert np.array_equal(derivatives(shifted("sigmoid", 1), z), derivatives(sigmoid(1.0), z))


def test_a_function_of_ones_own_can_be_shifted():
    with jax.enable_x64(True):
        ours = derivatives(shifted(own, 0.25), jnp.asarray(POINTS + 0.25), 3)
        np.testing.assert_allclose(ours, derivatives(activation(own), jnp.asarray(POINTS), 3), rtol=1e-13)


@pytest.mark.parametrize("by", [float("nan"), float("inf")])
def test_a_shift_that_is_not_finite_is_refused(by):
    with pytest.raises(InputError, match=r"by=.*finite"):
        shifted("tanh", by)


@pytest.mark.parametrize("name", [*CATALOGUE, "sigmoid(2.0)", "relu(z − 1)", "sigmoid(1.0)(z + 0.5)"])
def test_the_catalogue_survives_pickling(name):
    assert pickle.loads(pickle.dumps(activation(name))) == activation(name)  # noqa: S301


def test_an_activation_is_a_static_field_that_does_not_retrace():
    class Model(eqx.Module):
        sigma: Activation = eqx.field(static=True)

    traces = []

    @eqx.filter_jit
    def apply(model, z):
        traces.append(1)
        return model.sigma.derivative(2)(z)

    apply(Model(sigmoid(1.0)), jnp.ones(3))
    apply(Model(sigmoid(1.0)), jnp.ones(3))
    assert len(traces) == 1


def test_the_same_derivative_is_the_same_object():
    assert activation(own).derivative(3) is activation(own).derivative(3)


def test_an_activation_is_returned_as_it_is():
    assert activation(tanh) is tanh


def test_numpy_arrays_and_floats_are_taken():
    assert (float(quadratic.derivative(1)(3.0)), quadratic(np.array([3.0])).tolist()) == (6.0, [9.0])


@pytest.mark.parametrize(
    ("sigma", "order", "message"),
    [
        (
            relu,
            2,
            r"relu has derivatives up to order 1 \(a step\); the one of order 2 is a delta at 0, not a func",
        ),
        (relu3, 5, r"relu3 has derivatives up to order 3 \(a step\); .* order 4 .* order 5 was asked for"),
        (
            activation(jnp.abs, smooth=1, kinks=(0.0,)),
            2,
            "abs has derivatives up to order 1; .*delta at 0",
        ),
        (tanh, -1, "must be 0 or more"),
    ],
    ids=["relu", "relu3", "own", "negative"],
)
def test_a_derivative_that_does_not_exist_is_refused(sigma, order, message):
    with pytest.raises(InputError, match=message):
        sigma.derivative(order)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rellu", "Did you mean 'relu'"),
        ("ReLU", "Did you mean 'relu'"),
        ("sigmoyd(1.0)", "Did you mean 'sigmoid'"),
        ("xyzzy", "There are relu, relu3, quadratic"),
        ("tanh(2)", r"tanh takes no argument; to shift it, say 'tanh\(z - 1\)'"),
        ("rellu(z - 1)", "Did you mean 'relu'"),
        ("sigmoid(one)", "'one' is not a number"),
        ("sigmoid(inf)", "finite"),
        (3, "not int 3"),
        (np.tanh, "written in jax.numpy"),
        (lambda z: z if z > 0 else 0.0, "jnp.where instead of if"),
        (jnp.sum, r"not elementwise: an array of shape \(2, 3\) gave shape \(\)"),
        (lambda z: (z, z), "not elementwise: .* gave tuple"),
    ],
)
def test_a_bad_activation_is_refused_with_the_way_out(spec, message):
    with pytest.raises(InputError, match=message):
        inspect.unwrap(activation)(spec)  # past the type checker of the tests


def test_an_unhashable_function_is_refused():
    @dataclasses.dataclass
    class Scaled:
        scale: float

        def __call__(self, z):
            return self.scale * z

    with pytest.raises(InputError, match="not hashable"):
        activation(Scaled(2.0))


def test_kinks_without_smoothness_are_refused():
    with pytest.raises(InputError, match="Give smooth= as well"):
        activation(jnp.abs, kinks=(0.0,))


def test_kinks_of_a_known_activation_cannot_be_overridden():
    with pytest.raises(InputError, match="'relu' knows its own kinks"):
        activation("relu", kinks=(1.0,))


@pytest.mark.parametrize(("name", "order"), [("relu", 1), ("relu3", 3), ("tanh", 2)])
def test_a_nan_stays_a_nan(name, order):
    assert np.isnan(activation(name).derivative(order)(jnp.array([np.nan]))).all()
