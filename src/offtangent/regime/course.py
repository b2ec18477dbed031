"""A training followed from checkpoint to checkpoint, each of them stored as soon as it is measured."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import PyTree

from offtangent._arguments import check_kind
from offtangent._checks import check_count, require
from offtangent._errors import a_kind
from offtangent.kernels.blocks import take
from offtangent.regime.measure import Start
from offtangent.regime.measured import Regime
from offtangent.regime.training import Training
from offtangent.taylor.checks import check_order
from offtangent.training.checkpoint import fingerprint as of_arrays

Watch = Callable[[str], None]


@runtime_checkable
class Kept(Protocol):
    """Where the numbers of checkpoints are kept by key; `lab.trainings.KeptInFolder` is one."""

    def read(self, key: str, /) -> Mapping[str, Any] | None: ...
    def write(self, key: str, numbers: Mapping[str, Any], /) -> None: ...


@dataclass(frozen=True)
class Course:
    """What a training did to a network, checkpoint by checkpoint; the last is the trained network.

    Attributes:
        names: The steps of the checkpoints after the start.
        regimes: What was measured at each.
    """

    names: tuple[str, ...]
    regimes: tuple[Regime, ...]

    @property
    def last(self) -> Regime:
        """The trained network."""
        return self.regimes[-1]

    def summary(self) -> dict[str, Any]:
        """Put all numbers into a dictionary for JSON: those of the trained network, and of each checkpoint."""
        steps = [{"step": name} | one.summary() for name, one in zip(self.names, self.regimes, strict=True)]
        return self.last.summary() | {"checkpoints": steps}


def follow(
    training: Training,
    *,
    order: int = 2,
    samples: int = 500,
    seed: int = 0,
    memory: int | None = None,
    kept: Kept | None = None,
    watch: Watch = lambda _: None,
) -> Course:
    """Measure a training at each of its checkpoints, against its start.

    Args:
        training: The network, its checkpoints and data.
        order: The order of the Taylor series, at least 1.
        samples: How many inputs are drawn at random, and how many of those held out.
        seed: Of the draw.
        memory: Bytes that gradients may take at once, by default 256 MB.
        kept: Where each checkpoint is kept as soon as it is measured, and read from when all is done again; None for
            nowhere. Its keys are hashes of the network's own program, its parameters and the data.
        watch: Told what is going on.

    Returns:
        What was found.

    Raises:
        InputError: As `measure_regime` does; if checkpoints do not fit each other.

    >>> import jax.numpy as jnp
    >>> run = Training(lambda w, x: jnp.exp(x @ w), [jnp.zeros(1), jnp.ones(1), 2 * jnp.ones(1)], jnp.ones((3, 1)))
    >>> [round(one.shares[0], 2) for one in follow(run).regimes]  # of e − 1 and e² − 1
    [0.58, 0.31]
    """
    check_kind("training", training, Training, "what regime.Training(...) gives")
    check_count("samples", samples)
    check_count("seed", seed, least=0)
    check_order(order)
    require(callable(watch), f"watch is {a_kind(watch)}: expected a function of a text.")
    require(kept is None or isinstance(kept, Kept), f"kept is {a_kind(kept)}: expected a lab.trainings.KeptInFolder.")
    if memory is not None:
        check_count("memory", memory)
    some = training.drawn(samples, seed=seed)
    held_out = None if some.X_test is None else (some.X_test, some.y_test)
    start = Start(some.f, some.checkpoints[0], some.X, some.y, held_out, order, some.loss, memory)
    around = "" if kept is None else _key_of_start(start)
    found = []
    for number, params in enumerate(some.checkpoints[1:], start=1):
        watch(f"checkpoint {number} of {len(some.checkpoints) - 1}")
        key = "" if kept is None else of_arrays(around, _leaves(params))
        numbers = None if kept is None else kept.read(key)
        found.append(start.measure(params) if numbers is None else Regime.read(numbers))
        if kept is not None and numbers is None:
            kept.write(key, found[-1].summary())
    return Course(some.names[1:], tuple(found))


def _key_of_start(start: Start) -> str:
    """What numbers depend on but for our code and the checkpoint: the network's own program, its start, and data."""
    program = eqx.filter_make_jaxpr(start.f)(start.params0, take(start.X, slice(0, 1)))[0]
    text = re.sub(r"0x[0-9a-f]+", "", str(program.jaxpr))  # where a function lies in memory
    y, held_out = start.y, start.held_out
    parts = (list(program.consts), _leaves(start.params0), start.X, y, held_out)
    return of_arrays(text, start.order, start.loss, parts)


def _leaves(params: PyTree) -> PyTree:
    return eqx.filter(params, eqx.is_array)
