"""Population risks of finite populations, whose truth is the exact risk on all of them, and of a Gaussian by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.losses import soft_hinge, squared
from offtangent.theory import RandomisedRisk
from offtangent.theory.bai_lee import population
from offtangent.theory.bai_lee.population import clean_population_risk, population_risk, randomised_population_risk
from offtangent.theory.bai_lee.risks import CleanRisk, empirical_risk

RNG = np.random.default_rng(0)
NET = TwoLayer.symmetric(dim=3, width=10, activation="softplus", key=jax.random.key(0))
X, Y = RNG.standard_normal((8, 3)), RNG.choice([-1.0, 1.0], 8)
W = RNG.standard_normal((3, 10)) * 10**-0.25


def members(n, key):
    """Eight pairs, each as likely as any other."""
    rows = np.asarray(jax.random.randint(key, (n,), 0, 8))
    return X[rows], Y[rows]


def z_scores(estimates, truth):
    return np.array([(one.value - truth) / one.error for one in estimates])


@pytest.mark.parametrize("which", ["any", "randomised", "clean"])
def test_it_is_the_exact_risk_of_a_finite_population_within_its_standard_error(which, monkeypatch):
    """In batches of 300 and a rest; errors of the right size."""
    monkeypatch.setattr(population, "BATCH", 300)
    monkeypatch.setattr(population, "AT_ONCE", 3000)
    risk, truth = {
        "any": (population_risk, float(empirical_risk(NET, jnp.asarray(W, "float32"), *_all(), soft_hinge))),
        "randomised": (randomised_population_risk, RandomisedRisk.of(NET, X, Y, soft_hinge).estimate(W).value),
        "clean": (clean_population_risk, float(CleanRisk.of(NET, X, Y, soft_hinge)(jnp.asarray(W, "float32")))),
    }[which]
    weights = jnp.asarray(W, jnp.float32)
    found = [risk(NET, weights, members, soft_hinge, samples=1000, key=jax.random.key(k)) for k in range(20)]
    z = z_scores(found, truth)
    assert np.abs(z).max() < 4
    assert 0.5 < np.std(z) < 1.7
    assert all(one.draws == 1000 for one in found)
    assert len({one.value for one in found}) == 20


def _all():
    return jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32)


def test_a_gaussian_population_has_the_risk_by_hand():
    """With y = x and f = wx: E (w − 1)²x²/2 = (w − 1)²/2."""

    def draw(n, key):
        x = jax.random.normal(key, (n, 1))
        return x, x[:, 0]

    found = population_risk(
        lambda w, x: w * x[:, 0], jnp.asarray(3.0), draw, squared, samples=20_000, key=jax.random.key(1)
    )
    assert abs(found.value - 2.0) < 4 * found.error
    assert found.error == pytest.approx(2 * np.sqrt(2 / 20_000), rel=0.1)  # Var x² = 2


def test_held_out_samples_give_their_mean_and_its_standard_error(monkeypatch):
    monkeypatch.setattr(population, "BATCH", 3)  # 3 + 3 + 2
    weights = jnp.asarray(W, jnp.float32)
    found = population_risk(NET, weights, (X, Y))
    losses = np.log1p(np.exp(-Y * np.asarray(NET(weights, _all()[0]))))
    assert found.value == pytest.approx(losses.mean(), rel=1e-6)
    assert found.error == pytest.approx(losses.std(ddof=1) / np.sqrt(8), rel=1e-5)
    assert clean_population_risk(NET, W, (X, Y)).value == pytest.approx(
        float(CleanRisk.of(NET, X, Y)(weights)), rel=1e-6
    )


def test_every_sample_has_signs_of_its_own():
    """A held-out set of one pair, repeated: with signs in common all losses would be equal, and the error zero."""
    same = np.repeat(X[:1], 500, axis=0), np.repeat(Y[:1], 500)
    found = randomised_population_risk(NET, W, same, key=jax.random.key(0))
    twice = np.repeat(X[:1], 2, axis=0), np.repeat(Y[:1], 2)
    truth = RandomisedRisk.of(NET, *twice).estimate(W).value
    assert 0 < abs(found.value - truth) < 4 * found.error


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: population_risk(NET, NET.origin, members), "samples=10_000, key="),
        (lambda: population_risk(NET, NET.origin, members, samples=1, key=jax.random.key(0)), "samples=1"),
        (lambda: population_risk(NET, NET.origin, (X, Y[:-1])), "8 inputs and 7 labels"),
        (lambda: population_risk(NET, NET.origin, (X, Y), samples=5), "Leave samples= out"),
        (lambda: population_risk(NET, NET.origin, (X, (Y + 1) / 2)), r"np.where\(y == 1"),
        (lambda: population_risk(NET, NET.origin * np.nan, (X, Y)), "8 of 8 losses are NaN"),
        (lambda: population_risk(lambda w, x: x + w[0, 0], NET.origin, (X, np.repeat(Y[:, None], 3, 1))), "one output"),
        (
            lambda: population_risk(NET, NET.origin, lambda n, key: X, samples=8, key=jax.random.key(0)),  # noqa: ARG005
            r"expected \(X, y\)",
        ),
        (lambda: clean_population_risk(NET, W[:, :1], (X, Y)), r"W has shape \(3, 1\)"),
        (lambda: randomised_population_risk(NET, W, (X[:, :2], Y), key=jax.random.key(0)), "dimension 3"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
