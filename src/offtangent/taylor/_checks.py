"""What can be wrong with parameters, inputs and outputs of someone's network, said before JAX does."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from offtangent._errors import InputError

MOST = 30  # beyond it factorials leave float32


def check_order(order: int) -> None:
    if not 0 <= order <= MOST:
        raise InputError(f"order={order}: a Taylor expansion has an order between 0 and {MOST}.")


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


def check_some(params0: Any) -> None:
    if not any(map(eqx.is_inexact_array, jax.tree.leaves(params0))):
        raise InputError(
            "The parameters to expand around hold no array of floating-point numbers: give expand(f, params, order) "
            "the parameters themselves, second."
        )


def check_outputs(f: Callable[..., Any], params: Any, x: Any) -> None:
    """Refuse a function whose value is not one array with a row (or a number) for each sample."""
    samples = jnp.shape(jax.tree.leaves(x)[0])[:1] if jax.tree.leaves(x) else ()
    found = eqx.filter_eval_shape(f, params, x)
    if not isinstance(found, jax.ShapeDtypeStruct):
        kind = type(found).__name__
        raise InputError(
            f"f(params, x) gave a {kind}; expected one array of shape (n,) or (n, k). For a model that returns its "
            "state too, wrap it: lambda params, x: model.apply(params, x)[0]."
        )
    if found.ndim not in (1, 2) or found.shape[:1] != samples:
        raise InputError(
            f"f(params, x) has shape {found.shape} for x of shape {jnp.shape(jax.tree.leaves(x)[0])}; expected "
            "(n,) or (n, k), with n the first axis of x. For a function of one sample, use jax.vmap(f, (None, 0))."
        )
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise InputError(f"f(params, x) has dtype {found.dtype}: only real floating-point outputs can be expanded.")
