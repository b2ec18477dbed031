"""Which neuron a weight belongs to, against what moving the inputs of one neuron alone says."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen

import models
from offtangent.networks import TwoLayer
from offtangent.regime.neurons import neurons_of, plain_name


def by_name(f, params, x):
    return {one.name: one for one in neurons_of(f, params, x)}


def of_unit(f, params, x, count):
    """For each weight which of the hidden units z = hidden(params, x) depends on it: brute force by Jacobians."""
    J = np.asarray(jax.jacobian(lambda W: f(W, x).reshape(-1, count).T)(params)).reshape(count, -1, params.size)
    touched = np.abs(J).sum(axis=1) > 0
    assert (touched.sum(axis=0) == 1).all()
    return touched.argmax(axis=0).reshape(params.shape)


@pytest.mark.parametrize("layout", ["columns", "rows", "conv", "conv_first", "heads"])
def test_neurons_are_the_units_that_depend_on_a_weight(layout):
    key = jax.random.key(0)
    x = (
        jax.random.normal(key, (3, 4))
        if layout in ("columns", "rows", "heads")
        else jax.random.normal(key, (2, 5, 5, 4))
    )
    numbers = {"conv": ("NHWC", "HWIO", "NHWC"), "conv_first": ("NHWC", "OIHW", "NHWC")}

    def units(W, x):
        if layout == "columns":
            return x @ W
        if layout == "rows":
            return x @ W.T
        if layout == "heads":
            return jnp.einsum("ni,ihd->nhd", x, W)
        return jax.lax.conv_general_dilated(x, W, (1, 1), "SAME", dimension_numbers=numbers[layout])

    shape = {"columns": (4, 6), "rows": (6, 4), "heads": (4, 3, 2), "conv": (3, 3, 4, 6), "conv_first": (6, 4, 3, 3)}
    W = jax.random.normal(key, shape[layout])
    (found,) = neurons_of(lambda W, x: jnp.tanh(units(W, x)).reshape(len(x), -1).sum(axis=1), W, x)
    assert not found.is_guess
    assert found.count == 6
    np.testing.assert_array_equal(found.of_weight, of_unit(units, W, x, 6))


def test_grouped_convolutions_have_as_many_neurons_as_channels_come_out():
    x, W = jnp.ones((2, 5, 5, 4)), jnp.ones((3, 3, 2, 6))

    def units(W, x):
        return jax.lax.conv_general_dilated(
            x, W, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
        )

    (found,) = neurons_of(lambda W, x: units(W, x).sum((1, 2, 3)), W, x)
    np.testing.assert_array_equal(found.of_weight, np.broadcast_to(np.arange(6), W.shape))


def test_libraries_lay_weights_out_as_they_like():
    f, net, x = models.equinox_mlp()
    assert [one.count for one in neurons_of(f, net, x)] == [8, 8, 8, 8, 8, 8, 2, 2]
    f, params, x = models.linen_cnn()
    found = by_name(f, params, x)
    assert found["Conv_0.kernel"].count == 4
    assert found["Dense_0.kernel"].count == 3
    assert found["BatchNorm_0.scale"].count == 4


def test_layers_in_a_loop_have_neurons_of_their_own():
    def f(W, x):
        return jax.lax.scan(lambda h, V: (jnp.tanh(h @ V), None), x, W)[0].sum(axis=1)

    (found,) = neurons_of(f, jnp.ones((3, 4, 4)), jnp.ones((2, 4)))
    assert found.count == 12
    assert len(np.unique(found.of_weight[1])) == 4
    assert set(found.of_weight[0].ravel()) & set(found.of_weight[1].ravel()) == set()
    np.testing.assert_array_equal(found.of_weight[:, 0], found.of_weight[:, 1])


def test_slices_that_are_used_apart_have_their_neurons_together():
    """Two halves of the neurons; and the last row of a matrix, which is a bias."""
    net = TwoLayer.symmetric(dim=4, width=6, activation="tanh", key=jax.random.key(0))
    (halves,) = neurons_of(net, net.origin, jnp.ones((2, 4)))
    (affine,) = neurons_of(lambda W, x: jnp.tanh(x @ W[:-1] + W[-1]) @ jnp.ones(6), jnp.ones((4, 6)), jnp.ones((2, 3)))
    for found in (halves, affine):
        assert not found.is_guess
        np.testing.assert_array_equal(found.of_weight, np.broadcast_to(np.arange(6), (4, 6)))


def test_one_output_is_one_neuron():
    (found,) = neurons_of(lambda W, x: x @ W, jnp.ones((4, 1)), jnp.ones((2, 4)))
    assert (found.count, found.is_guess) == (1, False)
    assert not found.of_weight.any()


def test_a_table_s_neurons_are_its_columns():
    table = linen.Embed(7, 5)
    tokens = jnp.zeros((2, 3), int)
    params = table.init(jax.random.key(0), tokens)
    (found,) = neurons_of(lambda p, x: table.apply(p, x).sum((1, 2)), params, tokens)
    np.testing.assert_array_equal(found.of_weight, np.broadcast_to(np.arange(5), (7, 5)))


def test_what_the_network_does_not_tell_is_called_a_guess():
    (found,) = neurons_of(lambda W, x: jnp.sin(x[:, None] * W.sum(0)).sum(axis=1), jnp.ones((3, 2)), jnp.ones(4))
    assert (found.is_guess, found.count) == (True, 2)


def test_names_are_places_without_brackets():
    params = {"a": [jnp.ones((2, 2)), eqx.nn.Linear(2, 1, key=jax.random.key(0))]}

    def f(p, x):
        return jax.vmap(p["a"][1])(x @ p["a"][0])[:, 0]

    assert [one.name for one in neurons_of(f, params, jnp.ones((1, 2)))] == ["a.0", "a.1.weight", "a.1.bias"]
    assert plain_name("params") == "params"
