"""The ResNet's two hidden layers, trained together or one after the other, and what each has learnt on the way."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from offtangent.networks import ResNet
from offtangent.networks.resnet import Hidden
from offtangent.papers.allen_zhu_li import _methods
from offtangent.training.grids import Search

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


class _Seen(eqx.Module):
    """`compared` for the parts of every network that `of` gives: axes rate, decay, seed, part, and those three."""

    of: Callable[..., Array] = eqx.field(static=True)
    nets: ResNet
    X: Float[Array, "n s d"]
    signals: Float[Array, "n s k 2"]

    def __call__(self, params: Any) -> Float[Array, "r w s p 3"]:
        return _each(self.of, self.nets, params, self.X, self.signals)


def _of_both(net: ResNet, params: Hidden, X: Array, signals: Array) -> Float[Array, "2 3"]:
    first = net.first(params, X)
    return compared(jnp.stack([first, net(params, X) - first]), signals)


def _of_first(net: ResNet, W: Array, X: Array, signals: Array) -> Float[Array, "1 3"]:
    return compared(_first(net, W, X)[None], signals)


def compared(parts: Float[Array, "p n k"], signals: Float[Array, "n k 2"]) -> Float[Array, "p 3"]:
    """Each part's coefficients E⟨part, s⟩/E‖s‖² of the two signals, and E‖part − s‖²/E‖s‖² of its own.

    A coefficient is a projection, 1 for a signal plus any noise; the distance is 0 for the signal alone and 1 for
    nothing. Of the parts the first has the first signal as its own, the second the second.
    """
    energies = jnp.sum(signals**2, axis=(0, 1))
    coefficients = jnp.einsum("pnk,nkg->pg", parts, signals) / energies
    own = jnp.moveaxis(signals, 2, 0)[: len(parts)]
    missed = jnp.sum((parts - own) ** 2, axis=(1, 2)) / energies[: len(parts)]
    return jnp.concatenate([coefficients, missed[:, None]], axis=1)


def _signals(problems: list[_methods.Problem]) -> tuple[Array, Array]:
    """Test inputs of all seeds, and F and αG(F) there."""
    inputs = [one.rows("test")[0] for one in problems]
    each = [np.stack(one.function.parts(X), axis=2) for one, X in zip(problems, inputs, strict=True)]
    return jnp.asarray(np.stack(inputs, axis=1), jnp.float32), jnp.asarray(np.stack(each, axis=1), jnp.float32)


def together(
    problems: list[_methods.Problem],
    *,
    width: int,
    epochs: int,
    looks: int,
    precision: str,
    refined: bool = False,
    on_first: bool = False,
) -> xr.Dataset:
    """Both layers at once: `test` of each seed, `learnt` and `missed` along training, and what the grid chose.

    `on_first`: the decay acts on the first layer alone.
    """
    nets, rows = _methods.together("3resnet", problems, width)
    found = _methods.sweep(
        _methods.HalfDistances(nets), _origin(nets), _methods.initial(nets), rows["train"],
        lambda params: {part: _methods.errors(nets, params, *rows[part]) for part in ("choose", "test")},
        rates=_methods.RATES["3resnet"], epochs=epochs, precision=precision, refined=refined,
        spread=lambda decays: Hidden(jnp.asarray(decays), jnp.zeros(decays.shape)) if on_first else decays,
        record={"seen": _Seen(_of_both, nets, *_signals(problems))}, looks=looks,
    )  # fmt: skip
    return _dataset(found)


def one_by_one(
    problems: list[_methods.Problem], *, width: int, epochs: int, looks: int, precision: str, refined: bool = False
) -> xr.Dataset:
    """The first layer to its end, then the second: the same for the second, and `alone_…` for the first by itself."""
    nets, rows = _methods.together("3resnet", problems, width)
    words: dict[str, Any] = {
        "rates": _methods.RATES["3resnet"], "epochs": epochs, "precision": precision, "refined": refined,
    }  # fmt: skip
    objective, origin, weights = _First(nets), _origin(nets), _methods.initial(nets)
    signals = _signals(problems)

    def of_first(W: Array) -> dict[str, Array]:
        return {part: 2 * objective(W, *_on_device(rows[part])) for part in ("choose", "test")} | {"W": W}

    first = _methods.sweep(
        objective, origin.W, weights.W, rows["train"], of_first, **words,
        record={"seen": _Seen(_of_first, nets, *signals)}, looks=looks,
    )  # fmt: skip
    held = jnp.asarray(first.tables["W"][first.chosen])
    second, seen = _Second(nets, held), _Seen(_of_both, nets, *signals)

    def of_second(V: Array) -> dict[str, Array]:
        return {part: 2 * second(V, *_on_device(rows[part])) for part in ("choose", "test")}

    def on_held(V: Array) -> Array:
        return seen(Hidden(jnp.broadcast_to(held, (*V.shape[:2], *held.shape)), V))

    found = _methods.sweep(
        second, origin.V, weights.V, rows["train"], of_second, **words, record={"seen": on_held}, looks=looks
    )
    alone = _dataset(first).isel(part=0)
    return _dataset(found).assign({f"alone_{name}": table for name, table in alone.data_vars.items()})


def one_budget(
    problems: list[_methods.Problem], *, width: int, epochs: int, looks: int, precision: str, refined: bool = False
) -> xr.Dataset:
    """The first layer and then the second, with one rate and one decay for both and half of the epochs for each."""
    nets, rows = _methods.together("3resnet", problems, width)
    origin, weights, signals = _origin(nets), _methods.initial(nets), _signals(problems)
    X, y = rows["train"]
    each = max(epochs // 2, 1)
    first, seen = _First(nets), _Seen(_of_both, nets, *signals)

    def train_both(rates: tuple[float, ...], decays: tuple[float, ...]) -> dict[str, np.ndarray]:
        W = _methods.trained_grid(first, origin.W, weights.W, (X, y), rates, decays, each, precision).params
        second = _OnGrid(nets, W)
        history = _methods.trained_grid(
            second,
            origin.V,
            weights.V,
            (X, y),
            rates,
            decays,
            each,
            precision,
            record={"seen": lambda V: seen(Hidden(W, V))},
            looks=looks,
        )
        params = Hidden(W, history.params)
        with jax.default_matmul_precision("highest"):
            tables = {part: _methods.errors(nets, params, *rows[part]) for part in ("choose", "test")}
        return tables | {"seen": np.moveaxis(history.records["seen"], 0, -1)}

    return _dataset(_methods.searched(train_both, _methods.RATES["3resnet"], refined))


class _OnGrid(eqx.Module):
    """½ E‖out − y‖² of stacked second layers, each on the first layer of its own rate and decay, which is held."""

    nets: ResNet
    held: Float[Array, "r w s d1 m"]

    def __call__(self, V: Array, X: Float[Array, "n s d"], y: Float[Array, "n s k"]) -> Float[Array, "r w s"]:
        return 0.5 * _methods.stacked(self.nets, Hidden(self.held, V), X, y)


def _origin(nets: ResNet) -> Hidden:
    return Hidden(jnp.zeros_like(nets.W0), jnp.zeros_like(nets.V0))


def _on_device(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Array, Array]:
    return jnp.asarray(pair[0]), jnp.asarray(pair[1])


def _dataset(found: Search) -> xr.Dataset:
    """What the chosen rate and decay gave, and `best`: the test error of the choice by test error, the paper's."""
    seen = np.asarray(found.tables["seen"][found.chosen], float)
    i, j = found.chosen
    return xr.Dataset(
        {
            "test": ("seed", np.asarray(found.tables["test"][found.chosen], float)),
            "best": ("seed", np.asarray(found.tables["test"][found.best("test")], float)),
            "learnt": (("seed", "part", "signal", "look"), seen[:, :, :2]),
            "missed": (("seed", "part", "look"), seen[:, :, 2]),
        }
    ).assign(rate=found.rates[i], decay=found.decays[j], inside=found.inside)


WAYS: dict[str, Callable[..., xr.Dataset]] = {
    "together": together,
    "together, decay on W": partial(together, on_first=True),
    "layer by layer": one_by_one,
    "layer by layer, one budget": one_budget,
}
