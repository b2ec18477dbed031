"""Levels at a finite width and in a sample: against dense matrices of one neuron, and against Gram matrices."""

import itertools

import jax
import numpy as np
import pytest

from offtangent import data
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special.sphere import gegenbauers, harmonic_dimension, tangent_eigenvalues
from offtangent.theory.nichani.levels import finite_levels
from offtangent.theory.nichani.sphere_covariance import SphereCovariance

DIM = 4


@pytest.mark.parametrize("activation", ["sigmoid(z − 1)", "softplus", "tanh"])
def test_values_and_multiplicities_are_those_of_infinite_width(activation):
    levels = finite_levels(activation, dim=DIM, neurons=10**12, samples=10**12, degree=6)
    exact = tangent_eigenvalues(activation, dim=DIM, degree=6)
    np.testing.assert_allclose([level.value for level in levels], exact, rtol=1e-9, atol=1e-15)
    assert [level.multiplicity for level in levels] == [harmonic_dimension(DIM, j) for j in range(7)]
    np.testing.assert_allclose([level.mean for level in levels], exact, rtol=1e-6, atol=1e-12)


def part_of_degree(j):
    """The part of degree j of Σ for one pair of neurons, as a matrix on folded weights."""
    net = TwoLayer.symmetric(dim=DIM, width=2, law="sphere", activation="sigmoid(z − 1)", key=jax.random.key(0))
    upto = [np.asarray(SphereCovariance.of(net, degree=max(k, 1))(np.eye(DIM)[:, :, None])) for k in (j, j - 1)]
    matrices = [matrix.reshape(DIM, DIM) for matrix in upto]
    return matrices[0] - matrices[1] if j > 1 else matrices[0]


def test_shift_and_spread_are_those_of_one_neuron_s_own_matrices():
    """tr(Σⱼ Σₗ) of one neuron is T_jl; Σ₀ + Σ₁ stand together here, so degrees from 2 on are compared."""
    parts = {j: part_of_degree(j) for j in range(1, 16)}
    values = tangent_eigenvalues("sigmoid(z − 1)", dim=DIM, degree=15)
    levels = finite_levels("sigmoid(z − 1)", dim=DIM, neurons=1, degree=4)
    for j in (2, 3, 4):
        overlap, size = float(np.sum(parts[j] ** 2)), levels[j].multiplicity
        assert levels[j].spread ** 2 == pytest.approx(overlap / size - values[j] ** 2, rel=1e-9)
    second, third = levels[2], levels[3]
    above = sum(float(np.sum(parts[2] * parts[i])) / (values[2] - values[i]) for i in range(3, 16))
    both = np.sum(parts[2] * parts[1])  # T_20 + T_21
    low = sorted(both / (values[2] - values[i]) for i in (0, 1))
    assert low[0] <= (second.mean - second.value) * second.multiplicity - above <= low[1]
    assert third.mean != third.value


def test_blocks_of_a_sampled_kernel_have_the_predicted_means_and_ends():
    """The kernel of infinite width on 200 sets of 100 inputs, d = 3: means within four standard errors and s³."""
    sizes = [harmonic_dimension(3, j) for j in range(13)]
    values = tangent_eigenvalues("softplus", dim=3, degree=12)
    levels = finite_levels("softplus", dim=3, neurons=10**9, samples=100, degree=2)
    order = [levels[1], levels[0], levels[2]]
    cuts = np.cumsum([0, *(level.multiplicity for level in order)])
    found = []
    X = data.sphere(20_000, 3, key=jax.random.key(0)).reshape(200, 100, 3)
    for inputs in X:
        Q = gegenbauers(12, np.clip(inputs @ inputs.T, -1, 1), dim=3)
        spectrum = np.linalg.eigvalsh(np.tensordot(values * sizes, Q, 1) / 100)[::-1]
        found.append([(spectrum[a:b].mean(), ((spectrum[a:b] - level.value) ** 2).mean(), spectrum[b - 1], spectrum[a])
                      for level, (a, b) in zip(order, itertools.pairwise(cuts), strict=True)])  # fmt: skip
    table = np.array(found)
    for at, level in enumerate(order):
        mean, square, low, high = table[:, at].mean(axis=0)
        error = table[:, at, 0].std() / np.sqrt(200)
        s = levels[2].spread / levels[2].value
        assert abs(mean - level.mean) < 4 * error + s**3 * level.value
        if level.multiplicity > 1:
            assert np.sqrt(square) == pytest.approx(level.spread, rel=s)
            assert level.edges[0] < 1.1 * low < 1.1 * high < 1.3 * level.edges[1]


def test_a_degree_the_network_does_not_see_is_absent():
    """The softplus's σ' − ½ is odd: no harmonic of degree 3."""
    levels = finite_levels("softplus", dim=10, neurons=100, degree=4)
    assert [level.present for level in levels] == [True, True, True, False, True]
    assert levels[3].edges == (levels[3].mean, levels[3].mean)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"dim": 1}, "dim=1"),
        ({"neurons": 0}, "neurons=0"),
        ({"samples": 0}, "samples=0"),
        ({"degree": 50}, "degree=50"),
    ],
)
def test_bad_input_is_refused(wrong, named):
    given = {"dim": 5, "neurons": 10, "samples": 10, "degree": 2} | wrong
    with pytest.raises(InputError, match=named):
        finite_levels("softplus", **given)
