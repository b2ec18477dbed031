"""The landscape of the quadratic network: why every local minimum of its loss is a global one.

With the residuals δ_j = x_jᵀWAWᵀx_j − y_j and M = n⁻¹ Σ_j δ_j x_j x_jᵀ (Ge, Wang & Zhao (2019), Appendices C and D):

    f(W) = (1/4n) Σ_j δ_j²        g = f + (γ/2)‖W‖_F²        ∇f = MWA
    ∇²f[Z, Z] = Σ_k a_k z_kᵀMz_k + (2/n) Σ_j (Σ_i a_i w_iᵀx_j x_jᵀz_i)²

Lemma 3: λ_min(∇²f) = −‖M‖ when r ≥ 2d + 2. Lemma 4: f ≤ nd‖M‖²/4σ², σ the smallest singular value of [x_j ⊗ x_j].
"""

import math
import warnings
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from offtangent._arguments import check_not_negative
from offtangent._checks import check_count, require
from offtangent._errors import InputError
from offtangent.networks import PolynomialNet, QuadraticNet
from offtangent.theory.ge_wang_zhao.capacity import Capacity
from offtangent.theory.ge_wang_zhao.samples import (
    as_quadratic,
    check_met,
    check_positive,
    nearly_dependent,
    nearly_parallel,
)
from offtangent.theory.ge_wang_zhao.tensor_squares import check_multiples


class Curvature(eqx.Module):
    """A direction of Lemma 3: Z = z₀uᵀ with Σ a_i u_i w_i = 0, along which ∇²f[Z, Z] = −‖M‖.

    f(W + tZ) is then (1/4n) Σ_j (δ_j + s t² q_j)² with q_j = (z₀ᵀx_j)² and s the sign of the neurons that move: a
    parabola in t², whose minimum is at t² = −s Σδq/Σq².
    """

    Z: Float[Array, "d r"]  # ‖Z‖_F = 1
    value: Float[Array, ""]  # z₀ᵀMz₀, of absolute value ‖M‖
    best: Float[Array, ""]  # the t ≥ 0 of the minimum
    gain: Float[Array, ""]  # f(W) − f(W + best·Z) = n‖M‖²/(4Σq²)


class QuadraticRisk(eqx.Module):
    """The risk of a network of quadratic neurons on n samples, with its derivatives and curvature in closed form.

    Ge, Wang & Zhao (2019), Section 2.2, train the two-layer network Σᵢ aᵢ(wᵢᵀx)² with fixed signs aᵢ = ±1 on

        f(W) = (1/4n) Σ_j (Σᵢ aᵢ(wᵢᵀx_j)² − y_j)²,      g(W) = f(W) + (γ/2)‖W‖_F²,

    whose local minima are global ones from 2d + 2 neurons on (Lemma 1). `QuadraticRisk.of` makes one from checked
    data; `risk(W)` is g(W), and is jittable, as all methods are. A call costs time O(ndr) and memory O(nr).

    Attributes:
        net: The network of quadratic neurons; of a network with three layers its two upper ones.
        X: What these neurons see of the samples, n × d: the inputs, or the features of three layers.
        y: The labels.
        gamma: γ, the weight of ‖W‖_F²/2, zero or positive.

    >>> risk = QuadraticRisk.of(QuadraticNet(dim=2, width=6), np.eye(2), [1.0, -1.0])
    >>> float(risk(jnp.zeros((2, 6))))  # (1 + 1)/4n
    0.25
    """

    net: QuadraticNet
    X: Float[Array, "n d"]
    y: Float[Array, "n"]
    gamma: Float[Array, ""] | float = 0.0

    @classmethod
    def of(
        cls, net: QuadraticNet | PolynomialNet, X: object, y: object, *, gamma: float | int = 0.0
    ) -> "QuadraticRisk":
        """Make the risk of a network on labelled samples, which are checked and put into JAX's default dtype.

        It warns where the smallest singular value of [x_j ⊗ x_j] is known to be zero, so that some labels cannot be
        had: with more samples than quadratic forms (or, with three layers, than polynomials of degree 2p), with a row
        that is zero or a multiple of another, and, of up to 1000 samples, where it is zero to rounding, in time O(n³).

        Args:
            net: The network. Of a `PolynomialNet` the risk is that of `net.net` on the features `net.features(X)`.
            X: The inputs, one row each.
            y: The labels, one real number for each input.
            gamma: γ, zero or positive.

        Returns:
            The risk as a function of W.

        Raises:
            InputError: If X, y and the network do not fit together, if the features overflow, or if γ is negative.
        """
        check_not_negative(gamma=gamma)
        quadratic, inputs, labels = as_quadratic(net, X, y)
        found = Capacity.of(net, len(inputs))
        if not found.fits:
            warnings.warn(f"The loss may have no zero: {found.problems[0]}", stacklevel=2)
        else:
            try:
                check_multiples(inputs)
                why = nearly_dependent(inputs, jnp.asarray(inputs))
            except InputError as error:
                why = str(error)
            if why:
                warnings.warn(f"σ_min[x_j ⊗ x_j] = 0, so f may have no zero. {why}", stacklevel=2)
        return cls(quadratic, jnp.asarray(inputs), jnp.asarray(labels), float(gamma))

    def residuals(self, W: Float[Array, "d r"]) -> Float[Array, "n"]:
        """Evaluate the residuals δ_j, outputs less labels.

        Args:
            W: The weights, d × r.

        Returns:
            δ, one number for each sample.
        """
        return self.net(W, self.X) - self.y

    def loss(self, W: Float[Array, "d r"]) -> Float[Array, ""]:
        """Evaluate f(W) = (1/4n) Σ_j δ_j², without the term in γ.

        Args:
            W: The weights, d × r.

        Returns:
            One number.
        """
        return 0.25 * jnp.mean(self.residuals(W) ** 2)

    def __call__(self, W: Float[Array, "d r"]) -> Float[Array, ""]:
        """Evaluate g(W) = f(W) + (γ/2)‖W‖_F².

        Args:
            W: The weights, d × r.

        Returns:
            One number.
        """
        return self.loss(W) + 0.5 * self.gamma * jnp.sum(W**2)

    def matrix(self, W: Float[Array, "d r"]) -> Float[Array, "d d"]:
        """Form the matrix M = n⁻¹ Σ_j δ_j x_j x_jᵀ, of which Lemmas 3 and 4 speak, in time O(ndr + nd²).

        Args:
            W: The weights, d × r.

        Returns:
            M, symmetric, d × d.
        """
        return self.X.T @ (self.residuals(W)[:, None] * self.X) / len(self.y)

    def gradient(self, W: Float[Array, "d r"]) -> Float[Array, "d r"]:
        """Compute the gradient ∇g = MWA + γW, with A the diagonal matrix of the signs aᵢ.

        Args:
            W: The weights, d × r.

        Returns:
            The gradient, of the shape of W.
        """
        return self.matrix(W) @ W * self._signs(W) + self.gamma * W

    def hessian_form(self, W: Float[Array, "d r"], Z: Float[Array, "d r"]) -> Float[Array, ""]:
        """Compute ∇²g[Z, Z] = Σ_k a_k z_kᵀMz_k + (2/n) Σ_j (Σᵢ aᵢwᵢᵀx_j x_jᵀzᵢ)² + γ‖Z‖_F² (Appendix C).

        Args:
            W: The weights at which the Hessian is taken, d × r.
            Z: A direction, d × r, of any length.

        Returns:
            One number: the second derivative of t ↦ g(W + tZ) at zero.
        """
        signs = self._signs(W)
        first = jnp.sum(signs * jnp.sum(Z * (self.matrix(W) @ Z), axis=0))
        cross = jnp.sum(signs * (self.X @ W) * (self.X @ Z), axis=1)
        return first + 2 * jnp.mean(cross**2) + self.gamma * jnp.sum(Z**2)

    def hessian(self, W: Float[Array, "d r"]) -> Float[Array, "p p"]:
        """Form the whole Hessian of g for the p = dr entries of `W.ravel()`, in time O(np²) and memory O(p² + np).

        Args:
            W: The weights, d × r.

        Returns:
            ∇²g, symmetric, p × p.
        """
        signs = self._signs(W)
        cross = (self.X[:, :, None] * (signs * (self.X @ W))[:, None, :]).reshape(len(self.X), -1)
        first = jnp.kron(self.matrix(W), jnp.diag(signs))
        return first + 2 * cross.T @ cross / len(self.y) + self.gamma * jnp.eye(W.size, dtype=W.dtype)

    def matrix_norm(self, W: Float[Array, "d r"]) -> Float[Array, ""]:
        """Compute ‖M‖, the largest eigenvalue of M in size.

        Args:
            W: The weights, d × r.

        Returns:
            One number.
        """
        return jnp.max(jnp.abs(jnp.linalg.eigvalsh(self.matrix(W))))

    def lowest_curvature(self, W: Float[Array, "d r"]) -> Float[Array, ""]:
        """Compute λ_min(∇²g) = γ − ‖M‖, for r ≥ 2d + 2 neurons (Lemma 3); that of a narrower network is no less.

        Args:
            W: The weights, d × r.

        Returns:
            One number.
        """
        return self.gamma - self.matrix_norm(W)

    def curvature(self, W: Float[Array, "d r"]) -> Curvature:
        """Find the direction along which Lemma 3's smallest curvature of f is attained, in time O(ndr + nd² + r³).

        It is an eigenvector of M for its largest eigenvalue in size, times a null vector of half of W, in closed form.

        Args:
            W: The weights, d × r.

        Returns:
            A `Curvature`: the direction, the eigenvalue, how far to go for the minimum of f, and what that gains.

        Raises:
            InputError: If there are fewer than 2d + 2 neurons, so that half of W may have no null vector.
        """
        half, count = self.net.width // 2, len(self.y)
        require(
            half > self.net.dim,
            f"width={self.net.width}: the direction of Lemma 3 needs r ≥ 2d + 2 = {2 * self.net.dim + 2} neurons, "
            "so that half of W has a null vector.",
        )
        values, vectors = jnp.linalg.eigh(self.matrix(W))
        at = jnp.argmax(jnp.abs(values))
        value, z = values[at], vectors[:, at]
        positive = value < 0  # the neurons with a = +1 move where zᵀMz < 0
        block = jnp.where(positive, W[:, :half], W[:, half:])
        u = jnp.linalg.svd(block, full_matrices=True)[2][-1]
        none = jnp.zeros_like(u)
        Z = jnp.outer(z, jnp.where(positive, jnp.concatenate([u, none]), jnp.concatenate([none, u])))
        q = (self.X @ z) ** 2
        best = jnp.sqrt(count * jnp.abs(value) / jnp.sum(q**2))
        return Curvature(Z, value, best, count * value**2 / (4 * jnp.sum(q**2)))

    def bound(self, W: Float[Array, "d r"], smallest: Float[Array, ""] | float) -> Float[Array, ""]:
        """Bound f(W) from above by nd‖M‖²/4σ² (Lemma 4).

        Args:
            W: The weights, d × r.
            smallest: σ, the smallest singular value of [x_j ⊗ x_j], as `smallest_singular` finds it.

        Returns:
            One number, at least f(W).
        """
        check_positive(smallest=smallest)
        count, dim = self.X.shape
        return count * dim * self.matrix_norm(W) ** 2 / (4 * smallest**2)

    def _signs(self, W: Float[Array, "d r"]) -> Float[Array, "r"]:
        half = jnp.ones(self.net.width // 2, W.dtype)
        return jnp.concatenate([half, -half])


@dataclass(frozen=True)
class Smoothness:
    """Lemma 5's constants of g on the ball ‖W‖_F² ≤ Γ."""

    gradient: float  # 3B⁴Γ + YB² + γ: how fast ∇g changes
    hessian: float  # 6B⁴√Γ: how fast ∇²g does


def smoothness(*, radius: float | int, label: float | int, ball: float | int, gamma: float | int = 0.0) -> Smoothness:
    """For ‖x‖ ≤ B = `radius`, |y| ≤ Y = `label` and Γ = `ball`.

    >>> smoothness(radius=1, label=2, ball=4)
    Smoothness(gradient=14.0, hessian=12.0)
    """
    check_not_negative(radius=radius, label=label, ball=ball, gamma=gamma)
    return Smoothness(3 * radius**4 * ball + label * radius**2 + gamma, 6 * radius**4 * math.sqrt(ball))


def interpolant(net: QuadraticNet | PolynomialNet, X: object, y: object) -> Float[np.ndarray, "d r"]:
    """Weights with f(W) = 0 as of Theorem 1: the S of least norm with x_jᵀSx_j = y_j, split by its eigenvectors.

    √λ⁺ goes to neurons with a = +1, √λ⁻ to those with −1. Needs r/2 neurons for each sign of S's spectrum; 2d always
    do. Of a PolynomialNet it is that of net.net on net.features(X). Time O(n³ + n²d), memory O(n²), in float64.

    >>> net = QuadraticNet(dim=2, width=4)
    >>> W = interpolant(net, [[1.0, 0.0], [1.0, 1.0]], [2.0, -1.0])
    >>> risk = QuadraticRisk.of(net, [[1.0, 0.0], [1.0, 1.0]], [2.0, -1.0])
    >>> bool(risk.loss(jnp.asarray(W, jnp.float32)) < 1e-12)
    True
    """
    quadratic, inputs, labels = as_quadratic(net, X, y)
    check_multiples(inputs)
    found = Capacity.of(net, len(inputs))
    if not found.fits:
        raise InputError(f"Labels can contradict each other: {found.problems[0]}")
    from scipy.linalg import LinAlgWarning, eigh, solve

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)  # whether the labels are met is looked at below
            weights = solve((inputs @ inputs.T) ** 2, labels, assume_a="pos")
    except np.linalg.LinAlgError:
        raise InputError(
            f"The {len(inputs)} matrices xxᵀ are not independent to rounding, so that labels can contradict each other."
            f"{nearly_parallel(inputs)} data.distributions.smooth_inputs puts inputs in general position."
        ) from None
    values, vectors = eigh(inputs.T @ (weights[:, None] * inputs))
    half = quadratic.width // 2
    W = np.zeros((quadratic.dim, quadratic.width))
    for offset, sign in ((0, 1.0), (half, -1.0)):
        kept = np.flatnonzero(sign * values > 0)
        few = f"width={quadratic.width}: S has {len(kept)} eigenvalues of one sign, and there are {half} such neurons."
        require(len(kept) <= half, f"{few} Use {2 * len(kept)}.")
        W[:, offset : offset + len(kept)] = vectors[:, kept] * np.sqrt(sign * values[kept])
    check_met(W, inputs, labels)
    return W


@eqx.filter_jit
def negative_curvature_descent(
    risk: QuadraticRisk, W: Float[Array, "d r"], steps: int
) -> tuple[Float[Array, "d r"], Float[Array, "_"]]:
    """Steps along Lemma 3's direction alone, each to the minimum on its line; also f at every step.

    Each lowers f by at least the fraction σ²/(ndB⁴): by Lemma 4 the gain n‖M‖²/(4Σq²) ≥ ‖M‖²/4B⁴ is that much of f. It
    starts anywhere, also at W = 0, and never looks at the gradient. It is about f alone: a risk with γ is refused.
    """
    check_count("steps", steps, least=0)
    require(W.dtype == risk.X.dtype, f"W has dtype {W.dtype}: expected {risk.X.dtype}, that of the risk.")
    plain = isinstance(risk.gamma, jax.Array) or not risk.gamma  # of a traced γ nobody knows
    require(plain, f"gamma={risk.gamma}: these steps lower f alone. Give QuadraticRisk.of(net, X, y), without γ.")

    def step(W: Float[Array, "d r"], _: None) -> tuple[Float[Array, "d r"], Float[Array, ""]]:
        found = risk.curvature(W)
        return W + found.best * found.Z, risk.loss(W)

    last, losses = jax.lax.scan(step, W, None, length=steps)
    return last, jnp.append(losses, risk.loss(last))
