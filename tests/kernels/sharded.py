"""Run by test_sharded.py in a process of its own, with eight CPU devices: prints what it measured, as JSON."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from offtangent.kernels import Gram, relu_hidden
from offtangent.linalg import stream
from offtangent.linalg.tiles import SymmetricTiles

ROWS = 30  # 240 inputs: eight groups on one device, 36 tiles


def block(X1: jax.Array, X2: jax.Array) -> jax.Array:
    return (1 + X1 @ X2.T) ** 2


def diagonal(X: jax.Array) -> jax.Array:
    return 5 + (X * X).sum(axis=1)  # not that of the block: the product must take it from here


def on_each_device(tiles: SymmetricTiles) -> int:
    """The most bytes that any one device holds of the inputs and the kept tiles, by JAX's own account."""
    held: dict[jax.Device, int] = {}
    for array in (tiles.rows, tiles.kept):
        for shard in array.addressable_shards:
            held[shard.device] = held.get(shard.device, 0) + shard.data.nbytes
    return max(held.values())


def tiles_on(k: int, budget: float) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((240, 24)).astype(np.float32), rng.standard_normal((240, 2)).astype(np.float32)
    tiles = SymmetricTiles.build(block, diagonal, X, budget=budget, devices=jax.devices()[:k], rows=ROWS)
    dense = (1 + X.astype(np.float64) @ X.T) ** 2
    dense[np.diag_indices_from(dense)] = 5 + (X.astype(np.float64) ** 2).sum(axis=1)
    error = np.abs(np.asarray(tiles @ jnp.asarray(v)) - dense @ v).max() / np.abs(dense @ v).max()
    return {
        "error": float(error),
        "devices": len(tiles.rows.devices()),
        "held": on_each_device(tiles),
        "told": tiles.bytes_per_device,
        "everything": tiles.everything_kept,
    }


def gram_on(k: int) -> dict[str, Any]:
    """First used inside jit, where tiles must not become tracers; then solved."""
    rng = np.random.default_rng(0)
    X, b = rng.standard_normal((40, 4)), rng.standard_normal((40, 2))
    H, dense = Gram(relu_hidden, X, devices=jax.devices()[:k]), Gram(relu_hidden, X).dense()
    product = jax.jit(lambda v: H @ v)(jnp.asarray(b, jnp.float32))
    solved = H.solve(b, method="conjugate gradients")
    return {
        "error": float(np.abs(np.asarray(product) - dense @ b).max() / np.abs(dense @ b).max()),
        "residual": float((np.linalg.norm(dense @ solved.value - b, axis=0) / np.linalg.norm(b, axis=0)).max()),
        "told": solved.residual,
        "converged": solved.converged,
        "method": solved.method,
    }


def checked_on(k: int) -> dict[str, Any]:
    """The float64 pass of a solve's check: its result, the devices at work, and the most rows on one of them."""
    fetched: dict[jax.Device, int] = {}
    fetch = stream._fetch

    def counted(groups: list[np.ndarray], device: jax.Device, group: int) -> jax.Array:
        fetched[device] = fetched.get(device, 0) + 1
        return fetch(groups, device, group)

    stream._fetch, stream.rows_per_tile = counted, lambda: ROWS
    rng = np.random.default_rng(0)
    X, x = rng.standard_normal((240, 24)), rng.standard_normal((240, 2))
    caches: list[Any] = []
    begin = stream.Pass.__init__

    def seen(self: Any, *args: Any) -> None:
        begin(self, *args)
        caches.extend(one for of_device in self._rows for one in of_device[:1])

    stream.Pass.__init__ = seen
    product, bound = stream.product_with_error(
        lambda A, B: (block(A, B), 1e-13 * jnp.abs(block(A, B))),
        lambda A: (diagonal(A), 1e-13 * diagonal(A)),
        X, x, devices=jax.devices()[:k],
    )  # fmt: skip
    floor = stream.series_floor(lambda u: jnp.exp(u), 1 / np.cumprod(np.maximum(np.arange(30.0), 1)),
                                X / np.linalg.norm(X, axis=1, keepdims=True), devices=jax.devices()[:k])  # fmt: skip
    stream._fetch, stream.Pass.__init__ = fetch, begin
    dense = (1 + X @ X.T) ** 2
    dense[np.diag_indices_from(dense)] = 5 + (X**2).sum(axis=1)
    return {
        "within": bool((np.abs(product - dense @ x) <= bound).all()),
        "devices": len(fetched),
        "groups": max(cache.cache_info().currsize for cache in caches),
        "floor": floor,
    }


if __name__ == "__main__":
    counts = (1, 2, 3, 4, 8)
    found = {f"{kept} {k}": tiles_on(k, budget) for kept, budget in (("all", np.inf), ("none", 0.0)) for k in counts}
    print(json.dumps(found | {"gram": gram_on(3), "checked": {k: checked_on(k) for k in counts}}))
