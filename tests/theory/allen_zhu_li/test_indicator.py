"""Indicators that add up to smooth functions: against Monte Carlo in d dimensions, quadrature and exact means."""

import math

import jax
import mpmath
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data.hierarchy import GeneralRidges
from offtangent.networks import ResNet
from offtangent.theory.allen_zhu_li.concept import series_complexity, series_smoothness
from offtangent.theory.allen_zhu_li.indicator import (
    IndicatorFunction,
    existence_hidden,
    existence_norm,
    existence_weights,
    indicator_mean,
    indicator_moment,
)

SINE = np.array([0.0 if i % 2 == 0 else (-1.0) ** (i // 2) / math.factorial(i) for i in range(16)])
MIXED = np.array([0.3, -0.5, 0.0, 0.8, 0.0, 0.2])


@pytest.mark.parametrize("order", [1, 3, 5, 7, 9])
def test_a_moment_is_half_a_hermite_integral(order):
    """At x = w⋆, z = 1: p′_i = ∫_0^∞ He_i(t) φ(t) dt, by mpmath."""
    with mpmath.workdps(30):
        he = lambda t: 2 ** (-mpmath.mpf(order) / 2) * mpmath.hermite(order, t / mpmath.sqrt(2))  # noqa: E731
        truth = mpmath.quad(lambda t: he(t) * mpmath.npdf(t), [0, 2, 5, 10, 20])
    assert indicator_moment(order) == pytest.approx(float(truth), rel=1e-12)


def test_the_paper_s_lower_bound_on_the_moments_fails_from_three_on():
    """Claim F.3 prints |p′_i| ≥ (i−1)!!/4."""
    printed = {i: math.prod(range(i - 1, 0, -2)) / 4 for i in (1, 3, 5, 7)}
    assert [abs(indicator_moment(i)) >= limit for i, limit in printed.items()] == [True, False, False, False]


@pytest.mark.parametrize("series", [SINE, MIXED, np.array([0.7])])
def test_the_mean_of_the_indicator_times_h_is_the_function(series):
    z = np.linspace(-1, 1, 21)
    truth = np.polynomial.polynomial.polyval(z, series)
    np.testing.assert_allclose(indicator_mean(IndicatorFunction(series), z), truth, atol=1e-10)


def test_lemma_f2_holds_for_gaussian_vectors_in_many_dimensions():
    """E[1{⟨w, x⟩ ≥ 0} h(⟨w, w⋆⟩)] over draws of w in R⁶, within four standard errors."""
    rng = np.random.default_rng(0)
    x, star = (v / np.linalg.norm(v) for v in rng.standard_normal((2, 6)))
    w = rng.standard_normal((200_000, 6))
    draws = (w @ x >= 0) * IndicatorFunction(MIXED)(w @ star)
    error = draws.std() / math.sqrt(len(draws))
    assert abs(draws.mean() - np.polynomial.polynomial.polyval(star @ x, MIXED)) < 4 * error


def test_the_energy_is_the_mean_square_of_h():
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    h = IndicatorFunction(MIXED)
    assert h.energy == pytest.approx(weights @ h(nodes) ** 2 / weights.sum())


@pytest.mark.parametrize("order", [0, 1, 3, 5, 7, 15])
def test_the_energy_of_a_power_is_below_the_smoothness_with_a_constant_of_two(order):
    series = np.eye(order + 1)[order]
    assert IndicatorFunction(series).energy <= float(series_smoothness(series, constant=2.0)) ** 2
    if order == 0:  # and for a constant no smaller one will do
        assert IndicatorFunction(series).energy == float(series_smoothness(series, constant=2.0)) ** 2


def test_the_clip_is_a_hundred_roots_of_the_order_and_ten_of_the_logarithm():
    """B_i = 100√i + 10√ln(1/ε), Claim F.4."""
    h = IndicatorFunction(MIXED, epsilon=math.exp(-9))
    assert [h.clip(order) for order in (1, 9, 25)] == pytest.approx([100 + 30, 300 + 30, 500 + 30])


def test_h_is_clipped_where_the_lemma_says():
    h = IndicatorFunction(MIXED, epsilon=0.01)
    far = np.array([1e6, -1e6])
    beyond = sum(
        MIXED[i] / indicator_moment(i) * float(mpmath.hermite(i, h.clip(i) / math.sqrt(2))) / 2 ** (i / 2)
        for i in (1, 3, 5)
    )
    np.testing.assert_allclose(h(far), 2 * MIXED[0] + np.array([beyond, -beyond]), rtol=1e-12)


@pytest.mark.parametrize("series", [SINE, MIXED])
def test_h_stays_within_the_complexity_with_the_paper_s_constant(series):
    """|h| ≤ 𝔠_ε(φ) with C* = 10⁴, the range in Lemma F.2."""
    h = IndicatorFunction(series, epsilon=0.01)
    assert np.abs(h(np.linspace(-500, 500, 2001))).max() <= h.bound * (1 + 1e-12)
    assert h.bound <= float(series_complexity(series, epsilon=0.01, constant=1e4))


@pytest.mark.parametrize("series", [SINE, MIXED])
def test_h_changes_no_faster_than_its_slope_at_the_clips(series):
    h, t = IndicatorFunction(series, epsilon=0.01), np.linspace(-150, 150, 30_001)
    assert (np.abs(np.diff(h(t))) <= np.diff(t) * h.lipschitz * (1 + 1e-9)).all()
    alone = IndicatorFunction(np.array([0.0, 0.0, 0.0, 1.0]), epsilon=0.01)
    edge = alone.clip(3)
    assert (alone(np.array([edge])) - alone(np.array([edge - 1e-4]))).item() / -1e-4 == pytest.approx(
        alone.lipschitz, rel=1e-5
    )


def test_even_orders_have_no_such_h():
    with pytest.raises(InputError, match="even orders"):
        IndicatorFunction(np.array([0.0, 0.0, 1.0]))
    with pytest.raises(InputError, match="odd"):
        indicator_moment(2)


def test_all_of_h_is_finite_up_to_the_highest_order():
    h = IndicatorFunction(np.eye(100)[99], epsilon=1e-300)
    assert all(math.isfinite(size) for size in (h.bound, h.lipschitz, h.energy))
    assert np.isfinite(h(np.array([-1e6, 0.5, 1e6]))).all()
    assert math.isfinite(indicator_moment(301))


def of_order(order):
    return GeneralRidges.random(3, outputs=1, terms=1, series=[0.0] * order + [1.0], key=jax.random.key(0))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: indicator_moment(401), "order=401.*beyond i = 301"),
        (lambda: IndicatorFunction(np.eye(202)[201]), "up to order 201.*beyond order 99"),
        (lambda: existence_norm(of_order(201)), "up to order 201.*beyond order 99"),
    ],
)
def test_orders_beyond_float64_are_refused_with_the_limit(call, said):
    with pytest.raises(InputError, match=said):
        call()


@pytest.fixture(scope="module")
def concept():
    return GeneralRidges.random(3, outputs=2, terms=2, series=[0.2, 0.6, 0.0, -0.3], key=jax.random.key(0))


@pytest.fixture(scope="module")
def draws(concept):
    """W⋆ for many draws of A and W⁰ at a small width."""
    rng, m, scale = np.random.default_rng(1), 50, 0.3
    found = []
    for _ in range(1000):
        A, W0 = rng.standard_normal((2, m)) / math.sqrt(m), scale * rng.standard_normal((4, m))
        found.append((A, W0, existence_weights(concept, A, W0, scale=scale)))
    return found


def test_lemma_f1_s_weights_express_the_map_in_the_mean(concept, draws):
    """Mean of A D_{W⁰} W⋆(x, 1) over draws within four standard errors of F(x), for x of any length."""
    X = np.array([[0.6, 0.0, 0.8], [-1.0, 2.0, 0.5]])
    padded = np.hstack([X, np.ones((2, 1))])
    values = np.array([((padded @ W0 >= 0) * (padded @ W)) @ A.T for A, W0, W in draws])
    error = values.std(axis=0) / math.sqrt(len(draws))
    assert (np.abs(values.mean(axis=0) - concept(X)) < 4 * error).all()


def test_the_norm_of_lemma_f1_s_weights_is_known_exactly(concept, draws):
    squares = np.array([(W**2).sum() for _, _, W in draws])
    assert abs(squares.mean() - existence_norm(concept) ** 2) < 4 * squares.std() / math.sqrt(len(squares))


def test_both_layers_of_a_network_get_their_weights_with_their_own_scales(concept):
    """Lemma D.2 for one wide network, whose error is a few times √(E h²/m) = 0.05."""
    composite = GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=jax.random.key(1))
    m, sigma_v = 20_000, 5.0
    net = ResNet.theory(dim=3, outputs=2, width=m, sigma_v=sigma_v, key=jax.random.key(2))
    W, V = existence_hidden(net, concept, composite, alpha=0.1, sigma_w=m**-0.125, sigma_v=sigma_v)
    for hidden, weights, target in ((net.W0, W, concept), (net.V0, V, lambda z: 0.1 * composite(z))):
        X = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])[:, : len(weights) - 1]
        padded = np.hstack([X, np.ones((2, 1))])
        found = ((padded @ np.asarray(hidden) >= 0) * (padded @ weights)) @ np.asarray(net.A).T
        spread = np.sqrt((weights**2).sum() * 2 / m)
        assert np.abs(found - target(X)).max() < 5 * spread


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sigma_w": 5000.0}, r"sigma_w=5000: the 8000 entries of net\.W0 say sigma_w = 0\.49"),
        ({"sigma_w": 0.55}, "sigma_w=0.55"),
        ({"sigma_v": 5000.0}, r"sigma_v=5000: the 6000 entries of net\.V0 say sigma_v = (1\.9|2)"),
        ({"sigma_v": 2 / math.sqrt(2000)}, "sigma_v"),
    ],
)
def test_a_scale_that_the_network_was_not_drawn_with_is_refused(concept, given, said):
    composite = GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=jax.random.key(1))
    net = ResNet.theory(dim=3, outputs=2, width=2000, sigma_w=0.5, sigma_v=2.0, key=jax.random.key(2))
    with pytest.raises(InputError, match=said):
        existence_hidden(net, concept, composite, **{"alpha": 0.1, "sigma_w": 0.5, "sigma_v": 2.0, **given})


@pytest.mark.parametrize("width", [1, 4, 64])
def test_the_scales_of_a_network_are_never_refused_to_it(concept, width):
    composite = GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=jax.random.key(1))
    for seed in range(20):
        net = ResNet.theory(dim=3, outputs=2, width=width, sigma_w=0.5, sigma_v=2.0, key=jax.random.key(seed))
        existence_hidden(net, concept, composite, alpha=0.1, sigma_w=0.5, sigma_v=2.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"alpha": np.nan}, r"alpha=nan: Lemma D\.2 is about α in \(0, 1\)"),
        ({"alpha": 7.0}, "alpha=7.*existence_weights"),
        ({"alpha": 0.0}, "alpha=0"),
        ({"sigma_w": np.nan}, "sigma_w=nan"),
        ({"sigma_v": -1.0}, "sigma_v=-1"),
        ({"sigma_v": np.inf}, "sigma_v=inf"),
    ],
)
def test_an_alpha_or_a_scale_outside_lemma_d2_is_refused(concept, given, said):
    composite = GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=jax.random.key(1))
    net = ResNet.theory(dim=3, outputs=2, width=20, sigma_v=2.0, key=jax.random.key(2))
    with pytest.raises(InputError, match=said):
        existence_hidden(net, concept, composite, **{"alpha": 0.1, "sigma_w": 0.5, "sigma_v": 2.0, **given})


def test_weights_for_another_scale_than_they_were_drawn_with_are_refused(concept):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"scale=0\.001: the 800 entries of W0 say scale = "):
        existence_weights(concept, rng.standard_normal((2, 200)), rng.standard_normal((4, 200)), scale=1e-3)
