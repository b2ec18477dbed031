"""What Section 6's results say: its claims and its figures."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from offtangent.kernels import relu_hidden
from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import mean_interval, slope_interval
from offtangent.papers.arora._conditions import DELTA, constant_one, often, positive, theorem_51
from offtangent.papers.arora._tables import stacked
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.arora.learnability import sample_size

EXAMPLES = {
    "linear": ("Example 6.1", "βᵀx costs at most 3‖β‖"),
    "quadratic": ("Example 6.2", "xᵀAx costs at most 6‖A‖_*"),
    "cosine": ("Example 6.3", "cos(βᵀx) − 1 costs at most 3‖β‖ sinh‖β‖"),
    "arctan": ("Example 6.4", "z·arctan(z/2), z = βᵀx, costs at most 3 Σ_j 2j 2^(1−2j)/(2j−1) ‖β‖^(2j)"),
    "sum": ("Corollary 6.2", "a sum of αⱼ (βⱼᵀx)^pⱼ costs at most 3 Σ pⱼ |αⱼ| ‖βⱼ‖^pⱼ"),
}
COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")
ROUNDING = 1e-9  # of eigenvalues of products with the pseudo-inverse


def label_claims(results: Results) -> Iterator[Claim]:
    """Theorem 6.1 and what follows from it, and what happens outside it."""
    table = stacked(results, "samples", "dim", "seed")
    if table is None:
        return
    n = table.samples.values
    dims = ", ".join(str(d) for d in table.dim.values)
    over = f"n from {n[0]} to {n[-1]}, d = {dims}, {table.sizes['seed']} seeds"
    yield from _theorem(table, over)
    yield from _examples(table, over)
    yield from _odd(table, over)
    yield from _learnt(table, over)
    yield Claim.at_least(
        float(table.smallest.min()), 0, strict=True,
        source="Remark 5.1",
        statement="λ_min(H∞) > 0 when no two inputs are parallel",
        measured=f"smallest λ_min, {over}",
        note="Of inputs drawn from the sphere no two are parallel, with probability one.",
    )  # fmt: skip


def _covers(table: xr.Dataset, *powers: int) -> tuple[Hypothesis, ...]:
    """Theorem 6.1's hypotheses: no odd power but one, and an H∞ that can be inverted."""
    odd = max((p for p in powers if p % 2 and p > 1), default=0)
    return (
        Hypothesis("largest odd power above 1", odd, "=", 0, "Theorem 6.1"),
        positive(float(table.smallest.min())),
    )


def _theorem(table: xr.Dataset, over: str) -> Iterator[Claim]:
    covered = table.sel(label=_powers(table, odd=False))
    powers = ", ".join(_degree(name) for name in covered.label.values)
    worst = covered.cost / covered.bound
    hypotheses = _covers(table, *(int(_degree(name)) for name in covered.label.values))
    yield Claim.at_most(
        float(worst.max()), 1,
        source="Theorem 6.1",
        statement="√(yᵀ(H∞)⁻¹y) ≤ 3p|α|‖β‖ᵖ for p = 1 and even p, for every n",
        measured=f"largest ratio of the two sides, p = {powers}, {over}",
        hypotheses=hypotheses,
        note="Both sides scale alike with α and β, so α = ‖β‖ = 1.",
    )  # fmt: skip
    for name, field, statement in (
        ("proof", "proof", "√(yᵀ(H∞)⁻¹y) ≤ 2|α|‖β‖ for p = 1 and ≤ √(2π)(p − 1)|α|‖β‖ᵖ for even p"),
        ("proof, first step", "tightest", "√(yᵀ(H∞)⁻¹y) ≤ |α|‖β‖ᵖ / √c_p, c_p the coefficient of Kᵖ in H∞"),
    ):
        yield Claim.at_most(
            float((covered.cost / covered[field]).max()), 1,
            source=f"Theorem 6.1, {name}",
            statement=statement,
            measured=f"largest ratio of the two sides, p = {powers}, {over}",
            hypotheses=hypotheses,
        )  # fmt: skip
    largest = table.largest.dropna("samples", how="all")
    degrees = [int(_degree(name)) for name in covered.label.values]
    assert relu_hidden.series is not None
    c = relu_hidden.series(max(degrees) + 1)
    scaled = [float(largest.sel(power=p).max() * c[p]) for p in degrees]
    yield Claim.at_most(
        max(scaled), 1,
        source="Theorem 6.1, proof: c_p Kᵖ ⪯ H∞",
        statement="the same for every β at once",
        measured=f"largest c_p λ_max((H∞)⁻¹Kᵖ), p = {powers}, n up to {int(largest.samples.max())}, {over}",
        hypotheses=hypotheses,
    )  # fmt: skip
    yield Claim.at_most(
        float(table.excess.max()), 1,
        source="Section 6, before Corollary 6.2",
        statement="√(yᵀ(H∞)⁻¹y) of a sum of labels is at most the sum of theirs",
        measured=f"largest ratio over all pairs of {table.sizes['label']} kinds of labels, {over}",
        identity=True,
    )  # fmt: skip


def _examples(table: xr.Dataset, over: str) -> Iterator[Claim]:
    for name, (source, statement) in EXAMPLES.items():
        found = table.sel(label=name)
        yield Claim.at_most(
            float((found.cost / found.bound).max()), 1,
            source=source,
            statement=statement,
            measured=f"largest ratio of the two sides, {over}",
            hypotheses=_covers(table),
            note=f"Largest ratio to the best bound that the series of H∞ gives: "
            f"{float((found.cost / found.tightest).max()):.3f}.",
        )  # fmt: skip
    ratio = (table.scaled_cost**2 / table.trace_norm).stack(run=("samples", "dim", "seed")).transpose("run", "factor")
    yield Claim.at_most(
        slope_interval(table.factor.values, ratio.values), 0,
        source="Example 6.2, as printed",
        statement="yᵀ(H∞)⁻¹y ≤ M_g = O(‖A‖_*) for the labels xᵀAx",
        measured=f"log-log slope of yᵀ(H∞)⁻¹y / ‖A‖_* in the size of A, 1 to 100, {over}",
        misprint=True,
        note="‖A‖_* bounds the square root, so M_g = O(‖A‖_*²); Examples 6.3 and 6.4 share the slip. The corrected "
        "form is the claim for Example 6.2 above.",
    )  # fmt: skip


def _odd(table: xr.Dataset, over: str) -> Iterator[Claim]:
    n = table.samples.values.astype(float)
    for name in _powers(table, odd=True):
        p = int(_degree(name))
        for dim in table.dim.values:
            costs = table.cost.sel(label=name, dim=dim).transpose("seed", "samples").values
            last = costs[:, -1].mean() / (3 * p)
            random = slope_interval(n, table.cost.sel(label="random", dim=dim).transpose("seed", "samples").values)
            yield Claim.at_most(
                slope_interval(n, costs), 0,
                source=f"Theorem 6.1, p = {p}, d = {dim}",
                statement=f"√(yᵀ(H∞)⁻¹y) of labels (βᵀx)^{p}, which the theorem leaves out, does not grow with n",
                measured=f"log-log slope in n, {over}",
                hypotheses=_covers(table, p),
                note=f"At n = {n[-1]:.0f} it is {last:.2f} times 3p|α|‖β‖ᵖ. Random labels grow with a slope of "
                f"{random.value:.2f}.",
            )  # fmt: skip


def _learnt(table: xr.Dataset, over: str) -> Iterator[Claim]:
    covered = table.sel(label=[*_powers(table, odd=False), *EXAMPLES])
    telling = covered.test_bound < 1
    kept = ((covered.test_loss <= covered.test_bound) | ~telling).all("label").where(telling.any("label"))
    samples = int(kept.count())
    if samples:
        n, smallest = int(table.samples.max()), float(table.smallest.min())
        yield often(
            int(kept.sum()),
            samples,
            source="Theorem 5.1",
            statement="the loss on new data is at most √(2yᵀ(H∞)⁻¹y/n) + 2/√(2n) + 3√(log(6N/δ)/2n), N = ⌈√(n/λ₀)⌉, "
            "with probability 1 − δ, for the network of infinite width that starts at zero and is trained to the end",
            measured="fraction of samples of n inputs where it is for all labels of which the bound is below one, "
            f"min(|f(x) − g(x)|, 1), δ = {DELTA}, {over}",
            hypotheses=theorem_51(n, width=math.inf, scale=0.0, smallest=smallest),
            note=f"On average the loss is {float((covered.test_loss / covered.test_bound).where(telling).mean()):.3f} "
            "of the bound.",
        )
    asked = xr.apply_ufunc(
        lambda bound, n: np.sqrt(sample_size(1.0, epsilon=1.0, delta=DELTA) - 1 + bound**2) / np.sqrt(n),
        covered.bound, covered.samples,
    )  # fmt: skip
    yield Claim.at_most(
        float((covered.test_loss / asked).max()), 1,
        source="Section 6, sample size",
        statement="(M_g + log(1/δ))/ε² samples suffice for a loss of ε, with M_g the square of (13) and constant one",
        measured=f"largest ratio of the loss to ε = √((M_g + log(1/δ))/n), δ = {DELTA:g}, all functions that Section 6 "
        f"covers, {over}",
        hypotheses=(*_covers(table), constant_one("Section 6")),
    )  # fmt: skip


def pair_claims(results: Results) -> Iterator[Claim]:
    """Inputs with their opposites: Remark 5.1 says 'parallel'."""
    if not len(results):
        return
    table = results.combine("dim", "seed")
    dim = int(table.dim.values[0])
    seeds = table.sizes["seed"]
    rounding = float(2 * table.pairs.max() * np.finfo(np.float64).eps)
    few = table.smallest.sel(pairs=table.pairs <= dim)
    more = table.smallest.sel(pairs=table.pairs > dim)
    yield Claim.includes(
        mean_interval(table.smallest.sel(pairs=1, dim=dim).values.round(14)), 0.5,
        source="Remark 5.1, one pair {x, −x}",
        statement="two opposite inputs have λ_min(H∞) = 1/2: no neuron is active on both",
        measured=f"λ_min, {seeds} seeds",
        identity=True,
    )  # fmt: skip
    for part, count in ((few, f"1 to {dim}"), (more, f"{dim + 1} and {dim + 2}")):
        yield Claim.at_least(
            float(part.min()), rounding, strict=True,
            source=f"Remark 5.1, {count} pairs {{x, −x}} in d = {dim}",
            statement="λ_min(H∞) > 0 for opposite inputs too",
            measured=f"smallest λ_min, {seeds} seeds; {rounding:.1g} is rounding",
            hypotheses=[Hypothesis("largest |xᵢᵀxⱼ|, i ≠ j,", 1.0, "<", 1, "Remark 5.1")],
            note="On labels with y(−x) = −y(x) H∞ acts as K/2, which has rank d: up to d pairs it is invertible.",
        )  # fmt: skip


def order_claims(results: Results) -> Iterator[Claim]:
    """Lemma E.1 on the matrices that the proof of Theorem 6.1 takes it for."""
    words: dict[str, Any] = {
        "source": "Lemma E.1",
        "statement": "P_A B† P_A ⪯ A† for B ⪰ A ⪰ 0: A = c_p Kᵖ, p = 1 and even p, and B = H∞, which may be singular",
    }
    if not len(results):
        why = "Lemma E.1 takes cells of its own, which are not among these results."
        yield Claim.not_run(reason="data", why=why, profile="smoke", **words)
        return
    cell = results.first
    ratios = np.stack([found.ratio.values for _, found in results])
    yield Claim.at_most(
        float(ratios.max()),
        1 + ROUNDING,
        measured=f"largest λ that P_A B† P_A ⪯ λA† needs, {cell.samples} inputs on the sphere and {cell.dim + 2} pairs "
        f"of opposites, d = {cell.dim}, {len(results)} seeds; {ROUNDING:g} is rounding",
        note=f"On the sphere up to {ratios[:, 0].max():.4f}, for opposites up to {ratios[:, 1].max():.4f}.",
        **words,
    )


def label_figures(results: Results) -> Iterator[Figure]:
    """The cost of labels against n, and the loss on new data."""
    table = stacked(results, "samples", "dim", "seed")
    if table is None:
        return
    n = table.samples.values
    for dim in table.dim.values:
        here = table.sel(dim=dim)
        plot = new_plot()
        for name, colour in zip(_powers(table, odd=False), COLOURS, strict=False):
            _curve(plot, n, here.cost.sel(label=name) / here.bound.sel(label=name), f"p = {_degree(name)}", colour)
        for name, colour in zip(_powers(table, odd=True), COLOURS, strict=False):
            ratio = here.cost.sel(label=name) / (3 * int(_degree(name)))
            _curve(plot, n, ratio, f"p = {_degree(name)}, not covered", colour, dash="dot")
        line(plot, n, np.ones(len(n)), name="the bound of Theorem 6.1", colour="grey", dash="dash")
        style(plot, x="samples n", y="√(yᵀH⁻¹y) over 3p|α|‖β‖ᵖ", log_x=True, log_y=True)
        yield Figure(
            f"What labels $(\\beta^T x)^p$ cost, d = {dim}",
            f"Inputs on the sphere. Even powers and p = 1 stay below the bound for every n; odd powers from 3 on keep "
            f"growing. Bands: smallest and largest of {table.sizes['seed']} seeds.",
            plot,
        )
    dim = table.dim.values[0]
    here, plot = table.sel(dim=dim), new_plot()
    for name, colour in zip(("p=2", "cosine", "sum", "p=3", "random"), COLOURS, strict=False):
        label = {"p=2": "(βᵀx)²", "cosine": "cos(βᵀx) − 1", "sum": "sum", "p=3": "(βᵀx)³", "random": "random ±1"}[name]
        _curve(plot, n, here.test_loss.sel(label=name), label, colour)
        measure = np.sqrt(2 * here.cost.sel(label=name) ** 2 / here.samples)
        line(plot, n, measure.mean("seed").values, name=f"{label}, measure (10)", colour=colour, dash="dash")
    style(plot, x="samples n", y="mean of min(|f(x) − g(x)|, 1) on new inputs", log_x=True, log_y=True)
    yield Figure(
        f"What is learnt, d = {dim}",
        "Kernel regression with $H^\\infty$, the network of infinite width trained to the end, next to the complexity "
        "measure that bounds its loss (dashed). Functions that Section 6 covers are learnt; odd powers and random "
        "labels are not.",
        plot,
    )


def pair_figures(results: Results) -> Iterator[Figure]:
    """λ_min against the number of opposite pairs."""
    if not len(results):
        return
    table = results.combine("dim", "seed")
    dim = int(table.dim.values[0])
    smallest = np.maximum(table.smallest.sel(dim=dim).transpose("seed", "pairs").values, 1e-18)
    plot = new_plot()
    points(
        plot, table.pairs.values, np.exp(np.log(smallest).mean(axis=0)), name="λ_min(H∞)", colour="blue",
        band=(smallest.min(axis=0), smallest.max(axis=0)),
    )  # fmt: skip
    style(plot, x="pairs {x, −x}", y="smallest eigenvalue of H∞", log_y=True)
    yield Figure(
        f"Opposite inputs, d = {dim}",
        f"With up to d pairs of opposite inputs $H^\\infty$ is invertible; from d + 1 pairs on it is singular (values "
        f"of rounding size; below 10⁻¹⁸ they are drawn there). Bars: {table.sizes['seed']} seeds.",
        plot,
    )


def _curve(plot: Any, n: Any, values: xr.DataArray, name: str, colour: str, dash: str | None = None) -> None:
    line(
        plot, n, values.mean("seed").values, name=name, colour=colour, dash=dash,
        band=(values.min("seed").values, values.max("seed").values),
    )  # fmt: skip


def _powers(table: xr.Dataset, *, odd: bool) -> list[str]:
    names = [str(name) for name in table.label.values if str(name).startswith("p=")]
    return [name for name in names if (int(_degree(name)) % 2 == 1 and name != "p=1") == odd]


def _degree(name: str) -> str:
    return name.removeprefix("p=")
