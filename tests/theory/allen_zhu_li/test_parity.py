"""Parities by two-layer networks: on all corners through the library's own network, and against the best neuron."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.theory.allen_zhu_li.parity import low_norm_parity, padded_copies, parity_correlation


def corners(dim):
    return np.array(list(itertools.product((-1.0, 1.0), repeat=dim))) / math.sqrt(dim)


def outputs(weights, X):
    """AᵀσWx with a = +1/√m for the first half and −1/√m for the second, by networks.TwoLayer."""
    d, m = weights.shape
    signs = jnp.concatenate([jnp.ones(m // 2), -jnp.ones(m // 2)])
    net = TwoLayer(jnp.zeros((d, m)), signs, activation("relu"))
    return np.asarray(net(jnp.asarray(weights, jnp.float32), jnp.asarray(X, jnp.float32)))


@pytest.mark.parametrize(
    ("coordinates", "width"), [((1, 4), 8), ((0, 2, 3, 5), 50), ((0, 1, 2, 3, 4, 5), 200), ((2,), 6)]
)
def test_the_network_is_the_parity_times_its_fit_on_every_corner(coordinates, width):
    X = corners(7)
    y = (math.sqrt(7) * X[:, list(coordinates)]).prod(axis=1)
    found = low_norm_parity(7, coordinates, width, fit=0.8)
    np.testing.assert_allclose(outputs(found.weights, X), 0.8 * y, atol=1e-4)
    assert found.error == pytest.approx(np.mean((0.8 * y - y) ** 2))


@pytest.mark.parametrize("dim", [6, 40])
def test_the_norm_is_what_the_formula_says_and_below_the_paper_s_for_its_errors(dim):
    """Appendix A.1 lists ‖W⋆‖_F/√d ≈ 9.7, 12.5, 13.8 with errors 0.12, 0.037, 0.011."""
    exact = low_norm_parity(dim, range(6), 256)
    assert exact.norm == pytest.approx(math.sqrt(dim) * 32 / math.sqrt(6))
    for error, norm in ((0.12, 9.7), (0.037, 12.5), (0.011, 13.8)):
        found = low_norm_parity(dim, range(6), 200, fit=1 - math.sqrt(error))
        assert found.error == pytest.approx(error)
        assert found.norm / math.sqrt(dim) < norm


@pytest.mark.parametrize("k", [2, 4, 6])
def test_no_single_neuron_sees_more_of_the_parity(k):
    """Gradient ascent from 300 random directions on |E σ(⟨w, x⟩)y| over ‖w‖ = 1."""
    X = jnp.asarray(corners(k), jnp.float32)
    y = jnp.prod(jnp.sign(X), axis=1)

    def seen(w):
        return -jnp.abs(jnp.mean(jnp.maximum(X @ (w / jnp.linalg.norm(w)), 0) * y))

    def step(w, rate):
        return w - rate * jax.vmap(jax.grad(seen))(w), None

    start = jax.random.normal(jax.random.key(0), (300, k))
    w, _ = jax.lax.scan(step, start, 2.0 * 0.99 ** jnp.arange(600.0))
    best = float(-jax.vmap(seen)(w).min())
    assert 0.99 * abs(parity_correlation(k)) <= best <= abs(parity_correlation(k)) * (1 + 1e-5)


def test_padding_and_copying_keep_outputs_and_norm():
    small = np.random.default_rng(0).standard_normal((3, 4))
    large = padded_copies(small, 5, (4, 0, 2), copies=3)
    X = corners(5)
    parts = X[:, [4, 0, 2]] * math.sqrt(5 / 3)
    np.testing.assert_allclose(outputs(large, X), outputs(small, parts), rtol=1e-4, atol=1e-5)
    assert np.linalg.norm(large) / math.sqrt(5) == pytest.approx(np.linalg.norm(small) / math.sqrt(3))


def test_the_rademacher_bound_falls_with_the_samples():
    found = low_norm_parity(6, range(6), 64)
    assert found.rademacher(400) == pytest.approx(2 * 32 / 20)


@pytest.mark.parametrize(
    ("coordinates", "width", "why"), [((0, 1, 2), 64, "odd"), ((0, 1), 3, "even"), ((0, 9), 8, "0 to 5")]
)
def test_what_cannot_be_built_is_refused(coordinates, width, why):
    with pytest.raises(InputError, match=why):
        low_norm_parity(6, coordinates, width)


def test_more_corners_than_can_be_listed_are_refused_with_the_limit_and_the_norm():
    norm = math.sqrt(40 / 30) / abs(parity_correlation(30))
    with pytest.raises(InputError, match=rf"at most 2\^20 are listed.*= {norm:.4g}".replace("+", r"\+")):
        low_norm_parity(40, range(30), 2**31)


def test_the_norm_in_the_refusal_is_that_of_the_network_where_it_can_be_built():
    built = low_norm_parity(9, range(8), 512, fit=0.5)
    assert built.norm == pytest.approx(0.5 * math.sqrt(9 / 8) / abs(parity_correlation(8)))
