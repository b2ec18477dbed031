"""Lemma 3 and Corollary 1 against dense Hessians averaged over all signs, and JointRisk against its own parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import sphere
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special import Loss
from offtangent.special.losses import pseudo_huber, squared
from offtangent.taylor import expand
from offtangent.taylor.curvature import certificate
from offtangent.theory.bai_lee.signs import all_signs, in_float64
from offtangent.theory.nichani.choice import RegulariserSizes
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.joint import express_jointly
from offtangent.theory.nichani.landscape import JointLandscape
from offtangent.theory.nichani.risk import JointRisk, loss_on_host

DIM, WIDTH, RANK = 3, 6, 4
STRENGTHS = RegulariserSizes(0.7, 0.2, 0.9, 1e-4)
POINTS = np.random.default_rng(3).standard_normal((3, DIM, WIDTH))


def problem(loss=pseudo_huber):
    with jax.enable_x64(True):
        net = TwoLayer.symmetric(dim=DIM, width=WIDTH, law="sphere", activation="softplus", key=jax.random.key(1))
        net = in_float64(net)
        X, fresh = (sphere(n, DIM, radius=DIM**0.5, key=jax.random.key(n)) for n in (9, 40))
        target = LowDegreePlusSparse.random(DIM, degree=1, rank=1, key=jax.random.key(7))
        covariance = FeatureCovariance.of_samples(net, fresh)
        star = express_jointly(covariance, X, target, loss=loss, draws=4, key=jax.random.key(0))
        risks = {
            model: JointRisk.of(covariance, X, star.y, rank=RANK, strengths=STRENGTHS, loss=loss, model=model)
            for model in ("network", "quadratic")
        }
        return star, risks


@pytest.fixture(scope="module")
def samples():
    return problem()


@eqx.filter_jit
def derivatives(risk, W):
    return risk(W), jax.grad(risk)(W), jax.hessian(risk)(W)


@pytest.mark.parametrize("model", ["network", "quadratic"])
def test_every_term_is_that_of_the_risk_and_of_its_hessian_over_all_signs(samples, model):
    star, risks = samples
    land = JointLandscape.of(star, strengths=STRENGTHS, model=model)
    signs = star.weights * all_signs(WIDTH)[:, None, :]
    for W in POINTS:
        found = land.at(W)
        with jax.enable_x64(True):
            loss, gradient, hessian = map(np.asarray, derivatives(risks[model], jnp.asarray(W)))
            opt = float(derivatives(risks[model], jnp.asarray(star.weights))[0])
        step = W - 2 * star.linear.weights + star.covariance.project(W, RANK)
        assert found.loss == pytest.approx(float(loss), rel=1e-7)
        assert found.opt == pytest.approx(opt, rel=1e-7)
        assert found.descent == pytest.approx(float(np.vdot(gradient, step)), rel=1e-6)
        curvature = np.einsum("srm,rmtn,stn->s", signs, hessian, signs).mean()
        assert found.curvature == pytest.approx(float(curvature), rel=1e-6)
        assert land.loss(W) == found.loss


def test_the_quadratic_models_inequality_holds_with_the_proofs_terms_everywhere(samples):
    """At points of all sizes and next to W⋆S; and it is not idle: without those terms, it fails at some."""
    star, _ = samples
    land = JointLandscape.of(star, strengths=STRENGTHS, model="quadratic")
    rng = np.random.default_rng(1)
    far = rng.standard_normal((40, DIM, WIDTH)) * 10 ** rng.uniform(-2, 1, (40, 1, 1))
    near = star.weights * rng.choice([-1.0, 1.0], (40, 1, WIDTH)) + 0.01 * rng.standard_normal((40, DIM, WIDTH))
    found = [land.proven(W) for W in np.concatenate([far, near])]
    assert min(one.slack for one in found) >= 0
    assert max(land.at(W).needed for W in near) > 0
    bare = JointLandscape.of(star, strengths=RegulariserSizes(0.0, 0.0, 0.0, 0.0), model="quadratic")
    assert bare.proven(far[0]).allowance == pytest.approx(bare.remainder(far[0]))


def test_the_remainder_adds_up_the_terms_of_the_proof(samples):
    star, _ = samples
    land = JointLandscape.of(star, strengths=STRENGTHS, model="quadratic")
    W, X, net = POINTS[0], star.X, star.covariance.net
    with jax.enable_x64(True):
        first, second = (np.asarray(net.activation.derivative(k)(X @ np.asarray(net.W0))) for k in (1, 2))
    scale, step = np.asarray(net.a) / WIDTH**0.5, star.covariance.project(W, RANK) - 2 * star.linear.weights
    crossed = np.sum((scale * (first + second * (X @ W)) * (X @ star.weights)) ** 2, axis=1)
    linear = star.covariance.linear
    stray, planted = linear(X, W - star.covariance.project(W, RANK)), linear(X, star.sparse.weights * star.signs)
    mixed = np.sum(scale * second * (X @ W) * (X @ step), axis=1)
    expected = np.mean(crossed + np.abs(stray) + 2 * np.abs(planted) + np.abs(mixed))
    assert land.remainder(W) == pytest.approx(expected, rel=1e-10)


def test_corollary_one_bounds_the_loss_at_any_certified_point(samples):
    star, risks = samples
    land = JointLandscape.of(star, strengths=STRENGTHS)
    for W in (POINTS[0], 0.1 * POINTS[1], star.linear.weights):
        with jax.enable_x64(True):
            point = certificate(risks["network"], W, key=jax.random.key(0))
        found = land.stationary(W, point)
        step = W - 2 * star.linear.weights + star.covariance.project(W, RANK)
        inexact = point.gradient_norm * np.linalg.norm(step) + max(-point.lowest, 0) * np.sum(star.weights**2)
        assert found.inexactness == pytest.approx(float(inexact), rel=1e-6)
        assert found.slack == pytest.approx(land.loss(star.weights) + (inexact + land.at(W).needed) / 2 - land.loss(W))
        assert found.slack >= 0


def test_the_risk_is_the_mean_loss_and_the_weighted_regularisers(samples):
    star, risks = samples
    with jax.enable_x64(True):
        W, net = jnp.asarray(POINTS[0]), star.covariance.net
        terms = expand(net, net.origin, 2).terms(W, jnp.asarray(star.X))
        for model, outputs in (("network", net(W, jnp.asarray(star.X))), ("quadratic", sum(terms))):
            parts, whole = map(np.asarray, eqx.filter_jit(lambda risk, W: (risk.parts(W), risk(W)))(risks[model], W))
            assert parts[0] == pytest.approx(float(jnp.mean(pseudo_huber(star.y, outputs))), rel=1e-12)
            lams = [STRENGTHS.r1, STRENGTHS.r2, STRENGTHS.r3, STRENGTHS.r4]
            assert float(whole) == pytest.approx(parts[0] + parts[1:] @ lams, rel=1e-12)
            assert risks[model].model == model


def test_losses_on_the_host_are_the_losses_of_any_number_of_samples():
    y, f = np.random.default_rng(0).standard_normal((2, 1500))
    root = np.sqrt(1 + (f - y) ** 2)
    for order, expected in enumerate((root - 1, (f - y) / root, root**-3)):
        np.testing.assert_allclose(loss_on_host(pseudo_huber, y, f, order), expected, rtol=1e-9, atol=1e-15)


def test_bad_input_is_refused(samples):
    star, risks = samples
    with pytest.raises(InputError, match="zero or positive"):
        JointLandscape.of(star, strengths=RegulariserSizes(1.0, -1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="quadratic model"):
        JointLandscape.of(star, strengths=STRENGTHS).proven(POINTS[0])
    with pytest.raises(InputError, match="finite"):
        JointLandscape.of(star, strengths=STRENGTHS).at(np.full_like(POINTS[0], np.nan))
    other, _ = problem(loss=Loss("steep", lambda y, z: 3 * (z - y) ** 2))
    with pytest.raises(InputError, match="contract"):
        JointLandscape.of(other, strengths=STRENGTHS, model="quadratic").proven(POINTS[0])
    with jax.enable_x64(True), pytest.raises(InputError, match="eigenvectors are known"):
        JointRisk.of(star.covariance, star.X, star.y, rank=10_000, strengths=STRENGTHS, loss=squared)
    assert risks["network"].loss is pseudo_huber
