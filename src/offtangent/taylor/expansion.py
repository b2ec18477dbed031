"""The Taylor series of a network in its parameters, term by term.

Around θ₀, with Δ = θ − θ₀,

    f(θ; x) = Σ_k f^{(k)}(Δ; x) + …,      f^{(k)}(Δ; x) = (1/k!) D^k f(θ₀; x)[Δ, …, Δ].

Bai & Lee (2020), Sections 3 and 6; the order-k model is that of Taylorized training (Bai et al. 2020). One nested jvp
gives all terms: the tangent of D^{k−1}f in the direction Δ is D^k f. XLA merges what the levels share, so its run time
grows far slower than 2^k, and unlike `jax.experimental.jet` it knows every primitive that has a derivative.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Float, PyTree

from offtangent._checks import check_finite
from offtangent._types import IdentityHash
from offtangent.networks import TwoLayer
from offtangent.taylor.checks import check_function, check_like, check_order, check_outputs, check_some
from offtangent.taylor.two_layer import TwoLayerExpansion

Network = Callable[..., Any]


@runtime_checkable
class TaylorModel(Protocol):
    """What `expand` gives: a model that can be trained like any other, and each of its terms."""

    @property
    def origin(self) -> Any: ...
    @property
    def order(self) -> int: ...
    def terms(self, params: Any, x: Any, /) -> tuple[Array, ...]: ...
    def __call__(self, params: Any, x: Any, /) -> Array: ...


class Expansion(IdentityHash, eqx.Module):
    """The Taylor polynomial of f around `origin`; `model(params, x)` is the sum of `model.terms(params, x)`.

    A pytree; jit, grad and vmap as you would f itself. Leaves of the parameters that hold no floating-point numbers
    (counters, keys, functions of an Equinox model) stay those of `origin`.
    """

    f: Network
    origin: PyTree
    order: int = eqx.field(static=True)

    def terms(self, params: PyTree, x: PyTree) -> tuple[Float[Array, "n *k"], ...]:
        """f^{(0)}, …, f^{(order)}, each with the shape of f's output."""
        check_like(params, self.origin)
        check_finite(params, "The parameters")
        check_finite(x, "The inputs")
        check_outputs(self.f, self.origin, x)
        return _terms(self, params, x)

    def __call__(self, params: PyTree, x: PyTree) -> Float[Array, "n *k"]:
        """The sum of the terms."""
        first, *rest = self.terms(params, x)
        return sum(rest, start=first)


@eqx.filter_jit
def _terms(model: Expansion, params: PyTree, x: PyTree) -> tuple[Array, ...]:
    origin, fixed = eqx.partition(model.origin, eqx.is_inexact_array)
    moved = eqx.filter(params, eqx.is_inexact_array)
    delta = jax.tree.map(lambda p, p0: (p - p0).astype(p0.dtype), moved, origin)

    def value(point: PyTree) -> tuple[Array, ...]:
        return (model.f(eqx.combine(point, fixed), x),)

    derivatives: Callable[[PyTree], tuple[Array, ...]] = value
    for _ in range(model.order):
        derivatives = _one_more(derivatives, delta)
    return tuple(value / math.factorial(k) for k, value in enumerate(derivatives(origin)))


def _one_more(lower: Callable[[PyTree], tuple[Array, ...]], delta: PyTree) -> Callable[[PyTree], tuple[Array, ...]]:
    """All derivatives in the direction delta that `lower` gives, and one more."""

    def derivatives(point: PyTree) -> tuple[Array, ...]:
        values, slopes = jax.jvp(lower, (point,), (delta,))
        return (*values, slopes[-1])

    return derivatives


def expand(f: Network, params0: PyTree, order: int) -> TaylorModel:
    """Expand a network f(params, x) in its parameters around θ₀: the Taylor polynomial, term by term.

        f(θ; x) = Σ_k f^{(k)}(Δ; x) + …,      f^{(k)}(Δ; x) = (1/k!) D^k f(θ₀; x)[Δ, …, Δ],      Δ = θ − θ₀

    Bai & Lee (2020), Sections 3 and 6; to train the sum up to order k is the Taylorized training of Bai et al. (2020).
    It works for any network and any pytree of parameters, by nested forward derivatives. For `networks.TwoLayer` the
    terms are in closed form, and `model.on(X)` keeps what never changes on fixed inputs. A deep ReLU network's higher
    terms are those of the linear pieces around `params0`.

    Time: 1 + order·(order + 1)/2 evaluations of f at most; XLA shares most of it. Memory that of f, order + 1 times.

    Args:
        f: The network, a function of parameters and of a batch x, whose first axis counts samples; it returns (n,) or
            (n, k). Batch norm and dropout are in evaluation mode, with the running statistics kept in f: every
            floating-point number among the parameters counts as trained (docs/taylor.md has the lines for Flax and
            Equinox).
        params0: The parameters θ₀ to expand around. Leaves that hold no floating-point numbers stay as they are.
        order: The highest order k, from 0 to 30.

    Returns:
        The model: `model(params, x)` is the sum of `model.terms(params, x)`, which are f^{(0)}, …, f^{(order)}, each
        with the shape of f's output; `model.origin` is θ₀. It is a pytree; jit, grad and vmap it as f itself.

    Raises:
        InputError: If `order` is out of range, f no function, or the parameters hold nothing to expand in or NaN; for a
            `TwoLayer`, if its activation has no derivative of this order. Errors in x or in f's output are raised when
            the model is called.

    >>> import jax.numpy as jnp
    >>> model = expand(lambda w, x: jnp.exp(x @ w), jnp.zeros(1), order=3)
    >>> [round(float(term[0]), 6) for term in model.terms(jnp.ones(1), jnp.full((1, 1), 2.0))]  # of e²: 2^k/k!
    [1.0, 2.0, 2.0, 1.333333]
    """
    check_order(order)
    check_function(f)
    check_some(params0)
    check_finite(params0, "The parameters to expand around")
    if isinstance(f, TwoLayer):
        check_like(params0, f.origin)
        return TwoLayerExpansion.of(f, params0, order)
    return Expansion(f, params0, order)


def linearise(f: Network, params0: PyTree) -> TaylorModel:
    """Linearise a network f(params, x) in its parameters: `expand(f, params0, 1)`.

        f(θ₀; x) + ⟨∂f(θ₀; x)/∂θ, θ − θ₀⟩

    is linear in θ: training it is regression with the network's tangent kernel, which is `kernels.empirical_ntk` at θ₀.
    Time two evaluations of f at most, memory that of f twice.

    Args:
        f: The network, a function of parameters and of a batch x, as for `expand`.
        params0: The parameters θ₀ to linearise at.

    Returns:
        The model, with `model.terms(params, x)` for its constant and its linear part.

    Raises:
        InputError: As `expand` does.

    >>> import jax.numpy as jnp
    >>> model = linearise(lambda w, x: jnp.square(x @ w), jnp.array([1.0]))
    >>> model(jnp.array([3.0]), jnp.ones((1, 1)))  # 1 + 2·(3 − 1), of the square of w at 1
    Array([5.], dtype=float32)
    """
    return expand(f, params0, 1)
