"""What the lemmas of Appendix E say: their claims."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results
from offtangent.lab.hypotheses import Hypothesis
from offtangent.lab.statistics import Interval, fraction_interval, mean_interval, slope_interval
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.papers.ge_wang_zhao import lemmas_nets
from offtangent.papers.ge_wang_zhao._judging import told_apart
from offtangent.papers.ge_wang_zhao._kept import DELTA, HALF, MANY, NOISE, chances, deltas
from offtangent.theory.ge_wang_zhao.capacity import admissible_features
from offtangent.theory.ge_wang_zhao.features import (
    NormBound,
    feature_norm_bound,
    most_features,
    perturbed_feature_norm_bound,
    perturbed_singular_floor,
)

ROUNDING = 1e-9
FROM = {"zero": "x_j = 0", "equal": "all x_j equal", "sphere": "different x_j on the sphere"}


def claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    kinds = ("Tensors", "Net", "Ball", "Decoupled", "Perturbed", "Lengths", "Span")
    judges = (_of_tensors, _of_nets, _of_balls, _of_decoupled, _of_perturbed, _of_lengths, _of_spans)
    for name, judge in zip(kinds, judges, strict=True):
        for power in (1, 2):
            chosen = _kind(results, name).where(power=power)
            if len(chosen):
                found += judge(power, chosen)
    found += _of_distances(_kind(results, "Distances"))
    for cell, data in _kind(results, "Outside"):
        found.append(_outside(cell, data))
    found += lemmas_nets.claims(results)
    return sorted(found, key=lambda claim: int(claim.source.split()[1].strip(",")))


def _kind(results: Results, name: str) -> Results:
    return Results(results.profile, tuple(one for one in results if type(one[0]).__name__ == name), results.complete)


def _all(results: Results, name: str) -> Float[np.ndarray, "k"]:
    return np.concatenate([data[name].values.ravel() for _, data in results])


def _table(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    return np.stack([data[name].values for _, data in results], axis=1)


def _sizes(results: Results, name: str) -> Float[np.ndarray, "k"]:
    return np.array([float(getattr(cell, name)) for cell, _ in results])


def _few(results: Results) -> Results:
    return Results(results.profile, tuple(one for one in results if one[0].seeds < MANY), results.complete)


def _widened(interval: Interval) -> Interval:
    return Interval(interval.value, interval.low - ROUNDING, interval.high + ROUNDING)


def _of_tensors(p: int, results: Results) -> list[Claim]:
    cells = [cell for cell, _ in results]
    where = f"p = {p}, d = {', '.join(str(cell.dim) for cell in cells)}, {cells[0].seeds} random unit tensors each"
    said: dict[str, Any] = {"measured": f"smallest ratio of the two sides, {where}"}
    rv, root = _all(results, "rv"), math.sqrt(math.factorial(p))
    drawn = f"variance of {cells[0].draws} draws over the exact one, mean over tensors, 99.9 % interval, {where}"
    return [
        Claim.at_least(
            float(rv.min()) * root, 1 - ROUNDING, source="Lemma 6",
            statement=f"‖M‖_rv ≥ ‖M‖₂/√p! for symmetric tensors of order p = {p}", identity=True, **said,
        ),
        Claim.at_most(
            float(rv.max()), 1 + ROUNDING, source="Lemma 7, proof",
            statement=f"‖φ(M)‖₂ = ‖M‖_rv ≤ ‖M‖₂, p = {p}", measured=f"largest ratio, {where}", identity=True,
        ),
        Claim.at_least(
            float(_all(results, "floor").min()), 1 - ROUNDING, source="Lemma 9",
            statement=f"Var⟨M, (x₀ + x)^⊗p⟩ ≥ ‖M‖_rv², p = {p}",
            note=f"It is at least p!‖M‖₂² as well: smallest ratio {_all(results, 'sharp').min():.4g}. (The proof takes "
            "the polynomial's coefficients for the tensor's, and loses their multiplicities.)", identity=True, **said,
        ),
        Claim.includes(
            _widened(mean_interval(_all(results, "drawn"), level=0.999)), 1.0, source="Proposition 5",
            statement=f"Var⟨M, (x₀ + x)^⊗p⟩ is the sum of squares of its Hermite coefficients, p = {p}", measured=drawn,
        ),
        Claim.at_least(
            float(_all(results, "pair_floor").min()), 1 - ROUNDING, source="Lemma 10",
            statement=f"Var⟨M, (u₀ + u)^⊗p ⊗ (v₀ + v)^⊗p⟩ ≥ ‖M‖_rv²/(2p)! for M of order 2p, p = {p}",
            note="The proof gives 1/(2p)!² only; but (p!)²‖M‖₂² is a bound as well: smallest ratio "
            f"{_all(results, 'pair_sharp').min():.4g}.", identity=True, **said,
        ),
        Claim.includes(
            _widened(mean_interval(_all(results, "pair_drawn"), level=0.999)), 1.0, source="Lemma 10, left side",
            statement=f"that variance is the sum of squares of the Hermite coefficients in (u, v), p = {p}",
            measured=drawn,
        ),
    ]  # fmt: skip


def _of_nets(p: int, results: Results) -> list[Claim]:
    """Sets can be larger than a bound only where it is below the number of points that they are chosen among."""
    bounds = (
        ("Lemma 7", "log_bound", "(1 + 2√p!/ε)^D, its O(·) as one"),
        ("Proposition 1", "log_euclidean", "(1 + 2/ε)^D"),
    )
    points, found = results.pairs[0][0].points, list[Claim]()
    told = ", ".join(
        f"{math.exp(data['log_size'].max()):.0f} of {math.exp(data['log_bound'][0]):.3g} (d = {cell.dim}, "
        f"ε = {cell.epsilon:g})"
        for cell, data in results
    )
    for source, name, bound in bounds:
        kept = [(cell, data) for cell, data in results if float(data[name].max()) < math.log(points)]
        if not kept:
            continue
        which = ", ".join(f"d = {cell.dim}, ε = {cell.epsilon:g}" for cell, _ in kept)
        found.append(
            Claim.at_most(
                max(float((data["log_size"] - data[name]).max()) for _, data in kept),
                0.0,
                source=source,
                statement=f"N(X̄_d^p, ε) ≤ {bound}, for p = {p}: no ε-separated set of unit tensors is larger",
                measured=f"largest ln(size/bound) of sets chosen greedily among {points} random unit tensors, where "
                f"the bound is below {points}: {which}",
                note=f"Sizes next to Lemma 7's bound, everywhere: {told}. Not all are nets: of 1000 fresh tensors up "
                f"to {100 * _all(results, 'uncovered').max():.1f} % are further than ε from a set.",
            )
        )
    return found


def _of_distances(results: Results) -> list[Claim]:
    if not len(results):
        return []
    ratio = np.concatenate([data["ratio"].values for _, data in results])
    root = np.concatenate([data["ratio"].values * math.sqrt(cell.columns) for cell, data in results])
    laws = ", ".join(results.values("law"))
    where = f"n = {', '.join(map(str, results.values('columns')))}, matrices: {laws}, 10 seeds each"
    return [
        Claim.at_most(
            float(ratio.max()), 1 + 1e-6, source="Lemma 8", statement="σ_min(M) ≤ l(M), the leave-one-out distance",
            measured=f"largest σ_min/l, {where}", note="Attained by orthonormal columns.", identity=True,
        ),
        Claim.at_least(
            float(root.min()), 1 - 1e-6, source="Lemma 8", statement="σ_min(M) ≥ l(M)/√n",
            measured=f"smallest √n σ_min/l, {where}",
            note="Nearly attained where only the sum of all columns is short.", identity=True,
        ),
    ]  # fmt: skip


def _of_balls(p: int, results: Results) -> list[Claim]:
    found: list[Claim] = []
    for cell, data in results:
        at, exponent = chances(cell.draws), p if cell.lemma == 11 else 2 * p
        epsilon = data["epsilon"].values
        which = "the worst subspace" if cell.subspace == "worst" else f"a random subspace of dimension {cell.size}"
        where = f"{cell.seeds} times {cell.draws} draws, d = {cell.dim}, v = 1/2"
        constant = (at / (p * epsilon ** (1 / exponent))).max()
        what = "x̄^⊗p" if cell.lemma == 11 else "x̄^⊗p ⊗ ȳ^⊗p"
        found.append(
            Claim.no_slower(
                slope_interval(at, epsilon, level=0.99), exponent, source=f"Lemma {cell.lemma}",
                statement=f"Pr(‖Proj_M {what}‖ < ε·unit) = O(p)ε^(1/{exponent}), p = {p}, {which}: the ε that "
                f"is missed with probability q falls no faster than q^{exponent}",
                measured=f"log-log slope of ε in q from {at[0]:.2g} to 0.1, 99 % interval, {where}",
                note=f"The constant of O(p), over p: {constant:.3g} at most.",
            )
        )  # fmt: skip
        if cell.lemma == 11 and cell.subspace == "worst":
            edge = (HALF * math.factorial(2 * p) ** -0.25) ** (1 / p)
            trials = cell.seeds * cell.draws
            found.append(
                Claim.includes(
                    fraction_interval(int(data["below"].sum()), trials, level=0.999), math.erf(edge / math.sqrt(2)),
                    source="Lemma 11",
                    statement=f"for M = span e₁^⊗{p} and x = 0 it is Pr(|N| < (ε/(2p)!^¼)^(1/p)): the exponent 1/p is "
                    "attained",
                    measured=f"fraction at ε = 1/2, 99.9 % interval, {where}",
                )
            )  # fmt: skip
    spread = [float(data["variance"].min()) for cell, data in results if cell.lemma == 11]
    if spread:
        found.append(
            Claim.at_least(
                min(spread), 1 - ROUNDING, source="Lemma 11, proof",
                statement=f"Var Σ⟨m_i, x̄^⊗p⟩² ≥ k/(2p)! for orthonormal m_1, …, m_k, p = {p}, v = 1",
                measured=f"smallest ratio of the two sides, exact variances, {len(spread)} kinds of subspace",
                note="The proof applies Lemma 9 to Σ m_i ⊗ m_i, which is not symmetric for p > 1; here it is "
                "symmetrised, which makes it shorter.", identity=True,
            )
        )  # fmt: skip
    return found


def _of_decoupled(p: int, results: Results) -> list[Claim]:
    rows = [(cell, symmetric_dimension(cell.dim, p), float(data["dimension"].max())) for cell, data in results]
    shapes = ", ".join(f"(d = {cell.dim}, k = {cell.features}): {found:.0f}" for cell, _, found in rows)
    placed = math.comb(2 * p, p)
    printed = max(found / (cell.features * small * placed) for cell, small, found in rows)
    return [
        Claim.at_most(
            max(found / ((cell.features - 2) * small) for cell, small, found in rows),
            1.0,
            source="Lemma 13, sharpened",
            statement=f"dim S_(i,j) ≤ (k − 2)D_d^p for i ≠ j, p = {p}: x^⊗p ↦ Proj(r^⊗p ⊗ x^⊗p) is linear",
            measured=f"largest ratio of the two sides, {results.pairs[0][0].seeds} draws of R each",
            note=f"Dimensions {shapes}; {printed:.2g} of the proof's kD_d^p C(2p, p), which is weaker. With it the "
            f"lemma allows k ≤ {most_features(100, p)} features at d = 100, instead of {admissible_features(100, p)}.",
        )
    ]


def _missing(results: Results) -> tuple[int, int, float]:
    """Draws below the lemma's floor, of how many, and the smallest ratio to it."""
    below = sum(int(data["below"]) for _, data in results)
    return below, sum(cell.seeds for cell, _ in results), min(float(data["worst"]) for _, data in results)


def _of_perturbed(p: int, results: Results) -> list[Claim]:
    """Exponents alone: at constants one (4) is missed by orders of magnitude, and judges nothing."""
    inside = results.only(lambda cell: cell.features >= 2 * math.sqrt(cell.samples))
    _, _, worst = _missing(inside) if len(inside) else (0, 0, math.nan)
    few, found = _few(inside), list[Claim]()
    beyond = _few(results).only(lambda cell: cell.features < 2 * math.sqrt(cell.samples))
    found += _over_variances(p, few, "Lemma 13, v", _asked_by_lemma_13)
    found += _over_variances(p, beyond, "Lemma 2, v", _asked_by_lemma_2)
    if not len(beyond):
        found.append(
            Claim.not_run(
                source="Lemma 2, v",
                statement=f"σ_min(Z) falls no faster than v^p where C(k + 1, 2) > n but k < 2√n, p = {p}",
                reason="size",
                why="All cells have k ≥ 2√n, as Lemma 13 asks.",
                profile="smoke",
            )
        )
    most = max(_sizes(few, "samples"), default=0)
    chosen = few.where(start="zero", variance=NOISE)
    if len(chosen) >= 3:
        slope = slope_interval(_sizes(chosen, "samples"), 1 / _table(chosen, "smallest"), level=0.99)
        found.append(
            Claim.no_slower(
                slope, 2 * p + 0.5, source="Lemma 13, n",
                statement=f"1/σ_min(Z) = O(n^(2p+½)) for a fixed k, p = {p}, x_j = 0",
                measured=f"log-log slope in n from 1 to {most:.0f}, 99 % interval, "
                f"k = {chosen.pairs[0][0].features}, v = 1/2",
                note=f"Eq. (4) itself, its constant as one, is {1 / worst:.1g} of what is measured at most: its "
                "exponents are judged, and not its size.",
                hypotheses=_asked_by_lemma_13(chosen),
            )
        )  # fmt: skip
    for cell, data in results:
        if cell.seeds >= MANY:
            told = f"the σ_min(Z) that is missed with probability δ falls no faster than δ^{4 * p}, p = {p}"
            sizes = f"d = {cell.dim}, k = n = {cell.features}"
            found.append(_missed(cell, data, 4 * p, sizes, source="Lemma 13, δ", statement=told))
    return found


def _over_variances(
    p: int, few: Results, source: str, asked: Callable[[Results], tuple[Hypothesis, ...]]
) -> list[Claim]:
    """How σ_min(Z) falls with the variance of the noise, at the largest number of samples."""
    found, most = list[Claim](), max(_sizes(few, "samples"), default=0)
    for start in few.values("start"):
        chosen = Results("", tuple(one for one in few.where(start=start, samples=most) if one[0].variance != NOISE))
        if len(chosen) < 3:
            continue
        slope = slope_interval(_sizes(chosen, "variance"), _table(chosen, "smallest"), level=0.99)
        cell = chosen.pairs[0][0]
        words: dict[str, Any] = {
            "source": source,
            "measured": f"log-log slope in v over {len(chosen)} values up to {chosen.pairs[-1][0].variance:g}, "
            f"99 % interval, n = {cell.samples}, d = {cell.dim}, k = {cell.features}, {cell.seeds} seeds",
            "hypotheses": asked(chosen),
        }
        told = f"σ_min(Z) falls no faster than v^{p} as the noise vanishes, p = {p}, {FROM[start]}"
        if start == "zero":  # Z is v^p times that of v = 1
            words |= {"statement": f"{told}: that exponent is attained", "identity": True}
            found.append(Claim.includes(_widened(slope), p, **words))
        else:
            found.append(Claim.no_slower(slope, p, statement=told, **words))
    return found


def _asked_by_lemma_13(results: Results) -> tuple[Hypothesis, ...]:
    """2√n ≤ k ≤ D_d^{2p}/(D_d^p C(2p, p)), at the largest n."""
    cell = max((cell for cell, _ in results), key=lambda cell: cell.samples)
    allowed = admissible_features(cell.dim, cell.power)
    return (
        Hypothesis("number of features k", cell.features, "≥", 2 * math.sqrt(cell.samples), "Lemma 13"),
        Hypothesis("number of features k", cell.features, "≤", allowed, "Lemma 13"),
    )


def _asked_by_lemma_2(results: Results) -> tuple[Hypothesis, ...]:
    """C(k + 1, 2) > n and k ≤ O_p(d^p), at the largest n."""
    cell = max((cell for cell, _ in results), key=lambda cell: cell.samples)
    return (
        Hypothesis("C(k + 1, 2)", math.comb(cell.features + 1, 2), ">", cell.samples, "Lemma 2"),
        Hypothesis("number of features k", cell.features, "≤", cell.dim**cell.power, "Lemma 2", given=False),
    )


def _missed(cell: Any, data: Any, exponent: float | int, sizes: str, **words: str) -> Claim:
    """How the value that is missed with probability δ falls with δ."""
    at = deltas(cell.seeds)
    measured = f"log-log slope in δ from {at[0]:.2g} to {at[-1]:.2g}, 99 % interval, {cell.seeds} draws, {sizes}"
    slope = slope_interval(at, data["quantiles"].values, level=0.99)
    return Claim.no_slower(slope, exponent, measured=measured, **words)


def _outside(cell: Any, data: Any) -> Claim:
    sharper = perturbed_singular_floor(
        cell.samples, cell.dim, cell.features, cell.power, variance=cell.variance, delta=DELTA, placings=False
    )
    allowed = admissible_features(cell.dim, cell.power)
    inside = f"eq. (4) would be {sharper.value:.2g}" if sharper.applies else f"it does not apply: {sharper.why}"
    mnist = " (as in the paper's MNIST experiment, but for the inputs)" if cell.features == 750 else ""
    return Claim.at_least(
        float(data["lower"].min()), 0.0, strict=True, source="Lemma 13, beyond",
        hypotheses=(Hypothesis("number of features k", cell.features, "≤", allowed, "Lemma 13"),),
        statement=f"σ_min(Z) > 0 for d = {cell.dim}, p = {cell.power}, k = {cell.features}{mnist}, where the lemma "
        f"asks for k ≤ {allowed}",
        measured=f"smallest proven lower bound over {cell.seeds} draws, n = {cell.samples} inputs on the sphere, noise "
        f"of variance {cell.variance:g}, R ~ N(0, {cell.scale:g}²)",
        note=f"σ_max(Z) = {float(data['largest'].max()):.3g}. With dim S ≤ (k − 1)D_d^p in the proof "
        f"(k ≤ {most_features(cell.dim, cell.power)}), {inside}.",
    )  # fmt: skip


def _of_lengths(p: int, results: Results) -> list[Claim]:
    """Probabilities that are large enough to be measured, at δ ≤ 0.1; what is rarer stands in the notes."""
    found, told = [], dict[int, str]()
    bounds = [(cell, data, _bound(p, cell)) for cell, data in results]
    for cell, data, bound in bounds:
        if cell.seeds * bound.failure <= 1:
            beyond = max(int(data["entry_beyond"]), int(data["length_beyond"]))
            told[cell.lemma] = (
                f" At d = {cell.dim}, k = {cell.features}, δ = {cell.delta:g}, where the probability is "
                f"{bound.failure:.1g}, it happens in {beyond} of {cell.seeds} draws."
            )
    for cell, data, bound in bounds:
        if cell.seeds * bound.failure <= 1:
            continue
        source, rare = f"Lemma {cell.lemma}", told.get(cell.lemma, "")
        stated = "some coordinate exceeds 2√L, without which no ‖z_j‖ is beyond the bound, with probability at most "
        stated = f"{stated}{bound.failure:.2g}, p = {p}, δ = {cell.delta:g}"
        if cell.delta > DELTA:
            why = f"Probabilities are judged at δ ≤ {DELTA:g}.{rare}"
            found.append(Claim.not_run(source=source, statement=stated, reason="size", why=why, profile="paper"))
            continue
        beyond = max(int(data["entry_beyond"]), int(data["length_beyond"]))
        claim = Claim.at_most(
            fraction_interval(beyond, cell.seeds),
            bound.failure,
            source=source,
            statement=stated,
            measured=f"fraction of {cell.seeds} draws, 95 % interval, d = {cell.dim}, k = {cell.features}, "
            f"n = {cell.samples}",
            note=f"The longest ‖z_j‖ is {float(data['length_most']):.3g} of its bound, the largest coordinate "
            f"{float(data['entry_most']):.3g} of 2√L.{rare}",
        )
        found.append(told_apart(claim, bound.failure))
    return found


def _bound(p: int, cell: Any) -> NormBound:
    if cell.lemma == 14:
        return perturbed_feature_norm_bound(
            cell.samples, cell.dim, cell.features, p, radius=1.0, variance=NOISE, delta=cell.delta
        )
    return feature_norm_bound(cell.dim, cell.features, p, radius=1.0, delta=cell.delta)


def _of_spans(p: int, results: Results) -> list[Claim]:
    below, draws, worst = _missing(results)
    well = [(cell, data) for cell, data in results if cell.ratio == p + 2]
    found = [
        Claim.at_least(
            float(_all(results, "product").min()), 1 - 1e-6, source="Lemma 19, proof",
            statement=f"σ_min(Z) ≥ σ_min(Q)² σ_min(X), p = {p}",
            measured=f"smallest ratio of the two sides, {draws} draws", identity=True,
        ),
    ]  # fmt: skip
    if p == 1:
        found.append(
            Claim.at_least(
                float(_all(results, "least").min()), math.inf, misprint=True, source="Lemma 18, as printed",
                statement="the bound's (G₀ p ln p D_d^p)^p is 0 for p = 1, which makes it infinite",
                measured="smallest σ_min(Q)",
                note="ln Z_σ = D ln(1 + 20√p!), of Lemma 7, stands in its place elsewhere.",
            )
        )  # fmt: skip
    if len(well) >= 3:
        counts = np.array([float(cell.features) for cell, _ in well])
        ratios = np.stack([data["inputs"].values / data["squares"].values for _, data in well], axis=1)
        found.append(
            Claim.no_slower(
                slope_interval(counts, ratios, level=0.99),
                1,
                source="Lemma 19, end",
                statement=f"σ_min(Z) ≥ Ω(σ_min(X)/k) for k = Ω(p²D_d^p): σ_min(X)/σ_min(Z) = O(k), p = {p}",
                measured=f"log-log slope in k from {counts[0]:.0f} to {counts[-1]:.0f}, 99 % interval, α = {p + 2}, "
                f"{well[0][0].seeds} seeds",
                note=f"kσ_min(Z)/σ_min(X) is {float((counts / ratios).min()):.3g} or more.",
                hypotheses=[Hypothesis("α", p + 2, ">", 1, "Lemma 18")],
            )
        )
    chosen = _few(results).where(ratio=2)
    if len(chosen) >= 3:
        k = _sizes(chosen, "features")
        found.append(
            Claim.no_slower(
                slope_interval(k, 1 / _table(chosen, "rows"), level=0.99), (p + 1) / 2, source="Lemma 18, k",
                statement=f"1/σ_min(Q) = O(k^((p+1)/2(α−1))), p = {p}, α = 2",
                measured=f"log-log slope in k from {k[0]:.0f} to {k[-1]:.0f}, 99 % interval, "
                f"{chosen.pairs[0][0].seeds} seeds",
                note=f"The bound itself, the Ω's constant as one and δ = {DELTA:g}, is missed in {below} of {draws} "
                f"draws; the smallest ratio of the two sides is {worst:.3g}.",
                hypotheses=[Hypothesis("α", 2, ">", 1, "Lemma 18")],
            )
        )  # fmt: skip
    for cell, data in results:
        if cell.seeds >= MANY:
            exponent = 1 / ((cell.ratio - 1) * symmetric_dimension(cell.dim, p))
            told = f"the σ_min(Q) missed with probability δ falls no faster than δ^(1/(α−1)D), p = {p}"
            sizes = f"d = {cell.dim}, α = {cell.ratio}"
            found.append(_missed(cell, data, exponent, sizes, source="Lemma 18, δ", statement=told))
    return found
