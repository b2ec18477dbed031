"""The float32 matrix H∞ and products with it over the bare GEMM of half the matrix, in CPU time of one core.

    env -u OPENBLAS_CORETYPE taskset -c 0 python benchmarks/half.py [n ...]

n inputs in 784 dimensions; the sides in turns, the best of seven rounds, without compiling. The limit is the half
GEMM, XLA's or BLAS's, whichever is faster. `Gram.dense(np.float32)` is at most 1.2 × that, a product that keeps no
tiles 1.1 × that, and ten vectors at once 1.1 × one.
"""

import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from offtangent.kernels import Gram, relu_hidden

DIMENSION, ROUNDS, SIZES = 784, 7, (8192, 16_000)
DENSE, PRODUCT, TEN = 1.2, 1.1, 1.1


@jax.jit
def gemm(X):
    return X[: len(X) // 2] @ X.T


def measure(n: int) -> bool:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, DIMENSION)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    on_device, H = jnp.asarray(X), Gram(relu_hidden, X, budget=0)
    one, ten = (jnp.asarray(rng.standard_normal((n, k)), jnp.float32) for k in (1, 10))
    contenders = {
        "half GEMM, XLA": lambda: gemm(on_device).block_until_ready(),
        "half GEMM, BLAS": lambda: X[: n // 2] @ X.T,
        "dense": lambda: H.dense(np.float32),
        "H @ v": lambda: (H @ one).block_until_ready(),
        "H @ ten": lambda: (H @ ten).block_until_ready(),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(ROUNDS + 1):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            if turn:  # the first compiles
                taken[name].append(time.process_time() - start)
    best = {name: min(times) for name, times in taken.items()}
    least = min(best["half GEMM, XLA"], best["half GEMM, BLAS"])
    print(f"n={n}, d={DIMENSION}, float32, CPU time")
    for name in taken:
        print(f"  {name:<16} {best[name]:6.2f} s, over the limit {best[name] / least:.2f}")
    ratios = best["dense"] / least, best["H @ v"] / least, best["H @ ten"] / best["H @ v"]
    print("  dense {:.2f}, H @ v {:.2f}, ten over one {:.2f}; limits".format(*ratios), DENSE, PRODUCT, TEN)
    return all(ratio <= limit for ratio, limit in zip(ratios, (DENSE, PRODUCT, TEN), strict=True))


def main() -> int:
    if "OPENBLAS_CORETYPE" in os.environ:
        sys.exit("OPENBLAS_CORETYPE is set, which may make BLAS slower than it is: unset it.")
    reached = [measure(n) for n in (tuple(map(int, sys.argv[1:])) or SIZES)]
    return int(not all(reached))


if __name__ == "__main__":
    sys.exit(main())
