"""What the worst displacements say about Proposition C.4 and Lemma D.1: claims."""

import math
from typing import Any

import numpy as np

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, mean_interval
from offtangent.papers.allen_zhu_li._coupling import (
    bound_b,
    bound_e,
    length_v,
    limit_b,
    limit_e,
    limit_f,
    norm_of_a,
    share_v,
    share_w,
)
from offtangent.papers.allen_zhu_li.coupling_slopes import Bound, Power, along, slopes
from offtangent.theory.allen_zhu_li.worst_signs import flip_fraction

PROOF = 4.8  # of Proposition C.4: 4 from |S₂|, 2·√(2/π)/2 from |S₁| with Chernoff's factor two
ROUNDING = 1e-9
ROUNDED = 1e-4  # sizes of cells are rounded numbers
PRINTED_POWER = -1 / 2  # of m, at the smallest τ_v; the closed form has half of it

WHY = (
    "The proof bounds AD_V,W V⁰z for the z that D_V,W belongs to, where the turned neurons are those with a small "
    "(V⁰z)_j; in other directions they are as large as any. As m → ∞ the largest is 0.639 τ_v^(2/3)σ_v^(1/3), here "
    "0.639 σ_v(k/m)^(1/4) where σ_v(k/m)^(1/2) is printed, and no power of ln m makes up for that in the end; over "
    "sizes like these ln² m could, so that a slope would not tell. With the corrected bound ♣ in Claim D.6 is "
    "O(τ_v^(2/3)σ_v^(1/3))‖F − out₁‖, not O(τ_v)‖F − out₁‖."
)


def claims(flips: Results, first: Results, second: Results, outputs: Results) -> list[Claim]:
    found: list[Claim] = []
    if len(flips):
        found += _of_flips(flips)
    if len(first):
        found += _of_first(first)
    if len(outputs) or len(first):
        found += _of_outputs(outputs)
    if len(second):
        found += _of_second(second)
    return found


def _of_outputs(results: Results) -> list[Claim]:
    """Lemma D.1(c) by the better search."""
    sweep = results.sweep("tau", f"{results.first.seeds} seeds", symbol="τ_w", noun="radii") if len(results) else None
    words: dict[str, Any] = {
        "source": "Lemma D.1(c), by direction",
        "statement": "‖out₁‖ = O(τ_w), by the search over directions of the outputs: it grows no faster than τ_w",
    }
    if sweep is None:
        why = "The better search is not among these cells."
        return [Claim.not_run(reason="size", why=why, profile="laptop", **words)]
    more = results.table("c") / results.table("local")
    ratios = [data["c"].values / (math.sqrt(2) * norm_of_a(cell) * cell.tau + bound_b(cell)) for cell, data in results]
    return [
        sweep.slope(
            "c",
            "≤",
            1.0,
            hypotheses=_radii(results),
            note=f"It finds {more.mean(axis=0).min():.2f} to {more.mean(axis=0).max():.2f} times what the local search "
            f"finds, and up to {max(float(one.max()) for one in ratios):.2g} of ‖A‖₂‖(x,1)‖τ_w + (b), Õ(·) as ln m.",
            **words,
        )
    ]


def _of_flips(results: Results) -> list[Claim]:
    seeds = results.pairs[0][0].seeds
    most = max(cell.width for cell, _ in results)
    wide = [(cell, data) for cell, data in results if cell.width == most and cell.delta < 1]
    exact = [data["share"].values / flip_fraction(cell.delta) for cell, data in wide]
    left = max(float(data[name].max()) for _, data in results for name in ("left", "random_left"))
    over = f"δ from {min(results.values('delta')):g} to 1, m from {min(results.values('width'))} to {most}"
    return [
        Claim.at_most(
            _largest(results, "share", lambda cell: cell.delta ** (2 / 3)),
            PROOF,
            source="Proposition C.4",
            statement="no g′ with ‖g′‖ ≤ δ turns more than O(mδ^(2/3)) of m signs, the proof's constants counted",
            measured=f"largest share of turned signs over δ^(2/3), worst g′, 95 % interval over {seeds} seeds, {over}",
            note="The sharp constant is (6/π)^(1/3) = 1.241. A random g′ turns arctan(δ)/π of them only.",
        ),
        *(
            [
                Claim.includes(
                    mean_interval(np.mean(exact, axis=0), level=0.999),
                    1.0,
                    source="Proposition C.4, attained",
                    statement="the worst g′ turns erf(t/√2) of all signs, E[g²1{|g| ≤ t}] = δ², which is 1.241 δ^(2/3) "
                    "for small δ",
                    measured=f"measured over stated, mean over δ < 1, m = {most}, 99.9 % interval over {seeds} seeds",
                )
            ]
            if exact
            else []
        ),
        Claim.at_most(
            left,
            1 + ROUNDING,
            identity=True,
            source="Proposition C.4",
            statement="‖D′g‖ ≤ ‖g′‖, D′ the signs that g′ turns",
            measured=f"largest ratio, worst and random g′, {over}, {seeds} seeds",
        ),
    ]


def _of_first(results: Results) -> list[Claim]:
    where = _where(results, "τ_w", "tau")
    found = [
        Claim.at_most(
            _largest(results, "a", share_w),
            PROOF,
            hypotheses=_radii(results),
            source="Lemma D.1(a)",
            statement="‖D_W⁰ − D_W‖₀ ≤ O((τ_w/σ_w)^(2/3) m^(2/3)) for all ‖W‖₂ ≤ τ_w, constants of Proposition C.4",
            measured=f"largest ratio of the two sides without the constant, worst W, 95 % interval, {where}",
        ),
        Claim.at_most(
            _largest(results, "b", bound_b),
            1.0,
            hypotheses=_radii(results),
            source="Lemma D.1(b)",
            statement="‖AD_W W⁰(x,1)‖ ≤ Õ(τ_w(τ_w/σ_w)^(1/3) m^(−1/6)) + √k σ_w, for all W, Õ(·) as ln m",
            measured=f"largest ratio of the two sides, worst W found, 95 % interval, {where}",
            note=f"Next to its limit for few turned signs, 1.266 τ_w^(4/3) m^(−1/8) + √k σ_w, it is "
            f"{_span(results, 'b', limit_b)}.",
        ),
        Claim.at_most(
            _largest(results, "c", lambda one: math.sqrt(2) * norm_of_a(one) * one.tau + bound_b(one)),
            1.0,
            hypotheses=_radii(results),
            source="Lemma D.1(c)",
            statement="‖out₁‖ ≤ ‖A‖₂‖(x,1)‖τ_w + (b) = O(τ_w) for all W",
            measured=f"largest ratio of the two sides, worst W found, 95 % interval, {where}",
            note=f"Over τ_w alone: {_span(results, 'c', lambda one: one.tau)}.",
        ),
    ]
    a, b, c = (("Lemma D.1(a)", "‖D_W⁰ − D_W‖₀"), ("Lemma D.1(b)", "‖AD_W W⁰(x,1)‖"), ("Lemma D.1(c)", "‖out₁‖"))
    found += slopes(
        results,
        "width",
        {
            "a": Power(
                *a, 0, "(τ_w/σ_w)^(2/3)m^(2/3) = τ_w^(2/3)m^(3/4)", *_exact(lambda one: one.tau / one.width**0.375)
            ),
            "b": Power(*b, -1 / 8, "τ_w(τ_w/σ_w)^(1/3)m^(−1/6) + √k σ_w, σ_w = m^(−1/8)"),
            "c": Power(*c, 0, "τ_w"),
        },
        hypotheses=_radii(results),
    )
    return found + slopes(
        results,
        "radius",
        {
            "a": Power(*a, 2 / 3, "(τ_w/σ_w)^(2/3)m^(2/3)"),
            "b": Power(*b, 4 / 3, "τ_w(τ_w/σ_w)^(1/3)m^(−1/6) + √k σ_w"),
            "c": Power(*c, 1, "τ_w"),
        },
        hypotheses=_radii(results),
    )


def _of_second(results: Results) -> list[Claim]:
    where = _where(results, "τ_v/σ_v", "ratio")
    said = f"largest ratio of the two sides, worst V found, 95 % interval, {where}"
    found = [
        Claim.at_most(
            _largest(results, "d", share_v),
            PROOF,
            hypotheses=_ranges(results),
            source="Lemma D.1(d)",
            statement="‖D_V⁰,W − D_V,W‖₀ ≤ O((τ_v/σ_v)^(2/3) m) for all ‖V‖₂ ≤ τ_v, constants of Proposition C.4",
            measured=f"largest ratio of the two sides without the constant, worst V, 95 % interval, {where}",
        ),
        Claim.at_most(
            _largest(results, "e", bound_e),
            1.0,
            hypotheses=_ranges(results),
            source="Lemma D.1(e)",
            statement="‖AD_V,W V⁰z‖ ≤ Õ(τ_v(τ_v/σ_v)^(1/3))‖z‖, z = (out₁, 1), for all V, Õ(·) as ln m",
            measured=said,
            note=f"Next to its limit for few turned signs, 0.895 τ_v(τ_v/σ_v)^(1/3) + σ_v√(k/2m), it is "
            f"{_span(results, 'e', limit_e)}.",
        ),
        Claim.at_most(
            _largest(results, "g", lambda one: length_v(one) * norm_of_a(one) + bound_e(one)),
            1.0,
            hypotheses=_ranges(results),
            source="Lemma D.1(g)",
            statement="‖AD_V,W(V⁰+V)z‖ ≤ (‖A‖₂τ_v + (e))‖z‖ = Õ(τ_v)‖z‖ for all V",
            measured=said,
            note=f"Over τ_v‖z‖ alone: {_span(results, 'g', length_v)}.",
        ),
    ]
    return found + _second_slopes(results)


def _second_slopes(results: Results) -> list[Claim]:
    d, e = ("Lemma D.1(d)", "‖D_V⁰,W − D_V,W‖₀"), ("Lemma D.1(e)", "‖AD_V,W V⁰z‖/‖z‖")
    f, g = ("Lemma D.1(f), corrected", "‖AD_V,W V⁰‖₂"), ("Lemma D.1(g)", "‖AD_V,W(V⁰+V)z‖/‖z‖")
    of_d, of_e, of_f, of_g = "(τ_v/σ_v)^(2/3)m", "τ_v(τ_v/σ_v)^(1/3)", "τ_v^(2/3)σ_v^(1/3)", "τ_v"
    turned = Power(*d, 0, of_d, *_exact(lambda one: one.ratio))
    found = slopes(
        results,
        "width",
        {
            "d": turned,
            "e": Power(*e, 0, of_e),
            "f": Power(*f, 0, of_f),
            "g": Power(*g, 0, of_g),
        },
        hypotheses=_ranges(results),
    )
    found += slopes(
        results,
        "edge",
        {
            "d": turned,
            "e": Power(*e, -1 / 2, of_e),
            "f": Power(*f, -1 / 4, of_f),
            "g": Power(*g, -3 / 8, of_g),
        },
        hypotheses=_ranges(results),
    )
    found += _closed_form(results)
    return found + slopes(
        results,
        "radius",
        {
            "d": Power(*d, 2 / 3, of_d),
            "e": Power(*e, 4 / 3, of_e),
            "f": Power(*f, 2 / 3, of_f),
            "g": Power(*g, 1, of_g),
        },
        hypotheses=_ranges(results),
    )


def _exact(delta: Bound) -> tuple[str, Bound]:
    """Shares of turned signs have a law that tends to 1.241 δ^(2/3) from below: over it, a slope has no bias."""
    return " over Proposition C.4's exact law, at most 1.241 times that,", lambda one: flip_fraction(delta(one))


def _closed_form(results: Results) -> list[Claim]:
    """Lemma D.1(f) by what the worst V is known to do as m → ∞, and that what is found does it."""
    pairs = along(results, "edge")
    if not pairs:
        return []
    cell, data = max(pairs, key=lambda pair: int(pair[0].width))
    at = "τ_v = σ_v(k/m)^(3/8)"
    ratio = mean_interval(data["f"].values / limit_f(cell), level=0.999)
    spans = f"{_span(results, 'f', limit_f)}; a random V of that size has {_span(results, 'random_f', limit_f)}"
    return [
        Claim.includes(
            ratio,
            1.0,
            source="Lemma D.1(f), corrected",
            statement=f"the worst V makes ‖AD_V,W V⁰‖₂ = 0.639 τ_v^(2/3)σ_v^(1/3) as m → ∞ and few signs turn: {at}",
            measured=f"measured over stated, m = {cell.width}, worst V found, 99.9 % interval of {cell.seeds} seeds",
            note=f"At all sizes: {spans}.",
            hypotheses=_ranges(results),
        ),
        Claim.at_most(
            PRINTED_POWER / 2,
            PRINTED_POWER,
            source="Lemma D.1(f), as printed",
            statement=f"‖AD_V,W V⁰‖₂ ≤ Õ(τ_v(τ_v/σ_v)^(1/3)): at {at} it falls no slower than m^(−1/2), but for ln m",
            measured="power of m in the closed form 0.639 τ_v^(2/3)σ_v^(1/3), which the worst V found has (above)",
            misprint=True,
            note=WHY,
        ),
    ]


def _ranges(results: Results) -> tuple[Hypothesis, ...]:
    """Lemma D.1's range of τ_v, at the cells that are nearest to leaving it; the polylog as one."""
    ratios = [cell.ratio / (cell.outputs / cell.width) ** 0.375 for cell, _ in results]
    most, source = max(cell.ratio for cell, _ in results), "Lemma D.1, Table 1"
    return (
        Hypothesis("τ_v over σ_v(k/m)^(3/8)", min(ratios), "≥", 1 - ROUNDED, source),
        Hypothesis("τ_v/σ_v", most, "≤", 1, f"{source}: 1/polylog(m)", given=False),
    )


def _radii(results: Results) -> tuple[Hypothesis, ...]:
    """Lemma D.1's range of τ_w, likewise."""
    source = "Lemma D.1, Table 1"
    return (
        Hypothesis("radius τ_w", min(cell.tau for cell, _ in results), "≥", 1, source),
        Hypothesis("τ_w over √m σ_w", max(cell.tau / cell.width**0.375 for cell, _ in results), "<", 1, source),
    )


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
