"""Gradient descent on many networks at once, with the quantities of Arora et al.'s lemmas measured on the way.

The paper's own update, eq. (5), written out. Weights are stacked, a network a seed; what needs every step runs on the
device, what is looked at a few times on the host.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.linalg import Spectrum
from offtangent.theory import predict_residual

FLOOR = 1e-8  # of the first loss: below it, float32 decides
LOOKS = 6  # moments at which the weights are measured


@dataclass(frozen=True, eq=False)
class Networks:
    """Initial weights from N(0, κ²I) and signs ±1, eq. (1), in float32, of one shape."""

    W0: Float[np.ndarray, "s d m"]
    a: Float[np.ndarray, "s m"]

    @classmethod
    def draw(cls, seeds: int, dim: int, width: int, scale: float, *, key: int = 2) -> "Networks":
        rng = np.random.default_rng([key, dim, width])
        W0 = np.float32(scale) * rng.standard_normal((seeds, dim, width), dtype=np.float32)
        return cls(W0, 2 * rng.integers(0, 2, (seeds, width)).astype(np.float32) - 1)

    @property
    def width(self) -> int:
        return int(self.W0.shape[2])

    def parts(self, most: int) -> "Iterator[Networks]":
        """All of them, a few at a time: those that have at most so many weights together, or a single one."""
        few = max(1, most // self.W0[0].size)
        for start in range(0, len(self.a), few):
            yield Networks(self.W0[start : start + few], self.a[start : start + few])

    def first(self, width: int) -> "Networks":
        """The same shape, with all neurons but the first `width` switched off: one compiled program for all widths."""
        return Networks(self.W0, np.where(np.arange(self.width) < width, self.a, np.float32(0)))


def follow(
    nets: Networks,
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n"],
    spectrum: Spectrum,
    *,
    rate: float,
    steps: int,
    radius: float | None = None,
    width: int | None = None,
) -> dict[str, Float[np.ndarray, "s ..."]]:
    """Train for `steps` steps; a value for each seed, the largest over all steps (of the weights: over LOOKS of them).

    `width` is m where some neurons are switched off. `radius` is the R of the events A_{r,i}, eq. (15); without it the
    weights are not looked at.
    """
    m = nets.width if width is None else width
    inputs = X.astype(np.float32)
    predicted = predict_residual(spectrum, y, rate=rate, steps=np.arange(steps + 1)).norm
    a = nets.a / np.float32(m**0.5)
    start = np.array([np.maximum(inputs @ W0, 0) @ one for W0, one in zip(nets.W0, a, strict=True)], np.float64)
    first = ((start - y) ** 2).sum(axis=1)
    zero = np.zeros(len(start), np.float32)
    W0, a, *fixed = (jax.device_put(np.asarray(v, np.float32)) for v in (nets.W0, a, inputs, y, predicted, rate, first))
    state = jax.device_put((np.zeros_like(nets.W0), zero + np.float32(np.inf), zero, zero))
    looks = [] if radius is None else np.unique(np.geomspace(1, steps, LOOKS).round().astype(int)).tolist()
    seen = []
    for begin, end in itertools.pairwise([0, *looks, steps + 1]):
        state = _advance(W0, a, *fixed, state, begin, end)
        if radius is not None:
            seen.append(_changes(nets.W0, np.asarray(state[0]), inputs, m, radius))
    found = {name: np.max([one[name] for one in seen], axis=0) for name in (seen[0] if seen else ())}
    loss, worst, deviation = (np.asarray(values, np.float64) for values in state[1:])
    return found | {
        "loss": loss / first,  # before the last step, as a part of the first
        "worst_ratio": worst,  # of losses of consecutive steps
        "deviation": deviation,  # of ‖y − u(k)‖ from eq. (8)
        "residual": np.sqrt(first),  # ‖y − u(0)‖
        "start": start,
    }


_product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


@jax.jit
def _advance(
    W0: Float[Array, "s d m"],
    a: Float[Array, "s m"],
    X: Float[Array, "n d"],
    y: Float[Array, "n"],
    predicted: Float[Array, "t"],
    rate: Float[Array, ""],
    first: Float[Array, "s"],
    state: tuple[Array, Array, Array, Array],
    begin: int | Array,
    end: int | Array,
) -> tuple[Array, Array, Array, Array]:
    """Steps `begin` to `end` of eq. (5): displacements, last losses, largest ratios, deviations. `a` has the 1/√m."""

    def step(k: Array, state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        W, last, worst, deviation = state
        hidden = _product(X, W0 + W)
        on = hidden >= 0
        residual = jnp.sum(jnp.where(on, hidden, 0) * a[:, None, :], axis=2) - y
        loss = jnp.sum(residual**2, axis=1)
        worst = jnp.where(last > FLOOR * first, jnp.maximum(worst, loss / last), worst)
        deviation = jnp.maximum(deviation, jnp.abs(jnp.sqrt(loss) - predicted[k]))
        gradient = _product(X.T, residual[:, :, None] * jnp.where(on, a[:, None, :], 0))
        return W - rate * gradient, loss, jnp.where(jnp.isinf(last), 0, worst), deviation

    return jax.lax.fori_loop(begin, end, step, state)


def _changes(
    W0: Float[np.ndarray, "s d m"], W: Float[np.ndarray, "s d m"], X: Float[np.ndarray, "n d"], m: int, radius: float
) -> dict[str, Float[np.ndarray, "s"]]:
    inner, lengths = X @ X.T, (X**2).sum(axis=1)
    found = []
    for start, moved in zip(W0, W, strict=True):
        before = X @ start
        off, on = before >= 0, X @ (start + moved) >= 0
        flipped = off != on
        columns = np.sqrt((moved**2).sum(axis=0))
        found.append(
            {
                "gram": np.linalg.norm(inner * (active(on) - active(off))) / m,  # ‖H(k) − H(0)‖_F
                "features": np.sqrt(flipped.sum(axis=1) @ lengths / m),  # ‖Z(k) − Z(0)‖_F
                "furthest": columns.max(),
                "distance": np.sqrt((columns.astype(np.float64) ** 2).sum()),  # ‖W(k) − W(0)‖_F
                "flips": flipped.sum(),
                "outside": (flipped & (np.abs(before) > radius)).sum(),  # flips outside the events A_{r,i}
            }
        )
    return {name: np.array([one[name] for one in found], np.float64) for name in found[0]}


def active(on: np.ndarray) -> Float[np.ndarray, "n n"]:
    """How many neurons are active on both of two inputs; exact, in float32, up to 2²⁴ neurons."""
    ones = on.astype(np.float32)
    return ones @ ones.T


def near_supremum(
    W0: Float[np.ndarray, "d m"],
    a: Float[np.ndarray, "m"],
    X: Float[np.ndarray, "n d"],
    signs: Float[np.ndarray, "k n"],
    movement: float,
) -> tuple[float, float]:
    """The mean over ±ε of Σ εᵢf(xᵢ)/n at W(0) + B Z(0)ε/‖Z(0)ε‖, where the linearised network is at its supremum.

    Such networks are in the class of Lemma 5.4 when none of their neurons is further than R from its start: the second
    number is the largest such distance, and the first then a lower bound of the Rademacher complexity (for these ε).
    """
    slopes = np.where(X @ W0 >= 0, a, np.float32(0)) / np.float32(len(a) ** 0.5)
    values, columns = [], []
    for epsilon in np.concatenate([signs, -signs]).astype(np.float32):
        direction = X.T @ (epsilon[:, None] * slopes)
        W = direction * np.float32(movement / np.linalg.norm(direction))
        outputs = np.maximum(X @ (W0 + W), 0) @ a / len(a) ** 0.5
        values.append(epsilon @ outputs / len(X))
        columns.append(np.sqrt((W**2).sum(axis=0)).max())
    return float(np.mean(values)), float(np.max(columns))
