"""Records of where W went, against dense projections and Taylor terms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.taylor import expand
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.escape import Energies, Movement, furthest

NET = TwoLayer.symmetric(dim=4, width=20, law="sphere", activation="sigmoid(1.0)", key=jax.random.key(0))
POPULATION = FeatureCovariance.of_samples(NET, data.sphere(80, 4, radius=2.0, key=jax.random.key(1)))
TRAINING = FeatureCovariance.of_samples(NET, data.sphere(12, 4, radius=2.0, key=jax.random.key(2)))
W = np.random.default_rng(0).standard_normal((2, 4, 20))


def lengths(parts):
    return [np.linalg.norm(part) for part in parts]


@pytest.mark.parametrize("source", ["samples", "harmonics"])
def test_parts_are_the_lengths_of_the_projections_and_those_of_q_add_up(source):
    covariance = POPULATION if source == "samples" else FeatureCovariance.of_harmonics(NET)
    blocks = covariance.blocks(1)
    movement = Movement.of(covariance, blocks, training=TRAINING)
    assert movement.names == ("Q1", "Q2", "Q3", "V2")
    found = np.asarray(jax.jit(movement)(jnp.asarray(W, jnp.float32)))
    truth = [[*lengths(covariance.split(one, *blocks.ends)), lengths(TRAINING.split(one, 5, 12))[1]] for one in W]
    np.testing.assert_allclose(found, truth, rtol=2e-4)
    np.testing.assert_allclose((found[:, :3] ** 2).sum(axis=1), (W**2).sum(axis=(1, 2)), rtol=1e-4)


def test_a_movement_inside_one_block_is_seen_there_alone():
    inside = POPULATION.combine(np.r_[np.zeros(5), np.ones(9)])  # of length 3, in Q₂ = 6th to 14th
    found = jax.jit(Movement.of(POPULATION, (5, 14)))(jnp.asarray(inside, jnp.float32))
    np.testing.assert_allclose(found, [0.0, 3.0, 0.0], atol=1e-4)


def test_energies_are_the_mean_squares_of_the_taylor_terms():
    X = data.sphere(30, 4, radius=2.0, key=jax.random.key(3))
    batch = jnp.asarray(W, jnp.float32)
    found = jax.jit(Energies.of(NET, X))(batch)
    model = expand(NET, NET.origin, 2)
    _, linear, quadratic = jax.jit(jax.vmap(lambda W: model.terms(W, jnp.asarray(X, jnp.float32))))(batch)
    truth = np.stack([np.mean(np.square(term), axis=1) for term in (linear, quadratic)], axis=1)
    np.testing.assert_allclose(found, truth, rtol=1e-4)


def test_a_random_direction_hardly_moves_the_linear_term():
    """V-E4: E_u f_L(x; u)² = ‖u‖² tr Σ/(md); the mean over 400 Gaussian u, within four standard errors."""
    draws = jnp.asarray(np.random.default_rng(1).standard_normal((400, 4, 20)), jnp.float32)
    X = data.sphere(80, 4, radius=2.0, key=jax.random.key(1))  # those of the covariance
    energies = np.asarray(jax.jit(Energies.of(NET, X))(draws))[:, 0]
    assert abs(energies.mean() - POPULATION.trace) < 4 * energies.std() / 20


def test_furthest_is_the_longest_column_in_units_of_the_tangent_regime():
    np.testing.assert_allclose(furthest(jnp.asarray(W)), np.sqrt(20) * np.linalg.norm(W, axis=1).max(axis=1), rtol=1e-6)


def test_blocks_that_are_not_known_are_refused():
    with pytest.raises(InputError, match="blocks=\\(5, 3\\)"):
        Movement.of(POPULATION, (5, 3))
    with pytest.raises(InputError, match="eigenvectors are known"):
        Movement.of(POPULATION, (5, 300))
    with pytest.raises(InputError, match="rank=13"):
        Movement.of(POPULATION, (5, 14), training=TRAINING, rank=13)
