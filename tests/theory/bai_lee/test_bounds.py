"""Widths, sample sizes and Theorem 6: against exact probabilities, the inequalities of the proofs, and networks."""

import itertools
import math

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

from offtangent._errors import InputError
from offtangent.data import sphere
from offtangent.networks import TwoLayer
from offtangent.theory.bai_lee.bounds import (
    coupling_width,
    generalisation_gap,
    initial_norm_bound,
    largest_square_bound,
    localisation_radius,
    polynomial_samples,
    quadratic_samples,
    stationary_width,
    xor_samples,
)
from offtangent.theory.bai_lee.complexity import feature_term, input_spread
from offtangent.theory.bai_lee.expressivity import column_norm, quadratic_part
from offtangent.theory.bai_lee.penalties import penalty_choice


@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3])
def test_the_norm_event_fails_with_probability_at_most_delta(delta):
    """V-A6: ‖B_xw₀‖² is χ² with d degrees of freedom, so that the probability is known."""
    for dim, width in itertools.product((1, 3, 10, 100), (2, 100, 10**5)):
        tail = scipy.stats.chi2.sf(initial_norm_bound(dim, width, delta=delta) ** 2, dim)
        assert width * tail <= delta


def test_the_norm_event_holds_for_networks():
    for seed in range(5):
        net = TwoLayer.symmetric(dim=6, width=200, radius=2.0, activation="relu3", key=jax.random.key(seed))
        assert 2.0 * column_norm(net.W0, math.inf) <= initial_norm_bound(6, 200, delta=0.1)


@pytest.mark.parametrize("count", [1, 10, 1000, 10**6])
def test_the_largest_square_lies_below_its_bound(count):
    """E max g² = ∫ 1 − P(g² ≤ t)^N dt for independent ones."""
    exact, _ = scipy.integrate.quad(lambda t: -np.expm1(count * scipy.stats.chi2.logcdf(t, 1)), 0, 80, limit=500)
    assert exact <= largest_square_bound(count) <= 4 * exact


def test_the_gap_has_the_parts_of_the_proof():
    n, d, m, norm, radius, spread, delta = 500, 7, 10**6, 1.3, 2.0, 0.5, 0.2
    found = generalisation_gap(n, d, m, norm=norm, radius=radius, spread=spread, curvature=9.0, delta=delta)
    covariance = spread**2 * radius**2
    expected = 4 * norm**2 * 4 * radius * math.sqrt(math.log(2 * d * m) / n) * math.sqrt(9.0 * covariance)
    assert found.features == pytest.approx(expected, rel=1e-14)
    assert found.sampling == pytest.approx(2 / math.sqrt(n), rel=1e-14)
    assert found.remainder == pytest.approx(2 * radius**3 * norm**3 * m**-0.25 / 6, rel=1e-14)
    fourth = (8 * (d * math.log(5) + math.log(m / delta))) ** 2
    assert found.linear == pytest.approx(2 * 0.5 * 0.25 * fourth * radius**2 * norm**2 * m**-0.5, rel=1e-14)
    assert found.total == found.features + found.sampling + (found.remainder + found.linear)
    default = generalisation_gap(n, d, m, norm=norm, radius=radius, spread=spread, delta=delta)
    assert default.features == pytest.approx(expected * math.sqrt(4 * math.log(math.sqrt(2) * m * n) / 9), rel=1e-14)
    wider = generalisation_gap(n, d, 16 * m, norm=norm, radius=radius, curvature=9.0, delta=delta)
    assert wider.remainder == pytest.approx(found.remainder / 2)


def test_the_feature_part_of_the_gap_bounds_the_measured_complexity():
    """4B_w² E max_r‖A_r‖_op, eq. (21), averaged over W₀, inputs and signs, below what Lemma 8 and C.2 make of it."""
    n, d, m = 40, 5, 30
    measured, spreads = [], []
    for seed in range(6):
        one, two, three = jax.random.split(jax.random.key(seed), 3)
        net = TwoLayer.symmetric(dim=d, width=m, activation="relu3", key=one)
        X = sphere(n, d, key=two)
        measured.append(4 * feature_term(net, X, draws=8, key=three).largest.value)
        spreads.append(input_spread(X) ** 2)
    gap = generalisation_gap(n, d, m, norm=1.0, spread=math.sqrt(np.mean(spreads)))
    assert np.mean(measured) + 4 * np.std(measured) / math.sqrt(5) <= gap.features


@pytest.mark.parametrize("norm", [0.3, 1.0, 3.0])
def test_lemma_12_bounds_the_distance_of_the_risks(norm):
    """|L(W) − L^Q(W)| ≤ coupling/2, with L by brute force over all 2⁸ signs and the logistic loss."""
    d, m, n = 3, 8, 10
    net = TwoLayer.symmetric(dim=d, width=m, activation="relu3", key=jax.random.key(3))
    W0, a = np.asarray(net.W0, np.float64), np.asarray(net.a, np.float64)
    assert column_norm(W0, math.inf) <= initial_norm_bound(d, m, delta=0.1)
    rng = np.random.default_rng(0)
    X, y = sphere(n, d, key=jax.random.key(4)), rng.choice([1.0, -1.0], n)
    W = rng.standard_normal((d, m))
    W *= norm / column_norm(W)

    def risk(f):
        return float(np.log1p(np.exp(-y * f)).mean())

    randomised = np.mean(
        [
            risk((np.maximum(X @ (W0 + W * signs), 0) ** 3 / 6) @ a / math.sqrt(m))
            for signs in itertools.product((1.0, -1.0), repeat=m)
        ]
    )
    gap = generalisation_gap(n, d, m, norm=norm)
    distance = abs(randomised - risk(quadratic_part(net, W, X)))
    assert 1e-6 < distance <= gap.coupling / 2


def test_the_width_of_theorem_2_covers_every_requirement_of_its_proof():
    """Eqs. (13), (15), (16) and (17), for ε ≤ 1 and B_{w,⋆} ≤ B_w, each up to the factor 2 that O(·) allows."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        d, bx, bw, e = rng.integers(1, 50), 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-2, 2), rng.uniform(0.01, 1)
        s = bw * rng.uniform(0, 1)
        needed = [
            bx**12 * bw**12 / e**4 + d**4 * bx**4 * bw**4 / e**2,
            d * bx**4 * bw**2 * s**2 / e,
            (d**4 * bx**4 * bw**4 + d**2 * bx**20 * bw**20 + bx**12 * bw**12) / e**4 + d**5 * bx**8 * bw**8 / e**2,
            (bx**12 * bw**4 * s**8 + d**2 * bx**20 * bw**12 * s**8) / e**4
            + (d**5 * bx**8 * bw**4 * s**4 + d**4 * bx**4 * s**4 + bx**12 * bw**8 * s**4) / e**2
            + d * bx**4 * bw**2 * s**2 / e,
        ]
        found = coupling_width(int(d), norm=bw, epsilon=e, radius=bx)
        assert found == pytest.approx(needed[2], rel=1e-12)
        assert max(needed) <= 2 * found * (1 + 1e-12)


def test_stationary_points_lie_within_the_localisation_radius():
    """At a stationary point 8λN⁸ ≤ 2 + coupling(N); the largest such N is below B_{w,0}, at any width."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        d, bx, m, lam = (
            int(rng.integers(1, 50)),
            10 ** rng.uniform(-1, 1),
            10 ** rng.uniform(1, 8),
            10 ** rng.uniform(-9, 1),
        )
        q = m**-0.25

        def excess(log, d=d, bx=bx, lam=lam, q=q):
            N = math.exp(log)
            coupling = (d * bx * N + math.sqrt(d) * (bx * N) ** 5 + (bx * N) ** 3) * q + d**2.5 * (bx * N) ** 4 * q * q
            return 8 * lam * N**8 - 2 - coupling

        largest = math.exp(scipy.optimize.brentq(excess, -20, 30))
        found = localisation_radius(d, m, strength=lam, radius=bx)
        assert largest <= found <= 10 * largest
    assert localisation_radius(9, math.inf, strength=1e-8) == pytest.approx(10.0)


def test_the_localisation_radius_adds_up_where_each_term_of_lemma_13_meets_the_penalty():
    """Each N at which λN⁸ equals one term of the coupling alone, found by bisection."""
    d, bx, m, lam = 7, 1.4, 5000.0, 1e-3
    terms = [
        (0, 1.0),
        (1, d * bx * m**-0.25),
        (5, math.sqrt(d) * bx**5 * m**-0.25),
        (3, bx**3 * m**-0.25),
        (4, d**2.5 * bx**4 * m**-0.5),
    ]
    meet = [scipy.optimize.brentq(lambda N, t=t: lam * N**8 - t[1] * N ** t[0], 1e-3, 1e3, xtol=1e-13) for t in terms]
    assert localisation_radius(d, m, strength=lam, radius=bx) == pytest.approx(sum(meet), rel=1e-9)


def test_sample_sizes_follow_from_theorem_6_and_theorem_7():
    p, d, alpha, length, epsilon = 4, 30, 1.5, 0.8, 0.05
    norm = (p**3 * alpha**2 * length ** (2 * p)) ** 0.25  # B_{w,⋆} of Theorem 7 at B_x = 1
    sizes = polynomial_samples(p, d, epsilon=epsilon, coefficient=alpha, length=length)
    assert sizes.quadratic == pytest.approx(quadratic_samples(norm=norm, epsilon=epsilon, spread=d**-0.5), rel=1e-12)
    assert sizes.ratio == pytest.approx(p / d)
    xor = xor_samples(d, epsilon=epsilon)
    by_hand = quadratic_samples(norm=1.0, epsilon=epsilon, radius=math.sqrt(d), spread=d**-0.5)
    assert (xor.quadratic, xor.ratio) == (pytest.approx(by_hand), pytest.approx(1 / d))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: initial_norm_bound(3, 10, delta=0.0), "delta=0"),
        (lambda: largest_square_bound(0), "count=0"),
        (lambda: generalisation_gap(10, 3, math.inf, norm=1.0), "grows with log m"),
        (lambda: generalisation_gap(10, 3, 100, norm=-1.0), "norm=-1"),
        (lambda: coupling_width(3, norm=1.0, epsilon=2.0), "epsilon=2"),
        (lambda: localisation_radius(3, 10, strength=0.0), "strength=0"),
        (lambda: polynomial_samples(0, 3, epsilon=0.1), "power=0"),
    ],
)
def test_bad_arguments_are_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()


@pytest.mark.parametrize(("norm", "radius"), [(1.0, 1.0), (2.0, 1.5), (0.3, 1.0)])
def test_theorem_4s_width_is_the_least_at_which_eq_6_holds_on_its_own_ball(norm, radius):
    settings = {"opt": 0.2, "gamma": 0.5, "epsilon": 0.1}
    strength = penalty_choice(norm, **settings).strength
    width = stationary_width(4, norm=norm, radius=radius, **settings)

    def asked(m):
        within = localisation_radius(4, m, strength=strength, radius=radius)
        return coupling_width(4, norm=within, epsilon=0.1, radius=radius)

    assert asked(width) == pytest.approx(width, rel=1e-6)
    assert asked(0.9 * width) > 0.9 * width
    assert asked(1.1 * width) < 1.1 * width


@pytest.mark.parametrize("power", [1, 5, 7])
def test_sample_sizes_of_polynomials_outside_theorem_7_are_refused(power):
    with pytest.raises(InputError, match="p = 2, 3 and even"):
        polynomial_samples(power, 10, epsilon=0.1)


@pytest.mark.parametrize("given", [{"norm": 1e20, "epsilon": 1e-9}, {"norm": 1.0, "epsilon": 1e-100}])
def test_a_width_beyond_float64_is_told_as_a_power_of_ten(given):
    with pytest.raises(InputError, match=r"The width is about 10\^\d+, beyond float64"):
        coupling_width(10**6, **given)
    assert coupling_width(10**6, norm=1e10, epsilon=1e-9) == pytest.approx(1e248, rel=1e-6)  # d²b²⁰/ε⁴
