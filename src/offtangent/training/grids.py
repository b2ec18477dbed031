r"""A grid of learning rates and weight decays as one program, and the search that widens it.

Parameters of all networks are stacked with the grid's axes in front. `grid_sgd` is the stochastic gradient descent of
most deep-learning libraries, with momentum and weight decay, where each network has its own rate and its own decay. A
network that diverges must not stop the others: `Bounded` holds its loss where `train` does not take offence.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PyTree

from offtangent._arguments import check_function, check_kind, check_positive
from offtangent._checks import check_numbers, check_real, require
from offtangent._errors import InputError, a_kind

MOST = 8  # rows or columns that a search adds


def grid_sgd(
    rates: Float[np.ndarray, "*g"],
    decays: PyTree,
    initial: PyTree | None = None,
    *,
    momentum: float = 0.9,
    schedule: Callable[[Any], Any] = lambda _: 1.0,
) -> optax.GradientTransformation:
    r"""Gradient descent with momentum μ and weight decay λ, both rate and decay different for each network.

    .. math:: v \leftarrow \mu v + \nabla L(\theta) + \lambda (\theta_0 + \theta), \qquad
              \theta \leftarrow \theta - \eta\, s(t)\, v

    `initial` is θ₀ where the parameters are displacements from it (without the grid's axes), `schedule` is s. For parts
    of the parameters with decays of their own, `decays` has their structure, or its top: Hidden(λ_W, λ_V), say.

    >>> optimiser = grid_sgd(np.array([0.1, 1.0]), np.array([0.0, 0.5]), momentum=0.0)
    >>> theta = jnp.ones((2, 1))
    >>> optimiser.update(jnp.zeros((2, 1)), optimiser.init(theta), theta)[0].ravel().tolist()
    [-0.0, -0.5]
    """
    if decays is None or not all(hasattr(values, "shape") for values in (rates, *jax.tree.leaves(decays))):
        raise InputError(
            f"rates is {a_kind(rates)} and decays is {a_kind(decays)}: expected arrays with an entry for each network, "
            "such as np.array([0.1, 0.2]); np.meshgrid(rates, decays, indexing='ij') makes a grid of them. A list of "
            "decays is read as a structure, with one such array for each part of the parameters."
        )
    for name, values in (("rates", rates), *(("decays", part) for part in jax.tree.leaves(decays))):
        if np.shape(values) != np.shape(rates):
            raise InputError(
                f"{name} of shape {np.shape(values)}, rates of shape {np.shape(rates)}: each network has one of both; "
                "np.meshgrid(rates, decays, indexing='ij') makes a grid of them."
            )
        numbers = check_numbers(values, name)
        sound = np.isfinite(numbers).all() and (numbers >= 0).all()
        require(sound, f"{name}={values}: learning rates and weight decays are finite and not negative.")
    check_function("schedule", schedule, "of the number of steps")
    check_real("momentum", momentum)
    require(0 <= momentum < 1, f"momentum={momentum:g}: it lies in [0, 1).")

    def each(values: Any, leaf: Array) -> Array:
        return jnp.asarray(values, leaf.dtype).reshape(values.shape + (1,) * (leaf.ndim - values.ndim))

    def decay(gradients: PyTree, params: PyTree) -> PyTree:
        weights = params if initial is None else jax.tree.map(jnp.add, initial, params)
        try:
            own = jax.tree.broadcast(decays, gradients)
        except ValueError:
            have, want = jax.tree.structure(decays), jax.tree.structure(gradients)
            raise InputError(
                f"decays has the structure {have}, the parameters have {want}: give one array for all of them, or the "
                "same structure, classes included."
            ) from None
        return jax.tree.map(lambda g, w, decay: g + each(decay, g) * w, gradients, weights, own)

    return optax.chain(
        optax.stateless(decay),
        optax.trace(momentum),
        optax.stateless(lambda updates, _: jax.tree.map(lambda u: -each(rates, u) * u, updates)),
        optax.scale_by_schedule(schedule),
    )


class Bounded(eqx.Module):
    """An objective of many networks, where the loss of one that is lost, NaN or above `limit`, is `limit`."""

    objective: Callable[..., Array]
    limit: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        check_function("objective", self.objective, "of parameters, inputs and labels")
        check_positive(limit=self.limit)

    def __call__(self, params: PyTree, X: Array, y: Array) -> Array:
        losses = self.objective(params, X, y)
        return jnp.where(losses <= self.limit, losses, jnp.asarray(self.limit, losses.dtype))


@dataclass(frozen=True, eq=False)
class Search:
    """What every network of a widened grid of learning rates and weight decays came to.

    Attributes:
        rates: The learning rates, rising.
        decays: The weight decays, rising.
        tables: What was evaluated, by name; tables have the axes rate, decay, and whatever follows.
        by: The name of the table whose least mean chooses.
    """

    rates: tuple[float, ...]
    decays: tuple[float, ...]
    tables: Mapping[str, np.ndarray]
    by: str

    @property
    def chosen(self) -> tuple[int, int]:
        """Where the mean of the table that chooses is least; a network that is lost counts as infinite."""
        return self.best(self.by)

    def best(self, name: str) -> tuple[int, int]:
        """Where the mean of this table is least."""
        at = np.unravel_index(int(_means(self.tables[name]).argmin()), (len(self.rates), len(self.decays)))
        return int(at[0]), int(at[1])

    @property
    def inside(self) -> bool:
        """Whether the choice is on no edge of what was evaluated. A decay of zero is no edge: there is none below."""
        return not (self.unknown or any(_edges(self.chosen, self.rates, self.decays)))

    @property
    def unknown(self) -> bool:
        """Whether a rate or a decay next to the choice, with the other held, was not evaluated."""
        (i, j), table = self.chosen, self.tables[self.by]
        near = [(i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)]
        return any(
            bool(np.isnan(table[a, b]).all()) for a, b in near if 0 <= a < len(self.rates) and 0 <= b < len(self.decays)
        )


def search(
    evaluate: Callable[[tuple[float, ...], tuple[float, ...]], Mapping[str, np.ndarray]],
    rates: tuple[float, ...],
    decays: tuple[float, ...],
    *,
    by: str,
) -> Search:
    """Evaluate a grid of learning rates and weight decays, and widen it while the best is on one of its edges.

    A row or a column is added at a time, eight of them at most; at each end the grid goes on with the ratio of its
    outer two entries (above a lone positive decay, with ten times it). A decay of zero is no edge, as there is none
    below. The time is that of `evaluate`, which is called once, and once more for each row or column.

    Args:
        evaluate: A function of rates and decays that gives tables by name, each with the axes rate and decay in front,
            and whatever follows, such as seeds. A network that is lost is NaN or infinite.
        rates: The learning rates to begin with: two or more, positive, rising.
        decays: The weight decays to begin with: two or more, from zero on, rising.
        by: The name of the table whose least mean, over the axes that follow, chooses.

    Returns:
        A `Search`: all tables, the rates and decays of their axes, and which network is `chosen`.

    Raises:
        InputError: If a grid does not rise, if the tables have no such name or other axes, or if no network of all is
            finite.

    >>> def evaluate(rates, decays):
    ...     return {"loss": np.log(np.array(rates))[:, None] ** 2 + np.array(decays)}
    >>> search(evaluate, (0.25, 0.5), (0.0, 1.0), by="loss").rates  # the best is 1
    (0.25, 0.5, 1.0, 2.0)
    """
    check_function("evaluate", evaluate, "of rates and decays that gives tables by name")
    for name, values in (("rates", rates), ("decays", decays)):
        numbers = check_numbers(values, name)
        flat = numbers.ndim == 1 and np.isfinite(numbers).all()
        require(flat, f"{name}={values}: expected finite numbers in one row, such as (0.1, 1.0).")
        if len(values) < 2 or any(a >= b for a, b in itertools.pairwise(values)):
            raise InputError(f"{name}={values}: a grid to be widened has two entries or more, and rises.")
    if rates[0] <= 0 or decays[0] < 0:
        raise InputError(f"rates={rates}, decays={decays}: rates are positive, and decays not negative.")
    tables = _evaluated(evaluate, rates, decays, by)
    for _ in range(MOST):
        found = Search(rates, decays, tables, by)
        slow, fast, weak, strong = _edges(found.chosen, rates, decays)
        if slow or fast:
            new = (rates[0] ** 2 / rates[1],) if slow else (rates[-1] ** 2 / rates[-2],)
            tables = _joined(tables, _evaluated(evaluate, new, decays, by), 0, first=slow)
            rates = new + rates if slow else rates + new
        elif weak or strong:
            new = (decays[0] ** 2 / decays[1],) if weak else (decays[-1] * _ratio(decays),)
            tables = _joined(tables, _evaluated(evaluate, rates, new, by), 1, first=weak)
            decays = new + decays if weak else decays + new
        else:
            break
    if not np.isfinite(_means(tables[by])).any():
        raise InputError(
            f"No network of rates {rates} has a finite {by!r}: is the function finite, and the rate small?"
        )
    return Search(rates, decays, tables, by)


def refine(
    found: Search, evaluate: Callable[[tuple[float, ...], tuple[float, ...]], Mapping[str, np.ndarray]]
) -> Search:
    """Evaluate the rates and decays halfway, in the logarithm, between the best of a grid and its neighbours.

    Three by three networks, with the best again, or fewer at an edge. If the best of all then is on an edge or has a
    neighbour that was not evaluated, three by three around it, and so on, at most 8 times. The result has all rates and
    decays; tables are NaN where nothing was evaluated. Below the least positive decay, halfway is a third of it.

    >>> def evaluate(rates, decays):
    ...     return {"loss": np.log(np.array(rates))[:, None] ** 2 + np.array(decays)}
    >>> fine = refine(search(evaluate, (0.2, 0.8, 3.2), (0.0, 1.0), by="loss"), evaluate)
    >>> fine.rates, fine.rates[fine.chosen[0]]
    ((0.2, 0.4, 0.8, 1.6, 3.2), 0.8)
    """
    check_kind("found", found, Search, "what search(...) gives")
    check_function("evaluate", evaluate, "of rates and decays that gives tables by name")
    i, j = found.chosen
    rates, decays = _between(found.rates, i), _between(found.decays, j)
    found = Search(found.rates, found.decays, _lost_as_infinite(found.tables, found.by), found.by)
    for _ in range(MOST):
        found = _merged(found, rates, decays, _evaluated(evaluate, rates, decays, found.by))
        i, j = found.chosen
        near = _around(found.rates, i), _around(found.decays, j)
        if found.inside or near == (rates, decays):  # a grid of one entry cannot be widened
            break
        rates, decays = near
    return found


def _evaluated(
    evaluate: Callable[[tuple[float, ...], tuple[float, ...]], Mapping[str, np.ndarray]],
    rates: tuple[float, ...],
    decays: tuple[float, ...],
    by: str,
) -> dict[str, np.ndarray]:
    """The tables of a grid, or an InputError where they are none."""
    found = evaluate(rates, decays)
    require(
        isinstance(found, Mapping), f"evaluate gives {a_kind(found)}: expected tables by name, {{'loss': array}}, say."
    )
    if by not in found:
        raise InputError(f"by={by!r}: the tables are {', '.join(map(repr, found))}.")
    for name, table in found.items():
        if np.shape(table)[:2] != (len(rates), len(decays)):
            raise InputError(
                f"evaluate gives {name!r} the shape {np.shape(table)} for {len(rates)} rates and {len(decays)} decays: "
                f"expected ({len(rates)}, {len(decays)}, …), an entry for each rate and each decay."
            )
    check_numbers(found[by], f"{by!r} of what evaluate gives")
    return _lost_as_infinite(found, by)


def _lost_as_infinite(tables: Mapping[str, np.ndarray], by: str) -> dict[str, np.ndarray]:
    """What chooses is infinite for a network that is lost, so that NaN tells what was not evaluated."""
    found = {name: np.asarray(table) for name, table in tables.items()}
    return found | {by: np.where(np.isnan(found[by]), np.inf, found[by])}


def _merged(
    found: Search, rates: tuple[float, ...], decays: tuple[float, ...], new: Mapping[str, np.ndarray]
) -> Search:
    """A grid with what is new in it; what was there stays."""
    all_rates, all_decays = (tuple(sorted({*a, *b})) for a, b in ((found.rates, rates), (found.decays, decays)))
    merged = {
        name: np.full((len(all_rates), len(all_decays), *table.shape[2:]), math.nan) for name, table in new.items()
    }
    before = np.isnan(found.tables[found.by]).reshape(len(found.rates), len(found.decays), -1).all(axis=2)
    for at, tables, absent in (((rates, decays), new, None), ((found.rates, found.decays), found.tables, before)):
        rows, columns = [all_rates.index(one) for one in at[0]], [all_decays.index(one) for one in at[1]]
        for (a, row), (b, column) in itertools.product(enumerate(rows), enumerate(columns)):
            if absent is None or not absent[a, b]:
                for name, whole in merged.items():
                    whole[row, column] = tables[name][a, b]
    return Search(all_rates, all_decays, merged, found.by)


def _between(grid: tuple[float, ...], at: int) -> tuple[float, ...]:
    """An entry, with what lies halfway to its neighbours."""
    middle = [math.sqrt(a * b) if a > 0 else b / 3 for a, b in itertools.pairwise(grid)]
    return (*middle[max(at - 1, 0) : at], grid[at], *middle[at : at + 1])


def _around(grid: tuple[float, ...], at: int) -> tuple[float, ...]:
    """An entry and its neighbours; beyond an end the grid goes on with the ratio there, but not below zero."""
    if len(grid) == 1:
        return grid
    below = (grid[0] ** 2 / grid[1],) if at == 0 and grid[0] > 0 else grid[max(at - 1, 0) : at]
    above = grid[at + 1 : at + 2] or (grid[-1] * _ratio(grid),)
    return (*below, grid[at], *above)


def _ratio(decays: tuple[float, ...]) -> float:
    return decays[-1] / decays[-2] if decays[-2] > 0 else 10.0


def _edges(at: tuple[int, int], rates: tuple[float, ...], decays: tuple[float, ...]) -> tuple[bool, bool, bool, bool]:
    """Whether a place is at the least rate, the largest rate, the least decay that is not zero, the largest decay."""
    return at[0] == 0, at[0] == len(rates) - 1, at[1] == 0 and decays[0] > 0, at[1] == len(decays) - 1


def _joined(
    old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray], axis: int, *, first: bool
) -> dict[str, np.ndarray]:
    return {
        name: np.concatenate([np.asarray(new[name]), table] if first else [table, np.asarray(new[name])], axis=axis)
        for name, table in old.items()
    }


def _means(table: np.ndarray) -> np.ndarray:
    means = table.reshape(*table.shape[:2], -1).mean(axis=2)
    return np.where(np.isfinite(means), means, math.inf)
