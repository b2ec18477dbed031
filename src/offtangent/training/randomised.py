"""Training with fresh column signs at every step, the regulariser ‖W‖⁸_{2,4} and noise, as optax transformations.

Bai & Lee (2020), Section 4.2: noisy SGD finds second-order stationary points of L_λ(W) = E_Σ L̃_λ(WΣ). With fresh signs
Σ_t and ξ_t ~ N(0, s²I),

    W_{t+1} = W_t − η(∇L̃_λ(W_tΣ_t; batch) Σ_t + ξ_t).

`training.train` hands its objective no key, and needs to hand it none: what is trained is V_t = W_tΣ_t, at which the
objective is the plain risk L̃. `fresh_signs(inner)` turns its gradient by Σ_t, lets `inner` move W_t, and puts new signs
on the result. What the paper measures (L, L^Q, the norms, f^Q) is the same at V and at W; `unsigned` gives W itself.
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

from offtangent._arguments import check_function
from offtangent._checks import check_key, check_numbers, check_real, require
from offtangent._errors import InputError, a_kind
from offtangent.special.losses import Loss, check_loss, logistic
from offtangent.theory.bai_lee.penalties import penalty_gradient
from offtangent.theory.bai_lee.risks import empirical_risk
from offtangent.theory.bai_lee.signs import flip


class MeanLoss(eqx.Module):
    """The mean of a loss over samples as an objective for `train`.

    It is the empirical risk of Bai & Lee (2020), Section 3.1,

        L̃ = n⁻¹ Σᵢ ℓ(yᵢ, f(params, xᵢ)),

    for any f and any loss: a mean, unlike `HalfSquares`, so that a batch estimates it. Outputs with k columns give k
    losses. The cost is that of f.

    Args:
        f: A function f(params, X) of a batch X, whose outputs have the shape of the labels; networks are such.
        loss: The loss ℓ(y, z), by default the logistic one, which is for labels −1 and 1.

    >>> from offtangent.special.losses import squared
    >>> objective = MeanLoss(lambda slope, X: slope * X[:, 0], squared)
    >>> float(objective(2.0, jnp.array([[1.0], [2.0]]), jnp.array([1.0, 2.0])))
    1.25
    """

    f: Callable[[Any, Array], Array]
    loss: Loss = eqx.field(static=True, default=logistic)

    def __check_init__(self) -> None:
        check_function("f", self.f, "f(params, X), such as a network")
        check_loss(self.loss)

    def __call__(self, params: PyTree, X: Float[Array, "n *d"], y: Float[Array, "n *k"]) -> Float[Array, "*k"]:
        """Evaluate L̃ on a batch.

        Args:
            params: The parameters of f.
            X: The inputs.
            y: The labels, of the shape of the outputs.

        Returns:
            One mean loss, or one for each of k columns.

        Raises:
            InputError: If outputs and labels differ in shape, or the loss is not made for these labels.
        """
        return empirical_risk(self.f, params, X, y, self.loss)


class FreshSignsState(NamedTuple):
    """Of `fresh_signs`: the signs now on the parameters, the key of the next ones, and the inner optimiser's state."""

    signs: PyTree
    key: Array
    inner: optax.OptState


def fresh_signs(inner: optax.GradientTransformation, *, key: Key[Array, ""]) -> optax.GradientTransformation:
    r"""`inner`, with fresh random signs on the columns of every parameter matrix at every step.

    With V the parameters, Σ the signs they carry and u the update that `inner` gives for W = VΣ,

    .. math:: V \leftarrow (W + u(\nabla \tilde L(V)\,\Sigma,\; W))\,\Sigma', \qquad \Sigma' \text{ fresh.}

    The inner optimiser sees W alone, so momentum and Adam average the gradients of L. The last axis of a parameter
    counts neurons, the one before it inputs; axes in front of these are separate networks, with signs of their own. The
    first step takes the parameters as given (Σ₀ = I): a start whose law is not symmetric wants random signs (`flip`).

    >>> optimiser = fresh_signs(optax.sgd(0.5), key=jax.random.key(0))
    >>> V = jnp.ones((1, 4))
    >>> updates, state = optimiser.update(V, optimiser.init(V), V)  # V is the gradient of ‖V‖²/2
    >>> unsigned(optax.apply_updates(V, updates), state).tolist()
    [[0.5, 0.5, 0.5, 0.5]]
    """
    if not isinstance(inner, optax.GradientTransformation):
        raise InputError(f"inner is {a_kind(inner)}: expected an optax optimiser, such as optax.sgd(0.1).")
    check_key(key)

    def init(params: PyTree) -> FreshSignsState:
        for path, leaf in jax.tree_util.tree_leaves_with_path(params):
            if jnp.ndim(leaf) < 2:
                raise InputError(
                    f"The parameter {jax.tree_util.keystr(path) or 'array'} has shape {jnp.shape(leaf)}: signs belong "
                    "to the columns of matrices (d × m, neurons are columns). Train biases and output weights apart, "
                    "with optax.partition."
                )
        plain = jax.tree.map(lambda leaf: jnp.ones(_columns(leaf), jnp.int8), params)
        return FreshSignsState(plain, key, inner.init(params))

    def update(
        gradients: PyTree, state: FreshSignsState, params: PyTree | None = None
    ) -> tuple[PyTree, FreshSignsState]:
        if params is None:
            raise InputError("fresh_signs needs the parameters: optimiser.update(gradients, state, params).")
        now, later = jax.random.split(state.key)
        W = jax.tree.map(flip, params, state.signs)
        updates, moved = inner.update(jax.tree.map(flip, gradients, state.signs), state.inner, W)
        leaves, structure = jax.tree.flatten(params)
        keys = jax.tree.unflatten(structure, list(jax.random.split(now, len(leaves))))
        signs = jax.tree.map(_draw, params, keys)
        V = jax.tree.map(flip, optax.apply_updates(W, updates), signs)
        return jax.tree.map(jnp.subtract, V, params), FreshSignsState(signs, later, moved)

    return optax.GradientTransformation(init, update)


def unsigned(params: PyTree, state: optax.OptState) -> PyTree:
    """W of what `fresh_signs` trained, V without its signs: `unsigned(run.params, run.state)` after `train`."""
    if not isinstance(state, FreshSignsState):
        raise InputError(
            f"The state is {a_kind(state)}: expected that of fresh_signs(...), as the outermost optimiser."
        )
    alike = str(jax.tree.structure(params)) == str(jax.tree.structure(state.signs))
    require(alike, "params have another structure than the signs of the state: give run.params and run.state.")
    return jax.tree.map(flip, params, state.signs)


def add_penalty(strength: float | Float[Array, "*b"] | optax.Schedule) -> optax.GradientTransformation:
    r"""Add the gradient of λ‖W‖⁸_{2,4}, as `optax.add_decayed_weights` adds that of λ‖W‖²/2.

    .. math:: g_r \leftarrow g_r + 8 \lambda \Big(\sum_s \lVert w_s \rVert^4\Big) \lVert w_r \rVert^2 w_r

    For one matrix W (d × m), or a batch of them with axes in front. `strength` is λ, or a schedule of it, or an array
    with a λ for each matrix of the batch (its axes are the last ones in front of d × m). Before
    `optax.sgd` in a chain, it is part of the gradient, but of no loss that `train` sees: neither its curve nor the
    stable rate that it names on divergence knows of it. It is steep: where ηλ‖W‖⁶_{2,4} exceeds 1/28, steps overshoot.

    >>> regulariser = add_penalty(0.5)
    >>> W = jnp.array([[1.0, 0.0]])
    >>> regulariser.update(jnp.zeros((1, 2)), regulariser.init(W), W)[0].tolist()
    [[4.0, 0.0]]
    """
    if not callable(strength):
        numbers = check_numbers(strength, "strength")
        sound = np.isfinite(numbers).all() and (numbers >= 0).all()
        require(sound, f"strength={strength}: λ is zero or positive, and finite.")

    def init(params: PyTree) -> optax.ScaleByScheduleState:
        if not hasattr(params, "ndim") or params.ndim < 2:
            raise InputError(
                "‖W‖⁸_(2,4) is of one matrix W (d × m, neurons are columns); the parameters are "
                f"{f'an array of shape {params.shape}' if hasattr(params, 'ndim') else type(params).__name__}. "
                "Use optax.partition to name the matrix among several parameters."
            )
        return optax.ScaleByScheduleState(jnp.zeros((), jnp.int32))

    def update(
        gradients: PyTree, state: optax.ScaleByScheduleState, params: PyTree | None = None
    ) -> tuple[PyTree, optax.ScaleByScheduleState]:
        if params is None:
            raise InputError("add_penalty needs the parameters: optimiser.update(gradients, state, params).")
        lam = jnp.asarray(strength(state.count) if callable(strength) else strength, gradients.dtype)
        added = gradients + lam[..., None, None] * penalty_gradient(params)
        return added, optax.ScaleByScheduleState(optax.safe_increment(state.count))

    return optax.GradientTransformation(init, update)


def randomised_sgd(
    rate: float | optax.Schedule, *, noise: float, strength: float = 0.0, key: Key[Array, ""]
) -> optax.GradientTransformation:
    """Noisy SGD with fresh signs on L_λ: `fresh_signs` of a chain of `add_penalty`, `optax.add_noise` and `optax.sgd`.

    `noise` is s, the standard deviation of each entry of ξ_t, which is part of the gradient: η multiplies it. λ is
    `strength`; the regulariser's gradient turns with the signs, so it needs no sign of its own.
    """
    check_real("noise", noise)
    require(0 <= noise < math.inf, f"noise={noise:g}: a standard deviation is zero or positive, and finite.")
    if not callable(rate):
        check_real("rate", rate)
        if not 0 < rate < math.inf:
            raise InputError(f"rate={rate:g}: a learning rate is positive and finite, as 0.1, or an optax schedule.")
    check_key(key)
    signs, noises = jax.random.split(key)
    parts = [add_penalty(strength), optax.add_noise(noise**2, 0.0, noises), optax.sgd(rate)]
    return fresh_signs(optax.chain(*parts), key=signs)


def _columns(leaf: Any) -> tuple[int, ...]:
    return (*leaf.shape[:-2], leaf.shape[-1])


def _draw(leaf: Any, key: Array) -> Array:
    bits = jax.random.bits(key, _columns(leaf), jnp.uint8) & 1
    return 1 - 2 * bits.astype(jnp.int8)
