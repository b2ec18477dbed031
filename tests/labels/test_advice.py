"""Advice: planted targets, the network's own Gram matrix, real data, and bad input."""

import doctest
from pathlib import Path

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.data.targets import LowDegreePlusSparse, sphere_target
from offtangent.labels.advice import _measured_cut, advise
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.special.sphere import polynomial_dimension
from offtangent.theory.nichani.tangent import TangentFeatures

RNG = np.random.default_rng(0)


def inputs(n, dim, seed=0):
    return data.sphere(n, dim, radius=dim**0.5, key=jax.random.key(seed))


@pytest.mark.parametrize(("dim", "k", "n"), [(10, 1, 600), (6, 2, 1200)])
def test_planted_energies_are_recovered_within_ten_percent(dim, k, n):
    """Every degree that holds a tenth of the energy, where three standard errors are below ten percent."""
    for seed in range(3):
        target = LowDegreePlusSparse.random(dim, k, 1, key=jax.random.key(seed))
        X = inputs(n, dim, seed + 100)
        found = advise(X, target(X), width=200, activation="sigmoid(z − 1)", degree=k + 1, key=jax.random.key(seed))
        energies = target.energies().total
        large = energies > 0.1 * energies.sum()
        assert found.uniform
        assert (3 * found.estimate.errors < 0.1 * energies)[large].all()
        np.testing.assert_allclose(found.estimate.energies[large], energies[large], rtol=0.1)


@pytest.fixture(scope="module")
def figure_1():
    """Figure 1's target at n = d^{3/2}, for which the paper takes k = 1."""
    X = inputs(164, 30)
    y = sphere_target(30, key=jax.random.key(1))(X)
    return X, y, advise(X, y, width=4000)


def test_between_d_and_d_squared_samples_the_rank_is_n_1_and_the_square_is_left(figure_1):
    _, _, found = figure_1
    assert (found.degree, found.rank) == (1, polynomial_dimension(30, 1))
    assert found.learnt[1] > 0.9 > 0.5 > found.learnt[2]
    assert found.linear + found.left == pytest.approx(found.estimate.total)
    assert found.left > 0.5 * found.estimate.energies[2]


def test_the_cut_and_lambda_3_are_those_of_a_network_s_own_gram_matrix(figure_1):
    """Another network of this width: λ₁, λ_r, λ_{r+1} within 15 %, so that λ₃ costs no step size."""
    X, _, found = figure_1
    net = TwoLayer.symmetric(dim=30, width=4000, law="sphere", activation="softplus", key=jax.random.key(7))
    values = Spectrum.of(TangentFeatures.of(net, X).gram() / 164).values
    r = found.rank
    np.testing.assert_allclose([found.cut.top, found.cut.above, found.cut.below], values[[0, r - 1, r]], rtol=0.15)
    assert found.lambda3 == pytest.approx(values[0] / values[r] - 1, rel=0.3)
    assert found.epsilon == pytest.approx(found.lambda3 / 4000**0.5)


def test_the_predicted_error_is_the_one_measured_by_leaving_out_a_sample():
    """Noise alone, and a planted target between n₁ and n₂: within three standard errors and 20 %."""
    X = inputs(300, 12)
    planted = LowDegreePlusSparse.random(12, 1, 1, key=jax.random.key(0))(X)
    for y, n in ((np.random.default_rng(0).standard_normal(300), 300), (planted, 150)):
        found = advise(X[:n], y[:n], width=2000)
        allowed = 3 * found.measured.standard_error + 0.2 * found.measured.error
        assert abs(found.curve.error - found.measured.error) < allowed + found.estimate.rest_error


def test_scaled_and_rotated_inputs_get_the_same_advice():
    X = inputs(120, 20)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    turn = np.linalg.qr(RNG.standard_normal((20, 20)))[0]
    here, there = (advise(Z, y, width=400) for Z in (X, 0.1 * X @ turn))
    np.testing.assert_allclose(here.estimate.energies, there.estimate.energies, rtol=1e-8, atol=1e-12)
    assert (here.rank, here.lambda3) == (there.rank, there.lambda3)
    assert here.left == pytest.approx(there.left, rel=1e-8)
    assert here.measured.error == pytest.approx(there.measured.error, abs=4 * here.measured.standard_error)


def test_more_samples_than_directions_cost_what_least_squares_costs():
    """30 directions of weights, 500 samples of noise: the error is n/(n − 30) of the variance."""
    X = inputs(500, 3)
    found = advise(X, np.random.default_rng(1).standard_normal(500), width=20, degree=2)
    assert found.curve.overfitting == pytest.approx(500 / 470, rel=1e-6)
    assert found.measured.error == pytest.approx(found.curve.error, rel=0.1)


@pytest.fixture(scope="module")
def digits():
    X, y = data.digits(classes=(3, 8), samples=200)
    return X, np.where(y == y.max(), 1.0, -1.0)


def test_inputs_that_are_not_uniform_are_told_so_and_measured_instead(digits):
    found = advise(*digits, width=400)
    assert not found.uniform
    assert found.cut.measured
    assert found.left == found.measured.error < 0.5
    assert found.linear == pytest.approx(1 - found.left)
    assert "not uniform" in str(found)
    assert "in degree 1" not in str(found)


def test_the_measured_rank_predicts_a_half_from_the_other_as_well_as_the_best_one(digits):
    """Regression on the first r eigenvectors, fitted to one half; GCV's r within 0.05 of the best of all."""
    X, y = digits
    net = TwoLayer.symmetric(dim=X.shape[1], width=400, law="sphere", activation="softplus", key=jax.random.key(0))
    Z = 8 * data.preprocessing.unit_norm(X)
    fit, use = TangentFeatures.of(net, Z[::2]), TangentFeatures.of(net, Z[1::2])
    gram = fit.gram()
    spectrum = Spectrum.of(gram)
    parts = (use.cross(fit) @ spectrum.vectors / spectrum.values) * (spectrum.vectors.T @ y[::2])
    errors = np.mean((np.cumsum(parts, axis=1) - y[1::2, None]) ** 2, axis=0)
    assert errors[_measured_cut(gram, y[::2]).rank - 1] < errors[: len(gram) // 2].min() + 0.05


def test_the_words_hold_the_numbers(figure_1):
    _, _, found = figure_1
    text = str(found)
    for part in ("164 samples", "pass for uniform", "r = 31", f"λ₃ = {found.lambda3:.3g}", "in degree 2", "is left"):
        assert part in text
    assert repr(found).startswith("Advice(n=164, d=30, m=4000, r=31")


def test_the_guide_s_example_prints_what_it_shows():
    text = (
        (Path(__file__).parents[2] / "docs" / "your-data.md").read_text().partition("```pycon\n")[2].partition("```")[0]
    )
    example = doctest.DocTestParser().get_doctest(text, {}, "your-data.md", "docs/your-data.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    assert len(example.examples) == 6
    assert runner.run(example).failed == 0


def test_fewer_samples_than_dimensions_get_a_measured_rank():
    X = inputs(40, 60)
    found = advise(X, X[:, 0], width=100)
    assert found.uniform
    assert found.cut.measured
    assert found.degree < 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"y": np.ones(29)}, "29 labels and X has 30 rows"),
        ({"y": np.ones(30)}, "All 30 labels are 1"),
        ({"X": RNG.standard_normal((10, 4)), "y": np.arange(10.0)}, "10 samples"),
        ({"X": RNG.standard_normal((30, 1))}, "one column"),
        ({"X": np.full((30, 4), np.nan)}, "NaN"),
        ({"X": np.zeros((30, 4))}, "zero"),
        ({"width": 41}, "width=41 is odd"),
        ({"degree": -2}, "degree=-2"),
        ({"degree": 41}, "degree=41"),
    ],
)
def test_bad_input_is_refused(change, named):
    given = {"X": RNG.standard_normal((30, 4)), "y": np.arange(30.0), "width": 40} | change
    with pytest.raises(InputError, match=named):
        advise(given.pop("X"), given.pop("y"), **given)
