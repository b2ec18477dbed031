"""The adversary against all 2^m sign patterns, and the largest share of signs against draws at a large width."""

import itertools
import math

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.theory.allen_zhu_li.worst_signs import (
    flip_fraction,
    most_flips,
    operator_limit,
    output_limit,
    worst_change,
    worst_operator,
    worst_output,
    worst_relu,
)


def patterns(g, length):
    """Every D that some g′ with ‖g′‖ ≤ length reaches."""
    for turned in itertools.product((False, True), repeat=len(g)):
        at = np.array(turned)
        if (g[at] ** 2).sum() <= length**2:
            yield (g >= 0) ^ at


@pytest.fixture(params=range(3))
def layer(request):
    rng = np.random.default_rng(request.param)
    k, m = 2, 10
    return rng.standard_normal((k, m)), rng.standard_normal((k + 1, m)), rng.standard_normal(k + 1)


def test_no_set_of_turned_signs_is_larger(layer):
    _, V0, z = layer
    g = z @ V0
    for length in (0.3, 1.0, 2.0):
        found = most_flips(g, length)
        assert (g[found] ** 2).sum() <= length**2
        assert len(found) == max(int(((g >= 0) != D).sum()) for D in patterns(g, length))


@pytest.mark.parametrize("length", [0.5, 1.5])
def test_the_worst_output_is_nearly_the_worst_of_all_patterns_and_can_be_reached(layer, length):
    A, V0, z = layer
    g = z @ V0
    truth = max(np.linalg.norm(A @ (D * g)) for D in patterns(g, length))
    found, D = worst_output(A, g, length)
    assert 0.9 * truth <= found <= truth * (1 + 1e-12)
    assert (g[(g >= 0) != D] ** 2).sum() <= length**2
    assert found == pytest.approx(np.linalg.norm(A @ (D * g)))


@pytest.mark.parametrize("length", [0.5, 1.5])
def test_the_worst_operator_is_nearly_the_worst_of_all_patterns_and_can_be_reached(layer, length):
    A, V0, z = layer
    g = z @ V0
    truth = max(np.linalg.norm((A * D) @ V0.T, 2) for D in patterns(g, length))
    found, D = worst_operator(A, V0, z, length)
    assert 0.9 * truth <= found <= truth * (1 + 1e-12)
    assert (g[(g >= 0) != D] ** 2).sum() <= length**2


@pytest.mark.parametrize("length", [0.5, 1.5])
def test_the_worst_change_is_nearly_the_worst_of_all_patterns(layer, length):
    A, V0, z = layer
    g, values = z @ V0, V0[0]
    truth = max(np.linalg.norm(A @ ((D.astype(float) - (g >= 0)) * values)) for D in patterns(g, length))
    found, D = worst_change(A, values, g, length)
    assert 0.9 * truth <= found <= truth * (1 + 1e-12)
    assert found == pytest.approx(np.linalg.norm(A @ ((D.astype(float) - (g >= 0)) * values)))


def test_the_worst_relu_output_is_reached_and_hardly_any_step_goes_further(layer):
    A, V0, z = layer
    g, length = z @ V0, 1.0
    found, step = worst_relu(A, g, length)
    assert np.linalg.norm(step) <= length * (1 + 1e-12)
    assert found == pytest.approx(np.linalg.norm(A @ np.maximum(g + step, 0)))
    others = np.random.default_rng(9).standard_normal((20_000, len(g)))
    others *= length / np.linalg.norm(others, axis=1, keepdims=True)
    assert found >= 0.95 * np.linalg.norm(np.maximum(g + others, 0) @ A.T, axis=1).max()


@pytest.mark.parametrize("delta", [0.01, 0.2, 0.7, 0.99])
def test_the_largest_share_of_signs_is_what_a_wide_layer_shows(delta):
    """Within four standard errors of ten draws at m = 10⁵, and no more than they all."""
    rng, m = np.random.default_rng(0), 100_000
    shares = np.array([len(most_flips(rng.standard_normal(m) / math.sqrt(m), delta)) / m for _ in range(10)])
    assert abs(shares.mean() - flip_fraction(delta)) < 4 * shares.std() / math.sqrt(10) + 1 / m


@pytest.mark.parametrize("delta", [1e-4, 0.1, 0.5, 1.0])
def test_proposition_c4_holds_with_the_constant_six_over_pi_to_the_third(delta):
    assert flip_fraction(delta) <= (6 / math.pi) ** (1 / 3) * delta ** (2 / 3)


def test_a_wide_layer_comes_close_to_both_limits_when_few_signs_are_turned():
    """One output; what is there without turned signs is taken off. Within 6 %, the order of δ^(2/3)."""
    rng, m, length = np.random.default_rng(0), 100_000, 0.03
    A, V0 = rng.standard_normal((1, m)) / math.sqrt(m), rng.standard_normal((2, m)) / math.sqrt(m)
    z = np.array([1.0, 0.0])
    g = z @ V0
    found = worst_output(A, g, length)[0] - abs((A @ np.maximum(g, 0)).item())
    assert found == pytest.approx(output_limit(length, m**-0.5, m), rel=0.06)
    found = worst_operator(A, V0, z, length)[0] - np.linalg.norm((A * (g >= 0)) @ V0.T, 2)
    assert found == pytest.approx(operator_limit(length, m**-0.5, m), rel=0.06)


A, V0, Z, G = np.ones((2, 3)), np.ones((3, 3)), np.ones(3), np.array([1.0, -2.0, 3.0])


@pytest.mark.parametrize("length", [-3, math.nan])
@pytest.mark.parametrize(
    "call",
    [
        flip_fraction,
        lambda length: most_flips(G, length),
        lambda length: output_limit(length, 0.1, 100),
        lambda length: operator_limit(length, 0.1, 100),
        lambda length: worst_output(A, G, length),
        lambda length: worst_change(A, G, G, length),
        lambda length: worst_operator(A, V0, Z, length),
        lambda length: worst_relu(A, G, length),
    ],
)
def test_a_length_that_is_none_is_refused(call, length):
    with pytest.raises(InputError, match=rf"={length:g}: a length is at least 0"):
        call(length)


@pytest.mark.parametrize(
    "call",
    [
        lambda: most_flips(G * math.nan, 1.0),
        lambda: worst_output(A, G * math.nan, 1.0),
        lambda: worst_output(A * math.inf, G, 1.0),
        lambda: worst_change(A, G * math.nan, G, 1.0),
        lambda: worst_operator(A, V0, Z * math.nan, 1.0),
        lambda: worst_relu(A, G * math.nan, 1.0),
    ],
)
def test_entries_that_are_no_numbers_are_refused(call):
    with pytest.raises(InputError, match="NaN or infinite"):
        call()


@pytest.mark.parametrize("limit", [output_limit, operator_limit])
@pytest.mark.parametrize(("size", "width"), [(0, 100), (math.nan, 100), (0.1, 0)])
def test_a_limit_needs_entries_of_some_size_and_neurons(limit, size, width):
    with pytest.raises(InputError, match=r"the bound holds for positive size only|width=0"):
        limit(0.1, size, width)


@pytest.mark.parametrize("starts", [0, -3])
def test_no_start_finds_nothing(starts):
    A, g = np.ones((2, 3)), np.ones(3)
    for call in (
        lambda: worst_relu(A, g, 1.0, starts=starts),
        lambda: worst_output(A, g, 1.0, starts=starts),
        lambda: worst_change(A, g, g, 1.0, starts=starts),
        lambda: worst_operator(A, A, np.ones(2), 1.0, starts=starts),
    ):
        with pytest.raises(InputError, match=f"starts={starts}: it must be a whole number of at least 1"):
            call()


def enumerated(A, g, length, directions=180):
    """The largest ‖Aσ(g + g′)‖ for two outputs: every direction of a fine grid, every set of neurons that are on.

    For a direction and a set it is convex: what is on takes max(μc_j, −g_j), what is off goes to zero if it is above.
    """
    best = 0.0
    for angle in np.linspace(0, 2 * np.pi, directions, endpoint=False):
        c = A.T @ np.array([np.cos(angle), np.sin(angle)])
        for chosen in itertools.product((False, True), repeat=len(g)):
            on = np.array(chosen)
            left = length**2 - (np.maximum(g[~on], 0) ** 2).sum()
            least = np.maximum(-g[on], 0)
            if left < (least**2).sum():
                continue
            low, high = 0.0, 1.0
            while (np.maximum(high * c[on], -g[on]) ** 2).sum() < left and high < 1e6:
                high *= 2
            for _ in range(50):
                middle = (low + high) / 2
                fits = (np.maximum(middle * c[on], -g[on]) ** 2).sum() <= left
                low, high = (middle, high) if fits else (low, middle)
            step = np.maximum(low * c[on], -g[on])
            if (step**2).sum() <= left + 1e-9:
                best = max(best, float(c[on] @ (g[on] + step)))
    return best


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0, 10.0])
def test_the_search_by_direction_finds_what_enumeration_finds(length):
    rng = np.random.default_rng(0)
    for _ in range(3):
        A, g = rng.standard_normal((2, 6)) / np.sqrt(6), rng.standard_normal(6)
        found, step = worst_relu(A, g, length, starts=16, by_direction=True)
        assert np.linalg.norm(step) <= length * (1 + 1e-9)
        assert found == pytest.approx(np.linalg.norm(A @ np.maximum(g + step, 0)))
        assert found >= (1 - 1e-2) * enumerated(A, g, length)
        assert found >= (1 - 1e-3) * worst_relu(A, g, length, starts=16)[0]


def test_at_large_radii_the_search_by_direction_finds_more_than_the_local_one():
    rng = np.random.default_rng(1)
    A, g = rng.standard_normal((4, 2000)) / np.sqrt(2000), rng.standard_normal(2000)
    local, better = (worst_relu(A, g, 40.0, starts=3, by_direction=one)[0] for one in (False, True))
    assert better > 1.2 * local
