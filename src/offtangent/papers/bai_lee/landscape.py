r"""Section 4: every second-order stationary point of the randomised risk is nearly as good as the best quadratic model.

Curvature along $W_\star \Sigma'$ pays for excess loss: for the clean risk $L^Q$ (Lemma 1) at every point and width, for
the randomised risk L up to an ε that falls with the width (Theorem 2), and for $L_\lambda = L + \lambda
\|W\|_{2,4}^8$ with the constant $C = 378 (14/5)^3$ (Corollary 3). So where the gradient vanishes and no curvature is
negative, $L_\lambda \le (1 + \gamma)\,OPT + \varepsilon$ (Theorem 4).

The problem is 2-XOR with label noise on the whole cube, with the mean over the noise in the loss, so that no predictor
is better than the entropy H(q), and W⋆ of Theorem 7 comes close to it. Three kinds of cell: points drawn at random, at
which the inequalities are measured; widths, over which L and L^Q come together (Lemmas 10 and 12 to 14); and starts,
from which noisy SGD with fresh signs and then plain descent run to points whose gradient and smallest curvature are
certified.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent.lab import Claim, Cost, Results
from offtangent.papers.bai_lee import landscape_figures, landscape_report
from offtangent.papers.bai_lee._noisy_xor import BEST, Problem, noisy_xor
from offtangent.papers.bai_lee._starts import descend, starts, values, wander
from offtangent.papers.bai_lee.stationary_report import EPSILON, GAMMA
from offtangent.report import Figure
from offtangent.taylor import certificate
from offtangent.theory import RandomisedRisk
from offtangent.theory.bai_lee.bounds import coupling_width
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.landscape import LandscapeInequality, stationary_bound
from offtangent.theory.bai_lee.penalties import penalty_choice
from offtangent.theory.bai_lee.signs import ENUMERATED, in_float64
from offtangent.theory.bai_lee.survey import landscape_survey

WEIGHTS = ("W⋆", "random")  # at which L and L^Q are compared over widths
FRESH = 10  # times that many new signs, on which the last points are looked at again
LOOSE = 1e-2  # tolerance of the curvatures on the way, over the largest; that of the last ones is 10⁻³


@dataclass(frozen=True)
class Points:
    """`points` matrices W, of three kinds in turn, for each of `seeds` networks; all signs where the width allows."""

    dim: int
    width: int
    loss: str
    points: int
    signs: int
    seeds: int


@dataclass(frozen=True)
class Widths:
    """L against L^Q at one width, for `seeds` networks."""

    width: int
    dim: int
    signs: int
    seeds: int


@dataclass(frozen=True)
class Starts:
    """`count` starts on one network: `steps` of noisy SGD, then up to `iterations` of descent."""

    width: int
    dim: int
    signs: int
    count: int
    steps: int
    iterations: int
    looks: int
    seed: int


@dataclass(frozen=True)
class Config:
    sizes: tuple[tuple[int, int], ...]  # dimensions and widths of the points
    points: int
    widths: tuple[int, ...]
    trained: tuple[tuple[int, int], ...]  # widths of the starts, and signs of their fixed risk
    count: int
    steps: int
    iterations: int
    seeds: int = 10
    signs: int = 128
    networks: int = 1
    dim: int = 4
    looks: int = 6
    losses: tuple[str, ...] = ("noisy logistic", "soft hinge")


PROFILES = {
    "smoke": Config(
        sizes=((3, 10),), points=60, seeds=3, signs=64, widths=(64, 512, 4096), trained=((256, 64),),
        count=4, steps=300, iterations=300, looks=4, losses=("soft hinge",),
    ),
    "laptop": Config(
        sizes=((3, 10), (4, 64), (6, 256)), points=45, signs=64, widths=(256, 1024, 4096, 16_384, 65_536),
        trained=((10, 0), (64, 256), (256, 256)), count=8, steps=500, iterations=1500,
    ),
    "paper": Config(
        sizes=((3, 10), (4, 64), (6, 256), (8, 1024)), points=24, widths=(256, 1024, 4096, 16_384, 65_536, 262_144),
        signs=512, trained=((10, 0), (64, 1024), (256, 1024), (1024, 1024), (4096, 1024)), count=12, steps=1000,
        iterations=5000, networks=2,
    ),
}  # fmt: skip


def cells(config: Config) -> list[Points | Widths | Starts]:
    return [
        *(
            Points(dim, width, loss, config.points, config.signs, config.seeds)
            for dim, width in config.sizes
            for loss in config.losses
        ),
        *(Widths(width, config.dim, config.signs, config.seeds) for width in config.widths),
        *(
            Starts(width, config.dim, signs, config.count, config.steps, config.iterations, config.looks, seed)
            for width, signs in config.trained
            for seed in range(config.networks)
        ),
    ]


def cost(cell: Points | Widths | Starts) -> Cost:
    pairs = 2 ** (cell.width - 1) if cell.width <= ENUMERATED else cell.signs / 2
    one = 2**cell.dim * cell.width * (60 + 16 * pairs)  # the terms of one inequality
    table = 8 * 2**cell.dim * cell.width * 30
    if isinstance(cell, Points):
        return Cost(3 * one * cell.points * cell.seeds, table + 1e6)
    if isinstance(cell, Widths):
        return Cost(4 * one * cell.seeds, table + 8 * pairs * cell.width + 1e6)
    descent = cell.count * (cell.steps * 2**cell.dim * cell.width * 60 + one * cell.iterations)
    return Cost(descent + 150 * 12 * one, cell.count * (table + 8 * 20 * cell.dim * cell.width) + 1e6)


def run(cell: Points | Widths | Starts) -> xr.Dataset:
    if isinstance(cell, Points):
        parts = [_points(cell, jax.random.key(seed)) for seed in range(cell.seeds)]
    elif isinstance(cell, Widths):
        parts = [_width(cell, jax.random.fold_in(jax.random.key(seed), cell.width)) for seed in range(cell.seeds)]
    else:
        return _trained(cell)
    return xr.concat(parts, dim="seed").assign_coords(seed=np.arange(cell.seeds))


def claims(results: Results) -> list[Claim]:
    return landscape_report.claims(results.where(Points), results.where(Widths), results.where(Starts))


def draw(results: Results) -> list[Figure]:
    return landscape_figures.figures(results.where(Points), results.where(Widths), results.where(Starts))


def _risk(problem: Problem, signs: int, strength: float, key: Key[Array, ""]) -> RandomisedRisk:
    drawn = {} if problem.net.width <= ENUMERATED else {"samples": signs, "key": key}
    return RandomisedRisk.of(problem.net, problem.X, problem.y, problem.loss, strength=strength, **drawn)  # type: ignore[arg-type]


def _inequalities(
    risk: RandomisedRisk,
    W: Float[np.ndarray, "k d m"],
    W_star: Float[np.ndarray, "... d m"],
    strengths: Float[np.ndarray, " k"] | None = None,
) -> dict[str, Float[np.ndarray, " k"]]:
    """Lemma 1, Theorem 2, Corollary 3 and the regulariser's own inequality at each point."""
    found = landscape_survey(risk, W, W_star, strengths=strengths)

    def scale(one: LandscapeInequality) -> float:
        return abs(one.curvature) + abs(one.descent) + 2 * (one.loss + one.opt) + one.allowance

    rows = {
        "lemma": [one.clean.slack / scale(one.clean) for one in found],  # from −1 to 1
        "lemma_slack": [one.clean.slack for one in found],
        "lemma_last": [one.clean.allowance for one in found],
        "proven": [one.close.epsilon for one in found],
        "theorem": [one.randomised.needed for one in found],
        "corollary": [one.regularised.needed for one in found],
        "corollary_curvature": [one.regularised.curvature for one in found],
        "corollary_right": [one.regularised.right for one in found],
        "penalty": [one.penalty.curvature / one.penalty.right for one in found],
    }
    return {name: np.array(values) for name, values in rows.items()}


def _points(cell: Points, key: Key[Array, ""]) -> xr.Dataset:
    """W anywhere; W next to W⋆Σ, where Lemma 1 is nearly attained; and W and W⋆ both anywhere. λ over four decades."""
    of_problem, of_signs, of_draws = jax.random.split(key, 3)
    problem = noisy_xor(cell.dim, cell.width, loss=cell.loss, key=of_problem)
    choice = penalty_choice(problem.norm, opt=problem.opt, gamma=GAMMA, epsilon=EPSILON)
    risk = _risk(problem, cell.signs, choice.strength, of_signs)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(of_draws)))
    far, near, other, lam = rng.uniform(size=(4, cell.points))
    directions, others = rng.standard_normal((2, cell.points, *problem.W_star.shape))
    turned = problem.W_star * rng.choice([-1.0, 1.0], (cell.points, 1, cell.width))
    kind = np.arange(cell.points) % 3
    W = _sized(directions, problem.norm * np.where(kind == 1, 10 ** (4 * near - 4), 10 ** (1.5 * far - 1)))
    W = np.where((kind == 1)[:, None, None], turned + W, W)
    drawn = _sized(others, problem.norm * 10 ** (other - 0.5))
    W_star = np.where((kind == 2)[:, None, None], drawn, problem.W_star)
    # And one column alone, W = √8.4 W⋆: every step of Appendix B.5 is an equality.
    single = np.where(np.arange(cell.width) == np.abs(problem.W_star).sum(axis=0).argmax(), problem.W_star, 0.0)
    W, W_star = np.concatenate([W, [8.4**0.5 * single]]), np.concatenate([W_star, [single]])
    found = _inequalities(risk, W, W_star, choice.strength * 10 ** np.append(4 * lam - 1, 0.0))
    found |= {"kind": np.append(kind, 3), "size": np.array([column_norm(V) for V in W]) / problem.norm}
    table = {name: ("point", values) for name, values in found.items()}
    return xr.Dataset(table | {"penalty_attained": found["penalty"][-1]})


def _sized(W: Float[np.ndarray, "k d m"], sizes: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k d m"]:
    """The same directions with these norms ‖W‖_{2,4}."""
    return W * (sizes / np.array([column_norm(V) for V in W]))[:, None, None]


def _width(cell: Widths, key: Key[Array, ""]) -> xr.Dataset:
    of_problem, of_signs, of_random = jax.random.split(key, 3)
    problem = noisy_xor(cell.dim, cell.width, key=of_problem)
    risk = _risk(problem, cell.signs, 0.0, of_signs)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(of_random)))
    drawn = rng.standard_normal((1, *problem.W_star.shape))
    W = np.concatenate([problem.W_star[None], _sized(drawn, np.array([problem.norm]))])
    found = landscape_survey(risk, W, problem.W_star)
    table = {"needed": [one.randomised.needed for one in found], "proven": [one.close.epsilon for one in found]}
    for name in landscape_report.LEMMAS:
        sides = [getattr(one.close, name) for one in found]
        table |= {name: [one.left for one in sides], f"{name}_ratio": [one.ratio for one in sides]}
    asked = coupling_width(cell.dim, norm=problem.norm, epsilon=EPSILON, radius=cell.dim**0.5)
    columns = {name: ("at", np.array(values)) for name, values in table.items()}
    return xr.Dataset(columns | {"asked": asked}).assign_coords(at=list(WEIGHTS))


def _trained(cell: Starts) -> xr.Dataset:
    of_problem, of_signs, of_steps, of_vectors, of_fresh = jax.random.split(jax.random.key(cell.seed), 5)
    problem = noisy_xor(cell.dim, cell.width, key=of_problem)
    opt = problem.opt
    choice = penalty_choice(problem.norm, opt=opt, gamma=GAMMA, epsilon=EPSILON)
    risk = _risk(problem, cell.signs, choice.strength, of_signs)
    begin = starts(problem, cell.count, seed=cell.seed)
    steps = np.unique(np.geomspace(2, cell.steps, cell.looks).round().astype(int))
    iterations = np.unique(np.geomspace(4, cell.iterations, cell.looks).round().astype(int))
    wandered = wander(problem, begin, strength=choice.strength, looks=steps, key=of_steps)
    path = np.concatenate([begin[None], wandered, descend(risk, wandered[-1], looks=iterations)])
    with jax.enable_x64(True):
        wide = in_float64(risk)
        seen = [certificate(wide, W, key=of_vectors, tol=LOOSE) for W in path[:-1, 0]]  # of the start by the saddle
        last = [certificate(wide, W, key=of_vectors) for W in path[-1]]
        seen.append(last[0])
    found = _inequalities(risk, path.reshape(-1, *problem.W_star.shape), problem.W_star)
    table = {name: (("look", "start"), numbers.reshape(path.shape[:2])) for name, numbers in found.items()}
    settings = {"gamma": GAMMA, "epsilon": EPSILON, "opt": opt}
    bounds = [
        stationary_bound(risk, W, problem.W_star, point=point, **settings)
        for W, point in zip(path[-1], last, strict=True)
    ]
    fresh = [_risk(problem, cell.signs, choice.strength, one) for one in jax.random.split(of_fresh, FRESH)]
    again = np.array([values(one, path[-1]) for one in fresh])
    return xr.Dataset(
        table
        | {
            "loss": (("look", "start"), np.array([values(risk, W) for W in path])),
            "phase": ("look", np.repeat([0, 1], [1 + len(steps), len(iterations)])),
            "curvature": ("look", np.array([one.curvature for one in seen])),
            "lowest": ("look", np.array([one.lowest for one in seen])),
            "gradient": ("start", np.array([one.gradient_norm for one in last])),
            "last_curvature": ("start", np.array([one.curvature for one in last])),
            "last_residual": ("start", np.array([one.residual for one in last])),
            "last_lowest": ("start", np.array([one.lowest for one in last])),
            "last_loss": ("start", np.array([one.loss for one in bounds])),
            "fresh_loss": ("start", again.mean(axis=0)),
            "fresh_error": ("start", again.std(axis=0, ddof=1) / FRESH**0.5),
            "norm": ("start", np.array([one.norm for one in bounds])),
            "inexactness": ("start", np.array([one.inexactness for one in bounds])),
            "start_norm": ("start", np.array([column_norm(W) for W in begin])),
            "loss_bound": choice.loss_bound,
            "norm_bound": choice.norm_bound,
            "norm_star": problem.norm,
            "length_star": float(np.sum(problem.W_star**2)),  # ‖W⋆‖_F²
            "opt": opt,
            "best": BEST,
            "strength": choice.strength,
        }
    ).assign_coords(look=np.concatenate([[0], steps, cell.steps + iterations]), start=np.arange(cell.count))
