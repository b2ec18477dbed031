"""That the quantities of Lemma D.1 grow no faster along a path than its powers: claims about slopes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.claims import HELD, Verdict
from offtangent.lab.statistics import slope_interval

# How far above its exponent an interval may reach and still tell it from others: the smallest powers of m and of the
# radii in Lemma D.1, and at the smallest τ_v what (e) and (f) differ by.
APART = {"width": 1 / 8, "radius": 1 / 3, "edge": 1 / 4}

Bound = Callable[[Any], float]


@dataclass(frozen=True)
class Power:
    """What the lemma says of one quantity along one path: O(size^exponent), from the bound named `whence`."""

    source: str
    what: str
    exponent: float | int
    whence: str
    over: str = ""  # what it is divided by first, in words
    law: Bound = lambda _: 1.0  # and as a number


def slopes(results: Results, path: str, of: dict[str, Power], *, note: str = "", **words: Any) -> list[Claim]:
    """Claim, for each quantity in `of`, that it grows no faster along `path` than the lemma's power of the size.

    The logarithm in Õ(·) is not allowed for. Each claim rests on a 99 % interval of the log-log slope over seeds; there
    is none where the path has fewer than three sizes. `words` go to `Claim.no_slower`.
    """
    pairs = along(results, path)
    if len(pairs) < 3:
        return []
    sizes, first = sizes_of(pairs, path), pairs[0][0]
    symbol = "m" if path != "radius" else "τ_w" if hasattr(first, "tau") else "τ_v/σ_v"
    at = f", τ_v = σ_v(k/m)^(3/8), k = {first.outputs}" if path == "edge" else ""
    found = []
    for name, power in of.items():
        table = table_of(pairs, name) / np.array([power.law(one) for one, _ in pairs])
        plain = slope_interval(sizes, table_of(pairs, name), level=0.99)
        share = f"of {power.what}{' over m' if name in 'ad' else ''} itself"
        order = "Õ" if name in "befg" and not power.over else "O"  # Õ(·) as one, which is more than the paper says
        claim = Claim.no_slower(
            slope_interval(sizes, table, level=0.99),
            power.exponent,
            source=f"{power.source}, {'edge' if at else symbol}",
            statement=f"{power.what} = {order}({power.whence}):{power.over} it {_growth(symbol, power.exponent)}{at}"
            + (", no logarithm granted" if order == "Õ" else ""),
            measured=f"log-log slope, 99 % interval, {first.seeds} seeds, {symbol} from {sizes[0]:.3g} to "
            f"{sizes[-1]:.5g}{_range(pairs, path)}",
            note=f"{f'The slope {share} is {plain.value:.3f}. ' if power.over else ''}{note}".strip(),
            **words,
        )
        found.append(told_apart(claim, power.exponent + APART[path], results.profile))
    return found


def _growth(symbol: str, exponent: float | int) -> str:
    if exponent == 0:
        return f"does not grow with {symbol}"
    symbol = f"({symbol})" if "/" in symbol and exponent != 1 else symbol
    size = "" if exponent == 1 else f"^({Fraction(exponent).limit_denominator(24)})".replace("-", "−")
    return f"{'falls no slower' if exponent < 0 else 'grows no faster'} than {symbol}{size}"


def told_apart(claim: Claim, reach: float, profile: str) -> Claim:
    """`Claim.no_slower` passes any interval that begins below its exponent: one that reaches this far tells nothing."""
    if claim.verdict not in HELD or claim.interval is None or claim.interval[1] < reach:
        return claim
    where = {"smoke": " Tested in profile laptop.", "laptop": " Tested in profile paper."}.get(profile, "")
    wide = f"The interval reaches {reach:.3g}, a power that is not the lemma's.{where}"
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{wide} {claim.note}".strip())


def _range(pairs: list[tuple[Any, Any]], path: str) -> str:
    """Where radii span less than two decades: that the lemma has no more."""
    sizes, cell = sizes_of(pairs, path), pairs[0][0]
    if path != "radius" or sizes[-1] / sizes[0] >= 100:
        return ""
    allowed = "τ_w in [1, √m σ_w)" if hasattr(cell, "tau") else f"τ_v in [σ_v(k/m)^(3/8), σ_v], k = {cell.outputs}"
    return f", {math.log10(sizes[-1] / sizes[0]):.1f} decades: all that the lemma allows at m = {cell.width}, {allowed}"


def along(results: Results, path: str) -> list[tuple[Any, Any]]:
    return list(results.where(path=path).pairs)


def sizes_of(pairs: list[tuple[Any, Any]], path: str) -> Float[np.ndarray, " k"]:
    def size(cell: Any) -> float:
        return float(cell.width if path != "radius" else getattr(cell, "tau", 0) or cell.ratio)

    return np.array([size(cell) for cell, _ in pairs])


def table_of(pairs: list[tuple[Any, Any]], name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in pairs], axis=1)
