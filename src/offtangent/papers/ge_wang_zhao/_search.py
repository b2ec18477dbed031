"""How fast ∇g and ∇²g change inside a ball: over random pairs of points, and as fast as a search can make them.

On a ball the Lipschitz constant of ∇g is the largest |∇²g(W)[Z, Z]| over W in it and ‖Z‖ = 1, and that of ∇²g the
largest |∇³g(W)[D, Z, Z]|, ‖D‖ = 1. Both by gradient ascent from many starts; nothing of Lemma 5's proof is used.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from offtangent.networks import QuadraticNet
from offtangent.papers.ge_wang_zhao._minima import Scalar
from offtangent.theory import QuadraticRisk

Carry = tuple[Array, optax.OptState, Array]
RATE = 0.1  # of Adam, falling to zero, for points and directions of length one


def starts(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n"], width: int, count: int, rng: np.random.Generator
) -> Float[np.ndarray, "s 3 d r"]:
    """W/√Γ, D and Z: all three one neuron along the longest sample, its sign against the label; the others random."""
    found = rng.standard_normal((count, 3, X.shape[1], width))
    found /= np.linalg.norm(found, axis=(2, 3), keepdims=True)
    at = np.linalg.norm(X, axis=1).argmax()
    found[0] = 0
    found[0, :, :, 0 if y[at] < 0 else -1] = X[at] / np.linalg.norm(X[at])
    return found


@partial(jax.jit, static_argnames="steps")
def climb(
    X: Float[Array, "k n d"], y: Float[Array, "k n"], points: Float[Array, "k s 3 d r"], ball: Scalar, gamma: Scalar,
    steps: int,
) -> tuple[Float[Array, "k s"], Float[Array, "k s"]]:  # fmt: skip
    """The largest |∇²g(W)[Z, Z]| and |∇³g(W)[D, Z, Z]| that ascent finds, for k data sets and s starts."""
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))

    def one(X: Array, y: Array, start: Array) -> tuple[Array, Array]:
        risk = QuadraticRisk(QuadraticNet(*start.shape[1:]), X, y, gamma)

        def sizes(point: Array) -> tuple[Array, Array]:
            W, _, Z = _inside(point[0], ball)
            V, D, Y = _inside(point[1], ball)
            bend = jax.jvp(lambda V: risk.hessian_form(V, Y), (V,), (D,))[1]
            found = jnp.abs(jnp.stack([risk.hessian_form(W, Z), bend]))
            return -jnp.sum(jnp.log(found)), found  # two ascents at once, each with its own point

        def step(carry: Carry, _: None) -> tuple[Carry, None]:
            point, state, best = carry
            slope, found = jax.grad(sizes, has_aux=True)(point)
            updates, state = optimiser.update(slope, state)
            return (optax.apply_updates(point, updates), state, jnp.maximum(best, found)), None

        point = jnp.stack([start, start])
        begin = (point, optimiser.init(point), jnp.zeros(2, start.dtype))
        best = jax.lax.scan(step, begin, None, length=steps)[0][2]
        return best[0], best[1]

    return jax.vmap(jax.vmap(one, (None, None, 0)))(X, y, points)


@jax.jit
def between(
    X: Float[Array, "k n d"], y: Float[Array, "k n"], U: Float[Array, "k s d r"], V: Float[Array, "k s d r"],
    gamma: Scalar,
) -> tuple[Float[Array, "k s"], Float[Array, "k s p p"]]:  # fmt: skip
    """‖∇g(U) − ∇g(V)‖ and ∇²g(U) − ∇²g(V)."""

    def one(X: Array, y: Array, U: Array, V: Array) -> tuple[Array, Array]:
        risk = QuadraticRisk(QuadraticNet(*U.shape), X, y, gamma)
        return jnp.linalg.norm(risk.gradient(U) - risk.gradient(V)), risk.hessian(U) - risk.hessian(V)

    return jax.vmap(jax.vmap(one, (None, None, 0, 0)))(X, y, U, V)


def _inside(point: Array, ball: Scalar) -> tuple[Array, Array, Array]:
    """W in the ball, D and Z of unit length."""
    lengths = jnp.sqrt(jnp.sum(point**2, axis=(1, 2), keepdims=True))
    W, D, Z = point / jnp.stack([jnp.maximum(lengths[0], 1.0), lengths[1], lengths[2]])
    return jnp.sqrt(jnp.asarray(ball, W.dtype)) * W, D, Z
