"""Bounds for finite width: by hand, and against the networks they speak of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.theory.arora.widths import (
    deviation_bound,
    gram_deviation_bound,
    initial_loss_bound,
    initial_output_bound,
    initial_residual_bound,
    required_width,
)

SCALE, N = 0.3, 6


@pytest.fixture(scope="module")
def squared_outputs():
    """‖u(0)‖² of 4 000 networks of width 7 on six unit inputs."""
    X = np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)
    X = jnp.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))

    def one(key):
        net = TwoLayer.gaussian(dim=4, width=7, scale=SCALE, key=key)
        return jnp.sum(net(net.origin, X) ** 2)

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000)), np.float64)


def test_the_initial_output_is_nk2_over_2_on_average_below_the_papers_nk2(squared_outputs):
    """E f(x)² = κ²‖x‖² E relu(g)² = κ²/2 at every width."""
    standard_error = squared_outputs.std(ddof=1) / np.sqrt(len(squared_outputs))
    assert abs(squared_outputs.mean() - N * SCALE**2 / 2) <= 4 * standard_error
    assert squared_outputs.mean() <= N * SCALE**2


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_the_initial_output_keeps_its_bound_as_often_as_promised(squared_outputs, delta):
    assert (np.sqrt(squared_outputs) <= initial_output_bound(N, SCALE, delta=delta)).mean() >= 1 - delta


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_the_initial_residual_keeps_its_bound_for_every_label(squared_outputs, delta):
    """‖y − u(0)‖ is largest for y against u(0), of length √n."""
    worst = np.sqrt(N) + np.sqrt(squared_outputs)
    assert (worst <= initial_residual_bound(N, SCALE, delta=delta)).mean() >= 1 - delta
    assert initial_residual_bound(N, 0.0, delta=delta) == pytest.approx(np.sqrt(N))


@pytest.fixture(scope="module")
def initial_losses():
    """Φ(W(0)) of the same networks for labels ±1, from outputs, not from the square of their length."""
    X = np.random.default_rng(0).standard_normal((N, 4)).astype(np.float32)
    X = jnp.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))
    y = jnp.asarray([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])

    def one(key):
        net = TwoLayer.gaussian(dim=4, width=7, scale=1.0, key=key)
        return jnp.sum((y - net(net.origin, X)) ** 2) / 2

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 4000)), np.float64)


def test_the_mean_of_the_initial_loss_is_half_n_and_half_of_nk2_over_2(initial_losses):
    """E Φ(W(0)) = n/2 + nκ²/4 at κ = 1: below δ times the bound, which would be missed at less than 3/4 of it."""
    standard_error = initial_losses.std(ddof=1) / np.sqrt(len(initial_losses))
    assert abs(initial_losses.mean() - 0.75 * N) <= 4 * standard_error
    assert initial_losses.mean() <= 0.5 * initial_loss_bound(N, 1.0, delta=0.5)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_the_initial_loss_keeps_its_bound_as_often_as_promised(initial_losses, delta):
    assert (initial_losses <= initial_loss_bound(N, 1.0, delta=delta)).mean() >= 1 - delta


def test_the_initial_loss_is_at_most_n_over_delta_for_every_scale_of_eq_1():
    assert initial_loss_bound(3, 0.0, delta=0.5) == 3.0
    assert initial_loss_bound(3, 1.0, delta=0.25) == 12.0
    assert all(initial_loss_bound(7, scale, delta=0.1) <= 70 for scale in (0.0, 0.01, 0.5, 1.0))
    with pytest.raises(InputError, match="zero or positive"):
        initial_loss_bound(7, -0.1, delta=0.1)


def test_the_numbers_are_those_worked_out_by_hand():
    # 2·1²/δ = e² with δ = 2e⁻²: 1·√(2 / (2·4)) = ½
    assert gram_deviation_bound(1, 4, delta=2 * np.exp(-2)) == pytest.approx(0.5, rel=1e-15)
    assert initial_output_bound(25, 0.2, delta=0.25) == pytest.approx(2.0, rel=1e-15)
    # 2·0.5/0.5 + 4^3.5 / (8·0.25·0.5·0.25) = 2 + 128/0.25
    assert deviation_bound(4, 64, scale=0.5, smallest=0.5, delta=0.5) == pytest.approx(514.0, rel=1e-15)
    # 2⁶ / (2⁻⁴ · 2⁻² · 2⁻³) = 2¹⁵, and 2⁷ / (2⁻⁴ · 2⁻² · 2⁻⁴ · 2⁻²) = 2¹⁹
    assert required_width(2, scale=0.5, smallest=0.5, delta=0.5) == 2**15
    assert required_width(2, scale=0.5, smallest=0.5, delta=0.5, epsilon=0.5) == 2**19


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, float("nan")])
@pytest.mark.parametrize(
    "bound",
    [
        lambda delta: gram_deviation_bound(10, 10, delta=delta),
        lambda delta: initial_output_bound(10, 1.0, delta=delta),
        lambda delta: deviation_bound(10, 10, scale=1.0, smallest=0.1, delta=delta),
        lambda delta: required_width(10, scale=1.0, smallest=0.1, delta=delta),
    ],
)
def test_a_probability_outside_zero_and_one_is_refused(bound, delta):
    with pytest.raises(InputError, match="probability of failure"):
        bound(delta)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"n": 0}, {"delta": 1.0}])
def test_sizes_that_are_not_positive_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        gram_deviation_bound(**({"n": 3, "width": 10, "delta": 0.1} | wrong))


def test_the_bound_of_lemma_c3_grows_like_n_and_its_root_of_a_log():
    assert gram_deviation_bound(50, 200, delta=0.2) == pytest.approx(50 * np.sqrt(np.log(2 * 2500 / 0.2) / 400))
