"""The regulariser against autodiff and enumeration, and Theorem 4's choice against its own equations."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.theory.bai_lee.penalties import (
    LANDSCAPE_CONSTANT,
    mean_penalty_hessian,
    penalty,
    penalty_choice,
    penalty_gradient,
    penalty_hessian,
)


def norm8(W):
    """‖W‖⁸_{2,4} from its definition."""
    return jnp.sum(jnp.linalg.norm(W, axis=0) ** 4) ** (8 / 4)


@jax.jit
def second(W, V):
    """∇²‖W‖⁸[V, V] by autodiff."""
    return jnp.einsum("ij,ijkl,kl", V, jax.hessian(norm8)(W), V)


@pytest.fixture
def pair():
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        yield jnp.asarray(rng.standard_normal((3, 5))), jnp.asarray(rng.standard_normal((3, 5)))


def test_value_gradient_and_hessian_are_those_of_autodiff(pair):
    W, V = pair
    value, slope = jax.jit(jax.value_and_grad(norm8))(W)
    np.testing.assert_allclose(penalty(W), value, rtol=1e-13)
    np.testing.assert_allclose(penalty_gradient(W), slope, rtol=1e-11)
    form = second(W, V)
    np.testing.assert_allclose(penalty_hessian(W, V), form, rtol=1e-11)


def test_the_printed_extra_factor_is_refuted(pair):
    """Appendix B.5 has 32‖W‖⁴ instead of 32 on the last term: away from ‖W‖_{2,4} = 1 that is another number."""
    W, V = pair
    squares = jnp.sum(W**2, axis=0)
    last = 32 * jnp.sum(squares * jnp.sum(W * V, axis=0)) ** 2
    printed = penalty_hessian(W, V) + (jnp.sum(squares**2) - 1) * last
    form = second(W, V)
    assert abs(printed - form) > abs(form)


def test_the_gradient_along_w_is_eight_times_the_value(pair):
    W, _ = pair
    np.testing.assert_allclose(jnp.sum(penalty_gradient(W) * W), 8 * penalty(W), rtol=1e-13)


def test_the_mean_hessian_is_the_mean_over_all_signs(pair):
    W, V = pair
    forms = [penalty_hessian(W, V * jnp.array(s, jnp.float64)) for s in itertools.product((-1, 1), repeat=5)]
    np.testing.assert_allclose(mean_penalty_hessian(W, V), np.mean(forms), rtol=1e-13)


def test_derivatives_are_finite_at_zero_columns_and_axes_in_front_are_a_batch(pair):
    W, V = pair
    holed = W.at[:, 2].set(0.0)
    slope = jax.jit(jax.grad(penalty))
    assert bool(jnp.isfinite(slope(holed)).all())
    both = jnp.stack([holed, V])
    for f, one in ((penalty, jax.jit(norm8)), (penalty_gradient, slope)):
        np.testing.assert_allclose(f(both), [one(holed), one(V)], rtol=1e-11)
    np.testing.assert_allclose(penalty_hessian(both, both[::-1])[1], penalty_hessian(V, holed), rtol=1e-13)


def test_the_constant_is_the_best_of_the_proofs_arithmetic():
    """C = 378/α³ with 14α − 6 = −1."""
    assert pytest.approx(378 / (5 / 14) ** 3, rel=1e-14) == LANDSCAPE_CONSTANT
    assert round(LANDSCAPE_CONSTANT) == 8298


def test_the_choice_solves_the_equations_of_the_proof():
    choice = penalty_choice(1.7, opt=0.2, gamma=0.5, epsilon=0.01)
    level = LANDSCAPE_CONSTANT * choice.strength * 1.7**8
    assert level == pytest.approx(2 * 0.5 * 0.2 + 0.01, rel=1e-12)
    assert choice.loss_bound == pytest.approx(1.5 * 0.2 + 0.01)
    assert choice.strength * choice.norm_bound**8 == pytest.approx(level + 2 * 0.2 + 0.01, rel=1e-12)


@pytest.mark.parametrize(("name", "value"), [("norm", 0.0), ("gamma", -1.0), ("epsilon", 0.0), ("opt", -0.1)])
def test_a_choice_outside_the_theorem_is_refused(name, value):
    settings = {"norm": 1.0, "opt": 0.1, "gamma": 1.0, "epsilon": 0.1} | {name: value}
    with pytest.raises(InputError, match=f"{name}="):
        penalty_choice(settings.pop("norm"), **settings)
