"""The risks against a loop over all signs with the network itself, and against a quadratic network by hand."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.losses import logistic, soft_hinge
from offtangent.theory.bai_lee import signs as signs_module
from offtangent.theory.bai_lee.risks import CleanRisk, RandomisedRisk, empirical_risk
from offtangent.theory.bai_lee.signs import in_float64


def problem(width, *, make=TwoLayer.symmetric, activation="softplus"):
    rng = np.random.default_rng(width)
    net = make(dim=3, width=width, activation=activation, key=jax.random.key(0))
    X, y = rng.standard_normal((8, 3)), rng.choice([-1.0, 1.0], 8)
    return net, X, y, rng.standard_normal((3, width)) * width**-0.25


@pytest.fixture
def wide():
    with jax.enable_x64(True):
        yield


def by_hand(net, X, y, W, loss):
    """L̃ of the formula itself, in NumPy, for softplus."""
    f = np.logaddexp(0, X @ (np.asarray(net.W0) + W)) @ np.asarray(net.a) / np.sqrt(net.width)
    return np.mean(np.asarray(loss(y, f)))


@pytest.mark.parametrize(("make", "loss"), [(TwoLayer.symmetric, soft_hinge), (TwoLayer.gaussian, logistic)])
def test_the_exact_risk_is_the_mean_over_all_signs(make, loss, wide):  # noqa: ARG001
    net, X, y, W = problem(6, make=make)
    net = in_float64(net)
    risk = RandomisedRisk.of(net, X, y, loss)
    truth = np.mean([by_hand(net, X, y, W * np.array(s), loss) for s in itertools.product((-1, 1), repeat=6)])
    found = risk.estimate(W)
    assert found.value == pytest.approx(truth, rel=1e-13)
    assert (found.error, found.draws) == (0.0, 64)
    assert float(empirical_risk(net, jnp.asarray(W), jnp.asarray(X), jnp.asarray(y), loss)) == pytest.approx(
        by_hand(net, X, y, W, loss), rel=1e-13
    )


def test_gradient_and_hessian_of_the_risk_are_those_of_the_mean_over_signs(wide):  # noqa: ARG001
    net, X, y, W = problem(4)
    net = in_float64(net)
    risk = RandomisedRisk.of(net, X, y, strength=0.1)
    inputs, labels = jnp.asarray(X), jnp.asarray(y)

    def mean(W):
        rows = jnp.array(list(itertools.product((-1.0, 1.0), repeat=4)))
        losses = jax.vmap(lambda s: empirical_risk(net, W * s, inputs, labels, logistic))(rows)
        return jnp.mean(losses) + 0.1 * jnp.sum(jnp.sum(W**2, axis=0) ** 2) ** 2

    V = jnp.asarray(W)
    (slope, bend), (true_slope, true_bend) = (
        jax.jit(lambda W, f=f: (jax.grad(f)(W), jax.hessian(f)(W)))(V) for f in (risk, mean)
    )
    np.testing.assert_allclose(slope, true_slope, atol=1e-13)
    np.testing.assert_allclose(bend, true_bend, atol=1e-12)


def test_the_risk_and_all_its_derivatives_ignore_signs_of_the_weights(wide):  # noqa: ARG001
    net, X, y, W = problem(6)
    risk = RandomisedRisk.of(in_float64(net), X, y, strength=0.2)
    s = np.array([1, -1, -1, 1, 1, -1.0])
    look = jax.jit(jax.value_and_grad(risk))
    (value, slope), (turned, turned_slope) = look(jnp.asarray(W)), look(jnp.asarray(W * s))
    assert float(turned) == pytest.approx(float(value), rel=1e-14)
    np.testing.assert_allclose(turned_slope, slope * s, atol=1e-14)


def test_drawn_signs_give_the_exact_risk_within_four_standard_errors():
    net, X, y, W = problem(10)
    exact = RandomisedRisk.of(net, X, y).estimate(W).value
    drawn = [RandomisedRisk.of(net, X, y, samples=400, key=jax.random.key(k)).estimate(W) for k in range(20)]
    z = np.array([(one.value - exact) / one.error for one in drawn])
    assert np.abs(z).max() < 4
    assert 0.5 < np.std(z) < 1.7  # the errors are of the right size
    assert drawn[0].error > 0


def test_opposite_signs_beat_independent_ones():
    """Pairs cancel the linear part of the outputs: a smaller error than that of as many independent signs."""
    net, X, y, W = problem(64)
    risk = RandomisedRisk.of(net, X, y, samples=1000, key=jax.random.key(0))
    moved = jnp.asarray(W * np.asarray(risk.signs)[:, None, :], jnp.float32)
    singles = np.asarray(jax.jit(jax.vmap(lambda V: empirical_risk(net, V, risk.X, risk.y)))(moved))
    assert risk.estimate(W).error < 0.5 * np.std(singles) / np.sqrt(1000)


def test_chunks_change_nothing(monkeypatch):
    net, X, y, W = problem(10)
    V = jnp.asarray(W, jnp.float32)
    whole = RandomisedRisk.of(net, X, y)
    look = lambda W: (whole.by_pair(W), jax.grad(whole)(W))  # noqa: E731
    values, slope = jax.jit(look)(V)
    monkeypatch.setattr(signs_module, "CHUNK", 8 * 100)  # 512 pairs in chunks of 100, and a rest
    parts, slope_of_parts = jax.jit(lambda W: look(W))(V)
    np.testing.assert_allclose(parts, values, rtol=1e-6)
    np.testing.assert_allclose(slope_of_parts, slope, rtol=1e-4, atol=1e-7)


def test_reverse_mode_keeps_no_more_than_a_chunk_of_outputs():
    """Temporary memory of the gradient, as the compiler plans it, against all outputs (n × s floats)."""
    net = TwoLayer.symmetric(dim=3, width=16, activation="softplus", key=jax.random.key(0))
    X, y = np.random.default_rng(0).standard_normal((500, 3)), np.ones(500)
    risk = RandomisedRisk.of(net, X, y, samples=200_000, key=jax.random.key(0))
    plan = jax.jit(jax.grad(lambda W: risk(W))).lower(net.origin).compile().memory_analysis()
    assert plan.temp_size_in_bytes < 0.6 * 500 * 100_000 * 4


@pytest.mark.parametrize("make", [TwoLayer.symmetric, TwoLayer.gaussian])
def test_the_clean_risk_is_that_of_the_quadratic_form(make, wide):  # noqa: ARG001
    """f^Q = ½ m^{-1/2} ⟨xxᵀ, W D_x Wᵀ⟩."""
    net, X, y, W = problem(6, make=make)
    net = in_float64(net)
    risk = CleanRisk.of(net, X, y, logistic, strength=0.3)
    s = 1 / (1 + np.exp(-X @ np.asarray(net.W0)))
    f = [
        x @ W @ np.diag(np.asarray(net.a) * d) @ W.T @ x / (2 * np.sqrt(6)) for x, d in zip(X, s * (1 - s), strict=True)
    ]
    np.testing.assert_allclose(risk.outputs(jnp.asarray(W)), f, atol=1e-15)
    truth = np.mean(np.log1p(np.exp(-y * f))) + 0.3 * np.sum(np.linalg.norm(W, axis=0) ** 4) ** 2
    assert float(risk(jnp.asarray(W))) == pytest.approx(truth, rel=1e-13)


def test_for_a_quadratic_activation_without_linear_part_all_risks_are_one(wide):  # noqa: ARG001
    """With W₀ = 0 and σ(z) = z², f is its own quadratic part, whatever the signs."""
    X, y = np.random.default_rng(0).standard_normal((5, 2)), np.ones(5)
    plain = TwoLayer.gaussian(dim=2, width=4, activation="quadratic", key=jax.random.key(0))
    net = in_float64(TwoLayer(jnp.zeros_like(plain.W0), plain.a, plain.activation))
    W = jnp.asarray(np.random.default_rng(1).standard_normal((2, 4)))
    truth = float(empirical_risk(net, W, jnp.asarray(X), jnp.asarray(y)))
    assert RandomisedRisk.of(net, X, y).estimate(W).value == pytest.approx(truth, rel=1e-14)
    assert float(CleanRisk.of(net, X, y)(W)) == pytest.approx(truth, rel=1e-14)


def test_several_outputs_give_several_risks():
    X, y = jnp.ones((3, 1)), jnp.array([[1.0, -1.0]] * 3)
    risks = empirical_risk(lambda w, X: X * w, jnp.array([2.0, 2.0]), X, y)
    np.testing.assert_allclose(risks, np.log1p(np.exp([-2.0, 2.0])), rtol=1e-6)


def test_bad_problems_are_refused():
    net, X, y, _ = problem(20)
    with pytest.raises(InputError, match="widths from 1 to 12"):
        RandomisedRisk.of(net, X, y)
    with pytest.raises(InputError, match="key="):
        RandomisedRisk.of(net, X, y, samples=100)
    with pytest.raises(InputError, match="even number, 102"):
        RandomisedRisk.of(net, X, y, samples=101, key=jax.random.key(0))
    with pytest.raises(InputError, match="dimension 3"):
        CleanRisk.of(net, X[:, :2], y)
    with pytest.raises(InputError, match="λ is zero or positive"):
        CleanRisk.of(net, X, y, strength=-1.0)
    with pytest.raises(InputError, match="one label for each row"):
        CleanRisk.of(net, X, y[:-1])
    with pytest.raises(InputError, match=r"shape \(8,\) and the labels \(8, 1\)"):
        empirical_risk(net, net.origin, jnp.asarray(X, jnp.float32), jnp.ones((8, 1)))
    relu = TwoLayer.symmetric(dim=3, width=4, activation="relu", key=jax.random.key(0))
    with pytest.raises(InputError, match="delta"):
        CleanRisk.of(relu, X, y)


@pytest.mark.parametrize("kind", [RandomisedRisk, CleanRisk])
def test_the_risk_of_one_sample_is_its_mean_with_itself(kind):
    net = TwoLayer.symmetric(dim=3, width=8, activation="softplus", key=jax.random.key(0))
    X, W = np.array([[0.3, -0.4, 0.5]]), 0.5 * jax.random.normal(jax.random.key(1), (3, 8))
    alone, twice = kind.of(net, X, np.ones(1)), kind.of(net, np.repeat(X, 2, axis=0), np.ones(2))
    assert float(alone(W)) == pytest.approx(float(twice(W)), rel=1e-6)
