"""What XLA's deterministic operations cost on a GPU, and what they give: do two runs of one training agree bit by bit?

    python benchmarks/deterministic.py

Each side runs in processes of its own, in turns, twice: the same cells of `paper` profiles with fewer epochs, with
`--xla_gpu_deterministic_ops` on and off. Printed are the seconds of a cell once compiled, and whether the numbers of
the two processes, and of the two calls in one, are the same.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

FLAG = "--xla_gpu_deterministic_ops"
ROUNDS = 2


def cells():
    """Trainings whose results were seen to differ between two runs, and one of Figure 2's."""
    from offtangent.papers.allen_zhu_li import fig2, hierarchy, norms

    (descent,) = [
        cell
        for cell in norms.cells(norms.PROFILES["paper"])
        if getattr(cell, "width", 0) == 1000 and getattr(cell, "epochs", 0) == 400
    ]
    together = hierarchy.cells(hierarchy.PROFILES["paper"])[0]
    points = [cell for cell in fig2.cells(fig2.PROFILES["paper"]) if cell.method == "3resnet" and cell.samples == 1000]
    yield "norms, 1000 neurons", norms, replace(descent, epochs=100)
    yield "hierarchy, together", hierarchy, replace(together, epochs=60, refined=False)
    yield "fig2, the ResNet", fig2, replace(points[0], epochs=100, refined=False)


def measure() -> None:
    """In a process of its own: each cell twice, seconds of the second call and the numbers of both as hexadecimals."""
    for name, experiment, cell in cells():
        told = []
        for _ in range(2):
            start = time.perf_counter()
            found = experiment.run(cell)
            told.append(
                {
                    "seconds": time.perf_counter() - start,
                    "numbers": {
                        key: np.ascontiguousarray(one.values).tobytes().hex() for key, one in found.data_vars.items()
                    },
                    "means": {
                        key: float(np.nanmean(one.values))
                        for key, one in found.data_vars.items()
                        if one.dtype.kind == "f"
                    },
                }
            )
        print(json.dumps({"name": name, "calls": told}), flush=True)


def main() -> None:
    found: dict[str, list[list[dict]]] = {"true": [], "false": []}
    for _ in range(ROUNDS):
        for side, runs in found.items():
            flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}={side}".strip()
            came = subprocess.run(
                [sys.executable, __file__, "measure"],
                env={**os.environ, "XLA_FLAGS": flags},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            runs.append([json.loads(line) for line in came.stdout.splitlines()])
            print(side, [[round(call["seconds"], 2) for call in one["calls"]] for one in runs[-1]], flush=True)
    for at, one in enumerate(found["true"][0]):
        print(one["name"])
        for side, runs in found.items():
            calls = [run[at]["calls"] for run in runs]
            seconds = min(call[1]["seconds"] for call in calls)
            within = all(first["numbers"] == second["numbers"] for first, second in calls)
            across = all(call[0]["numbers"] == calls[0][0]["numbers"] for call in calls)
            print(f"  deterministic {side:<5} {seconds:7.2f} s; same in one process {within}, in two {across}")
            differing = {
                key: [call[0]["means"][key] for call in calls]
                for key in calls[0][0]["means"]
                if len({call[0]["numbers"][key] for call in calls}) > 1
            }
            for key, means in differing.items():
                print(f"    {key}: {means}")


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else main()
