"""The tangent kernel of a network of affine layers, through what enters each layer and what leaves it backwards.

The gradient of output r with respect to the weights of layer l, bias included, is (h_l, 1) δ_{l,r}ᵀ: the layer's input,
and the derivative of the output by what the layer gives. So

    K_{rr'}(x, x') = Σ_l (⟨h_l, h'_l⟩ + 1) ⟨δ_{l,r}, δ'_{l,r'}⟩,

and nothing of the size of the parameters is ever formed: with m neurons the time is O((nk)²m) a layer, where products
of Jacobians take m times as long if the layer has m inputs.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.networks import FullyConnected, ResNet

HIGHEST = jax.lax.Precision.HIGHEST


def layered_ntk(
    net: FullyConnected | ResNet,
    params: Any,
    X: Float[np.ndarray | Array, "n d"],
    X2: Float[np.ndarray | Array, "p d"] | None = None,
) -> Float[np.ndarray, "nk pk"]:
    """The tangent kernel of the hidden weights, as the matrix of all pairs (sample, output): nk × pk, samples first.

    Memory O(nk·pk); in float32. `kernels.empirical_ntk(net, params, X).dense(X2)` has the same in another order.

    >>> net = FullyConnected.experiment(dim=3, outputs=2, width=8, key=jax.random.key(0))
    >>> layered_ntk(net, net.origin, np.ones((5, 3))).shape
    (10, 10)
    """
    first = _layers(net, params, jnp.asarray(X, jnp.float32))
    second = first if X2 is None else _layers(net, params, jnp.asarray(X2, jnp.float32))
    return np.asarray(sum(_one(*a, *b) for a, b in zip(first, second, strict=True)))


@eqx.filter_jit
def _layers(
    net: FullyConnected | ResNet, params: Any, X: Float[Array, "n d"]
) -> list[tuple[Float[Array, "n a"], Float[Array, "n k m"]]]:
    """The input of each hidden layer, and the derivatives of all outputs by what the layer gives."""
    rows = tuple(jnp.zeros(W.shape[-1]) for W in params)

    def shifted(rows: tuple[Array, ...], x: Float[Array, " d"]) -> Float[Array, " k"]:
        # What a bias adds, the layer gives: the derivative by one sample's bias is δ.
        moved = [W.at[-1].add(row) for W, row in zip(params, rows, strict=True)]
        like: Any = type(params)(*moved) if hasattr(params, "_fields") else tuple(moved)
        return net(like, x[None])[0]

    backwards = jax.vmap(jax.jacrev(shifted), (None, 0))(rows, X)
    return list(zip(net.entering(params, X), backwards, strict=True))


@partial(jax.jit, inline=True)
def _one(
    h: Float[Array, "n a"], delta: Float[Array, "n k m"], h2: Float[Array, "p a"], delta2: Float[Array, "p k m"]
) -> Float[Array, "nk pk"]:
    inputs = jnp.matmul(h, h2.T, precision=HIGHEST) + 1
    pairs = jnp.einsum("nkm,plm->nkpl", delta, delta2, precision=HIGHEST)
    return (pairs * inputs[:, None, :, None]).reshape(h.shape[0] * delta.shape[1], -1)
