"""Column signs against enumeration by itertools, and the identities of Section 3 against closed forms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.theory.bai_lee.signs import all_signs, flip, random_signs, sign_identities


@pytest.mark.parametrize("width", [1, 2, 5, 12])
def test_half_of_all_signs_with_their_opposites_are_all_signs(width):
    half = all_signs(width)
    found = {tuple(row) for row in np.concatenate([half, -half])}
    assert found == set(itertools.product((-1, 1), repeat=width))
    assert len(half) == 2 ** (width - 1)


def test_random_signs_are_fair_and_independent_within_four_standard_errors():
    signs = np.asarray(random_signs(6, 20_000, key=jax.random.key(3)), float)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    moments = signs.T @ signs / len(signs)
    assert np.abs(moments - np.eye(6)).max() < 4 / np.sqrt(len(signs))
    assert np.abs(signs.mean(axis=0)).max() < 4 / np.sqrt(len(signs))


def test_random_signs_are_the_same_in_both_precisions():
    with jax.enable_x64(True):
        wide = np.asarray(random_signs(5, 10, key=jax.random.key(0)))
    np.testing.assert_array_equal(wide, random_signs(5, 10, key=jax.random.key(0)))


def test_flip_multiplies_columns_of_each_matrix_and_undoes_itself():
    W = jnp.arange(12.0).reshape(2, 2, 3)
    signs = jnp.array([[1, -1, 1], [-1, -1, 1]], jnp.int8)
    np.testing.assert_array_equal(flip(W, signs)[1], W[1] @ jnp.diag(jnp.array([-1.0, -1.0, 1.0])))
    np.testing.assert_array_equal(flip(flip(W, signs), signs), W)


@pytest.mark.parametrize(("width", "samples"), [(13, None), (0, None), (5, 7), (5, 2)])
def test_too_many_or_odd_signs_are_refused(width, samples):
    with pytest.raises(InputError, match="width=" if samples is None else "even number"):
        all_signs(width) if samples is None else random_signs(width, samples, key=jax.random.key(0))


def problem(width, make=TwoLayer.symmetric):
    net = make(dim=3, width=width, activation="softplus", key=jax.random.key(0))
    rng = np.random.default_rng(width)
    return net, rng.standard_normal((3, width)) * width**-0.25, rng.standard_normal((4, 3))


@pytest.mark.parametrize("make", [TwoLayer.symmetric, TwoLayer.gaussian])
def test_identities_hold_exactly_over_all_signs(make):
    net, W, X = problem(8, make)
    found = sign_identities(net, W, X)
    assert (found.samples, found.exact) == (256, True)
    np.testing.assert_allclose(found.mean, 0, atol=1e-15)
    np.testing.assert_allclose(found.second_moment, found.second_moment_closed, rtol=1e-13)
    assert found.quadratic_change < 1e-15


def test_the_closed_form_and_the_quadratic_part_are_those_of_the_formula():
    net, W, X = problem(8)
    found = sign_identities(net, W, X)
    z, moved = X @ np.asarray(net.W0, float), X @ W
    s = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(found.second_moment_closed, np.mean((s * moved) ** 2, axis=1), rtol=1e-13)
    quadratic = (s * (1 - s) * moved**2) @ np.asarray(net.a, float) / (2 * np.sqrt(8))
    np.testing.assert_allclose(found.quadratic, quadratic, atol=1e-15)


def test_identities_hold_within_four_standard_errors_over_drawn_signs():
    net, W, X = problem(256)
    found = sign_identities(net, W, X, samples=2000, key=jax.random.key(1))
    assert not found.exact
    np.testing.assert_allclose(found.mean, 0, atol=1e-14)  # Σ and −Σ cancel
    assert (np.abs(found.second_moment - found.second_moment_closed) < 4 * found.second_moment_error).all()
    assert (found.second_moment_error < 0.1 * found.second_moment_closed).all()
    assert found.quadratic_change < 1e-15


def test_drawing_needs_a_key_and_inputs_of_the_networks_dimension():
    net, W, X = problem(8)
    with pytest.raises(InputError, match="key="):
        sign_identities(net, W, X, samples=10)
    with pytest.raises(InputError, match="2 columns"):
        sign_identities(net, W, X[:, :2])
