"""What the constructions of Lemmas 1 and 2 and of Theorem 2 say: their claims and figures."""

from typing import Any

import numpy as np
from jaxtyping import Float

from offtangent.lab import Claim, Results, mean_interval, slope_interval
from offtangent.report import Figure, line, new_plot, points, style

DELTA = 0.1  # with which probability bounds may fail
EPSILON = 0.1  # ε_min
ROUNDING = 1e-9
LEVEL = 0.99
SIGMAS = {"sigmoid": "sigmoid(z − 1)", "softplus": "softplus"}
COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")


def claims(sparse: Results, dense: Results, joint: Results) -> list[Claim]:
    found: list[Claim] = []
    for sigma, degree in kinds(sparse):
        found += _of_sparse(sigma, degree, sparse.where(sigma=sigma, degree=degree))
    if len(sparse):
        found += _of_signs(sparse)
    for sigma, degree in kinds(dense):
        found += _of_dense(sigma, degree, dense.where(sigma=sigma, degree=degree))
    for sigma, degree in kinds(joint):
        found += _of_joint(sigma, degree, joint.where(sigma=sigma, degree=degree))
    return found


def kinds(results: Results) -> list[tuple[str, int]]:
    """The pairs of activation and degree there are."""
    return list(dict.fromkeys((cell.sigma, cell.degree) for cell, _ in results))


def table(results: Results, name: str) -> Float[np.ndarray, "s k"]:
    """A quantity of every seed and cell."""
    return np.stack([data[name].values for _, data in results], axis=1)


def sizes(results: Results, name: str = "width") -> Float[np.ndarray, " k"]:
    """A field of every cell."""
    return np.array([float(getattr(cell, name)) for cell, _ in results])


def swept(results: Results, field: str, *fixed: str) -> Results:
    """Of cells that differ in `field` and of those that differ in others, the former, in its order."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for pair in results:
        groups.setdefault(tuple(getattr(pair[0], name) for name in fixed), []).append(pair)
    longest = max(groups.values(), key=len, default=[])
    order = sorted(longest, key=lambda pair: getattr(pair[0], field))
    return Results(results.profile, tuple(order), results.complete)


def span(values: Float[np.ndarray, " k"], name: str) -> str:
    return f"{len(values)} {name} from {values[0]:.0f} to {values[-1]:.0f}"


def slope(results: Results, field: str, values: Float[np.ndarray, "s k"], where: str) -> dict[str, Any]:
    """The slope of `values` in a field of the cells, and how it was measured, for `Claim.no_slower`."""
    return {
        "slope": slope_interval(sizes(results, field), values, level=LEVEL),
        "measured": f"log-log slope in {field[0] if field != 'width' else 'm'}, 99 % interval, {where}",
    }


def _of_sparse(sigma: str, degree: int, results: Results) -> list[Claim]:
    wide, long = swept(results, "width", "dim"), swept(results, "dim", "width")
    name, found = f"{SIGMAS[sigma]}, k = {degree}", []
    if len(wide) >= 3:
        cell, widths = wide.pairs[0][0], sizes(wide)
        where = f"{cell.samples} inputs, d = {cell.dim}, R = 2, {cell.seeds} seeds, {span(widths, 'widths')}"
        needed = float(cell.dim) ** (2 * degree)
        note = f"The lemma has m ≥ d^(2k) = {needed:.3g}; the construction needs no such width."
        found += [
            Claim.no_slower(
                **slope(wide, "width", table(wide, "error"), f"root mean square over {where}"), exponent=-0.5,
                source="Lemma 1, eq. (22)",
                statement=f"f_Q at W_Q is Σ α_i(β_iᵀx)^{degree + 1} up to an error of O(m^(−1/2)); {name}", note=note,
            ),
            Claim.includes(
                mean_interval(table(wide, "ratio").mean(axis=1), level=LEVEL), 1.0, source="Lemma 1",
                statement=f"the error's mean square is Σ_i h_i⁻¹(β_iᵀx)⁴ Var[σ''(w₀ᵀx)a_i(w₀)], by harmonics; {name}",
                measured=f"measured over stated at each input, 99 % interval, {where}",
            ),
            Claim.at_most(
                float((table(wide, "worst") > 1).mean()), DELTA, source="Lemma 1, eq. (22)",
                statement=f"max_i |f_Q(x_i) − f_sp(x_i)| ≤ √(Σ_i E(…)²/δ) with probability 1 − δ, δ = 0.1; {name}",
                measured=f"fraction of networks beyond it, {where}",
                note=f"Largest ratio of the two sides: {table(wide, 'worst').max():.2f}.",
            ),
            Claim.includes(
                _padded(mean_interval(table(wide, "norm_mean").mean(axis=1), level=LEVEL)), 1.0, source="Lemma 1",
                statement=f"E‖W_Q‖⁴_(2,4) = 4 Σ_i (m/h_i) α_i² d^(k−1) Σ_j γ_j²/(λ_j(σ'')² B(d, j)); {name}",
                measured=f"measured over stated, 99 % interval, {where}",
                note=f"‖W_Q‖⁴ = {table(wide, 'norm4').mean(axis=0)[-1]:.4g} at the largest width.",
            ),
        ]  # fmt: skip
    if len(long) >= 3:
        cell, dims = long.pairs[0][0], sizes(long, "dim")
        where = f"{cell.samples} inputs, m = {cell.width}, R = 2, {cell.seeds} seeds, {span(dims, 'dimensions')}"
        exponent = slope_interval(dims, table(long, "norm4"), level=LEVEL)
        constants = table(long, "constant")[0]
        found += [
            Claim.no_slower(
                **slope(long, "dim", table(long, "largest"), f"max_i |f_Q(x_i) − f_sp(x_i)|, {where}"),
                exponent=degree, source="Lemma 1, eq. (22)",
                statement=f"√m max_i |f_Q(x_i) − f_sp(x_i)| = O(d^k); {name}",
            ),
            Claim.at_most(
                float((table(long, "norm4") > table(long, "norm_bound")).mean()), DELTA, source="Lemma 1, eq. (22)",
                statement="‖W_Q‖⁴_(2,4) ≤ 8R² d^(k−1)/(cδ) with probability 1 − δ, c the smallest λ_j(σ'')² B(d, j) "
                f"in use, of which Assumption 3 says Θ(1); {name}",
                measured=f"fraction of networks beyond it, δ = 0.1, {where}",
                note=f"Log-log slope of ‖W_Q‖⁴ in d: {exponent.value:.3f} [{exponent.low:.3f}, {exponent.high:.3f}]; "
                f"that of d^(k−1) is {degree - 1}; c goes from {constants[0]:.3g} to {constants[-1]:.3g}, to a limit.",
            ),
        ]  # fmt: skip
    return found


def _padded(interval: Any) -> Any:
    """For k = 1, a(w) is a constant, and the norm is the same for all W₀ but for rounding."""
    return type(interval)(interval.value, interval.low - ROUNDING, interval.high + ROUNDING)


def _of_signs(results: Results) -> list[Claim]:
    found = []
    cells = [cell for cell, _ in results]
    where = f"{len(cells)} choices of σ, k, d and m, {cells[0].samples} inputs, {cells[0].seeds} seeds"
    for name, statement in (
        ("signed_ratio", "E_S E_μ f_L(x; W_Q S)² = m⁻¹ Σ_r (A‖w_r‖² + (B − A)(w_(0,r)ᵀw_r)²), by harmonics"),
        ("random_ratio", "a random direction u has E_μ f_L(x; u)² = ‖u‖² E[σ'²]/m"),
    ):
        found.append(
            Claim.includes(
                mean_interval(table(results, name).mean(axis=1), level=LEVEL), 1.0, source="Section 4.1",
                statement=statement, measured=f"measured over stated, 99 % interval, {where}",
            )
        )  # fmt: skip
    largest = max(float(data["flip"].max()) for _, data in results)
    found.append(
        Claim.at_most(
            largest, ROUNDING, source="Section 4.1", statement="f_Q(x; WS) = f_Q(x; W) for column signs S (printed SW)",
            measured=f"largest change, over the largest |f_Q|, {where}",
        )
    )  # fmt: skip
    for sigma, degree in kinds(results):
        wide = swept(results.where(sigma=sigma, degree=degree), "width", "dim")
        if len(wide) >= 3:
            cell = wide.pairs[0][0]
            over = f"d = {cell.dim}, {cell.seeds} seeds, {span(sizes(wide), 'widths')}"
            found.append(
                Claim.no_slower(
                    **slope(wide, "width", table(wide, "signed"), over), exponent=-0.5, source="Section 4.1",
                    statement=f"E_S E_μ f_L(x; W_Q S)² = O(m^(−1/2)); {SIGMAS[sigma]}, k = {degree}",
                )
            )  # fmt: skip
    return found


def _of_dense(sigma: str, degree: int, results: Results) -> list[Claim]:
    name, found = f"{SIGMAS[sigma]}, k = {degree}", []
    grown, long = results.where(unlabelled=0), [pair for pair in results if pair[0].unlabelled]
    if len(grown) >= 3:
        cell, n, m = grown.pairs[0][0], sizes(grown, "samples"), sizes(grown)
        where = f"d = {cell.dim}, {cell.seeds} seeds, {span(n, 'n')}, m from {m[0]:.0f} to {m[-1]:.0f}, Σ by harmonics"
        grown_like = float(np.log(m[-1] / m[0]) / np.log(n[-1] / n[0]))
        found += [
            Claim.no_slower(
                **slope(grown, "samples", table(grown, "error"), where) | {"measured": f"log-log slope in n, {where}"},
                exponent=-1, source="Lemma 2, eq. (23)",
                statement=f"E_n(f_L(x; W_L) − f_k(x))² falls at least like 1/n if the width grows with n; {name}",
                note=f"At a fixed width the error has a floor of O(1/m); here m grows like n^{grown_like:.2f}.",
            ),
            Claim.at_most(
                float(table(grown, "ratio").mean(axis=0).max()), 1.0, source="Lemma 2, eq. (23)",
                statement=f"E_n(f_L(x; W_L) − f_k(x))² ≤ d^k/n, the constant of ≲ as one; {name}",
                measured=f"largest ratio of the two sides over n, mean over seeds, {where}",
                inside=bool(m.min() >= float(cell.dim) ** (10 * degree)),
                note=f"The lemma has m ≥ d^(10k) = {float(cell.dim) ** (10 * degree):.1g}. Ratios: "
                f"{', '.join(f'{one:.2g}' for one in table(grown, 'ratio').mean(axis=0))}.",
            ),
        ]  # fmt: skip
    if len(long) >= 3:
        tall = Results(results.profile, tuple(long))
        cell, dims = long[0][0], sizes(tall, "dim")
        where = f"m = {cell.width}, n = 4n_k, Σ from 6n_k inputs, {cell.seeds} seeds, {span(dims, 'dimensions')}"
        exponent = slope_interval(dims, table(tall, "norm2"), level=LEVEL)
        said = f"Log-log slope of ‖W_L‖_F² in d: {exponent.value:.3f} [{exponent.low:.3f}, {exponent.high:.3f}]."
        bound: dict[str, Any] = {
            "source": "Lemma 2, eq. (23)",
            "statement": f"‖W_L‖_F² = O(1/min_(j≤k) ξ_j), and Assumption 3 says 1/min ξ_j = Θ(d^(k−1)); {name}",
        }
        if dims[-1] >= 100 * dims[0] or results.profile == "smoke":
            scaled = slope(tall, "dim", table(tall, "scaled"), where)
            found.append(Claim.no_slower(**scaled, exponent=0, note=said, **bound))
        elif degree == 1:  # for k = 2, n_k grows like d², and two decades of d are out of reach
            why = f"{span(dims, 'dimensions')} are less than two decades. {said}"
            found.append(Claim.not_testable(profile="paper", why=why, **bound))
        found += [
            Claim.at_most(
                float(table(tall, "scaled").mean(axis=0).max()), 1.0, source="Lemma 2, eq. (23)",
                statement=f"‖W_L‖_F² ≤ 1/min_(j≤k) ξ_j, what an infinite width gives for E f_k² = 1; {name}",
                measured=f"largest ratio of the two sides over d, mean over seeds, {where}",
                inside=bool(cell.width >= float(dims.min()) ** (10 * degree)),
                note=f"{said} The lemma has m ≥ d^(10k). ‖W_L‖_F² from {table(tall, 'norm2').mean(axis=0)[0]:.4g} to "
                f"{table(tall, 'norm2').mean(axis=0)[-1]:.4g}.",
            ),
        ]  # fmt: skip
    return found


def _of_joint(sigma: str, degree: int, results: Results) -> list[Claim]:
    if len(results) < 3:
        return []
    cell, widths, name = results.pairs[0][0], sizes(results), f"{SIGMAS[sigma]}, k = {degree}"
    where = (
        f"d = {cell.dim}, n = {cell.samples}, Σ from {cell.unlabelled} inputs, {cell.seeds} seeds, "
        f"{span(widths, 'widths')}"
    )
    asked = float(results.pairs[0][1]["asked"].max())
    rates = (("r1", "R₁", -0.5), ("r2", "R₂", 0.0), ("r3", "R₃", -0.5), ("r4", "R₄", 0.0))
    found = [
        Claim.no_slower(
            **slope(results, "width", table(results, key), where), exponent=power, source="Theorem 2, eq. (30)",
            statement=f"{label}(W⋆) = O({'m^(−1/2)' if power else '1'}) in m; {name}",
            note=f"{label} at the widths: {', '.join(f'{one:.3g}' for one in table(results, key).mean(axis=0))}.",
        )
        for key, label, power in rates
    ]  # fmt: skip
    loss = table(results, "loss")
    return [
        *found,
        Claim.no_slower(
            **slope(results, "width", loss, where), exponent=-0.25, source="Theorem 2, eq. (29)",
            statement=f"L̂^Q(W⋆) = O(m^(−1/4)), where n ≥ d^k ε⁻² allows it; {name}",
            note=f"L̂^Q at the widths: {', '.join(f'{one:.3g}' for one in loss.mean(axis=0))}.",
        ),
        Claim.at_most(
            float((loss / table(results, "promised")).max()), 1.0, source="Theorem 2, eq. (29)",
            statement=f"L̂^Q(W⋆) ≤ ε_min = max(m^(−1/4) d^(3(k−1)/4), (d^k/n)^(1/2)), constants as one; {name}",
            measured=f"largest ratio of the two sides, {where}", inside=bool(widths.min() >= asked),
            note=f"The theorem has m ≥ d^(10k) = {asked:.1g}.",
        ),
        Claim.includes(
            mean_interval(table(results, "drawn").mean(axis=1), level=LEVEL), 1.0, source="Theorem 2",
            statement=f"E_μ f_L(W_Q S)² + E_n f_L(W_Q S)² in the mean over signs S is a sum over neurons; {name}",
            measured=f"mean over 16 draws, over that sum, 99 % interval, {where}",
        ),
        Claim.at_most(
            float(table(results, "best").max()), 1.0, source="Theorem 2",
            statement=f"some S does at least as well as the mean over S: the best of 16 draws does; {name}",
            measured=f"its E_μ f_L² + E_n f_L² over the mean's, the largest over networks, {where}",
        ),
    ]  # fmt: skip


def figures(sparse: Results, dense: Results, joint: Results) -> list[Figure]:
    drawn = []
    if len(sparse) > 1:
        drawn += [_errors(sparse)]
    if len(dense) > 1:
        drawn += [_fits(dense)]
    if len(joint) > 1:
        drawn += [_regularisers(joint)]
    return drawn


def _series(plot: Any, results: Results, field: str, key: str, **how: Any) -> None:
    values = table(results, key)
    points(plot, sizes(results, field), values.mean(axis=0), band=(values.min(axis=0), values.max(axis=0)), **how)


def _errors(results: Results) -> Figure:
    plot, cell = new_plot(), results.pairs[0][0]
    for (sigma, degree), colour in zip(kinds(results), COLOURS, strict=False):
        wide = swept(results.where(sigma=sigma, degree=degree), "width", "dim")
        name = f"{SIGMAS[sigma]}, k = {degree}"
        _series(plot, wide, "width", "error", name=name, colour=colour)
        stated = np.sqrt(table(wide, "expected").mean(axis=0))
        line(plot, sizes(wide), stated, name=f"{name}, stated", colour=colour, dash="dot")
        cell = wide.pairs[0][0]
    style(plot, x="width m", y="|f_Q at W_Q − f_sp|, root mean square", log_x=True, log_y=True)
    caption = (
        f"Two terms (β_iᵀx)^(k+1), {cell.samples} inputs, d = {cell.dim}, {cell.seeds} seeds (bars: all of them). "
        "Dotted: the exact mean square over W₀."
    )
    return Figure("Lemma 1: the quadratic part at W_Q tends to the sparse term like m^(−1/2)", caption, plot)


def _fits(results: Results) -> Figure:
    plot, said = new_plot(), []
    for (sigma, degree), colour in zip(kinds(results), COLOURS, strict=False):
        grown = results.where(sigma=sigma, degree=degree, unlabelled=0)
        if len(grown) < 2:
            continue
        cell, n = grown.pairs[0][0], sizes(grown, "samples")
        name = f"{SIGMAS[sigma]}, k = {degree}, d = {cell.dim}"
        _series(plot, grown, "samples", "error", name=name, colour=colour)
        line(plot, n, cell.dim**degree / n, name=f"d^k/n, k = {degree}", colour=colour, dash="dot")
        said.append(f"m from {sizes(grown)[0]:.0f} to {sizes(grown)[-1]:.0f} for {name}")
    style(plot, x="samples n", y="E_n(f_L at W_L − f_k)²", log_x=True, log_y=True)
    caption = f"The width grows with n: {'; '.join(said)}. {results.pairs[0][0].seeds} seeds (bars: all of them)."
    return Figure("Lemma 2: the linear part at W_L fits a dense polynomial, better than d^k/n", caption, plot)


def _regularisers(results: Results) -> Figure:
    (sigma, degree), *_ = kinds(results)
    chosen = results.where(sigma=sigma, degree=degree)
    plot, cell = new_plot(), chosen.pairs[0][0]
    for key, label, colour in (("r1", "R₁", "blue"), ("r2", "R₂", "green"), ("r3", "R₃", "vermillion")):
        _series(plot, chosen, "width", key, name=f"{label}(W⋆)", colour=colour)
        mean = table(chosen, f"mean{key[1]}").mean(axis=0)
        line(plot, sizes(chosen), mean, name=f"{label}, mean over S", colour=colour, dash="dot")
    _series(plot, chosen, "width", "loss", name="L̂^Q(W⋆)", colour="purple")
    style(plot, x="width m", y="R₁, R₂, R₃ and the loss at W⋆", log_x=True, log_y=True)
    caption = (
        f"{SIGMAS[sigma]}, k = {degree}, d = {cell.dim}, n = {cell.samples}, {cell.seeds} seeds (bars: all of them). "
        f"Dotted: exact means over the signs S. R₄ is {table(chosen, 'r4').mean(axis=0)[-1]:.3g} at the largest width."
    )
    return Figure("Theorem 2: W⋆ = W_L + W_Q S is small on R₁ and R₃, like m^(−1/2)", caption, plot)
