"""Which functions a wide network provably learns, and from how many samples.

Arora et al. (2019), Section 6. H∞ is a power series in the inputs' inner products, K = XXᵀ with unit rows,

    H∞ = K/4 + Σ_{l≥1} c_{2l} K^{∘2l},   c_{2l} = (2l−3)!! / ((2l−2)!! 2π (2l−1)),

so H∞ ⪰ c_p K^{∘p} for p = 1 and every even p, and labels yᵢ = α(βᵀxᵢ)^p cost, whatever n is (Theorem 6.1),

    √(yᵀ(H∞)⁻¹y) ≤ 3p |α| ‖β‖^p.

Odd powers from 3 on, and constants, have no term in the series: the theorem does not speak of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from offtangent._arguments import check_ordinary
from offtangent._checks import check_bound, check_count, check_inputs, check_real, require
from offtangent._errors import InputError
from offtangent.kernels import relu_hidden

ROUNDING = 1e-18  # terms of a series below this part of the largest change no sum in float64


def tensor_powers(X: Float[np.ndarray, "n d"], power: int) -> Float[np.ndarray, "n k"]:
    """The rows xᵢ^{⊗p}, of length d^p: inner products of rows are (xᵢᵀxⱼ)^p. Time and memory O(n d^p).

    The paper's Khatri-Rao power X^{⊙p}, transposed.

    >>> tensor_powers(np.array([[1.0, 2.0]]), 2)
    array([[1., 2., 2., 4.]])
    """
    check_count("power", power, least=0)
    inputs = check_inputs(X)
    rows = np.ones((len(inputs), 1))
    for _ in range(power):
        rows = (rows[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
    return rows


def sample_size(quadratic: float, *, epsilon: float, delta: float) -> float:
    """(M_g + log(1/δ)) / ε², samples that suffice for a loss of ε; the constant of O(·) is one.

    `quadratic` is M_g, a bound on yᵀ(H∞)⁻¹y itself. (Examples 6.2-6.4 print bounds on its square root.)

    >>> round(sample_size(4.0, epsilon=0.1, delta=0.1), 6)
    630.258509
    """
    check_bound(delta, epsilon=epsilon)
    check_real("quadratic", quadratic)
    require(quadratic >= 0, f"M_g = {quadratic:g}: it bounds a square, and is zero or positive.")
    return (quadratic + math.log(1 / delta)) / epsilon**2


@dataclass(frozen=True, eq=False)
class Ridge:
    """The function x ↦ φ(βᵀx) with φ(z) = Σ_p α_p z^p: `powers` lists the p, and `coefficients` the α_p.

    Where `function` is given, it is used for φ in place of the series.
    """

    direction: Float[np.ndarray, "d"]  # β
    powers: Int[np.ndarray, "k"]
    coefficients: Float[np.ndarray, "k"]
    function: Callable[[Float[np.ndarray, "n"]], Float[np.ndarray, "n"]] | None = None

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        z = X @ self.direction
        if self.function is not None:
            return self.function(z)
        return (z[:, None] ** self.powers) @ self.coefficients

    @property
    def sizes(self) -> Float[np.ndarray, "k"]:
        """|α_p| ‖β‖^p."""
        return np.abs(self.coefficients) * np.linalg.norm(self.direction) ** self.powers


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """A function g that Section 6 covers, and what it costs: bounds on √(yᵀ(H∞)⁻¹y) for yᵢ = g(xᵢ), ‖xᵢ‖ = 1, any n.

    `bound` is the paper's, `proof` what its proof gives before rounding up, `tightest` the best that the series allows:
    tightest ≤ proof ≤ bound. Targets can be added.

    >>> g = Target.power(np.array([0.6, 0.8]), 2) + Target.linear(np.array([0.0, 1.0]))
    >>> g.bound, round(g.proof, 4), g(np.eye(2))
    (9.0, 4.5066, array([0.36, 1.64]))
    """

    name: str
    parts: tuple[Ridge, ...]

    @classmethod
    def power(cls, beta: Float[np.ndarray, "d"], power: int, *, coefficient: float = 1.0) -> "Target":
        """α(βᵀx)^p: Theorem 6.1."""
        check_count("power", power, least=0)
        check_ordinary(coefficient=coefficient)
        coefficients = np.zeros(power + 1)
        coefficients[-1] = coefficient
        return cls(f"{coefficient:g} (βᵀx)^{power}", (_ridge(beta, coefficients),))

    @classmethod
    def series(cls, beta: Float[np.ndarray, "d"], coefficients: Sequence[float] | Float[np.ndarray, "k"]) -> "Target":
        """Σ_p α_p (βᵀx)^p with α_p = coefficients[p]: Corollary 6.2 for a power series, or a polynomial, of one's own.

        Odd powers from 3 on are refused, since the theorem excludes them, and so is a constant.
        """
        return cls("Σ α_p (βᵀx)^p", (_ridge(beta, np.asarray(coefficients, np.float64)),))

    @classmethod
    def linear(cls, beta: Float[np.ndarray, "d"]) -> "Target":
        """βᵀx, Example 6.1: `bound` is 3‖β‖, M_g = O(‖β‖²)."""
        return cls("βᵀx", (_ridge(beta, np.array([0.0, 1.0])),))

    @classmethod
    def quadratic(cls, A: Float[np.ndarray, "d d"]) -> "Target":
        """xᵀAx for symmetric A, Example 6.2: `bound` is 6‖A‖_*, the trace norm, M_g = O(‖A‖_*²)."""
        A = np.asarray(A, np.float64)
        require(
            A.ndim == 2 and A.shape[0] == A.shape[1] and np.allclose(A, A.T, rtol=1e-12, atol=0),
            f"A has shape {A.shape} and must be square and symmetric. (A + A.T)/2 gives the same xᵀAx.",
        )
        values, vectors = np.linalg.eigh(A)
        parts = [_ridge(vectors[:, j], np.array([0.0, 0.0, values[j]])) for j in range(len(values)) if values[j]]
        return cls("xᵀAx", tuple(parts) or (_ridge(vectors[:, 0], np.zeros(3)),))

    @classmethod
    def cosine(cls, beta: Float[np.ndarray, "d"]) -> "Target":
        """cos(βᵀx) − 1, Example 6.3: `bound` is 3‖β‖ sinh‖β‖, M_g = O((‖β‖ sinh‖β‖)²)."""
        terms = _even_series(lambda j: -_log_factorial(2 * j), -1.0, beta)
        return cls("cos(βᵀx) − 1", (_ridge(beta, terms, lambda z: -2 * np.sin(z / 2) ** 2),))

    @classmethod
    def arctan(cls, beta: Float[np.ndarray, "d"]) -> "Target":
        """z·arctan(z/2) of z = βᵀx, Example 6.4, for ‖β‖ ≤ 1: M_g = O(‖β‖⁴)."""
        length = float(np.linalg.norm(beta))
        if not length <= 1 + 1e-12:
            raise InputError(f"‖β‖ = {length:g}: Example 6.4 is about ‖β‖ ≤ 1. Divide β by its length.")
        terms = _even_series(lambda j: (1 - 2 * j) * math.log(2) - np.log(2 * j - 1), 1.0, beta)
        return cls("z·arctan(z/2), z = βᵀx", (_ridge(beta, terms, lambda z: z * np.arctan(z / 2)),))

    def __post_init__(self) -> None:
        require(
            len({len(part.direction) for part in self.parts}) == 1,
            "The parts of a target must take inputs of one dimension.",
        )

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """The labels g(xᵢ). Time O(nd) for each part."""
        inputs = check_inputs(X)
        dim = len(self.parts[0].direction)
        if inputs.shape[1] != dim:
            raise InputError(f"X has {inputs.shape[1]} columns; this target takes inputs of dimension {dim}.")
        return np.sum([part(inputs) for part in self.parts], axis=0)

    def __add__(self, other: "Target") -> "Target":
        """The sum of learnable functions is learnable: Corollary 6.2."""
        return Target(f"{self.name} + {other.name}", self.parts + other.parts)

    @property
    def bound(self) -> float:
        """3 Σ_j p_j |α_j| ‖β_j‖^{p_j}, eq. (13)."""
        return float(sum((3 * part.powers * part.sizes).sum() for part in self.parts))

    @property
    def proof(self) -> float:
        """The same with the proof's constants: 2 for p = 1, √(2π)(p − 1) for even p."""
        return float(
            sum(
                (np.where(part.powers == 1, 2.0, math.sqrt(2 * math.pi) * (part.powers - 1)) * part.sizes).sum()
                for part in self.parts
            )
        )

    @property
    def tightest(self) -> float:
        """√(Σ_p ‖Σ_j α_j β_j^{⊗p}‖² / c_p): H∞ = FᵀF with F = (√c_p X^{⊙p})_p, and y = Fᵀt with a t of this length.

        Unlike the paper's sum of the parts' bounds it knows that different powers are orthogonal and that parts may
        cancel: for xᵀAx it is √(2π) ‖A‖_F. Time O(J²d) for J parts.
        """
        directions = np.stack([part.direction for part in self.parts])
        inner = directions @ directions.T
        powers = sorted({int(p) for part in self.parts for p in part.powers})
        assert relu_hidden.series is not None
        c = relu_hidden.series(powers[-1] + 1)
        total = 0.0
        for p in powers:
            alpha = np.array([float(part.coefficients[part.powers == p].sum()) for part in self.parts])
            total += max(float(alpha @ inner**p @ alpha), 0.0) / float(c[p])
        return math.sqrt(total)

    def samples(self, *, epsilon: float, delta: float) -> float:
        """The samples that suffice for a loss of ε: (M_g + log(1/δ))/ε² with M_g = bound², constants one."""
        return sample_size(self.bound**2, epsilon=epsilon, delta=delta)

    def __repr__(self) -> str:
        return f"Target({self.name}, bound={self.bound:.4g}, tightest={self.tightest:.4g})"


def _ridge(
    beta: Float[np.ndarray, "d"],
    coefficients: Float[np.ndarray, "k"],
    function: Callable[[Float[np.ndarray, "n"]], Float[np.ndarray, "n"]] | None = None,
) -> Ridge:
    direction = np.array(beta, np.float64)
    require(
        direction.ndim == 1 and direction.size and np.isfinite(direction).all(),
        f"β has shape {direction.shape}: it is one vector of finite numbers.",
    )
    require(
        coefficients.ndim == 1 and coefficients.size and np.isfinite(coefficients).all(),
        "The coefficients are one sequence of finite numbers: coefficients[p] multiplies (βᵀx)^p.",
    )
    powers = np.flatnonzero(coefficients)
    for p in powers:
        if p == 0:
            raise InputError(
                f"The constant {coefficients[0]:g} has no term in the series of H∞, and Section 6 does not cover it. "
                "Leave it out, as the paper does in cos(z) − 1; on unit inputs, c is also Target.quadratic(c·I)."
            )
        if p > 1 and p % 2:
            raise InputError(
                f"The power {p} is odd: Theorem 6.1 covers p = 1 and even p only, because H∞ = K/4 + Σ c_2l K^(2l) has "
                "no odd power from 3 on. No bound that is free of n exists: on the sphere the cost grows without end."
            )
    powers = powers if len(powers) else np.array([1])
    return Ridge(direction, powers, coefficients[powers] if len(coefficients) > 1 else np.zeros(1), function)


def _even_series(
    log_size: Callable[[Float[np.ndarray, "j"]], Float[np.ndarray, "j"]], first: float, beta: Float[np.ndarray, "d"]
) -> Float[np.ndarray, "k"]:
    """α_0, ..., α_2J of Σ_j α_2j z^2j with alternating signs from `first` on: all that count in float64 at z = ‖β‖."""
    z = float(np.linalg.norm(beta))
    if not 0 < z < math.inf:
        raise InputError(f"‖β‖ = {z:g}: β must have a positive, finite length.")
    j = np.arange(1, 257)
    logs = log_size(j.astype(np.float64))
    terms = np.log(2 * j) + logs + 2 * j * math.log(z)
    kept = terms > terms.max() + math.log(ROUNDING)
    if kept[-1] or logs[kept].min() < math.log(np.finfo(np.float64).tiny):
        raise InputError(f"‖β‖ = {z:g} is too long: the coefficients of the series that count there underflow.")
    coefficients = np.zeros(2 * len(j) + 1)
    coefficients[2::2] = np.where(kept, first * (-1.0) ** (j - 1) * np.exp(logs), 0.0)
    return coefficients


def _log_factorial(k: Float[np.ndarray, "j"]) -> Float[np.ndarray, "j"]:
    return np.array([math.lgamma(value + 1) for value in k])
