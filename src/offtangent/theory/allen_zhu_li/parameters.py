"""What Theorem 1 of Allen-Zhu & Li (2019) sets and asks: Table 1, the learning rates, the number of steps.

    τ_w = 10 k p_F 𝔠_s(F),   τ_v = 10 α k p_G 𝔠_s(G),   σ_w = m^{−1/8} ∈ [m^{−0.49}, m^{−0.01}],
    σ_v = 1/τ_v² ∈ [1, m^{0.37}],   τ_w ∈ [1, √m σ_w),   τ_v ∈ [σ_v (k/m)^{3/8}, σ_v],   τ_v ≤ 1,
    δ = OPT + τ_v⁴(1 + 𝔅_F)²,   T = τ_w²/min{1, δ²},   η_w ~ min{1, δ},   η_v = η_w (τ_v/τ_w)².

What Õ and Θ̃ hide counts as one, but for the 0.1 below and for the 10 of Lemma D.2, ‖W⋆‖_F ≤ τ_w/10 and ‖V⋆‖_F ≤ τ_v/10,
which the descent needs to have room. The paper prints η_v without the α that is in τ_v; its proof needs
τ_w²/η_w = τ_v²/η_v. The theorem is about widths m ≥ M, a polynomial in 1/α and the rest that it does not give: what is
checked here is all that has a number, and a width that passes may still be below M.
"""

import math
from dataclasses import dataclass, replace

from offtangent._checks import check_count, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.theory.allen_zhu_li.concept import ConceptComplexity

STEADY = 0.1  # η_w + η_v τ_w² of the proof, its O(·) as one
ROOM = 10  # τ_w over the bound on ‖W⋆‖_F, and τ_v over that on ‖V⋆‖_F (Lemma D.2)
ENOUGH = 2.0  # the C* with which E h² ≤ 𝔠_s² (Lemma F.2), and so ‖W⋆‖_F ≤ k p 𝔠_s


@dataclass(frozen=True)
class ResNetSettings:
    """Initialisation, radii, rates and steps; `problems` says which of the conditions above are not met.

    `applies` where they all are. It says nothing of m ≥ M, which the theorem asks for without giving M.
    """

    sigma_w: float
    sigma_v: float
    tau_w: float
    tau_v: float
    delta: float
    rate_w: float  # η_w
    rate_v: float  # η_v
    steps: int  # T, and the number of samples
    problems: tuple[str, ...]

    @property
    def applies(self) -> bool:
        return not self.problems


def resnet_settings(
    *,
    tau_w: float,
    tau_v: float,
    outputs: int,
    width: int,
    delta: float,
    sigma_w: float | None = None,
    sigma_v: float | None = None,
) -> ResNetSettings:
    """Table 1 and the rates for radii that are known, those within which ‖W‖_F and ‖V‖_F are to stay.

    σ_w = m^(−1/8) and σ_v = 1/τ_v² unless told.

    >>> found = resnet_settings(tau_w=5.0, tau_v=0.5, outputs=2, width=4096, delta=0.5)
    >>> found.sigma_v, found.steps, round(found.rate_w * (1 + 0.5**2), 12), found.applies
    (4.0, 100, 0.05, True)
    """
    for name, value in (("tau_w", tau_w), ("tau_v", tau_v), ("delta", delta)):
        check_real(name, value)
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value:g}: it must be positive and finite.")
    require(
        min(1.0, delta) ** 2 != 0,
        f"delta={delta:g}: the theorem asks for τ_w²/δ² steps, more than can be counted; give a larger δ.",
    )
    check_count("outputs", outputs)
    check_count("width", width)
    told = sigma_w is not None
    sigma_w = width**-0.125 if sigma_w is None else sigma_w
    sigma_v = tau_v**-2 if sigma_v is None else sigma_v
    for name, value, what, usual in (
        ("sigma_w", sigma_w, "the standard deviation of W⁰", "m^(−1/8)"),
        ("sigma_v", sigma_v, "√m times the standard deviation of V⁰", "1/τ_v²"),
    ):
        check_real(name, value)
        if not 0 < value < math.inf:
            raise InputError(
                f"{name}={value:g}: it is {what}, positive and finite. Leave it out for Table 1's {usual}."
            )
    rate_w = STEADY * min(1.0, delta) / (1 + tau_v**2)
    return ResNetSettings(
        sigma_w=sigma_w,
        sigma_v=sigma_v,
        tau_w=tau_w,
        tau_v=tau_v,
        delta=delta,
        rate_w=rate_w,
        rate_v=rate_w * (tau_v / tau_w) ** 2,
        steps=math.ceil(tau_w**2 / min(1.0, delta) ** 2),
        problems=(*_radii(tau_v, delta), *_problems(sigma_w, sigma_v, tau_w, tau_v, outputs, width, told)),
    )


def theorem1(
    base: ConceptComplexity,
    composite: ConceptComplexity,
    *,
    alpha: float,
    width: int,
    base_bound: float,
    optimum: float = 0.0,
) -> ResNetSettings:
    """The settings for a target H = F + αG(F) with ‖F(x)‖ ≤ 𝔅_F = base_bound; `optimum` is OPT, H's own risk.

    Complexities are with C* ≥ 2: then W⋆ and V⋆ lie within a tenth of the radii (Lemma D.2, √E‖W⋆‖_F²).

    >>> F = ConceptComplexity(outputs=2, terms=1, smooth=2.0, size=0.0, constant=2.0)
    >>> theorem1(F, F, alpha=0.02, width=10**5, base_bound=1.0).applies
    True
    >>> print(*theorem1(F, F, alpha=0.05, width=10**5, base_bound=1.0).problems, sep="; ")  # doctest: +ELLIPSIS
    α is above 1/(10 k p_G 𝔠_s(G)) = 0.025...
    """
    for letter, one in (("F", base), ("G", composite)):
        if not isinstance(one, ConceptComplexity):
            raise InputError(
                f"{letter} is given as {a_kind(one)}: expected its complexity, a ConceptComplexity. For ridges it is "
                f"concept_complexity({letter}, constant={ENOUGH:g})."
            )
    for name, value in (("alpha", alpha), ("base_bound", base_bound), ("optimum", optimum)):
        check_real(name, value)
    require(alpha > 0, f"alpha={alpha:g}: Theorem 1 is about α in (0, 1). With α = 0 there is no G to learn.")
    require(
        alpha < 1,
        f"alpha={alpha:g}: Theorem 1 is about α in (0, 1). From α = 1 on Lemma D.2, that W⋆ and V⋆ exist, is not "
        "stated, nor are Lemma D.3 and the descent of Claims D.6 and D.7, which start from it; and a bound of "
        "order α⁴ would be no less than the α² of not learning G. Lemma D.1 is left: resnet_settings(tau_w=…, "
        "tau_v=…) checks its conditions for any radii.",
    )
    if base.outputs != composite.outputs:
        raise InputError(f"F has {base.outputs} outputs and G has {composite.outputs}: both map to the same k.")
    require(
        0 <= base_bound < math.inf,
        f"base_bound={base_bound:g}: 𝔅_F bounds ‖F(x)‖ over all inputs, so it is finite and at least 0.",
    )
    require(
        0 <= optimum < math.inf,
        f"optimum={optimum:g}: OPT is the mean of ½‖H(x) − y‖², finite and at least 0. It is 0 for labels without "
        "noise.",
    )
    tau_w, per_alpha = (ROOM * one.outputs * one.terms * one.smooth for one in (base, composite))
    tau_v = alpha * per_alpha
    found = resnet_settings(
        tau_w=tau_w,
        tau_v=tau_v,
        outputs=base.outputs,
        width=width,
        delta=optimum + tau_v**4 * (1 + base_bound) ** 2,
    )
    more = []
    if tau_v > 1:
        more.append(
            f"α is above 1/(10 k p_G 𝔠_s(G)) = {1 / per_alpha:.3g}, from where on τ_v is above 1, and Claims D.6 and "
            "D.7 no longer work"
        )
    more += [
        f"{name} has C* = {one.constant:g}, and E h² ≤ 𝔠_s² wants {ENOUGH:g} (Lemma F.2): W⋆ and V⋆ may lie outside a "
        f"tenth of their radii (Lemma D.2); concept_complexity(…, constant={ENOUGH:g}) will do"
        for name, one in (("F", base), ("G", composite))
        if one.constant < ENOUGH
    ]
    return replace(found, problems=(*more, *found.problems))


def _radii(tau_v: float, delta: float) -> list[str]:
    """What Table 1 and Theorem 1 ask of τ_v and δ whatever the width is."""
    found = []
    if tau_v > 1:
        found.append(
            f"τ_v = {tau_v:.3g} is above 1, Table 1's 1/polylog(m): the absorption of O(τ_v + α𝔏_G)‖H − out‖ into the "
            "left side (Claims D.6, D.7) no longer works"
        )
    if delta < tau_v**4:
        found.append(
            f"δ = {delta:.3g} is below τ_v⁴ = {tau_v**4:.3g}, and Theorem 1 promises OPT + τ_v⁴(1 + 𝔅_F)² at best"
        )
    return found


def _problems(
    sigma_w: float, sigma_v: float, tau_w: float, tau_v: float, outputs: int, width: int, told: bool
) -> tuple[str, ...]:
    """`told`: σ_w is one that was given, and stays as it is at other widths."""
    found = []
    if not 1 <= tau_w < math.sqrt(width) * sigma_w:
        enough = math.floor((tau_w / sigma_w) ** 2) if told else math.ceil(tau_w ** (8 / 3))
        found.append(
            f"τ_w = {tau_w:.3g} is not in [1, √m σ_w) = [1, {math.sqrt(width) * sigma_w:.3g}): too many first-layer "
            f"signs may change (Lemma D.1(a)); a width of {enough + 1} would do"
            if tau_w >= 1
            else f"τ_w = {tau_w:.3g} is below 1 (Lemma D.1)"
        )
    if not width**-0.49 <= sigma_w <= width**-0.01:
        found.append(
            f"σ_w = {sigma_w:.3g} is not in [m^(−0.49), m^(−0.01)] = [{width**-0.49:.3g}, {width**-0.01:.3g}] (Table 1)"
        )
    if not 1 <= sigma_v <= width**0.37:
        found.append(
            f"σ_v = {sigma_v:.3g} is not in [1, m^0.37] = [1, {width**0.37:.3g}] (Table 1, its polylog as one)"
        )
    least = sigma_v * (outputs / width) ** 0.375
    if not least <= tau_v <= sigma_v:
        found.append(
            f"τ_v = {tau_v:.3g} is not in [σ_v(k/m)^(3/8), σ_v] = [{least:.3g}, {sigma_v:.3g}]: Lemma D.1(d)–(g) and "
            "what is built on them no longer apply"
        )
    return tuple(found)
