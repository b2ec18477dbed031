"""Peak memory of one product H v at n = 32 000, d = 784, told to keep no tiles: at most 0.6 GB above what was there.

    python benchmarks/memory.py [n]

The matrix itself would take 4.1 GB in float32.
"""

import sys
import threading
import time

import jax
import numpy as np

from offtangent.kernels import Gram, relu_hidden

LIMIT = 0.6e9


def resident() -> int:
    """Bytes of this process that lie in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Peak(threading.Thread):
    """Watches the resident memory until told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.highest, self.going = resident(), True

    def run(self) -> None:
        while self.going:
            self.highest = max(self.highest, resident())
            time.sleep(0.002)


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 32_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 784), np.float32)
    v = rng.standard_normal(n).astype(np.float32)
    H = Gram(relu_hidden, X, budget=0)
    jax.devices()
    before, peak = resident(), Peak()
    peak.start()
    start = time.perf_counter()
    (H @ v).block_until_ready()
    taken = time.perf_counter() - start
    peak.going = False
    peak.join()
    used = peak.highest - before
    print(
        f"H @ v, n={n}: {used / 1e9:.2f} GB above the {before / 1e9:.2f} GB before, in {taken:.1f} s with compilation; "
        f"limit {LIMIT / 1e9:.1f} GB; the matrix: {4 * n * n / 1e9:.1f} GB"
    )
    return int(used > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
