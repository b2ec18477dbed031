"""Lemma 1, Theorem 2, Corollary 3 and Theorem 4 against dense Hessians averaged over all signs."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.losses import logistic, soft_hinge, squared
from offtangent.taylor.curvature import certificate
from offtangent.theory.bai_lee.landscape import (
    clean_landscape,
    penalty_landscape,
    randomised_landscape,
    stationary_bound,
)
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT, penalty, penalty_choice
from offtangent.theory.bai_lee.risks import CleanRisk, RandomisedRisk
from offtangent.theory.bai_lee.signs import in_float64


def problem(width, *, dim=3, n=8, seed=0, make=TwoLayer.symmetric):
    rng = np.random.default_rng(seed)
    net = make(dim=dim, width=width, activation="softplus", key=jax.random.key(seed))
    X = rng.standard_normal((n, dim)).astype(np.float32).astype(np.float64)  # what a risk in float32 holds
    y = rng.choice([-1.0, 1.0], n)
    W, W_star = rng.standard_normal((2, dim, width)) * width**-0.25
    return net, X, y, W, W_star


def clean(net, X, y, loss=logistic):
    """L^Q with its coefficients in float64."""
    with jax.enable_x64(True):
        return CleanRisk.of(in_float64(net), X, y, loss)


@eqx.filter_jit
def parts(risk, W):
    return risk(W), jax.grad(risk)(W), jax.hessian(risk)(W)


def dense(risk, W, W_star):
    """Loss, ⟨∇, W⟩ and the mean over all Σ' of the whole Hessian along W⋆Σ'."""
    with jax.enable_x64(True):
        loss, slope, hessian = (np.asarray(part) for part in parts(in_float64(risk), jnp.asarray(W)))
    turned = [W_star * np.array(s) for s in itertools.product((-1, 1), repeat=W.shape[1])]
    forms = [np.einsum("ij,ijkl,kl", V, hessian, V) for V in turned]
    return loss, np.sum(slope * W), np.mean(forms)


@pytest.mark.parametrize(("make", "loss"), [(TwoLayer.symmetric, logistic), (TwoLayer.gaussian, squared)])
def test_the_terms_of_lemma_1_are_those_of_dense_hessians(make, loss):
    net, X, y, W, W_star = problem(6, make=make)
    risk = clean(net, X, y, loss)
    found = clean_landscape(risk, W, W_star)
    np.testing.assert_allclose((found.loss, found.descent, found.curvature), dense(risk, W, W_star), rtol=1e-11)
    with jax.enable_x64(True):
        assert found.opt == pytest.approx(float(in_float64(risk)(jnp.asarray(W_star))), rel=1e-12)


def test_the_term_that_lemma_1_adds_is_the_formula():
    net, X, y, W, W_star = problem(6)
    s = 1 / (1 + np.exp(-X @ np.asarray(net.W0, float)))
    terms = (s * (1 - s)) ** 2 * (X @ W) ** 2 * (X @ W_star) ** 2
    assert clean_landscape(clean(net, X, y), W, W_star).allowance == pytest.approx(terms.sum() / (6 * 8), rel=1e-12)


def test_lemma_1_is_never_violated():
    """V-A3: 200 draws at d = 6, m = 40, n = 30, with movements of several sizes."""
    violations, tightest = 0, np.inf
    for seed in range(200):
        net, X, y, W, W_star = problem(40, dim=6, n=30, seed=seed)
        loss = (logistic, soft_hinge)[seed % 2]
        W, W_star = W * 2.0 ** (seed % 5 - 2), W_star * 2.0 ** (seed % 3)
        found = clean_landscape(CleanRisk.of(net, X, y, loss), W, W_star)
        violations += found.slack < -1e-12 * (abs(found.right) + abs(found.curvature))
        tightest = min(tightest, found.slack / found.allowance)
    assert violations == 0
    assert tightest > 0


def test_the_constant_of_lemma_1_is_attained():
    """With ℓ'' = 1 and W = W⋆ both sides are equal; with half the last term the lemma is false."""
    net, X, y, W, _ = problem(6)
    found = clean_landscape(CleanRisk.of(net, X, y, squared), W, W)
    assert abs(found.slack) < 1e-13 * found.right
    assert found.slack - found.allowance / 2 < 0


@pytest.mark.parametrize(("make", "strength"), [(TwoLayer.symmetric, 0.2), (TwoLayer.gaussian, 0.0)])
def test_the_terms_of_theorem_2_and_corollary_3_are_those_of_dense_hessians(make, strength):
    net, X, y, W, W_star = problem(6, make=make)
    risk = RandomisedRisk.of(net, X, y, strength=strength)
    found = randomised_landscape(risk, W, W_star, opt=0.25, epsilon=0.5)
    np.testing.assert_allclose((found.loss, found.descent, found.curvature), dense(risk, W, W_star), rtol=1e-11)
    lam = float(risk.strength)
    with jax.enable_x64(True):
        sizes = float(penalty(jnp.asarray(W))), float(penalty(jnp.asarray(W_star)))
    assert found.allowance == pytest.approx(0.5 - lam * sizes[0] + LANDSCAPE_CONSTANT * lam * sizes[1], rel=1e-12)
    right = found.descent - 2 * (found.loss - 0.25) + found.allowance
    assert (found.right, found.error) == (pytest.approx(right), 0.0)
    assert found.slack == pytest.approx(right - found.curvature)


def test_opt_is_the_clean_risk_at_the_comparison_matrix():
    net, X, y, W, W_star = problem(6)
    opt = clean_landscape(CleanRisk.of(net, X, y), W, W_star).opt
    assert randomised_landscape(RandomisedRisk.of(net, X, y), W, W_star).opt == pytest.approx(opt, rel=1e-13)


def test_drawn_signs_give_the_slack_within_four_standard_errors():
    net, X, y, W, W_star = problem(6)
    exact = randomised_landscape(RandomisedRisk.of(net, X, y, strength=0.1), W, W_star)
    for seed in range(5):
        risk = RandomisedRisk.of(net, X, y, strength=0.1, samples=1000, key=jax.random.key(seed))
        drawn = randomised_landscape(risk, W, W_star)
        assert 0 < drawn.error < 0.05
        assert abs(drawn.slack - exact.slack) < 4 * drawn.error


def test_theorem_2_comes_close_to_lemma_1_as_the_network_widens():
    """Lemmas 12-14 bound each difference by O(m^{-1/4}): from m to 256m it falls at least by 256^{1/4} = 4."""
    differences = []
    for width in (40, 40 * 256):
        net, X, y, W, W_star = problem(width, dim=6, n=30)
        W, W_star = (V / np.linalg.norm(V, axis=0) * width**-0.25 for V in (W, W_star))
        risk = RandomisedRisk.of(net, X, y, samples=200, key=jax.random.key(0))
        sides = clean_landscape(CleanRisk.of(net, X, y), W, W_star), randomised_landscape(risk, W, W_star)
        lemma, theorem = (np.array([side.loss, side.descent, side.curvature]) for side in sides)
        differences.append(np.abs(lemma - theorem))
    assert (differences[1] < differences[0] / 4).all()


def test_the_regulariser_alone_keeps_corollary_3_for_all_matrices():
    for seed in range(100):
        W, W_star = np.random.default_rng(seed).standard_normal((2, 3, 1 + seed % 2)) * [[[3.0]], [[1.0]]]
        found = penalty_landscape(W, W_star)
        assert found.slack > -1e-12 * found.right


def test_the_constant_of_corollary_3_is_attained():
    """One neuron, w parallel to w⋆, ‖w‖² = (3·14/5)‖w⋆‖²: equality in every step of Appendix B.5."""
    w_star = np.array([[0.6], [0.8]])
    found = penalty_landscape(np.sqrt(8.4) * w_star, w_star)
    assert abs(found.slack) < 1e-12 * found.curvature


@pytest.fixture(scope="module")
def descended():
    """L_λ with Theorem 4's λ on a small network, a point reached by descent in float64, and its certificate."""
    gamma, epsilon = 1.0, 0.5
    net, X, y, W, W_star = problem(6)
    opt = clean_landscape(CleanRisk.of(net, X, y), W, W_star).opt
    size = float(np.sum(np.linalg.norm(W_star, axis=0) ** 4) ** (1 / 4))
    choice = penalty_choice(size, opt=opt, gamma=gamma, epsilon=epsilon)
    risk = RandomisedRisk.of(net, X, y, strength=choice.strength)
    with jax.enable_x64(True):
        wide = in_float64(risk)
        slope = jax.grad(wide)
        V = jax.jit(lambda V: jax.lax.fori_loop(0, 3000, lambda _, V: V - 2.0 * slope(V), V))(jnp.asarray(0.1 * W))
        point = certificate(wide, V, key=jax.random.key(0))
    return risk, np.asarray(V), W_star, point, {"gamma": gamma, "epsilon": epsilon}, wide


def test_theorem_4_holds_at_a_certified_stationary_point_where_corollary_3_does(descended):
    risk, W, W_star, point, settings, _ = descended
    assert randomised_landscape(risk, W, W_star).needed <= settings["epsilon"]  # its hypothesis, measured
    found = stationary_bound(risk, W, W_star, point=point, **settings)
    assert point.stationary(gradient=1e-3, curvature=1e-3)
    assert found.inexactness < 0.02
    assert found.slack > 0
    assert found.norm_slack > 0
    assert found.loss == pytest.approx(point.value, rel=1e-6)
    plain, opt = stationary_bound(risk, W, W_star, **settings), randomised_landscape(risk, W, W_star).opt
    assert plain.loss_bound == pytest.approx(2 * opt + 0.5, rel=1e-12)
    assert plain.loss_bound == pytest.approx(found.loss_bound - found.inexactness / 2)


def test_away_from_stationary_points_the_inexactness_keeps_the_bound_true(descended):
    """(8) with ε makes the loss bound true at every point, once what is missing in first and second order is added."""
    risk, _, W_star, _, settings, wide = descended
    for seed in range(6):
        W = np.random.default_rng(seed).standard_normal(W_star.shape) * 2.0 ** (seed - 3)
        if randomised_landscape(risk, W, W_star).needed > settings["epsilon"]:
            continue
        point = certificate(wide, W, key=jax.random.key(seed))
        found = stationary_bound(risk, W, W_star, point=point, **settings)
        assert found.slack > 0
        assert found.norm_slack > 0


def test_bad_input_is_refused(descended):
    risk, W, W_star, _, settings, _ = descended
    with pytest.raises(InputError, match="takes λ = "):
        stationary_bound(risk, W, 1.1 * W_star, **settings)
    with pytest.raises(InputError, match=r"W_star has shape \(3, 5\)"):
        randomised_landscape(risk, W, np.ones((3, 5)))
    with pytest.raises(InputError, match=r"W has shape \(2, 6\)"):
        clean_landscape(CleanRisk.of(risk.net, risk.X, risk.y), W[:2], W_star)
