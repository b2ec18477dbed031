"""Predictions at 1000 test images after 10, 100 and 1000 steps from n = 6000 MNIST images, against neural-tangents.

    OFFTANGENT_DATA=... python benchmarks/predictions.py [n]

Both train the two layers of a relu network of infinite width, from labels odd against even. neural-tangents goes
through a dense eigh in its float32 and flows for the time ηt where ours takes t steps of η; ours works in float64 on
products with the matrix. Each is timed from the images to the predictions, on its second run. What each is off by is
measured against all eigenpairs in float64, of steps and of the flow.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peer

from offtangent import data
from offtangent.kernels.closed_forms import relu_both
from offtangent.linalg import Spectrum
from offtangent.theory.arora.predictions import gradient_descent

TESTS, STEPS = 1000, np.array([10, 100, 1000])

PEER = """
import json, sys, time
import jax, numpy as np
from neural_tangents import predict, stax
given = np.load(sys.argv[1])
X, y, new = (given[name] for name in ("X", "y", "new"))
_, _, kernel = stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1))
kernel = jax.jit(kernel, static_argnames="get")
unit = float(kernel(X[:1], X[:1], "ntk")[0, 0]) / float(given["first"])  # its kernels are scaled in another way

def run():
    f = predict.gradient_descent_mse_ensemble(kernel, X, y)
    # its loss is the mean of squares, which makes its time n times as long
    times = given["times"] * len(X) / unit
    return np.stack([np.asarray(f(t=t, x_test=new, get="ntk", compute_cov=False)) for t in times])

run()
start = time.perf_counter()
found = run()
taken = time.perf_counter() - start
np.save(sys.argv[2], found[..., 0])
print(json.dumps(taken))
"""


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 6_000
    X, digits = data.mnist(samples=n + TESTS)
    X, new, y = X[:n], X[n:], np.where(digits[:n] % 2 == 1, 1.0, -1.0)
    for _ in range(2):
        start = time.perf_counter()
        descent = gradient_descent(relu_both, X, y)
        ours = descent.predict(new, STEPS).mean
        taken = time.perf_counter() - start
    times = descent.rate * STEPS
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npy"
        single = {"X": X.astype(np.float32), "y": y[:, None].astype(np.float32), "new": new.astype(np.float32)}
        np.savez(given, first=descent.matrix[0, 0], times=times, **single)
        slow = peer.run(PEER, str(given), str(found))
        theirs = np.load(found)
    spectrum, cross = Spectrum.of(descent.matrix), relu_both.exact(new, X)
    gains = {
        "steps": [(1 - (1 - descent.rate * spectrum.values) ** t) / spectrum.values for t in STEPS],
        "flow": [-np.expm1(-spectrum.values * t) / spectrum.values for t in times],
    }
    along = spectrum.vectors.T @ y
    truth = {name: np.stack([cross @ (spectrum.vectors @ (g * along)) for g in them]) for name, them in gains.items()}
    off, theirs_off = (float(np.abs(a - b).max()) for a, b in ((ours, truth["steps"]), (theirs, truth["flow"])))
    print(f"predictions at {TESTS} images after {STEPS.tolist()} steps, n={n}")
    print(f"offtangent             {taken:7.2f} s   off by {off:.1e}")
    print(f"neural-tangents 0.6.5  {slow:7.2f} s   off by {theirs_off:.1e}")
    print(f"ours / neural-tangents = {taken / slow:.2f}")
    return int(taken > slow or off > 1e-6)


if __name__ == "__main__":
    sys.exit(main())
