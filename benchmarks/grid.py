"""Figure 2's grid of Allen-Zhu & Li as one program, next to a Python loop over its networks, and next to PyTorch.

    python benchmarks/grid.py                   # or, to see that it works, at a small size:
    python benchmarks/grid.py small

Three rates, three decays and three seeds are 27 networks of 1000 neurons, batches of 50, momentum, weight decay, for
the paper's target with d = 30 and eight outputs. One program: what `offtangent run allen_zhu_li/fig2` does, with
shuffles, the loss of every step and every network, and the looks of the host in between. The loop: the same function
for a grid of one network, times the number of networks. PyTorch: one network after the other, eager
and with the loss and its gradient compiled, and its own fused step; and, written for this comparison, all 27 stacked in
batched products and compiled. Compiling is left out everywhere, and a step is timed for one network of a loop, since
all have one shape. PyTorch's have their samples on the device, a constant rate, and record nothing.

The floors are counted by hand and timed with a bare product and a bare copy: 6 operations an entry of the matrices and
sample; weights, momentum and gradient, and the neurons' values kept for the gradient, each written and read once.
"""

import itertools
import sys
import time
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from clock import bare

from offtangent.papers.allen_zhu_li import _methods
from offtangent.training import train
from offtangent.training.grids import Bounded, grid_sgd

SMALL = sys.argv[1:] == ["small"]
WIDTH, SAMPLES, BLOCKS, SEEDS = (50, 200, 3, 2) if SMALL else (1000, 2000, 8, 3)
BLOCK = 256  # steps between two looks of the host
CHECKED = 10  # steps whose losses are compared
PRECISION, THEIRS = "tensorfloat32", "high"  # the experiment's at paper size; on a CPU both are float32
FUNCTION = _methods.target("version 1", _methods.ALPHA, 1.0)


@dataclass
class Watch:
    """The host's looks at a run."""

    seen: list[tuple[int, float]] = field(default_factory=list)

    def look(self, done: int, steps: int) -> None:  # noqa: ARG002
        self.seen.append((done, time.perf_counter()))

    @property
    def seconds(self) -> float:
        """Of a step, the best of the blocks after the first, which compiles, and before the last, which is shorter."""
        whole = itertools.pairwise(self.seen[:-1])
        return min((after[1] - before[1]) / (after[0] - before[0]) for before, after in whole)


def problems(seeds: range) -> list[_methods.Problem]:
    return [_methods.Problem(FUNCTION, SAMPLES, seed) for seed in seeds]


@dataclass
class Grid:
    """Figure 2's networks of one kind, for these rates, decays and seeds."""

    name: str
    rates: tuple[float, ...]
    decays: tuple[float, ...]
    seeds: range

    def losses(self, steps: int, *, batch: int | None = None, watch: Watch | None = None) -> np.ndarray:
        """Of so many steps, on batches, or on the first batch's samples alone. Axes step, rate, decay, seed."""
        nets, rows = _methods.together(self.name, problems(self.seeds), WIDTH)
        start = eqx.filter_vmap(lambda net: net.origin)(nets)
        sizes = (len(self.rates), len(self.decays))
        X, y = (one[: SAMPLES if batch else _methods.BATCH] for one in rows["train"])
        return train(
            Bounded(_methods.HalfDistances(nets), _methods.LOST * _methods.sizes(FUNCTION)[1]),
            jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*sizes, *leaf.shape)), start), X, y, steps=steps,
            optimiser=grid_sgd(*np.meshgrid(self.rates, self.decays, indexing="ij"), _methods.initial(nets)),
            batch=batch, key=jax.random.key(0), precision=PRECISION, progress=None if watch is None else watch.look,
        ).losses[:-1]  # fmt: skip

    def seconds(self) -> float:
        """Of a step of all its networks."""
        watch = Watch()
        self.losses(BLOCKS * BLOCK, batch=_methods.BATCH, watch=watch)
        return watch.seconds


class Torch:
    """The same networks in PyTorch, stacked along a first axis, on the same device."""

    def __init__(self, torch, name: str, rates: np.ndarray, decays: np.ndarray, seeds: list[int]) -> None:
        self.torch, self.name = torch, name
        self.device = "cpu" if jax.default_backend() == "cpu" else "cuda"
        torch.set_float32_matmul_precision(THEIRS)
        nets, rows = _methods.together(name, problems(range(max(seeds) + 1)), WIDTH)
        self.weights = [self.put(np.asarray(leaf)[seeds]) for leaf in _methods.initial(nets)]
        for leaf in self.weights:
            leaf.requires_grad_(True)
        self.A = self.put(np.asarray(nets.A)[seeds]).mT
        self.X, self.y = (self.put(np.moveaxis(one, 1, 0)[seeds]) for one in rows["train"])
        self.rates, self.decays = (self.put(one)[:, None, None] for one in (rates, decays))
        self.momenta = [torch.zeros_like(leaf) for leaf in self.weights]

    def put(self, array: np.ndarray):
        return self.torch.tensor(np.asarray(array), dtype=self.torch.float32, device=self.device)

    def loss(self, W, other, A, X, y):
        """½ E‖out − y‖² of each network."""
        relu = self.torch.relu
        hidden = relu(X @ W[:, :-1] + W[:, -1:])
        if self.name == "3resnet":
            hidden = hidden + relu((hidden @ A) @ other[:, :-1] + other[:, -1:])
        elif self.name == "3layer":
            hidden = relu(hidden @ other[:, :-1] + other[:, -1:])
        return 0.5 * (hidden @ A - y).square().sum(-1).mean(-1)

    def losses(self, loss, part):
        W, *others = self.weights
        return loss(W, others[0] if others else None, self.A, self.X[:, part], self.y[:, part])

    def move(self, gradients) -> None:
        """Momentum and weight decay, each network with its own rate: v ← 0.9 v + ∇L + λW, W ← W − ηv."""
        for W, v, g in zip(self.weights, self.momenta, gradients, strict=True):
            v.mul_(0.9).add_(g + self.decays * W)
            W.sub_(self.rates * v)

    def step(self, loss, move, part):
        values = self.losses(loss, part)
        gradients = self.torch.autograd.grad(values.sum(), self.weights)
        with self.torch.no_grad():
            move(gradients)
        return values.detach()

    def wait(self) -> None:
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def seconds(self, loss, move, steps: int, rounds: int = 4) -> float:
        """Of a step, with its batch gathered from a shuffle on the device; the best of some rounds."""
        order = self.torch.randperm(SAMPLES, device=self.device)
        parts = order[: SAMPLES // _methods.BATCH * _methods.BATCH].reshape(-1, _methods.BATCH)
        taken = []
        for number in range(rounds + 1):  # the first compiles
            self.wait()
            start = time.perf_counter()
            for k in range(steps):
                self.step(loss, move, parts[k % len(parts)])
            self.wait()
            if number:
                taken.append((time.perf_counter() - start) / steps)
        return min(taken)


def fused(peer: Torch):
    """PyTorch's own optimiser, in one kernel, for one network."""
    kernel = peer.torch.optim.SGD(
        peer.weights, lr=float(peer.rates.item()), momentum=0.9, weight_decay=float(peer.decays.item()), fused=True
    )

    def move(gradients) -> None:
        for W, g in zip(peer.weights, gradients, strict=True):
            W.grad = g
        kernel.step()

    return move


def theirs(name: str, rates: tuple[float, ...], decays: tuple[float, ...], losses: np.ndarray) -> dict[str, float]:
    """Seconds of a step of all networks by each way; nothing where PyTorch is missing. `losses` are ours."""
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed here: its rows are left out")
        return {}
    every_rate, every_decay, seeds = (
        one.ravel() for one in np.meshgrid(rates, decays, np.arange(SEEDS), indexing="ij")
    )
    peer = Torch(torch, name, every_rate, every_decay, seeds.tolist())
    found = np.stack([peer.step(peer.loss, peer.move, slice(_methods.BATCH)).cpu().numpy() for _ in range(CHECKED)])
    wanted = losses.reshape(CHECKED, -1)
    off = np.abs(found / wanted - 1)[:, every_rate == min(rates)].max()
    print(f"PyTorch {torch.__version__}; losses of {CHECKED} steps on one batch differ by {off:.1e} (the least rate)")
    alone = {"eager": lambda loss: loss, "compiled": torch.compile}
    alone["compiled, reduce-overhead"] = lambda loss: torch.compile(loss, mode="reduce-overhead")
    steps, times = (5, {}) if SMALL else (100, {})

    def timed(label: str, peer: Torch, move, way, copies: int) -> None:
        torch._dynamo.reset()  # what was compiled for other shapes
        try:
            times[label] = copies * peer.seconds(way(peer.loss), move, steps)
        except Exception as error:  # a compiler that is missing, a mode that this device does not have
            print(f"{label} does not run here: {type(error).__name__}: {str(error).splitlines()[0][:100]}")

    for label, way in alone.items():
        one = Torch(torch, name, every_rate[:1], every_decay[:1], [0])
        timed(f"PyTorch, a loop, {label}", one, fused(one), way, len(seeds))
    every = Torch(torch, name, every_rate, every_decay, seeds.tolist())
    timed("PyTorch, stacked, compiled", every, torch.compile(every.move), torch.compile, 1)
    return times


def floors(name: str, networks: int) -> dict[str, float]:
    """Seconds for the operations and the bytes of a step of all networks."""
    operations, moved = bare(1024 if jax.default_backend() == "cpu" else 8192, PRECISION)
    d, k = _methods.sizes(FUNCTION)
    trained = {"3resnet": d + k + 2, "3layer": d + WIDTH + 2, "2layer": d + 1}[name]
    fixed = {"3resnet": 2 * k, "3layer": k, "2layer": k}[name]  # A has no gradient: two products of three
    entries = WIDTH * (6 * trained + 4 * fixed)
    kept = _methods.BATCH * WIDTH * (1 if name == "2layer" else 2)
    return {
        "operations": networks * _methods.BATCH * entries / operations,
        "bytes": networks * 4 * (6 * WIDTH * trained + 2 * kept) / moved,
    }


def compare(name: str) -> float:
    rates, decays = _methods.RATES[name], _methods.DECAYS[1:]
    grid, one = Grid(name, rates, decays, range(SEEDS)), Grid(name, rates[:1], decays[:1], range(1))
    networks = len(rates) * len(decays) * SEEDS
    print(f"{name}: a step of {networks} networks of {WIDTH} neurons, {PRECISION}, {jax.devices()[0].device_kind}")
    together = grid.seconds()
    times = {"one program": together, "a Python loop": networks * one.seconds()}
    times |= theirs(name, rates, decays, grid.losses(CHECKED))
    for label, seconds in times.items():
        print(f"{label:<44} {1e3 * seconds:9.3f} ms   this / one program = {seconds / together:.2f}")
    for label, seconds in floors(name, networks).items():
        print(f"{'floor: ' + label:<44} {1e3 * seconds:9.3f} ms   one program / this = {together / seconds:.1f}")
    return min(seconds for label, seconds in times.items() if "loop" in label) / together


def main() -> int:
    slowest = min([compare(name) for name in _methods.NETWORKS])
    print(f"the fastest loop / one program, least of the three networks: {slowest:.2f}")
    return int(jax.default_backend() != "cpu" and slowest < 1)


if __name__ == "__main__":
    sys.exit(main())
