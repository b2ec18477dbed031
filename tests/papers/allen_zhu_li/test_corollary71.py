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


def test_nothing_is_judged_by_a_choice_on_the_edge_of_its_grid():
    settled = promised(0.5), learner(1000, resnet=0.01, kernel=4.0)
    pairs = [(cell, data.assign(inside=False)) for cell, data in settled]
    assert verdicts(*settled).count("holds") == 3
    assert {*verdicts(*pairs)} == {"outside the hypothesis"}


def verdicts(*pairs):
    return [str(claim.verdict) for claim in corollary71.claims(Results("paper", pairs))]


@pytest.mark.parametrize(
    ("samples", "error", "verdict"),
    [(5120, 0.9, "holds"), (5120, 1.1, "fails"), (5119, 0.9, "outside the hypothesis")],
)
def test_the_promise_is_judged_from_d_over_alpha_to_the_eighth_on(samples, error, verdict):
    assert verdicts(promised(error, samples)) == [verdict]


def test_a_separation_is_looked_for_at_the_n_where_it_is_widest():
    pairs = learner(300, resnet=0.5, kernel=4.0), learner(1000, resnet=0.1, kernel=3.0)
    *_, ours, theirs = corollary71.claims(Results("paper", pairs))
    assert (str(ours.verdict), str(theirs.verdict)) == ("holds", "holds")
    assert "there is an N, such as 1000" in ours.statement
    assert ours.value == pytest.approx(0.1)
    assert "arcsine" in theirs.measured
    assert "N = 300: 0.5 and 4; N = 1000: 0.1 and 3" in ours.note


def test_a_resnet_that_learns_nothing_and_a_kernel_that_learns_would_be_found_out():
    outside = "outside the hypothesis"
    assert verdicts(learner(1000, resnet=4.0, kernel=4.0)) == [outside, "fails", "holds"]
    assert verdicts(learner(1000, resnet=0.1, kernel=0.2)) == [outside, "holds", "fails"]


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
