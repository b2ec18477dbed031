r"""Section 4.1: the feature covariance has three blocks of eigenvalues, large, medium and small, and a gap after each.

For inputs uniform on $S^{d-1}(\sqrt d)$ the covariance $\Sigma$ of the tangent features, eq. (5), is
$Q_1\Lambda_1Q_1^T + Q_2\Lambda_2Q_2^T + Q_3\Lambda_3Q_3^T$. "Formally, $\Lambda_2$ contain $\Theta(d^{-i+1})$ with
multiplicity $\Theta(d^i)$, for integers $i \in [k+1, 2k]$, and the entries of $\Lambda_3$ are equal to $1/m$ on
average"; $\Lambda_1$ are those of the degrees up to k. At infinite width each degree i has one eigenvalue, $\xi_i$, of
multiplicity $B(d, i)$, in closed form (Gegenbauer polynomials). At a finite width, and from a finite sample, it becomes
a block around $\xi_i$, whose mean, spread and ends are known too (`theory.nichani.finite_levels`): nothing is fitted.

Five kinds of cells. The spectrum of one activation in one dimension, from inputs without labels, or of $\Sigma$ itself
from harmonics; the mean of $\Lambda_3$ over widths; the angle between $V_1$ of n training inputs and $Q_1$, with Davis
and Kahan's bound; $\xi_i$ and $B(d, i)$ over dimensions; and what Assumptions 2 and 3 say of the activation.
"""

import itertools
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import xarray as xr
from jaxtyping import Array, Float, Int, Key

from offtangent import data
from offtangent.lab import Claim, Cost, Results
from offtangent.networks import TwoLayer
from offtangent.papers.nichani import spectrum_figures, spectrum_report
from offtangent.report import Figure
from offtangent.special import activation
from offtangent.special.sphere import harmonic_dimension, polynomial_dimension, tangent_eigenvalues
from offtangent.theory import FeatureCovariance
from offtangent.theory.nichani.assumptions import bounded_assumption, harmonic_assumption
from offtangent.theory.nichani.covariance import Samples
from offtangent.theory.nichani.feature_alignment import alignment
from offtangent.theory.nichani.levels import FiniteLevel, finite_levels
from offtangent.theory.nichani.sphere_covariance import trace_parts
from offtangent.theory.nichani.tangent import TangentFeatures

SIGMOID, SOFTPLUS = "sigmoid(z − 1)", "softplus"
SHOWN = 400  # eigenvalues kept for the figure
BLOCK = 2**15  # normals drawn at once
SLOPES = 10  # networks that a slope is fitted to


@dataclass(frozen=True)
class Blocks:
    """`seeds` networks, and as many samples of N inputs, or the population (None)."""

    activation: str
    dim: int
    degree: int  # k
    width: int
    samples: int | None
    seeds: int


@dataclass(frozen=True)
class Rest:
    """The mean of Λ₃ at k = 1 over widths, in samples of N inputs."""

    activation: str
    dim: int
    widths: tuple[int, ...]
    samples: int
    seeds: int


@dataclass(frozen=True)
class Angles:
    """V₁ of n training inputs against Q₁ of the population, for growing n, at rank n₁."""

    activation: str
    dim: int
    width: int
    sizes: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Scaling:
    """ξ_i and B(d, i) for i = 0, …, degree over dimensions, in closed form."""

    activation: str
    dims: tuple[int, ...]
    degree: int


@dataclass(frozen=True)
class Assumptions:
    """Assumption 2, and 3 for the degrees 0, …, degree."""

    activation: str
    dim: int
    degree: int


AnyCell = Blocks | Rest | Angles | Scaling | Assumptions


@dataclass(frozen=True)
class Config:
    dims: tuple[int, ...]  # k = 1, from samples
    exact: tuple[int, ...]  # k = 1, from harmonics
    square: tuple[int, ...]  # k = 2, from samples
    widths: tuple[int, ...]
    sizes: tuple[int, ...]
    angle: tuple[int, int]  # dimension and width
    rest: int = 6  # dimension
    per: int = 6  # samples for each of the n_2 eigenvalues, k = 1
    square_per: int = 8  # for each of the n_4, k = 2
    neurons: int = 100  # width for each dimension, from samples
    seeds: int = 10
    exact_seeds: int = 5


PROFILES = {
    "smoke": Config(
        dims=(6, 8, 10), exact=(3, 4, 5), square=(4,), widths=(200, 2000, 20_000), sizes=(50, 500, 5000),
        angle=(4, 60), rest=4, neurons=60, seeds=6, exact_seeds=8,
    ),
    "laptop": Config(
        dims=(10, 15, 20), exact=(6, 8, 10), square=(4, 5, 6), widths=(400, 1265, 4000, 12_650, 40_000),
        sizes=(100, 316, 1000, 3162, 10_000), angle=(5, 100),
    ),
    "paper": Config(
        dims=(20, 30, 50), exact=(8, 11, 15), square=(5, 6, 7), widths=(400, 1265, 4000, 12_650, 40_000),
        sizes=(100, 316, 1000, 3162, 10_000), angle=(8, 200), per=4, neurons=200, seeds=3, exact_seeds=4,
    ),
}  # fmt: skip


def cells(config: Config) -> list[AnyCell]:
    found: list[AnyCell] = []
    for name in (SIGMOID, SOFTPLUS):
        for dim in config.dims:
            samples = config.per * polynomial_dimension(dim, 2)
            found.append(Blocks(name, dim, 1, config.neurons * dim, samples, config.seeds))
        found += [Blocks(name, dim, 1, 8 * dim**2, None, config.exact_seeds) for dim in config.exact]
        for dim in config.square:
            samples = config.square_per * polynomial_dimension(dim, 4)
            found.append(Blocks(name, dim, 2, 4 * config.neurons * dim, samples, config.seeds))
        samples = config.per * polynomial_dimension(config.rest, 2)
        found.append(Rest(name, config.rest, config.widths, samples, SLOPES))
        found.append(Angles(name, *config.angle, config.sizes, SLOPES))
        found.append(Scaling(name, (100, 316, 1000, 3162, 10_000), 4))
        found.append(Assumptions(name, 100, 2))
    return found


def cost(cell: AnyCell) -> Cost:
    match cell:
        case Blocks(samples=None):
            h, count = cell.width // 2, polynomial_dimension(cell.dim, 2) + cell.dim
            return Cost(
                cell.seeds * ((2 * count + 200) * 8 * cell.dim * h**2 + 40 * 12 * h**2), 64 * h**2 + 24 * count * h
            )
        case Blocks(samples=int(n)):
            return Cost(cell.seeds * n**2 * (cell.width + 2 * n), 40.0 * n**2 + 8e7)
        case Rest():
            n = cell.samples
            return Cost(cell.seeds * sum(n * w * (n + 60) + 4 * n**3 for w in cell.widths), 8e7)
        case Angles():
            p = cell.dim * cell.width // 2
            return Cost(
                cell.seeds * sum(n * p * (2 * p + 800) + 20 * p**3 for n in cell.sizes), 24 * max(cell.sizes) * p
            )
        case _:
            return Cost(1e8, 1e6)


def run(cell: AnyCell) -> xr.Dataset:
    match cell:
        case Blocks():
            return _blocks(cell)
        case Rest():
            return _rest(cell)
        case Angles():
            return _angles(cell)
        case Scaling():
            return _scaling(cell)
        case Assumptions():
            return _assumptions(cell)


def claims(results: Results) -> list[Claim]:
    return spectrum_report.claims(results)


def draw(results: Results) -> list[Figure]:
    return spectrum_figures.figures(results)


def _blocks(cell: Blocks) -> xr.Dataset:
    levels = _levels(cell)
    cuts = np.cumsum([0, *(level.multiplicity for level in levels)])
    parts, shown = [], None
    for seed in range(cell.seeds):
        values = _values(cell, jax.random.key(seed))
        blocks = [values[a:b] for a, b in itertools.pairwise(cuts)]
        ratios = values[:-1] / values[1:]
        largest = np.sort(np.argsort(-ratios[: cuts[-1] * 3 // 2])[: len(levels)]) + 1
        parts.append(
            xr.Dataset(
                {
                    "mean": ("level", [block.mean() for block in blocks]),
                    "spread": ("level", [block.std() for block in blocks]),
                    "low": ("level", [block[-1] for block in blocks]),
                    "high": ("level", [block[0] for block in blocks]),
                    "break": ("level", largest),
                    "first": ratios[polynomial_dimension(cell.dim, cell.degree) - 1],
                    "second": ratios[polynomial_dimension(cell.dim, 2 * cell.degree) - 1],
                    "sum": values[: cuts[-1]].sum(),
                }
            )
        )
        if seed == 0:
            index = _thinned(len(values), cuts[1:])
            shown = xr.Dataset({"eigenvalue": ("place", values[index]), "index": ("place", index + 1)})
    assert shown is not None
    predicted = {
        "degree": [level.degree for level in levels],
        "multiplicity": [level.multiplicity for level in levels],
        "value": [level.value for level in levels],
        "predicted": [level.mean for level in levels],
        "predicted_spread": [level.spread for level in levels],
        "end": cuts[1:],
    }
    drawn = xr.concat(parts, dim="seed").assign_coords(seed=np.arange(cell.seeds))
    return drawn.merge(shown).assign({name: ("level", values) for name, values in predicted.items()})


def _levels(cell: Blocks) -> list[FiniteLevel]:
    """The degrees up to 2k that the network sees, in the order of their eigenvalues."""
    found = finite_levels(
        cell.activation, dim=cell.dim, neurons=cell.width // 2, samples=cell.samples, degree=2 * cell.degree
    )
    return sorted((level for level in found if level.present), key=lambda level: -level.value)


def _values(cell: Blocks, key: Key[Array, ""]) -> Float[np.ndarray, " r"]:
    """Eigenvalues of Σ in falling order."""
    of_net, of_inputs = jax.random.split(jax.random.fold_in(key, cell.dim))
    net = _network(cell.activation, cell.dim, cell.width, of_net)
    if cell.samples is None:
        count = polynomial_dimension(cell.dim, 2 * cell.degree) + cell.dim
        return FeatureCovariance.of_harmonics(net, count=min(count, cell.dim * cell.width // 2)).values
    gram = TangentFeatures.of(net, _inputs(cell.samples, cell.dim, of_inputs)).gram() / cell.samples
    values = _eigenvalues(gram)
    return values[values > 1e-14 * values[0]]


def _rest(cell: Rest) -> xr.Dataset:
    end = polynomial_dimension(cell.dim, 2)
    mean = np.empty((cell.seeds, len(cell.widths)))
    for seed in range(cell.seeds):
        of_net, of_inputs = jax.random.split(jax.random.key(seed))
        X = _inputs(cell.samples, cell.dim, of_inputs)
        for at, width in enumerate(cell.widths):
            net = _network(cell.activation, cell.dim, width, jax.random.fold_in(of_net, width))
            gram = TangentFeatures.of(net, X).gram() / cell.samples
            mean[seed, at] = (np.trace(gram) - _eigenvalues(gram)[:end].sum()) / (cell.dim * width - end)
    whole, _ = trace_parts(activation(cell.activation), cell.dim, 1)
    predicted = []
    for width in cell.widths:
        levels = finite_levels(cell.activation, dim=cell.dim, neurons=width // 2, samples=cell.samples, degree=2)
        held = sum(level.multiplicity * level.mean for level in levels)
        predicted.append((whole - held) / (cell.dim * width - end))
    return xr.Dataset(
        {"mean": (("seed", "width"), mean), "predicted": ("width", predicted)},
        coords={"seed": np.arange(cell.seeds), "width": list(cell.widths)},
    )


def _angles(cell: Angles) -> xr.Dataset:
    rank = polynomial_dimension(cell.dim, 1)
    parts = []
    for seed in range(cell.seeds):
        of_net, of_inputs = jax.random.split(jax.random.key(seed))
        net = _network(cell.activation, cell.dim, cell.width, of_net)
        exact = FeatureCovariance.of_harmonics(net, count=rank + 1)
        X = _inputs(max(cell.sizes), cell.dim, of_inputs)
        for size in cell.sizes:
            found = alignment(_training(net, X[:size], rank + 1), exact, rank)
            parts.append((found.sine, found.bound if found.bound is not None else np.nan, found.distance))
    table = np.array(parts).reshape(cell.seeds, len(cell.sizes), 3)
    return xr.Dataset(
        {name: (("seed", "samples"), table[:, :, at]) for at, name in enumerate(("sine", "bound", "distance"))},
        coords={"seed": np.arange(cell.seeds), "samples": list(cell.sizes)},
    )


def _training(net: TwoLayer, X: Float[np.ndarray, "n d"], count: int) -> FeatureCovariance:
    """The training features' covariance with its first eigenvectors; where n > dh, from a matrix of dh × dh."""
    features = TangentFeatures.of(net, X, keep=True)
    assert features.kept is not None
    n, size = len(X), features.start.size
    if n <= size:
        return FeatureCovariance.of_samples(net, X, count=count)
    phi = (X[:, :, None] * features.kept[:, None, :]).reshape(n, size)
    values, right = scipy.linalg.eigh(phi.T @ phi, subset_by_index=(size - count, size - 1))
    values, right = values[::-1], right[:, ::-1]
    left = phi @ right / np.sqrt(values)
    return FeatureCovariance(net, values / n, features.trace() / n, Samples(features, left, left / np.sqrt(values)))


def _scaling(cell: Scaling) -> xr.Dataset:
    degrees = np.arange(cell.degree + 1)
    values = np.stack([tangent_eigenvalues(cell.activation, dim=dim, degree=cell.degree) for dim in cell.dims], axis=1)
    sizes = np.array([[float(harmonic_dimension(dim, int(i))) for dim in cell.dims] for i in degrees])
    unseen = harmonic_assumption(cell.activation, dim=cell.dims[0], degree=cell.degree).first.failures
    return xr.Dataset(
        {
            "value": (("degree", "dim"), values),
            "multiplicity": (("degree", "dim"), sizes),
            "seen": ("degree", _seen(unseen, cell.degree)),
        },
        coords={"degree": degrees, "dim": list(cell.dims)},
    )


def _assumptions(cell: Assumptions) -> xr.Dataset:
    bounded = bounded_assumption(cell.activation)
    harmonic = harmonic_assumption(cell.activation, dim=cell.dim, degree=cell.degree)
    return xr.Dataset(
        {
            "supremum": ("order", [part.supremum for part in bounded.parts]),
            "first": ("degree", list(harmonic.first.energies)),
            "second": ("degree", list(harmonic.second.energies)),
            "first_seen": ("degree", _seen(harmonic.first.failures, cell.degree)),
            "second_seen": ("degree", _seen(harmonic.second.failures, cell.degree)),
        }
    )


def _seen(failures: tuple[int, ...], degree: int) -> list[bool]:
    return [k not in failures for k in range(degree + 1)]


def _network(name: str, dim: int, width: int, key: Key[Array, ""]) -> TwoLayer:
    """`TwoLayer.symmetric(law="sphere", ...)`, drawn by one program for all shapes."""
    half = _directions(width // 2, dim, key).T
    signs = np.repeat([1.0, -1.0], width // 2)
    return TwoLayer(
        jnp.asarray(np.hstack([half, half]), jnp.float32),
        jnp.asarray(signs, jnp.float32),
        activation(name),
        paired=True,
    )


def _inputs(n: int, dim: int, key: Key[Array, ""]) -> Float[np.ndarray, "n d"]:
    return dim**0.5 * _directions(n, dim, key)


def _directions(n: int, dim: int, key: Key[Array, ""]) -> Float[np.ndarray, "n d"]:
    """Points uniform on the unit sphere. JAX compiles for every new shape, so normals are drawn in blocks of one."""
    blocks = [
        data.distributions.gaussian(BLOCK, 1, key=jax.random.fold_in(key, at)) for at in range(-(-n * dim // BLOCK))
    ]
    return data.preprocessing.unit_norm(np.concatenate(blocks)[: n * dim].reshape(n, dim))


def _eigenvalues(matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " n"]:
    """All eigenvalues in falling order, without eigenvectors, on a GPU where there is one."""
    if jax.default_backend() == "cpu":
        return scipy.linalg.eigvalsh(matrix, check_finite=False)[::-1]
    with jax.enable_x64(True):
        return np.asarray(jnp.linalg.eigvalsh(jnp.asarray(matrix, jnp.float64)))[::-1]


def _thinned(count: int, ends: Int[np.ndarray, " b"]) -> Int[np.ndarray, " s"]:
    """Places, from 0, that show a spectrum on a log axis: both sides of every end among them."""
    spread = np.unique(np.geomspace(1, count, SHOWN).astype(int)) - 1
    sides = np.concatenate([ends - 1, ends])
    return np.unique(np.concatenate([spread, sides[sides < count]]))
