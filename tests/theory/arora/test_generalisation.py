"""Section 5's bounds: by hand, by enumeration of all signs, and against the networks they speak of."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import Gram, relu_hidden
from offtangent.theory import complexity, generalisation_bound
from offtangent.theory.arora.generalisation import (
    absolute_loss,
    rademacher_bound,
    rademacher_gap_bound,
    ramp_loss,
    zero_one_loss,
)
from offtangent.theory.arora.movement import flip_candidates, movement_bound, movement_radius

UNIT = {"n": 50, "smallest": 0.1, "delta": 0.1}


@dataclass(frozen=True)
class Known:
    value: float
    lower: float
    upper: float
    certified: bool = True


@pytest.fixture
def sphere():
    X = np.random.default_rng(0).standard_normal((6, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_the_measure_is_that_of_a_dense_inverse(sphere):
    y = np.random.default_rng(1).standard_normal(6)
    inverse = np.linalg.inv(Gram(relu_hidden, sphere).dense())
    assert complexity(float(y @ inverse @ y), 6) == pytest.approx(np.sqrt(2 * y @ inverse @ y / 6), rel=1e-14)


def test_a_bracket_gives_a_bracket_with_its_certificate():
    found = complexity(Known(8.0, 2.0, 18.0), 4)
    assert (found.lower, found.value, found.upper, found.certified) == (1.0, 2.0, 3.0, True)
    assert complexity(Known(8.0, -5.0, math.inf, certified=False), 4).lower == 0.0
    assert complexity(Known(8.0, -5.0, math.inf, certified=False), 4).upper == math.inf


@pytest.mark.parametrize("wrong", [-1.0, math.nan, Known(math.nan, 0.0, 1.0), Known(0.5, 0.0, math.nan)])
def test_a_value_that_no_square_has_is_refused(wrong):
    with pytest.raises(InputError, match="zero or positive"):
        complexity(wrong, 4)


def test_theorem_b1_bounds_the_gap_of_a_small_class_as_often_as_promised():
    """All 2ⁿ signs, all eight functions on a three-point space, 2 000 samples of n = 12."""
    rng, n, delta = np.random.default_rng(0), 12, 0.3
    functions = np.array(list(itertools.product([0.0, 1.0], repeat=3)))  # values at the three points
    truth, signs = np.array([0.0, 1.0, 1.0]), np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    loss = np.abs(functions - truth)  # 1-Lipschitz, at most one
    counts = rng.multinomial(n, [0.5, 0.3, 0.2], size=2000)
    population, held = loss @ np.array([0.5, 0.3, 0.2]), []
    known = {}
    for row in map(tuple, counts):
        if row not in known:
            at = np.repeat(np.arange(3), row)
            known[row] = (signs @ functions[:, at].T).max(axis=1).mean() / n
        gap = (population - loss @ np.array(row) / n).max()
        held.append(gap <= rademacher_gap_bound(known[row], n, delta=delta))
    assert np.mean(held) >= 1 - delta
    assert rademacher_gap_bound(0.25, 8, delta=2 / math.e, lipschitz=2.0, ceiling=3.0) == pytest.approx(1 + 9 / 4)


@pytest.mark.parametrize("proof", [False, True])
def test_lemma_54_bounds_what_its_proof_bounds_as_often_as_promised(sphere, proof):
    """B E‖Z(0)ε‖/n + 2R Σ|S̄ᵢ|/(n√m) lies above the Rademacher complexity; all 64 signs, 200 networks."""
    n, width, delta, scale, radius, movement = 6, 40, 0.2, 0.7, 0.05, 3.0
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n)))
    above, rng = [], np.random.default_rng(1)
    for _ in range(200):
        W0 = scale * rng.standard_normal((3, width))
        H = (sphere @ sphere.T) * ((sphere @ W0 >= 0) @ (sphere @ W0 >= 0).T.astype(float)) / width
        lengths = np.sqrt(np.einsum("si,ij,sj->s", signs, H, signs))
        flips = flip_candidates(W0, sphere, radius).sum()
        above.append(movement * lengths.mean() / n + 2 * radius * flips / (n * width**0.5))
    bound = rademacher_bound(n, width, radius=radius, movement=movement, scale=scale, delta=delta, proof=proof)
    assert np.mean(np.array(above) <= bound.total) >= 1 - delta
    assert np.mean(above) >= 0.4 * bound.total  # the bound is of their size, not beyond all


def test_lemma_54_by_hand_and_its_proofs_smaller_constant():
    bound = rademacher_bound(8, 16, radius=0.5, movement=4.0, scale=0.5, delta=2 * math.exp(-8))
    # 4/4·(1 + (16/16)^¼) = 2; 2·¼·4/½ = 4; ½·√16 = 2
    assert (bound.linear, bound.flips, bound.fluctuation) == pytest.approx((2.0, 4.0, 2.0), rel=1e-14)
    smaller = rademacher_bound(8, 16, radius=0.5, movement=4.0, scale=0.5, delta=2 * math.exp(-8), proof=True)
    assert smaller.flips == pytest.approx(4 * math.sqrt(2 / math.pi), rel=1e-14)
    assert (smaller.linear, smaller.fluctuation) == (bound.linear, bound.fluctuation)


@pytest.mark.parametrize("width", [1e3, 1e9, 1e30, math.inf])
def test_theorem_51_is_theorem_b1_on_lemmas_53_and_54(width):
    """Put together here from the lemmas, as in the proof: B goes up to B + 1, δ is shared out."""
    n, smallest, delta, scale, quadratic = 50, 0.1, 0.1, 1e-3, 30.0
    moved = movement_bound(quadratic, n, width, scale=scale, smallest=smallest, delta=delta)
    residual = math.sqrt(n) + scale * math.sqrt(n / delta)
    radius = movement_radius(n, width, smallest=smallest, residual=residual)
    rademacher = rademacher_bound(n, width, radius=radius, movement=moved.total + 1, scale=scale, delta=delta / 5)
    classes = math.ceil(math.sqrt(n / smallest) + moved.total - moved.linear)
    expected = 1 / math.sqrt(n) + rademacher_gap_bound(rademacher.total, n, delta=delta / 3 / classes)
    found = generalisation_bound(quadratic, width=width, scale=scale, **UNIT)
    assert found.total == pytest.approx(expected, rel=1e-9)
    assert found.measure == complexity(quadratic, n)
    assert found.classes == classes


def test_the_default_is_the_limit_of_wide_networks_that_start_small():
    limit = generalisation_bound(30.0, **UNIT)
    assert (limit.of_width, limit.initial) == (0.0, 0.0)
    wide = generalisation_bound(30.0, width=1e120, scale=1e-12, **UNIT)
    assert wide.total == pytest.approx(limit.total, rel=1e-6)
    assert wide.total > limit.total
    totals = [generalisation_bound(30.0, width=10.0**k, scale=1e-3, **UNIT).total for k in range(2, 60)]
    assert (np.diff(totals) < 0).all()


def test_a_bound_uses_the_upper_end_of_a_bracket_and_the_training_loss_that_is_given():
    assert generalisation_bound(Known(20.0, 10.0, 30.0), **UNIT) == generalisation_bound(30.0, **UNIT)
    with_loss, without = generalisation_bound(30.0, training=0.0, **UNIT), generalisation_bound(30.0, **UNIT)
    assert without.total - with_loss.total == pytest.approx(1 / math.sqrt(50))
    assert without.vacuous
    assert not generalisation_bound(30.0, 10**6, smallest=0.1, delta=0.1).vacuous


@pytest.mark.parametrize("wrong", [{"smallest": 0.0}, {"delta": 1.0}, {"width": 100, "scale": 0.0}, {"scale": -1.0}])
def test_a_bound_without_its_hypotheses_is_refused(wrong):
    with pytest.raises(InputError):
        generalisation_bound(1.0, **(UNIT | wrong))
    with pytest.raises(InputError, match="distances"):
        rademacher_bound(5, 10, radius=-1.0, movement=1.0, scale=1.0, delta=0.1)


def test_the_losses_lie_between_each_other_and_meet_the_theorems_hypotheses():
    u = np.linspace(-3, 3, 601)
    for y in (np.ones(601), -np.ones(601)):
        zero_one, ramp, absolute = zero_one_loss(u, y), ramp_loss(u, y), absolute_loss(u, y)
        assert (zero_one <= ramp).all()
        assert (ramp <= absolute + 1e-15).all()
        assert (np.abs(np.diff(ramp)) <= np.diff(u) + 1e-12).all()
        assert ramp_loss(y, y).max() == absolute_loss(y, y).max() == 0.0
        assert absolute_loss(u, y, ceiling=1.0).max() == 1.0
    np.testing.assert_array_equal(ramp_loss(np.array([-1.0, 0.0, 0.25, 1.0, 2.0]), np.ones(5)), [1, 1, 0.75, 0, 0])
    np.testing.assert_array_equal(zero_one_loss(np.array([-1.0, 0.0, 0.25]), np.ones(3)), [1, 1, 0])


@pytest.mark.parametrize("loss", [zero_one_loss, ramp_loss, absolute_loss])
def test_a_network_that_diverged_has_no_loss(loss):
    with pytest.raises(InputError, match="u has 1 entry that is NaN or infinite"):
        loss(np.array([np.nan, 1.0]), np.ones(2))


def test_other_labels_and_negative_complexities_are_refused():
    for loss in (zero_one_loss, ramp_loss):
        with pytest.raises(InputError, match="other labels than −1 and 1"):
            loss(np.ones(2), np.array([0.0, 1.0]))
    with pytest.raises(InputError, match="rademacher=-1"):
        rademacher_gap_bound(-1.0, 10, delta=0.1)
