"""Residual and fully connected networks against NumPy loops, their kernels against the weights that are trained."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from offtangent import kernels, taylor
from offtangent._errors import InputError
from offtangent.networks import FullyConnected, ResNet
from offtangent.networks.resnet import DirectHidden, DirectResNet, Hidden

D, K, M = 3, 2, 6
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((5, D)), jnp.float32)
RESNET = ResNet.theory(dim=D, outputs=K, width=M, sigma_v=2.0, key=jax.random.key(0))
DIRECT = DirectResNet.experiment(dim=D, outputs=K, width=M, key=jax.random.key(1))
TWO = FullyConnected.experiment(dim=D, outputs=K, width=M, layers=2, key=jax.random.key(2))
THREE = FullyConnected.experiment(dim=D, outputs=K, width=M, layers=3, key=jax.random.key(3))
NETS = {"resnet": RESNET, "direct": DIRECT, "two": TWO, "three": THREE}


def moved(net, scale=0.3):
    """Displacements away from the origin, the same for the same shapes."""
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda W: jnp.asarray(scale * rng.standard_normal(W.shape), jnp.float32), net.origin)


@eqx.filter_jit
def run(net, params):
    return net(params, X)


def relu(z):
    return np.maximum(z, 0)


def neurons(W0, W, x):
    """σ((W0 + W)(x, 1)) of one sample, a neuron at a time, in float64."""
    weights, x1 = np.asarray(W0, np.float64) + np.asarray(W, np.float64), np.append(np.asarray(x, np.float64), 1)
    return np.array([relu(weights[:, j] @ x1) for j in range(weights.shape[1])])


def test_the_residual_network_is_the_formula_of_section_6():
    W, V = moved(RESNET)
    A = np.asarray(RESNET.A, np.float64)
    outputs, firsts = run(RESNET, Hidden(W, V)), eqx.filter_jit(RESNET.first)(Hidden(W, V), X)
    for x, found, first in zip(X, outputs, firsts, strict=True):
        out1 = A @ neurons(RESNET.W0, W, x)
        np.testing.assert_allclose(first, out1, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, out1 + A @ neurons(RESNET.V0, V, out1), rtol=1e-5, atol=1e-6)


def test_the_direct_network_is_equation_2_1():
    W, U = moved(DIRECT)
    A = np.asarray(DIRECT.A, np.float64)
    for x, found in zip(X, run(DIRECT, DirectHidden(W, U)), strict=True):
        h = neurons(DIRECT.W0, W, x)
        np.testing.assert_allclose(found, A @ (h + neurons(DIRECT.U0, U, h)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("net", [TWO, THREE])
def test_a_fully_connected_network_is_its_layers_one_after_another(net):
    params = moved(net)
    for x, found in zip(X, run(net, params), strict=True):
        for W0, W in zip(net.hidden0, params, strict=True):
            x = neurons(W0, W, x)
        np.testing.assert_allclose(found, np.asarray(net.A) @ x, rtol=1e-5, atol=1e-6)


def test_both_parametrisations_are_one_function_where_u_is_va():
    params = moved(RESNET)
    direct = RESNET.direct(params)
    np.testing.assert_allclose(run(direct, direct.origin), run(RESNET, params), rtol=1e-5, atol=1e-6)


def test_initial_weights_and_biases_have_mean_zero_and_the_variance_stated():
    """Within four standard errors: 1/√N of the mean, 1/√(2N) of the standard deviation; biases are the last rows."""
    sizes, key = {"dim": 99, "outputs": 60, "width": 400}, jax.random.key(0)
    theory = ResNet.theory(**sizes, sigma_v=3.0, key=key)
    chosen = ResNet.theory(**sizes, sigma_v=3.0, sigma_w=0.5, key=key)
    tried = ResNet.experiment(**sizes, key=key)
    three = FullyConnected.experiment(**sizes, layers=3, key=key)
    laws = [
        (theory.W0, 400**-0.125), (theory.V0, 3 / 20), (theory.A, 1 / 20), (chosen.W0, 0.5),
        (tried.W0, 99**-0.5), (tried.V0, 1 / 20), (tried.A, 1 / 20),
        (three.hidden0[0], 99**-0.5), (three.hidden0[1], 1 / 20), (three.A, 1 / 20),
        (DirectResNet.experiment(**sizes, key=key).U0, 1 / 20),
    ]  # fmt: skip
    for weights, size in laws:
        whole = np.asarray(weights) / size
        for part in (whole, whole[-1]):
            assert abs(part.mean()) < 4 / np.sqrt(part.size)
            assert abs(part.std() - 1) < 4 / np.sqrt(2 * part.size)


@pytest.mark.parametrize("name", ["resnet", "three"])
def test_many_keys_at_once_are_the_networks_one_by_one(name):
    """Through filter_vmap over keys and over the networks it gives."""
    kinds = {
        "resnet": lambda key: ResNet.theory(dim=D, outputs=K, width=M, sigma_v=2.0, key=key),
        "three": lambda key: FullyConnected.experiment(dim=D, outputs=K, width=M, layers=3, key=key),
    }
    make, params = kinds[name], moved(NETS[name])
    keys = jax.random.split(jax.random.key(4), 3)
    nets = eqx.filter_vmap(make)(keys)
    together = eqx.filter_vmap(lambda net, params: net(params, X), in_axes=(0, None))(nets, params)
    np.testing.assert_allclose(together, [run(make(key), params) for key in keys], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["resnet"])
def test_the_tangent_model_is_the_directional_derivative_in_the_hidden_weights(name):
    """(f(hΔ) − f(−hΔ)) / 2h in float64; A, which is no parameter, stays out of it."""
    with jax.enable_x64(True):
        net = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64), NETS[name])
        step = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64), moved(net))
        inputs, h = jnp.asarray(np.asarray(X), jnp.float64), 1e-6
        found = taylor.linearise(net, net.origin).terms(step, inputs)
        ahead, behind = (
            net(jax.tree.map(lambda W: h * W, step), inputs),
            net(jax.tree.map(lambda W: -h * W, step), inputs),
        )
        np.testing.assert_allclose(found[0], net(net.origin, inputs), rtol=1e-12)
        np.testing.assert_allclose(found[1], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["resnet", "two"])
def test_the_tangent_kernel_is_of_the_hidden_weights_only(name):
    """JJᵀ with J taken weight by weight from the tangent model: as many columns as hidden weights, none for A."""
    net = NETS[name]
    flat, back = ravel_pytree(net.origin)
    model = taylor.linearise(net, net.origin)
    J = np.asarray(jax.vmap(lambda e: model.terms(back(e), X)[1])(jnp.eye(len(flat))))  # weights, n, k
    truth = np.einsum("pia,pjb->ijab", J, J)
    np.testing.assert_allclose(kernels.empirical_ntk(net, net.origin, X).dense(), truth, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet", "three"])
def test_the_conjugate_kernel_is_that_of_the_output_matrix(name):
    """∂out_r/∂A_r with the hidden layers held: the features, alike for every output r."""
    net = NETS[name]
    params = moved(net)
    features = eqx.filter_jit(net.features)(params, X)
    J = jax.jacobian(lambda A: features @ A.T)(net.A)  # n, k, k, m
    truth = np.einsum("iap,jap->ij", J[:, 0], J[:, 0])
    found = kernels.empirical_conjugate(net.features, params, X)
    np.testing.assert_allclose(found, truth, rtol=1e-5)
    np.testing.assert_allclose(run(net, params), features @ net.A.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["resnet", "three"])
def test_displacements_of_another_shape_are_refused(name):
    net = NETS[name]
    wrong = jax.tree.map(lambda W: W[:, :1], net.origin)
    with pytest.raises(InputError, match=r"At the initialisation they are net\.origin"):
        net(wrong, X)


@pytest.mark.parametrize("name", ["resnet", "three"])
def test_inputs_of_another_dimension_are_refused(name):
    with pytest.raises(InputError, match=rf"expected \(n, {D}\)"):
        NETS[name](NETS[name].origin, jnp.ones((2, D + 1)))


def test_an_initial_size_of_zero_is_refused():
    with pytest.raises(InputError, match="sigma_v=0"):
        ResNet.theory(dim=D, outputs=K, width=M, sigma_v=0.0, key=jax.random.key(0))
