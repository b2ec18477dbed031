"""The tangent kernel of networks at their own width, next to neural-tangents' three ways and to torch.func.

    taskset -c 0 python benchmarks/tangent_peers.py [interpreter with torch==2.13.0]

CPU time of one pinned core, without compiling, the best call of all turns: ours, the peer, ours, and so on, each turn
a few calls. neural-tangents runs in its own pinned environment, its three ways once each, and then its best again in
every turn. torch.func's `vmap(jacrev)` and product of Jacobians runs with PyTorch on one thread where an interpreter
is given; of each network it has the same sizes, not the same weights.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import peer
from tangent_networks import NETWORKS

from offtangent.kernels import empirical_ntk

TURNS, CALLS = 4, 5
WAYS = ("STRUCTURED_DERIVATIVES", "JACOBIAN_CONTRACTION", "NTK_VECTOR_PRODUCTS")
SLOW = 5.0  # seconds of a call that is not repeated

PEER = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import jax
import neural_tangents as nt
sys.path.insert(0, sys.argv[1])
from tangent_networks import NETWORKS
f, params, X = NETWORKS[sys.argv[2]]()
way = nt.NtkImplementation[sys.argv[3]]
kernel = jax.jit(nt.empirical_ntk_fn(f, trace_axes=(), vmap_axes=0, implementation=way))
kernel(X, None, params).block_until_ready()
taken = []
for _ in range(int(sys.argv[4])):
    start = time.process_time()
    kernel(X, None, params).block_until_ready()
    taken.append(time.process_time() - start)
    if taken[-1] > float(sys.argv[5]):
        break
print(json.dumps(min(taken)))
"""

TORCH = """
import json, sys, time
import torch
from torch import nn
from torch.func import functional_call, jacrev, vmap
torch.set_num_threads(1)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Conv2d(32, 32, 3, padding=1, bias=False) for _ in range(2))
    def forward(self, x):
        return x + self.b(torch.relu(self.a(torch.relu(x))))
class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))
def perceptron(k):
    layers = nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, k)
    return nn.Sequential(*layers), torch.randn(128, 784)
def cnn():
    layers = [part for a, b in ((3, 32), (32, 64), (64, 64)) for part in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]
    return nn.Sequential(*layers, Mean(), nn.Linear(64, 10)), torch.randn(16, 3, 32, 32)
def residual():
    first = nn.Conv2d(3, 32, 3, padding=1, bias=False)
    return nn.Sequential(first, *(Block() for _ in range(3)), Mean(), nn.Linear(32, 10, bias=False)), \
        torch.randn(16, 3, 16, 16)
net, X = [lambda: perceptron(1), lambda: perceptron(10), cnn, residual][int(sys.argv[1])]()
params = {name: one.detach() for name, one in net.named_parameters()}
def kernel():
    J = vmap(jacrev(lambda p, x: functional_call(net, p, (x[None],))[0]), (None, 0))(params, X)
    J = [leaf.flatten(2) for leaf in J.values()]
    return sum(torch.einsum("naf,mbf->nmab", leaf, leaf) for leaf in J)
kernel()
taken = []
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    kernel()
    taken.append(time.process_time() - start)
    if taken[-1] > float(sys.argv[3]):
        break
print(json.dumps(min(taken)))
"""


def ours(kernel) -> float:
    taken = []
    for _ in range(CALLS):
        start = time.process_time()
        kernel.dense()
        taken.append(time.process_time() - start)
    return min(taken)


def theirs(name: str, way: str) -> float:
    return peer.run(PEER, str(Path(__file__).parent), name, way, str(CALLS), str(SLOW))


def with_torch(interpreter: str, place: int) -> float:
    words = [interpreter, "-c", TORCH, str(place), str(CALLS), str(SLOW)]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    for place, (name, make) in enumerate(NETWORKS.items()):
        kernel = empirical_ntk(*make())
        kernel.dense()
        mine = ours(kernel)
        first = {way: theirs(name, way) for way in WAYS}
        best = min(first, key=lambda way: first[way])
        found, torch = first[best], float("inf")
        for _ in range(TURNS):
            mine = min(mine, ours(kernel))
            found = min(found, theirs(name, best))
            if sys.argv[1:]:
                torch = min(torch, with_torch(sys.argv[1], place))
        ways = ", ".join(f"{way.lower()} {1e3 * seconds:.4g} ms" for way, seconds in first.items())
        print(
            f"{name}: {1e3 * mine:.2f} ms; over neural-tangents' best, {best.lower()} at {1e3 * found:.2f} ms, "
            f"{mine / found:.2f}; over torch.func at {1e3 * torch:.4g} ms {mine / torch:.3g} (its ways once: {ways})",
            flush=True,
        )


if __name__ == "__main__":
    main()
