"""Energies by degree: against planted targets, brute-force pairs, and densities whose parts are known."""

import itertools

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.data.targets import LowDegreePlusSparse
from offtangent.labels import energies as module
from offtangent.labels.energies import degree_energies, departure

RNG = np.random.default_rng(0)


def planted(dim, degree, n, seed, noise=0.0):
    target = LowDegreePlusSparse.random(dim, degree, 1, key=jax.random.key(seed))
    X = data.sphere(n, dim, radius=dim**0.5, key=jax.random.key(seed + 1000))
    return X, target(X) + noise * np.random.default_rng(seed).standard_normal(n), target.energies().total


@pytest.mark.parametrize(("dim", "degree", "n"), [(8, 1, 600), (6, 2, 1200)])
def test_planted_energies_are_recovered_within_ten_percent_and_three_errors(dim, degree, n):
    for seed in range(3):
        X, y, energies = planted(dim, degree, n, seed)
        found = degree_energies(X, y, degree=degree + 1)
        large = energies > 0.1 * energies.sum()
        assert (3 * found.errors < 0.1 * energies)[large].all()
        assert (np.abs(found.energies - energies) < 0.1 * energies)[large].all()
        assert abs(found.rest) < 4 * found.rest_error + 1e-9
        assert found.total == pytest.approx(energies.sum(), rel=0.1)


def test_estimates_are_unbiased_and_their_errors_right_also_with_more_directions_than_samples():
    """60 sets of 60 noisy samples; degree 3 has 77 harmonics in dimension 7. Errors within a factor 1.5."""
    off, errors = [], []
    for seed in range(60):
        X, y, energies = planted(7, 2, 60, seed, noise=1.0)
        found = degree_energies(X, y, degree=3, key=jax.random.key(seed))
        off.append(np.append(found.energies - energies, found.rest - 1))
        errors.append(np.append(found.errors, found.rest_error))
    spread = np.std(off, axis=0, ddof=1)
    assert (np.abs(np.mean(off, axis=0)) < 4 * spread / np.sqrt(60)).all()
    assert (np.abs(np.log(spread / np.sqrt(np.mean(np.square(errors), axis=0)))) < np.log(1.5)).all()


def test_the_mean_over_pairs_and_its_error_are_those_of_brute_force():
    a, g, w = RNG.standard_normal(9), RNG.standard_normal(9), RNG.standard_normal((9, 9))
    w = w + w.T
    h = {(i, j): a[i] + a[j] + g[i] * g[j] * w[i, j] for i, j in itertools.permutations(range(9), 2)}
    mean, error = module._pairs(a, g, w)
    assert mean == pytest.approx(np.mean(list(h.values())))
    second = np.mean(np.square(list(h.values()))) - mean**2
    rows = [np.mean([h[i, j] for j in range(9) if j != i]) for i in range(9)]
    first = max((np.var(rows, ddof=1) - second / 8) * 8 / 7, 0)
    assert error == pytest.approx(np.sqrt((28 * first + 2 * second) / 72))


def test_noise_and_degrees_above_are_the_rest():
    X, y, energies = planted(6, 2, 1500, 0, noise=0.5)
    found = degree_energies(X, y, degree=1)
    assert found.rest == pytest.approx(energies[2:].sum() + 0.25, abs=4 * found.rest_error)


def test_scaled_and_rotated_inputs_give_the_same(monkeypatch):
    X, y, _ = planted(5, 1, 200, 0)
    turn = np.linalg.qr(RNG.standard_normal((5, 5)))[0]
    monkeypatch.setattr(module, "ROWS", 70)  # three parts
    here, there = (degree_energies(Z, y, degree=2) for Z in (X, 3 * X @ turn))
    np.testing.assert_allclose(here.energies, there.energies, rtol=1e-8)
    np.testing.assert_allclose(here.errors, there.errors, rtol=1e-6)


def test_more_samples_than_are_held_at_once_are_used_in_parts(monkeypatch):
    X, y, energies = planted(5, 1, 900, 0)
    monkeypatch.setattr(module, "ROWS", 300)
    found = degree_energies(X, y, degree=2)
    np.testing.assert_allclose(found.energies, energies, atol=4 * found.errors.max())


def test_a_half_sphere_departs_from_uniform_by_three_quarters_in_degree_one_alone():
    """Its density 2·1[x₁ > 0] has the part 2·E|u₁|·√3·(√3 u₁) of degree 1 in dimension 3, with E|u₁| = 1/2."""
    X = data.sphere(1500, 3, key=jax.random.key(0))
    found, errors = departure(X)
    assert (np.abs(found) < 4 * errors).all()
    X[:, 0] = np.abs(X[:, 0])
    found, errors = departure(X)
    assert abs(found[0] - 0.75) < 4 * errors[0]
    assert abs(found[1]) < 4 * errors[1]
    assert errors.max() < 0.05


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"y": np.ones(29)}, "29 labels"),
        ({"degree": -1}, "degree=-1"),
        ({"X": np.ones((10, 3)), "y": np.ones(10)}, "10 samples"),
    ],
)
def test_bad_input_is_refused(change, named):
    given = {"X": RNG.standard_normal((30, 3)), "y": np.ones(30), "degree": 2} | change
    with pytest.raises(InputError, match=named):
        degree_energies(**given)
