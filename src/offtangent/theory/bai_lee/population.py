"""Population risks: the loss on fresh samples instead of the training set, with a standard error.

Bai & Lee (2020), Section 2 and Theorem 6. For (x, y) ~ P and independent signs Σ,

    L_P(f) = E ℓ(y, f(x)),      L_P(W) = E_Σ E ℓ(y, f_{W₀+WΣ}(x)),      L_P^Q(W) = E ℓ(y, f^Q_W(x)),

the population versions of `empirical_risk`, `RandomisedRisk` and `CleanRisk`. By Monte Carlo: every sample is one draw,
and where there are signs it has its own, in a pair Σ, −Σ. So draws are independent, and the standard error is theirs.
"""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from offtangent._checks import check_count, check_finite, check_key, check_labels
from offtangent._errors import InputError, a_kind
from offtangent._types import AnyArray
from offtangent.networks import TwoLayer
from offtangent.special.losses import Loss, check_loss, check_loss_labels, logistic
from offtangent.theory._results import Average
from offtangent.theory.bai_lee.risks import halves, sample_losses
from offtangent.theory.bai_lee.signs import check_dim, check_weights, quadratic_expansion

Pairs = tuple[AnyArray, AnyArray]
Source = Callable[..., Pairs] | Pairs  # draw(n, key=...) gives n pairs; or held-out pairs
Losses = Callable[[Array, Array, Array], Array]  # of inputs, labels and a key

AT_ONCE = 1 << 22  # numbers, one for each neuron and sample, that are held at once
BATCH = 4096  # samples at once through a network of any kind


def population_risk(
    f: Callable[..., Any],
    params: PyTree,
    source: Source,
    loss: Loss = logistic,
    *,
    samples: int | None = None,
    key: Key[Array, ""] | None = None,
) -> Average:
    """L_P(f) = E ℓ(y, f(params, x)) for any f with one output, with its standard error.

    `source` is a function: `source(n, key=key)` gives n fresh pairs (X, y), and `samples` of them are drawn, a few
    thousand at a time. Or it is a held-out (X, y), whose mean it then is, and `samples` stays out. Time and memory:
    `samples` passes of f, of 4096 at once.

    >>> coin = lambda n, key: (jnp.zeros((n, 1)), jax.random.rademacher(key, (n,), float))
    >>> risk = population_risk(lambda w, X: X @ w + 1.0, jnp.zeros(1), coin, samples=10_000, key=jax.random.key(0))
    >>> bool(abs(risk.value - (np.log1p(np.e) + np.log1p(1 / np.e)) / 2) < 4 * risk.error)  # f = 1 on either label
    True
    """

    def losses(X: Array, y: Array, key: Array) -> Array:  # noqa: ARG001
        return _of_any(f, params, X, y, loss)

    kinds = [leaf.dtype for leaf in jax.tree.leaves(params) if eqx.is_inexact_array(leaf)]
    return _average(losses, loss, source, samples, key, BATCH, kinds[0] if kinds else jnp.zeros(()).dtype)


def randomised_population_risk(
    net: TwoLayer,
    W: Float[AnyArray, "d m"],
    source: Source,
    loss: Loss = logistic,
    *,
    samples: int | None = None,
    key: Key[Array, ""],
) -> Average:
    """L_P(W) = E_Σ E ℓ(y, f_{W₀+WΣ}(x)), what `RandomisedRisk` is on a training set; `source` as in `population_risk`.

    `key` is for the signs too. Time O(dm) a sample, memory a block of 2²² entries.
    """
    V = jnp.asarray(check_weights(net, W), net.W0.dtype)

    def losses(X: Array, y: Array, key: Array) -> Array:
        return _of_signs(net, V, X, y, key, loss)

    return _average(losses, loss, source, samples, key, max(1, AT_ONCE // net.width), net.W0.dtype, net)


def clean_population_risk(
    net: TwoLayer,
    W: Float[AnyArray, "d m"],
    source: Source,
    loss: Loss = logistic,
    *,
    samples: int | None = None,
    key: Key[Array, ""] | None = None,
) -> Average:
    """L_P^Q(W) = E ℓ(y, f^Q_W(x)), what `CleanRisk` is on a training set; `source` as in `population_risk`.

    Time O(dm) a sample, memory a block of 2²² entries.
    """
    V = jnp.asarray(check_weights(net, W), net.W0.dtype)
    quadratic_expansion(net)  # refuses an activation without σ''

    def losses(X: Array, y: Array, key: Array) -> Array:  # noqa: ARG001
        return _of_quadratic(net, V, X, y, loss)

    return _average(losses, loss, source, samples, key, max(1, AT_ONCE // net.width), net.W0.dtype, net)


_of_any = eqx.filter_jit(sample_losses)


@eqx.filter_jit
def _of_signs(net: TwoLayer, W: Array, X: Array, y: Array, key: Array, loss: Loss) -> Float[Array, " n"]:
    even, odd = halves(net, net.activation, W, X)
    bits = jax.random.bits(key, odd.shape, jnp.uint8) & 1
    swing = jnp.sum(odd * (1 - 2 * bits.astype(jnp.int8)).astype(odd.dtype), axis=1)
    return (loss(y, even + swing) + loss(y, even - swing)) / 2


@eqx.filter_jit
def _of_quadratic(net: TwoLayer, W: Array, X: Array, y: Array, loss: Loss) -> Float[Array, " n"]:
    return loss(y, quadratic_expansion(net).terms(W, X)[2])


def _average(
    losses: Losses, loss: Loss, source: Source, samples: int | None, key: Any, batch: int, dtype: Any, net: Any = None
) -> Average:
    check_loss(loss)
    if key is not None:
        check_key(key)
    of_samples, of_signs = jax.random.split(jax.random.key(0) if key is None else key)
    pairs = _drawn(source, samples, key is not None, of_samples, batch) if callable(source) else _held(source, samples)
    found = []
    for i, (inputs, labels) in enumerate(pairs):
        if net is not None:
            inputs, labels = check_labels(inputs, labels)
            check_dim(net, inputs)
        check_finite(inputs, "The inputs")
        check_loss_labels(loss, labels)
        for at in range(0, len(labels), batch):
            X, y = (jnp.asarray(part[at : at + batch], dtype) for part in (inputs, labels))
            found.append(np.asarray(losses(X, y, jax.random.fold_in(of_signs, i + at)), np.float64))
    if found[0].ndim != 1:
        raise InputError(f"f has outputs of shape {found[0].shape}: a population risk is that of one output, (n,).")
    every = np.concatenate(found)
    if not np.isfinite(every).all():
        raise InputError(
            f"{np.count_nonzero(~np.isfinite(every))} of {len(every)} losses are NaN or infinite: look for such "
            "entries in the parameters, the inputs and the labels."
        )
    return Average.of(every)


def _drawn(
    draw: Callable[..., Pairs], samples: int | None, keyed: bool, key: Array, batch: int
) -> Iterator[tuple[AnyArray, AnyArray]]:
    """`samples` fresh pairs, a batch at a time."""
    if samples is None or not keyed:
        raise InputError(
            "source is a function, from which fresh samples are drawn: say how many and with which key, such as "
            "samples=10_000, key=jax.random.key(0)."
        )
    check_count("samples", samples, least=2)
    for i, part in enumerate(np.array_split(np.arange(samples), -(-samples // max(2, batch)))):
        found: Any = draw(len(part), key=jax.random.fold_in(key, i))
        if not isinstance(found, tuple) or [len(one) for one in found] != [len(part)] * 2:
            shapes = [np.shape(one) for one in found] if isinstance(found, tuple) else type(found).__name__
            raise InputError(f"source({len(part)}, key=key) gave {shapes}: expected (X, y), as many of each.")
        yield found


def _held(pair: Any, samples: int | None) -> Iterator[tuple[AnyArray, AnyArray]]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise InputError(
            f"source is {a_kind(pair)}: expected a function source(n, key=key) that draws n pairs (X, y), or "
            "held-out samples (X, y)."
        )
    if len(pair[0]) != len(pair[1]) or len(pair[1]) < 2:
        raise InputError(f"{len(pair[0])} inputs and {len(pair[1])} labels: expected as many of each, and at least 2.")
    if samples is not None:
        raise InputError(f"samples={samples}: with held-out samples all {len(pair[1])} are used. Leave samples= out.")
    yield pair
