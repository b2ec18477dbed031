"""A training of a PyTorch module as one of JAX."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from offtangent._checks import require
from offtangent._errors import a_kind
from offtangent.regime.training import Training


def is_module(f: Any) -> bool:
    """Whether f is a PyTorch module; without PyTorch there is none."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


def translated(training: Training) -> Training:
    """Make a training of a PyTorch module, with its state dicts, one of JAX; another is returned as it is.

    Buffers, such as the running statistics of batch norm, are those of the last checkpoint at every one.
    """
    if not is_module(training.f):
        return training
    from offtangent.interop import from_torch
    from offtangent.interop.states import load_state, parameters_of

    states = [load_state(one) if isinstance(one, str | Path) else one for one in training.checkpoints]
    for number, state in enumerate(states):
        require(
            isinstance(state, Mapping),
            f"Checkpoint {number} is {a_kind(state)}: expected a state dict of the module, or the name of its file.",
        )
    return training
