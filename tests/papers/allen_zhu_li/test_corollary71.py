"""Corollary 7.1 of Allen-Zhu & Li: a small run on Theorem 2's own samples, and claims about planted errors."""

import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import _methods, corollary71, theorem2
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.training.grids import Search

TINY = corollary71.Learner(dim=8, samples=60, width=8, epochs=2, seeds=2)


def test_a_small_run_has_the_kernels_errors_of_theorem_2(monkeypatch):
    monkeypatch.setattr(
        _methods,
        "search",
        lambda evaluate, rates, decays, by: Search(rates[:2], decays[:1], evaluate(rates[:2], decays[:1]), by),
    )
    found = corollary71.run(TINY)
    truth = theorem2.run(theorem2.Regression("arcsine", 8, 4, 0.3, (60,), 2))["error"].sum("output").values[:, 0]
    np.testing.assert_allclose(found["kernel"].sel(kernels="arcsine").values, truth, rtol=1e-10)
    assert ((found["resnet"].values > 0) & (found["resnet"].values < 40)).all()


def test_descent_brings_the_error_below_that_of_one_who_knows_nothing(monkeypatch):
    """E‖y‖² = k(1 + α²) is what f = 0 leaves; an untrained network leaves that and its own outputs."""
    monkeypatch.setattr(
        _methods, "search",
        lambda evaluate, rates, decays, by: Search(rates[1:2], decays[:1], evaluate(rates[1:2], decays[:1]), by),
    )  # fmt: skip
    found = corollary71.run(corollary71.Learner(dim=8, samples=200, width=32, epochs=20, seeds=2))
    assert (found["resnet"].values < 0.5 * 4 * (1 + 0.3**2)).all()


def test_the_resnet_sees_the_kernels_samples():
    product = Product(8, 4, 0.3, 1)
    X, Y = corollary71._Drawn(product.function, 60, 1, product).rows("train")
    np.testing.assert_array_equal(X, product.sample(60, "train")[0])
    np.testing.assert_array_equal(Y, product.sample(60, "train")[1])


def learner(samples, *, resnet, kernel, alpha=0.3):
    """Planted errors over α² of three seeds that differ by a hundredth; arcsine is the best kernel."""
    cell = corollary71.Learner(dim=20, samples=samples, width=10, epochs=400, seeds=3, alpha=alpha)
    jitter = alpha**2 * np.array([0.99, 1.0, 1.01])
    errors = np.stack([kernel * jitter * (2 if name != "arcsine" else 1) for name in theorem2.KERNELS])
    data = xr.Dataset(
        dict.fromkeys(("resnet", "best"), ("seed", resnet * jitter)) | {"kernel": (("kernels", "seed"), errors)}
    ).assign(rate=0.1, decay=0.0, inside=True).assign_coords(kernels=list(theorem2.KERNELS))  # fmt: skip
    return cell, data


def promised(resnet, samples=5120, alpha=0.5):
    """The error over α⁴."""
    cell = corollary71.Promised(dim=20, alpha=alpha, samples=samples, width=10, epochs=40, seeds=3)
    errors = ("seed", resnet * alpha**4 * np.array([0.99, 1.0, 1.01]))
    return cell, xr.Dataset({"resnet": errors, "best": errors}).assign(rate=0.1, decay=0.0, inside=True)


def verdicts(*pairs):
    return [
        str(claim.verdict) for claim in corollary71.claims(Results("paper", pairs)) if claim.verdict != "not run here"
    ]


OUTSIDE = "outside the hypothesis"


def test_nothing_is_judged_by_a_choice_on_the_edge_of_its_grid():
    (cell, data) = learner(1000, resnet=0.01, kernel=4.0)
    assert verdicts((cell, data)) == [OUTSIDE, "holds", "holds"]
    assert verdicts((cell, data.assign(inside=False))) == [OUTSIDE, OUTSIDE, "holds"]


@pytest.mark.parametrize("error", [0.9, 1.1])
def test_another_training_at_a_larger_alpha_is_outside_the_promise_and_says_with_which_numbers(error):
    """1/(k p_G 𝔠_s(G)): Section E.4's 16 ridges c z⁴, c = 4⁴/(√4 4! 2⁴), are by Lemma B.2 32, of 4c/√2 z³."""
    (*_, claim) = corollary71.claims(Results("paper", (promised(error),)))
    assert claim.verdict == OUTSIDE
    failing = {one.name: one for one in claim.hypotheses if not one.met}
    assert failing.keys() == {"α", "training", "width m"}
    assert failing["α"].value / failing["α"].limit == pytest.approx(
        0.5 * 4 * 32 * 4 * 4 / 2**0.5 * 4**4 / (2 * 24 * 16)
    )
    (*_, fewer) = corollary71.claims(Results("paper", (promised(error, 5119),)))
    assert {one.name for one in fewer.hypotheses if not one.met} == {*failing, "samples N"}


def stated(alpha, both, first=1.0, width=100):
    """Errors over α² of Algorithm 1 with both layers and with V held."""
    cell = corollary71.Stated(dim=10, degree=3, alpha=alpha, samples=int(10 / alpha**8) + 1, width=width, seeds=3)
    jitter = alpha**2 * np.array([0.99, 1.0, 1.01])
    return cell, xr.Dataset({"both": ("seed", both * jitter), "first": ("seed", first * jitter)}).assign(
        base=30.0, composite=176.0
    )


@pytest.mark.parametrize(("power", "met"), [(4.2, True), (3.8, False)])
def test_algorithm_1_s_error_has_to_fall_like_alpha_to_the_fourth(power, met):
    slope, needed = corollary71.claims(Results("paper", tuple(stated(a, a ** (power - 2)) for a in (0.4, 0.5, 0.6))))
    assert slope.value == pytest.approx(power)
    assert (slope.verdict, slope.met) == (OUTSIDE, met)
    assert [one.name for one in slope.hypotheses if not one.met] == ["α"]
    assert needed.verdict == "holds"


def test_within_theorem_1_s_range_of_alpha_the_power_would_be_judged():
    pairs = [stated(a, a, width=10**5) for a in (0.001, 0.002, 0.004)]
    assert verdicts(*pairs)[0] == "fails"


def test_a_second_layer_that_is_not_needed_would_be_found_out():
    _, needed = corollary71.claims(Results("paper", tuple(stated(a, a, first=a) for a in (0.4, 0.5, 0.6))))
    assert needed.verdict == "fails"


def test_algorithm_1_learns_what_it_does_not_learn_with_v_held():
    """For d = 6 and k = 3: the same samples and starts, with η_v of the theorem and with η_v = 0."""
    found = corollary71.run(corollary71.Stated(dim=6, degree=3, alpha=0.45, samples=3569, width=64, seeds=1))
    assert float(found["both"].max()) < 0.5 * float(found["first"].min())
    assert float(found["base"]) == pytest.approx(
        3 * 2 * 2 * np.sqrt(2) * np.sqrt(6 / 3)
    )  # k·2p·(i + 1)|c|, c = √2·√(d/k)


def test_a_separation_is_judged_at_the_largest_n():
    pairs = learner(300, resnet=0.01, kernel=4.0), learner(1000, resnet=0.1, kernel=3.0)
    *_, ours, theirs = corollary71.claims(Results("paper", pairs))
    assert (str(ours.verdict), str(theirs.verdict)) == ("holds", "holds")
    assert "N = 1000" in ours.statement
    assert "none of six kernels" in theirs.statement
    assert ours.value == pytest.approx(0.1)
    assert "arcsine" in theirs.measured
    assert "N = 300: 0.01 and 4; N = 1000: 0.1 and 3" in ours.note


def test_a_resnet_that_learns_nothing_and_a_kernel_that_learns_would_be_found_out():
    assert verdicts(learner(1000, resnet=4.0, kernel=4.0)) == [OUTSIDE, "fails", "holds"]
    assert verdicts(learner(1000, resnet=0.1, kernel=0.2)) == [OUTSIDE, "holds", "fails"]


def test_the_figure_wants_two_sizes():
    assert corollary71.draw(Results("paper", (learner(300, resnet=0.5, kernel=4.0), promised(0.5)))) == []
    pairs = learner(300, resnet=0.5, kernel=4.0), learner(1000, resnet=0.1, kernel=3.0)
    assert len(corollary71.draw(Results("paper", pairs))) == 1


def test_the_promised_samples_are_as_many_as_the_corollary_asks_for_and_none_are_kernels(monkeypatch):
    cell = corollary71.Promised(dim=8, alpha=0.9, samples=19, width=8, epochs=2, seeds=2)
    monkeypatch.setattr(
        _methods, "search",
        lambda evaluate, rates, decays, by: Search(rates[:2], decays[:1], evaluate(rates[:2], decays[:1]), by),
    )  # fmt: skip
    assert set(corollary71.run(cell).data_vars) == {"resnet", "best", "rate", "decay", "inside"}
    for config in corollary71.PROFILES.values():
        for one in corollary71.cells(config):
            if isinstance(one, corollary71.Promised):
                assert one.samples - 1 < one.dim / one.alpha**8 <= one.samples


def test_every_profile_has_cells_with_a_cost():
    for config in corollary71.PROFILES.values():
        assert all(corollary71.cost(cell).flops > 0 for cell in corollary71.cells(config))
