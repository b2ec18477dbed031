"""Run by test_sharded.py in a process of its own, with eight CPU devices: prints what it measured, as JSON."""

import json

import jax
import jax.numpy as jnp
import numpy as np

from offtangent.kernels import Gram, relu_hidden
from offtangent.linalg import SymmetricTiles

ROWS = 30  # 240 inputs: eight groups on one device, 36 tiles


def on_each_device(tiles: SymmetricTiles) -> int:
    """The most bytes that any one device holds of the inputs and the kept tiles, by JAX's own account."""
    held: dict[object, int] = {}
    for array in (tiles.X, tiles.kept):
        for shard in array.addressable_shards:
            held[shard.device] = held.get(shard.device, 0) + shard.data.nbytes
    return max(held.values())


def main() -> None:
    rng = np.random.default_rng(0)
    X, v = rng.standard_normal((240, 24)).astype(np.float32), rng.standard_normal((240, 2)).astype(np.float32)
    found: dict[str, dict[str, object]] = {"tiles": {}, "gram": {}}
    for kept, budget in (("all", np.inf), ("none", 0), ("some", 12 * 15 * 15 * 4)):
        for k in (1, 2, 3, 4, 8):
            devices = jax.devices()[:k]
            tiles = SymmetricTiles.build(relu_hidden, relu_hidden.diag, X, budget=budget, devices=devices, rows=ROWS)
            found["tiles"][f"{kept} {k}"] = {
                "product": np.asarray(tiles @ jnp.asarray(v)).tolist(),
                "devices": len(tiles.X.devices()),
                "held": on_each_device(tiles),
                "told": tiles.bytes_per_device,
                "kept": tiles.kept.nbytes // k,
                "everything": tiles.everything_kept,
            }
    small, b = rng.standard_normal((40, 4)), rng.standard_normal((40, 2))
    dense = Gram(relu_hidden, small).dense()
    for k in (3, 8):
        H = Gram(relu_hidden, small, devices=jax.devices()[:k])
        solved, bracket = H.solve(b, method="conjugate gradients"), H.inverse_quadratic(b[:, 0], method="conjugate gradients")
        truth = float(b[:, 0] @ np.linalg.solve(dense, b[:, 0]))
        found["gram"][str(k)] = {
            "product": float(np.abs(np.asarray(H @ jnp.asarray(b, jnp.float32)) - dense @ b).max() / np.abs(dense @ b).max()),
            "residual": float(np.linalg.norm(dense @ solved.value - b, axis=0).max() / np.linalg.norm(b, axis=0).min()),
            "converged": solved.converged,
            "method": solved.method,
            "inside": bracket.lower <= truth <= bracket.upper,
            "certified": bracket.certified,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
