"""Allen-Zhu & Li, the lemmas behind Theorem 1, in their smoke profiles; and that wrong numbers would be found out."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import faults
from offtangent.lab import Claim, Results
from offtangent.lab.claims import HELD
from offtangent.lab.statistics import Interval
from offtangent.papers.allen_zhu_li import coupling, coupling_slopes, existence
from offtangent.papers.allen_zhu_li._parity import corners, errors
from offtangent.theory.allen_zhu_li.worst_signs import operator_limit


def smoke_of(module):
    cells = module.cells(module.PROFILES["smoke"])
    return Results("smoke", tuple((cell, module.run(cell)) for cell in cells))


@pytest.fixture(scope="module")
def coupled():
    return smoke_of(coupling)


@pytest.fixture(scope="module")
def existing():
    return smoke_of(existence)


def verdicts(module, results):
    return {str(claim.verdict) for claim in module.claims(results)}


def test_of_the_coupling_lemma_only_f_as_printed_is_refuted(coupled):
    claims = coupling.claims(coupled)
    found = {str(claim.verdict): claim.source for claim in claims if claim.verdict not in HELD}
    assert found == {
        "refuted as printed": "Lemma D.1(f), as printed",
        "not testable at this size": "Lemma D.1(e), edge",
    }


def test_d1_f_as_printed_is_refuted_by_the_closed_form_and_not_by_a_slope(coupled):
    """With ln² m for Õ a slope over widths like these would pass; m^(1/4) beats every power of ln m in the end."""
    flat = tuple(
        (cell, data.assign(f=data["f"] * (cell.width / 512) ** -0.5) if "f" in data else data) for cell, data in coupled
    )
    (claim,) = [one for one in coupling.claims(Results("smoke", flat)) if one.source.endswith("as printed")]
    assert (claim.verdict, claim.value) == ("refuted as printed", -0.25)
    for m in (1e10, 1e40):  # σ_v = 1 and τ_v = m^(−3/8)
        tau = m ** (-3 / 8)
        beyond = operator_limit(tau, 1 / m**0.5, int(m)) / (tau ** (4 / 3) * math.log(m) ** 2)
        assert beyond == pytest.approx(0.639 * m**0.25 / math.log(m) ** 2, rel=1e-3)
    assert beyond > 1e5


@pytest.mark.parametrize("factor", [0.8, 1.3])
def test_a_worst_v_that_does_not_attain_the_closed_form_would_be_found_out(coupled, factor):
    found = wrong(coupling, coupled, coupling.Second, f=lambda _, x: factor * x)
    assert found == {"Lemma D.1(f), corrected"}


def test_cells_outside_lemma_d1_s_range_are_not_judged(coupled):
    pairs = tuple(
        (replace(cell, ratio=2 * cell.ratio) if isinstance(cell, coupling.Second) else cell, data)
        for cell, data in coupled
    )
    of_d = [one for one in coupling.claims(Results("smoke", pairs)) if "D.1(d)" in one.source]
    assert of_d
    assert {str(one.verdict) for one in of_d} == {"outside the hypothesis"}


def test_every_part_of_the_coupling_lemma_has_slopes_in_the_width_and_in_a_radius(coupled):
    sources = {claim.source.replace(", corrected", "") for claim in coupling.claims(coupled)}
    for letter in "abcdefg":
        radius = "τ_w" if letter in "abc" else "τ_v/σ_v"
        assert sources >= {f"Lemma D.1({letter}){end}" for end in ("", ", m", f", {radius}")}


def test_a_slope_whose_interval_reaches_another_power_tells_nothing():
    def told(low, high, profile="smoke"):
        slope = Interval((low + high) / 2, low, high)
        claim = Claim.no_slower(slope, 0.0, source="", statement="", measured="")
        return coupling_slopes.told_apart(claim, 0.125, profile)

    assert told(-0.3, 0.1).verdict == "holds"
    assert told(0.01, 0.3).verdict == "fails"
    assert told(-0.3, 0.14).verdict == "not testable at this size"
    assert told(-0.3, 0.14).note.endswith("Tested in profile laptop.")


def test_lemma_c3_is_judged_at_the_smallest_b_whose_bound_says_something(existing):
    told = [claim.measured for claim in existence.claims(existing) if claim.source == "Lemma C.3"]
    assert len(told) == 3
    assert all("(B = 4, " in one for one in told)  # 4e^(−B²/8) is above 1 at B = 1 and 2


def test_a_frequency_above_lemma_c3_s_bound_is_found_at_every_b(existing):
    for B in (4.0, 6.0):
        wrong = tuple(
            (cell, data.assign(count=data["count"].where(data["B"] != B, cell.draws)))
            if isinstance(cell, existence.Tail)
            else (cell, data)
            for cell, data in existing
        )
        judged = [one for one in existence.claims(Results("smoke", wrong)) if one.source == "Lemma C.3"]
        assert {str(one.verdict) for one in judged} == {"fails"}


def test_of_the_constructions_only_the_known_misprints_are_refuted(existing):
    claims = existence.claims(existing)
    assert {claim.source for claim in claims if claim.verdict == "refuted as printed"} == {
        "Fact B.3, as printed",
        "Claim F.3, as printed",
    }
    told = {claim.source: str(claim.verdict) for claim in claims if claim.verdict not in HELD}
    assert {source: told[source] for source in told if "printed" not in source} == {
        "Lemma D.3(a)": "outside the hypothesis",
        "Lemma D.3(b)": "not testable at this size",
        "Lemma D.3(c)": "outside the hypothesis",
    }
    sources = " ".join(claim.source for claim in claims)
    for part in (
        "Fact B.3",
        "Lemma C.3",
        "Lemma F.2(a)",
        "Lemma F.1",
        "D.2(a)",
        "D.2(b)",
        "D.3(a)",
        "D.3(b)",
        "D.3(c)",
        "A.1",
    ):
        assert part in sources


@pytest.mark.parametrize(("module", "name", "figures"), [(coupling, "coupled", 4), (existence, "existing", 3)])
def test_there_are_figures_and_missing_cells_leave_the_others_standing(module, name, figures, request):
    results = request.getfixturevalue(name)
    assert len(module.draw(results)) == figures
    assert module.claims(Results("smoke", ())) == []
    assert module.draw(Results("smoke", ())) == []
    for kind in {type(cell) for cell, _ in results}:
        less = Results("smoke", tuple(pair for pair in results if type(pair[0]) is not kind), complete=False)
        told, all_told = (sum(one.value is not None for one in module.claims(part)) for part in (less, results))
        assert told < all_told
        assert len(module.draw(less)) <= figures
    assert all(module.cost(cell).flops > 0 and module.cost(cell).bytes > 0 for cell, _ in results)


def test_a_profile_with_slopes_has_sizes_enough_for_them():
    for profile in ("laptop", "paper"):
        for sizes in (
            coupling.PROFILES[profile].widths,
            coupling.PROFILES[profile].edge,
            existence.PROFILES[profile].widths,
            existence.PROFILES[profile].layers,
        ):
            assert len(sizes) >= 5
            assert sizes[-1] / sizes[0] >= 100
        assert coupling.PROFILES[profile].radii >= 5
        assert coupling.PROFILES[profile].seeds >= 10
        assert existence.PROFILES[profile].seeds >= 10


def test_radii_span_two_decades_at_paper_and_elsewhere_the_claims_say_why_not(coupled):
    cells = coupling.cells(coupling.PROFILES["paper"])
    for kind, field in ((coupling.First, "tau"), (coupling.Second, "ratio")):
        radii = [getattr(cell, field) for cell in cells if isinstance(cell, kind) and cell.path == "radius"]
        assert max(radii) / min(radii) >= 100
    for claim in coupling.claims(coupled):
        assert ("all that the lemma allows" in claim.measured) == claim.source.endswith((", τ_w", ", τ_v/σ_v"))


def test_every_cell_lies_inside_the_hypotheses_of_lemma_d1():
    for profile in coupling.PROFILES.values():
        for cell in coupling.cells(profile):
            if isinstance(cell, coupling.First):
                assert 1 <= cell.tau < cell.width**0.375
            if isinstance(cell, coupling.Second):
                assert (cell.outputs / cell.width) ** 0.375 * (1 - 1e-4) <= cell.ratio <= 1


def wrong(module, results, kind, **changes):
    """The sources of the claims that fail when numbers of one kind of cell are changed."""
    table = {
        name: lambda cell, data, name=name, change=change: change(cell, data[name]) for name, change in changes.items()
    }
    return faults.changed(module, results, kind, **table)


def test_too_many_turned_signs_would_be_found_out(coupled):
    assert wrong(coupling, coupled, coupling.Flips, share=lambda _, x: 5 * x) == {
        "Proposition C.4",
        "Proposition C.4, attained",
    }
    assert wrong(coupling, coupled, coupling.Flips, left=lambda _, x: 1.1 * x) == {"Proposition C.4"}
    assert wrong(coupling, coupled, coupling.First, a=lambda _, x: 5 * x) == {"Lemma D.1(a)"}
    assert wrong(coupling, coupled, coupling.Second, d=lambda _, x: 5 * x) == {"Lemma D.1(d)"}
    assert "Lemma D.1(a), m" in wrong(coupling, coupled, coupling.First, a=lambda cell, x: x * cell.width**0.1)
    found = wrong(coupling, coupled, coupling.Second, d=lambda cell, x: x * cell.width**0.1)
    assert {"Lemma D.1(d), m", "Lemma D.1(d), edge"} <= found


def test_norms_that_are_too_large_or_grow_would_be_found_out(coupled):
    assert wrong(coupling, coupled, coupling.First, b=lambda _, x: 5 * x) == {"Lemma D.1(b)"}
    assert "Lemma D.1(b), m" in wrong(coupling, coupled, coupling.First, b=lambda cell, x: x * cell.width**0.5)
    assert "Lemma D.1(c), τ_w" in wrong(coupling, coupled, coupling.First, c=lambda cell, x: x * cell.tau)
    assert wrong(coupling, coupled, coupling.Second, e=lambda _, x: 5 * x) == {"Lemma D.1(e)"}
    assert "Lemma D.1(f), corrected, edge" in wrong(
        coupling, coupled, coupling.Second, f=lambda cell, x: x * cell.width**0.3
    )
    assert wrong(coupling, coupled, coupling.Second, g=lambda _, x: 10 * x) == {"Lemma D.1(g)"}
    found = wrong(coupling, coupled, coupling.Second, g=lambda cell, x: x * cell.width**0.3)
    assert {"Lemma D.1(g), m", "Lemma D.1(g), edge"} <= found
    found = wrong(coupling, coupled, coupling.Second, f=lambda cell, x: x * cell.ratio)
    assert "Lemma D.1(f), corrected, τ_v/σ_v" in found


def test_the_second_layer_is_measured_in_the_units_of_lemma_d1():
    """(d) over (τ_v/σ_v)^(2/3), a share of m; (f) over 0.639 τ_v^(2/3)σ_v^(1/3), with σ_v = 4 and τ_v = 0.8."""
    cell = coupling.Second("edge", 1000, 0.2, 4, 10, 3)
    planted = {name: ("seed", np.full(3, 0.6)) for name in ("d", "e", "f", "g", "random_f")}
    found = {one.source: one.value for one in coupling.claims(Results("smoke", ((cell, xr.Dataset(planted)),)))}
    assert found["Lemma D.1(d)"] == pytest.approx(0.6 / 0.2 ** (2 / 3))
    assert found["Lemma D.1(f), corrected"] == pytest.approx(0.6 / (0.639 * 0.8 ** (2 / 3) * 4 ** (1 / 3)), rel=1e-3)


def test_functions_and_weights_that_miss_would_be_found_out(existing):
    def found(kind, **changes):
        return wrong(existence, existing, kind, **changes)

    assert found(existence.Indicator, error=lambda _, x: x + 0.01) == {"Lemma F.2(a)"}
    assert found(existence.Indicator, energy=lambda _, x: 2 * x) == {"Lemma F.2"}
    assert found(existence.Weights, error=lambda cell, x: x * cell.width**0.4) == {"Lemma F.1"}
    assert found(existence.Weights, norm=lambda cell, x: x * cell.width**0.2) >= {"Lemma F.1, ‖W⋆‖_F"}
    assert found(existence.Weights, longest=lambda cell, x: x * cell.width**0.5) == {"Lemma F.1, ‖W⋆‖_2,∞"}
    assert found(existence.Layers, first=lambda cell, x: x * cell.width) == {"Lemma D.2(a)"}
    assert found(existence.Layers, second_moved=lambda _, x: 100 * x) == {"Lemma D.3(b)"}


def test_weights_that_are_zero_would_be_found_out(monkeypatch):
    """Every bound on their size or on what turned signs change holds for W⋆ = V⋆ = 0: the miss must tell."""
    monkeypatch.setattr(
        existence, "existence_hidden", lambda net, *_, **__: (np.zeros(net.W0.shape), np.zeros(net.V0.shape))
    )
    cells = [cell for cell in existence.cells(existence.PROFILES["smoke"]) if isinstance(cell, existence.Layers)]
    nothing = Results("smoke", tuple((cell, existence.run(cell)) for cell in cells))
    assert float(nothing.pairs[0][1]["norm_w"].max()) == 0
    assert faults.failing(existence, nothing) == {"Lemma D.2(a)", "Lemma D.2(b)"}
    told = {one.source: one for one in existence.claims(nothing) if one.source.startswith("Lemma D.3")}
    assert not any(one.verdict in HELD for one in told.values())
    assert not told["Lemma D.3(a)"].met
    assert "V⋆ = 0 would pass" in told["Lemma D.3(b)"].note
    assert "W⋆ = 0 would do as well" in told["Lemma D.3(c)"].note


def test_lemma_d3_says_with_which_width_it_would_hold(existing):
    """(a) as stated: τ_w(τ_w/σ_w)^(1/3)m^(−1/6) = τ_w^(4/3)m^(−1/8) ≤ α̃²."""
    _, data = existing.where(existence.Layers).pairs[-1]
    (claim,) = [one for one in existence.claims(existing) if one.source == "Lemma D.3(a)"]
    (width,) = claim.hypotheses
    tau = float(data["tau_w"][0])
    tilde = float(data["alpha"][0]) / (2 * (0.2 + 2 * 0.2 + 2 * 0.5))  # α/(k(𝔠_s(F) + 𝔠_s(G))), C* = 1
    assert tau ** (4 / 3) * width.limit ** (-1 / 8) == pytest.approx(tilde**2)
    assert claim.value == pytest.approx(float(data["first_moved"].mean()) / tilde**2)


@pytest.mark.parametrize("law", ["product", "square", "signed"])
def test_tails_are_counted_beyond_lemma_c3_s_distance(law):
    """|Σ| ≥ B(√m + B), sum by sum, with the draws of the cell."""
    found = existence.run(existence.Tail(16, law, 300))
    a, b = np.random.default_rng([16, len(law)]).standard_normal((2, 300, 16))
    terms = {"product": a * b, "square": a**2 - 1, "signed": np.where(b > 0, a**2, -(a**2))}[law]
    sums = [abs(sum(row)) for row in terms.tolist()]
    for B, count in zip((1, 2, 4, 6), found["count"].values, strict=True):
        assert count == len([one for one in sums if one >= B * (4 + B)])
    assert found["count"].values[0] > 0


def test_signs_make_lemma_c3_s_sum_vary_more_than_ones():
    """Var a² = 2 and Var ±a² = E a⁴ = 3, so that h = 1 is not the largest: by counts beyond the same distance."""
    beyond = {law: int(existence.run(existence.Tail(256, law, 4000))["count"][1]) for law in ("square", "signed")}
    assert beyond["signed"] > 1.5 * beyond["square"]


def test_example_4_1_s_sizes_are_those_of_the_definition():
    """By a loop over the orders of sin: z^i/i! for odd i, C* = 1."""
    found = existence.run(existence.Sizes("sin", (1e-2, 1e-6)))["size"].values
    for epsilon, size in zip((1e-2, 1e-6), found, strict=True):
        log = math.log(1 / epsilon)
        assert size == pytest.approx(sum((1 + (log / i) ** (i / 2)) / math.factorial(i) for i in range(1, 41, 2)))


def test_gaussian_lengths_are_as_often_beyond_proposition_c1_as_counted():
    found = existence.run(existence.Lengths(3, (1.0, 2.0)))["tail"].values
    lengths = (np.random.default_rng(0).standard_normal((400_000, 3)) ** 2).sum(axis=1)
    for t, share in zip((1.0, 2.0), found, strict=True):
        counted = (lengths >= 3 + 2 * math.sqrt(3 * t) + 2 * t).mean()
        assert abs(counted - share) < 5 * math.sqrt(share / 400_000)


def test_the_longest_sparse_vector_is_that_of_every_choice_of_columns():
    found = float(existence.run(existence.Matrices(3, 5, 2, 50, 1))["longest"][0])
    M = np.random.default_rng([0, 3, 5, 2]).standard_normal((50, 3, 5))
    longest = [max(np.linalg.norm(one[:, [i, j]], 2) for i in range(5) for j in range(i)) for one in M]
    assert found**2 == pytest.approx(np.quantile(np.square(longest), 0.9), rel=1e-9)


def test_steep_maps_heavy_tails_and_short_parities_would_be_found_out(existing):
    def found(kind, **changes):
        return wrong(existence, existing, kind, **changes)

    assert found(existence.Maps, slope=lambda _, x: 10 * x) == {"Fact B.3"}
    assert found(existence.Maps, bound=lambda _, x: 10 * x) == {"Fact B.3, corrected"}
    assert found(existence.Tail, count=lambda cell, x: x + cell.draws - x.max()) == {"Lemma C.3"}
    assert found(existence.General, difference=lambda _, x: x + 1e-6) == {"Lemma B.2"}
    assert found(existence.General, smooth=lambda _, x: 2 * x) == {"Lemma B.2"}
    assert found(existence.Sizes, size=lambda _, x: x / x["epsilon"]) == {"Example 4.1"}
    assert found(existence.Lengths, tail=lambda _, x: 5 * x) == {"Proposition C.1"}
    assert found(existence.Matrices, longest=lambda _, x: 1.3 * x) == {"Proposition C.2"}
    assert found(existence.Parity, norm=lambda _, x: 0.8 * x) == {"Appendix A.1, sharpened"}


def test_weight_decay_trades_the_norm_of_a_trained_parity_for_its_error(existing):
    data = existing.where(existence.Parity).pairs[0][1]
    assert (np.diff(data["error"].values, axis=1) > 0).all()
    assert (np.diff(data["norm"].values, axis=1) < 0).all()
    assert float(data["error"].max()) < 0.2


def test_the_error_of_a_parity_network_is_its_mean_square_over_all_corners():
    X, y = corners()
    W = np.random.default_rng(0).standard_normal((3, 6, 8))
    outputs = [[np.maximum(x @ w, 0) @ np.repeat([1, -1], 4) / np.sqrt(8) for x in X] for w in W]
    found = errors(*(jnp.asarray(part, jnp.float32) for part in (W, X, y)))
    np.testing.assert_allclose(found, np.mean((np.array(outputs) - y) ** 2, axis=1), rtol=1e-5)
