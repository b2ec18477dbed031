"""What the worst displacements say about Proposition C.4 and Lemma D.1: claims and figures."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.claims import Verdict
from offtangent.lab.statistics import Interval, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points
from offtangent.report.axes import style
from offtangent.theory.allen_zhu_li.worst_signs import flip_fraction, operator_limit, output_limit

PROOF = 4.8  # of Proposition C.4: 4 from |S₂|, 2·√(2/π)/2 from |S₁| with Chernoff's factor two
ROUNDING = 1e-9
SIGMA_V = 4.0

# How far above its exponent an interval may reach and still tell it from others: the smallest powers of m and of the
# radii in Lemma D.1, and at the smallest τ_v what (e) and (f) differ by.
APART = {"width": 1 / 8, "radius": 1 / 3, "edge": 1 / 4}

WHY = (
    "The proof bounds AD_V,W V⁰z for the z that D_V,W belongs to, where the turned neurons are those with a small "
    "(V⁰z)_j; in other directions they are as large as any. As m → ∞ the largest is 0.639 τ_v^(2/3)σ_v^(1/3), here "
    "0.639 σ_v(k/m)^(1/4) where σ_v(k/m)^(1/2) is printed, and no power of ln m makes up for that. With the corrected "
    "bound ♣ in Claim D.6 is O(τ_v^(2/3)σ_v^(1/3))‖F − out₁‖, not O(τ_v)‖F − out₁‖."
)

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


def claims(flips: Results, first: Results, second: Results) -> list[Claim]:
    found: list[Claim] = []
    if len(flips):
        found += _of_flips(flips)
    if len(first):
        found += _of_first(first)
    if len(second):
        found += _of_second(second)
    return found


def _of_flips(results: Results) -> list[Claim]:
    seeds = results.pairs[0][0].seeds
    most = max(cell.width for cell, _ in results)
    wide = [(cell, data) for cell, data in results if cell.width == most and cell.delta < 1]
    exact = [data["share"].values / flip_fraction(cell.delta) for cell, data in wide]
    left = max(float(data[name].max()) for _, data in results for name in ("left", "random_left"))
    over = f"δ from {min(results.values('delta')):g} to 1, m from {min(results.values('width'))} to {most}"
    return [
        Claim.at_most(
            _largest(results, "share", lambda cell: cell.delta ** (2 / 3)), PROOF, source="Proposition C.4",
            statement="no g′ with ‖g′‖ ≤ δ turns more than O(mδ^(2/3)) of m signs, the proof's constants counted",
            measured=f"largest share of turned signs over δ^(2/3), worst g′, 95 % interval over {seeds} seeds, {over}",
            note="The sharp constant is (6/π)^(1/3) = 1.241. A random g′ turns arctan(δ)/π of them only.",
        ),
        *(
            [
                Claim.includes(
                    mean_interval(np.mean(exact, axis=0), level=0.999), 1.0, source="Proposition C.4, attained",
                    statement="the worst g′ turns erf(t/√2) of all signs, E[g²1{|g| ≤ t}] = δ², which is 1.241 δ^(2/3) "
                    "for small δ",
                    measured=f"measured over stated, mean over δ < 1, m = {most}, 99.9 % interval over {seeds} seeds",
                )
            ]
            if exact
            else []
        ),
        Claim.at_most(
            left, 1 + ROUNDING, source="Proposition C.4", statement="‖D′g‖ ≤ ‖g′‖, D′ the signs that g′ turns",
            measured=f"largest ratio, worst and random g′, {over}, {seeds} seeds",
        ),
    ]  # fmt: skip


def _of_first(results: Results) -> list[Claim]:
    where = _where(results, "τ_w", "tau")
    found = [
        Claim.at_most(
            _largest(results, "a", _share), PROOF, source="Lemma D.1(a)",
            statement="‖D_W⁰ − D_W‖₀ ≤ O((τ_w/σ_w)^(2/3) m^(2/3)) for all ‖W‖₂ ≤ τ_w, constants of Proposition C.4",
            measured=f"largest ratio of the two sides without the constant, worst W, 95 % interval, {where}",
        ),
        Claim.at_most(
            _largest(results, "b", _bound_b), 1.0, source="Lemma D.1(b)",
            statement="‖AD_W W⁰(x,1)‖ ≤ Õ(τ_w(τ_w/σ_w)^(1/3) m^(−1/6)) + √k σ_w, for all W, Õ(·) as ln m",
            measured=f"largest ratio of the two sides, worst W found, 95 % interval, {where}",
            note=f"Next to its limit for few turned signs, 1.266 τ_w^(4/3) m^(−1/8) + √k σ_w, it is "
            f"{_span(results, 'b', _limit_b)}.",
        ),
        Claim.at_most(
            _largest(results, "c", lambda one: math.sqrt(2) * _norm_of_a(one) * one.tau + _bound_b(one)), 1.0,
            source="Lemma D.1(c)", statement="‖out₁‖ ≤ ‖A‖₂‖(x,1)‖τ_w + (b) = O(τ_w) for all W",
            measured=f"largest ratio of the two sides, worst W found, 95 % interval, {where}",
            note=f"Over τ_w alone: {_span(results, 'c', lambda one: one.tau)}.",
        ),
    ]  # fmt: skip
    a, b, c = (("Lemma D.1(a)", "‖D_W⁰ − D_W‖₀"), ("Lemma D.1(b)", "‖AD_W W⁰(x,1)‖"), ("Lemma D.1(c)", "‖out₁‖"))
    found += _slopes(results, "width", {
        "a": Power(*a, 0, "(τ_w/σ_w)^(2/3)m^(2/3) = τ_w^(2/3)m^(3/4)", *_exact(lambda one: one.tau / one.width**0.375)),
        "b": Power(*b, -1 / 8, "τ_w(τ_w/σ_w)^(1/3)m^(−1/6) + √k σ_w, σ_w = m^(−1/8)"),
        "c": Power(*c, 0, "τ_w"),
    })  # fmt: skip
    return found + _slopes(results, "radius", {
        "a": Power(*a, 2 / 3, "(τ_w/σ_w)^(2/3)m^(2/3)"),
        "b": Power(*b, 4 / 3, "τ_w(τ_w/σ_w)^(1/3)m^(−1/6) + √k σ_w"),
        "c": Power(*c, 1, "τ_w"),
    })  # fmt: skip


def _of_second(results: Results) -> list[Claim]:
    where = _where(results, "τ_v/σ_v", "ratio")
    said = f"largest ratio of the two sides, worst V found, 95 % interval, {where}"
    found = [
        Claim.at_most(
            _largest(results, "d", _share_v), PROOF, source="Lemma D.1(d)",
            statement="‖D_V⁰,W − D_V,W‖₀ ≤ O((τ_v/σ_v)^(2/3) m) for all ‖V‖₂ ≤ τ_v, constants of Proposition C.4",
            measured=f"largest ratio of the two sides without the constant, worst V, 95 % interval, {where}",
        ),
        Claim.at_most(
            _largest(results, "e", _bound_e), 1.0, source="Lemma D.1(e)",
            statement="‖AD_V,W V⁰z‖ ≤ Õ(τ_v(τ_v/σ_v)^(1/3))‖z‖, z = (out₁, 1), for all V, Õ(·) as ln m",
            measured=said,
            note=f"Next to its limit for few turned signs, 0.895 τ_v(τ_v/σ_v)^(1/3) + σ_v√(k/2m), it is "
            f"{_span(results, 'e', _limit_e)}.",
        ),
        Claim.at_most(
            _largest(results, "g", lambda one: _tau(one) * _norm_of_a(one) + _bound_e(one)), 1.0,
            source="Lemma D.1(g)", statement="‖AD_V,W(V⁰+V)z‖ ≤ (‖A‖₂τ_v + (e))‖z‖ = Õ(τ_v)‖z‖ for all V",
            measured=said, note=f"Over τ_v‖z‖ alone: {_span(results, 'g', _tau)}.",
        ),
        Claim.at_most(
            _largest(results, "f", _bound_f), 1.0, source="Lemma D.1(f), corrected",
            statement="‖AD_V,W V⁰‖₂ ≤ Õ(τ_v^(2/3) σ_v^(1/3)) for all V, Õ(·) as ln m", measured=said,
            note="Next to its limit for few turned signs, 0.639 τ_v^(2/3) σ_v^(1/3), the largest is "
            f"{_span(results, 'f', _limit_f)}; a random V of that size has {_span(results, 'random_f', _limit_f)}.",
        ),
    ]  # fmt: skip
    d, e = ("Lemma D.1(d)", "‖D_V⁰,W − D_V,W‖₀"), ("Lemma D.1(e)", "‖AD_V,W V⁰z‖/‖z‖")
    f, g = ("Lemma D.1(f), corrected", "‖AD_V,W V⁰‖₂"), ("Lemma D.1(g)", "‖AD_V,W(V⁰+V)z‖/‖z‖")
    of_d, of_e, of_f, of_g = "(τ_v/σ_v)^(2/3)m", "τ_v(τ_v/σ_v)^(1/3)", "τ_v^(2/3)σ_v^(1/3)", "τ_v"
    turned = Power(*d, 0, of_d, *_exact(lambda one: one.ratio))
    found += _slopes(results, "width", {
        "d": turned, "e": Power(*e, 0, of_e), "f": Power(*f, 0, of_f), "g": Power(*g, 0, of_g),
    })  # fmt: skip
    found += _slopes(results, "edge", {
        "d": turned, "e": Power(*e, -1 / 2, of_e), "f": Power(*f, -1 / 4, of_f), "g": Power(*g, -3 / 8, of_g),
    })  # fmt: skip
    printed = Power(
        "Lemma D.1(f), as printed", f[1], -1 / 2, f"{of_e} ln m", " over ln m", lambda one: math.log(one.width)
    )
    found += _slopes(results, "edge", {"f": printed}, misprint=True, note=WHY)
    return found + _slopes(results, "radius", {
        "d": Power(*d, 2 / 3, of_d), "e": Power(*e, 4 / 3, of_e), "f": Power(*f, 2 / 3, of_f), "g": Power(*g, 1, of_g),
    })  # fmt: skip


def _exact(delta: Bound) -> tuple[str, Bound]:
    """Shares of turned signs have a law that tends to 1.241 δ^(2/3) from below: over it, a slope has no bias."""
    return " over Proposition C.4's exact law, at most 1.241 times that,", lambda one: flip_fraction(delta(one))


def _slopes(results: Results, path: str, of: dict[str, Power], *, note: str = "", **words: Any) -> list[Claim]:
    """That quantities grow no faster along a path than the lemma's powers, Õ(·) without its logarithm."""
    pairs = _along(results, path)
    if len(pairs) < 3:
        return []
    sizes, first = _sizes(pairs, path), pairs[0][0]
    symbol = "m" if path != "radius" else "τ_w" if hasattr(first, "tau") else "τ_v/σ_v"
    at = f", τ_v = σ_v(k/m)^(3/8), k = {first.outputs}" if path == "edge" else ""
    found = []
    for name, power in of.items():
        table = _table(pairs, name) / np.array([power.law(one) for one, _ in pairs])
        plain = slope_interval(sizes, _table(pairs, name), level=0.99)
        share = f"of {power.what}{' over m' if name in 'ad' else ''} itself"
        order = "Õ" if name in "befg" and not power.over else "O"  # Õ(·) as one, which is more than the paper says
        claim = Claim.no_slower(
            slope_interval(sizes, table, level=0.99), power.exponent,
            source=f"{power.source}, {'edge' if at else symbol}",
            statement=f"{power.what} = {order}({power.whence}):{power.over} it {_growth(symbol, power.exponent)}{at}"
            + (", no logarithm granted" if order == "Õ" else ""),
            measured=f"log-log slope, 99 % interval, {first.seeds} seeds, {symbol} from {sizes[0]:.3g} to "
            f"{sizes[-1]:.5g}{_range(pairs, path)}",
            note=f"{f'The slope {share} is {plain.value:.3f}. ' if power.over else ''}{note}".strip(), **words,
        )  # fmt: skip
        found.append(_told_apart(claim, power.exponent + APART[path], results.profile))
    return found


def _growth(symbol: str, exponent: float | int) -> str:
    if exponent == 0:
        return f"does not grow with {symbol}"
    symbol = f"({symbol})" if "/" in symbol and exponent != 1 else symbol
    size = "" if exponent == 1 else f"^({Fraction(exponent).limit_denominator(24)})".replace("-", "−")
    return f"{'falls no slower' if exponent < 0 else 'grows no faster'} than {symbol}{size}"


def _told_apart(claim: Claim, reach: float, profile: str) -> Claim:
    """`Claim.no_slower` passes any interval that begins below its exponent: one that reaches this far tells nothing."""
    if claim.verdict is not Verdict.HOLDS or claim.interval is None or claim.interval[1] < reach:
        return claim
    where = {"smoke": " Tested in profile laptop.", "laptop": " Tested in profile paper."}.get(profile, "")
    wide = f"The interval reaches {reach:.3g}, a power that is not the lemma's.{where}"
    return replace(claim, verdict=Verdict.UNTESTABLE, note=f"{wide} {claim.note}".strip())


def _range(pairs: list[tuple[Any, Any]], path: str) -> str:
    """Where radii span less than two decades: that the lemma has no more."""
    sizes, cell = _sizes(pairs, path), pairs[0][0]
    if path != "radius" or sizes[-1] / sizes[0] >= 100:
        return ""
    allowed = "τ_w in [1, √m σ_w)" if hasattr(cell, "tau") else f"τ_v in [σ_v(k/m)^(3/8), σ_v], k = {cell.outputs}"
    return f", {math.log10(sizes[-1] / sizes[0]):.1f} decades: all that the lemma allows at m = {cell.width}, {allowed}"


def _along(results: Results, path: str) -> list[tuple[Any, Any]]:
    return list(results.where(path=path).pairs)


def _sizes(pairs: list[tuple[Any, Any]], path: str) -> Float[np.ndarray, " k"]:
    def size(cell: Any) -> float:
        return float(cell.width if path != "radius" else getattr(cell, "tau", 0) or cell.ratio)

    return np.array([size(cell) for cell, _ in pairs])


def _table(pairs: list[tuple[Any, Any]], name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in pairs], axis=1)


def _largest(results: Results, name: str, bound: Bound) -> Interval:
    """The cell whose mean ratio to its bound reaches highest, with its interval over seeds."""
    found = [mean_interval(data[name].values / bound(cell)) for cell, data in results]
    return max(found, key=lambda one: one.high)


def _span(results: Results, name: str, bound: Bound) -> str:
    ratios = [float(data[name].mean()) / bound(cell) for cell, data in results]
    return f"{min(ratios):.2f} to {max(ratios):.2f} of it"


def _where(results: Results, symbol: str, field: str) -> str:
    values, widths = results.values(field), results.values("width")
    outputs = " and ".join(str(k) for k in sorted(results.values("outputs")))
    return (
        f"{symbol} from {min(values):.3g} to {max(values):.3g}, m from {min(widths)} to {max(widths)}, k = {outputs}, "
        f"{results.pairs[0][0].seeds} seeds"
    )


def _tau(cell: Any) -> float:
    return float(cell.ratio) * SIGMA_V


def _norm_of_a(cell: Any) -> float:
    """√m‖A‖₂ is at most √m + √k + t with probability 1 − e^{−t²/2}; t = 3."""
    return 1 + (math.sqrt(cell.outputs) + 3) / math.sqrt(cell.width)


def _share(cell: Any) -> float:
    return float(cell.tau * cell.width ** (0.125 - 0.5)) ** (2 / 3)


def _share_v(cell: Any) -> float:
    return float(cell.ratio) ** (2 / 3)


def _bound_b(cell: Any) -> float:
    sigma = cell.width**-0.125
    turned = math.log(cell.width) * cell.tau * (cell.tau / sigma) ** (1 / 3) * cell.width ** (-1 / 6)
    return float(turned + math.sqrt(cell.outputs) * sigma)


def _limit_b(cell: Any) -> float:
    sigma = cell.width**-0.125
    turned = output_limit(math.sqrt(2) * cell.tau, math.sqrt(2) * sigma, cell.width)
    return turned + math.sqrt(cell.outputs) * sigma


def _bound_e(cell: Any) -> float:
    return math.log(cell.width) * _tau(cell) * float(cell.ratio) ** (1 / 3)


def _limit_e(cell: Any) -> float:
    still = SIGMA_V * math.sqrt(cell.outputs / (2 * cell.width))
    return output_limit(_tau(cell), SIGMA_V / math.sqrt(cell.width), cell.width) + still


def _bound_f(cell: Any) -> float:
    return math.log(cell.width) * _tau(cell) ** (2 / 3) * SIGMA_V ** (1 / 3)


def _limit_f(cell: Any) -> float:
    return operator_limit(_tau(cell), SIGMA_V / math.sqrt(cell.width), cell.width)


def figures(flips: Results, first: Results, second: Results) -> list[Figure]:
    found = []
    if len(flips) >= 2:
        found.append(_signs(flips))
    if len(second) >= 2:
        found += _operators(second) + _at_the_edge(second)
    if len(_along(first, "width")) >= 2:
        found.append(_outputs(first))
    return found


def _signs(results: Results) -> Figure:
    most = max(cell.width for cell, _ in results)
    pairs = sorted((one for one in results if one[0].width == most), key=lambda one: float(one[0].delta))
    deltas = np.array([cell.delta for cell, _ in pairs])
    grid = np.geomspace(deltas[0], 1, 60)
    plot = new_plot()
    line(plot, grid, [flip_fraction(float(one)) for one in grid], name="worst g′, exact", colour="blue")
    line(plot, grid, np.arctan(grid) / math.pi, name="random g′, exact", colour="green")
    line(plot, grid, (6 / math.pi) ** (1 / 3) * grid ** (2 / 3), name="1.241 δ^(2/3)", colour="grey", dash="dot")
    points(plot, deltas, _table(pairs, "share").mean(axis=0), name="worst g′", colour="vermillion")
    points(plot, deltas, _table(pairs, "random_share").mean(axis=0), name="random g′", colour="orange")
    style(plot, x="length δ of g′", y="share of signs turned", log_x=True, log_y=True)
    caption = f"g ~ N(0, I/m), m = {most}, mean of {pairs[0][0].seeds} seeds."
    return Figure("A displacement that knows the signs turns δ^(2/3) of them, a random one δ", caption, plot)


def _operators(results: Results) -> list[Figure]:
    pairs = _along(results, "radius")
    if len(pairs) < 2:
        return []
    ratios = np.array([cell.ratio for cell, _ in pairs])
    plot = new_plot()
    for name, label, colour in (
        ("f", "(f) ‖ADV⁰‖₂, worst V", "vermillion"), ("e", "(e) ‖ADV⁰z‖, worst V", "blue"),
        ("g", "(g) ‖AD(V⁰+V)z‖, worst V", "green"), ("random_f", "(f), random V", "orange"),
    ):  # fmt: skip
        table = _table(pairs, name)
        points(plot, ratios, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    tau = SIGMA_V * ratios
    for label, values, dash in (
        ("(f) as printed, (e): τ_v(τ_v/σ_v)^(1/3)", tau * ratios ** (1 / 3), "dot"),
        ("(f) corrected: τ_v^(2/3)σ_v^(1/3)", tau ** (2 / 3) * SIGMA_V ** (1 / 3), "dash"),
    ):
        line(plot, ratios, values, name=label, colour="grey", dash=dash)
    style(plot, x="τ_v/σ_v, from the smallest the lemma allows", y=f"norm, σ_v = {SIGMA_V:g}", log_x=True, log_y=True)
    cell = pairs[0][0]
    caption = (
        f"m = {cell.width}, k = {cell.outputs}, z = (out₁, 1)/‖·‖ at the W that makes out₁ largest; mean of "
        f"{cell.seeds} seeds, bars from the smallest to the largest."
    )
    return [Figure("What is left of the initial second layer: small along z, not in other directions", caption, plot)]


def _at_the_edge(results: Results) -> list[Figure]:
    pairs = _along(results, "edge")
    if len(pairs) < 2:
        return []
    widths, cell = np.array([float(cell.width) for cell, _ in pairs]), pairs[0][0]
    plot = new_plot()
    for name, label, colour, exponent, dash in (
        ("d", "(d) share of turned signs", "orange", None, ""), ("f", "(f) ‖ADV⁰‖₂", "vermillion", -1 / 4, "dash"),
        ("g", "(g) ‖AD(V⁰+V)z‖", "green", -3 / 8, "dashdot"), ("e", "(e) ‖ADV⁰z‖", "blue", -1 / 2, "dot"),
    ):  # fmt: skip
        table = _table(pairs, name)
        mean, band = table.mean(axis=0), (table.min(axis=0), table.max(axis=0))
        points(plot, widths, mean, name=f"{label}, worst V", colour=colour, band=band)
        if exponent is not None:
            told = f"m^({Fraction(exponent)})".replace("-", "−")
            line(plot, widths, mean[0] * (widths / widths[0]) ** exponent, name=told, colour="grey", dash=dash)
    style(plot, x="width m", y=f"share; norm, σ_v = {SIGMA_V:g}", log_x=True, log_y=True)
    caption = (
        f"τ_v = σ_v(k/m)^(3/8), k = {cell.outputs}: (d) and (f), corrected, allow m^(−1/4), (g) m^(−3/8), (e) m^(−1/2),"
        f" which is also what (f) prints. Mean of {cell.seeds} seeds, bars from the smallest to the largest."
    )
    return [
        Figure("At the smallest τ_v the initial second layer fades along z, and more slowly across it", caption, plot)
    ]


def _outputs(results: Results) -> Figure:
    pairs = _along(results, "width")
    widths = np.array([float(cell.width) for cell, _ in pairs])
    plot = new_plot()
    for name, label, colour in (
        ("b", "(b) ‖AD_W W⁰(x,1)‖, worst W", "blue"), ("random_b", "(b), random W", "sky"),
        ("c", "(c) ‖out₁‖, worst W", "vermillion"), ("random_c", "(c), random W", "orange"),
    ):  # fmt: skip
        table = _table(pairs, name)
        points(plot, widths, table.mean(axis=0), name=label, colour=colour, band=(table.min(axis=0), table.max(axis=0)))
    line(plot, widths, [_limit_b(cell) for cell, _ in pairs], name="limit of (b)", colour="grey", dash="dot")
    style(plot, x="width m", y=f"norm, τ_w = {pairs[0][0].tau:g}", log_x=True, log_y=True)
    caption = f"k = {pairs[0][0].outputs}, ‖x‖ = 1, mean of {pairs[0][0].seeds} seeds, bars from least to largest."
    return Figure("The initial first layer fades like m^(−1/8), also under the worst displacement", caption, plot)
