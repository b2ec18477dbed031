"""Two-layer networks against a NumPy loop, and the laws of their initialisations against their moments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special import activation as named

RNG = np.random.default_rng(0)
INPUTS = RNG.standard_normal((5, 3)).astype(np.float32)
MOVED = jnp.asarray(RNG.standard_normal((3, 8)), jnp.float32)  # one width wherever it does not matter: compiled once
NUMPY = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh, "softplus": lambda z: np.logaddexp(0, z)}


def by_loop(net, W, X, sigma):
    """m^{-1/2} Σ_r a_r σ((w_{0,r} + w_r)ᵀx), in float64."""
    weights, a = np.asarray(net.W0, np.float64) + np.asarray(W, np.float64), np.asarray(net.a)
    return [sum(a[r] * sigma(x @ weights[:, r]) for r in range(net.width)) / np.sqrt(net.width) for x in X]


def cubed(z):
    return z**3


@pytest.mark.parametrize("make", [TwoLayer.gaussian, TwoLayer.symmetric])
@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus"])
def test_the_output_is_the_formula(make, activation):
    net = make(dim=3, width=8, activation=activation, key=jax.random.key(0))
    truth = by_loop(net, MOVED, INPUTS, NUMPY[activation])
    np.testing.assert_allclose(net(MOVED, jnp.asarray(INPUTS)), truth, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(eqx.filter_jit(net)(MOVED, jnp.asarray(INPUTS)), truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("activation", [named("erf"), cubed, lambda z: jnp.where(z < 0, 0.1 * z, z)])
def test_any_activation_will_do(activation):
    net = TwoLayer.gaussian(dim=3, width=8, activation=activation, key=jax.random.key(0))
    expected = activation(jnp.asarray(INPUTS) @ net.W0) @ net.a / 8**0.5
    np.testing.assert_allclose(net(net.origin, jnp.asarray(INPUTS)), expected, rtol=1e-6)


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
@pytest.mark.parametrize(("dim", "width", "n"), [(3, 8, 5), (100, 10_000, 37), (784, 1002, 37), (17, 4096, 1)])
def test_a_symmetric_network_starts_at_exactly_zero(law, dim, width, n):
    """Not only to rounding; the sizes are those at which one matrix product rounds the two halves differently."""
    net = TwoLayer.symmetric(dim=dim, width=width, law=law, activation="softplus", key=jax.random.key(0))
    X = jnp.asarray(np.random.default_rng(1).standard_normal((n, dim)), jnp.float32)
    assert not np.asarray(net(net.origin, X)).any()
    assert not np.asarray(eqx.filter_jit(net)(net.origin, X)).any()


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_a_symmetric_network_has_equal_halves_with_opposite_signs(law):
    net = TwoLayer.symmetric(dim=3, width=8, law=law, key=jax.random.key(0))
    np.testing.assert_array_equal(np.asarray(net.W0)[:, :4], np.asarray(net.W0)[:, 4:])
    np.testing.assert_array_equal(net.a, [1] * 4 + [-1] * 4)


@pytest.mark.parametrize("make", [TwoLayer.gaussian, TwoLayer.symmetric])
def test_parameters_are_the_displacement_from_the_initialisation(make):
    net = make(dim=3, width=8, key=jax.random.key(0))
    moved = TwoLayer(net.W0 + MOVED, net.a, net.activation)
    np.testing.assert_allclose(net(MOVED, jnp.asarray(INPUTS)), moved(moved.origin, jnp.asarray(INPUTS)), rtol=1e-5)
    assert not np.asarray(net.origin).any()
    assert (net.dim, net.width) == (3, 8)


def test_the_symmetric_gaussian_law_makes_preactivations_standard_normal():
    """w₀ᵀx ~ N(0, 1) for ‖x‖ = B_x: Bai & Lee, eq. (3). Mean, variance and fourth moment over 20 000 neurons."""
    x = 3.0 * INPUTS[0] / np.linalg.norm(INPUTS[0])
    net = TwoLayer.symmetric(dim=3, width=40_000, radius=3.0, key=jax.random.key(0))
    z = x @ np.asarray(net.W0, np.float64)[:, :20_000]
    assert abs(z.mean()) <= 4 / np.sqrt(20_000)
    assert abs((z**2).mean() - 1) <= 4 * np.sqrt(2 / 20_000)
    assert abs((z**4).mean() - 3) <= 4 * np.sqrt(96 / 20_000)


def test_the_sphere_law_gives_unit_columns_in_every_direction():
    W0 = np.asarray(TwoLayer.symmetric(dim=3, width=40_000, law="sphere", key=jax.random.key(0)).W0)[:, :20_000]
    np.testing.assert_allclose(np.linalg.norm(W0, axis=0), 1, rtol=1e-6)
    # E w = 0 and E wwᵀ = I/3, with Var w_i = 1/3, Var w_i² = 4/45 and Var w_i w_j = 1/15
    assert abs(W0.mean(axis=1)).max() <= 4 * np.sqrt(1 / 3 / 20_000)
    assert abs(W0 @ W0.T / 20_000 - np.eye(3) / 3).max() <= 4 * np.sqrt(4 / 45 / 20_000)


def test_the_gaussian_law_has_deviation_kappa_and_fair_signs():
    net = TwoLayer.gaussian(dim=4, width=10_000, scale=0.01, key=jax.random.key(0))
    W0 = np.asarray(net.W0, np.float64)
    assert abs((W0**2).mean() / 1e-4 - 1) <= 4 * np.sqrt(2 / W0.size)
    assert abs(W0.mean()) <= 4 * 0.01 / np.sqrt(W0.size)
    assert set(np.asarray(net.a).tolist()) == {-1.0, 1.0}
    assert abs(np.mean(net.a)) <= 4 / np.sqrt(10_000)


def test_weights_and_signs_are_independent():
    net = TwoLayer.gaussian(dim=4, width=10_000, key=jax.random.key(0))
    assert abs(np.mean(np.asarray(net.W0) * np.asarray(net.a), axis=1)).max() <= 4 / np.sqrt(10_000)


def test_kappa_scales_the_weights_alone():
    small, large = (TwoLayer.gaussian(dim=3, width=8, scale=s, key=jax.random.key(0)) for s in (0.5, 2.0))
    np.testing.assert_array_equal(4 * np.asarray(small.W0), large.W0)
    np.testing.assert_array_equal(small.a, large.a)


@pytest.mark.parametrize("make", [TwoLayer.gaussian, TwoLayer.symmetric])
def test_the_same_key_gives_the_same_numbers_and_another_key_others(make):
    one, again, other = (make(dim=3, width=8, key=jax.random.key(seed)) for seed in (0, 0, 1))
    assert eqx.tree_equal(one, again)
    assert not np.array_equal(one.W0, other.W0)


def test_inside_x64_a_network_is_float64():
    with jax.enable_x64(True):
        net = TwoLayer.symmetric(dim=3, width=4, law="sphere", key=jax.random.key(0))
        assert (net.W0.dtype, net.a.dtype) == (np.float64, np.float64)
        assert net(net.origin, jnp.ones((2, 3))).dtype == np.float64


def test_an_odd_width_is_refused_and_the_even_one_named():
    with pytest.raises(InputError, match=r"width=7 is odd.*Use 8"):
        TwoLayer.symmetric(dim=3, width=7, key=jax.random.key(0))


@pytest.mark.parametrize(
    ("make", "settings", "fault"),
    [
        (TwoLayer.gaussian, {"dim": 0, "width": 4}, "dim=0, width=4"),
        (TwoLayer.symmetric, {"dim": 3, "width": 0}, "dim=3, width=0"),
        (TwoLayer.gaussian, {"dim": 3, "width": 4, "scale": 0.0}, "scale=0"),
        (TwoLayer.gaussian, {"dim": 3, "width": 4, "scale": float("nan")}, "scale=nan"),
        (TwoLayer.symmetric, {"dim": 3, "width": 4, "radius": 0.0}, "radius=0"),
        (TwoLayer.symmetric, {"dim": 3, "width": 4, "radius": -1.0}, "radius=-1"),
        (TwoLayer.gaussian, {"dim": 3, "width": 4, "activation": "rleu"}, "Did you mean 'relu'"),
    ],
)
def test_sizes_and_scales_without_meaning_are_refused(make, settings, fault):
    with pytest.raises(InputError, match=fault):
        make(**settings, key=jax.random.key(0))


def test_paired_neurons_must_be_pairs():
    W0, ones = jnp.ones((3, 4)), jnp.array([1.0, 1.0, -1.0, -1.0])
    for weights, signs in ((W0, jnp.ones(4)), (W0.at[0, 0].set(2.0), ones)):
        with pytest.raises(InputError, match=r"paired=True: neurons r and r \+ m/2 must start equal"):
            TwoLayer(weights, signs, named("relu"), paired=True)
    assert TwoLayer(W0, ones, named("relu"), paired=True).paired
    assert jax.jit(lambda W: TwoLayer(W, ones, named("relu"), paired=True).origin.sum())(W0) == 0
