"""Blocks of spectra made by hand and of real ones; alignment against dense singular vectors and Davis & Kahan."""

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.theory.nichani.blocks import feature_blocks
from offtangent.theory.nichani.covariance import FeatureCovariance
from offtangent.theory.nichani.feature_alignment import alignment, covariance_distance

NET = TwoLayer.symmetric(dim=4, width=60, law="sphere", activation="softplus", key=jax.random.key(0))


def inputs(n, seed=0):
    return data.sphere(n, 4, radius=2.0, key=jax.random.key(seed))


def features(X):
    """Φ in float64, by hand."""
    W0, a = np.asarray(NET.W0, np.float64), np.asarray(NET.a, np.float64)
    slopes = a / np.sqrt(NET.width) / (1 + np.exp(-X @ W0))
    return (X[:, :, None] * slopes[:, None, :]).reshape(len(X), -1)


def test_gaps_of_a_made_spectrum_are_found_where_they_were_put():
    """Q₁ of n₁ = 5, Q₂ of B(4, 2) = 9, the rest; and the same with the first gap one place too early."""
    made = np.concatenate([np.linspace(1.1, 1, 5), np.linspace(0.11, 0.1, 9), np.linspace(0.011, 0.01, 6)])
    blocks = feature_blocks(made, NET, 1, trace=float(made.sum()) + 0.22)
    assert (blocks.ends, blocks.sizes, blocks.complete) == ((5, 14), (5, 9, 226), True)
    assert blocks.first.agrees
    assert blocks.second.agrees
    assert blocks.first.ratio == pytest.approx(1 / 0.11)
    assert blocks.ranges == ((1.1, 1.0), (0.11, 0.1), (0.011, 0.01))
    assert blocks.rest_mean == pytest.approx((made[14:].sum() + 0.22) / 226)
    early = feature_blocks(np.delete(made, 0), NET, 1, trace=1.0)
    assert (early.first.predicted, early.first.found, early.first.agrees) == (5, 4, False)
    assert early.first.largest == pytest.approx(1 / 0.11)
    assert str(early.first).endswith("the largest nearby is ×9.09 after 4")


def test_a_short_spectrum_says_what_it_does_not_know():
    blocks = feature_blocks(np.array([3.0, 2.0, 1.0]), NET, 1, trace=7.0)
    assert (blocks.ends, blocks.complete, blocks.rest_mean) == ((3, 3), False, None)
    assert blocks.first.ratio is None
    assert blocks.second.found is None
    assert blocks.ranges[1:] == (None, None)
    assert "more than are known" in str(blocks.second)


def test_zero_eigenvalues_make_no_gap():
    made = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1e-17, 1e-30])
    blocks = feature_blocks(made, NET, 1, trace=5.5)
    assert (blocks.first.found, blocks.first.largest) == (5, 2.0)


def test_the_second_gap_of_a_sampled_spectrum_is_where_harmonics_are_counted():
    """For the softplus ξ₃ = 0 (σ' − ½ is odd): after n₂ = 14 comes a wide gap; levels name the eigenvalues."""
    for found in (FeatureCovariance.of_samples(NET, inputs(600)), FeatureCovariance.of_harmonics(NET)):
        blocks = found.blocks(1)
        assert blocks.second.agrees
        assert blocks.ordered
        assert [level.multiplicity for level in blocks.levels] == [1, 4, 9, 16]
        assert blocks.levels[3].value < 1e-12
    gaussian = TwoLayer.symmetric(dim=4, width=60, activation="softplus", key=jax.random.key(0))
    assert feature_blocks(np.ones(3), gaussian, 1, trace=3.0).ordered is None


@pytest.fixture(scope="module")
def pair():
    return FeatureCovariance.of_samples(NET, inputs(40)), FeatureCovariance.of_samples(NET, inputs(500, 1))


def test_angles_gap_and_distance_are_those_of_the_dense_matrices(pair):
    training, population = pair
    small, large = features(inputs(40)), features(inputs(500, 1))
    V, Q = (np.linalg.svd(one)[2] for one in (small, large))
    cosines = np.linalg.svd(V[:5] @ Q[:5].T, compute_uv=False)
    found = alignment(training, population, 5)
    np.testing.assert_allclose(found.sines, np.sqrt(1 - cosines**2)[::-1], atol=1e-7)
    hat, true = small.T @ small / 40, large.T @ large / 500
    assert found.distance == pytest.approx(np.abs(np.linalg.eigvalsh(hat - true)).max(), rel=1e-5)
    a, b = np.linalg.eigvalsh(hat)[::-1], np.linalg.eigvalsh(true)[::-1]
    assert found.gap == pytest.approx(max(a[4] - b[5], b[4] - a[5]), rel=1e-8)


def test_davis_and_kahan_hold_from_samples_and_from_harmonics_and_angles_fall_with_n(pair):
    exact = FeatureCovariance.of_harmonics(NET, count=20)
    sines = []
    for n in (40, 250, 1500):
        training = FeatureCovariance.of_samples(NET, inputs(n), count=20)
        for population in (exact, pair[1]):
            found = alignment(training, population, 5)
            assert found.bound is None or found.sine <= found.bound
        sines.append(alignment(training, exact, 5).sine)
        assert alignment(exact, training, 5).sine == pytest.approx(sines[-1], rel=1e-6)
    assert sines[0] > sines[1] > sines[2]
    assert alignment(training, exact, 5).bound < 1


def test_a_covariance_is_aligned_with_itself(pair):
    training, _ = pair
    assert covariance_distance(training, training) == 0
    assert alignment(training, training, 5).sine < 1e-6
    exact = FeatureCovariance.of_harmonics(NET, count=20)
    assert alignment(exact, exact, 5).sine < 1e-6


def test_what_cannot_be_aligned_or_split_is_refused(pair):
    training, population = pair
    with pytest.raises(InputError, match="rank=40"):
        alignment(training, population, 40)
    other = TwoLayer.symmetric(dim=4, width=60, law="sphere", activation="softplus", key=jax.random.key(9))
    with pytest.raises(InputError, match="different networks"):
        alignment(training, FeatureCovariance.of_samples(other, inputs(40)), 5)
    with pytest.raises(InputError, match="degree=0"):
        training.blocks(0)
