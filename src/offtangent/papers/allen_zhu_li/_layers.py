"""The ResNet's two hidden layers, trained together or one after the other, and what each has learnt on the way."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from offtangent.networks import Hidden, ResNet
from offtangent.papers.allen_zhu_li import _methods
from offtangent.training import Search

WAYS = ("together", "layer by layer")
PARTS, SIGNALS = ("first", "rest"), ("F", "αG(F)")


class _First(eqx.Module):
    """½ E‖out₁ − y‖² of stacked first layers."""

    nets: ResNet

    def __call__(self, W: Array, X: Float[Array, "n s d"], y: Float[Array, "n s k"]) -> Float[Array, "r w s"]:
        return 0.5 * _each(lambda net, W, X, y: _methods.distance(_first(net, W, X), y), self.nets, W, X, y)


class _Second(eqx.Module):
    """½ E‖out − y‖² of stacked second layers, on first layers that are held."""

    nets: ResNet
    held: Float[Array, "s d1 m"]

    def __call__(self, V: Array, X: Float[Array, "n s d"], y: Float[Array, "n s k"]) -> Float[Array, "r w s"]:
        def one(net: Any, V: Array, X: Array, y: Array) -> Array:
            return _methods.distance(net[0](Hidden(net[1], V), X), y)

        return 0.5 * _each(one, (self.nets, self.held), V, X, y)


def _first(net: ResNet, W: Array, X: Array) -> Array:
    return net.first(Hidden(W, jnp.zeros_like(net.V0)), X)


def _each(f: Callable[..., Array], nets: Any, params: Any, X: Array, y: Array) -> Array:
    """f(net, params, X, y) for every rate, decay and seed."""
    over_seeds = eqx.filter_vmap(f, in_axes=(eqx.if_array(0), 0, 1, 1))
    return jax.vmap(jax.vmap(lambda each: over_seeds(nets, each, X, y)))(params)


class _Learnt(eqx.Module):
    """The coefficients of both signals in both parts of the output: axes rate, decay, seed, part, signal."""

    nets: ResNet
    X: Float[Array, "n s d"]
    signals: Float[Array, "n s k 2"]

    def __call__(self, params: Hidden) -> Float[Array, "r w s 2 2"]:
        return _each(_coefficients, self.nets, params, self.X, self.signals)


def _coefficients(net: ResNet, params: Hidden, X: Array, signals: Float[Array, "n k 2"]) -> Float[Array, "2 2"]:
    first = net.first(params, X)
    parts = jnp.stack([first, net(params, X) - first])
    return jnp.einsum("pnk,nkg->pg", parts, signals) / jnp.sum(signals**2, axis=(0, 1))


def _signals(problems: list[_methods.Problem]) -> tuple[Array, Array]:
    """Test inputs of all seeds, and F and αG(F) there."""
    inputs = [one.rows("test")[0] for one in problems]
    each = [np.stack(one.function.parts(X), axis=2) for one, X in zip(problems, inputs, strict=True)]
    return jnp.asarray(np.stack(inputs, axis=1), jnp.float32), jnp.asarray(np.stack(each, axis=1), jnp.float32)


def together(problems: list[_methods.Problem], *, width: int, epochs: int, looks: int, precision: str) -> xr.Dataset:
    """Both layers at once: `test` of each seed, and `learnt` along training."""
    nets, rows = _methods.together("3resnet", problems, width)
    learnt = _Learnt(nets, *_signals(problems))
    found = _methods.sweep(
        _methods.HalfDistances(nets), _origin(nets), _methods.initial(nets), rows["train"],
        lambda params: {part: _methods.stacked(nets, params, *_on_device(rows[part])) for part in ("choose", "test")},
        rates=_methods.RATES["3resnet"], epochs=epochs, precision=precision, record={"learnt": learnt}, looks=looks,
    )  # fmt: skip
    return _dataset(found, "test", "learnt")


def one_by_one(problems: list[_methods.Problem], *, width: int, epochs: int, looks: int, precision: str) -> xr.Dataset:
    """The first layer to its end, then the second: `test` of each seed, `alone` that of the first layer by itself."""
    nets, rows = _methods.together("3resnet", problems, width)
    words: dict[str, Any] = {"rates": _methods.RATES["3resnet"], "epochs": epochs, "precision": precision}
    objective, origin, weights = _First(nets), _origin(nets), _methods.initial(nets)

    def of_first(W: Array) -> dict[str, Array]:
        return {part: 2 * objective(W, *_on_device(rows[part])) for part in ("choose", "test")} | {"W": W}

    first = _methods.sweep(objective, origin.W, weights.W, rows["train"], of_first, **words)
    held = jnp.asarray(first.tables["W"][first.chosen])
    second, learnt = _Second(nets, held), _Learnt(nets, *_signals(problems))

    def of_second(V: Array) -> dict[str, Array]:
        return {part: 2 * second(V, *_on_device(rows[part])) for part in ("choose", "test")}

    def coefficients(V: Array) -> Array:
        return learnt(Hidden(jnp.broadcast_to(held, (*V.shape[:2], *held.shape)), V))

    found = _methods.sweep(
        second, origin.V, weights.V, rows["train"], of_second, **words, record={"learnt": coefficients}, looks=looks
    )
    alone = first.tables["test"][first.chosen]
    return _dataset(found, "test", "learnt").assign(alone=("seed", alone), inside=found.inside and first.inside)


def _origin(nets: ResNet) -> Hidden:
    return Hidden(jnp.zeros_like(nets.W0), jnp.zeros_like(nets.V0))


def _on_device(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Array, Array]:
    return jnp.asarray(pair[0]), jnp.asarray(pair[1])


def _dataset(found: Search, *names: str) -> xr.Dataset:
    """What the chosen rate and decay gave."""
    axes = {"test": ("seed",), "learnt": ("seed", "part", "signal", "look")}
    tables = {name: (axes[name], np.asarray(found.tables[name][found.chosen], float)) for name in names}
    i, j = found.chosen
    return xr.Dataset(tables).assign(rate=found.rates[i], decay=found.decays[j], inside=found.inside)
