"""Signs and gradients inside a residual network: against NumPy, and Fact D.4 against automatic differentiation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import Hidden, ResNet
from offtangent.theory import (
    ConceptComplexity,
    coupling,
    descent_parts,
    gradient_parts,
    resnet_settings,
    sign_changes,
    sign_patterns,
    theorem1,
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
    for n in range(4):

        def objective(params, n=n):
            return 0.5 * jnp.sum((TARGET[n] - NET(params, X[n : n + 1])[0]) ** 2)

        gradient = jax.grad(objective)(HERE)
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


SIMPLE = ConceptComplexity(outputs=2, terms=1, smooth=2.0, size=0.0)


def test_the_rates_of_theorem_1_have_the_ratio_the_proof_needs():
    """τ_w²/η_w = τ_v²/η_v, and so α² in η_v/η_w; η_w + η_v τ_w² ≤ 0.1."""
    small, large = (theorem1(SIMPLE, SIMPLE, alpha=a, width=10**5, base_bound=1.0) for a in (0.1, 0.2))
    for found in (small, large):
        assert found.tau_w**2 / found.rate_w == pytest.approx(found.tau_v**2 / found.rate_v)
        assert found.rate_w + found.rate_v * found.tau_w**2 <= 0.1 + 1e-12
        assert found.applies
    assert large.rate_v / large.rate_w == pytest.approx(4 * small.rate_v / small.rate_w)


def test_table_1_is_what_the_theorem_sets():
    found = theorem1(SIMPLE, SIMPLE, alpha=0.1, width=256, base_bound=1.0, optimum=0.5)
    assert (found.tau_w, found.sigma_w) == (4.0, 0.5)
    assert found.tau_v == pytest.approx(0.4)
    assert found.sigma_v == pytest.approx(0.4**-2)
    assert found.delta == pytest.approx(0.5 + 0.4**4 * 4)
    assert found.steps == np.ceil(16 / found.delta**2)


def test_an_alpha_that_is_too_large_says_what_no_longer_applies():
    found = theorem1(SIMPLE, SIMPLE, alpha=0.5, width=10**5, base_bound=1.0)
    assert not found.applies
    assert any("α is above" in problem and "Claim D.6" in problem for problem in found.problems)


def test_radii_outside_lemma_d1_say_so():
    narrow = resnet_settings(tau_w=30.0, tau_v=0.1, outputs=2, width=256, delta=0.1)
    assert [any(word in p for p in narrow.problems) for word in ("D.1(a)", "D.1(d)")] == [True, True]
    assert any("below 1" in p for p in resnet_settings(tau_w=0.5, tau_v=0.5, outputs=2, width=9999, delta=0.1).problems)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_an_alpha_from_one_on_is_refused_with_the_part_that_is_lost(alpha):
    with pytest.raises(InputError, match=r"From α = 1 on Lemma D\.2.*not stated"):
        theorem1(SIMPLE, SIMPLE, alpha=alpha, width=256, base_bound=1.0)


def test_an_alpha_of_zero_is_refused():
    with pytest.raises(InputError, match="no G to learn"):
        theorem1(SIMPLE, SIMPLE, alpha=0.0, width=256, base_bound=1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"base_bound": np.nan}, "base_bound=nan: 𝔅_F bounds"),
        ({"base_bound": -1.0}, "base_bound=-1"),
        ({"base_bound": np.inf}, "base_bound=inf"),
        ({"optimum": -1.0}, "optimum=-1: OPT is.*at least 0"),
        ({"optimum": np.nan}, "optimum=nan"),
        ({"alpha": np.nan}, "alpha=nan"),
    ],
)
def test_theorem_1_names_the_argument_that_is_no_size(given, said):
    with pytest.raises(InputError, match=said):
        theorem1(SIMPLE, SIMPLE, **{"alpha": 0.1, "width": 256, "base_bound": 1.0, **given})


@pytest.mark.parametrize("name", ["tau_w", "tau_v", "delta", "sigma_v"])
@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_radii_and_scales_that_are_not_positive_are_refused_by_name(name, value):
    given = {"tau_w": 5.0, "tau_v": 0.5, "delta": 0.5, name: value}
    with pytest.raises(InputError, match=rf"^{name}=.*positive and finite"):
        resnet_settings(**given, outputs=2, width=4096)
