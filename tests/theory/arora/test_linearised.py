"""The linearised sequences against autodiff, their own recursions, and least squares."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.theory import predict_residual
from offtangent.theory.arora.linearised import Features, linearised_distance, linearised_outputs, linearised_weights


@pytest.fixture(params=["relu", "softplus"])
def problem(request):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    net = TwoLayer.gaussian(dim=3, width=50, scale=0.7, activation=request.param, key=jax.random.key(1))
    return net, X, rng.choice([-1.0, 1.0], 6)


def explicit(net, X, W):
    """Z by autodiff, as md × n."""
    with jax.enable_x64(True):
        W0, a, inputs = (jnp.asarray(np.asarray(v), jnp.float64) for v in (net.W0, net.a, X))
        outputs = lambda w: net.activation(inputs @ (W0 + w)) @ a / net.width**0.5  # noqa: E731
        return np.asarray(jax.jit(jax.jacobian(outputs))(jnp.asarray(W, jnp.float64))).reshape(len(X), -1).T


def test_the_features_are_the_jacobian_of_autodiff(problem):
    net, X, y = problem
    for W in (np.zeros((3, 50)), np.random.default_rng(2).standard_normal((3, 50))):
        Z, features = explicit(net, X, W), Features.of(net, X, W)
        np.testing.assert_allclose((features @ y).ravel(), Z @ y, atol=1e-13)
        np.testing.assert_allclose(features.adjoint(W), Z.T @ W.ravel(), atol=1e-13)
        np.testing.assert_allclose(features.gram(), Z.T @ Z, atol=1e-13)
    np.testing.assert_array_equal(Features.of(net, X).slopes, Features.of(net, X, np.zeros((3, 50))).slopes)


@pytest.mark.parametrize("part", [0.3, 1.7])  # of 1/λ_max
def test_outputs_and_weights_are_those_of_their_recursions(problem, part):
    net, X, y = problem
    Z = explicit(net, X, np.zeros((3, 50)))
    H, features = Z.T @ Z, Features.of(net, X)
    spectrum = Spectrum.of(H)
    rate = part / spectrum.values[0]
    steps, u, W = np.arange(40), np.zeros(6), np.zeros(150)
    outputs = linearised_outputs(spectrum, y, rate=rate, steps=steps)
    distance = linearised_distance(spectrum, y, rate=rate, steps=steps)
    for k in steps:
        np.testing.assert_allclose(outputs[k], u, atol=1e-12)
        np.testing.assert_allclose(distance[k], np.linalg.norm(W), atol=1e-11)
        if k in (0, 1, 17):
            np.testing.assert_allclose(linearised_weights(features, y, rate=rate, steps=int(k)).ravel(), W, atol=1e-12)
        u, W = u - rate * H @ (u - y), W - rate * Z @ (Z.T @ W - y)
    norm = predict_residual(spectrum, y, rate=rate, steps=steps).norm
    np.testing.assert_allclose(np.linalg.norm(y - outputs, axis=1), norm, rtol=1e-10)


def test_the_limit_is_the_shortest_solution_and_has_the_length_of_section_52(problem):
    net, X, y = problem
    Z = explicit(net, X, np.zeros((3, 50)))
    limit = linearised_weights(Features.of(net, X), y)
    np.testing.assert_allclose(limit.ravel(), np.linalg.lstsq(Z.T, y)[0], atol=1e-11)
    assert np.linalg.norm(limit) == pytest.approx(np.sqrt(y @ np.linalg.solve(Z.T @ Z, y)), rel=1e-12)
    spectrum = Spectrum.of(Z.T @ Z)
    rate = 1 / spectrum.values[0]
    for_ever = linearised_distance(spectrum, y, rate=rate, steps=np.array([10**9]))
    np.testing.assert_allclose(for_ever, np.linalg.norm(limit), rtol=1e-10)


def test_a_direction_without_curvature_is_never_learnt_and_never_moves():
    flat = Spectrum(np.array([1.0, -1e-17]), np.eye(2))
    steps = np.array([0, 1, 10**12])
    np.testing.assert_array_equal(linearised_outputs(flat, np.ones(2), rate=1.0, steps=steps)[:, 1], 0)
    np.testing.assert_array_equal(linearised_distance(flat, np.ones(2), rate=1.0, steps=steps), [0, 1, 1])


def test_small_curvatures_keep_their_digits():
    """(1 − (1 − 1e-17)^k)/1e-17 is k to 16 digits; 1 − 1e-17 is 1 in float64."""
    tiny = Spectrum(np.array([1.0, 1e-17]), np.eye(2))
    found = linearised_outputs(tiny, np.ones(2), rate=1.0, steps=np.array([3, 1000]))[:, 1]
    np.testing.assert_allclose(found, [3e-17, 1e-14], rtol=1e-12)


def test_what_cannot_converge_is_refused():
    net = TwoLayer.gaussian(dim=2, width=2, key=jax.random.key(0))
    many = Features.of(net, np.random.default_rng(0).standard_normal((9, 2)))  # 9 labels, 4 weights
    with pytest.raises(InputError, match="singular"):
        linearised_weights(many, np.ones(9))
    with pytest.raises(InputError, match="go together"):
        linearised_weights(many, np.ones(9), rate=0.1)
    with pytest.raises(InputError, match="is safe"):
        linearised_outputs(Spectrum.of(np.eye(2)), np.ones(2), rate=2.0, steps=np.arange(2))
    with pytest.raises(InputError, match="-1"):
        linearised_outputs(Spectrum.of(np.eye(2)), np.ones(2), rate=1.0, steps=np.array([-1]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_labels_that_are_no_numbers_are_refused(bad):
    net = TwoLayer.gaussian(dim=3, width=50, key=jax.random.key(0))
    X, y = np.eye(3), np.array([1.0, bad, -1.0])
    spectrum, ahead = Spectrum.of(np.eye(3)), {"rate": 0.1, "steps": np.array([1])}
    for call in (linearised_outputs, linearised_distance):
        with pytest.raises(InputError, match="y has 1 entry that is NaN or infinite"):
            call(spectrum, y, **ahead)
    with pytest.raises(InputError, match="y has 1 entry that is NaN or infinite"):
        linearised_weights(Features.of(net, X), y)
