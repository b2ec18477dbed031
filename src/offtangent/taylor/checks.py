"""What can be wrong with parameters, inputs and outputs of someone's network, said before JAX does."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from offtangent._arguments import check_no_torch
from offtangent._checks import require
from offtangent._errors import InputError, a_kind

MOST = 30  # beyond it factorials leave float32


def check_order(order: int) -> None:
    """Refuse an order that is no whole number between 0 and 30."""
    if isinstance(order, bool) or not hasattr(order, "__index__") or not 0 <= order <= MOST:
        raise InputError(f"order={order!r}: a Taylor expansion has an order between 0 and {MOST}, a whole number.")


def check_function(f: object) -> None:
    """Refuse what is no function of parameters and inputs."""
    check_no_torch("f", f)
    if not callable(f):
        raise InputError(
            f"f is {a_kind(f)}: expected a function f(params, x). The parameters come second, the inputs last."
        )


def check_like(params: Any, params0: Any) -> None:
    """Refuse parameters of another structure, shape or kind than those expanded around, and name the leaf."""
    given, expected = (str(jax.tree.structure(eqx.filter(one, eqx.is_array))) for one in (params, params0))
    if given != expected:
        raise InputError(
            f"The parameters have another structure than those expanded around:\n  given:    {given}\n"
            f"  expected: {expected}\nPass the whole parameters, not a part of them or an optimiser's state."
        )
    pairs = zip(jax.tree_util.tree_leaves_with_path(params), jax.tree.leaves(params0), strict=True)
    for (path, leaf), leaf0 in pairs:
        if eqx.is_array(leaf0) and jnp.shape(leaf) != jnp.shape(leaf0):
            raise InputError(
                f"The parameter {jax.tree_util.keystr(path) or 'array'} has shape {jnp.shape(leaf)}; it was expanded "
                f"around one of shape {jnp.shape(leaf0)}."
            )
        if eqx.is_inexact_array(leaf0) and not eqx.is_inexact_array(leaf):
            raise InputError(
                f"The parameters hold {jnp.result_type(leaf)} in {jax.tree_util.keystr(path) or 'the array'}, and were "
                f"expanded around {leaf0.dtype}: give floating-point numbers."
            )


def check_some(params0: Any) -> None:
    """Refuse parameters without a floating-point number in them: there is nothing to expand in."""
    if any(type(leaf).__module__.partition(".")[0] == "torch" for leaf in jax.tree.leaves(params0)):
        raise InputError(
            "The parameters are tensors of PyTorch: f, params = offtangent.interop.from_torch(module, example) gives "
            "them as arrays of JAX."
        )
    require(
        any(map(eqx.is_inexact_array, jax.tree.leaves(params0))),
        "The parameters to expand around hold no array of floating-point numbers: give expand(f, params, order) "
        "the parameters themselves, second.",
    )


def check_outputs(f: Callable[..., Any], params: Any, x: Any) -> None:
    """Refuse a function whose value is not one array with a row (or a number) for each sample."""
    shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(x) if eqx.is_array(leaf)]
    samples = shapes[0][:1] if shapes else ()
    try:
        found = eqx.filter_eval_shape(f, params, x)
    except InputError:
        raise
    except Exception as error:
        given = ", ".join(map(str, shapes)) if shapes else f"the type {type(x).__name__}"
        raise InputError(
            f"f(params, x) fails on x of shape {given}: {type(error).__name__}: {str(error).rstrip('.')}. Expected a "
            "function of these very parameters and of a batch of inputs (an array), whose first axis counts samples; "
            "for a function of one sample, use jax.vmap(f, (None, 0))."
        ) from error
    if not isinstance(found, jax.ShapeDtypeStruct):
        raise InputError(
            f"f(params, x) gave {a_kind(found)}; expected one array of shape (n,) or (n, k). For a model that returns "
            "its state too, wrap it: lambda params, x: model.apply(params, x)[0]."
        )
    if found.ndim not in (1, 2) or found.shape[:1] != samples:
        raise InputError(
            f"f(params, x) has shape {found.shape} for x of shape {shapes[0] if shapes else ()}; expected "
            "(n,) or (n, k), with n the first axis of x. For a function of one sample, use jax.vmap(f, (None, 0))."
        )
    require(
        jnp.issubdtype(found.dtype, jnp.floating),
        f"f(params, x) has dtype {found.dtype}: only real floating-point outputs can be expanded.",
    )
