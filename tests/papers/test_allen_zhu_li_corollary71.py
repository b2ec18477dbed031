"""Corollary 7.1 of Allen-Zhu & Li: a small run on Theorem 2's own samples, and claims about planted errors."""

import numpy as np
import pytest
import xarray as xr

from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import _methods, corollary71, theorem2
from offtangent.papers.allen_zhu_li._targets import Product
from offtangent.training import Search

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


@pytest.mark.parametrize(
    ("samples", "verdicts"), [(300, ["outside the hypothesis", "holds"]), (10**6, ["holds", "holds"])]
)
def test_claims_are_judged_from_d_over_alpha_to_the_eighth_on(samples, verdicts):
    assert verdicts_of(samples, resnet=0.005, kernel=0.4) == verdicts


def test_a_resnet_no_better_than_kernels_would_be_found_out():
    assert verdicts_of(10**6, resnet=0.5, kernel=0.4) == ["fails", "fails"]
    assert verdicts_of(300, resnet=0.3, kernel=0.2)[1] == "fails"  # 0.3 < kα² = 0.36
    assert verdicts_of(300, resnet=0.5, kernel=0.4)[1] == "outside the hypothesis"  # nothing of αG(F) is learnt


def verdicts_of(samples, *, resnet, kernel):
    cell = corollary71.Learner(dim=20, samples=samples, width=10, epochs=400, seeds=3)
    jitter = np.array([0.99, 1.0, 1.01])
    errors = np.stack([kernel * jitter * (2 if name != "arcsine" else 1) for name in theorem2.KERNELS])
    data = xr.Dataset(
        dict.fromkeys(("resnet", "best"), ("seed", resnet * jitter)) | {"kernel": (("kernels", "seed"), errors)}
    ).assign(rate=0.1, decay=0.0, inside=True).assign_coords(kernels=list(theorem2.KERNELS))  # fmt: skip
    results = Results("paper", ((cell, data),))
    assert "arcsine" in corollary71.claims(results)[1].measured
    assert corollary71.draw(results) == []
    return [claim.verdict for claim in corollary71.claims(results)]


def test_every_profile_has_cells_with_a_cost():
    for config in corollary71.PROFILES.values():
        assert all(corollary71.cost(cell).flops > 0 for cell in corollary71.cells(config))
