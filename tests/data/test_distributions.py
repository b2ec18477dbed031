"""Moments of n independent draws lie within 5 standard errors of the exact ones (a miss: 1 in 10⁶)."""

import jax
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.data import hypercube, sphere
from offtangent.data.distributions import gaussian, noisy_xor

KEY = jax.random.key(7)
N, DIM = 40_000, 5
DRAWS = [sphere, hypercube, gaussian, noisy_xor]


def within_standard_errors(samples, truth):
    """Each column of independent `samples` has the mean `truth`."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return bool((np.abs(samples.mean(axis=0) - truth) <= 5 * error + 1e-15).all())


def products(X):
    """All xᵢxⱼ, i ≤ j, and the indices."""
    i, j = np.triu_indices(X.shape[1])
    return X[:, i] * X[:, j], i, j


@pytest.mark.parametrize("draw", DRAWS)
def test_the_mean_is_zero(draw):
    assert within_standard_errors(draw(N, DIM, key=KEY), 0.0)


@pytest.mark.parametrize(("draw", "variance"), [(sphere, 1 / DIM), (hypercube, 1.0), (gaussian, 1.0)])
def test_the_covariance_is_isotropic(draw, variance):
    seconds, i, j = products(draw(N, DIM, key=KEY))
    assert within_standard_errors(seconds, variance * (i == j))


@pytest.mark.parametrize(("draw", "fourth"), [(sphere, 3 / (DIM * (DIM + 2))), (hypercube, 1.0), (gaussian, 3.0)])
def test_the_fourth_moment_is_the_exact_one(draw, fourth):
    assert within_standard_errors(draw(N, DIM, key=KEY) ** 4, fourth)


def test_sphere_has_exactly_its_radius():
    X = sphere(N, DIM, radius=2.5, key=KEY)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 2.5, rtol=1e-15 * 4)


def test_noisy_xor_has_four_corners_on_the_axes_and_independent_signs_after_them():
    X = noisy_xor(N, DIM, key=KEY)
    for corner in ([1, 0], [-1, 0], [0, 1], [0, -1]):
        assert within_standard_errors((X[:, :2] == corner).all(axis=1).astype(float), 0.25)
    assert set(np.unique(X[:, 2:])) == {-1.0, 1.0}
    label = X[:, 0] ** 2 - X[:, 1] ** 2
    assert set(np.unique(label)) == {-1.0, 1.0}
    assert within_standard_errors(X[:, 2:] * label[:, None], 0.0)
    with pytest.raises(InputError, match="dim must be 2 or more"):
        noisy_xor(3, 1, key=KEY)


def test_hypercube_has_only_signs():
    assert set(np.unique(hypercube(N, DIM, key=KEY))) == {-1.0, 1.0}


@pytest.mark.parametrize("draw", DRAWS)
def test_the_same_key_gives_the_same_float64_numbers_and_another_key_others(draw):
    first, again, other = (draw(N, DIM, key=jax.random.key(seed)) for seed in (1, 1, 2))
    assert first.dtype == np.float64
    assert first.flags.writeable
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("draw", DRAWS)
def test_the_users_precision_neither_matters_nor_changes(draw):
    before = jax.config.jax_enable_x64
    outside = draw(N, DIM, key=KEY)
    with jax.enable_x64(not before):
        assert np.array_equal(draw(N, DIM, key=KEY), outside)
    assert jax.config.jax_enable_x64 == before


def test_numbers_are_finer_than_float32():
    X = gaussian(N, DIM, key=KEY)
    assert (X.astype(np.float32) != X).all()


def test_an_old_style_key_is_accepted():
    assert np.array_equal(gaussian(N, DIM, key=jax.random.PRNGKey(0)), gaussian(N, DIM, key=jax.random.key(0)))


@pytest.mark.parametrize("bad", [0, None, jax.random.split(KEY)])
def test_what_is_no_single_key_is_refused(bad):
    with pytest.raises(InputError, match=r"key=jax.random.key\(0\)"):
        sphere(3, 2, key=bad)


@pytest.mark.parametrize(("n", "dim"), [(0, 3), (3, 0), (-1, 3)])
def test_empty_shapes_are_refused(n, dim):
    with pytest.raises(InputError, match="at least 1"):
        gaussian(n, dim, key=KEY)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf")])
def test_a_radius_that_is_not_positive_is_refused(radius):
    with pytest.raises(InputError, match="radius"):
        sphere(3, 2, radius=radius, key=KEY)
