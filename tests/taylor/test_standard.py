"""The first two Taylor terms of the paper's convolutional network, against differences along a line in float64."""

import jax
import jax.numpy as jnp
import numpy as np

import models
from offtangent.networks.standard import ConvNet
from offtangent.taylor import expand

STEP = 1e-3


def test_linear_and_quadratic_terms_of_four_convolutions_are_slope_and_curvature_along_the_way():
    """f(θ₀ + tΔ) at t = −h, 0, h, near enough to θ₀ for no ReLU to turn."""
    net = ConvNet(channels=4, shape=(16, 16, 3))
    with jax.enable_x64(True):
        start = net.init(key=jax.random.key(0))
        end = models.moved(start, 0.01)
        X = jax.random.normal(jax.random.key(1), (3, 16, 16, 3))
        along = jax.jit(jax.vmap(lambda t: net(jax.tree.map(lambda p, q: p + t * (q - p), start, end), X)))
        back, here, on = np.asarray(along(jnp.array([-STEP, 0.0, STEP])))
        value, slope, curve = (np.asarray(term) for term in expand(net, start, 2).terms(end, X))
    np.testing.assert_allclose(value, here, rtol=1e-12)
    np.testing.assert_allclose(slope, (on - back) / (2 * STEP), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(curve, (on - 2 * here + back) / (2 * STEP**2), rtol=1e-4, atol=1e-8)
    assert np.abs(curve).min() > 1e-6  # so that a wrong one would be seen
