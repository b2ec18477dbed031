"""Certificates against matrices with a known spectrum, dense Hessians, and the probability they promise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.linalg.krylov import lanczos
from offtangent.networks import TwoLayer
from offtangent.special.losses import logistic
from offtangent.taylor.curvature import _log_polynomial, _smallest, certificate
from offtangent.theory.bai_lee.risks import CleanRisk

KEY = jax.random.key(0)


def symmetric(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    return (Q * values) @ Q.T


def bowl(A, w):
    return 0.5 * w @ (A @ w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [20, 200])  # dense, Lanczos
def test_the_smallest_eigenvalue_lies_between_its_two_bounds(size, dtype):
    A = symmetric(np.concatenate([[-0.3], np.linspace(-0.1, 2.0, size - 1)])).astype(dtype)
    found = certificate(jax.tree_util.Partial(bowl, A), np.ones(size, dtype), key=KEY)
    truth = np.linalg.eigvalsh(A.astype(np.float64))
    room = 20 * np.finfo(dtype).eps  # rounding of the products
    assert found.lowest - room <= truth[0] <= found.curvature + room
    assert found.curvature - found.lowest <= 2e-3 * truth[-1]
    assert found.largest <= truth[-1] + room
    low, high = found.interval
    assert ((truth >= low - room) & (truth <= high + room)).any()
    assert found.exact == (size <= 64)
    slope = A.astype(np.float64) @ np.ones(size)
    assert found.gradient_norm == pytest.approx(np.linalg.norm(slope), rel=1e-5 if dtype == np.float32 else 1e-12)
    v = np.asarray(found.direction, np.float64)
    assert np.linalg.norm(v) == pytest.approx(1, abs=1e-6)
    assert v @ slope <= 0


def test_a_large_negative_eigenvalue_is_not_taken_for_the_largest():
    found = certificate(jax.tree_util.Partial(bowl, symmetric(np.linspace(-5, 1, 100))), np.zeros(100), key=KEY)
    assert found.curvature == pytest.approx(-5, abs=0.01)
    assert found.largest < 1.0 + 1e-9


def test_a_hessian_of_one_eigenvalue_or_none_is_done_at_once():
    for scale in (0.0, 2.0):
        found = certificate(jax.tree_util.Partial(bowl, scale * np.eye(100)), np.zeros(100), key=KEY)
        assert (found.curvature, found.lowest) == (pytest.approx(scale, abs=1e-12), pytest.approx(scale, abs=1e-12))
        assert found.products <= 3


def test_the_bound_from_below_fails_no_more_often_than_it_says():
    """λ_min is a lone eigenvalue that few steps miss; δ = 0.3 over 200 starts, within 3 standard errors."""
    values = np.concatenate([[-1.0], np.linspace(-0.9, 1, 99)])
    rng = np.random.default_rng(0)
    bounds = [
        _smallest(lambda v: values * v, rng.standard_normal(100), tol=1e-9, delta=0.3, most=8)[1] for _ in range(200)
    ]
    failed = np.mean(np.array(bounds) > -1.0)
    assert 0 < failed <= 0.3 + 3 * np.sqrt(0.3 * 0.7 / 200)


def test_the_polynomial_is_that_of_the_next_basis_vector():
    """q_{k+1} = p_k(A) q₁: p_k at an eigenvalue is the ratio of the components along its eigenvector."""
    values = np.linspace(1.0, 2.0, 30)
    values[0] = 0.5
    b = np.random.default_rng(1).standard_normal((30, 1))
    *_, found = lanczos(lambda V: values[:, None] * V, b, 7)
    *_, longer = lanczos(lambda V: values[:, None] * V, b, 8)
    alpha, beta = found.tridiagonal(0)
    ratio = abs(longer.basis[7, 0, 0] / longer.basis[0, 0, 0])
    assert _log_polynomial(alpha, beta, 0.5) == pytest.approx(np.log(ratio), abs=1e-10)


def test_any_pytree_works_and_what_is_no_number_stays():
    params = {"w": jnp.ones((40, 2)), "b": jnp.zeros(3), "steps": jnp.array(7)}

    def loss(p):
        return jnp.sum(p["w"] ** 2) - 0.25 * jnp.sum(p["b"][:1] ** 2) + 0 * p["steps"].astype(jnp.float32)

    found = certificate(loss, params, key=KEY)
    assert found.curvature == pytest.approx(-0.5, abs=1e-5)
    assert jax.tree.structure(found.direction) == jax.tree.structure(params)
    assert found.direction["steps"] == 7
    assert abs(found.direction["b"][0]) == pytest.approx(1, abs=1e-3)


def test_the_saddle_of_the_clean_risk_at_zero_has_the_curvature_of_its_blocks():
    """∇²L^Q(0) has one block for each neuron, n⁻¹ Σᵢ ℓ'(yᵢ, 0) m^{-1/2} a_r σ''(w₀ᵣᵀxᵢ) xᵢxᵢᵀ."""
    net = TwoLayer.symmetric(dim=4, width=24, activation="softplus", key=KEY)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((15, 4)), rng.choice([-1.0, 1.0], 15)
    risk = CleanRisk.of(net, X, y, logistic)
    found = certificate(risk, net.origin, key=KEY)
    s = 1 / (1 + np.exp(-X @ np.asarray(net.W0)))
    weights = (-y / 2)[:, None] * s * (1 - s) * np.asarray(net.a) / np.sqrt(24)
    blocks = np.einsum("nr,nd,ne->rde", weights, X, X) / 15
    truth = np.linalg.eigvalsh(blocks).min()
    assert found.gradient_norm == 0
    assert found.curvature == pytest.approx(truth, rel=1e-3)
    assert found.lowest <= truth * (1 - 1e-6)
    assert not found.stationary(gradient=1e-6, curvature=-truth / 2)
    assert found.stationary(gradient=1e-6, curvature=-1.1 * truth)
    assert float(risk(0.1 * found.direction)) < found.value


def test_one_loss_is_compiled_once_for_all_points():
    traced = []

    def loss(w):
        traced.append(1)
        return jnp.sum(w**4)

    certificate(loss, jnp.zeros(8), key=KEY)
    before = len(traced)
    certificate(loss, jnp.ones(8), key=KEY)
    assert len(traced) == before > 0


@pytest.mark.parametrize("size", [10, 100])
def test_what_is_not_finite_or_not_a_number_is_refused(size):
    with pytest.raises(InputError, match="gradient of the loss is not finite"):
        certificate(lambda w: jnp.sum(w) * jnp.nan, jnp.ones(size), key=KEY)
    with pytest.raises(InputError, match="Hessian of the loss is not finite"):
        certificate(lambda w: jnp.sum(jnp.abs(w) ** 1.5), jnp.zeros(size), key=KEY)
    with pytest.raises(InputError, match="no array"):
        certificate(lambda w: 0.0 * w, jnp.arange(size), key=KEY)
    with pytest.raises(InputError, match="delta=2"):
        certificate(lambda w: jnp.sum(w**2), jnp.ones(size), key=KEY, delta=2.0)
