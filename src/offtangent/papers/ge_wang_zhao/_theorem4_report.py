"""Theorem 4: the steps of its proof on toys, the points returned on many data sets, and why it is false as printed."""

from typing import Any

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import fraction_interval
from offtangent.papers.ge_wang_zhao._judging import DELTA
from offtangent.theory.ge_wang_zhao.capacity import least_width, most_samples
from offtangent.theory.ge_wang_zhao.descent import theorem4_as_printed

C = 1.0  # the constant that Algorithm 1 is run with
CONSTANTS = tuple(10.0**-k for k in range(13))  # the c for which the refutation is worked out: 1 to 10⁻¹²


def claims(literal: Results, fresh: Results) -> list[Claim]:
    """Of the toys, of the new data sets, and of the statement as printed where that was run."""
    found: list[Claim] = []
    if len(proof := literal.where(printed=False)):
        found += _of_the_proof(proof)
    if len(literal) or len(fresh):
        found += _returned(fresh)
        found.append(_as_printed(literal.where(printed=True)))
    return found


def _asked(results: Results) -> tuple[Hypothesis, ...]:
    """What Theorem 4 asks for: width, general position, and a constant c ≤ c_max, of which the proof has c_max ≤ 1."""
    cells = [cell for cell, _ in results]
    narrowest = min(cells, key=lambda cell: most_samples(cell.dim) - cell.samples)
    smallest = min(float(data["smallest"].min()) for _, data in results)
    return (
        Hypothesis("smallest σ_min[x_j ⊗ x_j], proven", smallest, ">", 0, "Theorem 4"),
        Hypothesis("samples n", narrowest.samples, "≤", most_samples(narrowest.dim), "Theorem 4"),
        Hypothesis("neurons r", least_width(narrowest.dim), "≥", 2 * narrowest.dim + 2, "Theorem 4"),
        Hypothesis("constant c", C, "≤", 1, "Theorem 3, c ≤ c_max", given=False),
    )


def _of_the_proof(results: Results) -> list[Claim]:
    toys = "; ".join(f"d = {cell.dim}, n = {cell.samples}: {cell.seeds}" for cell, _ in results)
    where = f"every step of the runs ({toys})"

    def largest(size: Any) -> float:
        return max(float(size(data).max()) for _, data in results)

    told = ", ".join(f"{float(data['wait']):.0f}" for _, data in results)
    common: dict[str, Any] = {"hypotheses": [Hypothesis("constant c", C, "≤", 1, "Theorem 4, proof")]}
    over = largest(lambda data: data["steps"].where(data["returned"], float("inf")) / data["iterations"])
    return [
        Claim.at_most(
            largest(lambda data: data["rise"] / (1.5 * data["slope"] ** 2)),
            1.0,
            source="Theorem 4, proof",
            statement="g(W_t) ≤ g(W_ins) + 3cε′²/2χ⁴ at every step of Algorithm 1 with the theorem's settings, c = 1, "
            f"δ = {DELTA:g} and ε = f(0)/4",
            measured=f"largest (g(W_t) − g(0))/(3cε′²/2χ⁴), {where}",
            note=f"t_thres is {told}. Runs on one data set all end alike: these are {len(results)} outcomes. The "
            f"number of steps until they return is {over:.1g} of the theorem's, its constant as one.",
            **common,
        ),
        Claim.at_most(
            largest(lambda data: data["rise"] * data["smoothness"] / (1.5 * data["slope"] ** 2)),
            1.0,
            source="Theorem 4, proof, property 2",
            statement="g(W_t) ≤ g(W_ins) + 3cε′²/2χ⁴ℓ also while it is perturbed, c = 1",
            measured=f"largest (g(W_t) − g(0))/(3cε′²/2χ⁴ℓ), {where}",
            **common,
        ),
        Claim.at_most(
            largest(lambda data: data["excess"] / data["start"]),
            1e-14,
            source="Theorem 4, proof, eq. (2)",
            statement="g(W_{t+1}) ≤ g(W_t) − (η/2)‖∇g(W_t)‖² for each step of gradient descent, to rounding",
            measured=f"largest excess over f(0), {where}",
            **common,
        ),
        Claim.at_most(
            largest(lambda data: data["length"] * data["gamma"] / (2 * (data["start"] + 1))),
            1.0,
            source="Theorem 4, proof",
            statement="‖W_t‖² ≤ 2(f(0) + 1)/γ, from (γ/2)‖W‖² ≤ g(W) ≤ f(0) + 1: it never leaves Lemma 5's ball",
            measured=f"largest ratio of the two sides, {where}",
            identity=True,
        ),
    ]


def _returned(results: Results) -> list[Claim]:
    """The points that Algorithm 1 returns, one on each data set."""
    statements = {
        "Theorem 3": "the point returned has ‖∇g‖ ≤ ε′ and λ_min(∇²g) ≥ −√(ρε′), but with probability δ = "
        f"{DELTA:g}, c = 1",
        "Theorem 4": "called with ε′, the point returned has f ≤ ε = f(0)/4, but with probability δ = "
        f"{DELTA:g}, c = 1",
    }
    if not len(results):
        why = "Runs on one data set all end at one point: hundreds of them are as many outcomes as there are data sets."
        return [
            Claim.not_run(source=source, statement=statement, reason="size", why=why, profile="smoke")
            for source, statement in statements.items()
        ]
    good, low, total, told = 0, 0, 0, []
    for cell, data in results:
        returned = data["returned"].values == 1
        stationary = (data["gradient"] <= data["accuracy"]) & (data["lowest"] >= -data["gamma"])  # √(ρε′) = γ
        good += int((returned & stationary.values).sum())
        low += int((returned & (data["last"] <= data["epsilon"]).values).sum())
        total += len(returned)
        told.append(f"d = {cell.dim}, n = {cell.samples}: {cell.seeds}, σ_min ≥ {cell.least:g}, f(0) ≥ {cell.start:g}")
    largest = max(float((data["last"] / data["epsilon"]).max()) for _, data in results)
    settled = max(float(data["settled"].max()) for _, data in results)
    relative = max(float(data["relative"].max()) for _, data in results)
    asked = (*_asked(results), Hypothesis("ε′ over ℓ²/ρ", relative, "≤", 1, "Theorem 3"))
    notes = {
        "Theorem 3": "",
        "Theorem 4": f"Largest f/ε: {largest:.2g}. Outside its perturbation phases g(W_t) is below g(W_ins) by "
        f"{-settled:.2g} f(0) or more (property 1 of the proof).",
    }
    return [
        Claim.at_least(
            fraction_interval(count, total),
            1 - DELTA,
            source=source,
            statement=statements[source],
            measured=f"fraction of {total} data sets, one run on each, 95 % interval ({'; '.join(told)})",
            note=notes[source],
            hypotheses=asked,
        )
        for source, count in (("Theorem 3", good), ("Theorem 4", low))
    ]


def _as_printed(toys: Results) -> Claim:
    """The refutation is exact, and needs no run: for every c two nearly parallel inputs, on which it returns W = 0."""
    runs = [theorem4_as_printed(c / 10, c=c) for c in CONSTANTS]
    least = min((one.ratio if one.stays else 0.0) for one in runs)
    room = max(one.gain / one.settings.decrease for one in runs)
    note = f"No perturbation gains more than {room:.1g} of f_thres within t_thres steps."
    if len(toys):
        told = ", ".join(f"{float((data['last'] / data['epsilon']).max()):.3g}" for _, data in toys)
        note += f" On random toys with ε = 0.9 f(0) and c = 1, f/ε is {told}; a smaller c may do there."
    return Claim.at_most(
        least,
        1.0,
        misprint=True,
        source="Theorem 4, as printed",
        statement="there is a c_max such that Algorithm 1, called with ε itself and any c ≤ c_max, returns f ≤ ε",
        measured="smallest f/ε over c = 1, 10⁻¹, …, 10⁻¹², x₁ and x₂ at the angle c/10 with labels 2 and −2, δ = "
        f"{DELTA:g}, ε = f(0)/2: W = 0 is what it returns, by a bound on all of its steps",
        note=f"{note} The proof calls it with ε′, for which √(ρε′) = γ.",
    )
