"""What a tangent kernel takes beside its result, over the budget that it was given: at most 1.

    python benchmarks/tangent_memory.py

The largest resident memory of a second call above what is left after the first, which has compiled all; each budget in
a process of its own. A CNN of 32, 64, 64 channels on 32 × 32 × 3 with ten outputs, 96 samples.
"""

import ctypes
import gc
import subprocess
import sys

from memory import Peak, resident
from tangent_networks import NETWORKS, inputs

from offtangent.kernels import empirical_ntk

BUDGETS = 128, 256, 512  # MiB


def measure(budget: int) -> int:
    name = next(name for name in NETWORKS if name.startswith("CNN"))
    f, params, _ = NETWORKS[name]()
    kernel = empirical_ntk(f, params, inputs(96, 32, 32, 3), budget=budget * 2**20)
    kernel.dense()
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # or else what the first call freed would count as taken already
    before, peak = resident(), Peak()
    peak.start()
    kernel.dense()
    peak.going = False
    peak.join()
    share = (peak.highest - before) / (budget * 2**20)
    print(f"budget {budget} MiB: {share:.2f} of it", flush=True)
    return int(share > 1)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(measure(int(sys.argv[1])))
    sys.exit(sum(subprocess.run([sys.executable, __file__, str(one)], check=False).returncode for one in BUDGETS))
