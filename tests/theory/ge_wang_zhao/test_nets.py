"""Nets of symmetric tensors: what the lemmas bound, against draws, the normal law and roots found by bisection."""

import math
from statistics import NormalDist

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from offtangent._errors import InputError
from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.ge_wang_zhao.nets import anticoncentration, net_ceiling, net_floor, sphere_net
from offtangent.theory.ge_wang_zhao.tensors import isometric_power


def drawn(power, dim, features, draws, seed=0):
    """Q of every draw, in isometric coordinates."""
    rows = isometric_power(np.random.default_rng(seed).standard_normal((draws * features, dim)), power)
    return rows.reshape(draws, features, -1)


@pytest.mark.parametrize("power", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("epsilon", [1e-6, 1e-2, 0.3])
def test_powers_of_one_gaussian_are_no_nearer_to_zero_than_proposition_2_says(power, epsilon):
    deviation = math.sqrt(scipy.stats.norm.moment(2 * power) - scipy.stats.norm.moment(power) ** 2)
    exact = 2 * NormalDist().cdf((epsilon * deviation) ** (1 / power)) - 1
    assert 0.3 / power < exact / anticoncentration(power, epsilon) < 1


@pytest.mark.parametrize(("dim", "radius"), [(1, 0.5), (2, 0.3), (3, 0.5), (3, 0.25), (6, 0.8)])
def test_every_unit_vector_is_near_a_row_of_the_net(dim, radius):
    net = sphere_net(dim, radius)
    fresh = np.random.default_rng(dim).standard_normal((4000, dim))
    fresh /= np.linalg.norm(fresh, axis=1, keepdims=True)
    # Corners of the cubes are what is furthest away.
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * dim)).reshape(dim, -1).T / math.sqrt(dim)
    nearest = (np.concatenate([fresh, corners]) @ net.T).max(axis=1)
    assert np.sqrt(np.maximum(2 - 2 * nearest, 0)).max() <= radius + 1e-9
    np.testing.assert_allclose(np.linalg.norm(net, axis=1), 1, rtol=1e-12)
    assert len(np.unique(net.round(9), axis=0)) == len(net)


@pytest.mark.parametrize(("size", "features", "power", "delta"), [(1, 1, 1, 0.3), (50, 3, 2, 0.1), (7, 2, 3, 1e-4)])
def test_the_floor_is_where_the_lemma_s_probability_is_delta(size, features, power, delta):
    eta = net_floor(size, features, power, delta=delta) * math.sqrt(math.factorial(power))
    assert size * (power * eta ** (1 / power)) ** features == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(("power", "features"), [(1, 1), (1, 3), (2, 1), (2, 2)])
def test_few_draws_have_a_product_below_the_floor(power, features):
    net, delta, draws = sphere_net(symmetric_dimension(2, power), 0.5), 0.1, 20_000
    lowest = np.linalg.norm(drawn(power, 2, features, draws) @ net.T, axis=1).min(axis=1)
    floor = net_floor(len(net), features, power, delta=delta)
    assert (lowest < floor).mean() <= delta + 3 * math.sqrt(delta / draws)


@pytest.mark.parametrize(("size", "dim", "features", "power"), [(1, 1, 1, 1), (20, 3, 2, 2), (1000, 10, 50, 3)])
def test_the_ceiling_is_where_the_union_bound_is_delta(size, dim, features, power):
    delta = 0.05

    def excess(tau):
        return size * features * scipy.stats.chi(dim).sf((tau / math.sqrt(features)) ** (1 / power)) - delta

    tau = net_ceiling(size, dim, features, power, delta=delta)
    assert scipy.optimize.brentq(excess, tau / 3, 3 * tau, rtol=1e-12) == pytest.approx(tau, rel=1e-9)


def test_in_one_dimension_the_ceiling_is_the_normal_quantile():
    assert net_ceiling(1, 1, 1, 1, delta=0.1) == pytest.approx(NormalDist().inv_cdf(0.95), rel=1e-12)
    assert net_ceiling(1, 1, 1, 2, delta=0.1) == pytest.approx(NormalDist().inv_cdf(0.95) ** 2, rel=1e-12)


@pytest.mark.parametrize(("power", "features"), [(1, 1), (1, 4), (2, 1), (2, 4)])
def test_few_draws_have_a_product_above_the_ceiling(power, features):
    net, delta, draws = sphere_net(symmetric_dimension(2, power), 0.5), 0.1, 20_000
    Q = drawn(power, 2, features, draws)
    on_net, everywhere = np.linalg.norm(Q @ net.T, axis=1).max(axis=1), np.linalg.norm(Q, 2, axis=(1, 2))
    allowed = delta + 3 * math.sqrt(delta / draws)
    assert (on_net > net_ceiling(len(net), 2, features, power, delta=delta)).mean() <= allowed
    assert (everywhere > net_ceiling(len(net), 2, features, power, delta=delta, radius=0.5)).mean() <= allowed


def test_the_tail_of_one_coordinate_is_too_small_for_the_identity():
    """Lemma 16's proof as printed: of c = I/√d at t = √d, at any constant once d is large."""
    dims = np.array([4, 36, 144, 400])
    ratios = scipy.stats.chi2(dims).sf(dims) / (dims**-0.25 * np.exp(-np.sqrt(dims) / 2))
    assert (np.diff(np.log(ratios)) > 1).all()
    assert ratios[-1] > 1e4


def test_what_is_no_size_no_probability_and_no_net_is_refused():
    with pytest.raises(InputError, match="radius=1: expected the σ of a σ-net"):
        net_ceiling(1, 2, 1, 1, delta=0.1, radius=1)
    with pytest.raises(InputError, match="more than 1,000,000 points"):
        sphere_net(12, 0.1)
    with pytest.raises(InputError, match="delta"):
        net_floor(1, 1, 1, delta=0.0)
    with pytest.raises(InputError, match="beyond float64"):
        net_ceiling(1, 10, 2, 500, delta=0.1)
