"""Algorithm 1 of Ge, Wang & Zhao (2019), Appendix B: gradient descent that shakes itself where the gradient is small.

    for t = 0, 1, …
        if ‖∇f(x_t)‖ ≤ g_thres and t − t_noise > t_thres:  x̃ ← x_t, t_noise ← t, x_t ← x̃ + ξ, ξ uniform in a ball
        if t − t_noise = t_thres and f(x_t) − f(x̃) > −f_thres:  return x̃
        x_{t+1} ← x_t − η∇f(x_t)

As an optax transformation an iteration that perturbs takes two updates: ξ, and then the step from x̃ + ξ, whose gradient
comes with the next call. Once it returns, it moves to x̃ and stays there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from offtangent._arguments import check_function, check_kind
from offtangent._checks import check_count, check_finite, check_key, require
from offtangent.theory.ge_wang_zhao.descent import DescentSettings
from offtangent.training.arguments import check_params

MOST_STEPS = 1 << 30  # half of what int32 holds: steps and waits are added
SETTINGS = "theory.ge_wang_zhao.descent.DescentSettings(...)"


class Algorithm1State(NamedTuple):
    """How far it is; `done` once x̃ has been returned, and then the parameters are x̃."""

    time: Int[Array, ""]  # t
    shaken: Int[Array, ""]  # t_noise
    anchor: PyTree  # x̃
    level: Float[Array, ""]  # f(x̃)
    done: Bool[Array, ""]
    perturbations: Int[Array, ""]
    escapes: Int[Array, ""]  # perturbations that gained more than f_thres
    key: Key[Array, ""]


def algorithm1(settings: DescentSettings, *, key: Key[Array, ""]) -> optax.GradientTransformationExtraArgs:
    """Algorithm 1 for `train`, or for any loop that passes `value=f(params)` to `update`.

    >>> from offtangent.theory.ge_wang_zhao.descent import DescentSettings
    >>> settings = DescentSettings(rate=0.1, radius=1e-3, gradient=1e-2, decrease=1e-3, wait=60)
    >>> optimiser = algorithm1(settings, key=jax.random.key(0))
    >>> int(optimiser.init(jnp.zeros(2)).perturbations)
    0
    """
    check_key(key)
    check_kind("settings", settings, DescentSettings, SETTINGS)
    require(
        settings.wait < MOST_STEPS,
        f"wait={settings.wait}: steps are counted in 32 bits. A wait of {MOST_STEPS} or more never ends; give a "
        "smaller one, or descend without perturbations.",
    )

    def init(params: PyTree) -> Algorithm1State:
        dtype = jnp.result_type(*jax.tree.leaves(params))
        zero = jnp.zeros((), jnp.int32)
        copy = jax.tree.map(jnp.asarray, params)
        return Algorithm1State(
            zero, zero - settings.wait - 1, copy, jnp.array(jnp.inf, dtype), jnp.array(False), zero, zero, key
        )

    def update(
        updates: PyTree, state: Algorithm1State, params: PyTree | None = None, *, value: Array | float, **_: Any
    ) -> tuple[PyTree, Algorithm1State]:
        since = state.time - state.shaken
        shake = (optax.tree.norm(updates) <= settings.gradient) & (since > settings.wait)
        ended = since == settings.wait
        finished = ended & (value - state.level > -settings.decrease)
        escaped = ended & ~finished
        at = jnp.where(state.done, 2, jnp.where(shake, 0, jnp.where(finished, 2, 1)))

        def perturb(gradient: PyTree) -> PyTree:  # noqa: ARG001
            return _in_ball(jax.random.fold_in(state.key, state.perturbations), params, settings.radius)

        def descend(gradient: PyTree) -> PyTree:
            return jax.tree.map(lambda g: -settings.rate * g, gradient)

        def give_back(gradient: PyTree) -> PyTree:  # noqa: ARG001
            return jax.tree.map(lambda there, here: there - here, state.anchor, params)

        moved = jax.lax.switch(at, (perturb, descend, give_back), updates)
        take = at == 0
        return moved, Algorithm1State(
            time=state.time + (at == 1),
            shaken=jnp.where(take, state.time, state.shaken),
            anchor=jax.tree.map(lambda new, old: jnp.where(take, new, old), params, state.anchor),
            level=jnp.where(take, value, state.level).astype(state.level.dtype),
            done=jnp.asarray(at == 2, bool),  # as at the start: another type would be compiled again
            perturbations=state.perturbations + take,
            escapes=state.escapes + (escaped & (at == 1)),
            key=state.key,
        )

    return optax.GradientTransformationExtraArgs(init, update)


class Stationary(eqx.Module):
    """Where Algorithm 1 ended: at the x̃ that it returned, or where it was after `most` steps."""

    params: PyTree
    returned: Bool[Array, ""]
    steps: Int[Array, ""]  # t
    perturbations: Int[Array, ""]
    escapes: Int[Array, ""]
    loss: Float[Array, ""]


def find_stationary(
    loss: Callable[[Any], Array], params: PyTree, settings: DescentSettings, *, most: int, key: Key[Array, ""]
) -> Stationary:
    """Run Algorithm 1 on loss(params) until it returns, for `most` updates at most. One program; vmap it over starts.

    >>> from offtangent.theory.ge_wang_zhao.descent import DescentSettings
    >>> well = lambda x: (x[0] ** 2 - 1) ** 2 + x[1] ** 2  # minima at (±1, 0), a saddle at 0
    >>> settings = DescentSettings(rate=0.05, radius=0.01, gradient=0.01, decrease=0.01, wait=100)
    >>> found = find_stationary(well, jnp.zeros(2), settings, most=2000, key=jax.random.key(0))
    >>> bool(found.returned), int(found.perturbations), int(found.escapes), abs(found.params).round(2).tolist()
    (True, 2, 1, [1.0, 0.0])
    """
    check_function("loss", loss, "of the parameters, which gives one number")
    check_params(params)
    check_finite(params, "The parameters")
    check_count("most", most)
    check_key(key)
    check_kind("settings", settings, DescentSettings, SETTINGS)
    shape = getattr(eqx.filter_eval_shape(loss, params), "shape", None)
    require(shape == (), f"loss(params) has shape {shape}: expected one number. Take a mean or a sum over samples.")
    return _found(loss, params, settings, most, key)


@eqx.filter_jit
def _found(
    loss: Callable[[Any], Array], params: PyTree, settings: DescentSettings, most: int, key: Key[Array, ""]
) -> Stationary:
    optimiser = algorithm1(settings, key=key)

    def going(carry: tuple[PyTree, Algorithm1State, Array]) -> Array:
        return ~carry[1].done & (carry[2] < most)

    def step(carry: tuple[PyTree, Algorithm1State, Array]) -> tuple[PyTree, Algorithm1State, Array]:
        params, state, count = carry
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(gradient, state, params, value=value)
        return optax.apply_updates(params, updates), state, count + 1

    start = (params, optimiser.init(params), jnp.zeros((), jnp.int32))
    last, state, _ = jax.lax.while_loop(going, step, start)
    return Stationary(last, state.done, state.time, state.perturbations, state.escapes, loss(last))


def _in_ball(key: Key[Array, ""], like: PyTree, radius: float) -> PyTree:
    """Uniform in the ball of all parameters together: a direction, times radius·U^(1/p)."""
    flat, unravel = ravel_pytree(like)
    of_direction, of_length = jax.random.split(key)
    direction = jax.random.normal(of_direction, flat.shape, flat.dtype)
    length = radius * jax.random.uniform(of_length, (), flat.dtype) ** (1 / flat.size)
    return unravel(length * direction / jnp.linalg.norm(direction))
