"""Standard networks against NumPy loops, and their initialisation against its moments."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import MLP
from offtangent.networks.standard import ConvNet

RNG = np.random.default_rng(0)
KEY = jax.random.key(0)


def with_biases(params):
    """The same weights, and biases that are not zero."""
    return tuple(
        layer._replace(bias=jnp.asarray(RNG.standard_normal(layer.bias.shape), jnp.float32)) for layer in params
    )


def convolved(image, window, bias):
    """Every pixel by a sum over its 3 × 3 neighbours, zeros beyond the edge."""
    height, width, _ = image.shape
    out = np.tile(bias.astype(np.float64), (height, width, 1))
    for i, j, di, dj in itertools.product(range(height), range(width), (-1, 0, 1), (-1, 0, 1)):
        if 0 <= i + di < height and 0 <= j + dj < width:
            out[i, j] += image[i + di, j + dj] @ window[1 + di, 1 + dj]
    return out


@pytest.mark.parametrize("depth", [1, 3])
def test_the_mlp_is_the_formula(depth):
    net, X = MLP(dim=3, width=5, depth=depth), RNG.standard_normal((4, 3))
    params = with_biases(net.init(key=KEY))
    hidden = X
    for layer in params[:-1]:
        hidden = np.maximum(hidden @ np.asarray(layer.weights, np.float64) + np.asarray(layer.bias), 0)
    truth = hidden @ np.asarray(params[-1].weights)[:, 0] + float(params[-1].bias[0])
    np.testing.assert_allclose(jax.jit(net)(params, jnp.asarray(X, jnp.float32)), truth, rtol=1e-5, atol=1e-6)
    assert len(params) == depth + 1


def test_the_convolutional_network_is_the_formula():
    net, X = ConvNet(channels=3, shape=(8, 4, 2), depth=2), RNG.standard_normal((2, 8, 4, 2))
    params = with_biases(net.init(key=KEY))
    *windows, (last, bias) = [tuple(np.asarray(part, np.float64) for part in layer) for layer in params]
    for image, output in zip(X, jax.jit(net)(params, jnp.asarray(X, jnp.float32)), strict=True):
        seen = image
        for window, shift in windows:
            active = np.maximum(convolved(seen, window, shift), 0)
            seen = (active[::2, ::2] + active[1::2, ::2] + active[::2, 1::2] + active[1::2, 1::2]) / 4
        assert float(output) == pytest.approx(float(seen.ravel() @ last[:, 0] + bias[0]), rel=1e-5)


def test_at_the_papers_size_the_last_layer_sees_2048_numbers():
    shapes = jax.eval_shape(lambda: ConvNet(channels=512).init(key=KEY))
    assert [layer.weights.shape for layer in shapes] == [(3, 3, 3, 512), *[(3, 3, 512, 512)] * 3, (2048, 1)]


@pytest.mark.parametrize("net", [MLP(dim=40, width=300, depth=2), ConvNet(channels=30, shape=(4, 4, 8), depth=2)])
def test_weights_are_uniform_with_variance_half_over_fan_in_and_biases_zero(net):
    for layer in net.init(key=KEY):
        weights = np.asarray(layer.weights, np.float64)
        fan_in = weights[..., 0].size
        scaled = weights.ravel() / np.sqrt(1.5 / fan_in)
        assert not np.asarray(layer.bias).any()
        assert np.abs(scaled).max() <= 1 + 1e-6
        for power, moment in ((2, 1 / 3), (4, 1 / 5)):
            draws = scaled**power
            assert abs(draws.mean() - moment) <= 4 * draws.std() / len(draws) ** 0.5
        assert abs(scaled.mean()) <= 4 * scaled.std() / len(scaled) ** 0.5


def test_layers_and_keys_have_weights_of_their_own_and_keys_can_be_vmapped():
    net = MLP(dim=5, width=5, depth=2)
    keys = jax.random.split(KEY, 2)
    both = jax.vmap(lambda key: net.init(key=key))(keys)
    for i in range(2):
        one = net.init(key=keys[i])
        jax.tree.map(lambda a, b, i=i: np.testing.assert_array_equal(a[i], b), both, one)
        assert (np.asarray(one[0].weights) != np.asarray(one[1].weights)).any()
    assert (np.asarray(both[0].weights[0]) != np.asarray(both[0].weights[1])).any()


def test_an_architecture_is_known_by_its_sizes():
    """So that a program compiled for one serves all equal ones."""
    assert MLP(3, 8) == MLP(3, 8, depth=1)
    assert len({ConvNet(4), ConvNet(4), ConvNet(5)}) == 2


MLP_PARAMS = MLP(3, 4).init(key=KEY)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MLP(3, 0), "width=0"),
        (lambda: MLP(3, 4, depth=0), "depth=0"),
        (lambda: ConvNet(channels=0), "channels=0"),
        (lambda: ConvNet(4, (28, 28, 1), depth=4), "multiples of 16"),
        (lambda: MLP(3, 4)(MLP_PARAMS, jnp.ones((2, 5))), r"expected \(n, 3\)"),
        (lambda: MLP(3, 4, depth=2)(MLP_PARAMS, jnp.ones((2, 3))), "expected 3"),
        (
            lambda: ConvNet(4, (4, 4, 3), 1)(ConvNet(4, (4, 4, 3), 1).init(key=KEY), jnp.ones((2, 3, 4, 4))),
            "colours last",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()
