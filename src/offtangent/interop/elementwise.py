"""PyTorch's elementwise operations in JAX.

Values are the easy part; derivatives are those of PyTorch at kinks, too: a clamp passes the gradient at its bounds, a
hardtanh does not, and what overflows in a branch not taken is never computed, for there JAX's gradient would be NaN.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from offtangent._errors import InputError
from offtangent.interop.operations import Number, Rule, into

RULES: dict[str, Rule] = {}
rule = into(RULES)

SINGLE = {
    "abs": jnp.abs,
    "acos": jnp.arccos,
    "acosh": jnp.arccosh,
    "asin": jnp.arcsin,
    "asinh": jnp.arcsinh,
    "atan": jnp.arctan,
    "atanh": jnp.arctanh,
    "bitwise_not": jnp.invert,
    "ceil": jnp.ceil,
    "cos": jnp.cos,
    "cosh": jnp.cosh,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "erfinv": lax.erf_inv,
    "exp": jnp.exp,
    "exp2": jnp.exp2,
    "expm1": jnp.expm1,
    "floor": jnp.floor,
    "isinf": jnp.isinf,
    "isnan": jnp.isnan,
    "lgamma": jax.scipy.special.gammaln,
    "log": jnp.log,
    "log10": jnp.log10,
    "log1p": jnp.log1p,
    "log2": jnp.log2,
    "logical_not": jnp.logical_not,
    "neg": jnp.negative,
    "reciprocal": lambda x: 1 / x,
    "relu": jax.nn.relu,
    "round": jnp.round,
    "rsqrt": lax.rsqrt,
    "sigmoid": jax.nn.sigmoid,
    "sign": jnp.sign,
    "sin": jnp.sin,
    "sinh": jnp.sinh,
    "sqrt": jnp.sqrt,
    "tan": jnp.tan,
    "tanh": jnp.tanh,
    "trunc": jnp.trunc,
}
OF_TWO_TENSORS: dict[str, Callable[..., Any]] = {
    "atan2": jnp.arctan2,
    "hypot": jnp.hypot,
    "logaddexp": jnp.logaddexp,
    "logical_and": jnp.logical_and,
    "logical_or": jnp.logical_or,
    "logical_xor": jnp.logical_xor,
    "maximum": jnp.maximum,
    "minimum": jnp.minimum,
}
OF_NUMBERS_TOO: dict[str, Callable[..., Any]] = {
    "bitwise_and": jnp.bitwise_and,
    "bitwise_or": jnp.bitwise_or,
    "bitwise_xor": jnp.bitwise_xor,
    "eq": jnp.equal,
    "fmod": jnp.fmod,
    "ge": jnp.greater_equal,
    "gt": jnp.greater,
    "le": jnp.less_equal,
    "lt": jnp.less,
    "mul": jnp.multiply,
    "ne": jnp.not_equal,
    "remainder": jnp.remainder,
}
RULES.update({f"aten.{name}.default": function for name, function in (SINGLE | OF_TWO_TENSORS).items()})
RULES.update({f"aten.{name}.{form}": f for name, f in OF_NUMBERS_TOO.items() for form in ("Tensor", "Scalar")})


@rule("aten.add.Tensor", "aten.add.Scalar")
def add(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Give x + αy."""
    return x + (y if alpha == 1 else alpha * y)


@rule("aten.sub.Tensor", "aten.sub.Scalar")
def subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    """Give x − αy."""
    return x - (y if alpha == 1 else alpha * y)


@rule("aten.div.Tensor", "aten.div.Scalar", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """Give x / y, or that rounded down ("floor") or towards zero ("trunc")."""
    if rounding_mode is None:
        return x / y
    if jnp.issubdtype(jnp.result_type(x, y), jnp.integer):
        return jnp.floor_divide(x, y) if rounding_mode == "floor" else lax.div(*jnp.broadcast_arrays(x, y))
    return jnp.floor(x / y) if rounding_mode == "floor" else jnp.trunc(x / y)


@rule("aten.pow.Tensor_Scalar")
def power(x: Any, exponent: Any) -> Any:
    """Give x to a fixed power; whole powers are products, whose derivatives exist at zero and for negative x, too."""
    if exponent == 0.5:
        return jnp.sqrt(x)
    return x ** (int(exponent) if float(exponent).is_integer() else exponent)


@rule("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def powers(x: Any, exponent: Any) -> Any:
    """Give x to powers that are tensors."""
    return jnp.power(x, exponent)


@rule("aten.where.self")
def choose(condition: Any, x: Any, y: Any) -> Any:
    """Give x where the condition holds, and y elsewhere."""
    return jnp.where(condition, x, y)


@rule("aten.clamp.default", "aten.clamp.Tensor")
def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Give x between two bounds; at a bound the gradient is that of x."""
    x = x if low is None else jnp.where(x < low, low, x)
    return x if high is None else jnp.where(x > high, high, x)


@rule("aten.hardtanh.default")
def hardtanh(x: Any, low: Number = -1.0, high: Number = 1.0) -> Any:
    """Give x between two bounds; at a bound the gradient is zero."""
    return jnp.where(x >= high, high, jnp.where(x <= low, low, x)).astype(x.dtype)


@rule("aten.gelu.default")
def gelu(x: Any, approximate: str = "none") -> Any:
    """Give x Φ(x), or its approximation by tanh."""
    return jax.nn.gelu(x, approximate=approximate == "tanh")


@rule("aten.leaky_relu.default")
def leaky_relu(x: Any, slope: Number = 0.01) -> Any:
    """x, or slope·x below zero."""
    return jnp.where(x > 0, x, slope * x)


@rule("aten.rrelu_with_noise_functional.default")
def leaky_relu_of_mean_slope(
    x: Any, noise: Any, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False, generator: Any = None
) -> Any:
    """The randomised leaky ReLU in evaluation mode: its mean slope."""
    del generator
    if training:
        raise InputError("RReLU draws its slopes at random in training mode: call module.eval() first.")
    return leaky_relu(x, (lower + upper) / 2), noise


@rule("aten.elu.default")
def elu(x: Any, alpha: Number = 1.0, scale: Number = 1.0, inner: Number = 1.0) -> Any:
    """scale·x, or scale·α(e^{inner·x} − 1) below zero."""
    return scale * jnp.where(x > 0, x, alpha * jnp.expm1(inner * jnp.where(x > 0, 0, x)))


@rule("aten.celu.default")
def celu(x: Any, alpha: Number = 1.0) -> Any:
    """x, or α(e^{x/α} − 1) below zero."""
    return elu(x, alpha, 1.0, 1 / alpha)


@rule("aten.softplus.default")
def softplus(x: Any, beta: Number = 1.0, threshold: Number = 20.0) -> Any:
    """log(1 + e^{βx})/β, and x itself where βx is beyond the threshold."""
    far = beta * x > threshold
    return jnp.where(far, x, jnp.log1p(jnp.exp(beta * jnp.where(far, 0, x))) / beta)


@rule("aten.mish.default")
def mish(x: Any) -> Any:
    """Give x tanh(softplus(x))."""
    return x * jnp.tanh(softplus(x))


@rule(
    "aten.clone.default",
    "aten.alias.default",
    "aten.lift_fresh_copy.default",
    "aten.contiguous.default",
    "aten.alias_copy.default",
)
def same(x: Any) -> Any:
    """What is another tensor in PyTorch's memory is the same array."""
    return x


@rule("offtangent.stop_gradient.default")
def constant(x: Any) -> Any:
    """`x.detach()`, and what was computed under `torch.no_grad()`."""
    return lax.stop_gradient(x)


@rule("aten._to_copy.default")
def converted(x: Any, dtype: Any = None) -> Any:
    """Give x in another dtype."""
    return x if dtype is None else x.astype(dtype)


@rule("aten.copy.default")
def written_over(x: Any, source: Any) -> Any:
    """What `x.copy_(source)` leaves in x."""
    return jnp.broadcast_to(source, x.shape).astype(x.dtype)


@rule("aten.fill.Scalar", "aten.full_like.default")
def filled(x: Any, value: Any, dtype: Any = None) -> Any:
    """An array shaped like x of one number."""
    return jnp.full(x.shape, value, x.dtype if dtype is None else dtype)


@rule("aten.full.default")
def full(size: list[int], value: Any, dtype: Any = None) -> Any:
    """An array of one number."""
    return jnp.full(size, value, dtype)


@rule("aten.scalar_tensor.default")
def scalar(value: Any, dtype: Any = None) -> Any:
    """A number as an array without axes."""
    return jnp.asarray(value, dtype)


@rule("aten.empty.memory_format", "aten.zeros.default")
def zeros(size: list[int], dtype: Any = None) -> Any:
    """Zeros, also for memory that is written before it is read."""
    return jnp.zeros(size, dtype)


@rule("aten.empty_strided.default")
def zeros_in_any_order(size: list[int], stride: list[int], dtype: Any = None) -> Any:
    """The same, of an array that lies in memory in some order."""
    del stride
    return jnp.zeros(size, dtype)


@rule("aten.ones.default")
def ones(size: list[int], dtype: Any = None) -> Any:
    """Ones."""
    return jnp.ones(size, dtype)


@rule("aten.arange.start_step")
def count_up(start: Any, end: Any, step: Any = 1, dtype: Any = None) -> Any:
    """start, start + step, … below end, of as many numbers as PyTorch has."""
    numbers = start + step * np.arange(max(0, math.ceil((end - start) / step)))
    return jnp.asarray(numbers, dtype)
