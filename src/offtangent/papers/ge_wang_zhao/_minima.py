"""Many starts at once, for several widths and numbers of samples: gradient descent, and then as far down as it goes.

One program has one shape. Rows of zeros with the label 0 stand for samples that are not there, and the others are
scaled so that f, M, the gradient and the Hessian are those of the n real ones; a column of zeros stands for a neuron
that is not there, since ∇f = MWA keeps it zero.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent.networks import QuadraticNet
from offtangent.theory import QuadraticRisk

Scalar = Float[Array, ""] | float
GRADIENT, CURVATURE = 1e-8, 1e-9  # ‖∇f‖ and −λ_min(∇²f) of a point that counts as second-order stationary
ZERO = 1e-10  # of f(0): a loss that counts as the least one, after polishing
COUNTS = ("descended", "reached", "certified", "stuck", "ratio_before", "ratio", "smallest")  # for each n and r
DAMPING = 0.1  # μ at the first step of `polish`


def padded(
    X: Float[np.ndarray, "rows d"], y: Float[np.ndarray, "rows"], samples: tuple[int, ...]
) -> tuple[Float[np.ndarray, "k rows d"], Float[np.ndarray, "k rows"]]:
    """The first n samples for each n, as N rows: x(N/n)^¼ and y(N/n)^½ have the f of x and y."""
    counts = np.array(samples)
    used = np.arange(len(X)) < counts[:, None]
    grown = (used * len(X) / counts[:, None]) ** 0.5
    return X * np.sqrt(grown)[..., None], y * grown


def kept_columns(width: int, widest: int) -> Float[np.ndarray, "r"]:
    """1 at the neurons of a network of `width` inside one of `widest`, half of them with each sign."""
    return np.tile(np.arange(widest // 2) < width // 2, 2).astype(float)


@partial(jax.jit, static_argnames=("steps", "polishing"))
def minimise(
    X: Float[Array, "n rows d"], y: Float[Array, "n rows"], W: Float[Array, "w s d r"], rate: Scalar, steps: int,
    polishing: int,
) -> tuple[Float[Array, "n w s d r"], Float[Array, "n w s d r"]]:  # fmt: skip
    """Where `steps` of gradient descent end, and where `polishing` steps of Levenberg and Marquardt's end after it."""

    def one(X: Array, y: Array, W: Array) -> tuple[Array, Array]:
        risk = QuadraticRisk(QuadraticNet(*W.shape), X, y)
        down = jax.lax.fori_loop(0, steps, lambda _, V: V - rate * risk.gradient(V), W)
        return down, _polish(risk, down, polishing)

    starts = jax.vmap(jax.vmap(one, (None, None, 0)), (None, None, 0))
    return jax.vmap(starts, (0, 0, None))(X, y, W)


def _polish(risk: QuadraticRisk, W: Float[Array, "d r"], steps: int) -> Float[Array, "d r"]:
    """W ← W − Jᵀ(JJᵀ + μI)⁻¹δ, J = ∂δ/∂W, kept where f falls. (JJᵀ)_ij = 4 x_iᵀx_j · x_iᵀWWᵀx_j."""
    inner, half = risk.X @ risk.X.T, W.shape[1] // 2
    signs = jnp.concatenate([jnp.ones(half, W.dtype), -jnp.ones(half, W.dtype)])

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        W, mu, loss = carry
        seen = risk.X @ W
        gram = 4 * inner * (seen @ seen.T) + mu * jnp.eye(len(inner), dtype=W.dtype)
        weights = jax.scipy.linalg.solve(gram, risk.residuals(W), assume_a="pos")
        new = W - 2 * signs * (risk.X.T @ (weights[:, None] * seen))
        lower = risk.loss(new) < loss
        mu = jnp.clip(jnp.where(lower, mu / 3, 4 * mu), 1e-12, 1e6)
        return (jnp.where(lower, new, W), mu, jnp.where(lower, risk.loss(new), loss)), None

    start = (W, jnp.asarray(DAMPING, W.dtype), risk.loss(W))
    return jax.lax.scan(step, start, None, length=steps)[0][0]
