"""Many two-layer networks of one shape, trained as one."""

import equinox as eqx
import jax
import numpy as np
import optax
from jaxtyping import Array, Float

from offtangent.kernels.finite import tangent_gram
from offtangent.networks import TwoLayer
from offtangent.training import HalfSquares, train
from offtangent.training.loop import History


def networks(seeds: int, dim: int, width: int, scale: float, *, key: int = 2) -> TwoLayer:
    """`seeds` networks of one shape, stacked; another `key` draws others."""
    keys = jax.random.split(jax.random.key(key), seeds)
    return eqx.filter_vmap(lambda key: TwoLayer.gaussian(dim=dim, width=width, scale=scale, key=key))(keys)


class Stacked(eqx.Module):
    """Stacked networks as one f(W, X) with a column of outputs for each."""

    nets: TwoLayer

    def __call__(self, W: Float[Array, "s d m"], X: Float[Array, "n d"]) -> Float[Array, "n s"]:
        return eqx.filter_vmap(lambda net, w: net(w, X), out_axes=1)(self.nets, W)


def descend(
    nets: TwoLayer,
    X: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n s"],
    optimiser: optax.GradientTransformation,
    steps: int,
    precision: str,
) -> History:
    """Full-batch gradient descent on every network's own labels."""
    origin = jax.numpy.zeros_like(nets.W0)
    return train(HalfSquares(Stacked(nets)), origin, X, targets, optimiser=optimiser, steps=steps, precision=precision)


def outputs(nets: TwoLayer, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n s"]:
    """What the networks say before training."""
    with jax.default_matmul_precision("highest"):
        return np.asarray(Stacked(nets)(jax.numpy.zeros_like(nets.W0), jax.numpy.asarray(X, nets.W0.dtype)), np.float64)


def tangent_grams(nets: TwoLayer, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "s n n"]:
    """H(0) of every network."""
    inputs = jax.numpy.asarray(X, nets.W0.dtype)
    return np.asarray(eqx.filter_vmap(lambda net: tangent_gram(net, net.origin, inputs))(nets), np.float64)
