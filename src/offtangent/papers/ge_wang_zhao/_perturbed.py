"""Perturbed gradient descent where Theorems 1, 5 and 6 have it: on x, on (Rx̄)^p with noise, on (Rx)^p without.

Algorithm 1 from W = 0, with thresholds as one would use them: the theorems do not name any. Its rate is one over the
largest eigenvalue of the Hessian at the interpolant, so that features as long as (Rx)^p are need no other thresholds:
√η W descends with the rate 1. Inputs have norm 1 before the noise, labels are uniform on [−1, 1]. All in float64.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao._diagram import LEVEL
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.capacity import least_width
from offtangent.theory.ge_wang_zhao.descent import DescentSettings, theorem4
from offtangent.theory.ge_wang_zhao.landscape import interpolant
from offtangent.theory.ge_wang_zhao.tensor_squares import smallest_singular
from offtangent.training.perturbed import Algorithm1State, algorithm1

VARIANCE = 0.05**2  # of the noise of Theorem 5, as in the paper's own experiment
SETTINGS = DescentSettings(rate=1.0, radius=1e-3, gradient=1e-9, decrease=1e-12, wait=20_000)


@dataclass(frozen=True)
class Descent:
    """Perturbed gradient descent as one of the theorems has it: new inputs, noise, R and labels for each seed."""

    theorem: int  # 1: on x; 5: on (Rx̄)^p; 6: on (Rx)^p
    samples: int
    dim: int
    features: int  # 0 with Theorem 1
    power: int
    steps: int
    seeds: int

    @property
    def inputs(self) -> int:
        """What the quadratic layers see: d, or k."""
        return self.features or self.dim

    @property
    def width(self) -> int:
        """The theorems' number of neurons, r = 2d + 2 or 2k + 2."""
        return least_width(self.inputs)


class Rescaled(eqx.Module):
    """The risk as a function of W/√η."""

    risk: QuadraticRisk
    unit: Float[Array, ""]  # √η

    def __call__(self, V: Float[Array, "d r"]) -> Float[Array, ""]:
        return self.risk.loss(self.unit * V)


def descend(cell: Descent) -> xr.Dataset:
    """What is left of f when it has come to LEVEL f(0), or after all steps, for each seed."""
    parts = [_one(cell, seed) for seed in range(cell.seeds)]
    return xr.Dataset({name: ("seed", np.array([part[name] for part in parts])) for name in parts[0]})


def problem(
    cell: Descent, seed: int
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n k"], Float[np.ndarray, " n"]]:
    """The inputs before the noise, what the quadratic layers see, and the labels."""
    rng = np.random.default_rng([seed, cell.theorem, cell.samples, cell.dim])
    X = rng.standard_normal((cell.samples, cell.dim))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.uniform(-1, 1, cell.samples)
    if cell.theorem == 1:
        return X, X, y
    moved = X + np.sqrt(VARIANCE) * rng.standard_normal(X.shape) if cell.theorem == 5 else X
    R = rng.standard_normal((cell.features, cell.dim))
    return X, (moved @ R.T) ** cell.power, y


def _one(cell: Descent, seed: int) -> dict[str, float]:
    X, seen, y = problem(cell, seed)
    net, start = QuadraticNet(cell.inputs, cell.width), 0.25 * float(np.mean(y**2))
    W = interpolant(net, seen, y)
    risk = QuadraticRisk(net, jnp.asarray(seen), jnp.asarray(y))
    rate = 1 / float(jnp.linalg.eigvalsh(risk.hessian(jnp.asarray(W)))[-1])
    task = Rescaled(risk, jnp.sqrt(jnp.asarray(rate)))
    left, state = _descend(task, jnp.asarray(LEVEL * start), jnp.asarray(cell.steps), jax.random.key(seed))
    lower, radius = smallest_singular(seen).lower, float(np.linalg.norm(seen, axis=1).max())
    return {
        "left": float(left) / start,
        "steps": float(state.time),
        "perturbations": float(state.perturbations),
        "lower": lower,
        "radius": float(np.linalg.norm(X, axis=1).max()),
        "label": float(np.abs(y).max()),
        "seen": radius,
        "promised": _promised(cell, lower, radius, y),
    }


def _promised(cell: Descent, smallest: float, radius: float, y: Float[np.ndarray, " n"]) -> float:
    """Theorem 4's number of iterations for these samples, its constant as one; infinite where σ has no lower bound."""
    if not smallest > 0:
        return np.inf
    start = 0.25 * float(np.mean(y**2))
    return theorem4(
        samples=cell.samples,
        dim=cell.inputs,
        width=cell.width,
        smallest=smallest,
        radius=radius,
        label=float(np.abs(y).max()),
        start=start,
        epsilon=LEVEL * start,
    ).iterations


@eqx.filter_jit
def _descend(
    task: Rescaled, level: Float[Array, ""], most: Array, key: Key[Array, ""]
) -> tuple[Float[Array, ""], Algorithm1State]:
    """Where Algorithm 1 is once f ≤ level, or it has returned, or taken `most` steps."""
    optimiser = algorithm1(SETTINGS, key=key)
    zero = jnp.zeros((task.risk.net.dim, task.risk.net.width), task.risk.X.dtype)
    Carry = tuple[Array, Algorithm1State, Array]

    def going(carry: Carry) -> Array:
        return (carry[2] > level) & ~carry[1].done & (carry[1].time < most)

    def step(carry: Carry) -> Carry:
        V, state, _ = carry
        value, gradient = jax.value_and_grad(task)(V)
        moved, state = optimiser.update(gradient, state, V, value=value)
        return V + moved, state, value

    last, state, _ = jax.lax.while_loop(going, step, (zero, optimiser.init(zero), task(zero)))
    return task(last), state
