"""Activations with every derivative that exists, and a plain refusal where they stop.

The papers need σ, its sub-gradient 1{z ≥ 0} for the ReLU (Arora et al. 2019), and the second and higher
derivatives that carry a network past its tangent space (Bai and Lee 2020; their σ is smooth or relu³/6,
since the ReLU's own σ'' is a delta). Their closed forms are those of `derivatives`.
"""

import difflib
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from offtangent._arguments import check_ordinary
from offtangent._checks import check_inexact, require
from offtangent._errors import InputError
from offtangent.special import derivatives

Elementwise = Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """An elementwise function σ, with its derivatives and the points where it is not smooth.

    Hashable and compared by value, so it can be a static field of an equinox module; those of the catalogue
    can be pickled and sent to a worker.

    >>> relu
    Activation(name='relu', smooth=1, kinks=(0.0,))
    >>> float(relu(2.0)), float(relu.derivative(1)(0.0))
    (2.0, 1.0)
    """

    name: str
    function: Elementwise = field(repr=False)
    smooth: int | None = None  # the highest order of derivative that is a function; None: all of them
    kinks: tuple[float, ...] = ()  # where a derivative of order `smooth` jumps, or does worse
    # formula(order, z) is the closed form of σ^(order), order ≥ 1; without it, nested autodiff
    formula: Callable[[int, Array], Array] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.smooth is not None and self.smooth < 0:
            raise InputError(
                f"smooth={self.smooth} for {self.name}: it is the highest order of derivative that exists as "
                "a function, 0 for a step, 1 for the ReLU, None for all orders."
            )
        if self.kinks and self.smooth is None:
            raise InputError(
                f"{self.name} has kinks at {self.kinks} but smooth=None says that all derivatives exist. "
                "Give smooth= as well: 0 for a step, 1 for a ReLU-like corner, 2 for a jump in σ''."
            )
        if not all(math.isfinite(kink) for kink in self.kinks):
            raise InputError(f"kinks={self.kinks} for {self.name}: each must be a finite number.")

    def __call__(self, z: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        """σ(z), in the dtype of z."""
        check_inexact(z=z)
        return self.function(jnp.asarray(z))

    def derivative(self, k: int) -> Elementwise:
        """The k-th derivative of σ as a function of z, traceable and elementwise; the same object each time.

        One evaluation costs O(k) elementwise operations in the catalogue, up to O(2^k) by nested autodiff
        for a function of one's own. Beyond order 30 the integers in it overflow float32.

        >>> float(tanh.derivative(3)(0.0))
        -2.0
        """
        order = operator.index(k)
        if order < 0:
            raise InputError(f"derivative({order}): the order must be 0 or more.")
        if self.smooth is not None and order > self.smooth:
            where = " and ".join(f"{kink:g}" for kink in self.kinks) or "points that were not named"
            top = f"order {self.smooth}" + (" (a step)" if self.name in CATALOGUE else "")
            raise InputError(
                f"{self.name} has derivatives up to {top}; the one of order {self.smooth + 1} is a delta at "
                f"{where}, not a function, and order {order} was asked for. Take a smooth activation "
                "('softplus', 'gelu', 'tanh'; 'relu3' has three derivatives), or a lower order."
            )
        return _derivative(self, order)


@functools.cache
def _derivative(sigma: Activation, order: int) -> Elementwise:
    if order == 0:
        return _OnArrays(sigma.function, sigma.kinks)
    if sigma.formula is not None:
        return _OnArrays(functools.partial(sigma.formula, order), sigma.kinks)
    previous = _derivative(sigma, order - 1)

    def once_more(z: Array) -> Array:
        slope: Array = jax.jvp(previous, (z,), (jnp.ones_like(z),))[1]
        return slope

    return _OnArrays(once_more, sigma.kinks)


@dataclass(frozen=True)
class _OnArrays:
    """An elementwise function that takes NumPy arrays and Python floats as well."""

    function: Elementwise
    kinks: tuple[float, ...] = ()  # for who integrates it

    def __call__(self, z: Float[ArrayLike, "*shape"]) -> Float[Array, "*shape"]:
        return self.function(jnp.asarray(z))


@dataclass(frozen=True)
class _Shifted:
    base: Activation
    by: float

    def __call__(self, z: Array) -> Array:
        return self.base.function(z - self.by)

    def derivative(self, order: int, z: Array) -> Array:
        return self.base.derivative(order)(z - self.by)


@dataclass(frozen=True)
class _Sigmoid:
    shift: float

    def __call__(self, z: Array) -> Array:
        return jax.nn.sigmoid(z - self.shift)

    def derivative(self, order: int, z: Array) -> Array:
        return derivatives.logistic_derivative(order, z - self.shift)


def sigmoid(shift: float = 0.0) -> Activation:
    """σ(z) = 1/(1 + exp(−(z − shift))). Its name carries the shift.

    >>> sigmoid(1.0).name, float(sigmoid(shift=1.0)(1.0))
    ('sigmoid(1.0)', 0.5)
    """
    check_ordinary(shift=shift)
    shift = float(shift) + 0.0  # −0.0 becomes 0.0
    form = _Sigmoid(shift)
    return Activation(f"sigmoid({shift!r})" if shift else "sigmoid", form, formula=form.derivative)


relu = Activation("relu", derivatives.relu, smooth=1, kinks=(0.0,), formula=derivatives.relu_derivative)
"""max(z, 0), with σ'(0) = 1 as in Arora et al. (2019)."""
relu3 = Activation("relu3", derivatives.relu3, smooth=3, kinks=(0.0,), formula=derivatives.relu3_derivative)
"""relu(z)³/6, so that σ' = relu²/2, σ'' = relu and σ''' = 1{z ≥ 0} (Bai and Lee 2020)."""
quadratic = Activation("quadratic", derivatives.quadratic, formula=derivatives.quadratic_derivative)
"""z²."""
tanh = Activation("tanh", derivatives.tanh, formula=derivatives.tanh_derivative)
softplus = Activation("softplus", derivatives.softplus, formula=derivatives.softplus_derivative)
"""log(1 + exp(z))."""
erf = Activation("erf", derivatives.erf, formula=derivatives.erf_derivative)
gelu = Activation("gelu", derivatives.gelu, formula=derivatives.gelu_derivative)
"""zΦ(z), exactly, not its tanh approximation."""
sin = Activation("sin", derivatives.sin, formula=derivatives.sin_derivative)


def shifted(sigma: str | Activation | Callable[..., object], by: float | int) -> Activation:
    """σ(z − by), with every derivative that σ has and its kinks moved; shifts of shifts add up.

    Nichani, Bai & Lee (2022), Section 2.1, ask for a sigmoid with a "generic shift b"; any activation can have one.

    >>> shifted("sigmoid", 1).name, float(shifted("sigmoid", 1)(1.0)), activation("relu(z - 1)").kinks
    ('sigmoid(z − 1)', 0.5, (1.0,))
    """
    check_ordinary(by=by)
    base = activation(sigma)
    form: Elementwise = base.function
    if isinstance(form, _Shifted):
        base, by = form.base, form.by + by
    by = float(by) + 0.0  # −0.0 becomes 0.0
    require(math.isfinite(by), f"shifted({base.name}, by={by}): the shift must be a finite number.")
    if by == 0:
        return base
    amount = repr(abs(by)).removesuffix(".0")
    moved, kinks = _Shifted(base, by), tuple(kink + by for kink in base.kinks)
    return Activation(f"{base.name}(z {'−' if by > 0 else '+'} {amount})", moved, base.smooth, kinks, moved.derivative)


CATALOGUE: Mapping[str, Activation] = MappingProxyType(
    {sigma.name: sigma for sigma in (relu, relu3, quadratic, sigmoid(), tanh, softplus, erf, gelu, sin)}
)


def activation(
    spec: str | Activation | Callable[..., object],
    *,
    smooth: int | None = None,
    kinks: tuple[float, ...] = (),
) -> Activation:
    """Look up an activation σ by its name, or make one of a function of one's own.

    An `Activation` is σ with all its derivatives: `sigma(z)` is σ(z), and `sigma.derivative(k)` is σ^(k), in closed
    form for those of the catalogue: relu, relu3 (relu(z)³/6), quadratic (z²), sigmoid, tanh, softplus, erf, gelu and
    sin. The ReLU has σ'(0) = 1, as in Arora et al. (2019). A derivative of order k costs O(k) elementwise operations in
    the catalogue, and up to O(2^k) by nested autodiff for a function of one's own.

    Args:
        spec: A name, also of a shifted activation ("sigmoid(z - 1)"), an `Activation`, which is returned as it is, or a
            hashable elementwise function written in jax.numpy.
        smooth: Of a function, the highest order of derivative that is a function too: 0 for a step, 1 for a corner like
            the ReLU's, None for all. It cannot be found out: autodiff gives 0 where the truth is a delta.
        kinks: Of a function, the points where the derivative of order `smooth` jumps.

    Returns:
        The activation: hashable, compared by value, with `name`, `smooth` and `kinks`.

    Raises:
        InputError: If no activation has this name, and the message names the nearest that exists; or if a function is
            not elementwise, not hashable or not written in jax.numpy.

    >>> sigma = activation("softplus")
    >>> float(sigma.derivative(1)(0.0)), float(sigma.derivative(2)(0.0))
    (0.5, 0.25)
    >>> activation("sigmoid(1.0)") == sigmoid(1.0)
    True
    >>> leaky = activation(lambda z: jnp.where(z < 0, 0.5 * z, z), smooth=1, kinks=(0.0,))
    >>> float(leaky.derivative(1)(-3.0))
    0.5
    """
    if isinstance(spec, str | Activation):
        if smooth is not None or kinks:
            name = spec if isinstance(spec, str) else spec.name
            raise InputError(f"{name!r} knows its own kinks: smooth= and kinks= go with a function only.")
        return _named(spec) if isinstance(spec, str) else spec
    if not callable(spec):
        raise InputError(
            f"an activation is a name ({', '.join(CATALOGUE)}), an Activation or a function, "
            f"not {type(spec).__name__} {spec!r}."
        )
    return _wrapped(spec, smooth, kinks)


def _named(text: str) -> Activation:
    name, argument = text.strip(), None
    if match := re.fullmatch(r"(.+?)\s*\(\s*z\s*([-−+])\s*([\d.]+(?:[eE][-+]?\d+)?)\s*\)", name):
        name, sign, amount = match.groups()
        return shifted(_named(name), -float(amount) if sign == "+" else float(amount))
    if match := re.fullmatch(r"(\w+)\s*\((?:\s*shift\s*=)?\s*([^()]*?)\s*\)", name):
        name, argument = match.groups()
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name.lower(), CATALOGUE, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"no activation is called {text!r}.{hint} There are {', '.join(CATALOGUE)}, and any of them "
            "shifted, as in 'sigmoid(z - 1)'; a function of your own can be given as it is."
        )
    if not argument:
        return CATALOGUE[name]
    if name != "sigmoid":
        raise InputError(f"{text!r}: {name} takes no argument; to shift it, say '{name}(z - 1)'.")
    try:
        return sigmoid(float(argument))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{text!r}: the shift {argument!r} is not a number, as in 'sigmoid(1.0)'.") from None


def _wrapped(function: Callable[..., object], smooth: int | None, kinks: tuple[float, ...]) -> Activation:
    name = getattr(function, "__name__", type(function).__name__)
    try:
        hash(function)
    except TypeError:
        raise InputError(
            f"{name} is not hashable, so it cannot be an activation: give a plain function, or a frozen "
            "dataclass with __call__."
        ) from None
    shape = (2, 3)
    try:
        result = jax.eval_shape(function, jnp.zeros(shape))
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise InputError(
            f"{name} fails on an array of shape {shape}: {reason} "
            "An activation must be written in jax.numpy (not numpy or math), with jnp.where instead of if."
        ) from error
    got = getattr(result, "shape", None)
    if got != shape:
        raise InputError(
            f"{name} is not elementwise: an array of shape {shape} gave "
            f"{type(result).__name__ if got is None else f'shape {got}'}."
        )
    return Activation(name, function, smooth, tuple(float(kink) for kink in kinks))  # type: ignore[arg-type]
