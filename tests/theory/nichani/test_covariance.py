"""The feature covariance against dense matrices, Monte Carlo, and the infinite width's eigenvalues."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.sphere import harmonic_dimension, tangent_eigenvalues
from offtangent.taylor import expand
from offtangent.theory.bai_lee.signs import in_float64
from offtangent.theory.nichani import tangent
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.feature_alignment import covariance_distance
from offtangent.theory.nichani.sphere_covariance import SphereCovariance, series_tail
from offtangent.theory.nichani.tangent import TangentFeatures, fold, unfold

RNG = np.random.default_rng(0)


def network(paired=True, dim=4, width=6, activation="sigmoid(1.0)"):
    net = TwoLayer.symmetric(dim=dim, width=width, law="sphere", activation=activation, key=jax.random.key(3))
    if paired:
        return net
    spread = net.W0.at[:, width // 2 :].set(jnp.roll(net.W0[:, width // 2 :], 1, axis=0))
    return TwoLayer(spread, net.a * jnp.linspace(0.5, 1.5, width), net.activation)


def jacobian(net, X):
    """Φ by autodiff, n × dm, in float64."""
    with jax.enable_x64(True):
        return np.asarray(_jacobian(in_float64(net), jnp.asarray(X))).reshape(len(X), -1)


@eqx.filter_jit
def _jacobian(net, X):
    return jax.jacobian(net)(net.origin, X)


@eqx.filter_jit
def _linear(net, W, X):
    return expand(net, net.origin, 1).terms(W, X)[1]


@pytest.fixture(params=[True, False], ids=["paired", "unpaired"])
def problem(request):
    net = network(request.param)
    X = RNG.standard_normal((9, 4))
    return net, X, jacobian(net, X), RNG.standard_normal((4, 6))


def test_products_and_grams_of_features_are_those_of_autodiff_s_jacobian(problem, monkeypatch):
    net, X, phi, W = problem
    monkeypatch.setattr(tangent, "AT_ONCE", 18)  # two neurons at a time
    features, more = TangentFeatures.of(net, X), TangentFeatures.of(net, 2 * X)
    assert len(features._parts()) > 1
    c = RNG.standard_normal(9)
    np.testing.assert_allclose(features.gram(), phi @ phi.T, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(features.cross(more), phi @ jacobian(net, 2 * X).T, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(features.outputs(fold(W, net.paired)), phi @ W.ravel(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(unfold(features.adjoint(c), net.paired).ravel(), phi.T @ c, rtol=1e-12, atol=1e-15)
    assert features.trace() == pytest.approx((phi**2).sum(), rel=1e-12)
    assert features.held().trace() == pytest.approx(features.trace(), rel=1e-14)


def test_the_linear_part_on_the_device_is_the_first_taylor_term_also_of_a_batch(problem):
    net, X, _, W = problem
    linear = TangentFeatures.of(net, X).linear()
    batch = np.stack([W, -2 * W]).astype(np.float32)
    truth = [_linear(net, jnp.asarray(one), jnp.asarray(X, jnp.float32)) for one in batch]
    found = np.asarray(jax.jit(linear)(batch))
    np.testing.assert_allclose(found, truth, atol=1e-6)
    c = RNG.standard_normal((2, 9)).astype(np.float32)
    back = np.asarray(jax.jit(linear.adjoint)(c))
    np.testing.assert_allclose(np.sum(back * batch, (-2, -1)), np.sum(c * found, -1), rtol=1e-4)


def test_eigenpairs_of_samples_are_those_of_the_dense_matrix(problem):
    net, X, phi, W = problem
    found = FeatureCovariance.of_samples(net, X)
    values, vectors = np.linalg.eigh(phi.T @ phi / 9)
    np.testing.assert_allclose(found.values, values[::-1][: found.known], rtol=1e-9)
    assert found.known == np.linalg.matrix_rank(phi) == 9
    assert found.trace == pytest.approx(values.sum(), rel=1e-12)
    for r in (0, 3, 9):
        top = vectors[:, ::-1][:, :r]
        np.testing.assert_allclose(found.project(W, r).ravel(), top @ (top.T @ W.ravel()), atol=1e-10)
    np.testing.assert_allclose(found.apply(W).ravel(), phi.T @ (phi @ W.ravel()) / 9, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(found.images(X[:4]) @ found.coordinates(W), phi[:4] @ W.ravel(), rtol=1e-8)
    np.testing.assert_allclose(found.linear(X, W), phi @ W.ravel(), rtol=1e-12)


def test_parts_are_orthogonal_add_up_and_the_rest_is_not_seen_by_the_training_inputs(problem):
    net, X, phi, W = problem
    found = FeatureCovariance.of_samples(net, X)
    first, second, rest = found.split(W, 3, found.known)
    np.testing.assert_allclose(first + second + rest, W, atol=1e-14)
    for one, other in ((first, second), (first, rest), (second, rest)):
        assert abs(np.sum(one * other)) < 1e-12
    np.testing.assert_allclose(phi @ rest.ravel(), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.combine(found.coordinates(first)), first, atol=1e-12)
    (_, _, right) = np.linalg.svd(phi, full_matrices=False)  # eq. (4): V₁ᵀ are its first rows
    np.testing.assert_allclose(first.ravel(), right[:3].T @ (right[:3] @ W.ravel()), atol=1e-10)


def test_a_wide_enough_sample_of_a_small_network_has_no_more_directions_than_its_features():
    """Half of the 2·8·3 weights, for pairs: Σ has no other eigenvalues beyond rounding."""
    net = network(dim=3, width=16)
    found = FeatureCovariance.of_samples(net, data.sphere(60, 3, radius=3**0.5, key=jax.random.key(0)))
    assert found.known == 24


@pytest.mark.parametrize("activation", ["sigmoid(1.0)", "softplus", "relu3"])
def test_harmonics_agree_with_monte_carlo_in_every_entry(activation):
    """100 000 inputs; the largest of 144 deviations within five standard errors, their rms near one."""
    net = network(activation=activation)
    operator = SphereCovariance.of(net, degree=60)
    exact = np.asarray(operator(np.eye(12).reshape(12, 4, 3))).reshape(12, 12)
    X = data.sphere(100_000, 4, radius=2.0, key=jax.random.key(1))
    slopes = TangentFeatures.of(net, X, keep=True).kept
    phi = (X[:, :, None] * slopes[:, None, :]).reshape(len(X), -1)
    mean = phi.T @ phi / len(X)
    spread = np.sqrt(((phi**2).T @ phi**2 / len(X) - mean**2) / len(X))
    z = (exact - mean) / spread
    assert np.abs(z).max() < 5
    assert np.sqrt((z**2).mean()) < 2
    trace, tail = series_tail(net, 60)
    assert np.trace(exact) == pytest.approx(trace - tail, rel=1e-12)
    assert 0 <= tail + 1e-14 < 1e-8 * trace


def test_the_functions_of_the_exact_eigenvectors_have_their_eigenvalues_as_energies():
    """E f_L(x; vᵢ) f_L(x; vⱼ) = λᵢδᵢⱼ on 20 000 fresh inputs, all 14² within five standard errors."""
    net = network(dim=4, width=40)
    exact = FeatureCovariance.of_harmonics(net)
    images = exact.images(data.sphere(20_000, 4, radius=2.0, key=jax.random.key(0)), 14)
    products = images[:, :, None] * images[:, None, :]
    z = (products.mean(axis=0) - np.diag(exact.values[:14])) / (products.std(axis=0) / np.sqrt(20_000))
    assert np.abs(z).max() < 5


def test_the_two_constructors_agree_within_the_distance_of_sample_and_population():
    """Weyl: no eigenvalue differs by more than ‖Σ̂ − Σ‖, which falls like N^(−1/2): by four from 100 to 1600 inputs."""
    net = network(dim=4, width=40)
    exact = FeatureCovariance.of_harmonics(net)
    distances = []
    for n in (100, 1600):
        sampled = FeatureCovariance.of_samples(net, data.sphere(n, 4, radius=2.0, key=jax.random.key(n)), count=14)
        distances.append(covariance_distance(sampled, exact))
        assert np.abs(sampled.values - exact.values[:14]).max() <= distances[-1] * (1 + 1e-6)
    assert 2 < distances[0] / distances[1] < 8
    assert distances[1] < 0.1 * exact.values[0]


@pytest.mark.parametrize("source", ["samples", "harmonics"])
def test_folding_pairs_of_neurons_changes_nothing_but_the_cost(source):
    """The same network without the word `paired`: equal eigenvalues, then zeros; equal products and projections."""
    net, W = network(), RNG.standard_normal((4, 6))
    plain = TwoLayer(net.W0, net.a, net.activation)
    X = RNG.standard_normal((20, 4))
    folded, whole = (
        FeatureCovariance.of_samples(one, X) if source == "samples" else FeatureCovariance.of_harmonics(one, degree=20)
        for one in (net, plain)
    )
    assert folded.known == 12
    np.testing.assert_allclose(whole.values[:12], folded.values, rtol=1e-9)
    assert np.abs(whole.values[12:]).max(initial=0.0) < 1e-15
    assert whole.trace == pytest.approx(folded.trace, rel=1e-12)
    np.testing.assert_allclose(whole.apply(W), folded.apply(W), rtol=1e-10, atol=1e-16)
    np.testing.assert_allclose(whole.project(W, 5), folded.project(W, 5), atol=1e-9)


def test_lanczos_and_the_dense_matrix_give_the_same_eigenpairs(monkeypatch):
    net = network(dim=4, width=80)
    dense = FeatureCovariance.of_harmonics(net, degree=20)
    monkeypatch.setattr("offtangent.theory.nichani.covariance.DENSE", 0)
    found = FeatureCovariance.of_harmonics(net, degree=20, count=14)
    np.testing.assert_allclose(found.values, dense.values[:14], rtol=1e-9)
    assert found.residuals is not None
    assert found.residuals.max() < 1e-9 * found.values[0]
    W = RNG.standard_normal((4, 80))
    np.testing.assert_allclose(found.project(W, 14), dense.project(W, 14), atol=1e-7)
    np.testing.assert_allclose(found.apply(W), dense.apply(W), rtol=1e-12)
    np.testing.assert_allclose(found.split(W, 5, 14)[2], W - found.project(W, 14), atol=1e-12)


def test_eigenvalues_of_a_wide_network_are_those_of_infinite_width():
    """Of h = 1000 neurons: the trace of each degree's part is the same for all weights, so levels move like 1/h.

    Ten of these allowed; and the gap below the second degree is there, ξ₂ from what is smaller.
    """
    net = network(dim=6, width=2000, activation="sigmoid(1.0)")
    sizes = [harmonic_dimension(6, k) for k in range(3)]
    found = FeatureCovariance.of_harmonics(net, degree=20, count=sum(sizes) + 4)
    levels = tangent_eigenvalues("sigmoid(1.0)", dim=6, degree=2)
    assert levels[1] > levels[0] > levels[2]
    cuts = np.cumsum([0, sizes[1], sizes[0], sizes[2]])
    means = [found.values[a:b].mean() for a, b in itertools.pairwise(cuts)]
    np.testing.assert_allclose(means, levels[[1, 0, 2]], rtol=10 / 1000)
    assert found.values[cuts[-1] - 1] > 0.5 * levels[2] > 2 * found.values[cuts[-1]]


def test_the_tail_is_what_the_trace_misses_and_eigenvalues_rise_with_the_degree():
    """A truncated series lies below Σ as a matrix, by at most the tail."""
    net = network(activation="relu")
    coarse, fine = (FeatureCovariance.of_harmonics(net, degree=k) for k in (5, 60))
    assert coarse.tail > fine.tail > 0
    for one in (coarse, fine):
        assert one.trace == pytest.approx(one.values.sum() + one.tail, rel=1e-12)
    gain = fine.values - coarse.values
    assert gain.min() > -1e-14
    assert gain.max() <= coarse.tail


def test_what_has_no_covariance_is_refused():
    net = network()
    X = RNG.standard_normal((9, 4))
    found = FeatureCovariance.of_samples(net, X)
    with pytest.raises(InputError, match="r=10: 9 eigenvectors are known"):
        found.project(np.zeros((4, 6)), 10)
    with pytest.raises(InputError, match="columns"):
        FeatureCovariance.of_samples(net, X[:, :3])
    with pytest.raises(InputError, match="count=20"):
        FeatureCovariance.of_samples(net, X, count=20)
    with pytest.raises(InputError, match="NaN"):
        FeatureCovariance.of_samples(net, np.where(X > 1, np.nan, X))
    with pytest.raises(InputError, match="unit vectors"):
        FeatureCovariance.of_harmonics(TwoLayer.symmetric(dim=4, width=6, key=jax.random.key(0)))
    with pytest.raises(InputError, match="degree=0"):
        FeatureCovariance.of_harmonics(net, degree=0)
    with pytest.raises(InputError, match="count=13"):
        FeatureCovariance.of_harmonics(net, count=13)
    with pytest.raises(InputError, match="must not fall"):
        found.split(np.zeros((4, 6)), 5, 3)
    with pytest.raises(InputError, match="W has shape"):
        found.project(np.zeros((4, 5)), 1)
    with pytest.raises(InputError, match="All features are zero"):
        FeatureCovariance.of_samples(net, np.zeros((3, 4)))
