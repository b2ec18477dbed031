"""Nichani, Bai & Lee: the spectrum of the feature covariance, in its smoke profile."""

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent.lab import Results
from offtangent.papers.nichani import spectrum
from offtangent.papers.nichani.spectrum_figures import marchenko_pastur
from offtangent.theory import FeatureCovariance
from offtangent.theory.nichani.tangent import TangentFeatures


@pytest.fixture(scope="module")
def smoke():
    cells = spectrum.cells(spectrum.PROFILES["smoke"])
    return Results("smoke", tuple((cell, spectrum.run(cell)) for cell in cells))


def test_no_claim_fails_and_most_are_tested(smoke):
    verdicts = [claim.verdict.value for claim in spectrum.claims(smoke)]
    assert set(verdicts) <= {"holds", "outside the hypothesis", "not run here"}
    assert verdicts.count("holds") > 0.8 * len(verdicts)


def test_there_are_figures_and_missing_cells_leave_the_others_standing(smoke):
    assert len(spectrum.draw(smoke)) == 9
    less = Results("smoke", smoke.pairs[8:], complete=False)
    assert 0 < len(spectrum.claims(less)) < len(spectrum.claims(smoke))
    assert spectrum.draw(less)


def test_every_cell_of_every_profile_says_what_it_costs():
    for config in spectrum.PROFILES.values():
        costs = [spectrum.cost(cell) for cell in spectrum.cells(config)]
        assert all(one.flops > 0 and 0 < one.bytes < 4e9 for one in costs)


def failing(results: Results, kind: type, change) -> set[str]:
    """The statements that fail when the data of one kind of cell are changed."""
    pairs = tuple((cell, change(cell, data) if type(cell) is kind else data) for cell, data in results)
    return {claim.statement for claim in spectrum.claims(Results("smoke", pairs)) if claim.verdict == "fails"}


FAULTS = {
    "levels 5 % too high": (spectrum.Blocks, lambda cell, data: data.assign(mean=1.05 * data["mean"])),  # noqa: ARG005
    "a block twice as wide": (spectrum.Blocks, lambda cell, data: data.assign(spread=2 * data["spread"])),  # noqa: ARG005
    "a break one place early": (spectrum.Blocks, lambda cell, data: data.assign({"break": data["break"] - 1})),  # noqa: ARG005
    "a sum below the trace": (spectrum.Blocks, lambda cell, data: data.assign(sum=0.99 * data["sum"])),  # noqa: ARG005
    "a gap that closes": (spectrum.Blocks, lambda cell, data: data.assign(first=data["first"] / cell.dim)),
    "small eigenvalues that fall too slowly": (
        spectrum.Rest, lambda cell, data: data.assign(mean=data["mean"] * np.array(cell.widths) ** 0.1),
    ),
    "angles beyond the bound": (spectrum.Angles, lambda cell, data: data.assign(sine=20 * data["sine"])),  # noqa: ARG005
    "angles that stay": (
        spectrum.Angles, lambda cell, data: data.assign(sine=data["sine"] * np.array(cell.sizes) ** 0.25),
    ),
    "eigenvalues with another exponent": (
        spectrum.Scaling, lambda cell, data: data.assign(value=data["value"] * np.array(cell.dims) ** 0.1),
    ),
    "a sigmoid of two": (spectrum.Assumptions, lambda cell, data: data.assign(supremum=2 * data["supremum"])),  # noqa: ARG005
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_would_be_found_out(smoke, fault):
    kind, change = FAULTS[fault]
    assert not failing(smoke, kind, lambda cell, data: data)  # noqa: ARG005
    assert failing(smoke, kind, change)


def test_the_network_drawn_in_blocks_is_symmetric_and_on_the_sphere():
    net = spectrum._network("softplus", 3, 20_000, jax.random.key(0))
    W0 = np.asarray(net.W0, np.float64)
    assert net.paired
    np.testing.assert_array_equal(W0[:, :10_000], W0[:, 10_000:])
    np.testing.assert_allclose(np.linalg.norm(W0, axis=0), 1, rtol=1e-6)
    assert np.abs(W0.mean(axis=1)).max() < 5 / np.sqrt(3 * 10_000)


def test_eigenvectors_from_the_small_matrix_are_those_of_the_gram_matrix():
    """With n > dh, the covariance of the training features from ΦᵀΦ and from ΦΦᵀ."""
    net = spectrum._network("softplus", 3, 20, jax.random.key(0))
    X = data.sphere(80, 3, radius=3**0.5, key=jax.random.key(1))
    small, gram = spectrum._training(net, X, 5), FeatureCovariance.of_samples(net, X, count=5)
    np.testing.assert_allclose(small.values, gram.values, rtol=1e-10)
    assert small.trace == pytest.approx(gram.trace, rel=1e-12)
    W = np.random.default_rng(0).standard_normal((3, 20))
    np.testing.assert_allclose(small.project(W, 4), gram.project(W, 4), atol=1e-8)
    values = spectrum._eigenvalues(TangentFeatures.of(net, X).gram() / 80)
    np.testing.assert_allclose(values[:5], gram.values, rtol=1e-10)


def test_gaps_and_the_mean_of_the_rest_are_those_of_the_theory_s_blocks():
    """One seed of each kind of cell again, through `FeatureCovariance.blocks`."""
    cell = spectrum.Blocks("softplus", 4, 1, 400, 200, 1)
    found = spectrum.run(cell)
    of_net, of_inputs = jax.random.split(jax.random.fold_in(jax.random.key(0), 4))
    net = spectrum._network("softplus", 4, 400, of_net)
    blocks = FeatureCovariance.of_samples(net, spectrum._inputs(200, 4, of_inputs)).blocks(1)
    assert float(found["first"][0]) == pytest.approx(blocks.first.ratio, rel=1e-9)
    assert float(found["second"][0]) == pytest.approx(blocks.second.ratio, rel=1e-9)
    assert [int(end) for end in found["end"]] == [4, 5, 14]
    of_net, of_inputs = jax.random.split(jax.random.key(0))
    rest = spectrum.run(spectrum.Rest("softplus", 4, (400,), 200, 1))
    net = spectrum._network("softplus", 4, 400, jax.random.fold_in(of_net, 400))
    blocks = FeatureCovariance.of_samples(net, spectrum._inputs(200, 4, of_inputs)).blocks(1)
    assert float(rest["mean"][0, 0]) == pytest.approx(blocks.rest_mean, rel=1e-9)


def test_quantiles_are_those_of_a_large_sample_covariance():
    """Marchenko and Pastur's law against 500 eigenvalues from 2000 samples; its mean and variance are 1 and ratio."""
    Z = np.random.default_rng(0).standard_normal((2000, 500))
    values = np.linalg.eigvalsh(Z.T @ Z / 2000)
    levels = (np.arange(500) + 0.5) / 500
    law = marchenko_pastur(0.25, levels)
    np.testing.assert_allclose(values, law, atol=4 * 500 ** (-2 / 3))  # at the ends, as Tracy and Widom say
    assert law.mean() == pytest.approx(1, abs=1e-3)
    assert law.var() == pytest.approx(0.25, abs=2e-3)
