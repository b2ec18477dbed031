"""The 100 largest eigenpairs of H∞ at n = 20 000 MNIST images, against dense eigh of the same matrix.

    OFFTANGENT_DATA=... python benchmarks/eigenpairs.py [n]

Ours streams over tiles; its residuals are measured in float64. The peer is LAPACK's dense solver in float64 (on a GPU:
cuSOLVER's), given the finished matrix, first for all eigenpairs, as one calls it by default.
"""

import sys
import time

import numpy as np

from offtangent import data
from offtangent.kernels import Gram, relu_hidden
from offtangent.linalg import Spectrum

K = 100


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    X, _ = data.mnist(samples=n)
    start = time.perf_counter()
    Gram(relu_hidden, X).eigh(K)  # compiles
    first = time.perf_counter() - start
    start = time.perf_counter()
    ours = Gram(relu_hidden, X).eigh(K)
    taken = time.perf_counter() - start
    residuals = ours.residuals if ours.residuals is not None else np.zeros(K)
    print(
        f"ours: {K} eigenpairs of n={n} in {taken:.1f} s ({first:.1f} s with compilation), "
        f"residuals up to {residuals.max() / ours.values[0]:.1e} λ₁",
        flush=True,
    )
    matrix = Gram(relu_hidden, X).dense()
    start = time.perf_counter()
    dense = Spectrum.of(matrix)
    slow = time.perf_counter() - start
    gap = float(np.abs(ours.values / dense.values[:K] - 1).max())
    print(
        f"dense eigh: {slow:.1f} s; ours / dense = {taken / slow:.3f}; largest relative difference of values {gap:.1e}"
    )
    return int(taken > slow or gap > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
