"""What an experiment's functions answer, looked at as it comes: what would fail later on is refused here, by name.

A result that no record could hold, a claim without a verdict, a figure that is none: found here, they cost a cell or
a sentence, and not the report after everything was computed.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from offtangent._errors import InputError, a_kind, shown
from offtangent.lab.claims import Claim, Verdict
from offtangent.lab.costs import Cost
from offtangent.lab.hypotheses import Hypothesis
from offtangent.report import Figure

NUMBERS = "biufmM"  # kinds of dtypes that a record holds as they are; text (U) is looked at
MOST = 100_000  # claims or figures: more is a generator that does not end
WIDEST = 8  # bytes of a number: JSON's readers have float64


def check_result(dataset: xr.Dataset) -> None:
    """Refuse what a record cannot hold, with the variable's name. Raises `TypeError`, which fails the cell alone."""
    for name, variable in dataset.variables.items():
        for part, called in [(name, "is called"), *((dim, "has a dimension called") for dim in variable.dims)]:
            if type(part) is not str or not _is_text(part):
                raise TypeError(f"a variable of the result {called} {shown(part)}; names must be text")
        _check_attributes(f"variable {name!r}", variable.attrs)
        dtype = variable.dtype
        if isinstance(variable.data, np.ma.MaskedArray):
            raise TypeError(f"variable {name!r} is a masked array, and its mask would be lost; give NaN for it")
        if dtype.kind == "U":
            if not _is_text("".join(np.asarray(variable.values).ravel().tolist())):
                raise TypeError(f"variable {name!r} holds text that UTF-8 cannot write (lone surrogates)")
        elif dtype.kind == "c":
            raise TypeError(f"variable {name!r} has dtype {dtype}; give its real and imaginary parts as two variables")
        elif dtype.kind == "S":
            raise TypeError(f"variable {name!r} has dtype {dtype}; give text (decode it), or numbers")
        elif dtype.kind == "f" and dtype.itemsize > WIDEST:
            raise TypeError(f"variable {name!r} has dtype {dtype}; give float64, which every machine has")
        elif dtype.kind not in NUMBERS:
            raise TypeError(f"variable {name!r} has dtype {dtype}; give it numbers or fixed-width text")
    _check_attributes("the result", dataset.attrs)


def _check_attributes(what: str, attributes: dict[Any, Any]) -> None:
    for name, value in attributes.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not _is_json(plain):
            raise TypeError(
                f"the attribute {shown(name)} of {what} is {a_kind(value)}; attributes are numbers, text, booleans, "
                "None, and lists of these"
            )


def _is_json(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(type(name) is str for name in value) and all(map(_is_json, value.values()))
    return value is None or isinstance(value, bool | int | float | str)


def cost_of(answer: object, question: str) -> Cost | None:
    """A cell's cost, or None; anything but two finite numbers that are not negative is refused."""
    if answer is None or (isinstance(answer, Cost) and _is_amount(answer.flops) and _is_amount(answer.bytes)):
        return answer
    raise InputError(
        f"{question} gave {shown(answer)}: it gives a Cost(flops, bytes) of finite numbers, neither of them negative, "
        "or None where the cost is unknown."
    )


def _is_amount(value: object) -> bool:
    try:
        return math.isfinite(float(value)) and float(value) >= 0  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def names_of(answer: object, question: str, kinds: tuple[type, ...] = (str,)) -> tuple[Any, ...]:
    """Names in a tuple or list; a single text would be taken for its letters."""
    wanted = "names of data sets" if kinds == (str,) else "names of data sets, or paths of files,"
    if isinstance(answer, str | Path) or not isinstance(answer, Iterable):
        raise InputError(f"{question} gave {shown(answer)}: it gives {wanted} in a tuple, such as ('digits',) or ().")
    names = tuple(answer)
    for name in names:
        if not isinstance(name, kinds):
            raise InputError(f"{question} gave {shown(name)} among others: it gives {wanted} in a tuple.")
    return names


def claims_of(answer: object) -> list[Claim]:
    """Claims as plain values, whatever NumPy made of their numbers."""
    return [_plain(claim) for claim in _each(answer, Claim, "claims(results)", "Claims")]


def figures_of(answer: object) -> list[Figure]:
    """Figures with a title, a caption and a plot."""
    figures = _each(answer, Figure, "draw(results)", "Figures")
    for number, figure in enumerate(figures, start=1):
        if not (isinstance(figure.title, str) and isinstance(figure.caption, str)):
            raise InputError(f"draw(results) gave a Figure, number {number}, whose title or caption is no text.")
        if not hasattr(figure.plot, "to_json") or not hasattr(figure.plot, "layout"):
            raise InputError(
                f"draw(results) gave a Figure, number {number}, whose plot is {a_kind(figure.plot)}: begin it with "
                "new_plot() of offtangent.report."
            )
    return figures


def _each(answer: object, kind: type, question: str, wanted: str) -> list[Any]:
    if isinstance(answer, kind | str | dict) or not isinstance(answer, Iterable):
        raise InputError(f"{question} gave {shown(answer)}: it gives {wanted}, yielded or in a list.")
    given = list(islice(answer, MOST + 1))
    if len(given) > MOST:
        raise InputError(f"{question} gives more than {MOST} {wanted}: does it end?")
    for number, one in enumerate(given, start=1):
        if not isinstance(one, kind):
            raise InputError(f"{question} gave {shown(one)} as number {number}: it gives {wanted}.")
    return given


def _plain(claim: Claim) -> Claim:
    for name in ("source", "statement", "measured", "expected", "note"):
        if not isinstance(getattr(claim, name), str):
            raise InputError(
                f"A claim's {name} is {shown(getattr(claim, name))}: it must be text. Its source: {shown(claim.source)}"
            )
    given: Any = claim.hypotheses
    if not isinstance(given, tuple | list) or not all(isinstance(one, Hypothesis) for one in given):
        raise InputError(
            f"The hypotheses of the claim {claim.source!r} are {shown(given)}: give a tuple of Hypothesis."
        )
    if claim.kind not in ("claim", "identity"):
        raise InputError(f'The kind of the claim {claim.source!r} is {shown(claim.kind)}: "claim" or "identity".')
    try:
        return replace(
            claim,
            hypotheses=tuple(given),
            verdict=Verdict(claim.verdict),
            value=None if claim.value is None else float(claim.value),
            interval=None if claim.interval is None else (float(claim.interval[0]), float(claim.interval[1])),
            met=None if claim.met is None else bool(claim.met),
        )
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(
            f"The claim {claim.source!r} cannot be told: {error}. Its verdict is a Verdict, its value a number or "
            "None, its interval two numbers or None."
        ) from error


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
