"""The tangent kernel at finite width against autodiff, against the paper's Z, and against its limit H∞."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.kernels import relu_hidden
from offtangent.kernels.finite import tangent_gram
from offtangent.networks import TwoLayer
from offtangent.special import activation as named
from offtangent.theory.arora.widths import gram_deviation_bound


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((6, 4))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def displaced(activation):
    net = TwoLayer.gaussian(dim=4, width=10, activation=activation, key=jax.random.key(0))
    return net, jnp.asarray(0.1 * np.random.default_rng(1).standard_normal((4, 10)), jnp.float32)


@pytest.mark.parametrize("activation", ["relu", "softplus", "tanh"])
def test_it_is_the_jacobian_times_its_transpose(activation, X):
    net, W = displaced(activation)
    J = np.asarray(jax.jit(jax.jacobian(lambda W: net(W, jnp.asarray(X))))(W)).reshape(len(X), -1)
    np.testing.assert_allclose(tangent_gram(net, W, jnp.asarray(X)), J @ J.T, rtol=1e-5, atol=1e-6)


def test_for_the_relu_it_is_the_papers_ztz(X):
    """Section 3.4: the block of Z for neuron r and sample i is m^{-1/2} a_r 1{w_rᵀx_i ≥ 0} x_i."""
    net, W = displaced("relu")
    w, a = np.asarray(net.W0) + np.asarray(W), np.asarray(net.a)
    Z = np.concatenate([a[r] * (X @ w[:, r] >= 0) * X.T / np.sqrt(net.width) for r in range(net.width)])
    assert Z.shape == (4 * 10, 6)
    np.testing.assert_allclose(tangent_gram(net, W, jnp.asarray(X)), Z.T @ Z, rtol=1e-5, atol=1e-7)


def test_a_gram_of_many_networks_is_h_infinity_on_average(X):
    """E H(0) = H∞ at any width, here over 400 seeds of width 10."""
    nets = [TwoLayer.gaussian(dim=4, width=10, scale=0.01, key=jax.random.key(seed)) for seed in range(400)]
    grams = np.stack([tangent_gram(net, net.origin, jnp.asarray(X)) for net in nets])
    standard_error = grams.std(axis=0, ddof=1) / np.sqrt(len(grams)) + 1e-7
    assert (abs(grams.mean(axis=0) - relu_hidden.exact(X)) <= 4 * standard_error).all()


@pytest.mark.parametrize("width", [100, 1000])
def test_its_distance_from_h_infinity_keeps_the_bound_of_lemma_c3(width, X):
    """In at least a fraction 1 − δ of the seeds; Hoeffding with a union bound is generous, so in all of them here."""
    H = relu_hidden.exact(X)
    bound = gram_deviation_bound(len(X), width, delta=0.5)
    for seed in range(40):
        net = TwoLayer.gaussian(dim=4, width=width, key=jax.random.key(seed))
        assert np.linalg.norm(tangent_gram(net, net.origin, jnp.asarray(X)) - H) <= bound


def test_it_keeps_float64(X):
    with jax.enable_x64(True):
        W0, a = jnp.asarray(np.random.default_rng(1).standard_normal((4, 10))), jnp.ones(10)
        net = TwoLayer(W0, a, named("relu"))
        H = tangent_gram(net, net.origin, jnp.asarray(X, jnp.float64))
    assert H.dtype == np.float64
