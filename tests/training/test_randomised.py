"""Fresh-sign noisy SGD against the paper's rule iterated by hand, the exact gradient of L, and its own law."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.losses import logistic
from offtangent.theory.bai_lee.risks import RandomisedRisk
from offtangent.training import train
from offtangent.training.loop import BLOCK, Checkpoint
from offtangent.training.randomised import MeanLoss, add_penalty, fresh_signs, randomised_sgd, unsigned

NET = TwoLayer.symmetric(dim=3, width=6, activation="softplus", key=jax.random.key(0))
OBJECTIVE = MeanLoss(NET, logistic)
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((8, 3)), jnp.float32)
Y = jnp.asarray(RNG.choice([-1.0, 1.0], 8), jnp.float32)
START = jnp.asarray(RNG.standard_normal((3, 6)), jnp.float32)


@jax.jit
def slope(V):
    return jax.grad(OBJECTIVE)(V, X, Y)


def penalty(W):
    return jnp.sum(jnp.linalg.norm(W, axis=-2) ** 4, axis=-1) ** 2


@pytest.mark.parametrize("inner", [optax.sgd(0.3), optax.adam(0.1)], ids=["sgd", "adam"])
def test_each_step_is_the_inner_optimisers_on_the_gradient_of_the_signed_risk(inner):
    """W moves along ∇_W L̃(WΣ_t) = ∇L̃(WΣ_t)Σ_t with the Σ_t of the state; also for an optimiser that remembers."""
    optimiser = fresh_signs(inner, key=jax.random.key(1))
    V, state = START, optimiser.init(START)
    W, memory = START, inner.init(START)
    update, truth = jax.jit(optimiser.update), jax.jit(inner.update)
    seen = []
    for _ in range(8):
        signs = state.signs.astype(jnp.float32)
        updates, memory = truth(slope(W * signs) * signs, memory, W)
        W = W + updates
        moves, state = update(slope(V), state, V)
        V = V + moves
        seen.append(np.asarray(state.signs))
        np.testing.assert_allclose(unsigned(V, state), W, atol=3e-6)
        np.testing.assert_allclose(V, W * state.signs, atol=3e-6)
    assert len({tuple(one) for one in seen}) > 4


def test_the_mean_step_is_the_gradient_of_the_randomised_risk():
    """E over Σ of ∇L̃(WΣ)Σ is ∇L(W), L by enumeration: within four standard errors over 2000 draws."""
    optimiser = fresh_signs(optax.sgd(1.0), key=jax.random.key(0))

    @jax.jit
    def steps(key):
        plain = optimiser.init(START)._replace(key=key)
        turned, state = optimiser.update(jnp.zeros_like(START), plain, START)  # puts signs on, moves nothing
        V = START + turned
        moves, after = optimiser.update(jax.grad(OBJECTIVE)(V, X, Y), state, V)
        return START - unsigned(V + moves, after)

    draws = np.asarray(jax.vmap(steps)(jax.random.split(jax.random.key(5), 2000)))
    truth = jax.jit(jax.grad(RandomisedRisk.of(NET, X, Y)))(START)
    z = (draws.mean(axis=0) - truth) / (draws.std(axis=0) / np.sqrt(2000) + 1e-7)
    assert np.abs(z).max() < 4
    assert np.abs(slope(START) - truth).max() > 20 * draws.std(axis=0).max() / np.sqrt(2000)  # it is another gradient


def test_signs_are_fair_and_those_of_networks_and_matrices_are_their_own():
    params = {"a": jnp.ones((40, 2, 50)), "b": jnp.ones((2, 50))}
    optimiser = fresh_signs(optax.sgd(0.1), key=jax.random.key(0))
    _, state = jax.jit(optimiser.update)(params, optimiser.init(params), params)
    stack = np.vstack([state.signs["a"], state.signs["b"][None]]).astype(float)
    assert set(np.unique(stack)) == {-1.0, 1.0}
    assert abs(stack.mean()) < 4 / np.sqrt(stack.size)
    inner = stack @ stack.T / 50
    assert np.abs(inner - np.eye(41)).max() < 5 / np.sqrt(50)  # 820 pairs of networks


def test_the_regulariser_adds_the_gradient_of_its_norm():
    W = jnp.stack([START, 2 * START])
    for strength in (0.3, optax.constant_schedule(0.3)):
        regulariser = add_penalty(strength)
        added, _ = regulariser.update(jnp.ones_like(W), regulariser.init(W), W)
        np.testing.assert_allclose(added - 1, 0.3 * jax.grad(lambda W: penalty(W).sum())(W), rtol=1e-4)


def test_a_schedule_is_followed():
    regulariser = add_penalty(lambda count: 1.0 * count)
    W, state = jnp.array([[1.0]]), regulariser.init(jnp.array([[1.0]]))
    found = []
    for _ in range(3):
        added, state = regulariser.update(jnp.zeros_like(W), state, W)
        found.append(float(added[0, 0]))
    assert found == [0.0, 8.0, 16.0]


def test_noise_is_isotropic_with_its_standard_deviation_times_the_rate():
    W = jnp.zeros((50, 200))
    optimiser = randomised_sgd(0.5, noise=0.2, key=jax.random.key(0))
    moves, state = optimiser.update(W, optimiser.init(W), W)
    noise = np.asarray(unsigned(moves, state))
    assert noise.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * noise.size))
    assert abs(noise.mean()) < 4 * 0.1 / np.sqrt(noise.size)
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 4 / np.sqrt(200)


def test_training_with_checkpoints_goes_on_with_the_same_signs_and_noise(tmp_path):
    settings = {"steps": BLOCK + 10, "batch": 4, "key": jax.random.key(2)}
    optimiser = randomised_sgd(0.3, noise=0.05, strength=0.01, key=jax.random.key(3))
    start = 0.3 * START
    whole = train(OBJECTIVE, start, X, Y, optimiser=optimiser, **settings)

    class Stop(Exception):
        pass

    def stop(done, steps):  # noqa: ARG001
        raise Stop

    kept = Checkpoint(tmp_path / "run.npz", seconds=0.0)
    with pytest.raises(Stop):
        train(OBJECTIVE, start, X, Y, optimiser=optimiser, checkpoint=kept, progress=stop, **settings)
    resumed = train(OBJECTIVE, start, X, Y, optimiser=optimiser, checkpoint=kept, **settings)
    assert resumed.resumed_at == BLOCK
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    np.testing.assert_array_equal(unsigned(resumed.params, resumed.state), unsigned(whole.params, whole.state))


def test_noise_leaves_the_saddle_at_zero_and_the_randomised_risk_falls():
    """Full batches from W = 0, where the gradient of L vanishes: the labels are the sign of a quadratic form."""
    labels = jnp.sign(X[:, 0] * X[:, 1])
    optimiser = randomised_sgd(1.0, noise=0.02, key=jax.random.key(0))
    run = train(MeanLoss(NET), NET.origin, X, labels, optimiser=optimiser, steps=1500)
    risk = RandomisedRisk.of(NET, X, labels)
    start, end = risk.estimate(NET.origin).value, risk.estimate(run.params).value
    assert start == pytest.approx(np.log(2), rel=1e-6)
    assert end < 0.9 * start
    assert risk.estimate(unsigned(run.params, run.state)).value == pytest.approx(end, rel=1e-5)


def test_what_cannot_be_signed_or_regularised_is_refused():
    W = jnp.ones((2, 3))
    optimiser = fresh_signs(optax.sgd(0.1), key=jax.random.key(0))
    with pytest.raises(InputError, match=r"\['bias'\] has shape \(3,\)"):
        optimiser.init({"W": W, "bias": jnp.ones(3)})
    with pytest.raises(InputError, match="one matrix W"):
        add_penalty(0.1).init({"W": W})
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        add_penalty(0.1).init(jnp.ones(3))
    for one in (optimiser, add_penalty(0.1)):
        with pytest.raises(InputError, match="needs the parameters"):
            one.update(W, one.init(W))
    with pytest.raises(InputError, match="strength=-1"):
        add_penalty(-1.0)
    with pytest.raises(InputError, match="noise=-1"):
        randomised_sgd(0.1, noise=-1.0, key=jax.random.key(0))
    with pytest.raises(InputError, match="outermost"):
        unsigned(W, optax.sgd(0.1).init(W))
    with pytest.raises(InputError, match="must be the same"):
        OBJECTIVE(START, X, Y[:, None])
