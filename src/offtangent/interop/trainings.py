"""A training of a PyTorch module as one of JAX."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from offtangent._checks import require
from offtangent._errors import a_kind
from offtangent.regime.training import Training


def is_module(f: Any) -> bool:
    """Whether f is a PyTorch module; without PyTorch there is none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def translated(training: Training) -> Training:
    """Make a training of a PyTorch module, with its state dicts, one of JAX; another is returned as it is.

    Buffers and frozen parameters, such as the running statistics of batch norm, are those of the last checkpoint at
    every one: the network has to be one function of its parameters.

    Args:
        training: What a user handed in.

    Returns:
        The same training with a function of JAX, its parameters, and arrays.
    """
    if not is_module(training.f) or not training.checkpoints:
        return training
    import torch

    from offtangent.interop import from_torch
    from offtangent.interop.states import read_state

    X, X_test = _arrays(training.X), _arrays(training.X_test)
    few = jax.tree.map(lambda leaf: torch.as_tensor(np.array(leaf[:2])), X)
    f, _ = from_torch(training.f, few)
    states = []
    for number, state in enumerate(training.checkpoints):
        require(
            isinstance(state, str | Path | Mapping),
            f"Checkpoint {number} is {a_kind(state)}: expected a state dict of the module, or the name of its file.",
        )
        states.append(read_state(f, state))
    y, y_test = _arrays(training.y), _arrays(training.y_test)
    params = [one for _, one in states]
    return replace(training, f=states[-1][0], checkpoints=params, X=X, y=y, X_test=X_test, y_test=y_test)


def _arrays(tree: PyTree) -> PyTree:
    """Tensors as arrays; all else as it is."""
    import torch

    def array(leaf: Any) -> Any:
        return leaf.detach().cpu().numpy() if isinstance(leaf, torch.Tensor) else jnp.asarray(leaf)

    return None if tree is None else jax.tree.map(array, tree)
