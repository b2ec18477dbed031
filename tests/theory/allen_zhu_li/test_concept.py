"""Complexities of series against their sums written out, and Fact B.3 against maps that are pushed to its limits."""

import math

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data.hierarchy import GeneralRidges, SmoothRidges
from offtangent.theory.allen_zhu_li.concept import (
    ConceptComplexity,
    composite_bound,
    concept_complexity,
    series_complexity,
    series_smoothness,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("constant", [1, 10.0])
def test_both_complexities_are_section_4_s_sums(constant):
    c, epsilon = RNG.standard_normal(6), 0.01
    size, smooth = abs(c[0]) * 2, constant * abs(c[0])
    for i in range(1, 6):
        size += (constant**i + (math.sqrt(math.log(1 / epsilon)) / math.sqrt(i) * constant) ** i) * abs(c[i])
        smooth += constant * (i + 1) * abs(c[i])
    assert float(series_complexity(c, epsilon=epsilon, constant=constant)) == pytest.approx(size)
    assert float(series_smoothness(c, constant=constant)) == pytest.approx(smooth)


def test_lemma_b2_does_not_raise_the_complexity_of_a_ridge():
    F = SmoothRidges.random(4, outputs=2, terms=3, series=[0.3, -1.0, 0.7, 0.5, 0.2], key=jax.random.key(0))
    found = concept_complexity(F, epsilon=0.01, constant=2.0)
    assert found.terms == 6
    assert found.smooth <= float(series_smoothness(F.series[0, 0], constant=2.0))
    assert found.size <= float(series_complexity(F.series[0, 0], epsilon=0.01, constant=2.0))


def test_a_map_changes_no_faster_than_fact_b3_says():
    """The largest slope by autodiff's peer, differences in float64 along random and along the steepest directions."""
    F = GeneralRidges.random(3, outputs=2, terms=2, series=[0.4, 1.0, 0.0, -0.6], key=jax.random.key(1))
    X = 3 * RNG.standard_normal((2000, 3))
    steps = 1e-5 * RNG.standard_normal(X.shape)
    slopes = np.linalg.norm(F(X + steps) - F(X), axis=1) / np.linalg.norm(steps, axis=1)
    assert slopes.max() <= concept_complexity(F).lipschitz


def test_the_slope_of_fact_b3_is_attained():
    """With φ = z, w₁ = (e, 0), w₂ = (0, 1), F(x) = x/√(x² + 1): slope 1 at 0; with φ = 1, w₂ = e: slope 1 = 𝔠_s."""
    first, second = np.zeros((1, 1, 2)), np.zeros((1, 1, 2))
    first[..., 0] = second[..., 0] = 1.0
    F = GeneralRidges(np.ones((1, 1)), first, second, np.ones((1, 1, 1)))
    step = 1e-3
    assert (F([[step]]) - F([[0.0]])).item() / step == pytest.approx(concept_complexity(F).lipschitz)


def test_a_map_is_bounded_by_the_length_of_x_with_its_one_and_not_by_that_of_x_alone():
    F = GeneralRidges.random(3, outputs=2, terms=2, series=[0.4, 1.0], key=jax.random.key(2))
    X = np.vstack([np.zeros((1, 3)), 5 * RNG.standard_normal((500, 3))])
    found = concept_complexity(F)
    limits = np.array([found.bound(float(np.linalg.norm(x))) for x in X])
    norms = np.linalg.norm(F(X), axis=1)
    assert (norms <= limits).all()
    assert norms[0] > found.lipschitz * np.linalg.norm(X[0])  # as printed, at x = 0


def test_a_composite_is_bounded_by_its_slope_and_its_value_at_zero():
    F = GeneralRidges.random(3, outputs=2, terms=1, series=[0.4, 1.0], key=jax.random.key(3))
    G = GeneralRidges.random(2, outputs=2, terms=2, series=[0.2, -1.0], key=jax.random.key(4))
    X = RNG.standard_normal((500, 3))
    base = F(X)
    limit = composite_bound(concept_complexity(G), float(np.linalg.norm(base, axis=1).max()))
    assert np.linalg.norm(G(base), axis=1).max() <= limit


def test_the_bound_of_a_composite_is_section_5_s_sum():
    """𝔏_G 𝔅_F + √k p 𝔠_s(G) with k = 4, p = 3, 𝔠_s = 0.5: at 𝔅_F = 0 the value of G at 0 is left."""
    G = ConceptComplexity(outputs=4, terms=3, smooth=0.5, size=0.0)
    assert [composite_bound(G, base) for base in (0.0, 1.0, 2.5)] == pytest.approx([3.0, 3.0 + 3.0, 7.5 + 3.0])


def test_an_epsilon_of_one_is_refused():
    with pytest.raises(InputError, match="between 0 and 1"):
        series_complexity(np.ones(2), epsilon=1.0)


@pytest.mark.parametrize("complexity", [lambda c: series_complexity(c, epsilon=0.1), series_smoothness])
@pytest.mark.parametrize("series", [np.array([1.0, math.nan]), np.array([])])
def test_a_series_without_numbers_is_refused(complexity, series):
    with pytest.raises(InputError, match="expected finite coefficients"):
        complexity(series)
