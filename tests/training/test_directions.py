"""Regularisers and noise in a training: the update written out, its law, and what R₃ and R₁ do to a run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.losses import squared
from offtangent.taylor import expand
from offtangent.theory.bai_lee.penalties import penalty_gradient
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.escape import Movement
from offtangent.theory.nichani.regularisers import R3, R4, RandomisedR1
from offtangent.training import MeanLoss, train
from offtangent.training.directions import (
    RegularisedLoss,
    add_perturbation,
    add_regulariser,
    chain,
    perturbed_descent,
)
from offtangent.training.loop import BLOCK, Checkpoint
from offtangent.training.randomised import add_penalty

DIM, N = 4, 14
NET = TwoLayer.symmetric(dim=DIM, width=40, law="sphere", activation="softplus", key=jax.random.key(0))
X = data.sphere(N, DIM, radius=2.0, key=jax.random.key(1))
Y = X[:, 0] + X[:, 1] ** 2 - 1
TRAINING = FeatureCovariance.of_samples(NET, X)
R = R3.empirical(NET, X, DIM + 1)
SLOPE = jax.jit(jax.grad(R))
START = np.random.default_rng(0).standard_normal((DIM, 40)).astype(np.float32)
KEY = jax.random.key(5)


def updated(part, gradient, params):
    return jax.jit(part.update)(gradient, part.init(params), params)[0]


def test_the_gradient_of_the_regulariser_is_added_with_one_strength_a_schedule_or_one_for_each():
    slope, batch = SLOPE(START), np.stack([START, 2 * START])
    for strength in (0.3, optax.constant_schedule(0.3)):
        part = add_regulariser(R, strength)
        added, state = jax.jit(part.update)(np.ones_like(START), part.init(START), START)
        np.testing.assert_allclose(added - 1, 0.3 * slope, rtol=1e-3, atol=1e-6)
    assert int(state.steps) == 1
    each = add_regulariser(R, np.array([0.0, 2.0]))
    added, _ = jax.jit(each.update)(np.zeros_like(batch), each.init(batch), batch)
    np.testing.assert_allclose(added[0], 0.0)
    np.testing.assert_allclose(added[1], 4 * slope, rtol=1e-4, atol=1e-6)  # R is a quadratic form


def test_with_r4_it_is_add_penalty():
    ours, theirs = add_regulariser(R4(), 0.1), add_penalty(0.1)
    np.testing.assert_allclose(updated(ours, START, START), updated(theirs, START, START), rtol=1e-5)


class Fresh:
    """R(W, key) = ⟨W, ξ⟩ with Gaussian ξ: its gradient shows what was drawn."""

    randomised = True

    def __call__(self, W, key):
        return jnp.sum(W * jax.random.normal(key, W.shape))


def test_a_randomised_regulariser_sees_fresh_inputs_at_every_step():
    part = add_regulariser(Fresh(), 2.0, key=KEY)
    state, update, seen = part.init(START), jax.jit(part.update), []
    for _ in range(2):
        now = jax.random.split(state.key)[0]
        added, state = update(0 * START, state, START)
        np.testing.assert_allclose(added, 2 * jax.random.normal(now, START.shape), rtol=1e-6)
        seen.append(np.asarray(added))
    assert abs(np.corrcoef(seen[0].ravel(), seen[1].ravel())[0, 1]) < 4 / np.sqrt(START.size)


def test_noise_has_the_paper_s_variance_and_every_matrix_its_own():
    """Ξ_ij ~ N(0, σ²/(md)): 3 × 50 × 200 entries, mean, variance and correlation within four standard errors."""
    W = np.zeros((3, 50, 200), np.float32)
    part = add_perturbation(0.2, key=KEY)
    update = jax.jit(part.update)
    noise, state = update(W, part.init(W), W)
    scaled = np.asarray(noise) / (0.2 / np.sqrt(50 * 200))
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)
    assert abs((scaled**2).mean() - 1) < 4 * np.sqrt(2 / scaled.size)
    assert abs((scaled[0] * scaled[1]).mean()) < 4 / np.sqrt(scaled[0].size)
    again, noise = np.asarray(update(W, state, W)[0]), np.asarray(noise)
    assert abs((again * noise).sum() / (noise**2).sum()) < 4 / np.sqrt(noise.size)


def test_a_step_of_perturbed_descent_is_eq_21_written_out():
    optimiser = perturbed_descent(0.5, noise=0.3, regularisers=((R, 2.0), (R4(), 1e-6)), key=KEY)
    step, state = jax.jit(optimiser.update), optimiser.init(START)
    noise = np.asarray(step(0 * START, state, 0 * START)[0]) / -0.5  # every regulariser's gradient vanishes at W = 0
    truth = -0.5 * (1 + 2 * np.asarray(SLOPE(START)) + 1e-6 * np.asarray(penalty_gradient(START)) + noise)
    np.testing.assert_allclose(step(np.ones_like(START), state, START)[0], truth, rtol=1e-3, atol=1e-5)
    assert np.sum(noise**2) == pytest.approx(0.09, rel=4 * np.sqrt(2 / 160))


def test_what_a_chain_holds_is_an_argument_of_the_program_and_of_optax_s_a_constant():
    def program(optimiser):
        step = eqx.filter_jit(lambda o, W: o.update(W, o.init(W), W)[0])
        return len(step.lower(optimiser, START).as_text())

    parts = (add_regulariser(R, 1.0), optax.sgd(0.1))
    held = sum(leaf.size for leaf in jax.tree.leaves(R) if leaf.any())
    assert program(optax.chain(*parts)) - program(chain(*parts)) > 8 * held  # a float32 is eight digits of text
    ours, theirs = chain(*parts), optax.chain(*parts)
    np.testing.assert_allclose(updated(ours, START, START), updated(theirs, START, START), rtol=1e-6)


@pytest.fixture(scope="module")
def runs():
    """λ₃ = 0 and 10 at once, from one start: the joint model f_L + f_Q on the square loss, as in Figure 1."""
    model = expand(NET, NET.origin, 2).on(jnp.asarray(X, jnp.float32))

    def objective(W, X, y):  # noqa: ARG001
        return jax.vmap(lambda one: jnp.mean((model(one) - y) ** 2))(W)

    start = 0.01 * np.stack([START, START])
    movement = Movement.of(TRAINING, (DIM + 1, N))  # of the training features: V₁, V₂ and the null space
    loss = RegularisedLoss(objective, ((R, np.array([0.0, 10.0])),))
    steps = 600
    return train(
        loss, start, X, Y, optimiser=optax.sgd(0.5), steps=steps, record={"moved": movement, "R3": R},
        record_at=np.array([0, steps]),
    )  # fmt: skip


def test_r3_keeps_the_linear_term_out_of_the_bad_directions_while_the_loss_falls(runs):
    """Goal 1: with λ₃ the movement in V₂ is smaller; λ₃R₃ is part of the loss, so at most its start's value."""
    moved, penalised = runs.records["moved"], runs.records["R3"]
    assert moved.shape == (2, 2, 3)
    assert moved[-1, 1, 1] < moved[-1, 0, 1] / 2
    assert penalised[-1, 1] < penalised[-1, 0] / 10
    assert 10 * penalised[-1, 1] <= runs.losses[-1, 1]
    assert (runs.losses[-1] < runs.losses[0] / 10).all()


def test_the_regularised_loss_is_the_sum_of_its_terms():
    plain = MeanLoss(NET, squared)
    loss = RegularisedLoss(plain, ((R, 2.0), (R4(), 1e-4)))

    @jax.jit
    def both(W, X, y):
        return loss(W, X, y), plain(W, X, y), R(W), R4()(W)

    whole, first, second, third = both(START, X.astype(np.float32), Y.astype(np.float32))
    assert float(whole) == pytest.approx(float(first + 2 * second + 1e-4 * third), rel=1e-5)


def test_training_with_a_checkpoint_goes_on_with_the_same_noise_and_fresh_inputs(tmp_path):
    fresh = RandomisedR1.of(TRAINING, DIM + 1, samples=3)
    optimiser = perturbed_descent(0.1, noise=0.05, regularisers=((fresh, 0.1), (R, 1.0)), key=KEY)
    words = {"optimiser": optimiser, "steps": BLOCK + 5}
    whole = train(MeanLoss(NET, squared), NET.origin, X, Y, **words)

    class Stop(Exception):
        pass

    def stop(done, steps):  # noqa: ARG001
        raise Stop

    kept = Checkpoint(tmp_path / "run.npz", seconds=0.0)
    with pytest.raises(Stop):
        train(MeanLoss(NET, squared), NET.origin, X, Y, checkpoint=kept, progress=stop, **words)
    resumed = train(MeanLoss(NET, squared), NET.origin, X, Y, checkpoint=kept, **words)
    assert resumed.resumed_at == BLOCK
    np.testing.assert_array_equal(resumed.params, whole.params)
    assert whole.losses[-1] < whole.losses[0]


def test_what_is_no_regulariser_strength_or_noise_is_refused():
    fresh = RandomisedR1.of(TRAINING, DIM + 1)
    for call, word in (
        (lambda: add_regulariser(R, -1.0), "strength=-1"),
        (lambda: add_regulariser(fresh, 1.0), "give key="),
        (lambda: add_regulariser(R, 1.0, key=KEY), "does not"),
        (lambda: add_perturbation(-1.0, key=KEY), "noise=-1"),
        (lambda: add_perturbation(1.0, key=KEY).init(jnp.ones(3)), "shape \\(3,\\)"),
        (lambda: perturbed_descent(0.0, noise=0.1, key=KEY), "rate=0"),
        (lambda: RegularisedLoss(MeanLoss(NET), ((fresh, 1.0),)), "neither step nor key"),
        (lambda: add_regulariser(R, 1.0).update(START, add_regulariser(R, 1.0).init(START)), "needs the parameters"),
        (lambda: add_regulariser(R, jnp.ones(3)).update(START, add_regulariser(R, 1.0).init(START), START), "one λ"),
    ):
        with pytest.raises(InputError, match=word):
            call()
