"""A training as a user hands it in: the network, its checkpoints, and data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from offtangent._checks import check_count, require
from offtangent._errors import InputError, a_kind
from offtangent.kernels.blocks import length
from offtangent.regime.scores import LOSSES


@dataclass(frozen=True, eq=False)
class Training:
    """A network, its parameters along a training, and the data it is looked at with.

    Attributes:
        f: The network, a function f(params, X) of a batch, whose outputs have one row for each input.
        checkpoints: A list of its parameters, from the initial to the trained ones: two pytrees at least. It is empty
            where the command line names their files.
        X: Inputs it was trained on, an array or a pytree of arrays whose first axis counts samples.
        y: Their labels, or None; whole numbers for classes.
        X_test: Inputs it was not trained on, or None.
        y_test: Their labels.
        steps: The step, or epoch, of every checkpoint, by default 0, 1, ….
        loss: "cross-entropy", "logistic" or "squared" for held-out predictions, by default what fits the labels.

    >>> run = Training(lambda w, x: x @ w, [jnp.zeros(2), jnp.ones(2)], jnp.eye(2), y=[0, 1])
    >>> run.names
    ('0', '1')
    """

    f: Callable[..., Any]
    checkpoints: Any
    X: PyTree
    y: Any = None
    X_test: PyTree = None
    y_test: Any = None
    steps: Sequence[float | int] | None = None
    loss: str | None = None

    def __post_init__(self) -> None:
        require(
            callable(self.f),
            f"f is {a_kind(self.f)}: expected a function f(params, X), or a PyTorch module.",
        )
        require(
            isinstance(self.checkpoints, Sequence) and not isinstance(self.checkpoints, str | bytes),
            f"checkpoints is {a_kind(self.checkpoints)}: expected a list of parameters, [params0, …, params].",
        )
        require(
            len(self.checkpoints) != 1,
            "checkpoints has one entry: expected two at least, the parameters before training and those "
            "after, [params0, params].",
        )
        if self.steps is not None:
            _check_steps(self.steps, len(self.checkpoints))
        require(
            (self.X_test is None) == (self.y_test is None),
            "X_test and y_test go together: held-out inputs with their labels.",
        )
        require(self.loss in (None, *LOSSES), f"loss={self.loss!r} is none of {', '.join(LOSSES)}.")
        _check_sizes("", self.X, self.y)
        if self.X_test is not None:
            _check_sizes("_test", self.X_test, self.y_test)

    @property
    def names(self) -> tuple[str, ...]:
        """What the checkpoints are called: their steps."""
        return tuple(f"{step:g}" for step in (range(len(self.checkpoints)) if self.steps is None else self.steps))

    def drawn(self, samples: int, *, seed: int = 0) -> "Training":
        """Draw samples at random, of the inputs and of those held out; all, where there are no more.

        Args:
            samples: How many of each.
            seed: Of the draw.

        Returns:
            The same training with fewer samples.

        Raises:
            InputError: If there are no checkpoints.
        """
        check_count("samples", samples)
        require(
            len(self.checkpoints) > 0,
            "There are no checkpoints: give the parameters before and after training, [params0, params], or of a "
            "PyTorch module the files of its state dicts.",
        )
        rng = np.random.default_rng(seed)
        X, y = _some(self.X, self.y, samples, rng)
        X_test, y_test = (None, None) if self.X_test is None else _some(self.X_test, self.y_test, samples, rng)
        return replace(self, X=X, y=y, X_test=X_test, y_test=y_test)


def _check_steps(steps: Any, count: int) -> None:
    try:
        numbers = [float(step) for step in steps]
    except (TypeError, ValueError):
        raise InputError(f"steps is {steps!r}: expected a number for each checkpoint, [0, 100, 1000], say.") from None
    require(np.isfinite(numbers).all(), f"steps={list(steps)}: expected finite numbers.")
    require(
        len(numbers) == count or count == 0,
        f"steps has {len(numbers)} entries for {count} checkpoints: expected one for each of them, the first for the "
        "initial parameters.",
    )


def _check_sizes(name: str, X: PyTree, y: Any) -> None:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(X)]
    require(
        bool(shapes) and all(shape and shape[0] == shapes[0][0] for shape in shapes),
        f"X{name} must hold arrays whose first axis counts samples, and has shapes {', '.join(map(str, shapes))}.",
    )
    require(shapes[0][0] > 0, f"X{name} has no samples: expected at least one.")
    if y is None:
        return
    try:
        found = np.shape(y)
    except ValueError as error:  # ragged lists
        raise InputError(f"y{name} is no array: {error}. Give rows of equal length.") from None
    require(
        found[:1] == shapes[0][:1],
        f"y{name} has shape {found} for {shapes[0][0]} samples in X{name}: expected a label for each.",
    )


def _some(X: PyTree, y: Any, samples: int, rng: np.random.Generator) -> tuple[PyTree, Any]:
    n = length(jax.tree.map(np.asarray, X))
    if n <= samples:
        return jax.tree.map(jnp.asarray, X), None if y is None else np.asarray(y)
    rows = np.sort(rng.choice(n, samples, replace=False))
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[rows]), X), None if y is None else np.asarray(y)[rows]
