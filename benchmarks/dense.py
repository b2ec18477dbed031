"""The dense H∞ of n = 16 000 inputs in 784 dimensions, float32: ours over the plain formula, the limit and the peers.

    python benchmarks/dense.py [n]

One run, taken in turns. Ours is at most 0.6 × the plain unsymmetric jitted formula. The limit is the bare GEMM of half
the matrix. neural-tangents runs in its own environment (peer.py); scikit-learn has no such kernel, so its radial one
stands in: a GEMM and one function of each entry.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import peer
from sklearn.metrics.pairwise import rbf_kernel

from offtangent.kernels import Gram, relu_hidden

LIMIT, DIMENSION, ROUNDS = 0.6, 784, 3

PEER = """
import json, sys, time
import jax, numpy as np
from neural_tangents import stax
n, d, rounds = map(int, sys.argv[1:])
X = np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)
X /= np.linalg.norm(X, axis=1, keepdims=True)
_, _, kernel = stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))
f = jax.jit(lambda X: kernel(X, None, "ntk"))
X = jax.numpy.asarray(X)
f(X).block_until_ready()
taken = []
for _ in range(rounds):
    start = time.perf_counter()
    f(X).block_until_ready()
    taken.append(time.perf_counter() - start)
print(json.dumps(min(taken)))
"""


@jax.jit
def plain(X):
    cosine = jnp.clip(X @ X.T, -1, 1)
    return cosine * (jnp.pi - jnp.arccos(cosine)) / (2 * jnp.pi)


@jax.jit
def gemm(X):
    return X[: len(X) // 2] @ X.T


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 16_000
    X = np.random.default_rng(0).standard_normal((n, DIMENSION)).astype(np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    H, on_device = Gram(relu_hidden, X), jnp.asarray(X)
    worst = float(np.abs(H.dense(np.float32)[:200] - relu_hidden.exact(X[:200].astype(float), X.astype(float))).max())
    contenders = {
        "offtangent": lambda: H.dense(np.float32),
        "plain formula, jitted": lambda: plain(on_device).block_until_ready(),
        "GEMM of half the matrix": lambda: gemm(on_device).block_until_ready(),
        "scikit-learn, radial kernel": lambda: rbf_kernel(X),
    }
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(ROUNDS + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            if turn:  # the first compiles
                taken[name].append(time.perf_counter() - start)
    best = {name: min(times) for name, times in taken.items()}
    best["neural-tangents 0.6.5"] = peer.run(PEER, str(n), str(DIMENSION), str(ROUNDS))
    ours = best["offtangent"]
    print(f"dense H∞, n={n}, d={DIMENSION}, float32; largest error of ours against float64: {worst:.1e}")
    for name, seconds in best.items():
        print(f"{name:<28} {seconds:7.2f} s   ours / this = {ours / seconds:.2f}")
    ratio = ours / best["plain formula, jitted"]
    print(f"ours / plain = {ratio:.2f}, limit {LIMIT}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
