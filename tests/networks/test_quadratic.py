"""The quadratic networks against their formulas, written out; and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import PolynomialNet, QuadraticNet

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 3)).astype(np.float32)


def test_two_layers_are_a_quadratic_form_with_signs():
    net = QuadraticNet(dim=3, width=8)
    W = net.init(scale=2.0, key=jax.random.key(1))
    A = np.diag([1.0] * 4 + [-1.0] * 4)
    S = np.asarray(W, float) @ A @ np.asarray(W, float).T
    np.testing.assert_allclose(net(W, jnp.asarray(X)), np.einsum("ni,ij,nj->n", X, S, X), rtol=2e-5, atol=1e-5)
    assert not net(net.origin, jnp.asarray(X)).any()


def test_initial_weights_have_their_variance():
    W = QuadraticNet(dim=100, width=400).init(scale=0.3, key=jax.random.key(2))
    assert float(jnp.var(W)) == pytest.approx(0.09 / 100, rel=4 * (2 / W.size) ** 0.5)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_three_layers_are_two_on_powers_of_random_products(power):
    net = PolynomialNet.gaussian(dim=3, features=4, width=10, power=power, scale=0.5, key=jax.random.key(3))
    W = net.init(key=jax.random.key(4))
    Z = (X @ np.asarray(net.R).T) ** power
    np.testing.assert_allclose(net.features(jnp.asarray(X)), Z, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(net(W, jnp.asarray(X)), QuadraticNet(4, 10)(W, jnp.asarray(Z)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: QuadraticNet(3, 7), "width=7 is odd.*Use 8"),
        (lambda: QuadraticNet(0, 8), "dim=0"),
        (lambda: PolynomialNet.gaussian(dim=3, features=4, width=10, power=0, key=jax.random.key(0)), "power=0"),
        (lambda: PolynomialNet(jnp.ones((4, 3)), 0, QuadraticNet(4, 10)), "power=0"),
        (lambda: PolynomialNet(jnp.ones((4, 3)), 2, QuadraticNet(5, 12)), r"R has shape \(4, 3\): expected \(5, d\)"),
        (lambda: QuadraticNet(3, 8)(jnp.zeros((3, 6)), jnp.zeros((2, 3))), r"W has shape \(3, 6\): expected \(3, 8\)"),
        (lambda: QuadraticNet(3, 8)(jnp.zeros((3, 8)), jnp.zeros((2, 4))), r"X has shape \(2, 4\): expected \(n, 3\)"),
    ],
)
def test_wrong_shapes_and_numbers_are_refused(make, text):
    with pytest.raises(InputError, match=text):
        make()
