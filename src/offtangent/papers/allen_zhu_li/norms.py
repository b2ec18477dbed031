r"""Figures 1 and 3, Appendix A.1: does SGD find the solution of small norm?

Labels are the parity of six coordinates, $y = d^3 x_{i_1} \cdots x_{i_6}$, inputs uniform on $\{\pm 1/\sqrt d\}^d$, the
network $F(W; x) = a^T \sigma(Wx)$ with $a = \pm 1/\sqrt m$, as many of each sign, and W alone is trained. Networks that
are built by hand have $\|W\|_F = 9.7 \sqrt d$ with an error of 0.12, and so on. The paper trains by SGD, searches
widths 200 to 100 000, rates and weight decays $\{1, 2, 5\} \cdot 10^k$, and finds no test error below 0.69 (d = 40,
N = 5000) and 0.98 (d = 100, N = 50 000), and no small training error together with a small norm.

Built: networks trained for d = 6 on all 64 corners with weight decay, padded and copied (footnote 13), and the 64
corners themselves as neurons. Descent: the grid of one width, all seeds in one program; the mean square error, batches
of 50 (100 for d = 100), momentum 0.9, and a rate that falls to a tenth after half of the epochs. The paper does not say
how W starts: from $N(0, 1)$, where outputs are of order 1, or from $N(0, 1/d)$, as it has it elsewhere. "Small training
error and small norm" is taken by the paper's own numbers: a training error of at most 0.12 with at most 9.7√d, or 0.037
with 12.5√d, or 0.011 with 13.8√d. The best of a grid is told as the paper has it, by the test error, and by samples of
its own; the grid is widened where these find it on an edge, unless it is no better than F = 0.

The 0.69 is a matter of patience and of luck. After Figure 2's 400 + 400 epochs some networks have found the parity, and
which they are differed between two runs of the same training on a GPU (why, we did not test): the best test error was
0.0085 with a norm of $17.1\sqrt d$ (m = 500, rate 20) in one, 0.043 with $26.6\sqrt d$ (m = 200, rate 10) in the other,
which is the record. With 2000 + 2000 epochs most seeds of m = 200 have it, with norms down to 1.09 and 1.25 times the
hand-built network's; one as small as that none has. The paper tells neither the start nor the momentum nor the epochs
of its search, so that ours may be another. That SGD finds none is judged where it finds one, or where all widths up to
the paper's largest have had those epochs.

What is cut. `paper`: three seeds and both starts up to m = 500, one seed up to 2000; for wider networks one start and
5 × 5 grids, and fewer epochs from m = 20 000 on (200, 100, 50, and as many again); for d = 100 one start, 5 × 6 and
4 × 4 grids, three seeds up to m = 2000. There every width has all epochs, on seeds from 100 on; the shipped record is
of an earlier `paper`, with one seed and all epochs at m = 200 alone, else 40, 20 or 10. Added: 2000 + 2000 epochs at
m = 200 and 1000, and at m = 200 with five new seeds, by which alone norms are judged, since what counts as comparable
came after the first record. `laptop`: m = 200 with all epochs on a 3 × 3 grid. `smoke`: d = 16.
"""

import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.allen_zhu_li import norms_figures, norms_report
from offtangent.papers.allen_zhu_li._parity import DEGREE, corners, train_parity
from offtangent.report import Figure
from offtangent.theory.allen_zhu_li.parity import low_norm_parity, padded_copies
from offtangent.training import search, train
from offtangent.training.grids import Bounded, Search, grid_sgd

LOST = 100.0  # a loss above it is no longer looked at; that of F = 0 is 1
CHOOSING, TESTS = 5000, 20_000
PARTS = ("train", "choose", "test")
CHECKED = 32  # inputs on which padded copies are compared


@dataclass(frozen=True)
class Built:
    """Networks of small norm, one for each weight decay and seed, for d = 6, and what they are at other sizes."""

    penalties: tuple[float, ...]
    width: int
    steps: int
    seeds: int
    sizes: tuple[tuple[int, int], ...]  # d and m


@dataclass(frozen=True)
class Descent:
    """The grid of one width."""

    dim: int
    samples: int
    width: int
    epochs: int  # with the first rate, and as many with a tenth of it
    rates: tuple[float, ...]
    decays: tuple[float, ...]
    starts: tuple[str, ...]  # of W: "N(0, 1)", "N(0, 1/d)"
    seeds: int
    batch: int = 50
    precision: str = "highest"
    first: int = 0  # of the seeds

    @property
    def deviations(self) -> Float[np.ndarray, " a"]:
        """Of the entries of W at the start."""
        return np.array([{"N(0, 1)": 1.0, "N(0, 1/d)": 1 / math.sqrt(self.dim)}[name] for name in self.starts])


@dataclass(frozen=True)
class Config:
    descents: tuple[Descent, ...]
    penalties: tuple[float, ...]
    steps: int
    seeds: int  # of the networks for d = 6


ONE, BOTH = ("N(0, 1)",), ("N(0, 1)", "N(0, 1/d)")
RATES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
DECAYS = (0.0, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4)
FEWER = ((1.0, 2.0, 5.0, 10.0, 20.0), (0.0, 1e-5, 2e-5, 5e-5, 1e-4))
LARGE = ((1.0, 2.0, 5.0, 10.0, 20.0), (0.0, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5))  # d = 100
NEW = ((2.0, 5.0, 10.0, 20.0), (0.0, 1e-5, 2e-5, 5e-5, 1e-4))  # of the seeds that the first record does not have
FEWEST = ((2.0, 5.0, 10.0, 20.0), (0.0, 5e-6, 1e-5, 2e-5))
TF32 = "tensorfloat32"

PROFILES = {
    "smoke": Config(
        (
            *(Descent(16, 400, m, 40, (2.0, 10.0, 20.0), (0.0, 1e-4, 1e-3), ONE, 2) for m in (64, 200)),
            Descent(16, 400, 64, 600, (5.0, 10.0, 20.0), (0.0, 1e-4, 3e-4), ONE, 2),
        ),
        penalties=(3e-5, 1e-4, 3e-4), steps=3000, seeds=10,
    ),
    "laptop": Config(
        (
            Descent(40, 5000, 200, 400, (2.0, 5.0, 10.0), (0.0, 5e-5, 1e-4), ONE, 1),
        ),
        penalties=(3e-5, 1e-4, 3e-4), steps=3000, seeds=10,
    ),
    "paper": Config(
        (
            *(Descent(40, 5000, m, 400, RATES, DECAYS, BOTH, 3, precision=TF32) for m in (200, 500)),
            *(Descent(40, 5000, m, 400, RATES, DECAYS, BOTH, 1, precision=TF32) for m in (1000, 2000)),
            *(
                Descent(40, 5000, m, epochs, *FEWER, ONE, 1, precision=TF32)
                for m, epochs in ((5000, 400), (10_000, 400), (20_000, 200), (50_000, 100), (100_000, 50))
            ),
            *(
                Descent(40, 5000, m, 2000, (2.0, 5.0, 10.0), (0.0, 1e-5, 2e-5, 5e-5, 1e-4), ONE, 3, precision=TF32)
                for m in (200, 1000)
            ),
            Descent(40, 5000, 200, 2000, *NEW, ONE, 5, precision=TF32, first=100),
            *(
                Descent(100, 50_000, m, 400, rates, decays, ONE, seeds, batch=100, precision=TF32, first=100)
                for (rates, decays), widths, seeds in (
                    (LARGE, (200, 500, 1000, 2000), 3),
                    (FEWEST, (5000, 10_000, 20_000, 50_000), 1),
                )
                for m in widths
            ),
        ),
        penalties=(1e-5, 3e-5, 1e-4, 2e-4, 3e-4, 5e-4), steps=3000, seeds=10,
    ),
}  # fmt: skip


def cells(config: Config) -> list[Built | Descent]:
    sizes = tuple(dict.fromkeys((one.dim, one.width) for one in config.descents))
    return [Built(config.penalties, 200, config.steps, config.seeds, sizes), *config.descents]


def cost(cell: Built | Descent) -> Cost:
    """Two products a step, of 2dm flops for a sample; W, its gradient and momentum, and what a batch makes of it."""
    if isinstance(cell, Built):
        networks = cell.seeds * len(cell.penalties)
        copied = sum(dim * width for dim, width in cell.sizes)
        largest = max(dim * width for dim, width in cell.sizes)
        return Cost(6 * 64 * 6 * cell.width * networks * cell.steps + 4 * CHECKED * copied, 40 * largest + 1e8)
    neurons = cell.width * len(cell.rates) * len(cell.decays) * len(cell.starts) * cell.seeds
    seen = 2 * cell.epochs * cell.samples + (cell.samples + CHOOSING + TESTS) / 2
    return Cost(seen * 4 * cell.dim * neurons, neurons * (20 * cell.dim + 16 * cell.batch) + 1e8)


def run(cell: Built | Descent) -> xr.Dataset:
    return _built(cell) if isinstance(cell, Built) else _descents(cell)


def claims(results: Results) -> list[Claim]:
    return norms_report.claims(results.where(Built), results.where(Descent))


def draw(results: Results) -> list[Figure]:
    return norms_figures.figures(results.where(Built), results.where(Descent))


def _built(cell: Built) -> xr.Dataset:
    """Norms, errors, E F² and E Fy of the networks for d = 6; norms of the exact parity, and how copies differ."""
    weights, _ = train_parity(cell.penalties, width=cell.width, steps=cell.steps, seeds=cell.seeds)
    weights = weights.astype(np.float64)
    X, y = corners()
    F = _plain(weights, X)
    networks, places = ("built", "penalty"), "size"
    copies = [_copied(weights[0, 0], dim, width) for dim, width in cell.sizes]
    return xr.Dataset(
        {
            "norm": (networks, np.linalg.norm(weights, axis=(2, 3)) / math.sqrt(DEGREE)),
            "error": (networks, ((F - y) ** 2).mean(axis=-1)),
            "power": (networks, (F**2).mean(axis=-1)),
            "overlap": (networks, (F * y).mean(axis=-1)),
            "exact": (places, np.array([_exact(dim, width) for dim, width in cell.sizes])),
            "norm_change": (places, np.array([change for change, _ in copies])),
            "output_change": (places, np.array([change for _, change in copies])),
        },
        coords={
            "built": np.arange(cell.seeds),
            "penalty": list(cell.penalties),
            "dim": (places, [dim for dim, _ in cell.sizes]),
            "width": (places, [width for _, width in cell.sizes]),
        },
    )


def _plain(weights: Float[np.ndarray, "*b d m"], X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "*b n"]:
    hidden = np.maximum(X @ weights, 0)
    plus, minus = (half.sum(axis=-1) for half in np.split(hidden, 2, axis=-1))
    return np.asarray((plus - minus) / math.sqrt(weights.shape[-1]))


def _exact(dim: int, width: int) -> float:
    """‖W‖_F/√d of the parity itself."""
    return low_norm_parity(dim, range(DEGREE), width).norm / math.sqrt(dim)


def _copied(small: Float[np.ndarray, "k m"], dim: int, width: int) -> tuple[float, float]:
    """How much ‖W‖_F/√d and outputs change at other sizes, as shares; NaN where copies do not fill the width."""
    copies, rest = divmod(width, small.shape[1])
    if rest:
        return math.nan, math.nan
    rng = np.random.default_rng([dim, width])
    S = rng.permutation(dim)[:DEGREE]
    X = (1 - 2.0 * rng.integers(0, 2, (CHECKED, dim))) / math.sqrt(dim)
    large = padded_copies(small, dim, S.tolist(), copies)
    before, after = _plain(small, X[:, S] * math.sqrt(dim / DEGREE)), _plain(large, X)
    norm = np.linalg.norm(large) / np.linalg.norm(small) * math.sqrt(DEGREE / dim)
    return abs(float(norm) - 1), float(np.abs(after - before).max() / np.abs(before).max())


def _samples(cell: Descent, part: str) -> tuple[Float[np.ndarray, "n s d"], Float[np.ndarray, "n s"]]:
    """Each seed has inputs of its own; the six coordinates are the first ones, which nothing else can tell."""
    count = {"train": cell.samples, "choose": CHOOSING, "test": TESTS}[part]
    draws = [
        np.random.default_rng([seed, cell.dim, PARTS.index(part)])
        for seed in range(cell.first, cell.first + cell.seeds)
    ]
    signs = np.stack([1.0 - 2.0 * rng.integers(0, 2, (count, cell.dim), dtype=np.int8) for rng in draws], axis=1)
    return (signs / math.sqrt(cell.dim)).astype(np.float32), signs[..., :DEGREE].prod(axis=-1).astype(np.float32)


def outputs(W: Float[Array, "s a r w m d"], X: Float[Array, "n s d"]) -> Float[Array, "s n a r w"]:
    """F of every network. Neurons are rows here: the products over a batch are one, without a transposition."""
    m = W.shape[-2]
    signs = jnp.where(jnp.arange(m) < m // 2, 1.0, -1.0) / math.sqrt(m)
    hidden = jax.nn.relu(jnp.einsum("nsd,sarwmd->snarwm", X, W))
    return jnp.matmul(hidden, signs, precision=jax.lax.Precision.HIGHEST)


def errors(W: Float[Array, "s a r w m d"], X: Float[Array, "n s d"], y: Float[Array, "n s"]) -> Float[Array, "s a r w"]:
    """The mean square error of every network."""
    return jnp.mean((outputs(W, X) - y.T[..., None, None, None]) ** 2, axis=1)


class _Total(eqx.Module):
    """The sum over networks, so that no curve of each is kept; their gradients do not mix."""

    objective: Bounded

    def __call__(self, W: Array, X: Array, y: Array) -> Float[Array, ""]:
        return jnp.sum(self.objective(W, X, y))


@eqx.filter_jit
def _measured(
    W: Float[Array, "s a r w m d"], X: Float[Array, "b n s d"], y: Float[Array, "b n s"]
) -> dict[str, Float[Array, "b s a r w"] | Float[Array, "s a r w"]]:
    """Means of (F − y)² and |F − y| over each batch; ‖W‖_F², and what of it belongs to the six coordinates."""

    def one(batch: tuple[Array, Array]) -> tuple[Array, Array]:
        apart = outputs(W, batch[0]) - batch[1].T[..., None, None, None]
        return jnp.mean(apart**2, axis=1), jnp.mean(jnp.abs(apart), axis=1)

    squared, absolute = jax.lax.map(one, (X, y))
    each = jnp.sum(W**2, axis=-2)
    return {
        "squared": squared, "absolute": absolute, "norm": each.sum(axis=-1), "six": each[..., :DEGREE].sum(axis=-1),
    }  # fmt: skip


def _descents(cell: Descent) -> xr.Dataset:
    rows = {part: _samples(cell, part) for part in PARTS}
    found = _searched(cell, rows)
    dims = ("rate", "decay", "start", "seed")
    return xr.Dataset(
        {name: (dims, table) for name, table in found.tables.items()},
        coords={
            "rate": list(found.rates), "decay": list(found.decays), "start": cell.deviations,
            "seed": cell.first + np.arange(cell.seeds),
        },
    )  # fmt: skip


def _searched(cell: Descent, rows: dict[str, tuple[np.ndarray, np.ndarray]]) -> Search:
    """The grid, wider where its best is on an edge. Where that is no better than F = 0 there is nothing to follow."""
    first = _evaluate(cell, rows, cell.rates, cell.decays)
    found = Search(cell.rates, cell.decays, first, "choose")
    if not first["choose"][found.chosen].mean() < 1:
        return found
    return search(
        lambda rates, decays: (
            first if (rates, decays) == (cell.rates, cell.decays) else _evaluate(cell, rows, rates, decays)
        ),
        cell.rates, cell.decays, by="choose",
    )  # fmt: skip


def _evaluate(
    cell: Descent, rows: dict[str, tuple[np.ndarray, np.ndarray]], rates: tuple[float, ...], decays: tuple[float, ...]
) -> dict[str, Float[np.ndarray, "r w a s"]]:
    """Train every network of a grid, and measure it.

    Time: 4dm flops a sample, epoch and network, and some 50 bytes of memory traffic a weight and step.
    """
    grid = np.meshgrid(np.zeros(cell.seeds), np.zeros(len(cell.starts)), rates, decays, indexing="ij")[2:]
    steps = 2 * cell.epochs * (cell.samples // cell.batch)
    optimiser = grid_sgd(*grid, schedule=optax.piecewise_constant_schedule(1.0, {steps // 2: 0.1}))
    W = train(
        _Total(Bounded(errors, LOST)), _start(cell, len(rates), len(decays)), *rows["train"], optimiser=optimiser,
        steps=steps, batch=cell.batch, key=jax.random.key(cell.dim), precision=cell.precision,
    ).params  # fmt: skip
    cut = {part: tuple(_cut(one, cell.batch) for one in rows[part]) for part in PARTS}
    with jax.default_matmul_precision("highest"):
        joined = (jnp.asarray(np.concatenate(one)) for one in zip(*cut.values(), strict=True))
        found = {name: np.asarray(table, np.float64) for name, table in _measured(W, *joined).items()}
    ends = np.cumsum([len(cut[part][0]) for part in PARTS])[:-1]
    tables, absolute = (
        dict(zip(PARTS, (part.mean(axis=0) for part in np.split(found[name], ends)), strict=True))
        for name in ("squared", "absolute")
    )
    tables |= {"gap": absolute["test"] - absolute["train"]}
    with np.errstate(invalid="ignore"):  # a network may be zero, or lost
        tables |= {"norm": np.sqrt(found["norm"] / cell.dim), "share": found["six"] / found["norm"]}
    return {name: table.transpose(2, 3, 1, 0) for name, table in tables.items()}


def _cut(rows: np.ndarray, batch: int) -> np.ndarray:
    """Rows as batches; a rest that fills none is left out."""
    return rows[: len(rows) // batch * batch].reshape(-1, batch, *rows.shape[1:])


def _start(cell: Descent, rates: int, decays: int) -> Float[Array, "s a r w m d"]:
    """W⁽⁰⁾: the same for all rates, decays and, but for its size, starts of a seed."""
    seeds = range(cell.first, cell.first + cell.seeds)
    drawn = jnp.stack([jax.random.normal(jax.random.key(seed), (cell.width, cell.dim)) for seed in seeds])
    sized = drawn[:, None] * jnp.asarray(cell.deviations, jnp.float32)[:, None, None]
    shape = (cell.seeds, len(cell.starts), rates, decays, cell.width, cell.dim)
    return jnp.broadcast_to(sized[:, :, None, None], shape)
