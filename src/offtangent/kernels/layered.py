"""The tangent kernel of a network of affine layers, through what enters each layer and what leaves it backwards.

The gradient of output r with respect to the weights of layer l, bias included, is (h_l, 1) δ_{l,r}ᵀ: the layer's input,
and the derivative of the output by what the layer gives. So

    K_{rr'}(x, x') = Σ_l (⟨h_l, h'_l⟩ + 1) ⟨δ_{l,r}, δ'_{l,r'}⟩,

and nothing of the size of the parameters is ever formed: with m neurons the time is O((nk)²m) a layer, where products
of Jacobians take m times as long if the layer has m inputs.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._checks import check_finite, check_inexact
from offtangent._errors import InputError
from offtangent.networks import FullyConnected, ResNet
from offtangent.networks.layers import check_shapes

HIGHEST = jax.lax.Precision.HIGHEST
ROWS = 500  # samples of a tile: what is compiled hardly depends on n, and a device holds few tiles at a time

_Layers = list[tuple[Array, Array]]  # what enters a layer, n × a, and δ, n × k × m, for every layer


def layered_ntk(
    net: Any,
    params: Any,
    X: Float[np.ndarray | Array, "n d"],
    X2: Float[np.ndarray | Array, "p d"] | None = None,
) -> Float[np.ndarray, "n p k k"]:
    """The tangent kernel of the hidden weights, as `kernels.empirical_ntk(net, params, X).dense(X2)` has it.

    The network is a `ResNet` or a `FullyConnected`. In float32, tile by tile, and without X2 by half of them; memory
    O(nk·pk) on the host and O(nkm) on the device. In memory the entries are the matrix of all pairs (sample, output),
    samples first, so `K.transpose(0, 2, 1, 3).reshape(n * k, p * k)` copies nothing.

    >>> net = FullyConnected.experiment(dim=3, outputs=2, width=8, key=jax.random.key(0))
    >>> layered_ntk(net, net.origin, np.ones((5, 3))).shape
    (5, 5, 2, 2)
    """
    if not isinstance(net, FullyConnected | ResNet):
        raise InputError(
            f"{type(net).__name__}: layered_ntk takes a ResNet or a FullyConnected; empirical_ntk takes any network."
        )
    for name, given in (("X", X), ("X2", X2)):
        if given is not None and (np.ndim(given) != 2 or np.shape(given)[1] != net.dim or not np.shape(given)[0]):
            raise InputError(f"{name} has shape {np.shape(given)}: expected some rows of {net.dim} numbers.")
    check_shapes(params, tuple(net.origin))
    for W in params:
        check_inexact(params=W)
    check_finite((params, X, X2), "The parameters or inputs")
    with jax.default_matmul_precision("highest"):
        first, size = _tiles(net, params, X)
        second, other = (first, size) if X2 is None else _tiles(net, params, X2)
    matrix = np.empty((size, other), np.float32)
    for i, (rows, left) in enumerate(first):
        for columns, right in second[i if X2 is None else 0 :]:
            matrix[rows, columns] = _tile(left, right)
            if X2 is None and rows != columns:
                matrix[columns, rows] = matrix[rows, columns].T
    outputs = size // len(X)
    return matrix.reshape(len(X), outputs, -1, outputs).transpose(0, 2, 1, 3)


def _tiles(
    net: FullyConnected | ResNet, params: Any, X: Float[np.ndarray | Array, "n d"]
) -> tuple[list[tuple[slice, _Layers]], int]:
    """What the layers have to say of a few samples at a time, with the rows that these have, and the rows of all."""
    parts = [jnp.asarray(np.asarray(X)[at : at + ROWS], jnp.float32) for at in range(0, len(X), ROWS)]
    layers = [_layers(net, params, part) for part in parts]
    ends = np.cumsum([0, *(delta.shape[0] * delta.shape[1] for (_, delta), *_ in layers)])
    return [(slice(a, b), part) for a, b, part in zip(ends[:-1], ends[1:], layers, strict=True)], int(ends[-1])


@eqx.filter_jit
def _layers(net: FullyConnected | ResNet, params: Any, X: Float[Array, "n d"]) -> _Layers:
    """The input of each hidden layer, and the derivatives of all outputs by what the layer gives."""
    rows = tuple(jnp.zeros(W.shape[-1]) for W in params)

    def shifted(rows: tuple[Array, ...], x: Float[Array, " d"]) -> Float[Array, " k"]:
        # What a bias adds, the layer gives: the derivative by one sample's bias is δ.
        moved = [W.at[-1].add(row) for W, row in zip(params, rows, strict=True)]
        like: Any = type(params)(*moved) if hasattr(params, "_fields") else tuple(moved)
        return net(like, x[None])[0]

    backwards = jax.vmap(jax.jacrev(shifted), (None, 0))(rows, X)
    return list(zip(net.entering(params, X), backwards, strict=True))


@jax.jit
def _tile(first: _Layers, second: _Layers) -> Float[Array, "nk pk"]:
    return sum((_of_layer(*a, *b) for a, b in zip(first, second, strict=True)), start=jnp.zeros(()))


def _of_layer(
    h: Float[Array, "n a"], delta: Float[Array, "n k m"], h2: Float[Array, "p a"], delta2: Float[Array, "p k m"]
) -> Float[Array, "nk pk"]:
    inputs = jnp.matmul(h, h2.T, precision=HIGHEST) + 1
    pairs = jnp.einsum("nkm,plm->nkpl", delta, delta2, precision=HIGHEST)
    return (pairs * inputs[:, None, :, None]).reshape(h.shape[0] * delta.shape[1], -1)
