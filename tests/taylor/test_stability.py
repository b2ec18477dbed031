"""Sharpness against the eigenvalues of the dense Hessian, of whatever sign they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent.networks import TwoLayer
from offtangent.taylor import sharpness
from offtangent.training import HalfSquares


def quadratic(values, seed=0):
    """½ wᵀHw with these eigenvalues of H."""
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    H = jnp.asarray(Q * np.array(values) @ Q.T, jnp.float32)
    return lambda w: 0.5 * w @ H @ w


@pytest.mark.parametrize(
    "values",
    [
        [4.0, 1.0, 0.1],
        [4.0, 3.9, 1.0],
        [5.0, -4.0, 1.0],
        [2.0, 1.0, -5.0],  # the largest in size is negative
        [3.0, 1.0, -3.0],  # two of equal size
        [0.01, -1.0, -2.0],
        [2.0],
        [7.0, 7.0, 7.0],
    ],
)
def test_it_is_the_largest_eigenvalue_and_not_the_largest_in_size(values):
    found = sharpness(quadratic(values), jnp.zeros(len(values)), key=jax.random.key(0))
    assert found.value == pytest.approx(max(values), rel=2e-3)
    assert found.largest_stable_rate == pytest.approx(2 / max(values), rel=2e-3)


def test_its_residual_is_that_of_an_eigenpair_and_its_products_are_counted():
    values = np.geomspace(4.0, 0.1, 40)
    found = sharpness(quadratic(values), jnp.zeros(40), key=jax.random.key(0))
    assert found.residual <= 2e-3 * found.value
    assert 12 <= found.products < 40  # fewer than the matrix has columns


@pytest.mark.parametrize("values", [[-1.0, -2.0], [0.0, 0.0]])
def test_where_nothing_curves_upwards_every_rate_is_stable(values):
    assert sharpness(quadratic(values), jnp.ones(2), key=jax.random.key(0)).largest_stable_rate == np.inf


@pytest.mark.parametrize("activation", ["relu", "softplus"])
def test_for_a_network_it_is_that_of_the_dense_hessian(activation):
    rng = np.random.default_rng(0)
    X, y = jnp.asarray(rng.standard_normal((6, 3)), jnp.float32), jnp.asarray(rng.standard_normal(6), jnp.float32)
    net = TwoLayer.gaussian(dim=3, width=5, activation=activation, key=jax.random.key(0))

    def objective(W):
        return HalfSquares(net)(W, X, y)

    dense = jax.jit(jax.hessian(lambda w: objective(w.reshape(3, 5))))(jnp.zeros(15))
    found = sharpness(objective, net.origin, key=jax.random.key(1))
    assert found.value == pytest.approx(np.linalg.eigvalsh(dense)[-1], rel=2e-3)


def test_a_hundred_dimensions_with_no_gap_to_speak_of_are_found_to_a_percent():
    values = np.linspace(-2.0, 1.0, 100)
    found = sharpness(quadratic(values), jnp.zeros(100), key=jax.random.key(0))
    assert 0.99 < found.value <= 1 + 1e-5


def test_at_a_saddle_descent_oscillates_away_beyond_its_rate_and_not_below():
    """On ½(3a² − 5b²) from b = 0, in floating point: a shrinks below the rate and grows above it."""
    limit = sharpness(
        lambda w: 1.5 * w[0] ** 2 - 2.5 * w[1] ** 2, jnp.zeros(2), key=jax.random.key(0)
    ).largest_stable_rate
    for rate, grows in ((0.98 * limit, False), (1.02 * limit, True)):
        w = np.array([1.0, 0.0])
        for _ in range(100):
            w = w - rate * np.array([3.0, -5.0]) * w
        assert (abs(w[0]) > 1) == grows


def test_parameters_may_be_a_pytree_in_float64():
    with jax.enable_x64(True):
        params = {"a": jnp.zeros(2), "b": jnp.zeros(())}
        found = sharpness(lambda p: jnp.sum(p["a"] ** 2) + 3 * p["b"] ** 2, params, key=jax.random.key(0))
    assert found.value == pytest.approx(6.0, rel=1e-12)


def test_the_same_key_gives_the_same_number():
    first, again = (sharpness(quadratic([4.0, 3.0]), jnp.zeros(2), key=jax.random.key(0)) for _ in range(2))
    assert first == again


def test_a_second_call_at_other_parameters_of_the_same_shapes_compiles_nothing():
    traces = []

    def objective(params):
        traces.append(1)
        return jnp.sum(jnp.cosh(params["w"])) + params["b"] ** 2

    def look(size, at):
        params = {"w": jnp.full(size, at), "b": jnp.asarray(1.0), "steps": jnp.arange(2)}
        return sharpness(objective, params, key=jax.random.key(0))

    assert look(20, 0.0).value == pytest.approx(2.0, rel=2e-3)
    first = len(traces)
    assert look(20, 2.0).value == pytest.approx(np.cosh(2.0), rel=2e-3)
    assert len(traces) == first > 0
    look(21, 0.0)
    assert len(traces) > first
