r"""Sections 3 and D: what is proven of the landscape, next to what is found where the conditions do not hold.

Lemma 5's constants in a ball $\|W\|_F^2 \le \Gamma$, $3B^4\Gamma + YB^2 + \gamma$ for ∇g and $6B^4\sqrt\Gamma$ for ∇²g,
next to the fastest change that random pairs of points show and that a search by gradient ascent finds. Lemma 3,
$\lambda_{\min}(\nabla^2 f) = -\|M\|$ for $r \ge 2d + 2$, from the whole Hessian, and at smaller widths. Theorem 4
itself: Algorithm 1 from W = 0 with the theorem's own γ, ℓ, ρ and ε′, at sizes where that ends, every step watched: the
induction $g(W_t) \le g(W_{ins}) + 3c\varepsilon'^2 / 2\chi^4$; and the points that it returns on many data sets, one
run on each, as runs on one data set all end alike. And many random starts over widths and numbers of samples: gradient
descent, and from there on steps of Levenberg and Marquardt's, to points whose gradient and whole Hessian say whether
they are second-order stationary (Lemma 1).

All in float64. Inputs and labels are as in the synthetic example: uniform entries, inputs divided by their norms; for
Lemma 5 all inputs are 1.5 times as long, and for Theorem 4 labels four times as large, which makes f(0) + 1 less of a
burden and the runs shorter.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from offtangent.lab import Claim, Cost, Results
from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao import _fresh, _literal, _minima, _paths, _search, landscape_report
from offtangent.papers.ge_wang_zhao._diagram import LEVEL
from offtangent.papers.ge_wang_zhao._fresh import Fresh
from offtangent.papers.ge_wang_zhao._minima import COUNTS, CURVATURE, GRADIENT, ZERO
from offtangent.report import Figure
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples
from offtangent.theory.ge_wang_zhao.descent import Theorem4, algorithm1_settings, theorem4
from offtangent.theory.ge_wang_zhao.landscape import smoothness
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular

GAMMA, RADIUS, LABEL = 0.1, 1.5, 4.0
SHARE, LARGE = 0.25, 0.9  # ε of Theorem 4 over f(0): as in the proof, and as printed
MOST, LOOKS = 20, 100  # times t_thres: where a run that has not returned is given up; how often f is looked at
RATE, SCALES = 1.0, (0.01, 0.3)  # of gradient descent from W(0) with entries of these sizes
ROUNDING = 1e-13  # of an eigenvalue of ∇²f, some hundred times what it is


@dataclass(frozen=True)
class Smooth:
    """Lemma 5 on one ball, for several numbers of samples; `pairs` of points, and `starts` of ascent."""

    ball: float
    samples: tuple[int, ...]
    dim: int
    pairs: int
    starts: int
    steps: int
    seeds: int


@dataclass(frozen=True)
class Curved:
    """Lemma 3 at random points, of lengths over one and a half decades, and at W = 0."""

    dim: int
    widths: tuple[int, ...]
    samples: int
    points: int
    seeds: int


@dataclass(frozen=True)
class Literal:
    """Theorem 4 on one data set, with as many seeds of the perturbations; or as it is printed, with ε instead of ε′."""

    dim: int
    samples: int
    seeds: int
    printed: bool


@dataclass(frozen=True)
class Starts:
    """Random starts on one data set, for all widths and numbers of samples."""

    dim: int
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    starts: int
    steps: int
    polishing: int
    seed: int


Kind = Smooth | Curved | Literal | Fresh | Starts


@dataclass(frozen=True)
class Config:
    balls: tuple[float, ...]
    counts: tuple[int, ...]  # of samples, for Lemma 5
    pairs: int
    climbing: int  # steps of ascent
    points: int
    toys: tuple[tuple[int, int, int], ...]  # d, n and seeds of Theorem 4
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    starts: int
    steps: int
    polishing: int
    sets: int  # data sets of the starts
    dim: int = 6
    seeds: int = 5
    fresh: tuple[tuple[int, int], ...] = ((2, 2),)  # d and n of Theorem 4, each on new data sets
    sets_of: int = 40  # data sets of each: 36 without a failure are needed for an interval above 1 − δ
    least: float = 0.9  # σ_min of them


PROFILES = {
    "smoke": Config(
        balls=(1.0,), counts=(1, 10), pairs=20, climbing=60, points=10, toys=((2, 2, 2),), widths=(2, 6, 14),
        samples=(9, 15, 21), starts=4, steps=200, polishing=200, sets=1, seeds=2,
    ),
    "laptop": Config(
        balls=(0.1, 1.0, 10.0), counts=(1, 3, 10, 30, 100), pairs=100, climbing=200, points=40,
        toys=((2, 2, 2), (3, 3, 2), (4, 4, 2)), widths=(2, 4, 6, 8, 10, 12, 14),
        samples=(6, 9, 11, 12, 15, 18, 21, 24), starts=12, steps=1000, polishing=300, sets=2,
    ),
    "paper": Config(
        balls=(0.1, 1.0, 10.0), counts=(1, 3, 10, 30, 100), pairs=300, climbing=500, points=200,
        toys=((2, 2, 100), (3, 3, 40), (3, 4, 40), (4, 4, 40)), widths=(2, 4, 6, 8, 10, 12, 14, 16),
        samples=(6, 9, 11, 12, 15, 17, 18, 19, 20, 21, 24), starts=64, steps=20_000, polishing=1000, sets=10, seeds=10,
        fresh=((2, 2), (3, 3)), least=0.5,
    ),
}  # fmt: skip


def cells(config: Config) -> list[Kind]:
    dim, found = config.dim, list[Kind]()
    found += [Literal(*toy, printed=printed) for printed in (False, True) for toy in config.toys]
    found += [Fresh(*sizes, config.sets_of, config.least, 1.0) for sizes in config.fresh]
    found += [
        Starts(dim, config.widths, config.samples, config.starts, config.steps, config.polishing, seed)
        for seed in range(config.sets)
    ]
    found += [Smooth(ball, config.counts, 4, config.pairs, 6, config.climbing, config.seeds) for ball in config.balls]
    widths = (2 * dim - 2, 2 * dim, least_width(dim), least_width(dim) + 2)
    return [*found, Curved(dim, widths, most_samples(dim) // 2, config.points, config.seeds)]


def cost(cell: Kind) -> Cost:
    """Matrices as small as these run at a fifteenth of a large one's speed or so, in float64."""
    if isinstance(cell, Literal):  # a step takes 10 µs, in which a large product does 10⁶ operations
        steps = (2e2 if cell.printed else 1.5e4) * cell.dim * cell.samples
        return Cost(steps * (5e5 + 2e5 * cell.seeds), 1e6)
    if isinstance(cell, Fresh):
        return Cost(1e5 * cell.dim * cell.samples / cell.least**2 * (5e5 + 2e5 * cell.seeds), 1e7)
    if isinstance(cell, Starts):
        widest, rows, runs = max(cell.widths), max(cell.samples), len(cell.widths) * len(cell.samples) * cell.starts
        step, polish = 6 * rows * cell.dim * widest, rows**3 + 4 * rows**2 * widest
        each = cell.steps * step + cell.polishing * polish + 20 * (cell.dim * widest) ** 3
        memory = 80 * runs * cell.dim * widest + 24 * cell.starts * (cell.dim * widest) ** 2
        return Cost(15 * runs * each, memory + 1e6)
    if isinstance(cell, Curved):
        size = (cell.dim * max(cell.widths)) ** 2
        points = len(cell.widths) * cell.points * cell.seeds
        return Cost(15 * points * 10 * size**1.5, 24 * cell.points * size + 1e6)
    runs, rows, size = cell.seeds * len(cell.samples), max(cell.samples), cell.dim * least_width(cell.dim)
    climbing = 2 * cell.starts * cell.steps * 40 * rows * size
    return Cost(15 * runs * (climbing + cell.pairs * 10 * size**3), 24 * runs * cell.pairs * size**2 + 1e6)


def run(cell: Kind) -> xr.Dataset:
    with jax.enable_x64(True):
        if isinstance(cell, Smooth):
            return _smooth(cell)
        if isinstance(cell, Curved):
            return _curved(cell)
        if isinstance(cell, Fresh):
            return _fresh.run(cell, SHARE)
        return _literally(cell) if isinstance(cell, Literal) else _from_starts(cell)


def claims(results: Results) -> list[Claim]:
    return landscape_report.claims(*(results.where(kind) for kind in (Smooth, Curved, Literal, Fresh, Starts)))


def draw(results: Results) -> list[Figure]:
    return landscape_report.figures(*(results.where(kind) for kind in (Smooth, Curved, Literal, Starts)))


def _smooth(cell: Smooth) -> xr.Dataset:
    """The fastest over Lemma 5's constants."""
    width, shape = least_width(cell.dim), (cell.seeds, len(cell.samples))
    sets, climbs, pairs, limits = [], [], [], []
    for seed in range(cell.seeds):
        X, y = _paths.sample(max(cell.samples), cell.dim, seed)
        X, rng = RADIUS * X, np.random.default_rng([seed, 5])
        for n, rows, labels in zip(cell.samples, *_minima.padded(X, y, cell.samples), strict=True):
            sets.append((rows, labels))
            climbs.append(_search.starts(X[:n], y[:n], width, cell.starts, rng))
            pairs.append(_pairs(rng, cell.pairs, (cell.dim, width), cell.ball))
            limits.append(smoothness(radius=RADIUS, label=float(np.abs(y[:n]).max()), ball=cell.ball, gamma=GAMMA))
    rows, labels = (jnp.asarray(np.array(part)) for part in zip(*sets, strict=True))
    turn, bend = _search.climb(rows, labels, jnp.asarray(np.array(climbs)), cell.ball, GAMMA, cell.steps)
    U, V = (np.array(part) for part in zip(*pairs, strict=True))
    turned, bent = _search.between(rows, labels, jnp.asarray(U), jnp.asarray(V), GAMMA)
    apart = np.linalg.norm(U - V, axis=(2, 3))
    norms = np.abs(np.linalg.eigvalsh(np.asarray(bent))).max(axis=-1)
    of_gradient, of_hessian = (np.array([getattr(one, name) for one in limits]) for name in ("gradient", "hessian"))
    found = {
        "search_gradient": np.asarray(turn).max(axis=1) / of_gradient,
        "search_hessian": np.asarray(bend).max(axis=1) / of_hessian,
        "pairs_gradient": (np.asarray(turned) / apart).max(axis=1) / of_gradient,
        "pairs_hessian": (norms / apart).max(axis=1) / of_hessian,
    }
    table = {name: (("seed", "n"), values.reshape(shape)) for name, values in found.items()}
    return xr.Dataset(table).assign_coords(n=list(cell.samples))


def _pairs(
    rng: np.random.Generator, count: int, shape: tuple[int, int], ball: float
) -> tuple[Float[np.ndarray, "k d r"], Float[np.ndarray, "k d r"]]:
    """Points of the ball, from a thousandth of its radius apart to twice it."""
    U, step = rng.standard_normal((2, count, *shape))
    U *= (math.sqrt(ball) * rng.uniform(size=count) ** 0.25 / np.linalg.norm(U, axis=(1, 2)))[:, None, None]
    step *= (math.sqrt(ball) * 2 * 10 ** rng.uniform(-3, 0, count) / np.linalg.norm(step, axis=(1, 2)))[:, None, None]
    V = U + step
    lengths = np.linalg.norm(V, axis=(1, 2)) / math.sqrt(ball)
    return U, V / np.maximum(lengths, 1)[:, None, None]


@jax.jit
def _look(
    X: Float[Array, "n d"], y: Float[Array, "n"], W: Float[Array, "s d r"], gamma: _minima.Scalar
) -> tuple[Float[Array, "s"], Float[Array, "s"], Float[Array, "s"], Float[Array, "s p p"]]:
    """f, ‖∇g‖, ‖M‖ and ∇²g."""
    risk = QuadraticRisk(QuadraticNet(*W.shape[1:]), X, y, gamma)

    def one(W: Array) -> tuple[Array, Array, Array, Array]:
        return risk.loss(W), jnp.linalg.norm(risk.gradient(W)), risk.matrix_norm(W), risk.hessian(W)

    return jax.vmap(one)(W)


def _lowest(hessian: Float[np.ndarray, "... p p"], dim: int, width: int, widest: int) -> Float[np.ndarray, "..."]:
    """λ_min over the neurons of a network of this width, of a Hessian over more."""
    kept = np.flatnonzero(np.tile(_minima.kept_columns(width, widest), dim))
    return np.linalg.eigvalsh(hessian[..., kept[:, None], kept])[..., 0]


def _curved(cell: Curved) -> xr.Dataset:
    """(λ_min + ‖M‖)/‖M‖: 0 where Lemma 3 holds."""
    widest, gaps, zeros = max(cell.widths), [], []
    for seed in range(cell.seeds):
        X, y = _paths.sample(cell.samples, cell.dim, seed)
        rng = np.random.default_rng([seed, 3])
        sizes = 10 ** rng.uniform(-1, 0.5, (cell.points, 1, 1)) / math.sqrt(cell.dim)
        W = sizes * rng.standard_normal((cell.points, cell.dim, widest))
        W[0] = 0
        for width in cell.widths:
            points = jnp.asarray(W * _minima.kept_columns(width, widest))
            _, _, norms, hessians = (np.asarray(part) for part in _look(jnp.asarray(X), jnp.asarray(y), points, 0.0))
            gap = 1 + _lowest(hessians, cell.dim, width, widest) / norms
            zeros.append(gap[0])
            gaps.append(gap[1:])
    shape = (cell.seeds, len(cell.widths))
    return xr.Dataset(
        {
            "gap": (("seed", "width", "point"), np.array(gaps).reshape(*shape, -1)),
            "zero": (("seed", "width"), np.array(zeros).reshape(shape)),
        }
    ).assign_coords(width=list(cell.widths))


def _literally(cell: Literal) -> xr.Dataset:
    X, y = _paths.sample(cell.samples, cell.dim, 0)
    y, width, sigma = LABEL * y, least_width(cell.dim), smallest_singular(X).lower
    start = 0.25 * float(np.mean(y**2))
    epsilon = start * (LARGE if cell.printed else SHARE)
    constants = partial(
        theorem4, samples=cell.samples, dim=cell.dim, width=width, smallest=sigma, radius=1.0,
        label=float(np.abs(y).max()), start=start,
    )  # fmt: skip
    chosen = constants(epsilon=epsilon)
    settings = chosen.settings()
    if cell.printed:
        settings = algorithm1_settings(
            smoothness=chosen.smoothness, hessian=chosen.hessian, epsilon=epsilon, parameters=chosen.parameters,
            gap=start + 1,
        )  # fmt: skip
    risk = QuadraticRisk.of(QuadraticNet(cell.dim, width), X, y, gamma=chosen.gamma)
    path = _literal.follow(risk, settings, seeds=cell.seeds, most=MOST * settings.wait, looks=LOOKS)
    loss, gradient, _, hessian = (np.asarray(part) for part in _look(risk.X, risk.y, path.last, chosen.gamma))
    return xr.Dataset(
        {
            "loss": ("look", path.losses.mean(axis=1) / start),
            "rise": ("seed", path.watched["rise"]),
            "length": ("seed", path.watched["length"]),
            "excess": ("seed", path.watched["excess"]),
            "returned": ("seed", path.returned),
            "steps": ("seed", path.steps),
            "perturbations": ("seed", path.perturbations),
            "last": ("seed", loss),
            "gradient": ("seed", gradient),
            "lowest": ("seed", np.linalg.eigvalsh(hessian)[:, 0]),
            "start": start,
            "epsilon": epsilon,
            "accuracy": chosen.accuracy,
            "gamma": chosen.gamma,
            "smoothness": chosen.smoothness,
            "slope": settings.gradient,  # √c ε′/χ²
            "wait": float(settings.wait),
            "iterations": chosen.iterations,
            "smallest": sigma,
            "allowed": _allowed(constants, start, float(risk.matrix_norm(jnp.zeros((cell.dim, width))))),
        }
    ).assign_coords(look=path.looks)


def _allowed(constants: Callable[..., Theorem4], start: float, norm: float) -> float:
    """The least ε/f(0), in steps of 0.01, with which W = 0 is stationary as printed: ‖M(0)‖ − γ ≤ √(ρε), both of ε."""
    for share in np.arange(1, 100) / 100:
        found = constants(epsilon=float(share * start))
        if norm - found.gamma <= math.sqrt(found.hessian * share * start):
            return float(share)
    return math.nan


def _from_starts(cell: Starts) -> xr.Dataset:
    """Counts over the starts, and how f compares with Lemma 1's bound, for each n and r."""
    X, y = _paths.sample(max(cell.samples), cell.dim, cell.seed)
    rows, labels = (jnp.asarray(part) for part in _minima.padded(X, y, cell.samples))
    rng, widest = np.random.default_rng([cell.seed, 10]), max(cell.widths)
    kept = np.array([_minima.kept_columns(width, widest) for width in cell.widths])
    sizes = np.geomspace(*SCALES, cell.starts)[:, None, None]
    W = sizes * rng.standard_normal((len(cell.widths), cell.starts, cell.dim, widest)) * kept[:, None, None, :]
    down, ends = _minima.minimise(rows, labels, jnp.asarray(W), RATE, cell.steps, cell.polishing)
    found: dict[str, list[float]] = {name: [] for name in COUNTS}
    for i, n in enumerate(cell.samples):
        first, least = 0.25 * float(np.mean(y[:n] ** 2)), _least(X[:n], y[:n])
        sigma = smallest_singular(X[:n]).lower
        for k, width in enumerate(cell.widths):
            shape = (cell.dim, width, widest)
            before, after = (_second_order(rows[i], labels[i], W[i, k], shape, n, sigma) for W in (down, ends))
            zero = (after[0] - least) / first <= ZERO
            # Lemma 1 itself allows this much at a point that is stationary up to CURVATURE.
            allowed = n * cell.dim * CURVATURE**2 / (4 * sigma**2) if sigma > 0 else 0.0
            certified = (after[1] <= GRADIENT) & (after[2] >= -CURVATURE)
            found["descended"].append(float(((before[0] - least) / first <= LEVEL).sum()))
            found["reached"].append(float(zero.sum()))
            found["certified"].append(float(certified.sum()))
            found["stuck"].append(float((certified & ~zero & (after[0] - least > allowed)).sum()))
            found["ratio_before"].append(float(before[3].max()))
            found["ratio"].append(float(after[3].max()))
        found["smallest"] += [sigma] * len(cell.widths)
    table = {name: (("n", "width"), np.array(values).reshape(len(cell.samples), -1)) for name, values in found.items()}
    return xr.Dataset(table).assign_coords(n=list(cell.samples), width=list(cell.widths))


def _second_order(
    X: Array, y: Array, W: Float[Array, "s d r"], shape: tuple[int, int, int], samples: int, sigma: float
) -> tuple[np.ndarray, ...]:
    """f, ‖∇f‖, λ_min(∇²f), and f over Lemma 1's ndε²/4σ² with ε = −λ_min, rounding added."""
    loss, gradient, _, hessian = (np.asarray(part) for part in _look(X, y, W, 0.0))
    lowest = _lowest(hessian, *shape)
    epsilon = np.maximum(-lowest, 0) + ROUNDING
    return loss, gradient, lowest, 4 * sigma**2 * loss / (samples * shape[0] * epsilon**2)


def _least(X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n"]) -> float:
    """The least f of any quadratic form."""
    squares = (X[:, :, None] * X[:, None]).reshape(len(X), -1)
    return 0.25 * float(np.mean((squares @ np.linalg.lstsq(squares, y, rcond=None)[0] - y) ** 2))
