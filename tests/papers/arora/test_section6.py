"""Arora et al., Section 6, in its smoke profile: run once in this process, looked at from all sides."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import xarray as xr

from offtangent import data
from offtangent.lab import Results
from offtangent.papers.arora import section6


@pytest.fixture(scope="module")
def smoke() -> Results:
    return Results("smoke", tuple((cell, section6.run(cell)) for cell in section6.cells(section6.PROFILES["smoke"])))


def changed(results: Results, change: Callable[[xr.Dataset], xr.Dataset]) -> Results:
    return Results("smoke", tuple((c, change(d) if isinstance(c, section6.Labels) else d) for c, d in results))


def verdicts(results: Results) -> dict[str, str]:
    return {claim.source: str(claim.verdict) for claim in section6.claims(results)}


def test_theorem_61_and_all_that_follows_hold(smoke: Results) -> None:
    found = verdicts(smoke)
    assert "fails" not in found.values()
    examples = {f"Example 6.{k}" for k in (1, 2, 3, 4)}
    held = {source for source, verdict in found.items() if verdict == "holds"}
    assert {"Theorem 6.1", "Theorem 6.1, proof", "Corollary 6.2", "Lemma E.1", "Remark 5.1", *examples} <= held
    assert found["Section 6, sample size"] == "holds with constants 1"
    assert found["Theorem 5.1"] == "not testable at this size"  # its bound says something for ten samples alone


def test_what_follows_by_algebra_is_an_identity_and_odd_powers_are_named(smoke: Results) -> None:
    claims = section6.claims(smoke)
    assert {claim.source for claim in claims if claim.kind == "identity"} == {
        "Section 6, before Corollary 6.2",
        "Remark 5.1, one pair {x, −x}",
    }
    (odd,) = [claim for claim in claims if claim.source == "Theorem 6.1, p = 5, d = 5"]
    assert "largest odd power above 1 = 5, asked 0" in odd.conditions


def test_lemma_e1_would_fail_for_another_kernel_and_is_not_run_on_results_without_it(smoke: Results) -> None:
    """With half of H∞ in its place B is no longer the larger, and both sides change places."""
    order = smoke.where(section6.Order)
    halved = Results("smoke", tuple((cell, found.assign(ratio=2 * found.ratio)) for cell, found in order))
    assert verdicts(halved)["Lemma E.1"] == "fails"
    assert verdicts(smoke.where(section6.Labels))["Lemma E.1"] == "not run here"


def test_one_sample_that_misses_the_bound_counts_though_most_of_its_labels_keep_it(smoke: Results) -> None:
    """The labels of one sample are no independent trials: samples are counted, not labels."""

    def wrong(found: xr.Dataset) -> xr.Dataset:
        return found.assign(test_loss=xr.where(found.label == "p=2", 1.0, found.test_loss))

    labels = smoke.where(section6.Labels, samples=300)
    told = section6.claims(Results("smoke", (*smoke.where(section6.Labels, samples=100), *changed(labels, wrong))))
    (claim,) = [claim for claim in told if claim.source == "Theorem 5.1"]
    assert claim.verdict == "fails"


def test_the_printed_square_root_is_refuted_and_odd_powers_are_outside(smoke: Results) -> None:
    found = {claim.source: claim for claim in section6.claims(smoke)}
    assert found["Example 6.2, as printed"].verdict == "refuted as printed"
    for p in (3, 5, 7):
        odd = found[f"Theorem 6.1, p = {p}, d = 5"]
        assert odd.verdict == "outside the hypothesis"
        assert odd.interval is not None
        assert odd.interval[0] > 0.3  # they grow, where the theorem's stay bounded


def plain(cell: section6.Labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, new inputs and H∞, eq. (3), written out by hand."""
    X = data.sphere(cell.samples + cell.tests, cell.dim, key=jax.random.key(cell.seed))
    cosine = np.clip(X @ X[: cell.samples].T, -1, 1)
    H = cosine * (np.pi - np.arccos(cosine)) / (2 * np.pi)
    return X, H[: cell.samples], H[cell.samples :]


@pytest.mark.parametrize("at", [0, 25])
def test_costs_losses_and_the_smallest_eigenvalue_are_those_of_plain_numpy(smoke: Results, at: int) -> None:
    cell, found = smoke.pairs[at]
    X, H, across = plain(cell)
    n = cell.samples
    for name, target in section6.targets(cell.dim, cell.seed).items():
        y = target(X)
        assert np.abs(y).max() <= 1
        one = found.sel(label=name)
        assert float(one.cost) == pytest.approx(np.sqrt(y[:n] @ np.linalg.solve(H, y[:n])), rel=1e-6)
        loss = np.minimum(np.abs(across @ np.linalg.solve(H, y[:n]) - y[n:]), 1).mean()
        assert float(one.test_loss) == pytest.approx(loss, rel=1e-6)
    values = np.linalg.eigvalsh(H)
    assert float(found.smallest) == pytest.approx(values[0], rel=1e-4)
    largest = np.linalg.eigvals(np.linalg.solve(H, (X[:n] @ X[:n].T) ** 4)).real.max()
    assert float(found.largest.sel(power=4)) == pytest.approx(largest, rel=1e-6)


def test_the_same_cell_gives_the_same_numbers(smoke: Results) -> None:
    cell, found = smoke.pairs[3]
    xr.testing.assert_identical(section6.run(cell), found)


@pytest.mark.parametrize(
    ("change", "source"),
    [
        (lambda d: d.assign(cost=1.6 * d.cost), "Theorem 6.1"),
        (lambda d: d.assign(cost=1.01 * d.cost), "Theorem 6.1, proof"),
        (lambda d: d.assign(largest=1.01 * d.largest), "Theorem 6.1, proof: c_p Kᵖ ⪯ H∞"),
        (lambda d: d.assign(cost=6 * d.cost), "Corollary 6.2"),
        (lambda d: d.assign(excess=1.001), "Section 6, before Corollary 6.2"),
        (lambda d: d.assign(test_loss=0 * d.test_loss + 1), "Theorem 5.1"),
        (lambda d: d.assign(test_loss=0 * d.test_loss + 1), "Section 6, sample size"),
        (lambda d: d.assign(smallest=-1e-3), "Remark 5.1"),
    ],
)
def test_a_result_that_contradicts_the_paper_would_be_found_out(
    smoke: Results, change: Callable[[Any], Any], source: str
) -> None:
    assert verdicts(changed(smoke, change))[source] == "fails"


def test_a_missing_cell_leaves_the_other_claims_standing(smoke: Results) -> None:
    for gone in (0, 15, 29, len(smoke) - 1):
        less = Results("smoke", smoke.pairs[:gone] + smoke.pairs[gone + 1 :], complete=False)
        assert len(section6.claims(less)) >= 15
        assert len(section6.draw(less)) == 3
    assert [claim.source for claim in section6.claims(Results("smoke", ()))] == ["Lemma E.1"]
    assert section6.draw(Results("smoke", ())) == []


def test_every_profile_asks_for_five_sizes_and_ten_seeds() -> None:
    for name, config in section6.PROFILES.items():
        assert config.seeds == 10
        assert len(config.samples) >= (3 if name == "smoke" else 5)
        assert config.samples[-1] >= (10 if name == "smoke" else 100) * config.samples[0]
        assert all(section6.cost(cell).flops > 0 for cell in section6.cells(config))
