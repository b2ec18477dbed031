"""Theorem 6, measured: how much larger the risk is on the population than on the samples that chose the weights.

Labels are coin flips, of which there is nothing to learn, and Ŵ is what fits them best in the ball ‖W‖_{2,4} ≤ 1, to
first order in the loss. The theorem is about every Ŵ that depends on the data; here its bound is nearly attained, up to
constants, and a gap that fell slower, or grew with the width, would show.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from offtangent import data
from offtangent.networks import TwoLayer
from offtangent.special.losses import logistic
from offtangent.theory import RandomisedRisk
from offtangent.theory.bai_lee.bounds import generalisation_gap
from offtangent.theory.bai_lee.complexity import input_spread, widest_gap_weights
from offtangent.theory.bai_lee.expressivity import column_norm
from offtangent.theory.bai_lee.population import randomised_population_risk

NORM = 1.0  # B_w
DELTA = 0.1  # of eq. (4), in the bound


def measured_gap(cell: Any, key: Key[Array, ""]) -> dict[str, object]:
    """One network and one sample on the unit sphere, with σ = relu³/6 and the logistic loss.

    Args:
        cell: A cell with `samples`, `dim`, `width`, `signs` and `tests`.
        key: Of inputs, labels, W₀ and signs.

    Returns:
        L_P(Ŵ) − L(Ŵ), L(Ŵ), ‖Ŵ‖_{2,4}, the sample's spread M, and Theorem 6's bound and its part without the width.
    """
    of_inputs, of_labels, of_net, of_tests, of_signs, of_population = jax.random.split(key, 6)
    X = data.sphere(cell.samples, cell.dim, key=of_inputs)
    y = np.asarray(jax.random.rademacher(of_labels, (cell.samples,), float), np.float64)
    net = TwoLayer.symmetric(dim=cell.dim, width=cell.width, activation="relu3", key=of_net)
    W = widest_gap_weights(net, X, y, norm=NORM)
    tests = data.sphere(cell.tests, cell.dim, key=of_tests)
    both = (np.concatenate([tests, tests]), np.repeat([1.0, -1.0], cell.tests))  # the exact mean over the coin
    sample = RandomisedRisk.of(net, X, y, logistic, samples=cell.signs, key=of_signs)
    found = float(sample(jnp.asarray(W, net.W0.dtype)))
    spread = input_spread(X)
    bound = generalisation_gap(cell.samples, cell.dim, cell.width, norm=NORM, spread=spread, delta=DELTA)
    return {
        "gap": randomised_population_risk(net, W, both, logistic, key=of_population).value - found,
        "loss": found,
        "norm": column_norm(W),
        "spread": spread * math.sqrt(cell.dim),
        "bound": bound.total,
        "quadratic_bound": bound.quadratic,
    }
