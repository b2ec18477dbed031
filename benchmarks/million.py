"""A million points on one GPU: seconds per product over the GEMM floor, and the residual reached in ten minutes.

    python benchmarks/million.py [n] [minutes]

n points on the unit sphere in 784 dimensions, H∞ + 0.1·I, labels ±1 by a coin. The matrix, 4 TB in float32, is never
held: each symmetric tile is made, used twice, and dropped. The GEMM floor is the bare product of half the tiles'
directions in the same precision, nothing else. The residual is measured in float64.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from offtangent.kernels import Gram, relu_hidden
from offtangent.kernels.solves import Iteration, exact_product

DIMENSION, RIDGE = 784, 0.1


def seconds(f, *args) -> float:
    jax.block_until_ready(f(*args))
    start = time.perf_counter()
    jax.block_until_ready(f(*args))
    return time.perf_counter() - start


def floor(tiles, precision: str | None) -> float:
    """Seconds for the inner products of all tiles on and above the diagonal, and nothing else, from a part of them."""
    directions, _ = tiles.rows
    groups = directions.shape[1]
    part = min(groups, 16)

    @jax.jit
    def gemms(X):
        def one(total, i):
            product = jnp.matmul(X[i], X[(i + 1) % part].T, precision=precision or "highest")
            return total + product[0, 0], None

        return jax.lax.scan(one, jnp.zeros((), X.dtype), jnp.arange(part))[0]

    return seconds(gemms, directions[0, :part]) / part * groups * (groups + 1) / 2


def tell(text: str, said: list[str] = [""]) -> None:  # noqa: B006
    """Every tenth step of the iteration, every tenth of a pass, once."""
    if ("%" not in text or text.endswith("0%")) and text != said[0] and not ("step" in text and "0, res" not in text):
        said[0] = text
        print(f"  {text}", flush=True)


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    limit = 60 * float(sys.argv[2]) if len(sys.argv) > 2 else 600.0
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, DIMENSION), np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X = X.astype(np.float64)
    y = rng.choice([-1.0, 1.0], n)
    print(f"n={n}, d={DIMENSION}, ridge={RIDGE}, device: {jax.devices()[0].device_kind}", flush=True)
    v = jnp.asarray(y, jnp.float32)
    for precision in (None, "tensorfloat32"):
        H = Gram(relu_hidden, X, RIDGE, budget=0, precision=precision)
        operator = H.operator()
        product = jax.jit(lambda operator, v: operator @ v)
        taken, least = seconds(product, operator, v), floor(operator.tiles, precision)
        name = precision or "float32 (highest)"
        print(f"product, {name}: {taken:.2f} s, {taken / least:.2f} × the GEMM floor of {least:.2f} s", flush=True)
    start = time.perf_counter()
    run = Iteration(H, tell)
    print(f"preconditioner: {time.perf_counter() - start:.1f} s", flush=True)
    x, r = np.zeros((n, 1)), y[:, None]
    while time.perf_counter() - start < limit:
        step, _ = run.correct(r, 1e-2)
        checked = time.perf_counter()
        now = y[:, None] - exact_product(H, x + step, tell)[0]
        checked = time.perf_counter() - checked
        residual = float(np.linalg.norm(now) / np.linalg.norm(y))
        if residual > float(np.linalg.norm(r) / np.linalg.norm(y)):
            print(f"no further: the next correction would end at {residual:.1e}")
            break
        x, r = x + step, now
        taken = time.perf_counter() - start
        print(
            f"residual {residual:.1e} (float64) after {run.iterations} products in TF32 and {taken:.0f} s, "
            f"of which {checked:.0f} s for the last check",
            flush=True,
        )
        if residual < 1e-6:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
