"""Signs and gradients inside a residual network: against NumPy, and Fact D.4 against automatic differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import ResNet
from offtangent.networks.resnet import Hidden
from offtangent.theory.allen_zhu_li.gradients import (
    coupling,
    descent_parts,
    gradient_parts,
    sign_changes,
    sign_patterns,
)

RNG = np.random.default_rng(0)
NET = ResNet.theory(dim=3, outputs=2, width=20, sigma_v=2.0, key=jax.random.key(0))
X = jnp.asarray(RNG.standard_normal((4, 3)), jnp.float32)


def hidden(scale):
    return Hidden(*(jnp.asarray(scale * RNG.standard_normal(W.shape), jnp.float32) for W in NET.origin))


HERE, STAR = hidden(0.3), hidden(0.5)
TARGET = jnp.asarray(RNG.standard_normal((4, 2)), jnp.float32)


def arrays(n):
    """A, W⁰+W, V⁰+V and the padded input of sample n, and out₁, in float64."""
    A, W0, V0 = (np.asarray(w, np.float64) for w in (NET.A, NET.W0, NET.V0))
    W, V = W0 + np.asarray(HERE.W), V0 + np.asarray(HERE.V)
    x = np.append(np.asarray(X[n], np.float64), 1)
    return A, W0, V0, W, V, x, np.append(A @ np.maximum(x @ W, 0), 1)


def test_signs_are_those_of_the_pre_activations():
    found, changes = sign_patterns(NET, HERE, X), sign_changes(NET, HERE, X)
    for n in range(4):
        _, W0, V0, W, V, x, z = arrays(n)
        np.testing.assert_array_equal(found.first[n], x @ W >= 0)
        np.testing.assert_array_equal(found.second[n], z @ V >= 0)
        assert int(changes.first[n]) == ((x @ W >= 0) != (x @ W0 >= 0)).sum()
        assert int(changes.second[n]) == ((z @ V >= 0) != (z @ V0 >= 0)).sum()


def test_nothing_has_changed_at_the_initialisation():
    found = sign_changes(NET, NET.origin, X)
    assert not np.asarray(found.first).any()
    assert not np.asarray(found.second).any()


@pytest.mark.parametrize("function", [sign_patterns, sign_changes, coupling])
def test_inputs_of_another_dimension_are_refused(function):
    with pytest.raises(InputError, match=r"X has shape \(4, 2\): expected \(n, 3\)"):
        function(NET, HERE, X[:, :2])


def test_coupling_quantities_are_lemma_d1_s_left_sides():
    found = eqx.filter_jit(coupling)(NET, HERE, X)
    for n in range(4):
        A, _, V0, W, V, x, z = arrays(n)
        D, E = x @ W >= 0, z @ V >= 0
        rest = A @ (D * (x @ np.asarray(HERE.W))) - A @ (D * (x @ W))
        second = A @ (E * (z @ np.asarray(HERE.V))) - A @ (E * (z @ V))
        truth = [rest, z[:-1], second, None, A @ (E * (z @ V))]
        truth = [np.linalg.norm((A * E) @ V0.T, 2) if t is None else np.linalg.norm(t) for t in truth]
        np.testing.assert_allclose([part[n] for part in found], truth, rtol=1e-4)


def test_fact_d4_is_the_gradient_of_autodiff():
    """⟨∇Obj, (−W′, −V′)⟩ = ⟨y − out, f(W′) + g(V′)⟩, sample by sample, and f and g each with their own layer."""
    f, g = gradient_parts(NET, HERE, X, STAR)
    residual = TARGET - NET(HERE, X)
    slope = jax.jit(jax.grad(lambda params, x, y: 0.5 * jnp.sum((y - NET(params, x[None])[0]) ** 2)))
    for n in range(4):
        gradient = slope(HERE, X[n], TARGET[n])
        assert float(-jnp.sum(gradient.W * STAR.W)) == pytest.approx(float(residual[n] @ f[n]), rel=1e-4)
        assert float(-jnp.sum(gradient.V * STAR.V)) == pytest.approx(float(residual[n] @ g[n]), rel=1e-4)


def test_xi_is_the_product_of_gap_and_gap_plus_error():
    """Ξ from autodiff is ⟨H − out, H − out + Err⟩, whose Err is made by formula; so the proof's inequality holds."""
    found = eqx.filter_jit(descent_parts)(NET, HERE, X, TARGET, STAR)
    f, g = gradient_parts(NET, HERE, X, Hidden(STAR.W - HERE.W, STAR.V - HERE.V))
    gap = np.asarray(TARGET - NET(HERE, X))
    np.testing.assert_allclose(found.gap, (gap**2).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(found.error, ((np.asarray(f + g) - gap) ** 2).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(found.correlation, (gap * np.asarray(f + g)).sum(axis=1), rtol=1e-4)
    assert (np.asarray(found.correlation) >= found.gap / 2 - 2 * found.error).all()


def test_at_the_star_itself_the_error_is_the_gap():
    found = descent_parts(NET, STAR, X, TARGET, STAR)
    np.testing.assert_allclose(found.error, found.gap, rtol=1e-5)
    np.testing.assert_allclose(found.correlation, 0, atol=1e-5)


def test_targets_for_another_number_of_outputs_are_refused():
    with pytest.raises(InputError, match=r"target has shape \(\d+, 1\): expected"):
        descent_parts(NET, STAR, X, TARGET[:, :1], STAR)
