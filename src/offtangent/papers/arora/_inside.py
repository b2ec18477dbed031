"""Theorems 3.1 and 4.1 on so few orthonormal inputs that the width, κ and rate they ask for can be had."""

from collections.abc import Iterator
from typing import Any

import xarray as xr

from offtangent.lab import Claim, Results
from offtangent.lab.claims import Verdict
from offtangent.papers.arora._conditions import DELTA, often, theorem_31, theorem_41

SMALLEST = 0.5  # λ₀ of orthonormal inputs, whose H∞ is I/2
CONTRACTS = "Φ(k+1) ≤ (1 − ηλ₀/2) Φ(k) at every step, with probability at least 1 − δ"
FOLLOWS = "‖y − u(k)‖ follows eq. (8) to within ε at every step, with probability at least 1 − δ"


def claims(results: Results) -> Iterator[Claim]:
    """Both theorems on every cell, at δ = 0.1; what no cell here is inside of is said not to have been run."""
    found = [
        (_contracts(cell, data), _follows(cell, data) if cell.theorem == "4.1" else None) for cell, data in results
    ]
    contracts, follows = [one for one, _ in found], [one for _, one in found if one is not None]
    yield from contracts
    if _nowhere_inside(contracts):
        yield Claim.not_run(
            source="Theorem 3.1",
            statement=CONTRACTS,
            reason="size",
            why=f"At δ = {DELTA:g}, κ = 1 and with constants one the theorem asks for 16 000 neurons for one input, "
            "and for 1 024 000 for two; 40 networks tell a probability of 0.9.",
            profile="laptop",
        )
    yield from follows
    if _nowhere_inside(follows):
        yield Claim.not_run(
            source="Theorem 4.1, eq. (8)",
            statement=FOLLOWS,
            reason="size",
            why=f"At δ = {DELTA:g} and with constants one the theorem asks for 5·10¹¹ neurons for two inputs and "
            "ε = 0.3, which cannot be had. For one input and ε = 1 it is 1.6·10⁷.",
            profile="paper",
        )


def _nowhere_inside(claims: list[Claim]) -> bool:
    return all(one.verdict is Verdict.OUTSIDE for one in claims)


def _contracts(cell: Any, found: xr.Dataset) -> Claim:
    successes = int((found.worst_ratio <= found.allowed_ratio).sum())
    return often(
        successes,
        cell.seeds,
        source=f"Theorem 3.1, n = {cell.samples}, κ = {float(found.scale):.3g}",
        statement=CONTRACTS,
        measured=f"fraction of networks, δ = {DELTA:g}, {_where(cell, found)}, η = λ₀/n² = {float(found.rate):.3g}, "
        f"{cell.steps} steps",
        hypotheses=theorem_31(cell.samples, **_has(found)),
        note=f"Largest ratio {float(found.worst_ratio.max()):.4f}, allowed {float(found.allowed_ratio):.4f}.",
    )


def _follows(cell: Any, found: xr.Dataset) -> Claim:
    successes = int((found.deviation <= cell.epsilon).sum())
    slack = "" if cell.samples > 1 else " With one input no other ε can be had, and ‖y‖ is no larger than it."
    return often(
        successes,
        cell.seeds,
        source=f"Theorem 4.1, eq. (8), n = {cell.samples}, ε = {cell.epsilon:g}",
        statement=FOLLOWS,
        measured=f"fraction of networks, δ = {DELTA:g}, {_where(cell, found)}",
        hypotheses=theorem_41(cell.samples, epsilon=cell.epsilon, **_has(found)),
        note=f"Largest deviation {float(found.deviation.max()):.3f}, mean {float(found.deviation.mean()):.3f}.{slack}",
    )


def _where(cell: Any, found: xr.Dataset) -> str:
    inputs = "one input" if cell.samples == 1 else f"n = {cell.samples} orthonormal inputs"
    return f"{inputs}, m = {int(found.width)}, κ = {float(found.scale):.3g}, {cell.seeds} seeds"


def _has(found: xr.Dataset) -> dict[str, float]:
    return {"smallest": SMALLEST, **{name: float(found[name]) for name in ("width", "scale", "rate")}}
