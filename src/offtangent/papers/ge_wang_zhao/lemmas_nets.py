r"""What Lemma 18 is made of: Propositions 2 and 4, and Lemmas 15 to 17 on nets of symmetric tensors.

Polynomials of Gaussians are seldom near any value (Proposition 2), and so $\|Qc\|$ is seldom small for the c of a net
(Lemma 15); it is seldom large on the net (16) and thus anywhere (17). Nets are of tensors on R², where they are small
enough to be nets in earnest, and not some points.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.statistics import Interval, mean_interval, slope_interval
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao._kept import DELTA
from offtangent.papers.ge_wang_zhao._random import unit_tensor
from offtangent.theory.ge_wang_zhao.nets import anticoncentration, net_ceiling, net_floor, sphere_net
from offtangent.theory.ge_wang_zhao.tensors import hermite_basis, hermite_expansion, isometric_power, leading_hermite

RADIUS = 0.5  # of the nets
SMALL = 0.01  # probabilities up to here for Lemma 15: at 0.1 a union bound over a net is no longer sharp
LEAST = 40_000  # draws, for probabilities that small
CHANCES = 3  # at which quantiles are looked for
SEEN = 40  # draws at the least below a quantile
ROUNDING = 1e-9
LAWS = {"monomial": "f = x₁^p and t = 0", "random": "a random f and t"}
SETS = {"one": "I/√2 (e₁ for p = 1) alone", "net": "a net with σ = 1/2"}

Part = dict[str, float | Float[np.ndarray, "q"]]


@dataclass(frozen=True)
class Smallness:
    """How near a polynomial of one of LAWS, of degree p and variance 1, comes to t with probability `chance`."""

    law: str
    power: int
    dim: int
    chance: float
    draws: int
    seeds: int


@dataclass(frozen=True)
class Leading:
    """Leading Hermite coefficients of random tensors, with random shifts."""

    power: int
    dim: int
    seeds: int


@dataclass(frozen=True)
class Lowest:
    """The smallest ‖Qc‖ over a net of tensors on R² that is missed with probability `chance`."""

    power: int
    features: int
    chance: float
    draws: int
    seeds: int


@dataclass(frozen=True)
class Highest:
    """The largest ‖Qc‖ over one of SETS of tensors on R², and over all of unit length."""

    points: str
    power: int
    features: int
    draws: int
    seeds: int


@dataclass(frozen=True)
class Radial:
    """The tail of ⟨c, r ⊗ r⟩ at √d for c = I/√d, over the one that the proof of Lemma 16 has."""

    dim: int
    draws: int
    seeds: int


Kind = Smallness | Leading | Lowest | Highest | Radial
DIM = 2  # of the tensors of Lowest and Highest


def cells(draws: int, seeds: int) -> list[Kind]:
    """The same in every profile, but for draws and seeds."""
    most = max(draws, LEAST)
    at, small = (_chances(count, top) for count, top in ((draws, 0.1), (most, SMALL)))
    found: list[Kind] = [
        Smallness(law, power, 3, chance, draws, seeds) for power in (1, 2, 3) for law in LAWS for chance in at
    ]
    found += [Leading(power, dim, seeds) for power in (1, 2, 3) for dim in (2, 5)]
    found += [Lowest(power, k, chance, most, seeds) for power in (1, 2) for k in (1, 2) for chance in small]
    found += [Highest("one", power, 1, draws, seeds) for power in (1, 2)]
    found += [Highest("net", power, k, draws, seeds) for power in (1, 2) for k in (1, 2, 4)]
    return [*found, *(Radial(dim, draws, seeds) for dim in (4, 9, 16, 25, 36))]


def _chances(draws: int, top: float) -> list[float]:
    return [float(f"{chance:.3g}") for chance in np.geomspace(SEEN / draws, top, CHANCES)]


def work(cell: Kind) -> tuple[float, float]:
    """Operations and bytes, roughly."""
    if isinstance(cell, Leading):
        return 1e6, 1e6
    size = 60 if isinstance(cell, Lowest | Highest) else 40
    return 30.0 * cell.seeds * cell.draws * size, 24.0 * cell.draws * size + 1e6


def one(cell: Kind, seed: int) -> Part:
    """What one seed of a cell finds: the same draws for every chance."""
    rng = np.random.default_rng([seed, getattr(cell, "power", 0), getattr(cell, "dim", 0)])
    if isinstance(cell, Smallness):
        return _smallness(cell, rng)
    if isinstance(cell, Lowest):
        lowest = _on(_net("net", cell.power), _products(cell, rng)).min(axis=1)
        return {"low": float(np.sqrt(np.quantile(lowest, cell.chance)))}
    if isinstance(cell, Highest):
        return _highest(cell, rng)
    if isinstance(cell, Radial):  # of t = √d: Pr(‖r‖²/√d > t) is that of ‖r‖² > d
        share, root = float((rng.chisquare(cell.dim, cell.draws) > cell.dim).mean()), math.sqrt(cell.dim)
        return {"ratio": share / (root**-0.5 * math.exp(-root / 2))}
    M, shift = unit_tensor(rng, cell.dim, cell.power), rng.standard_normal(cell.dim)
    expansion = hermite_expansion(M, shift)
    found = expansion.coefficients[expansion.indices.sum(axis=1) == cell.power]
    return {"apart": float(np.abs(found - leading_hermite(M)).max())}


def _smallness(cell: Smallness, rng: np.random.Generator) -> Part:
    p = cell.power
    x = rng.standard_normal((cell.draws, cell.dim))
    if cell.law == "monomial":
        variance = math.prod(range(1, 2 * p, 2)) - (math.prod(range(1, p, 2)) ** 2 if p % 2 == 0 else 0)
        distances = np.abs(x[:, 0] ** p) / math.sqrt(variance)
    else:
        coefficients = rng.standard_normal(math.comb(cell.dim + p, p) - 1)
        coefficients /= np.linalg.norm(coefficients)
        values = hermite_basis(x, p)[:, 1:] @ coefficients
        distances = np.abs(values[1:] - values[0])
    return {"epsilon": float(np.quantile(distances, cell.chance))}


def _net(points: str, power: int) -> Float[np.ndarray, "Z D"]:
    """In isometric coordinates; I/√2 has √½, 0 and √½ in those of e₁ ⊗ e₁, e₁ ⊗ e₂ and e₂ ⊗ e₂."""
    if points == "net":
        return sphere_net(symmetric_dimension(DIM, power), RADIUS)
    return np.array([[1.0, 0.0]]) if power == 1 else np.array([[math.sqrt(0.5), 0.0, math.sqrt(0.5)]])


def _products(cell: Lowest | Highest, rng: np.random.Generator) -> Float[np.ndarray, "n D D"]:
    """QᵀQ of every draw."""
    rows = isometric_power(rng.standard_normal((cell.draws * cell.features, DIM)), cell.power)
    Q = rows.reshape(cell.draws, cell.features, -1)
    return np.einsum("nki,nkj->nij", Q, Q)


def _on(net: Float[np.ndarray, "Z D"], G: Float[np.ndarray, "n D D"]) -> Float[np.ndarray, "n Z"]:
    """‖Qc‖² of every draw and every c."""
    pairs = np.einsum("zi,zj->zij", net, net).reshape(len(net), -1)
    return np.maximum(G.reshape(len(G), -1) @ pairs.T, 0)


def _highest(cell: Highest, rng: np.random.Generator) -> Part:
    G = _products(cell, rng)
    most, everywhere = np.sqrt(_on(_net(cell.points, cell.power), G).max(axis=1)), np.sqrt(np.linalg.eigvalsh(G)[:, -1])
    return {
        "high": float(np.quantile(most, 1 - DELTA)),
        "top": float(np.quantile(everywhere, 1 - DELTA)),
        "beyond": float(((1 - RADIUS) * everywhere / most).max()),
    }


def claims(results: Results) -> list[Claim]:
    """Of the cells of this module among the results, where there are any."""
    found: list[Claim] = []
    judges = (
        (Smallness, _of_smallness),
        (Leading, _of_leading),
        (Lowest, _of_lowest),
        (Highest, _of_highest),
    )
    for kind, judge in judges:
        chosen = results.where(kind)
        for power in chosen.values("power"):
            found += judge(power, chosen.where(power=power))
    return found + _of_radial(results.where(Radial))


def _over_chances(results: Results, name: str) -> tuple[Interval, Float[np.ndarray, "q"], Float[np.ndarray, "s q"]]:
    """The log-log slope of a quantile in its probability, and both."""
    at, table = results.field("chance"), results.table(name)
    return slope_interval(at, table, level=0.99), at, table


def _of_smallness(p: int, results: Results) -> list[Claim]:
    slopes, constants = {}, []
    for (law,), chosen in results.groups("law"):
        if len(chosen) < 3:
            continue
        slopes[law], at, table = _over_chances(chosen, "epsilon")
        means = table.mean(axis=0)
        constants += [float(q / anticoncentration(p, e)) for q, e in zip(at, means, strict=True) if e > 0]
    if not slopes:
        return []
    cell, worst = results.first, max(slopes, key=lambda law: slopes[law].high)
    return [
        Claim.no_slower(
            slopes[worst],
            p,
            source="Proposition 2, eq. (3)",
            statement=f"Pr(|f(x) − t| ≤ ε) = O(p)ε^(1/p) for polynomials of degree p = {p} and variance 1: the ε that "
            f"is missed with probability q falls no faster than q^{p}",
            measured=f"log-log slope of ε in q from {min(results.values('chance')):.2g} to 0.1, 99 % interval, "
            f"{cell.seeds} times {cell.draws} draws, d = {cell.dim}; the steeper of {' and '.join(slopes)} f",
            note=f"It is that of {LAWS[worst]}. The constant of O(p), over p: {max(constants, default=0):.3g} at most.",
        )
    ]


def _of_leading(p: int, results: Results) -> list[Claim]:
    dims = ", ".join(map(str, results.values("dim")))
    return [
        Claim.at_most(
            max(float(data["apart"].max()) for _, data in results),
            ROUNDING,
            source="Proposition 4",
            identity=True,
            statement=f"f_i^M = Π_j (i_j!)^(−1/2) f_i^H for i ∈ I_d^p, p = {p}, whatever the shift",
            measured=f"largest difference, f^H by moments, unit tensors with random shifts, d = {dims}, "
            f"{results.first.seeds} of each",
        )
    ]


def _of_lowest(p: int, results: Results) -> list[Claim]:
    found, size = list[Claim](), len(_net("net", p))
    for (k,), chosen in results.groups("features"):
        if len(chosen) < 3:
            continue
        slope, at, table = _over_chances(chosen, "low")
        floors = [net_floor(size, int(k), p, delta=float(q)) for q in at]
        found.append(
            Claim.no_slower(
                slope,
                p / k,
                source="Lemma 15",
                statement=f"‖Qc‖₂ ≥ η/√p! on a net but with probability Z(Cpη^(1/p))^k, p = {p}, k = {k}: the smallest "
                "‖Qc‖₂ that is missed with probability q falls no faster than q^(p/k)",
                measured=f"log-log slope in q from {at[0]:.2g} to {at[-1]:.2g}, 99 % interval, {chosen.first.seeds} "
                f"times {chosen.first.draws} draws, d = {DIM}, a net of {size} tensors, σ = {RADIUS:g}",
                note=f"It is at least {(table.mean(axis=0) / floors).min():.2g} times what the lemma has with C = 1.",
            )
        )
    return found


def _of_highest(p: int, results: Results) -> list[Claim]:
    cell, rows = results.first, [(one, data, len(_net(one.points, p))) for one, data in results]
    where = f"{cell.seeds} times {cell.draws} draws, d = {DIM}"
    told = "; ".join(
        f"{SETS[points]}, k = {', '.join(map(str, some.values('features')))}"
        for (points,), some in results.groups("points")
    )
    ratios = [
        mean_interval(data["high"].values / net_ceiling(Z, DIM, one.features, p, delta=DELTA)) for one, data, Z in rows
    ]
    found = [
        Claim.at_most(
            max(ratios, key=lambda ratio: ratio.high),
            1.0,
            source="Lemma 16",
            statement=f"‖Qc‖₂ ≤ τ for all of Z tensors c, but with probability δ = {DELTA:g}, which is "
            f"ZkPr(χ_d > (τ/√k)^(1/p)), p = {p}",
            measured=f"what is exceeded with probability δ over τ, the largest ratio, 95 % interval, {where}: {told}",
            note="With the law of ‖r‖ in d dimensions, where the paper has that of one coordinate.",
        )
    ]
    nets = [(one, data, Z) for one, data, Z in rows if one.points == "net"]
    if nets:
        sizes = ", ".join(str(one.features) for one, _, _ in nets)
        slack = max(
            float((data["top"] / net_ceiling(Z, DIM, one.features, p, delta=DELTA, radius=RADIUS)).max())
            for one, data, Z in nets
        )
        found.append(
            Claim.at_most(
                max(float(data["beyond"].max()) for _, data, _ in nets),
                1 + ROUNDING,
                source="Lemma 17",
                identity=True,
                statement=f"what is at most τ on a σ-net is at most τ/(1 − σ) everywhere, p = {p}",
                measured=f"largest (1 − σ)‖Q‖₂ over the largest ‖Qc‖₂ of the net, σ = {RADIUS:g}, k = {sizes}, {where}",
                note="So it follows from Lemma 16, with the same probability. What ‖Q‖₂ exceeds with probability "
                f"δ = {DELTA:g} is at most {slack:.2g} of τ/(1 − σ).",
            )
        )
    return found


def _of_radial(results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    dims, table, cell = results.field("dim"), results.table("ratio"), results.first
    first, last = table.mean(axis=0)[[0, -1]]
    return [
        Claim.at_most(
            slope_interval(dims, table, level=0.99),
            0.0,
            source="Lemma 16, proof",
            misprint=True,
            statement="Pr(|⟨c, r^⊗p⟩| > t) ≤ O(t^(−1/p)e^(−t^(2/p)/2)) for every c of unit length and every d: at "
            "c = I/√d, p = 2 and t = √d the ratio of the two sides does not grow with d",
            measured=f"log-log slope of the ratio in d from {dims[0]:.0f} to {dims[-1]:.0f}, 99 % interval, "
            f"{cell.seeds} times {cell.draws} draws",
            note=f"It goes from {first:.3g} to {last:.3g}, about like e^(√d/2): the tail is that of one coordinate, "
            "and that of ‖r‖ is meant.",
        )
    ]
