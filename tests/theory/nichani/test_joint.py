"""Lemma 2 and Theorem 2: W_L against the normal equations and infinite width, W⋆ against its own definitions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import sphere
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special.losses import pseudo_huber, squared
from offtangent.special.sphere import tangent_eigenvalues
from offtangent.taylor import expand
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.penalties import LANDSCAPE_CONSTANT
from offtangent.theory.bai_lee.signs import all_signs, in_float64
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.joint import express_jointly, express_low_degree
from offtangent.theory.nichani.regularisers import R1, R2, R3, R4

RANK = 4  # n₁ for d = 3


@pytest.fixture(scope="module")
def case():
    """A network of eight neurons in float64, with Σ from samples, training inputs and a target of degree 1 + 2."""
    with jax.enable_x64(True):
        net = TwoLayer.symmetric(dim=3, width=8, law="sphere", activation="softplus", key=jax.random.key(1))
        net = in_float64(net)
        X, fresh = (sphere(n, 3, radius=3**0.5, key=jax.random.key(n)) for n in (12, 50))
        target = LowDegreePlusSparse.random(3, degree=1, rank=1, key=jax.random.key(7))
        covariance = FeatureCovariance.of_samples(net, fresh)
        yield covariance, X, target, express_jointly(covariance, X, target, draws=6, key=jax.random.key(0))


@eqx.filter_jit
def values(parts, weights):
    return jnp.stack([R(weights) for R in parts], axis=-1)


@pytest.fixture(scope="module")
def truth(case):
    """R₁, R₂ and R₃ from `theory.nichani.regularisers`: at W⋆, at W_L ± W_Q S and at W⋆S, for half of all signs S."""
    covariance, X, _, star = case
    with jax.enable_x64(True):
        half = all_signs(8)[:, None, :]
        added = star.linear.weights + star.sparse.weights * np.concatenate([half, -half])
        parts = [R1.of(covariance, RANK), R2.of(covariance, RANK), R3.of(covariance, X, RANK)]
        found = np.asarray(values(parts, np.concatenate([star.weights[None], added, star.weights * half])))
    return found[0], found[1:257], found[257:]


def test_w_l_lies_in_the_span_and_its_residual_is_orthogonal_to_it(case):
    covariance, X, target, _ = case
    y = target.low(X)
    found = express_low_degree(covariance, X, y, rank=RANK)
    np.testing.assert_allclose(covariance.project(found.weights, RANK), found.weights, atol=1e-12)
    np.testing.assert_allclose(covariance.linear(X, found.weights) - y, found.residuals, atol=1e-12)
    np.testing.assert_allclose(covariance.images(X, RANK).T @ found.residuals, 0, atol=1e-12)
    assert found.norm2 == pytest.approx(np.sum(found.weights**2))
    assert found.error == pytest.approx(np.mean(found.residuals**2))


def test_fewer_samples_than_directions_are_fitted_with_the_least_norm(case):
    covariance, X, _, _ = case
    found = express_low_degree(covariance, X[:2], np.array([1.0, -2.0]), rank=RANK)
    assert found.error == pytest.approx(0, abs=1e-20)
    images = covariance.images(X[:2], RANK)
    np.testing.assert_allclose(found.coordinates, np.linalg.pinv(images) @ [1.0, -2.0], atol=1e-12)


def test_a_wide_networks_norm_is_the_sum_of_energies_over_eigenvalues():
    """‖W_L‖_F² → ½/ξ_0 + ½/ξ_1 for equal energies of degrees 0 and 1: within 5 % at m = 2000, and the error is 1/m."""
    net = TwoLayer.symmetric(dim=5, width=2000, law="sphere", activation="softplus", key=jax.random.key(3))
    target = LowDegreePlusSparse.random(5, degree=1, rank=0, key=jax.random.key(7))
    X = sphere(300, 5, radius=5**0.5, key=jax.random.key(2))
    found = express_low_degree(FeatureCovariance.of_harmonics(net, degree=12, count=6), X, target.low(X), rank=6)
    assert found.norm2 == pytest.approx(float(np.mean(1 / tangent_eigenvalues("softplus", dim=5, degree=1))), rel=0.05)
    assert found.error < 10 / 2000


def test_its_numbers_are_those_of_the_loss_and_the_regularisers_at_w_star(case, truth):
    covariance, X, target, star = case
    with jax.enable_x64(True):
        W, net = jnp.asarray(star.weights), covariance.net
        sizes = star.sizes
        np.testing.assert_allclose([sizes.r1, sizes.r2, sizes.r3, sizes.r4], [*truth[0], float(R4()(W))], rtol=1e-9)
        _, linear, quadratic = expand(net, net.origin, 2).terms(W, jnp.asarray(X))
        loss = jnp.mean(pseudo_huber(jnp.asarray(target(X)), linear + quadratic))
        assert star.loss == pytest.approx(float(loss), rel=1e-12)
    np.testing.assert_array_equal(star.weights, star.linear.weights + star.sparse.weights * star.signs)
    np.testing.assert_array_equal(star.y, target(X))
    assert star.sizes.r4 == pytest.approx(column_norm(star.weights) ** 8)
    assert star.rank == RANK


def test_what_is_expected_is_the_mean_over_all_signs(case, truth):
    """R₁, R₂, R₃ of W_L + W_Q S, and what S was chosen by, over half of the 2⁸ signs and their opposites."""
    covariance, X, _, star = case
    expected = star.expected
    np.testing.assert_allclose([expected.r1, expected.r2, expected.r3], truth[1].mean(axis=0), rtol=1e-10)
    own = covariance.source.features.X
    flipped = star.sparse.weights * all_signs(8)[:, None, :]
    energies = [np.mean(covariance.linear(own, V) ** 2) + np.mean(covariance.linear(X, V) ** 2) for V in flipped]
    assert star.expected_drawn == pytest.approx(np.mean(energies), rel=1e-10)


def test_the_signs_are_the_best_of_those_drawn(case):
    covariance, X, target, star = case
    assert len(star.drawn) == 6
    V, own = star.sparse.weights * star.signs, covariance.source.features.X
    chosen = np.mean(covariance.linear(own, V) ** 2) + np.mean(covariance.linear(X, V) ** 2)
    assert chosen == pytest.approx(star.drawn.min(), rel=1e-10)
    more = express_jointly(covariance, X, target, draws=200, key=jax.random.key(0))
    assert more.drawn.min() < star.drawn.min()
    assert more.drawn.mean() == pytest.approx(more.expected_drawn, rel=5 * more.drawn.std() / more.expected_drawn / 14)


def test_strengths_make_every_regulariser_worth_epsilon(case):
    star = case[3]
    lam, means = star.strengths(0.2), star.expected
    worth = [lam.r1 * means.r1, lam.r2 * means.r2, lam.r3 * means.r3, LANDSCAPE_CONSTANT * lam.r4 * star.sizes.r4]
    np.testing.assert_allclose(worth, 0.2)


def test_the_flipped_means_are_those_of_all_of_w_star(case, truth):
    found = case[3].flipped()
    np.testing.assert_allclose([found.r1, found.r2, found.r3], truth[2].mean(axis=0), rtol=1e-10)


def test_bad_targets_and_sizes_are_refused(case):
    covariance, X, target, star = case
    key = jax.random.key(0)
    with pytest.raises(InputError, match="rank ≥ 1"):
        express_jointly(covariance, X, LowDegreePlusSparse.random(3, degree=1, rank=0, key=key), key=key)
    with pytest.raises(InputError, match="draws=0"):
        express_jointly(covariance, X, target, draws=0, key=key)
    with pytest.raises(InputError, match="NaN"):
        express_low_degree(covariance, X, np.full(12, np.nan), rank=2)
    with pytest.raises(InputError, match="rank"):
        express_low_degree(covariance, X, np.ones(12), rank=0)
    with pytest.raises(InputError, match="epsilon"):
        star.strengths(0.0)
    small = FeatureCovariance.of_samples(covariance.net, X, count=2)
    with pytest.raises(InputError, match="eigenvectors are known"):
        express_jointly(small, X, target, loss=squared, key=key)
