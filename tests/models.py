"""Real networks of several libraries as f(params, x), for tests that promise to work with any."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import linen, nnx

Case = tuple[Callable[[Any, Any], Any], Any, Any]  # f, params, x


def linen_cnn() -> Case:
    """Convolution, batch norm in evaluation mode, relu, pooling, three outputs."""

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.Conv(4, (3, 3))(x)
            x = linen.BatchNorm(use_running_average=True)(x)
            x = linen.avg_pool(linen.relu(x), (2, 2), (2, 2))
            return linen.Dense(3)(x.reshape(len(x), -1))

    net, x = Net(), jax.random.normal(jax.random.key(0), (3, 6, 6, 1))
    variables = net.init(jax.random.key(1), x)
    stats = variables["batch_stats"]
    return lambda params, x: net.apply({"params": params, "batch_stats": stats}, x), variables["params"], x


def nnx_cnn() -> Case:
    """The same in Flax's other language, with softplus and one output."""

    class Net(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)
            self.norm = nnx.BatchNorm(4, use_running_average=True, rngs=rngs)
            self.out = nnx.Linear(4 * 36, 1, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            x = jax.nn.softplus(self.norm(self.conv(x)))
            return self.out(x.reshape(len(x), -1))[:, 0]

    net = Net(nnx.Rngs(0))
    definition, params, rest = nnx.split(net, nnx.Param, ...)
    x = jax.random.normal(jax.random.key(0), (3, 6, 6, 1))
    return lambda params, x: nnx.merge(definition, params, rest)(x), params, x


def equinox_mlp() -> Case:
    """The model itself is the pytree of parameters, functions and all."""
    net = eqx.nn.MLP(5, 2, 8, 3, activation=jax.nn.gelu, key=jax.random.key(0))
    return lambda net, x: jax.vmap(net)(x), net, jax.random.normal(jax.random.key(1), (4, 5))


def attention() -> Case:
    """One block of self-attention with its layer norm, over five positions."""
    keys = jax.random.split(jax.random.key(0), 3)
    block = eqx.nn.MultiheadAttention(2, 6, key=keys[0])
    params = (block, eqx.nn.LayerNorm(6), eqx.nn.Linear(6, "scalar", key=keys[1]))

    def one(params: Any, x: Any) -> Any:
        block, norm, out = params
        z = jax.vmap(norm)(x)
        return out((x + block(z, z, z)).mean(axis=0))

    return lambda params, x: jax.vmap(one, (None, 0))(params, x), params, jax.random.normal(keys[2], (3, 5, 6))


def scanned() -> Case:
    """A recurrent network: a scan over time, with a list and a dictionary as parameters."""
    keys = jax.random.split(jax.random.key(0), 3)
    params = [{"w": jax.random.normal(keys[0], (4, 4)) / 2, "u": jax.random.normal(keys[1], (2, 4))}, jnp.ones(4) / 2]

    def f(params: Any, x: Any) -> Any:
        (layer, out) = params

        def step(state: Any, now: Any) -> Any:
            return jnp.tanh(state @ layer["w"] + now @ layer["u"]), None

        return jax.lax.scan(step, jnp.zeros((len(x), 4)), jnp.swapaxes(x, 0, 1))[0] @ out

    return f, params, jax.random.normal(keys[2], (3, 6, 2))


ALL = {f.__name__: f for f in (linen_cnn, nnx_cnn, equinox_mlp, attention, scanned)}


def in_float64(case: Case) -> Case:
    """The same in float64; call it, and what it gives, within jax.enable_x64(True)."""
    f, params, x = case
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if eqx.is_inexact_array(leaf) else leaf, (params, x))
    return f, *wide


def moved(params: Any, size: float, seed: int = 7) -> Any:
    """Parameters a random step away."""
    leaves, structure = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    return jax.tree.unflatten(
        structure,
        [
            leaf + size * jax.random.normal(key, leaf.shape, leaf.dtype) if eqx.is_inexact_array(leaf) else leaf
            for leaf, key in zip(leaves, keys, strict=True)
        ],
    )
