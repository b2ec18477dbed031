"""R₁, R₂, R₃ of WS against the regularisers themselves at every one of the 2^m signs, and integrals over the sphere."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent._host import on_host
from offtangent.data import sphere
from offtangent.networks import TwoLayer
from offtangent.theory.bai_lee.signs import all_signs, in_float64
from offtangent.theory.nichani.bilinear import FeatureForms
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.regularisers import R1, R2, R3
from offtangent.theory.nichani.signed import SignedRegularisers, neuron_outputs, sign_energy

RNG = np.random.default_rng(4)
W, V = RNG.standard_normal((2, 3, 8))
RANK = 4


def network(paired=True):
    net = TwoLayer.symmetric(dim=3, width=8, law="sphere", activation="sigmoid(1.0)", key=jax.random.key(1))
    net = net if paired else TwoLayer(jnp.roll(net.W0, 1, axis=0).at[0].mul(-1), net.a, net.activation)
    return in_float64(net)


@pytest.fixture(scope="module", params=["samples", "harmonics", "samples of unpaired neurons"])
def case(request):
    """A covariance in float64, training inputs, and R₁ to R₃ at rows of weights, from `theory.nichani.regularisers`."""
    with jax.enable_x64(True):
        net = network("unpaired" not in request.param)
        X, fresh = (sphere(n, 3, radius=3**0.5, key=jax.random.key(n)) for n in (7, 40))
        made = request.param == "harmonics"
        covariance = FeatureCovariance.of_harmonics(net) if made else FeatureCovariance.of_samples(net, fresh)
        parts = [R1.of(covariance, RANK), R2.of(covariance, RANK), R3.of(covariance, X, RANK)]
        yield covariance, X, lambda weights: np.asarray(values(parts, np.resize(weights, (128, 3, 8))))[: len(weights)]


@eqx.filter_jit
def values(parts, weights):  # of 128 matrices, whoever asks: compiled once
    return jnp.stack([R(weights) for R in parts], axis=-1)


def test_every_sign_gives_the_regularisers_own_values(case):
    covariance, X, truth = case
    signed, signs = SignedRegularisers.of(covariance, X, W, rank=RANK), all_signs(8)[::5]
    expected = truth(W * signs[:, None, :])
    found = np.stack([signed.r1(signs), signed.r2(signs), signed.r3(signs)], axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)  # W₀ was rounded to float32
    added = truth(covariance.project(V, RANK) + W * signs[:, None, :])
    start = covariance.coordinates(V, RANK)
    np.testing.assert_allclose(signed.r2(signs, start=start), added[:, 1], rtol=1e-6)
    np.testing.assert_allclose(added[:, [0, 2]], expected[:, [0, 2]], rtol=1e-6)  # which W_L leaves alone


def test_the_mean_over_signs_is_that_of_all_of_them(case):
    covariance, X, truth = case
    expected = truth(W * all_signs(8)[:, None, :]).mean(axis=0)  # −S gives what S gives
    means = SignedRegularisers.of(covariance, X, W, rank=RANK).means()
    np.testing.assert_allclose([means.r1, means.r2, means.r3], expected, rtol=1e-6, atol=1e-8)


def test_neurons_outputs_add_up_to_the_linear_term(case):
    covariance, X, _ = case
    outputs = neuron_outputs(covariance.net, X, W)
    np.testing.assert_allclose(outputs.sum(axis=1), covariance.linear(X, W), atol=1e-13)
    np.testing.assert_allclose(outputs[:, 2], covariance.linear(X, W * (np.arange(8) == 2)), atol=1e-14)


def test_the_forms_are_what_the_regularisers_are_squares_of(case):
    """By polarisation: R(V + W) − R(V − W) = 4R(V, W)."""
    covariance, X, truth = case
    forms = FeatureForms.of(covariance, X, RANK)
    plus, minus = truth(np.stack([V + W, V - W]))
    np.testing.assert_allclose(forms.of_pair(forms.image(V), forms.image(W)), (plus - minus) / 4, atol=2e-7)
    np.testing.assert_allclose(forms.image(W).linear, covariance.linear(X, W), atol=1e-13)


def test_the_energy_over_signs_is_the_mean_over_the_whole_sphere():
    """Σ_r E f_r(x)² by quadrature over S²(√3), not by harmonics."""
    z, weights = np.polynomial.legendre.leggauss(40)
    angle, ring = 2 * np.pi * np.arange(80) / 80, np.sqrt(1 - z**2)[:, None]
    x = np.stack([ring * np.cos(angle), ring * np.sin(angle), np.broadcast_to(z[:, None], (40, 80))], axis=-1)
    X = 3**0.5 * x.reshape(-1, 3)
    with jax.enable_x64(True):
        net = network()
        slopes = on_host(net.activation.derivative(1), X @ np.asarray(net.W0))
        expected = np.repeat(weights / 160, 80) @ np.sum((slopes * (X @ W)) ** 2, axis=1) / 8
        assert sign_energy(net, W) == pytest.approx(expected, rel=1e-6)


def test_the_energies_of_all_unit_directions_add_up_to_the_trace_of_the_covariance():
    """So that a random direction u has E f_L(u)² = ‖u‖² tr Σ/(md), and tr Σ = d E[σ'²]."""
    with jax.enable_x64(True):
        net = network()
        trace = FeatureCovariance.of_harmonics(net).trace
        found = sum(sign_energy(net, one.reshape(3, 8)) for one in np.eye(24))
    assert found == pytest.approx(trace, rel=1e-12)


def test_wrong_signs_and_other_starts_are_refused(case):
    covariance, X, _ = case
    signed = SignedRegularisers.of(covariance, X, W, rank=RANK)
    with pytest.raises(InputError, match="rows of 8 numbers"):
        signed.r1(np.ones((2, 7)))
    with pytest.raises(InputError, match="−1 or 1"):
        signed.r3(np.zeros((2, 8)))
    with pytest.raises(InputError, match="eigenvectors are known"):
        SignedRegularisers.of(covariance, X, W, rank=1000)
    with pytest.raises(InputError, match="length 1"):
        sign_energy(TwoLayer(2 * covariance.net.W0, covariance.net.a, covariance.net.activation), W)
