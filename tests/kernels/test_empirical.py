"""Kernels of real networks against their Jacobians."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import models
from offtangent._errors import InputError
from offtangent.kernels import blocks, empirical_conjugate, empirical_ntk, passes
from offtangent.kernels.closed_forms import relu_output
from offtangent.kernels.finite import tangent_gram
from offtangent.networks import TwoLayer


@pytest.fixture(autouse=True)
def standard_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


def jacobian(f, params, x):
    """(n, k, P) by jax.jacfwd, all at once."""
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    found = jax.jit(jax.jacfwd(lambda p: f(eqx.combine(p, fixed), x)))(moving)
    n = len(jax.tree.leaves(x)[0])
    k = eqx.filter_eval_shape(f, params, x).size // n
    return np.concatenate([np.asarray(leaf).reshape(n, k, -1) for leaf in jax.tree.leaves(found)], axis=2)


@pytest.mark.parametrize("name", models.ALL)
def test_the_kernel_of_real_models_is_the_product_of_their_jacobians(name):
    with jax.enable_x64(True):
        f, params, x = models.in_float64(models.ALL[name]())
        J = jacobian(f, params, x)
        K = empirical_ntk(f, params, x)
        v = np.random.default_rng(0).standard_normal(K.outputs)
        full = np.einsum("iap,jbp->ijab", J, J)
        np.testing.assert_allclose(K.dense().reshape(full.shape), full, rtol=1e-10, atol=1e-12)
        expected = np.einsum("ijab,jb->ia", full, v.reshape(len(K), -1)).reshape(v.shape)
        np.testing.assert_allclose(K @ v, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("outputs", [(), (3,)], ids=["one output", "three outputs"])
@pytest.mark.parametrize("size", [1 << 26, 1], ids=["at once", "a sample at a time"])
def test_all_forms_are_the_same_however_many_samples_are_done_at_once(outputs, size, monkeypatch):
    monkeypatch.setattr(blocks, "AT_ONCE", size)
    monkeypatch.setattr(passes, "BATCH", 2)
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        params = {"w": jnp.asarray(rng.standard_normal((4, 5))), "a": jnp.asarray(rng.standard_normal((5, *outputs)))}
        x = jnp.asarray(rng.standard_normal((5, 4)))

        def f(params, x):
            return jnp.tanh(x @ params["w"]) @ params["a"]

        J = jacobian(f, params, x)
        K = empirical_ntk(f, params, x)
        full = np.einsum("iap,jbp->ijab", J, J)
        if len(K.outputs) == 1:
            np.testing.assert_allclose(K.dense(), full[:, :, 0, 0], rtol=1e-10, atol=1e-12)
        else:
            np.testing.assert_allclose(K.dense(), full, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(K.diagonal(), np.einsum("ijaa->ija", full), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(K.trace(), np.einsum("ijaa->ij", full), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(K.trace(x[:2]), np.einsum("ijaa->ij", full)[:, :2], rtol=1e-10, atol=1e-12)
        v = np.random.default_rng(0).standard_normal(K.outputs)
        expected = np.einsum("ijab,jb->ia", full, v.reshape(len(K), -1)).reshape(v.shape)
        np.testing.assert_allclose(K @ v, expected, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose((K @ np.stack([v, 2 * v], axis=-1))[..., 1], 2 * expected, rtol=1e-10, atol=1e-11)


def test_a_two_layer_network_has_the_kernel_of_its_closed_form():
    net = TwoLayer.gaussian(dim=4, width=50, activation="tanh", key=jax.random.key(0))
    X = jax.random.normal(jax.random.key(1), (6, 4))
    np.testing.assert_allclose(empirical_ntk(net, net.origin, X).dense(), tangent_gram(net, net.origin, X), rtol=2e-5)


def test_the_conjugate_kernel_of_a_wide_layer_is_the_closed_form():
    """20 independent layers of width 2000: the mean lies within 5 standard errors of the limit."""
    X = np.random.default_rng(0).standard_normal((4, 3))
    m = 2000

    def features(W, x):
        return jax.nn.relu(x @ W) / m**0.5

    draws = np.stack(
        [empirical_conjugate(features, jax.random.normal(jax.random.key(i), (3, m)), X) for i in range(20)]
    )
    z = (draws.mean(axis=0) - relu_output.exact(X)) / (draws.std(axis=0, ddof=1) / np.sqrt(20))
    assert np.abs(z).max() < 5
    W = jax.random.normal(jax.random.key(0), (3, m))
    np.testing.assert_allclose(empirical_conjugate(features, W, X, X[:2]), draws[0][:, :2], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: empirical_ntk(lambda w, x: x * w["n"], {"n": 1}, jnp.ones((2, 2))), "no array of floating-point"),
        (lambda: empirical_ntk(lambda w, x: jnp.sum(x @ w), jnp.ones(2), jnp.ones((2, 2))), r"has shape \(\)"),
        (lambda: empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.ones((2, 2))) @ jnp.ones(3), "that of the outputs"),
    ],
)
def test_what_has_no_kernel_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
