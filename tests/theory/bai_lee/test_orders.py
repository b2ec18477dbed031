"""Section 6: moments exactly, terms against brute force over every z, slopes in m against the stated exponents."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.special import activation as named
from offtangent.theory.bai_lee.orders import (
    extracting_weights,
    matched_moments,
    order_limit,
    pair_terms,
    ridge_columns,
    term_moments,
)

SIGMA = "sigmoid(1.0)"  # no derivative of it is odd or even
BETA = np.array([1.2, -0.5, 0.7])


def half_exp(z):
    return jnp.exp(z / 2)  # E[σ^{(k)}(g)]² is 0.78 of E[σ^{(k)}(g)²] for every k


def network(pairs, *, seed=0, sigma=SIGMA):
    half = np.random.default_rng(seed).standard_normal((3, pairs)).astype(np.float32)
    signs = np.repeat([1.0, -1.0], pairs).astype(np.float32)
    return TwoLayer(jnp.asarray(np.hstack([half, half])), jnp.asarray(signs), named(sigma), paired=True)


@pytest.fixture(scope="module")
def inputs():
    X = np.random.default_rng(1).standard_normal((4, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("shift", ["0", "1/2", "k/2"])
@pytest.mark.parametrize("order", range(1, 9))
def test_moments_match_below_the_order_and_differ_by_one_there(order, shift):
    """In exact arithmetic, on centred nodes, on slightly shifted ones, and on 0, …, k."""
    t = Fraction(order, 2) if shift == "k/2" else Fraction(shift)
    law = matched_moments(order, shift=t)
    assert shift != "k/2" or sorted(law.plus.nodes + law.minus.nodes) == list(range(order + 1))
    assert sum(law.plus.chances) == sum(law.minus.chances) == 1
    assert all(law.node_difference(j) == 0 for j in range(order))
    assert law.node_difference(order) * law.scale_power == 1
    assert len(law.plus.nodes) + len(law.minus.nodes) == order + 1
    following = (order + 1) * t  # Σ (−1)^{k−j} C(k,j) j^{k+1} = k! S(k+1, k) = k!·k(k+1)/2 at t = k/2
    assert law.node_difference(order + 1) * law.scale_power == following
    assert law.difference(order + 1) == pytest.approx(law.scale * float(following), rel=1e-14)


def test_order_two_is_sign_randomisation():
    """z₊ = ±1 with equal chances and z₋ = 0."""
    law = matched_moments(2)
    assert (law.plus.nodes, law.plus.chances) == ((-1, 1), (Fraction(1, 2), Fraction(1, 2)))
    assert (law.minus.nodes, law.minus.chances, law.scale) == ((0,), (1,), 1.0)


@pytest.mark.parametrize("order", [1, 3, 4])
def test_draws_have_the_moments(order):
    law, count = matched_moments(order, shift=Fraction(order, 2)), 20_000
    plus, minus = (np.asarray(z, np.float64) for z in law.sample(count, key=jax.random.key(order)))
    for j in range(1, order + 2):
        error = math.sqrt(law.variance(j) / count)
        assert abs((plus**j - minus**j).mean() - law.difference(j)) <= 5 * error + 1e-6
        assert (plus**j - minus**j).var() == pytest.approx(law.variance(j), rel=0.1, abs=1e-10)


@pytest.mark.parametrize(("order", "shift"), [(2, 0), (3, 0), (3, 1.5)])
def test_term_moments_equal_brute_force_over_every_draw(inputs, order, shift):
    """Three pairs of neurons, every combination of their z₊ and z₋ with its chance."""
    law, net = matched_moments(order, shift=shift), network(3)
    stars = np.random.default_rng(2).standard_normal((3, 3))
    sides = [
        [(law.scale * float(z), float(c)) for z, c in zip(side.nodes, side.chances, strict=True)]
        for side in (law.plus, law.minus)
    ]
    with jax.enable_x64(True):
        derivatives = [
            np.asarray(net.activation.derivative(j)(jnp.asarray(inputs @ np.asarray(net.W0, np.float64)[:, :3])))
            for j in range(order + 2)
        ]
    mean, square = np.zeros((order + 2, 4)), np.zeros((order + 2, 4))
    for draw in itertools.product(itertools.product(*sides), repeat=3):
        chance = math.prod(c for pair in draw for _, c in pair)
        plus, minus = (np.array([pair[side][0] for pair in draw]) for side in (0, 1))
        for j in range(order + 2):
            powers = (inputs @ (stars * plus)) ** j - (inputs @ (stars * minus)) ** j
            term = (derivatives[j] * powers).sum(axis=1) / math.sqrt(3) / math.factorial(j)
            mean[j] += chance * term
            square[j] += chance * term**2
    found = term_moments(net, jnp.asarray(stars, jnp.float32), law, inputs, order + 1)
    np.testing.assert_allclose(found.mean, mean, atol=1e-6)
    np.testing.assert_allclose(found.variance, square - mean**2, atol=1e-6)


def test_terms_are_those_of_the_papers_network(inputs):
    """Σ_j f^{(j)} → m^{-1/2} Σ σ((w₀ + w₊)ᵀx) − σ((w₀ + w₋)ᵀx) with m pairs, not 2m neurons, under the root."""
    law, net = matched_moments(3), network(50)
    stars = 0.3 * ridge_columns(net, BETA, 3)
    W = extracting_weights(net, stars, law, key=jax.random.key(4))
    z = np.asarray(W, np.float64) / np.tile(np.asarray(stars, np.float64), 2)
    np.testing.assert_allclose(z, np.tile(z[0], (3, 1)), rtol=1e-5)  # a multiple of w_⋆ each
    for side, columns in ((law.plus, z[0, :50]), (law.minus, z[0, 50:])):
        nodes = law.scale * np.array([float(node) for node in side.nodes])
        assert np.abs(columns[:, None] - nodes).min(axis=1).max() < 1e-5
    V = np.asarray(net.W0, np.float64) + np.asarray(W, np.float64)
    hidden = 1 / (1 + np.exp(1 - inputs @ V))
    f = (hidden[:, :50] - hidden[:, 50:]).sum(axis=1) / math.sqrt(50)
    terms = pair_terms(net, W, jnp.asarray(inputs, jnp.float32), 6)
    np.testing.assert_allclose(terms[0], 0, atol=1e-6)
    np.testing.assert_allclose(sum(np.asarray(term, np.float64) for term in terms), f, atol=2e-5)


@pytest.mark.parametrize("shift", [0, 0.5])
@pytest.mark.parametrize("order", [2, 3, 4])
def test_each_term_falls_with_its_exponent(inputs, order, shift):
    """V-A10: slopes in log m of what dominates at large m, the mean over z_± or, where it is zero, the spread.

    W₀ of 2⁶ to 2¹⁴ pairs. By the law of large numbers means and spreads stray by 0.53/√2⁶ = 0.07 at the narrowest, and
    a slope over five widths by about 0.01; the exponents are multiples of 1/8.
    """
    law, pairs = matched_moments(order, shift=shift), 2 ** np.array([6, 8, 10, 12, 14])
    found = []
    for count in pairs:
        net = network(int(count), sigma=half_exp)
        found.append(term_moments(net, ridge_columns(net, BETA, order), law, inputs, order + 1))
    for j in range(1, order + 2):
        if law.difference(j):
            sizes = [np.abs(moments.mean[j]).mean() for moments in found]
        else:
            assert not any(moments.mean[j].any() for moments in found)
            sizes = [np.sqrt(moments.variance[j]).mean() for moments in found]
        slope = np.polyfit(np.log(pairs), np.log(sizes), 1)[0]
        assert slope == pytest.approx(float(law.exponent(j)), abs=0.04), j
    assert law.exponent(order) == 0
    assert law.exponent(order + 1) == Fraction(-1 if shift else -(order + 1), 2 * order)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_kth_term_tends_to_its_limit(inputs, order):
    net = network(2**16)
    found = term_moments(net, ridge_columns(net, BETA, order), matched_moments(order), inputs, order)
    limit = order_limit(SIGMA, inputs, BETA, order)
    assert np.abs(limit).max() > 1e-3
    # |σ^{(k)}| ≤ 1: the average over 2¹⁶ weights strays by at most 5 standard errors of 1/2⁸
    scale = np.abs(inputs @ BETA) ** order / math.factorial(order)
    assert (np.abs(found.mean[order] - limit) <= 5 / 2**8 * scale).all()


def test_a_symmetric_activation_hides_the_order():
    np.testing.assert_allclose(order_limit("tanh", np.eye(3), BETA, 2), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: matched_moments(0), "order=0"),
        (lambda: matched_moments(2, shift=math.inf), "shift=inf"),
        (lambda: ridge_columns(network(2), np.ones(2), 2), r"β has shape \(2,\)"),
        (
            lambda: extracting_weights(network(2), jnp.ones((3, 4)), matched_moments(2), key=jax.random.key(0)),
            "one for each pair",
        ),
        (
            lambda: pair_terms(
                TwoLayer.gaussian(dim=3, width=4, key=jax.random.key(0)), jnp.ones((3, 4)), jnp.ones((1, 3)), 1
            ),
            "TwoLayer.symmetric",
        ),
    ],
)
def test_bad_arguments_are_refused(call, match):
    with pytest.raises(InputError, match=match):
        call()
