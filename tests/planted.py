"""Worlds with wrong numbers: which claims of an experiment notice that what they were judged by has changed.

Every variable of every kind of cell is replaced, by itself, in several ways: scaled, tilted over the sizes, drowned in
noise, exchanged between cells. A claim that holds in all of these worlds cannot fail, or does not look.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator

import numpy as np
import xarray as xr

from offtangent.lab import Results
from offtangent.lab.claims import HELD

SCALES = {"doubled": 2.0, "halved": 0.5}
TILTS = (0.5, -0.5)


def numeric(values):
    """Whether these are numbers that can be scaled."""
    return values.dtype.kind in "iuf"


def worlds(results: Results) -> Iterator[tuple[str, Results]]:
    """The results with one variable of one kind of cell made wrong, in every way, each with its name."""
    kinds = dict.fromkeys(type(cell) for cell, _ in results)
    for kind in kinds:
        own = [(cell, data) for cell, data in results if type(cell) is kind]
        names = dict.fromkeys(name for _, data in own for name in data.data_vars if numeric(data[name]))
        for name in names:
            for how, faulty in faults([cell for cell, _ in own], [data.get(name) for _, data in own]):
                made = iter(faulty)
                pairs = tuple(
                    (cell, _put(data, name, next(made)) if type(cell) is kind else data) for cell, data in results
                )
                yield f"{kind.__name__}.{name} {how}", Results(results.profile, pairs, results.complete)


def _put(data: xr.Dataset, name: str, values: np.ndarray | None) -> xr.Dataset:
    return data if values is None else data.assign({name: data[name].copy(data=values)})


def faults(cells, arrays) -> Iterator[tuple[str, list[np.ndarray | None]]]:
    """The values of one variable, cell by cell, made wrong in one way after another."""
    given = [None if one is None else np.asarray(one.values) for one in arrays]
    there = [one for one in given if one is not None]

    def each(change):
        return [None if one is None else _like(change(one), one) for one in given]

    for how, factor in SCALES.items():
        yield how, each(lambda one, factor=factor: factor * one)
    for field, sizes in _sizes(cells):
        for power in TILTS:
            tilt = iter((sizes / np.exp(np.mean(np.log(sizes)))) ** power)
            yield (
                f"times {field}^{power:g}",
                [
                    None if one is None else _like(next_tilt * one, one)
                    for next_tilt, one in zip(tilt, given, strict=True)
                ],
            )
    rng = np.random.default_rng(0)
    finite = np.concatenate([one[np.isfinite(one)].ravel() for one in there]) if there else np.zeros(0)
    spread = float(finite.std()) if finite.size else 0.0
    if spread:
        yield "with noise of its spread", each(lambda one: one + spread * rng.standard_normal(one.shape))
    shapes = Counter(one.shape for one in there)
    if len(there) > 1 and max(shapes.values()) > 1:
        order = [*range(1, len(given)), 0]
        yield (
            "exchanged between cells",
            [
                one if one is None or given[order[i]] is None or given[order[i]].shape != one.shape else given[order[i]]
                for i, one in enumerate(given)
            ],
        )
    if any(one.ndim and one.shape[-1] > 1 for one in there):
        yield "backwards", each(lambda one: one[..., ::-1] if one.ndim else one)


def _like(values: np.ndarray, one: np.ndarray) -> np.ndarray:
    if one.dtype.kind == "f":
        return values.astype(one.dtype)
    limits = np.iinfo(one.dtype)
    return np.clip(np.round(values), limits.min // 4, limits.max // 4).astype(one.dtype)


def _sizes(cells) -> Iterator[tuple[str, np.ndarray]]:
    """The fields of the cells that are positive numbers and differ: the sizes that a statement may speak of."""
    for field in dataclasses.fields(cells[0]):
        values = [getattr(cell, field.name) for cell in cells]
        if all(isinstance(v, int | float) and not isinstance(v, bool) and v > 0 for v in values) and len({*values}) > 1:
            yield field.name, np.array(values, dtype=float)


def held(experiment, results) -> list[tuple[tuple[str, str], bool]]:
    """Every claim's source and statement, and whether it holds."""
    return [((one.source, one.statement), one.verdict in HELD) for one in experiment.claims(results)]


def unmoved(experiment, results: Results) -> list[tuple[int, str]]:
    """The claims that hold on the results, and in every world as well: their numbers and sources.

    Claims are told apart by their place as long as a world has as many of the same names; where it has not, one that
    holds there no longer counts as noticed for all of its name.
    """
    truth = [(i, one) for i, one in enumerate(experiment.claims(results)) if one.kind == "claim"]
    standing = {i: one for i, one in truth if one.verdict in HELD}
    names = [(one.source, one.statement) for one in experiment.claims(results)]
    for _, world in worlds(results):
        if not standing:
            break
        try:
            with np.errstate(all="ignore"):
                found = held(experiment, world)
        except Exception:  # a world in which nothing can be judged shows nothing
            continue
        if [name for name, _ in found] == names:
            standing = {i: one for i, one in standing.items() if found[i][1]}
        else:
            counts = Counter(name for name, holds in found if holds)
            wanted = Counter(names[i] for i in standing)
            standing = {i: one for i, one in standing.items() if counts[names[i]] >= wanted[names[i]]}
    return [(i + 1, one.source) for i, one in standing.items()]
