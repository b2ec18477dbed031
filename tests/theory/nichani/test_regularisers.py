"""R₁ to R₄ against dense matrices and the identities (24)-(26), to rounding; theory's λ against its own equations."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.sphere import polynomial_dimension
from offtangent.taylor import expand
from offtangent.theory.bai_lee.penalties import penalty
from offtangent.theory.bai_lee.signs import in_float64
from offtangent.theory.nichani.choice import regulariser_choice, sample_needs
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.regularisers import R1, R2, R3, R4, RandomisedR1, Stacked

RNG = np.random.default_rng(0)
X, FRESH = RNG.standard_normal((7, 4)), RNG.standard_normal((20, 4))
W = RNG.standard_normal((4, 10))
RANK = 5


def network(paired=True):
    net = TwoLayer.symmetric(dim=4, width=10, law="sphere", activation="sigmoid(1.0)", key=jax.random.key(3))
    return net if paired else TwoLayer(jnp.roll(net.W0, 1, axis=0).at[0].mul(-1), net.a, net.activation)


@pytest.fixture(params=[True, False], ids=["paired", "unpaired"])
def wide(request):
    """The network in float64."""
    with jax.enable_x64(True):
        yield in_float64(network(request.param))


def linear(net, weights, inputs):
    """f_L from the Taylor expansion."""
    return np.asarray(_linear(net, jnp.asarray(weights), jnp.asarray(inputs)))


@eqx.filter_jit
def _linear(net, weights, inputs):
    return expand(net, net.origin, 1).terms(weights, inputs)[1]


def value(R, weights):
    return _value(R, jnp.asarray(weights))


@eqx.filter_jit
def _value(R, weights):
    return R(weights)


def dense(net, inputs):
    """Φ, by evaluating f_L at every unit matrix."""
    units = np.eye(W.size).reshape(-1, *W.shape)
    return np.stack([linear(net, one, inputs) for one in units], axis=1)


def test_r1_and_r2_are_the_forms_of_the_dense_covariance_and_the_identities_24_and_25_hold(wide):
    covariance = FeatureCovariance.of_samples(wide, FRESH)
    phi = dense(wide, FRESH)
    values, vectors = np.linalg.eigh(phi.T @ phi / 20)
    parts = values * (vectors.T @ W.ravel()) ** 2
    low, high = parts[-RANK:].sum(), parts[:-RANK].sum()
    first, second = (value(R.of(covariance, RANK), W) for R in (R1, R2))
    np.testing.assert_allclose([first, second], [high, low], rtol=1e-11)
    inside, outside = covariance.split(W, RANK)
    np.testing.assert_allclose(first, np.mean(linear(wide, outside, FRESH) ** 2), rtol=1e-11)
    np.testing.assert_allclose(second, np.mean(linear(wide, inside, FRESH) ** 2), rtol=1e-11)


def test_r3_with_the_population_s_projector_is_identity_26(wide):
    covariance = FeatureCovariance.of_samples(wide, FRESH)
    found = value(R3.of(covariance, X, RANK), W)
    outside = W - covariance.project(W, RANK)
    np.testing.assert_allclose(found, np.mean(linear(wide, outside, X) ** 2), rtol=1e-11)


def test_r3_with_the_training_features_is_that_of_the_singular_value_decomposition(wide):
    """SPEC §0 item 2: ΦV₂V₂ᵀw = (I − U_rU_rᵀ)Φw."""
    phi = dense(wide, X)
    _, _, right = np.linalg.svd(phi, full_matrices=False)
    truth = np.mean((phi @ (W.ravel() - right[:3].T @ (right[:3] @ W.ravel()))) ** 2)
    R = R3.empirical(wide, X, 3)
    np.testing.assert_allclose(value(R, W), truth, rtol=1e-11)
    np.testing.assert_allclose(R.of_linear(jnp.asarray(linear(wide, W, X))), truth, rtol=1e-11)
    whole = R3.of(FeatureCovariance.of_samples(wide, X), X, 3)  # the same through eigenvectors
    np.testing.assert_allclose(value(whole, W), truth, rtol=1e-10)


def test_with_harmonics_the_identities_hold_for_the_exact_covariance():
    """R₁ + R₂ = wᵀΣw; R₁ is Σ's form at Π_{>r}W; R₃ is the mean over the inputs given."""
    with jax.enable_x64(True):
        net = in_float64(network())
        covariance = FeatureCovariance.of_harmonics(net)
        first, second = (value(R.of(covariance, RANK), W) for R in (R1, R2))
        inside, outside = covariance.split(W, RANK)
        np.testing.assert_allclose(first, np.sum(outside * covariance.apply(outside)), rtol=1e-11)
        np.testing.assert_allclose(second, np.sum(inside * covariance.apply(inside)), rtol=1e-11)
        np.testing.assert_allclose(first + second, np.sum(W * covariance.apply(W)), rtol=1e-11)
        third = value(R3.of(covariance, X, RANK), W)
        np.testing.assert_allclose(third, np.mean(linear(net, outside, X) ** 2), rtol=1e-11)


def test_the_exact_r1_is_the_mean_of_fresh_inputs_within_its_error():
    net = network()
    covariance = FeatureCovariance.of_harmonics(net)
    outside = W - covariance.project(W, RANK)
    squares = covariance.linear(data.sphere(20_000, 4, radius=2.0, key=jax.random.key(0)), outside) ** 2
    found = float(value(R1.of(covariance, RANK), W.astype(np.float32)))
    assert abs(found - squares.mean()) < 4 * squares.std() / np.sqrt(20_000) + 1e-5 * found


@pytest.mark.parametrize("law", ["sphere", "gaussian"])
def test_randomised_r1_has_the_population_s_mean(law):
    """400 keys of 50 inputs, against 50 000 inputs of the same law, with the training features' projector."""
    net = network()
    covariance = FeatureCovariance.of_samples(net, X)
    R = RandomisedR1.of(covariance, 3, samples=50, law=law)
    draws = np.asarray(
        jax.jit(jax.vmap(R, (None, 0)))(jnp.asarray(W, jnp.float32), jax.random.split(jax.random.key(1), 400))
    )
    many = data.distributions.gaussian(50_000, 4, key=jax.random.key(2))
    if law == "sphere":
        many *= 2 / np.linalg.norm(many, axis=1, keepdims=True)
    squares = covariance.linear(many, W - covariance.project(W, 3)) ** 2
    error = math.hypot(draws.std() / 20, squares.std() / np.sqrt(50_000))
    assert abs(draws.mean() - squares.mean()) < 4 * error
    assert draws.std() == pytest.approx(squares.std() / np.sqrt(50), rel=0.3)  # 400 draws: 4 % and heavier tails


def every(net):
    sampled, exact = FeatureCovariance.of_samples(net, FRESH), FeatureCovariance.of_harmonics(net)
    key = jax.random.key(0)
    fresh = RandomisedR1.of(sampled, 3, samples=5)
    return {
        "R1": R1.of(sampled, RANK),
        "R1 exact": R1.of(exact, RANK),
        "R2": R2.of(sampled, RANK),
        "R3": R3.of(sampled, X, RANK),
        "R1 randomised": lambda W: fresh(W, key),
    }


@pytest.fixture(scope="module")
def values():
    """Every R at W, W + V and W − V: as a batch, and mapped with its gradient."""
    regularisers = every(network())
    V = RNG.standard_normal(W.shape)
    batch = np.stack([W, W + V, W - V]).astype(np.float32)
    whole = jax.jit(lambda W: {name: R(W) for name, R in regularisers.items()})(batch)
    each = jax.jit(jax.vmap(lambda W: {name: jax.value_and_grad(R)(W) for name, R in regularisers.items()}))(batch)
    return V, whole, each


def test_values_of_a_batch_are_those_of_each_in_the_dtype_of_the_network(values):
    _, whole, each = values
    for name, found in whole.items():
        assert (found.shape, found.dtype) == ((3,), jnp.float32), name
        assert (found >= 0).all()
        np.testing.assert_allclose(each[name][0], found, rtol=1e-4, err_msg=name)


def test_gradients_are_differences_of_values(values):
    """R(W + V) − R(W − V) = 2⟨∇R(W), V⟩ exactly for a quadratic form, which R₁ to R₃ are."""
    V, whole, each = values
    for name, found in whole.items():
        gradient = np.asarray(each[name][1][0], np.float64)
        scale = 1e-4 * float(found.sum())
        assert 2 * np.sum(gradient * V) == pytest.approx(float(found[1] - found[2]), abs=scale), name


def test_r3_sees_nothing_of_null_space_and_of_the_first_directions():
    net = network()
    training = FeatureCovariance.of_samples(net, X)
    first, second, rest = training.split(W, 3, training.known)
    R = jax.jit(R3.empirical(net, X, 3))
    whole = float(R(jnp.asarray(W, jnp.float32)))
    assert float(R(jnp.asarray(first + rest, jnp.float32))) < 1e-9 * whole + 1e-12
    assert float(R(jnp.asarray(second, jnp.float32))) == pytest.approx(whole, rel=1e-4)


def test_r4_is_the_penalty_and_stacked_ones_have_their_own_weights():
    batch = jnp.asarray(RNG.standard_normal((2, 4, 10)), jnp.float32)
    np.testing.assert_array_equal(R4()(batch), penalty(batch))
    nets = [
        network(),
        TwoLayer.symmetric(dim=4, width=10, law="sphere", activation="sigmoid(1.0)", key=jax.random.key(8)),
    ]
    parts = [R3.empirical(net, X, 3) for net in nets]
    values = jax.jit(Stacked.of(*parts))(batch)
    each = np.stack([jax.jit(part)(batch) for part in parts])
    np.testing.assert_allclose(values, each.diagonal(), rtol=1e-5)
    assert abs(values[0] - each[1, 0]) > 1e-3 * values[0]
    fresh = Stacked.of(*(RandomisedR1.of(FeatureCovariance.of_samples(net, X), 3, samples=4) for net in nets))
    assert fresh.randomised
    assert jax.eval_shape(fresh, batch, jax.random.key(0)).shape == (2,)


def test_theory_s_strengths_weigh_every_regulariser_alike_at_the_constructed_weights():
    """λᵢ times the size (30) is ε_min for all four; E7's formulas."""
    choice = regulariser_choice(20, 5000, 3, 0.2)
    lam, size = choice.strengths, choice.sizes
    assert choice.rank == polynomial_dimension(20, 3)
    assert lam.r1 == lam.r3 == pytest.approx(5000**0.5 / 20 * 0.2)
    assert (lam.r2, lam.r4) == (0.2, pytest.approx(20**-4 * 0.2))
    for one in ("r1", "r2", "r3", "r4"):
        assert getattr(lam, one) * getattr(size, one) == pytest.approx(0.2)
    assert choice.loss_bound(8_000_000) == pytest.approx(0.2 + (20**3 / 8e6) ** 0.5)
    assert choice.generalising_width == pytest.approx(20**6 / 0.2**4)
    assert choice.expressive_width == pytest.approx(20.0**30)
    assert choice.landscape_width(10) == pytest.approx(10**4 * 20 ** (104 / 3) * 0.2 ** (-22 / 3))
    assert choice.samples == pytest.approx(20**3 * 25)
    assert (choice.gradient, choice.curvature) == (pytest.approx(5000**-0.5), pytest.approx(5000**-0.75))


def test_what_cannot_be_regularised_is_refused():
    net = network()
    covariance = FeatureCovariance.of_samples(net, X)
    for R in (R1, R2):
        with pytest.raises(InputError, match="8: 7 eigenvectors"):
            R.of(covariance, 8)
    with pytest.raises(InputError, match="rank=8"):
        R3.empirical(net, X, 8)
    with pytest.raises(InputError, match="samples=0"):
        RandomisedR1.of(covariance, 3, samples=0)
    with pytest.raises(InputError, match="W has shape"):
        R3.empirical(net, X, 3)(jnp.zeros((4, 9)))
    with pytest.raises(InputError, match="one kind"):
        Stacked.of(R3.empirical(net, X, 3), R3.empirical(net, X, 2))
    for words in ({"epsilon": 0.0}, {"degree": 0}, {"dim": 1}, {"width": -1.0}):
        with pytest.raises(InputError, match=f"{next(iter(words))}="):
            regulariser_choice(**({"dim": 10, "width": 100, "degree": 1, "epsilon": 0.1} | words))


@pytest.mark.parametrize("paired", [True, False])
def test_of_no_free_directions_r1_is_the_whole_form_and_r2_zero(paired):
    """R₁ = wᵀΣw at r = 0, with Σ of harmonics, against the covariance's own product."""
    net = network(paired)
    net = TwoLayer(net.W0 / jnp.linalg.norm(net.W0, axis=0), net.a, net.activation, paired=paired)
    sigma = FeatureCovariance.of_harmonics(net)
    W = np.random.default_rng(3).standard_normal(net.W0.shape)
    held = jnp.asarray(W, net.W0.dtype)
    assert float(R1.of(sigma, 0)(held)) == pytest.approx(float(np.sum(W * sigma.apply(W))), rel=1e-4)
    assert float(R2.of(sigma, 0)(held)) == 0


def test_remark_1_a_dense_target_has_rank_d_and_the_quadratic_ntk_then_needs_d_times_what_the_ntk_does():
    """With K = d the bound of Bai & Lee is d² · d^k, that of the NTK d · d^k: f_Q alone is then the worst of three."""
    low, dense = sample_needs(30, 2, 1), sample_needs(30, 2, 30)
    assert (low.joint, low.tangent) == (900.0, 27_000.0)
    assert low.quadratic == low.joint
    assert dense.quadratic == pytest.approx(30 * dense.tangent)
