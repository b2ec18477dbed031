"""Lemma 1: W_Q against integrals over the whole sphere, the Taylor expansion, and moments over many networks."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent._host import on_host
from offtangent.data import sphere
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.networks import TwoLayer
from offtangent.special import activation
from offtangent.special.activations import shifted
from offtangent.taylor import expand
from offtangent.theory.bai_lee.expressivity import quadratic_part
from offtangent.theory.nichani.sparse import SphereRidge, express_sparse

SIGMOID = shifted("sigmoid", 1.0)
SOFTPLUS = activation("softplus")


def network(dim, width, sigma=SIGMOID, seed=0):
    """As TwoLayer.symmetric(law="sphere") makes it, with NumPy's numbers: JAX would compile for every shape."""
    half = np.random.default_rng(seed).standard_normal((dim, width // 2))
    half = (half / np.linalg.norm(half, axis=0)).astype(np.float32)
    signs = np.repeat([1.0, -1.0], width // 2).astype(np.float32)
    return TwoLayer(jnp.asarray(np.hstack([half, half])), jnp.asarray(signs), sigma, paired=True)


def whole_sphere():
    """Unit vectors of R³ with weights: Gauss and Legendre in z, equal steps in the angle. Exact for polynomials."""
    z, weights = np.polynomial.legendre.leggauss(60)
    angle = 2 * np.pi * np.arange(120) / 120
    ring = np.sqrt(1 - z**2)[:, None]
    w = np.stack([ring * np.cos(angle), ring * np.sin(angle), np.broadcast_to(z[:, None], (60, 120))], axis=-1)
    return w.reshape(-1, 3), np.repeat(weights / 240, 120)


def inputs(n, dim, seed=5):
    return sphere(n, dim, radius=math.sqrt(dim), key=jax.random.key(seed))


@pytest.mark.parametrize("power", [2, 3, 4, 5])
@pytest.mark.parametrize("sigma", [SIGMOID, shifted("softplus", 1.0)], ids=lambda sigma: sigma.name)
def test_features_with_weights_a_average_to_the_power_over_the_whole_sphere(sigma, power):
    """E_w[σ''(wᵀx)a(w)] = α(βᵀx)^{k−1}, its variance, and E[a²], by quadrature in R³, without Funk and Hecke."""
    ridge = SphereRidge(np.array([0.6, 0.0, -0.8]), power, sigma, 0.7)
    X, (w, weights) = inputs(6, 3), whole_sphere()
    features = on_host(sigma.derivative(2), X @ w.T) * ridge.profile(w @ ridge.direction)
    mean = features @ weights
    size = float(np.abs(features).max())
    np.testing.assert_allclose(mean, 0.7 * (X @ ridge.direction) ** (power - 2), atol=1e-11 * size)
    np.testing.assert_allclose(ridge.variance(X), (features - mean[:, None]) ** 2 @ weights, rtol=1e-9)
    assert ridge.energy == pytest.approx(weights @ ridge.profile(w @ ridge.direction) ** 2, rel=1e-11)
    np.testing.assert_allclose(ridge.mean_square_error(X, 50), (X @ ridge.direction) ** 4 * ridge.variance(X) / 25)


def test_softplus_expresses_even_powers_alone():
    """Its σ'' is even: no odd degree, and k = 2 needs degree 1."""
    assert SphereRidge(np.eye(1, 4)[0], 4, SOFTPLUS).energy > 0
    with pytest.raises(InputError, match=r"no part of degree 1.*Shift"):
        SphereRidge(np.eye(1, 4)[0], 3, SOFTPLUS)


@pytest.mark.parametrize("power", [2, 3, 4])
def test_the_quadratic_part_at_w_q_is_the_average_of_features_of_each_terms_own_neurons(power):
    """f_Q of `taylor`, in float32, and of `quadratic_part` equal Σᵢ (βᵢᵀx)² hᵢ⁻¹ Σ σ''aᵢ over a third of the pairs."""
    net, X = network(5, 62), inputs(8, 5)
    target = LowDegreePlusSparse.random(5, power - 1, rank=3, key=jax.random.key(1))
    found = express_sparse(net, target)
    assert found.pairs == (11, 10, 10)
    half, values = np.asarray(net.W0, np.float64)[:, :31], np.zeros(8)
    for i, ridge in enumerate(found.ridges):
        columns = half[:, i::3] / np.linalg.norm(half[:, i::3], axis=0)
        features = on_host(SIGMOID.derivative(2), X @ half[:, i::3]) * ridge.profile(ridge.direction @ columns)
        values += (X @ ridge.direction) ** 2 * features.mean(axis=1)
    np.testing.assert_allclose(quadratic_part(net, found.weights, X), values, rtol=1e-10)
    by_taylor = expand(net, net.origin, 2).terms(found.W, jnp.asarray(X, jnp.float32))[2]
    np.testing.assert_allclose(by_taylor, values, atol=3e-5 * np.abs(values).max())
    np.testing.assert_allclose(found.errors(X), values - target.sparse(X), atol=1e-9)


@pytest.mark.parametrize("power", [2, 3])
def test_errors_and_norms_have_their_exact_means_over_networks(power):
    """Over 80 networks, two terms: mean error, its square at every input and ‖W_Q‖⁴ within 5 standard errors."""
    X, target = inputs(6, 6), LowDegreePlusSparse.random(6, power - 1, rank=2, key=jax.random.key(2))
    found = [express_sparse(network(6, 200, seed=seed), target) for seed in range(80)]
    errors, expected = np.stack([one.errors(X) for one in found]), found[0].mean_square_error(X)
    assert (np.abs(errors.mean(axis=0)) <= 5 * np.sqrt(expected / 80)).all()
    squares = errors**2
    assert (np.abs(squares.mean(axis=0) - expected) <= 5 * squares.std(axis=0) / math.sqrt(80)).all()
    norms = np.array([one.norm4 for one in found])
    wrong = abs(norms.mean() - found[0].expected_norm4)
    assert wrong <= 5 * norms.std() / math.sqrt(80) + 1e-9 * found[0].expected_norm4
    assert np.mean([np.abs(e).max() > found[0].error_bound(X, delta=0.2) for e in errors]) <= 0.2


def test_the_norm_is_bounded_by_d_to_the_k_minus_one_over_the_constant_of_assumption_three():
    """E[a²] = d^{k−1}/c for k = 1, 2, where one λ_j alone is in use, and less beyond: Σγ_j² < (Σγ_j)² = 1."""
    for dim in (5, 50):
        beta = np.eye(1, dim)[0]
        for power in (2, 3):
            ridge = SphereRidge(beta, power, SIGMOID, -2.0)
            assert ridge.energy == pytest.approx(ridge.energy_bound, rel=1e-10)
            assert ridge.energy_bound == pytest.approx(4 * dim ** (power - 2) / ridge.smallest)
        for power in (4, 5, 6):
            ridge = SphereRidge(beta, power, SIGMOID)
            assert 0 < ridge.energy < ridge.energy_bound
    found = express_sparse(network(5, 40), [SphereRidge(np.eye(5)[i], 2, SIGMOID) for i in range(2)])
    assert found.norm4_bound(delta=0.5) == pytest.approx(2 * 4 * 8 / found.ridges[0].smallest)


def test_the_numbers_of_spec_e15_are_of_the_size_that_theory_gives():
    """At d = 30, k = 2: ‖W_Q‖⁴ = 1.9e5, and errors of 0.42, 0.28, 0.089 at m = 2e3, 2e4, 2e5."""
    ridge = SphereRidge(np.eye(1, 30)[0], 3, SIGMOID)
    assert 8 * ridge.energy == pytest.approx(1.9e5, rel=0.02)
    X = inputs(2000, 30)
    for width, reported in ((2e3, 0.42), (2e4, 0.28), (2e5, 0.089)):
        typical = math.sqrt(ridge.mean_square_error(X, width).mean())
        assert typical / 4 <= reported <= 4 * typical


def test_a_constant_a_gives_all_columns_one_length():
    """For k = 1 and a quadratic σ, a = 1/σ'': the error is zero at any width, and ‖W_Q‖⁴ = 8a²."""
    square = activation("quadratic")
    found, second = express_sparse(network(4, 10, square), SphereRidge(np.eye(4)[1], 2, square)), square.derivative(2)
    np.testing.assert_allclose(found.errors(inputs(5, 4)), 0, atol=1e-6)
    assert found.norm4 == pytest.approx(8 / float(second(0.0)) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SphereRidge(np.ones(3), 2, SIGMOID), "unit vector"),
        (lambda: SphereRidge(np.eye(3)[0], 1, SIGMOID), "power=1"),
        (lambda: SphereRidge(np.eye(3)[0], 2, SIGMOID, math.nan), "α is a finite number"),
        (lambda: SphereRidge(np.eye(3)[0], 2, SIGMOID)(np.ones((2, 4))), "4 columns and β 3"),
        (lambda: SphereRidge(np.eye(3)[0], 2, SIGMOID)(np.ones((2, 3)) * 2), "sphere"),
        (lambda: SphereRidge(np.eye(3)[0], 2, SIGMOID).mean_square_error(inputs(2, 3), 0), "width"),
        (lambda: express_sparse(network(3, 8), SphereRidge(np.eye(4)[0], 2, SIGMOID)), "4 entries"),
        (lambda: express_sparse(network(3, 8), SphereRidge(np.eye(3)[0], 2, SOFTPLUS)), "net.activation"),
        (lambda: express_sparse(network(3, 8), []), "no term"),
        (lambda: express_sparse(network(3, 2), [SphereRidge(np.eye(3)[0], 2, SIGMOID)] * 2), "Take 4 or more"),
        (lambda: express_sparse(network(3, 8), SphereRidge(np.eye(3)[0], 2, SIGMOID)).norm4_bound(delta=2.0), "delta"),
    ],
)  # fmt: skip
def test_what_cannot_be_expressed_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_a_start_that_is_not_symmetric_on_the_unit_sphere_is_refused():
    ridge = SphereRidge(np.eye(3)[0], 2, SIGMOID)
    loose = network(3, 8)
    for net in (
        TwoLayer(loose.W0, loose.a, SIGMOID),
        TwoLayer(2 * loose.W0, loose.a, SIGMOID, paired=True),
    ):
        with pytest.raises(InputError, match="unit columns"):
            express_sparse(net, ridge)
