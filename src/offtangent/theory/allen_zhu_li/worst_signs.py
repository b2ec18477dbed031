"""How much a perturbation of bounded length can do to a random ReLU layer: the worst signs, found by an adversary.

Allen-Zhu & Li (2019), Proposition C.4 and Lemma D.1. At one x a layer has the pre-activations g, and a displacement W
with ‖W‖₂ ≤ τ adds to them any g′ with ‖g′‖ ≤ τ‖(x, 1)‖. It turns the sign of neuron j at the price g_j², so what can
be turned for a given length is a knapsack. `most_flips` solves it exactly; where a gain is to be maximised that depends
on the direction of the outputs, the adversary fills the knapsack by gain over price, takes the direction that results,
and starts again, from a few random directions. In wide layers two or three give within 1 % what many do. Host-level,
in float64.
"""

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int

from offtangent._checks import check_bound, check_count, check_numbers, check_real, require
from offtangent._errors import InputError

LATER = 16  # neurons that are tried once the next one no longer fits into the knapsack
TOLERANCE = 1e-4  # a gain by less ends the iteration
MATRICES = ("A", "V0")
HALVINGS, HIGHEST = 60, 1e30  # of the price of length in `worst_relu`
ROUNDS = 30  # of its iteration at most; it ends when nothing more is gained


def flip_fraction(delta: float | int) -> float:
    """The largest share of m signs of g ~ N(0, I/m) that some g′ with ‖g′‖ = δ turns, as m → ∞.

    All |g_j| ≤ t/√m are turned, where E[g²1{|g| ≤ t}] = δ²: it is erf(t/√2), below (6/π)^{1/3} δ^{2/3} and close to it
    for small δ. So Proposition C.4's O(mδ^{2/3}) is attained, with the constant 1.241.

    >>> round(flip_fraction(1e-3) / 1e-2, 3), flip_fraction(1.0)
    (1.241, 1.0)
    """
    check_real("delta", delta)
    require(delta >= 0, f"delta={delta:g}: a length is at least 0.")
    if delta >= 1:
        return 1.0
    low, high = 0.0, 40.0
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if _mass(t) < delta**2 else (low, t)
    return math.erf(low / math.sqrt(2))


def most_flips(g: Float[np.ndarray, " m"], length: float | int) -> Int[np.ndarray, " s"]:
    """The largest set of signs of g that one g′ with ‖g′‖ ≤ length turns: those of the smallest |g_j|. Exact.

    >>> most_flips(np.array([3.0, -1.0, 2.0]), 2.5)
    array([1, 2])
    """
    (g,) = _layer(length, g=g)
    order = np.argsort(np.abs(g), kind="stable")
    return order[: np.searchsorted(np.cumsum(g[order] ** 2), float(length) ** 2, side="right")]


def output_limit(length: float | int, size: float | int, width: int) -> float:
    """What turned signs add to ‖ADg‖ at most, as m → ∞ and few are turned: (3/2)(2/3π)^{1/3} L^{4/3} (s√m)^{−1/3}.

    For g with entries of N(0, s²), A of N(0, 1/m), L = `length`. Of the neurons with −⟨u, A_j⟩ = c those with
    |g_j| ≤ c/λ are turned, λ by the budget. With s = σ_v/√m it is 0.895 τ_v(τ_v/σ_v)^{1/3}: Lemma D.1(e), and (b), are
    attained.
    """
    _check_length(length)
    check_count("width", width)
    check_bound(size=size)
    return 1.5 * (2 / (3 * math.pi)) ** (1 / 3) * length ** (4 / 3) * (size * math.sqrt(width)) ** (-1 / 3)


def operator_limit(length: float | int, size: float | int, width: int) -> float:
    """What turned signs add to ‖ADV⁰‖₂ at most, as m → ∞ and few are turned, for unit z: 0.639 L^{2/3} (s√m)^{1/3}.

    In a direction v across z, (V⁰ᵀv)_j is not small where (V⁰ᵀz)_j is: turning j gains |⟨u, A_j⟩(V⁰ᵀv)_j| at the price
    (V⁰ᵀz)_j². With s = σ_v/√m it is 0.639 τ_v^{2/3} σ_v^{1/3}, where Lemma D.1(f) prints τ_v^{4/3} σ_v^{−1/3}.
    """
    _check_length(length)
    check_count("width", width)
    check_bound(size=size)
    moment = 2**0.75 * math.gamma(1.25) / math.sqrt(math.pi)  # E|g|^{3/2} of a standard Gaussian
    density = math.sqrt(2 / math.pi) * moment**2 / 2 * math.sqrt(size * math.sqrt(width))
    return 3 ** (1 / 3) * length ** (2 / 3) * density ** (2 / 3)


def worst_output(
    A: Float[np.ndarray, "k m"], g: Float[np.ndarray, " m"], length: float | int, *, starts: int = 8, seed: int = 0
) -> tuple[float, Bool[np.ndarray, " m"]]:
    """The largest ‖ADg‖ found, D = diag(1{g + g′ ≥ 0}) over ‖g′‖ ≤ length, and that D.

    Lemma D.1(b) with g = W⁰(x, 1), (e) with g = V⁰(out₁, 1). Time O(rounds · m(k + log m)).
    """
    A, g = _layer(length, A=A, g=g)
    first = g >= 0

    def gain(u: np.ndarray) -> np.ndarray:  # turning j adds −⟨u, A_j⟩|g_j|, whichever sign it had
        return -(A.T @ u) * np.abs(g)

    def value(D: np.ndarray) -> tuple[float, np.ndarray]:
        return _length_and_direction(A @ (D * g))

    return _adversary(first, g, length, gain, value, len(A), starts, seed)


def worst_change(
    A: Float[np.ndarray, "k m"],
    values: Float[np.ndarray, " m"],
    g: Float[np.ndarray, " m"],
    length: float | int,
    *,
    starts: int = 8,
    seed: int = 0,
) -> tuple[float, Bool[np.ndarray, " m"]]:
    """The largest ‖A(D − D⁰)values‖ found, D⁰ = diag(1{g ≥ 0}) and D as in `worst_output`; and that D.

    Lemma D.3(a) with values = W⋆(x, 1) and g = W⁰(x, 1), (b) with V⋆(out₁, 1) and V⁰(out₁, 1).
    """
    A, values, g = _layer(length, A=A, values=values, g=g)
    first = g >= 0
    turned = np.where(first, -values, values)

    def gain(u: np.ndarray) -> np.ndarray:
        return (A.T @ u) * turned

    def value(D: np.ndarray) -> tuple[float, np.ndarray]:
        return _length_and_direction(A @ ((first != D) * turned))

    return _adversary(first, g, length, gain, value, len(A), starts, seed)


def worst_operator(
    A: Float[np.ndarray, "k m"],
    V0: Float[np.ndarray, "k1 m"],
    z: Float[np.ndarray, " k1"],
    length: float | int,
    *,
    starts: int = 8,
    seed: int = 0,
) -> tuple[float, Bool[np.ndarray, " m"]]:
    """The largest spectral norm ‖ADV⁰‖₂ found over D = diag(1{V⁰z + g′ ≥ 0}), ‖g′‖ ≤ length: Lemma D.1(f).

    D is bound to z, but the norm is over all directions, where the turned neurons are not the small ones.
    """
    A, V0 = _layer(length, A=A, V0=V0)
    (z,) = _layer(length, z=z)
    require(len(z) == len(V0), f"z has {len(z)} entries and V0 {len(V0)} rows: expected one for each, z = (out₁, 1).")
    g, k = z @ V0, len(A)
    first = g >= 0
    turn = np.where(first, -1.0, 1.0)

    def gain(uv: np.ndarray) -> np.ndarray:
        return turn * (A.T @ uv[:k]) * (V0.T @ uv[k:])

    def value(D: np.ndarray) -> tuple[float, np.ndarray]:
        left, sizes, right = np.linalg.svd((A * D) @ V0.T)
        return float(sizes[0]), np.concatenate([left[:, 0], right[0]])

    return _adversary(first, g, length, gain, value, k + len(V0), starts, seed)


def worst_relu(
    A: Float[np.ndarray, "k m"],
    g: Float[np.ndarray, " m"],
    length: float | int,
    *,
    starts: int = 8,
    seed: int = 0,
    by_direction: bool = False,
) -> tuple[float, Float[np.ndarray, " m"]]:
    """The largest ‖Aσ(g + g′)‖ found over ‖g′‖ ≤ length, and that g′: Lemma D.1(c) and (g).

    By power iteration: each round takes the g′ that goes furthest along DAᵀu, D the signs and u the direction of the
    outputs so far. It is a local search, and where g′ is much longer than g it stays below the worst, at 0.8 of it and
    less. `by_direction`: each round takes the best g′ for u over all signs instead, neuron by neuron at one price for
    length; where m is large no other does better for that u, and the search is over k numbers alone.

    >>> A, g = np.array([[1.0, -1.0]]), np.array([-1.0, 1.0])  # 3 − 1 by the first neuron, −(1 + 3) by the second
    >>> round(worst_relu(A, g, 3.0, by_direction=True)[0], 9)
    4.0
    """
    A, g = _layer(length, A=A, g=g)
    check_count("starts", starts)
    check_count("seed", seed, least=0)
    rng, best, found = np.random.default_rng(seed), -1.0, np.zeros_like(g)
    for _ in range(starts):
        if by_direction:
            step, before = _furthest(A.T @ _unit(rng.standard_normal(len(A))), g, length), -1.0
        else:
            step, before = length * _unit(rng.standard_normal(len(g))), -1.0
        for _ in range(ROUNDS):
            out = A @ np.maximum(g + step, 0)
            size = float(np.linalg.norm(out))
            if size > best:
                best, found = size, step
            if size <= before * (1 + TOLERANCE):
                break
            before = size
            step = _furthest(A.T @ out, g, length) if by_direction else length * _unit((g + step >= 0) * (A.T @ out))
    return best, found


def _furthest(c: Float[np.ndarray, " m"], g: Float[np.ndarray, " m"], length: float) -> Float[np.ndarray, " m"]:
    """The g′ of at most this length with the largest Σ c_j σ(g_j + g′_j), but for the last neuron that does not fit.

    At a price 1/2μ for each g′_j² a neuron with c_j > 0 takes μc_j, if that gets it beyond its threshold with more than
    it costs; one with c_j < 0 and g_j > 0 goes down by μ|c_j|, to zero at most. μ is found by halving. What length is
    left then goes to the neurons that are on.
    """

    def step(price: float) -> np.ndarray:
        up = (c > 0) & (price * c > np.where(g < 0, 2 * np.abs(g), 0.0))
        down = (c < 0) & (g > 0)
        return np.where(up, price * c, 0.0) + np.where(down, -np.minimum(price * np.abs(c), np.maximum(g, 0.0)), 0.0)

    low, high = 0.0, 1.0
    while np.linalg.norm(step(high)) < length and high < HIGHEST:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.linalg.norm(step(middle)) <= length else (low, middle)
    found = step(low)
    rising = np.where(found > 0, c, 0.0)
    if rising.any():
        before = float(found @ rising)
        slope = float(rising @ rising)
        room = max(length**2 - float(found @ found), 0.0)
        found = found + rising * ((-before + math.sqrt(before**2 + slope * room)) / slope)
    return found


def _layer(length: float | int, **given: object) -> list[np.ndarray]:
    """Matrices and vectors of one layer as finite float64 arrays, with a column or an entry for each neuron."""
    _check_length(length)
    arrays = {name: check_numbers(values, name) for name, values in given.items()}
    width = next(iter(arrays.values())).shape[-1:]
    for name, array in arrays.items():
        wanted = 2 if name in MATRICES else 1
        if array.ndim != wanted or array.shape[-1:] != width:
            shapes = ", ".join(f"{each} {one.shape}" for each, one in arrays.items())
            what = "a matrix with a column" if wanted == 2 else "a vector with an entry"
            raise InputError(f"Shapes {shapes}: expected {name} to be {what} for each neuron.")
        if not array.size:
            raise InputError(f"{name} has shape {array.shape}: expected at least one neuron, and one row of a matrix.")
        if not np.isfinite(array).all():
            raise InputError(f"{name} has entries that are NaN or infinite: signs and norms are of finite numbers.")
    return list(arrays.values())


def _check_length(length: float | int) -> None:
    check_real("length", length)
    require(0 <= length < math.inf, f"length={length:g}: a length is at least 0, and finite.")


def _adversary(
    first: np.ndarray,
    g: np.ndarray,
    length: float,
    gain: Callable[[np.ndarray], np.ndarray],
    value: Callable[[np.ndarray], tuple[float, np.ndarray]],
    size: int,
    starts: int,
    seed: int,
) -> tuple[float, np.ndarray]:
    check_count("starts", starts)
    check_count("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    best, found = value(first)[0], first
    for _ in range(starts):
        direction, before = rng.standard_normal(size), -1.0
        for _ in range(ROUNDS):
            D = first.copy()
            turned = _filled(gain(direction), g**2, length**2)
            D[turned] = ~D[turned]
            now, direction = value(D)
            if now > best:
                best, found = now, D
            if now <= before * (1 + TOLERANCE):
                break
            before = now
    return best, found


def _filled(gain: np.ndarray, price: np.ndarray, budget: float) -> np.ndarray:
    """A knapsack filled by gain over price; what no longer fits is left out, and a few later ones may still fit."""
    worth = np.flatnonzero(gain > 0)
    order = worth[np.argsort(-gain[worth] / np.maximum(price[worth], 1e-300))]
    spent = np.cumsum(price[order])
    count = int(np.searchsorted(spent, budget, side="right"))
    left = budget - (spent[count - 1] if count else 0.0)
    chosen = [order[:count]]
    for j in order[count + 1 : count + 1 + LATER]:
        if price[j] <= left:
            left -= price[j]
            chosen.append(np.array([j]))
    return np.concatenate(chosen)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / max(float(np.linalg.norm(v)), 1e-300)


def _mass(t: float) -> float:
    """E[g²1{|g| ≤ t}] of a standard Gaussian."""
    return math.erf(t / math.sqrt(2)) - math.sqrt(2 / math.pi) * t * math.exp(-(t**2) / 2)


def _length_and_direction(out: np.ndarray) -> tuple[float, np.ndarray]:
    size = float(np.linalg.norm(out))
    return size, out / max(size, 1e-300)
