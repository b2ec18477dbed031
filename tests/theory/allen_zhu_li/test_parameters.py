"""Theorem 1's settings: against the proof's own inequalities, and against the W⋆ and V⋆ that it needs."""

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data.hierarchy import GeneralRidges
from offtangent.theory.allen_zhu_li.concept import ConceptComplexity, concept_complexity
from offtangent.theory.allen_zhu_li.indicator import existence_norm
from offtangent.theory.allen_zhu_li.parameters import resnet_settings, theorem1

SIMPLE = ConceptComplexity(outputs=2, terms=1, smooth=2.0, size=0.0, constant=2.0)


def test_the_rates_of_theorem_1_have_the_ratio_the_proof_needs():
    """τ_w²/η_w = τ_v²/η_v, and so α² in η_v/η_w; η_w + η_v τ_w² ≤ 0.1."""
    small, large = (theorem1(SIMPLE, SIMPLE, alpha=a, width=10**5, base_bound=1.0) for a in (0.01, 0.02))
    for found in (small, large):
        assert found.tau_w**2 / found.rate_w == pytest.approx(found.tau_v**2 / found.rate_v)
        assert found.rate_w + found.rate_v * found.tau_w**2 <= 0.1 + 1e-12
        assert found.applies
    assert large.rate_v / large.rate_w == pytest.approx(4 * small.rate_v / small.rate_w)


def test_table_1_is_what_the_theorem_sets():
    found = theorem1(SIMPLE, SIMPLE, alpha=0.01, width=256, base_bound=1.0, optimum=0.5)
    assert (found.tau_w, found.sigma_w) == (40.0, 0.5)
    assert found.tau_v == pytest.approx(0.4)
    assert found.sigma_v == pytest.approx(0.4**-2)
    assert found.delta == pytest.approx(0.5 + 0.4**4 * 4)
    assert found.steps == np.ceil(1600 / found.delta**2)


@pytest.mark.parametrize("series", [[0.0, 0.0, 0.0, 1.0], [1.0], [0.3, 1.0, 0.0, 0.2]])
def test_where_theorem_1_applies_its_star_lies_within_a_tenth_of_the_radii(series):
    F, G = (GeneralRidges.random(2, outputs=2, terms=2, series=series, key=jax.random.key(seed)) for seed in (5, 6))
    sizes = [concept_complexity(one, constant=2.0) for one in (F, G)]
    alpha = 0.5 / (10 * sizes[1].outputs * sizes[1].terms * sizes[1].smooth)
    width = 10**8
    found = theorem1(*sizes, alpha=alpha, width=width, base_bound=sizes[0].bound(1.0))
    assert found.applies
    assert existence_norm(F) <= found.tau_w / 10
    assert alpha * existence_norm(G) <= found.tau_v / 10


def test_complexities_with_a_small_constant_are_told_that_the_star_may_not_fit():
    """z³ with C* = 1: √E‖W⋆‖² = √(12π) is above kp𝔠_s = 4."""
    F = GeneralRidges.random(1, outputs=1, terms=1, series=[0.0, 0.0, 0.0, 1.0], key=jax.random.key(7))
    size = concept_complexity(F, constant=1.0)
    found = theorem1(size, size, alpha=0.01, width=10**8, base_bound=2.0)
    assert existence_norm(F) == pytest.approx(np.sqrt(12 * np.pi))
    assert existence_norm(F) > found.tau_w / 10
    assert [problem[:10] for problem in found.problems] == ["F has C* =", "G has C* ="]


def test_initial_weights_outside_table_1_say_so():
    for given, said in (({"sigma_w": 0.999}, "σ_w ="), ({"sigma_w": 0.001}, "σ_w ="), ({"sigma_v": 0.6}, "σ_v = 0.6")):
        found = resnet_settings(tau_w=2.0, tau_v=0.5, outputs=2, width=10**5, delta=0.5, **given)
        assert any(problem.startswith(said) for problem in found.problems)
    assert resnet_settings(tau_w=2.0, tau_v=0.5, outputs=2, width=10**5, delta=0.5, sigma_w=0.1).applies
    wide = resnet_settings(tau_w=2.0, tau_v=0.5, outputs=2, width=16, delta=0.5, sigma_v=3.0)
    assert any("σ_v = 3 is not in [1, m^0.37]" in problem for problem in wide.problems)


def test_an_error_so_small_that_its_steps_cannot_be_counted_is_refused():
    with pytest.raises(InputError, match="more than can be counted"):
        theorem1(SIMPLE, SIMPLE, alpha=1e-60, width=256, base_bound=1.0)


def test_an_alpha_that_is_too_large_says_what_no_longer_applies():
    found = theorem1(SIMPLE, SIMPLE, alpha=0.5, width=10**5, base_bound=1.0)
    assert not found.applies
    assert any("α is above" in problem and "Claims D.6" in problem for problem in found.problems)


@pytest.mark.parametrize("sigma_w", [None, 0.05, 0.3, 0.9])
def test_the_width_that_would_do_does(sigma_w):
    given = {"tau_w": 100.0, "tau_v": 0.5, "outputs": 2, "delta": 0.5, "sigma_w": sigma_w}
    narrow = next(p for p in resnet_settings(width=100, **given).problems if "D.1(a)" in p)
    width = int(narrow.split("a width of ")[1].split()[0])
    assert not any("D.1(a)" in problem for problem in resnet_settings(width=width, **given).problems)
    if sigma_w is not None:  # with σ_w held, it is the least
        assert any("D.1(a)" in problem for problem in resnet_settings(width=width - 2, **given).problems)


def test_radii_outside_lemma_d1_say_so():
    narrow = resnet_settings(tau_w=30.0, tau_v=0.1, outputs=2, width=256, delta=0.1)
    assert [any(word in p for p in narrow.problems) for word in ("D.1(a)", "D.1(d)")] == [True, True]
    assert any("below 1" in p for p in resnet_settings(tau_w=0.5, tau_v=0.5, outputs=2, width=9999, delta=0.1).problems)


@pytest.mark.parametrize(("outputs", "width", "told"), [(8, 4096, True), (8, 16_384, False), (1, 4096, False)])
def test_the_least_tau_v_grows_with_the_outputs(outputs, width, told):
    """σ_v(k/m)^(3/8): 0.193 for 8 outputs and 4096 neurons, 0.115 for 16 384, 0.088 for one output and 4096."""
    found = resnet_settings(tau_w=5.0, tau_v=0.15, outputs=outputs, width=width, delta=0.5, sigma_v=2.0)
    assert [("D.1(d)" in problem) for problem in found.problems] == [True] * told


def test_a_tau_v_above_one_and_a_delta_below_what_the_theorem_promises_are_told():
    """σ_v is given, so that its own range does not tell."""
    given = {"tau_w": 5.0, "outputs": 2, "width": 4096}
    assert [*resnet_settings(tau_v=0.9, delta=0.7, sigma_v=5.0, **given).problems] == []
    (wide,) = resnet_settings(tau_v=1.1, delta=1.5, sigma_v=5.0, **given).problems
    (small,) = resnet_settings(tau_v=0.9, delta=0.6, sigma_v=5.0, **given).problems
    assert "τ_v = 1.1 is above 1" in wide
    assert "δ = 0.6 is below τ_v⁴ = 0.656" in small


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_an_alpha_from_one_on_is_refused_with_the_part_that_is_lost(alpha):
    with pytest.raises(InputError, match=r"From α = 1 on Lemma D\.2.*not stated"):
        theorem1(SIMPLE, SIMPLE, alpha=alpha, width=256, base_bound=1.0)


def test_an_alpha_of_zero_is_refused():
    with pytest.raises(InputError, match="no G to learn"):
        theorem1(SIMPLE, SIMPLE, alpha=0.0, width=256, base_bound=1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"base_bound": np.nan}, "base_bound=nan: 𝔅_F bounds"),
        ({"base_bound": -1.0}, "base_bound=-1"),
        ({"base_bound": np.inf}, "base_bound=inf"),
        ({"optimum": -1.0}, "optimum=-1: OPT is.*at least 0"),
        ({"optimum": np.nan}, "optimum=nan"),
        ({"alpha": np.nan}, "alpha=nan"),
    ],
)
def test_theorem_1_names_the_argument_that_is_no_size(given, said):
    with pytest.raises(InputError, match=said):
        theorem1(SIMPLE, SIMPLE, **{"alpha": 0.1, "width": 256, "base_bound": 1.0, **given})


@pytest.mark.parametrize("name", ["tau_w", "tau_v", "delta", "sigma_w", "sigma_v"])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_radii_and_scales_that_are_not_positive_are_refused_by_name(name, value):
    given = {"tau_w": 5.0, "tau_v": 0.5, "delta": 0.5, name: value}
    with pytest.raises(InputError, match=rf"^{name}=.*positive and finite"):
        resnet_settings(**given, outputs=2, width=4096)
