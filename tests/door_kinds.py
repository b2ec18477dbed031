"""What can be given wrongly for each kind of parameter: `tests/door_calls.py` says which parameter is of which kind."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np


class Arg(NamedTuple):
    """A valid value of a parameter, the bad ones by name, and what of the parameter the message has to name."""

    good: Any
    bad: Mapping[str, Any]
    says: str = ""  # where the message does not say the parameter's own name

    def but(self, *names: str) -> "Arg":
        """Without the values that this parameter takes; there is a KeyError for one that is not there."""
        kept = dict(self.bad)
        for name in names:
            del kept[name]
        return self._replace(bad=kept)

    def also(self, **more: Any) -> "Arg":
        return self._replace(bad={**self.bad, **more})

    def saying(self, words: str) -> "Arg":
        return self._replace(says=words)

    @property
    def or_none(self) -> "Arg":
        return self.but("none")


def array(good: Any) -> Arg:
    """Finite numbers of this number of axes."""
    values = np.asarray(good)
    spoilt = {
        name: np.where(np.arange(values.size).reshape(values.shape) == values.size - 1, bad, values)
        for name, bad in (("nan", np.nan), ("infinite", -np.inf))
    }
    shapes = {"one axis more": values[None], "no axes": 1.0, "empty": values[:0], "ragged": [[1.0], [1.0, 2.0]]}
    kinds = {"complex": values + 1j, "words": np.full(values.shape, "a"), "text": "abc", "none": None}
    return Arg(good, spoilt | shapes | kinds)


def count(good: int, *, least: int = 1) -> Arg:
    """A whole number of at least `least`."""
    no_number = {"text": str(good), "none": None, "list": [good], "truth": True}
    return Arg(good, no_number | {"nan": np.nan, "a half": good + 0.5, "a float": float(good), "too few": least - 1})


def number(good: float, **beyond: Any) -> Arg:
    """A real number; `beyond` are those outside its domain."""
    return Arg(good, {"nan": np.nan, "text": "0.5", "none": None, "list": [0.5], "complex": 0.5j, **beyond})


def positive(good: float) -> Arg:
    return number(good, zero=0.0, negative=-1.0, infinite=np.inf)


def not_negative(good: float) -> Arg:
    return number(good, negative=-1.0, infinite=np.inf)


def key() -> Arg:
    """One JAX key."""
    one = jax.random.key(0)
    return Arg(one, {"an int": 0, "none": None, "text": "0", "several": jax.random.split(one), "floats": np.ones(2)})


def function(good: Callable[..., Any]) -> Arg:
    return Arg(good, {"an int": 3, "text": "abc", "none": None})


def thing(good: Any) -> Arg:
    """An object of one class."""
    return Arg(good, {"an int": 3, "text": "abc", "none": None})


def choice(good: str) -> Arg:
    """One of a few words."""
    return Arg(good, {"another word": "nonsense", "an int": 3, "none": None, "list": [good]})


def path(good: Any) -> Arg:
    return Arg(good, {"an int": 3, "none": None, "list": [good]})


def tree(good: Any) -> Arg:
    """Parameters of a network: a pytree of floating-point arrays."""
    spoilt = {"nan": np.nan, "infinite": np.inf}
    filled = {name: jax.tree.map(lambda leaf, bad=bad: leaf * 0 + bad, good) for name, bad in spoilt.items()}
    return Arg(
        good, filled | {"text": "abc", "none": None, "whole numbers": jax.tree.map(lambda x: x.astype(int), good)}
    )


def flag(good: bool) -> Arg:
    """What Python takes for true or false: anything."""
    return Arg(good, {})
