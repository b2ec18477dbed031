"""Algorithm 1 of the residual network against its update written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import ResNet
from offtangent.networks.resnet import Hidden
from offtangent.training import HalfSquares, train
from offtangent.training.two_rates import residual_sgd

NET = ResNet.theory(dim=3, outputs=2, width=6, sigma_v=2.0, key=jax.random.key(0))
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((1, 3)), RNG.standard_normal((1, 2))


@pytest.mark.parametrize(("rate_w", "rate_v"), [(0.1, 0.01), (0.1, 0.0), (0, 0.2)])
def test_both_layers_move_at_once_each_at_its_own_rate(rate_w, rate_v):
    found = train(
        HalfSquares(NET),
        NET.origin,
        X,
        Y,
        optimiser=residual_sgd(rate_w, rate_v),
        steps=2,
        batch=1,
        key=jax.random.key(0),
    ).params

    def objective(params):
        return 0.5 * jnp.sum((jnp.asarray(Y, jnp.float32) - NET(params, jnp.asarray(X, jnp.float32))) ** 2)

    params, slope = NET.origin, jax.jit(jax.grad(objective))
    for _ in range(2):
        g = slope(params)
        params = Hidden(params.W - rate_w * g.W, params.V - rate_v * g.V)
    np.testing.assert_allclose(found.W, params.W, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.V, params.V, rtol=1e-5, atol=1e-7)


def test_a_negative_rate_is_refused():
    with pytest.raises(InputError, match="rate_v"):
        residual_sgd(0.1, -1.0)
