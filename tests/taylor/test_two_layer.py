"""Closed forms of two-layer networks against the generic expansion, and what their activation refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.taylor import expand
from offtangent.taylor.expansion import Expansion

X = jax.random.normal(jax.random.key(1), (7, 5))


def nets(activation: str) -> list[TwoLayer]:
    key = jax.random.key(0)
    return [
        TwoLayer.symmetric(dim=5, width=12, activation=activation, key=key),
        TwoLayer.gaussian(dim=5, width=11, activation=activation, key=key),
    ]


@pytest.mark.parametrize(
    ("activation", "order"), [("softplus", 6), ("tanh", 4), ("relu3", 3), ("quadratic", 4), ("relu", 1)]
)
@pytest.mark.parametrize("which", [0, 1], ids=["symmetric", "gaussian"])
@pytest.mark.parametrize("away", [0.0, 0.3], ids=["at W₀", "elsewhere"])
def test_closed_terms_are_those_of_nested_derivatives(activation, order, which, away):
    with jax.enable_x64(True):
        net = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), nets(activation)[which])
        origin = away * jax.random.normal(jax.random.key(5), net.W0.shape, jnp.float64)
        W = origin + 0.5 * jax.random.normal(jax.random.key(2), net.W0.shape, jnp.float64)
        x = X.astype(jnp.float64)
        closed, generic = expand(net, origin, order), Expansion(net, origin, order)
        for ours, theirs in zip(closed.terms(W, x), generic.terms(W, x), strict=True):
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            np.asarray(closed(W, x)), np.asarray(sum(closed.terms(W, x))), rtol=1e-12, atol=1e-14
        )
        np.testing.assert_allclose(np.asarray(closed.on(x)(W)), np.asarray(closed(W, x)), rtol=1e-12, atol=1e-14)


def test_the_quadratic_term_is_the_bilinear_form_of_the_paper():
    """½ m^{-1/2} ⟨xxᵀ, W D_x Wᵀ⟩ with D_x = diag(a_r σ''(w_{0,r}ᵀx)), Bai & Lee, eq. (2)."""
    net = nets("softplus")[0]
    W = jax.random.normal(jax.random.key(2), net.W0.shape)
    _, _, quadratic = expand(net, net.origin, 2).terms(W, X)
    for x, value in zip(np.asarray(X, float), quadratic, strict=True):
        z = np.asarray(net.W0, float).T @ x
        D = np.diag(np.asarray(net.a, float) * np.exp(z) / (1 + np.exp(z)) ** 2)
        WD = np.asarray(W, float) @ D @ np.asarray(W, float).T
        np.testing.assert_allclose(value, np.sum(np.outer(x, x) * WD) / (2 * np.sqrt(net.width)), rtol=1e-4)


def test_an_order_beyond_the_derivatives_of_the_activation_is_refused():
    net = nets("relu")[0]
    with pytest.raises(InputError, match="derivatives up to order 1"):
        expand(net, net.origin, 2)
    with pytest.raises(InputError, match="derivatives up to order 3"):
        expand(nets("relu3")[1], nets("relu3")[1].origin, 4)


def test_weights_of_another_shape_are_refused():
    net = nets("tanh")[0]
    with pytest.raises(InputError, match=r"shape \(5, 4\)"):
        expand(net, net.origin, 2)(jnp.ones((5, 4)), X)
    with pytest.raises(InputError, match=r"shape \(5, 4\)"):
        expand(net, jnp.ones((5, 4)), 2)


def test_it_works_inside_a_jitted_function_where_nothing_is_known_of_the_origin():
    net = nets("softplus")[0]
    W = 0.3 * jnp.ones_like(net.W0)
    inside = jax.jit(lambda origin: expand(net, origin, 2)(W, X))
    np.testing.assert_allclose(inside(net.origin), expand(net, net.origin, 2)(W, X), rtol=1e-5, atol=1e-6)


def test_on_fixed_inputs_its_gradient_is_the_same():
    net = nets("softplus")[0]
    model = expand(net, net.origin, 2)
    fixed, W = model.on(X), 0.3 * jax.random.normal(jax.random.key(3), net.W0.shape)
    ours = jax.grad(lambda W: jnp.sum(fixed(W) ** 2))(W)
    np.testing.assert_allclose(ours, jax.grad(lambda W: jnp.sum(model(W, X) ** 2))(W), rtol=1e-5, atol=1e-7)
