"""Deep kernels against neural-tangents 0.6.5 in float64: relu, erf, gelu, sin; depth 1, depth 3, a residual block.

    python benchmarks/agreement.py

Same weight and bias scales, NTK and NNGP. Passes when no entry differs by more than 10⁻¹² of itself.
"""

import sys

import numpy as np
import peer

from offtangent.kernels import deep

LIMIT = 1e-12

PEER = """
import json
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from neural_tangents import stax
X = np.random.default_rng(0).standard_normal((6, 5))
layers = {"relu": stax.Relu(), "erf": stax.Erf(), "gelu": stax.Gelu(), "sin": stax.Sin()}
dense = lambda: stax.Dense(8, W_std=1.3, b_std=0.4)
found = []
for name, layer in layers.items():
    block = stax.serial(stax.FanOut(2), stax.parallel(stax.Identity(), stax.serial(layer, dense())), stax.FanInSum())
    nets = [(depth, False, [dense(), layer] * depth) for depth in (1, 3)] + [(2, True, [dense(), block, layer])]
    for depth, residual, hidden in nets:
        kernels = stax.serial(*hidden, dense())[2](X, None, ("ntk", "nngp"))
        for kind in ("ntk", "nngp"):
            found.append([name, depth, residual, kind, np.asarray(getattr(kernels, kind)).tolist()])
print(json.dumps(found))
"""


def main() -> int:
    X = np.random.default_rng(0).standard_normal((6, 5)) / np.sqrt(5)  # the peer divides inner products by dimensions
    worst = 0.0
    for activation, depth, residual, kind, theirs in peer.run(PEER):
        kernel = deep(depth, activation=activation, weight=1.3, bias=0.4, residual=residual, kind=kind)
        off = float(np.abs(kernel.exact(X) / np.array(theirs) - 1).max())
        worst = max(worst, off)
        print(f"{activation:<5} depth {depth}{', residual' if residual else '':<10} {kind:<5} {off:.1e}")
    print(f"largest relative difference {worst:.1e}, limit {LIMIT:g}")
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
