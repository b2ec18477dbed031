"""Lemmas 10, 12, 13, 14 against brute enumeration of all signs and autodiff; many points at once against one by one."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.losses import logistic, soft_hinge, squared
from offtangent.theory._results import Sides
from offtangent.theory.bai_lee.closeness import risk_closeness
from offtangent.theory.bai_lee.landscape import clean_landscape, penalty_landscape, randomised_landscape
from offtangent.theory.bai_lee.risks import CleanRisk, RandomisedRisk
from offtangent.theory.bai_lee.survey import landscape_survey

WIDTH = 4


def problem(seed=0, *, width=WIDTH, dim=3, n=5, scale=1.0):
    rng = np.random.default_rng(seed)
    W0 = np.tile(rng.standard_normal((dim, width // 2)), 2).astype(np.float32)
    a = np.repeat([1.0, -1.0], width // 2).astype(np.float32)
    net = TwoLayer(jnp.asarray(W0), jnp.asarray(a), activation("relu3"), paired=True)
    X = rng.standard_normal((n, dim)).astype(np.float32).astype(np.float64)
    W, W_star = scale * rng.standard_normal((2, dim, width)) * width**-0.25
    return net, X, rng.choice([-1.0, 1.0], n), W, W_star


def brute(net, X, y, W, W_star):
    """L − L^Q, ⟨∇(L − L^Q), W⟩ and E_Σ' ∇²(L − L^Q)[W⋆Σ', W⋆Σ'], every sign and every derivative the slow way."""
    signs = [np.array(s) for s in itertools.product((-1.0, 1.0), repeat=W.shape[1])]
    with jax.enable_x64(True):
        W0, a = jnp.asarray(np.asarray(net.W0), jnp.float64), jnp.asarray(np.asarray(net.a), jnp.float64)

        def loss(f):
            return jnp.mean(jnp.log1p(jnp.exp(-y * f)))

        def difference(V):
            cubes = [jnp.maximum(X @ (W0 + V * s), 0) ** 3 / 6 for s in signs]
            risks = [loss(cube @ a / W.shape[1] ** 0.5) for cube in cubes]
            quadratic = (jnp.maximum(X @ W0, 0) * (X @ V) ** 2) @ a / (2 * W.shape[1] ** 0.5)
            return sum(risks) / len(signs) - loss(quadratic)

        value, slope, hessian = jax.jit(lambda V: (difference(V), jax.grad(difference)(V), jax.hessian(difference)(V)))(
            jnp.asarray(W)
        )
        value, slope, hessian = (np.asarray(part) for part in (value, slope, hessian))
        forms = [np.einsum("ij,ijkl,kl", W_star * s, hessian, W_star * s) for s in signs]
    return abs(float(value)), abs(float(np.sum(slope * W))), abs(np.mean(forms))


def test_the_left_sides_are_those_of_brute_enumeration():
    net, X, y, W, W_star = problem()
    found = risk_closeness(RandomisedRisk.of(net, X, y), W, W_star)
    lefts = found.loss.left, found.gradient.left, found.curvature.left
    np.testing.assert_allclose(lefts, brute(net, X, y, W, W_star), rtol=1e-10)
    assert found.loss.error == 0.0


def test_the_right_sides_can_be_checked_by_hand():
    """D = 1, two inputs ±1, m = 4, all w₀ = 2 and w = w⋆ = 1: ρ = 2, b = b⋆ = 4^{1/4}, b_∞ = 1, m^{-1/4} = 4^{-1/4}."""
    net = TwoLayer(jnp.full((1, 4), 2.0), jnp.array([1.0, 1.0, -1.0, -1.0]), activation("relu3"), paired=True)
    ones = np.ones((1, 4))
    found = risk_closeness(RandomisedRisk.of(net, np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])), ones, ones)
    square, cubic, change = 4.0, 2**0.5 * 2 * 2**-0.5 / 6, 2**0.5 * 2 * 2**-0.5 / 6 + 2.0  # κ², δ, δ + κ²/2
    assert found.outputs.right == pytest.approx(2.0)
    assert found.loss.right == pytest.approx(change)
    assert found.gradient.right == pytest.approx(square**0.5 + change * 4 + 3 * cubic)
    assert found.curvature.right == pytest.approx(81 / 4 + 4 + 2 + change * 4)


def test_lemma_10_is_attained_and_without_its_half_it_is_not():
    """All neurons alike and of one sign: f^Q = ½ρb². Lemma 10 as printed, without the ½, is off by two."""
    net = TwoLayer(jnp.full((1, 4), 2.0), jnp.ones(4), activation("relu3"))
    found = risk_closeness(RandomisedRisk.of(net, np.ones((2, 1)), np.ones(2)), np.ones((1, 4)), np.ones((1, 4)))
    assert found.outputs.ratio == pytest.approx(1.0, rel=1e-12)


@pytest.fixture(scope="module")
def scattered():
    """Thirty points of sizes over two decades, with all signs; the survey's point and the single functions' results."""
    net, X, y, _, _ = problem(1)
    rng = np.random.default_rng(2)
    W, W_star = rng.standard_normal((2, 30, 3, WIDTH)) * 10 ** rng.uniform(-1, 1, (2, 30, 1, 1))
    risk = RandomisedRisk.of(net, X, y, soft_hinge, strength=0.01)
    return net, X, y, risk, W, W_star, landscape_survey(risk, W, W_star)


def test_the_lemmas_hold_at_every_point_and_add_up_to_theorem_2(scattered):
    for one in scattered[-1]:
        close = one.close
        assert max(side.ratio for side in (close.outputs, close.loss, close.gradient, close.curvature)) <= 1
        assert one.randomised.needed <= close.epsilon
        assert one.regularised.needed <= close.epsilon
        assert one.clean.slack >= -1e-12 * (abs(one.clean.right) + abs(one.clean.curvature))


def test_a_survey_says_at_every_point_what_the_single_functions_say(scattered):
    net, X, y, risk, W, W_star, found = scattered
    clean, plain = CleanRisk.of(net, X, y, soft_hinge), RandomisedRisk.of(net, X, y, soft_hinge)
    for k in (0, 7):
        single = (
            clean_landscape(clean, W[k], W_star[k]),
            randomised_landscape(plain, W[k], W_star[k]),
            randomised_landscape(risk, W[k], W_star[k]),
            penalty_landscape(W[k], W_star[k]),
        )
        for one, other in zip(
            (found[k].clean, found[k].randomised, found[k].regularised, found[k].penalty), single, strict=True
        ):
            assert one.slack == pytest.approx(other.slack, rel=1e-9)
            assert (one.curvature, one.descent, one.loss) == pytest.approx((other.curvature, other.descent, other.loss))
        assert found[k].close.epsilon == pytest.approx(risk_closeness(risk, W[k], W_star[k]).epsilon, rel=1e-12)


def test_each_point_may_have_its_own_strength(scattered):
    _, _, _, risk, W, W_star, found = scattered
    lams = np.array([0.0, 0.02])
    chosen = landscape_survey(risk, W[:2], W_star[:2], strengths=lams)
    assert chosen[0].regularised.slack == pytest.approx(chosen[0].randomised.slack, rel=1e-12)
    added = found[1].regularised.slack - found[1].randomised.slack
    assert chosen[1].regularised.slack - chosen[1].randomised.slack == pytest.approx(2 * added, rel=1e-5)


def test_a_bound_of_zero_is_kept_by_zero_alone():
    assert Sides(0.0, 0.0).ratio == 0.0
    assert Sides(1.0, 0.0).ratio == np.inf


def test_bad_input_is_refused(scattered):
    _, X, y, risk, W, W_star, _ = scattered
    smooth = TwoLayer.symmetric(dim=3, width=4, activation="softplus", key=jax.random.key(0))
    with pytest.raises(InputError, match="known for relu3 alone"):
        risk_closeness(RandomisedRisk.of(smooth, X, y, logistic), W[0], W_star[0])
    with pytest.raises(InputError, match=r"One point is W\[None\]"):
        landscape_survey(risk, W[0], W_star[0])
    with pytest.raises(InputError, match="30 numbers λ"):
        landscape_survey(risk, W, W_star, strengths=np.full(2, 0.1))


def test_a_loss_outside_the_contract_is_refused():
    net = TwoLayer.symmetric(dim=1, width=4, activation="relu3", key=jax.random.key(0))
    risk = RandomisedRisk.of(net, np.ones((2, 1)), np.ones(2), squared)
    with pytest.raises(InputError, match="squared is outside Theorem 4"):
        risk_closeness(risk, np.ones((1, 4)), np.ones((1, 4)))
    with pytest.raises(InputError, match="squared is outside Theorem 4"):
        landscape_survey(risk, np.ones((1, 1, 4)), np.ones((1, 4)))
