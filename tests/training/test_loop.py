"""The training loop against loops written by hand in NumPy, and against itself, cut in other ways."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent._errors import InputError
from offtangent.kernels.finite import tangent_gram
from offtangent.linalg import Spectrum
from offtangent.networks import QuadraticNet, TwoLayer
from offtangent.special import activation
from offtangent.theory import largest_stable_rate, predict_residual
from offtangent.training import Diverged, HalfSquares, train
from offtangent.training.arguments import check_settings
from offtangent.training.grids import Bounded
from offtangent.training.loop import BLOCK

SGD = optax.sgd(0.05)
START = np.zeros(3, np.float32)


def rows_seen(params, X, y):  # noqa: ARG001
    """With X = I, the loss tells which rows were in the batch."""
    return jnp.sum(X, axis=0) + 0 * params


def half_squares(w, X, y):
    return 0.5 * np.sum((X @ np.asarray(w) - y) ** 2)


def squared_norm(params):
    return jnp.sum(params**2)


# --- what a step does ----------------------------------------------------------------------------------------


def test_full_batch_descent_is_the_papers_rule_with_its_subgradient_at_zero(regression):
    """w_r ← w_r − η m^{-1/2} a_r Σ_i (u_i − y_i) 1{w_rᵀx_i ≥ 0} x_i, in float64; one neuron starts at exactly zero."""
    X, y = regression
    net = TwoLayer.gaussian(dim=3, width=6, key=jax.random.key(0))
    net = TwoLayer(net.W0.at[:, 0].set(0.0), net.a, activation("relu"))
    run = train(HalfSquares(net), net.origin, X, y, optimiser=SGD, steps=40)

    W, a, losses = np.asarray(net.W0, np.float64), np.asarray(net.a, np.float64), []
    for _ in range(41):
        u = np.maximum(X @ W, 0) @ a / np.sqrt(6)
        losses.append(0.5 * np.sum((u - y) ** 2))
        final = W
        W = W - 0.05 * X.T @ ((u - y)[:, None] * (X @ W >= 0)) * a / np.sqrt(6)
    np.testing.assert_allclose(run.losses, losses, rtol=1e-5)
    np.testing.assert_allclose(net.W0 + run.params, final, rtol=1e-4, atol=1e-6)
    assert np.asarray(run.params)[:, 0].any()


def test_a_linear_model_follows_the_linear_recursion(regression, least_squares):
    """Eq. (8) with H = XXᵀ, in float64, over more than one block."""
    X, y = (part.astype(np.float64) for part in regression)
    H = Spectrum.of(X @ X.T)
    rate, steps = 0.3 * largest_stable_rate(H), BLOCK + 10
    with jax.enable_x64(True):
        run = train(least_squares, jnp.zeros(3), X, y, optimiser=optax.sgd(rate), steps=steps)
    predicted = predict_residual(H, y, rate=rate, steps=np.arange(steps + 1))
    assert run.params.dtype == np.float64
    np.testing.assert_allclose(run.losses, 0.5 * predicted.norm**2, rtol=1e-12)


def test_a_loss_belongs_to_the_parameters_before_its_step_and_the_last_to_the_end(regression, least_squares):
    X, y = regression
    run = train(least_squares, START, X, y, optimiser=SGD, steps=5)
    assert run.losses.shape == (6,)
    assert run.losses[0] == pytest.approx(0.5 * np.sum(y**2), rel=1e-6)
    assert run.losses[-1] == pytest.approx(half_squares(run.params, X, y), rel=1e-6)
    for k in (0, 2):
        assert train(least_squares, START, X, y, optimiser=SGD, steps=k).losses[-1] == run.losses[k]


def test_no_steps_leave_the_parameters_and_one_loss(regression, least_squares):
    run = train(least_squares, START, *regression, optimiser=SGD, steps=0)
    np.testing.assert_array_equal(run.params, START)
    assert run.losses.shape == (1,)


@pytest.mark.parametrize("steps", [BLOCK - 1, BLOCK, BLOCK + 1])
def test_the_end_of_a_block_is_no_special_place(regression, least_squares, steps):
    X, y = regression
    run = train(least_squares, START, X, y, optimiser=SGD, steps=steps)
    longer = train(least_squares, START, X, y, optimiser=SGD, steps=BLOCK + 5)
    np.testing.assert_array_equal(run.losses, longer.losses[: steps + 1])
    assert run.losses[-1] == pytest.approx(half_squares(run.params, X, y), rel=1e-6)


def test_several_columns_train_as_if_each_were_alone(regression):
    X, _ = regression
    y = np.random.default_rng(1).standard_normal((7, 3)).astype(np.float32)
    nets = [TwoLayer.gaussian(dim=3, width=6, key=jax.random.key(seed)) for seed in range(3)]

    def together(W, X):
        return jnp.stack([net(w, X) for net, w in zip(nets, W, strict=True)], axis=1)

    origin = [net.origin for net in nets]
    run = train(HalfSquares(together), origin, X, y, optimiser=SGD, steps=20)
    assert run.losses.shape == (21, 3)
    for i, net in enumerate(nets):
        alone = train(HalfSquares(net), net.origin, X, y[:, i], optimiser=SGD, steps=20)
        np.testing.assert_allclose(run.losses[:, i], alone.losses, rtol=1e-5)
        np.testing.assert_allclose(run.params[i], alone.params, rtol=1e-4, atol=1e-6)


def test_a_chain_of_transformations_with_state_does_what_it_does_by_hand(regression, least_squares):
    """Heavy ball with gradients clipped and a rate that decays: m ← 0.9m + clip(g), w ← w − η_k m."""
    X, y = regression
    rates = optax.exponential_decay(0.02, transition_steps=1, decay_rate=0.9)
    optimiser = optax.chain(optax.clip(0.5), optax.trace(0.9), optax.scale_by_learning_rate(rates))
    run = train(least_squares, START, X, y, optimiser=optimiser, steps=15)
    w, m = np.zeros(3), np.zeros(3)
    for k in range(15):
        m = 0.9 * m + np.clip(X.T @ (X @ w - y), -0.5, 0.5)
        w = w - 0.02 * 0.9**k * m
    np.testing.assert_allclose(run.params, w, rtol=1e-5)
    assert int(optax.tree_utils.tree_get(run.state, "count")) == 15


def test_parameters_may_be_any_pytree_of_numbers_or_arrays(regression):
    X, y = regression

    def affine(params, X):
        return X @ params["w"] + params["b"]

    run = train(HalfSquares(affine), {"w": np.zeros(3), "b": 0.0}, X, y, optimiser=SGD, steps=1)
    np.testing.assert_allclose(run.params["w"], 0.05 * X.T @ y, rtol=1e-5)
    np.testing.assert_allclose(run.params["b"], 0.05 * y.sum(), rtol=1e-5)


def test_inputs_may_have_any_shape():
    X, y = np.ones((4, 2, 3), np.float32), np.ones(4, np.float32)
    run = train(
        HalfSquares(lambda w, X: jnp.einsum("nij,ij->n", X, w)), jnp.zeros((2, 3)), X, y, optimiser=SGD, steps=1
    )
    np.testing.assert_allclose(run.params, np.full((2, 3), 0.2), rtol=1e-6)


# --- minibatches ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "batch"), [(6, 2), (6, 6), (7, 3), (5, 1)])
def test_an_epoch_visits_no_row_twice_and_leaves_out_only_a_rest(n, batch):
    per_epoch = n // batch
    seen = train(
        rows_seen, jnp.zeros(()), np.eye(n, dtype=np.float32), np.zeros(n, np.float32),
        optimiser=SGD, steps=40 * per_epoch - 1, batch=batch, key=jax.random.key(0),
    ).losses  # fmt: skip
    assert (seen.sum(axis=1) == batch).all()
    epochs = seen.reshape(40, per_epoch, n).sum(axis=1)
    assert epochs.max() == 1
    assert (epochs.sum(axis=1) == per_epoch * batch).all()
    assert (epochs.sum(axis=0) > 20).all()  # the rest is another one each time
    if per_epoch > 1:
        assert len(np.unique(seen[::per_epoch], axis=0)) > 1  # epochs are shuffled anew


def test_a_key_reproduces_its_batches_and_another_key_draws_others():
    X, y = np.eye(6, dtype=np.float32), np.zeros(6, np.float32)
    first, again, other = (
        train(rows_seen, jnp.zeros(()), X, y, optimiser=SGD, steps=20, batch=2, key=jax.random.key(seed)).losses
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_batches_that_are_not_shuffled_are_the_rows_in_their_order_in_every_epoch():
    X, y = np.eye(7, dtype=np.float32), np.zeros(7, np.float32)
    run = partial(train, rows_seen, jnp.zeros(()), X, y, optimiser=SGD, steps=8, batch=3, shuffle=False)
    first, second = np.repeat([1.0, 0.0], [3, 4]), np.repeat([0.0, 1.0, 0.0], [3, 3, 1])
    np.testing.assert_array_equal(run().losses, [first, second] * 4 + [first])
    np.testing.assert_array_equal(run(key=jax.random.key(5)).losses, run().losses)


def test_a_minibatch_step_uses_the_rows_it_reports(regression, least_squares):
    """Stochastic gradient descent by hand, on the batches that the same key shows."""
    X, y = regression
    key = jax.random.key(3)
    seen = train(
        rows_seen, jnp.zeros(()), np.eye(7, dtype=np.float32), y, optimiser=SGD, steps=9, batch=3, key=key
    ).losses
    run = train(least_squares, START, X, y, optimiser=SGD, steps=9, batch=3, key=key)
    w = np.zeros(3)
    for k in range(10):
        rows = seen[k] == 1
        assert run.losses[k] == pytest.approx(0.5 * np.sum((X[rows] @ w - y[rows]) ** 2), rel=1e-5)
        final, w = w, w - 0.05 * X[rows].T @ (X[rows] @ w - y[rows])
    np.testing.assert_allclose(run.params, final, rtol=1e-5)


def test_a_first_batch_of_little_loss_is_no_sign_of_divergence(least_squares):
    """One row in four has a residual, the others have none or next to none."""
    X, y = np.eye(4, dtype=np.float32), np.array([1e-4, 1e-4, 1e-4, 1.0], np.float32)
    for seed in range(4):
        key = jax.random.key(seed)
        run = train(least_squares, np.zeros(4), X, y, optimiser=SGD, steps=8, batch=1, key=key)
        assert run.losses.max() == pytest.approx(0.5)


# --- records -------------------------------------------------------------------------------------------------


def test_a_record_is_what_a_run_of_that_many_steps_ends_with(regression, least_squares):
    X, y = regression
    at = np.array([0, 1, 17, BLOCK, BLOCK + 3])
    record = {"norm": squared_norm, "w": lambda w: w}
    run = train(least_squares, START, X, y, optimiser=SGD, steps=BLOCK + 3, record=record, record_at=at)
    np.testing.assert_array_equal(run.steps, at)
    assert run.records["norm"].shape == (5,)
    for k, w, norm in zip(at, run.records["w"], run.records["norm"], strict=True):
        end = train(least_squares, START, X, y, optimiser=SGD, steps=int(k)).params
        np.testing.assert_array_equal(w, end)
        assert norm == pytest.approx(np.sum(np.asarray(end) ** 2), rel=1e-6)


def test_recording_disturbs_nothing_and_sorts_its_steps(regression, least_squares):
    plain = train(least_squares, START, *regression, optimiser=SGD, steps=9)
    recorded = train(
        least_squares, START, *regression, optimiser=SGD, steps=9, record={"n": squared_norm},
        record_at=np.array([9, 4, 4]),
    )  # fmt: skip
    np.testing.assert_array_equal(plain.losses, recorded.losses)
    np.testing.assert_array_equal(recorded.steps, [4, 9])


# --- divergence ----------------------------------------------------------------------------------------------


def test_divergence_of_a_linear_model_names_the_step_and_the_stable_rate(regression, least_squares):
    X, y = regression
    limit = 2 / np.linalg.eigvalsh(X.T @ X)[-1]
    with pytest.raises(Diverged, match="diverged at step") as caught:
        train(least_squares, START, X, y, optimiser=optax.sgd(float(1.5 * limit)), steps=600)
    assert caught.value.largest_stable_rate == pytest.approx(limit, rel=0.01)
    w, k = np.zeros(3), 0
    while np.sum((X @ w - y) ** 2) <= 1e3 * np.sum(y**2):
        w, k = w - 1.5 * limit * X.T @ (X @ w - y), k + 1
    assert caught.value.step == k
    assert caught.value.loss == pytest.approx(0.5 * np.sum((X @ w - y) ** 2), rel=1e-3)
    train(least_squares, START, X, y, optimiser=optax.sgd(float(0.99 * limit)), steps=600)


def test_divergence_of_a_network_names_the_stable_rate_of_its_tangent_kernel(regression):
    X, y = regression
    net = TwoLayer.gaussian(dim=3, width=6, key=jax.random.key(0))
    limit = 2 / np.linalg.eigvalsh(tangent_gram(net, net.origin, jnp.asarray(X)))[-1]
    with pytest.raises(Diverged) as caught:
        train(HalfSquares(net), net.origin, X, 100 * y, optimiser=optax.sgd(float(20 * limit)), steps=300)
    assert caught.value.largest_stable_rate == pytest.approx(limit, rel=0.01)


def test_a_loss_that_becomes_nan_is_divergence():
    """Descent on √p runs into p < 0. Its curvature is negative, so that it names no rate, and the message says so."""

    def root(p, X, y):  # noqa: ARG001
        return jnp.sqrt(p)

    with pytest.raises(Diverged, match=r"loss is nan.*names no stable learning rate") as caught:
        train(root, jnp.ones(()), np.ones((1, 1)), np.ones(1), optimiser=optax.sgd(0.1), steps=300)
    p, k = 1.0, 0
    while p >= 0:
        p, k = p - 0.1 * 0.5 / np.sqrt(p), k + 1
    assert caught.value.step == k
    assert caught.value.largest_stable_rate == np.inf


def test_a_loss_that_is_nan_from_the_start_is_refused_as_bad_input(regression, least_squares):
    with pytest.raises(InputError, match="before the first step"):
        train(least_squares, np.full_like(START, np.nan), *regression, optimiser=SGD, steps=3)


@pytest.mark.parametrize("where", ["X", "y"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_data_that_are_not_finite_are_refused_and_no_batch_that_meets_them_late_diverges(
    regression, least_squares, where, value
):
    X, y = (part.copy() for part in regression)
    {"X": X[-1:, 0], "y": y[-1:]}[where][0] = value
    with pytest.raises(InputError, match=f"^{where} is NaN or infinite in 1 of its .* row {len(X) - 1} "):
        train(least_squares, START, X, y, optimiser=SGD, steps=3, batch=1, key=jax.random.key(0))


def test_a_start_at_loss_zero_is_no_divergence_when_noise_is_added(least_squares):
    X, y = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)
    noisy = optax.chain(optax.add_noise(1e-3, 0.0, 0), optax.sgd(0.1))
    run = train(least_squares, START, X, y, optimiser=noisy, steps=5)
    assert run.losses[0] == 0
    assert run.losses[-1] > 0


# --- around it -----------------------------------------------------------------------------------------------


def test_progress_is_told_after_every_block(regression, least_squares):
    told = []
    steps = 2 * BLOCK + 7
    train(
        least_squares, START, *regression, optimiser=SGD, steps=steps,
        progress=lambda done, of: told.append((done, of)),
    )  # fmt: skip
    assert told == [(BLOCK, steps), (2 * BLOCK, steps), (steps, steps)]


def test_a_second_run_compiles_nothing(regression):
    traced = []

    def counted(w, X, y):
        traced.append(1)
        return 0.5 * jnp.sum((X @ w - y) ** 2)

    X, y = regression
    optimiser = optax.adam(0.01)
    train(counted, START, X, y, optimiser=optimiser, steps=3)
    before = len(traced)
    run = train(counted, START + 1, X, 2 * y, optimiser=optimiser, steps=BLOCK + 9)
    assert len(traced) - before <= 1  # for the shape of the losses, without compiling
    assert len(run.losses) == BLOCK + 10


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"steps": -1}, "steps=-1"),
        ({"batch": 0, "key": jax.random.key(0)}, "batch=0"),
        ({"batch": 8, "key": jax.random.key(0)}, "the 7 rows"),
        ({"batch": 2}, r"give key=jax.random.key\(seed\)"),
        ({"record": {"n": squared_norm}}, "go together"),
        ({"record_at": np.array([1])}, "go together"),
        ({"record": {"n": squared_norm}, "record_at": np.array([4])}, r"outside 0\.\.3"),
        ({"record": {"n": squared_norm}, "record_at": np.array([-1])}, r"outside 0\.\.3"),
    ],
)
def test_settings_without_meaning_are_refused(regression, least_squares, settings, fault):
    with pytest.raises(InputError, match=fault):
        train(least_squares, START, *regression, optimiser=SGD, **{"steps": 3, **settings})


def test_a_quadratic_network_with_too_many_samples_warns_and_is_trained_all_the_same():
    X, y = np.random.default_rng(0).standard_normal((4, 2)), np.ones(4)
    net = QuadraticNet(2, 6)
    with pytest.warns(UserWarning, match="4 samples are more than the 3"):
        history = train(HalfSquares(net), net.init(key=jax.random.key(0)), X, y, optimiser=optax.sgd(0.001), steps=1)
    assert history.losses[1] < history.losses[0]


class Constant:
    """A network of one's own that knows its limit."""

    most_samples = 1

    def __call__(self, c, X):
        return c + 0 * X[:, 0]


def test_any_network_that_knows_how_many_samples_fit_is_asked(regression):
    with pytest.warns(UserWarning, match="7 samples are more than the 1 to which this network can give any labels"):
        train(HalfSquares(Constant()), jnp.zeros(()), *regression, optimiser=optax.sgd(0.01), steps=1)


def test_a_network_without_a_limit_passes_without_a_warning(regression, least_squares, recwarn):
    train(least_squares, jnp.zeros(3), *regression, optimiser=optax.sgd(0.01), steps=1)
    assert not [seen for seen in recwarn if "samples" in str(seen.message)]


def test_a_label_too_few_is_refused():
    """At the door itself: in tests the checked shapes of `train` stand before it."""
    with pytest.raises(InputError, match="7 inputs but 6 labels"):
        check_settings(7, 6, 1, None, None, None, None)


def test_labels_in_a_column_are_refused_and_not_broadcast(regression):
    """(n, 1) against (n,) would pair every output with every label."""
    X, y = regression
    with pytest.raises(InputError, match=r"\(7,\).*\(7, 1\).*ravel"):
        train(HalfSquares(lambda w, X: X @ w), jnp.zeros(3), X, y[:, None], optimiser=optax.sgd(0.01), steps=1)


def test_what_is_no_optimiser_or_no_objective_is_refused_with_an_example(regression):
    X, y = regression
    with pytest.raises((InputError, TypeError), match="optax"):  # the tests' type checker may be faster
        train(HalfSquares(lambda w, X: X @ w), jnp.zeros(3), X, y, optimiser=0.1, steps=1)
    with pytest.raises(InputError, match=r"HalfSquares\(f\)"):
        train(lambda w, X: X @ w, jnp.zeros(3), X, y, optimiser=optax.sgd(0.1), steps=1)


def test_a_loss_that_rose_and_came_down_again_is_told_with_the_step_and_the_rate():
    """A valley in a flat plain: at ten times the stable rate the first step leads far out, where steps are small."""

    def hill(w, X, y):  # noqa: ARG001
        return jnp.sum(10 * w**2 / (1 + w**2 / 100))

    run = partial(train, hill, np.array([1.0]), np.ones((1, 1)), np.zeros(1), steps=50)
    with pytest.warns(UserWarning, match=r"The loss rose to .* at step \d+, .* times the first one.*is safe"):
        history = run(optimiser=optax.sgd(1.0))
    assert history.losses.max() > 10 * history.losses[0]
    assert run(optimiser=optax.sgd(0.05)).losses[-1] < 1e-6  # without a word


def test_a_grid_of_rates_some_of_which_are_too_large_is_trained_without_a_word():
    """The same valley under `Bounded`, inside another objective too, as the experiments' grids have it."""

    class Total(eqx.Module):
        objective: Bounded

        def __call__(self, w, X, y):
            return jnp.sum(self.objective(w, X, y))

    bounded = Bounded(lambda w, X, y: 10 * w**2 / (1 + w**2 / 100), 1e6)  # noqa: ARG005
    for objective in (bounded, Total(bounded)):
        start = np.array([1.0, 1.0])
        history = train(objective, start, np.ones((1, 1)), np.zeros(1), optimiser=optax.sgd(1.0), steps=50)
        assert history.losses.max() > 10 * history.losses[0].max()
