"""The tangent kernel through layers, next to that of Jacobians."""

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import empirical_ntk, layered
from offtangent.kernels.layered import layered_ntk
from offtangent.networks import FullyConnected, ResNet
from offtangent.networks.resnet import DirectResNet

SIZES = {"dim": 4, "outputs": 3, "width": 10}
NETS = {
    "resnet": ResNet.experiment(**SIZES, key=jax.random.key(0)),
    "two layers": FullyConnected.experiment(**SIZES, layers=2, key=jax.random.key(1)),
    "four layers": FullyConnected.experiment(**SIZES, layers=4, key=jax.random.key(2)),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("moved", [False, True])
def test_equals_the_products_of_jacobians(name, moved):
    net = NETS[name]
    params = net.origin
    if moved:
        leaves, shape = jax.tree.flatten(params)
        keys = jax.random.split(jax.random.key(3), len(leaves))
        params = jax.tree.unflatten(shape, [jax.random.normal(k, W.shape) for k, W in zip(keys, leaves, strict=True)])
    X, X2 = (np.asarray(jax.random.normal(jax.random.key(i), (n, 4))) for i, n in ((4, 6), (5, 5)))
    dense = empirical_ntk(net, params, X)
    for other in (None, X2):
        np.testing.assert_allclose(layered_ntk(net, params, X, other), dense.dense(other), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_does_not_depend_on_the_tiles(monkeypatch, rows):
    net = NETS["resnet"]
    X, X2 = (np.asarray(jax.random.normal(jax.random.key(i), (n, 4))) for i, n in ((4, 10), (5, 7)))
    whole = [layered_ntk(net, net.origin, X, other) for other in (None, X2)]
    monkeypatch.setattr(layered, "ROWS", rows)
    for one, other in zip(whole, (None, X2), strict=True):
        np.testing.assert_allclose(layered_ntk(net, net.origin, X, other), one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (np.ones((2, 3)), r"shape \(2, 3\): expected some rows of 4"),
        (np.ones((0, 4)), "expected some rows"),
        (np.full((2, 4), np.nan), "inputs"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(X, told):
    net = NETS["resnet"]
    with pytest.raises(InputError, match=told):
        layered_ntk(net, net.origin, X)


def test_a_network_of_other_layers_is_refused():
    net = DirectResNet.experiment(**SIZES, key=jax.random.key(0))
    with pytest.raises(InputError, match="empirical_ntk takes any network"):
        layered_ntk(net, net.origin, np.ones((2, 4)))
