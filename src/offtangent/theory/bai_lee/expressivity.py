"""What the quadratic part of a wide network can express, and the weights that do it.

Bai & Lee (2020), Theorem 7 and Lemma 15. The network has σ = relu³/6, so that σ'' = relu, and a symmetric
initialisation (3). With a(w₀) of Lemma 9 for the degree p − 2 (`random_feature_weights`),

    (w_{⋆,r}, w_{⋆,r+m/2}) = 2m^{-1/4} (√[a(w_{0,r})]₊ β, √[a(w_{0,r})]₋ β),        r ≤ m/2,

the quadratic part f^Q_{W⋆}(x) = (βᵀx)² (2/m) Σ_{r≤m/2} relu(w_{0,r}ᵀx) a(w_{0,r}) is α(βᵀx)^p in the mean, and

    E‖W⋆‖⁴_{2,4} = 8‖β‖⁴ E[a²] = 8α² B_x^{2(p−2)} ‖β‖^{2p} / c_{p−2}.

Sums of such functions: W⋆¹ + W⋆²Σ with random column signs Σ expresses f₁ + f₂ in the mean over Σ (footnote 5).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from offtangent._arguments import check_ordinary
from offtangent._checks import check_bound, check_count, check_inputs, check_magnitude, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent._host import on_host
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.theory.bai_lee.random_features import (
    check_degree,
    check_on_sphere,
    random_feature_energy,
    random_feature_energy_bound,
    random_feature_variance,
    random_feature_weights,
)
from offtangent.theory.bai_lee.signs import check_dim, check_net, check_weights

BLOCK = 2**24  # entries of the n × m tables held at once: 128 MiB each in float64


def column_norm(W: Float[AnyArray, "d m"], power: float | int = 4) -> float:
    """‖W‖_{2,p} = (Σ_r ‖w_r‖^p)^{1/p} over the columns of W; p may be infinite. Time O(dm), on the host in float64.

    >>> column_norm(np.array([[3.0, 0.0], [4.0, 1.0]]), 2), column_norm(np.eye(3), np.inf)
    (5.0990195135927845, 1.0)
    """
    check_real("power", power)
    require(power >= 1, f"power={power:g}: ‖·‖_2,p is a norm for p from 1 on.")
    columns = np.asarray(W, np.float64)
    require(
        columns.ndim == 2 and np.isfinite(columns).all(),
        f"W has shape {columns.shape}: expected a matrix (d, m) of finite numbers.",
    )
    return float(np.linalg.norm(np.linalg.norm(columns, axis=0), ord=power))


@dataclass(frozen=True, eq=False)
class RidgePower:
    """α(βᵀx)^p with p − 2 ∈ {0, 1, 2, 4, 6, …}: the functions of Theorem 7, on inputs of length B_x = `radius`.

    >>> target = RidgePower(np.array([1.0, 0.0]), power=4, coefficient=2.0)
    >>> round(target.expected_norm4() / np.pi), round(target.norm4_bound() / np.pi)
    (128, 1024)
    """

    direction: Float[np.ndarray, "d"]  # β
    power: int  # p
    coefficient: float = 1.0  # α

    def __post_init__(self) -> None:
        beta = np.array(self.direction, np.float64)
        require(
            beta.ndim == 1 and np.isfinite(beta).all() and beta.any(),
            f"β has shape {beta.shape}: it is one vector of finite numbers, not all zero.",
        )
        check_ordinary(coefficient=self.coefficient)
        object.__setattr__(self, "direction", beta)
        check_count("power", self.power, least=0)
        try:
            check_degree(self.power - 2)
        except InputError as error:
            raise InputError(
                f"power={self.power}: Theorem 7 covers p = 2, 3, 4, 6, 8, …, for which p − 2 is a degree of Lemma 9. "
                f"Here it is not: {error}"
            ) from None

    def __call__(self, X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n"]:
        """α(βᵀxᵢ)^p. Time O(nd)."""
        return self.coefficient * (self._inputs(X) @ self.direction) ** self.power

    @property
    def length(self) -> float:
        """‖β‖."""
        return float(np.linalg.norm(self.direction))

    def expected_norm4(self, radius: float = 1.0) -> float:
        """E‖W⋆‖⁴_{2,4} = 8‖β‖⁴E[a²], whatever the width."""
        return 8 * self.length**4 * random_feature_energy(self.direction, self.power - 2, **self._scale(radius))

    def norm4_bound(self, radius: float = 1.0, *, delta: float = 1.0) -> float:
        """‖W⋆‖⁴_{2,4} ≤ 32π((p−2)³∨1) α² B_x^{2(p−2)} ‖β‖^{2p}/δ with probability at least 1 − δ/2, Theorem 7.

        Markov's inequality on the bound for `expected_norm4`; δ = 1 gives the number in the proof, right in at least
        half of all draws of W₀. (At large m the norm is close to its mean, and the bound holds in nearly all.)
        """
        require(
            0 < delta <= 1,
            f"delta={delta:g}: expected a number in (0, 1]; the bound fails with probability δ/2 at most.",
        )
        bound = random_feature_energy_bound(self.direction, self.power - 2, **self._scale(radius))
        return 16 * self.length**4 * bound / delta

    def mean_square_error(self, X: Float[AnyArray, "n d"], width: int, radius: float = 1.0) -> Float[np.ndarray, "n"]:
        """E(f^Q_{W⋆}(xᵢ) − f⋆(xᵢ))² over W₀, exactly: (2/m)(βᵀxᵢ)⁴ Var[relu(w₀ᵀxᵢ)a(w₀)]. Time O(nd)."""
        check_bound(width=width)
        inputs = check_on_sphere(self._inputs(X), radius)
        variance = random_feature_variance(inputs, self.direction, self.power - 2, **self._scale(radius))
        return 2 / width * (inputs @ self.direction) ** 4 * variance

    def error_bound(self, X: Float[AnyArray, "n d"], width: int, radius: float = 1.0, *, delta: float) -> float:
        """max_i |f^Q_{W⋆}(xᵢ) − f⋆(xᵢ)| ≤ √(Σᵢ E(…)²/δ) with probability at least 1 − δ over W₀.

        Chebyshev and a union bound, as in C.4, but with the exact variance in place of R²R_a²: no truncation of w₀ is
        needed.
        """
        check_bound(delta)
        return math.sqrt(float(self.mean_square_error(X, width, radius).sum()) / delta)

    def sufficient_width(self, n: int, radius: float = 1.0, *, epsilon: float, delta: float) -> float:
        """A width at which `error_bound` is at most ε for any n inputs: n(2p−3)α²(B_x‖β‖)^{2p}/(c_{p−2}δε²).

        Since Var[relu(w₀ᵀx)a] ≤ E[a²](2p − 3)/2. Theorem 7's width without its factor d, and with its constants.
        """
        check_bound(delta, n=n, epsilon=epsilon)
        energy = random_feature_energy(self.direction, self.power - 2, **self._scale(radius))
        return n * (2 * self.power - 3) * energy * (radius * self.length) ** 4 / (delta * epsilon**2)

    def theorem_width(self, n: int, radius: float = 1.0, *, epsilon: float) -> float:
        """Theorem 7's width, ndp³α²(B_x‖β‖)^{2p}/ε², with the constant and the logarithms of Õ(·) as one."""
        check_bound(n=n, radius=radius, epsilon=epsilon)
        size = self.coefficient**2 * (radius * self.length) ** (2 * self.power)
        return n * len(self.direction) * self.power**3 * size / epsilon**2

    def _scale(self, radius: float) -> dict[str, float]:
        return {"coefficient": self.coefficient, "radius": radius}

    def _inputs(self, X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n d"]:
        inputs = check_inputs(np.asarray(X))
        require(
            inputs.shape[1] == len(self.direction),
            f"X has {inputs.shape[1]} columns and β {len(self.direction)} entries: they must be equal.",
        )
        return inputs


def xor_target(dim: int, first: int = 0, second: int = 1) -> tuple[RidgePower, RidgePower]:
    """2-XOR: x_i x_j = ([(e_i + e_j)ᵀx]² − [(e_i − e_j)ᵀx]²)/4, Section 5.2. On the cube {±1}^d, B_x = √d.

    The two parts take different halves of the neurons, so that their sum has no cross term, and ‖W⋆‖⁴_{2,4} = 8π.
    """
    check_count("first", first, least=0)
    check_count("second", second, least=0)
    check_count("dim", dim)
    require(
        first < dim and second < dim and first != second,
        f"coordinates {first} and {second} of {dim}: give two different ones, counted from 0.",
    )
    plus, minus = np.zeros(dim), np.zeros(dim)
    plus[[first, second]], minus[first], minus[second] = 1.0, 1.0, -1.0
    return RidgePower(plus, 2, 0.25), RidgePower(minus, 2, -0.25)


@dataclass(frozen=True, eq=False)
class Expression:
    """Weights W⋆ at which the quadratic part of `net` is the sum of `targets`, up to an error like m^{-1/2}."""

    net: TwoLayer
    targets: tuple[RidgePower, ...]
    radius: float  # B_x
    parts: tuple[Float[np.ndarray, "d m"], ...]  # W⋆ʲΣⱼ, one for each target, in float64

    @property
    def W(self) -> Float[Array, "d m"]:
        """W⋆, the sum of the parts, in the dtype of the network: `net(expression.W, X)`."""
        return jnp.asarray(sum(self.parts, start=np.zeros_like(self.parts[0])), self.net.W0.dtype)

    @property
    def norm4(self) -> float:
        """‖W⋆‖⁴_{2,4}."""
        return column_norm(np.sum(self.parts, axis=0), 4) ** 4

    def norm4_bound(self, *, delta: float = 1.0) -> float:
        """By the triangle inequality, (Σⱼ bⱼ^{1/4})⁴ with the bounds bⱼ of the J parts at δ/J: as `RidgePower`'s."""
        bounds = [target.norm4_bound(self.radius, delta=delta / len(self.targets)) for target in self.targets]
        return float(sum(bound**0.25 for bound in bounds)) ** 4

    def target(self, X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n"]:
        """f⋆ = Σⱼ αⱼ(βⱼᵀx)^{pⱼ}."""
        return np.sum([target(X) for target in self.targets], axis=0)

    def errors(self, X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n"]:
        """f^Q_{W⋆}(xᵢ) − f⋆(xᵢ) on inputs of length B_x, in float64. Time O(ndm)."""
        inputs = check_on_sphere(check_inputs(np.asarray(X)), self.radius)
        return quadratic_part(self.net, np.sum(self.parts, axis=0), inputs) - self.target(inputs)

    def sign_variance(self, X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n"]:
        """Var_Σ f^Q_{W⋆}(xᵢ) given W₀: m^{-1} Σ_r σ''(w_{0,r}ᵀx)² Σ_{i<j} (w^i_rᵀx)²(w^j_rᵀx)². Zero for one target."""
        inputs = check_on_sphere(check_inputs(np.asarray(X)), self.radius)
        found = []
        for rows, curvature in curvatures(self.net, inputs):
            squares = [(rows @ part) ** 2 for part in self.parts]
            pairs = (np.sum(squares, axis=0) ** 2 - np.sum([square**2 for square in squares], axis=0)) / 2
            found.append((curvature**2 * _folded(self.net, pairs)).sum(axis=1) / self.net.width)
        return np.concatenate(found)


def express(
    net: TwoLayer, targets: RidgePower | Sequence[RidgePower], *, radius: float = 1.0, key: Key[Array, ""] | None = None
) -> Expression:
    """W⋆ of Theorem 7 for one function or, with random signs from `key`, for a sum of several (footnote 5).

    `net` is `TwoLayer.symmetric(law="gaussian", radius=B_x, activation="relu3", ...)`. Time O(Jm(d + p)), memory O(Jdm)
    for J functions, on the host in float64.
    """
    several = (targets,) if isinstance(targets, RidgePower) else tuple(targets)
    _check_net(net, radius)
    for target in several:
        _check_target(target)
    require(several, "No targets were given: expected at least one RidgePower.")
    if len(several) > 1 and key is None:
        raise InputError(f"{len(several)} targets are added with random signs: give key=jax.random.key(0), say.")
    parts = [_weights(net, target, radius) for target in several]
    if key is not None and len(several) > 1:
        signs = np.asarray(jax.random.rademacher(key, (len(several) - 1, net.width), int), np.float64)
        parts[1:] = [part * sign for part, sign in zip(parts[1:], signs, strict=True)]
    return Expression(net, several, float(radius), tuple(parts))


def quadratic_part(net: TwoLayer, W: Float[AnyArray, "d m"], X: Float[AnyArray, "n d"]) -> Float[np.ndarray, "n"]:
    """f^Q_W(x) = ½m^{-1/2} Σ_r a_r σ''(w_{0,r}ᵀx)(w_rᵀx)², on the host in float64, for any activation that has σ''.

    `taylor.expand(net, net.origin, 2)` gives it in the network's own precision, differentiable. Time O(ndm), memory
    a block of 2²⁴ entries at a time.
    """
    moved, signs = check_weights(net, W), np.asarray(net.a, np.float64)
    inputs = check_inputs(np.asarray(X))
    check_dim(net, inputs)
    check_magnitude(3, X=inputs, W=moved)
    values = [
        (curvature * _folded(net, signs * (rows @ moved) ** 2)).sum(axis=1)
        for rows, curvature in curvatures(net, inputs)
    ]
    return np.concatenate(values) / (2 * math.sqrt(net.width))


def _folded(net: TwoLayer, values: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n h"]:
    """Values of the neurons added up over those that share their initial weights."""
    half = net.width // 2
    return values[:, :half] + values[:, half:] if net.paired else values


def curvatures(
    net: TwoLayer, X: Float[np.ndarray, "n d"]
) -> Iterator[tuple[Float[np.ndarray, "b d"], Float[np.ndarray, "b h"]]]:
    """Blocks of inputs with their σ''(w_{0,r}ᵀxᵢ), in float64, of one half where the other half of W₀ is the same."""
    second, half = net.activation.derivative(2), net.width // 2 if net.paired else net.width
    W0 = np.asarray(net.W0, np.float64)[:, :half]
    for rows in np.array_split(X, math.ceil(X.shape[0] * net.width / BLOCK)):
        yield rows, on_host(second, rows @ W0)


def _weights(net: TwoLayer, target: RidgePower, radius: float) -> Float[np.ndarray, "d m"]:
    require(
        len(target.direction) == net.dim,
        f"β has {len(target.direction)} entries and the network takes {net.dim} inputs.",
    )
    half = net.width // 2
    a = random_feature_weights(
        np.asarray(net.W0)[:, :half],
        target.direction,
        target.power - 2,
        coefficient=target.coefficient,
        radius=radius,
    )
    roots = np.sqrt(np.concatenate([np.maximum(a, 0), np.maximum(-a, 0)]))
    return 2 * net.width**-0.25 * np.outer(target.direction, roots)


def _check_target(target: object) -> None:
    if not isinstance(target, RidgePower):
        raise InputError(f"a target is {a_kind(target)}: expected RidgePower(β, power=p, coefficient=α), or several.")


def _check_net(net: TwoLayer, radius: float) -> None:
    check_bound(radius=radius)
    check_net(net)
    require(net.paired, "Theorem 7 needs a symmetric initialisation: take TwoLayer.symmetric(...).")
    require(
        net.activation.name == "relu3",
        f"activation {net.activation.name!r}: Theorem 7 needs σ'' = relu. Take activation='relu3'.",
    )
    half = radius * np.asarray(net.W0, np.float64)[:, : net.width // 2]
    square, spread = float(np.mean(half**2)), math.sqrt(2 / half.size)
    if abs(square - 1) > 8 * spread:
        raise InputError(
            f"the entries of B_x·W₀ have mean square {square:.4g} where (3) gives 1 ± {spread:.2g}: with "
            f"radius={radius:g}, W₀ is not from N(0, B_x⁻²I). Give TwoLayer.symmetric(law='gaussian') the same radius."
        )
