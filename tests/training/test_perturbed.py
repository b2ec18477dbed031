"""Algorithm 1 against the paper's pseudo-code, written as a loop, and on functions with saddles."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent._errors import InputError
from offtangent.networks import QuadraticNet
from offtangent.taylor import certificate
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import DescentSettings
from offtangent.training import train
from offtangent.training.perturbed import _in_ball, algorithm1, find_stationary

SETTINGS = DescentSettings(rate=0.05, radius=0.02, gradient=0.02, decrease=0.02, wait=40)


def well(x):
    """Minima at (±1, 0) of value 0; a saddle at the origin."""
    return (x[0] ** 2 - 1) ** 2 + x[1] ** 2


def by_the_book(start, settings, draws, most):
    """Lines 2 to 12, with f and ∇f of `well`; the path, and the point returned."""
    value, slope = jax.jit(well), jax.jit(jax.grad(well))
    x, t_noise, anchor, path = np.asarray(start), -settings.wait - 1, None, []
    for t in range(most):
        if np.linalg.norm(slope(x)) <= settings.gradient and t - t_noise > settings.wait:
            anchor, t_noise = x, t
            x = anchor + next(draws)
        if t - t_noise == settings.wait and value(x) - value(anchor) > -settings.decrease:
            return anchor, path, t
        path.append(x)
        x = x - settings.rate * np.asarray(slope(x))
    return None, path, most


@pytest.mark.parametrize("start", [[0.0, 0.0], [0.0, 0.7], [1.4, -0.5]])
def test_it_is_the_pseudo_code_step_by_step(start):
    key = jax.random.key(3)
    start = jnp.array(start)
    draws = (np.asarray(_in_ball(jax.random.fold_in(key, k), start, SETTINGS.radius)) for k in range(100))
    expected, path, time = by_the_book(start, SETTINGS, draws, 2000)
    optimiser = algorithm1(SETTINGS, key=key)
    update = jax.jit(lambda s, x: optimiser.update(jax.grad(well)(x), s, x, value=well(x)))
    x, state, ours = start, optimiser.init(start), []
    while not state.done:
        before = state.time
        moved, state = update(state, x)
        if state.time > before:
            ours.append(x)
        x = optax.apply_updates(x, moved)
    np.testing.assert_allclose(ours, path, atol=2e-6)
    np.testing.assert_allclose(x, expected, atol=2e-6)
    assert int(state.time) == time
    found = find_stationary(well, start, SETTINGS, most=4000, key=key)
    np.testing.assert_allclose(found.params, expected, atol=2e-6)
    assert (int(found.steps), bool(found.returned)) == (time, True)
    assert int(found.escapes) == int(found.perturbations) - 1  # every one but the last, after which it returns


def test_plain_descent_stays_at_the_saddle_that_it_leaves():
    found = find_stationary(well, jnp.zeros(2), SETTINGS, most=4000, key=jax.random.key(0))
    assert not jax.grad(well)(jnp.zeros(2)).any()
    assert float(found.loss) < 1e-3
    assert int(found.escapes) >= 1


@pytest.fixture(scope="module", params=[3, 5], ids=["24 parameters, the whole Hessian", "70 parameters, Lanczos"])
def memorised(request):
    """Where Algorithm 1 ends on g of a quadratic network with r = 2d + 2, and γ > 0, so that M does not vanish."""
    dim = request.param
    with jax.enable_x64(True):
        rng = np.random.default_rng(dim)
        X = rng.standard_normal((dim + 2, dim))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        net = QuadraticNet(dim, 2 * dim + 2)
        risk = QuadraticRisk.of(net, X, rng.standard_normal(dim + 2), gamma=0.01)
        settings = DescentSettings(rate=0.5, radius=0.01, gradient=1e-4, decrease=1e-5, wait=300)
        found = find_stationary(risk, net.origin, settings, most=20_000, key=jax.random.key(1))
        assert found.returned
        yield risk, found.params


@pytest.mark.parametrize("of", ["g", "f"])
def test_the_certificate_at_the_end_has_the_gradient_and_lowest_eigenvalue_of_autodiff(memorised, of):
    risk, W = memorised
    loss = risk if of == "g" else risk.loss
    with jax.enable_x64(True):
        end = certificate(loss, W, key=jax.random.key(2), tol=1e-9)
        values = np.linalg.eigvalsh(jax.jit(jax.hessian(lambda v: loss(v.reshape(W.shape))))(W.ravel()))
        slope = float(jnp.linalg.norm(jax.jit(jax.grad(loss))(W)))
    assert end.exact == (W.size <= 64)
    assert end.gradient_norm == pytest.approx(slope, rel=1e-9)
    assert end.curvature == pytest.approx(values[0], abs=1e-7)
    assert end.lowest - 1e-12 <= values[0] <= end.curvature + 1e-12


def test_the_certificate_at_the_end_finds_minus_the_norm_of_m_as_lemma_3_says(memorised):
    risk, W = memorised
    with jax.enable_x64(True):
        end = certificate(risk.loss, W, key=jax.random.key(2), tol=1e-9)
        residuals = np.asarray(risk.net(W, risk.X) - risk.y)
    M = np.asarray(risk.X).T @ np.diag(residuals) @ np.asarray(risk.X) / len(residuals)
    assert np.linalg.norm(M, 2) > 1e-3
    assert end.curvature == pytest.approx(-np.linalg.norm(M, 2), rel=1e-5)


def test_a_run_that_is_cut_off_says_so():
    found = find_stationary(well, jnp.array([0.0, 5.0]), SETTINGS, most=7, key=jax.random.key(0))
    assert not found.returned
    assert int(found.steps) == 7


def test_it_stays_where_it_returned_and_works_in_train():
    def objective(params, X, y):  # noqa: ARG001
        return well(params["x"])

    nothing = np.zeros((2, 1)), np.zeros(2)
    found = [
        train(objective, {"x": jnp.zeros(2)}, *nothing, optimiser=algorithm1(SETTINGS, key=jax.random.key(1)), steps=n)
        for n in (600, 700)
    ]
    np.testing.assert_array_equal(found[0].params["x"], found[1].params["x"])
    assert float(well(found[0].params["x"])) < 1e-3
    assert found[0].losses[0] == 1.0


def test_many_starts_are_one_program():
    keys = jax.random.split(jax.random.key(5), 8)
    starts = jax.vmap(lambda key: jax.random.normal(key, (2,)))(keys)
    found = jax.vmap(lambda x, key: find_stationary(well, x, SETTINGS, most=4000, key=key))(starts, keys)
    assert found.returned.all()
    assert float(found.loss.max()) < 1e-2


@pytest.mark.parametrize("dim", [1, 3, 8])
def test_perturbations_are_uniform_in_the_ball(dim):
    """P(‖ξ‖ ≤ s·r) = s^p, and no direction is preferred, over a whole tree of parameters."""
    tree = {"a": jnp.zeros(dim), "b": jnp.zeros((1, dim))}
    draws = jax.vmap(lambda key: _in_ball(key, tree, 2.0))(jax.random.split(jax.random.key(7), 20_000))
    flat = np.concatenate([draws["a"], draws["b"][:, 0]], axis=1)
    lengths = np.linalg.norm(flat, axis=1) / 2
    for s in (0.5, 0.8, 0.95):
        share, expected = (lengths <= s).mean(), s ** (2 * dim)
        assert abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / len(lengths)) + 1e-12
    assert lengths.max() <= 1 + 1e-6
    assert (np.abs(flat.mean(axis=0)) <= 5 * flat.std(axis=0) / len(flat) ** 0.5).all()


def test_a_wait_that_int32_cannot_count_is_refused():
    settings = DescentSettings(rate=0.1, radius=1.0, gradient=1.0, decrease=1.0, wait=10**12)
    with pytest.raises(InputError, match="wait=1000000000000: steps are counted in 32 bits"):
        algorithm1(settings, key=jax.random.key(0))
