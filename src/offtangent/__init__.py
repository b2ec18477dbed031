"""What a neural network learns on, and beyond, its tangent kernel.

The rooms load when they are first used, so ``import offtangent`` costs next to nothing:

    special     activations and polynomials
    data        inputs and labels
    networks    the learners of the papers
    taylor      a network seen through its derivatives
    linalg      spectra and solves
    kernels     a network seen as a kernel
    theory      what the papers prove, as functions
    training    one loop over optax
    regime      a trained network measured
    estimators  scikit-learn faces
    report      figures and pages
    lab         experiments: cells, executors, the store, claims
    papers      one module per figure or theorem
"""

import importlib
from types import ModuleType

from offtangent._version import __version__

ROOMS = (
    "special", "data", "networks", "taylor", "linalg", "kernels", "theory", "training", "regime", "estimators",
    "report", "lab", "papers",
)  # fmt: skip

__all__ = ["ROOMS", "__version__"]


def __getattr__(name: str) -> ModuleType:
    if name in ROOMS:
        return importlib.import_module(f"offtangent.{name}")
    raise AttributeError(f"module 'offtangent' has no attribute {name!r}; its rooms are {', '.join(ROOMS)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *ROOMS])
