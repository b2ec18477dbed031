"""Regularisers and noise as optax transformations: perturbed gradient descent on a regularised loss.

Nichani, Bai & Lee (2022), eqs. (20) and (21): with L_λ = L̂ + λ₁R₁ + λ₂R₂ + λ₃R₃ + λ₄R₄ and fresh noise Ξ,

    W ← W − η(∇L_λ(W) + Ξ),      Ξ_ij ~ N(0, σ²/(md))   (printed N(σ²/md)).

What a regulariser holds (features of thousands of inputs) is large. `training.train` passes arrays to its program as
arguments, if it can see them: in an objective (`RegularisedLoss`), in a transformation of this module, or in a `chain`
of them. Inside `optax.chain` they work as well, but are compiled in as constants.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Key, PyTree

from offtangent._arguments import check_function, check_positive
from offtangent._checks import check_key, check_numbers, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent._types import IdentityHash

Strength = float | int | Float[Array | np.ndarray, "*b"]  # λ, or one for each set of weights in a batch
Term = tuple[Callable[..., Array], Strength | optax.Schedule]  # a regulariser R and its λ


class RegulariserState(NamedTuple):
    """The state of `add_regulariser`: the number of steps so far, and the key of the next fresh inputs, if any."""

    steps: Array
    key: Array | None


class PerturbationState(NamedTuple):
    """The state of `add_perturbation`: the key of the next noise."""

    key: Array


def add_regulariser(
    regulariser: Callable[..., Array], strength: Strength | optax.Schedule, *, key: Key[Array, ""] | None = None
) -> optax.GradientTransformation:
    r"""Add the gradient of λR(W), as `optax.add_decayed_weights` adds that of λ‖W‖²/2.

    .. math:: g \leftarrow g + \lambda \nabla R(W)

    `regulariser` is one of `theory.nichani.regularisers`, or any differentiable function of the parameters. `strength`
    is λ, a schedule of it, or an array with a λ for each value that R gives on a batch of weights (aligned with the
    last axes of R's values). A randomised R is called as R(W, key) with a fresh key at every step, and needs `key`.
    Like `add_penalty` it is part of the gradient, but of no loss that `train` sees; `RegularisedLoss` is. It costs one
    value and gradient of R.

    >>> half_squares = add_regulariser(lambda W: jnp.sum(W**2, axis=(-2, -1)) / 2, 3.0)
    >>> W = jnp.array([[1.0, 2.0]])
    >>> half_squares.update(jnp.ones((1, 2)), half_squares.init(W), W)[0].tolist()
    [[4.0, 7.0]]
    """
    _check_term(regulariser, strength)
    if getattr(regulariser, "randomised", False):
        if key is None:
            raise InputError(f"{type(regulariser).__name__} draws fresh inputs: give key=jax.random.key(seed).")
        check_key(key)
    elif key is not None:
        raise InputError(f"key= is for regularisers that draw fresh inputs; {_name(regulariser)} does not.")
    part = _Regularise(regulariser, _seen(strength), key)
    return optax.GradientTransformation(_Init(part), part)


def add_perturbation(noise: float, *, key: Key[Array, ""]) -> optax.GradientTransformation:
    r"""Add Gaussian noise of standard deviation σ/√(md) to every entry of the gradient of a d × m matrix.

    .. math:: g \leftarrow g + \Xi, \qquad \Xi_{ij} \sim N(0, \sigma^2/(md)), \qquad E\lVert\Xi\rVert_F^2 = \sigma^2

    Axes in front of d × m are separate matrices with noise of their own.
    """
    check_real("noise", noise)
    require(0 <= noise < math.inf, f"noise={noise:g}: σ is zero or positive, and finite.")
    check_key(key)
    part = _Perturb(float(noise), key)
    return optax.GradientTransformation(_Init(part), part)


def chain(*parts: optax.GradientTransformation) -> optax.GradientTransformation:
    """`optax.chain`, with the arrays that its parts hold kept in sight of `train`, as arguments of its program."""
    for part in parts:
        if not isinstance(part, optax.GradientTransformation):
            raise InputError(f"chain got {a_kind(part)}: expected optax transformations, as optax.sgd(0.1).")
    whole = _Chain(parts)
    return optax.GradientTransformation(_Init(whole), whole)


def perturbed_descent(
    rate: float | optax.Schedule, *, noise: float, regularisers: tuple[Term, ...] = (), key: Key[Array, ""]
) -> optax.GradientTransformation:
    """Perturbed gradient descent, eq. (21): W ← W − η(∇L(W) + Σᵢ λᵢ∇Rᵢ(W) + Ξ) with Ξ_ij ~ N(0, σ²/(md)).

    `rate` is η, `noise` is σ, `regularisers` are pairs (R, λ). The paper starts at W = 0, a saddle of the quadratic
    term that the noise leaves. Each step draws dm numbers.
    """
    if not callable(rate):
        check_positive(rate=rate)
    check_key(key)
    _check_pairs("regularisers", regularisers)
    of_noise, *keys = jax.random.split(key, 1 + len(regularisers))
    terms = [
        add_regulariser(R, strength, key=own if getattr(R, "randomised", False) else None)
        for (R, strength), own in zip(regularisers, keys, strict=True)
    ]
    return chain(*terms, add_perturbation(noise, key=of_noise), optax.sgd(rate))


class RegularisedLoss(eqx.Module):
    """L_λ(W) = L(W) + Σᵢ λᵢRᵢ(W), eq. (20), as an objective for `train`: its curve is that of L_λ.

    >>> from offtangent.training.losses import HalfSquares
    >>> loss = RegularisedLoss(HalfSquares(lambda w, X: X @ w), ((lambda w: jnp.sum(w**2), 10.0),))
    >>> float(loss(jnp.ones(1), jnp.ones((1, 1)), jnp.zeros(1)))
    10.5
    """

    objective: Callable[[Any, Array, Array], Array]
    terms: tuple[Term, ...] = eqx.field(converter=lambda terms: _seen_terms(terms))

    def __check_init__(self) -> None:
        check_function("objective", self.objective, "of parameters, inputs and labels, such as HalfSquares(f)")
        for regulariser, strength in self.terms:
            _check_term(regulariser, strength)
            require(
                not getattr(regulariser, "randomised", False) and not callable(strength),
                "An objective knows neither step nor key: use add_regulariser for this term.",
            )

    def __call__(self, params: PyTree, X: Float[Array, "n *d"], y: Float[Array, "n *k"]) -> Float[Array, "*losses"]:
        total = self.objective(params, X, y)
        for regulariser, strength in self.terms:
            added = _weighted(regulariser(params), strength)
            if added.shape != total.shape:
                raise InputError(
                    f"{_name(regulariser)} gives values of shape {added.shape} and the loss has {total.shape}: "
                    "expected one value for each loss."
                )
            total = total + added
        return total


class _Part(IdentityHash, eqx.Module):
    """A function with arrays in it."""


class _Init(_Part):
    part: Any

    def __call__(self, params: PyTree) -> Any:
        return self.part.init(params)


class _Regularise(_Part):
    regulariser: Callable[..., Array]
    strength: Strength | optax.Schedule
    key: Array | None

    def init(self, params: PyTree) -> Any:  # noqa: ARG002
        return RegulariserState(jnp.zeros((), jnp.int32), self.key)

    def __call__(self, gradients: PyTree, state: Any, params: PyTree | None = None) -> tuple[PyTree, Any]:
        if params is None:
            raise InputError("add_regulariser needs the parameters: optimiser.update(gradients, state, params).")
        strength = self.strength(state.steps) if callable(self.strength) else self.strength
        now, later = (None, None) if state.key is None else jax.random.split(state.key)
        with_key = () if now is None else (now,)

        def value(point: PyTree) -> Array:
            return jnp.sum(_weighted(self.regulariser(point, *with_key), strength))

        added = jax.tree.map(lambda g, more: g + more.astype(g.dtype), gradients, jax.grad(value)(params))
        return added, RegulariserState(optax.safe_increment(state.steps), later)


class _Perturb(_Part):
    noise: float
    key: Array

    def init(self, params: PyTree) -> Any:
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            if jnp.ndim(leaf) < 2:
                raise InputError(
                    f"The parameter {jax.tree_util.keystr(path) or 'array'} has shape {jnp.shape(leaf)}: the noise "
                    "σ²/(md) is that of a d × m matrix. For others use optax.add_noise."
                )
        return PerturbationState(self.key)

    def __call__(
        self,
        gradients: PyTree,
        state: Any,
        params: PyTree | None = None,  # noqa: ARG002
    ) -> tuple[PyTree, Any]:
        now, later = jax.random.split(state.key)
        leaves, structure = jax.tree.flatten(gradients)
        noisy = [
            g + self.noise / math.prod(g.shape[-2:]) ** 0.5 * jax.random.normal(key, g.shape, g.dtype)
            for g, key in zip(leaves, jax.random.split(now, len(leaves)), strict=True)
        ]
        return jax.tree.unflatten(structure, noisy), PerturbationState(later)


class _Chain(_Part):
    parts: tuple[optax.GradientTransformation, ...]

    def init(self, params: PyTree) -> tuple[Any, ...]:
        return tuple(part.init(params) for part in self.parts)

    def __call__(
        self, gradients: PyTree, state: tuple[Any, ...], params: PyTree | None = None
    ) -> tuple[PyTree, tuple[Any, ...]]:
        moved = []
        for part, own in zip(self.parts, state, strict=True):
            gradients, after = part.update(gradients, own, params)
            moved.append(after)
        return gradients, tuple(moved)


def _weighted(values: Array, strength: Any) -> Array:
    """λR, for one λ or one for each value; never more numbers than R gives."""
    lam = jnp.asarray(strength, values.dtype)
    require(
        lam.shape == values.shape[values.ndim - lam.ndim :],
        f"strength has shape {lam.shape} and the regulariser gives values of shape {values.shape}: expected one λ, "
        "or one for each of the last axes of the values.",
    )
    return lam * values


def _seen(strength: Any) -> Any:
    """NumPy's arrays as JAX's, which equinox knows for arrays."""
    return jnp.asarray(strength) if isinstance(strength, np.ndarray) else strength


def _seen_terms(terms: Any) -> tuple[Term, ...]:
    _check_pairs("terms", terms)
    return tuple((R, _seen(strength)) for R, strength in terms)


def _check_pairs(name: str, terms: Any) -> None:
    pairs = isinstance(terms, tuple | list) and all(isinstance(term, tuple | list) and len(term) == 2 for term in terms)
    require(pairs, f"{name} is {a_kind(terms)}: expected pairs of a regulariser and its strength, ((R3, 0.1),), say.")


def _check_term(regulariser: Any, strength: Any) -> None:
    if not callable(regulariser):
        raise InputError(
            f"The regulariser is {a_kind(regulariser)}: expected a function of W, such as R3.empirical(net, X, rank)."
        )
    if callable(strength):
        return
    numbers = check_numbers(strength, "strength")
    require(
        np.isfinite(numbers).all() and (numbers >= 0).all(), f"strength={strength}: λ is zero or positive, and finite."
    )


def _name(regulariser: Any) -> str:
    return getattr(regulariser, "__name__", type(regulariser).__name__)
