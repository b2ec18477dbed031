"""What a neural network learns on, and beyond, its tangent kernel.

The rooms load when they are first used, so ``import offtangent`` costs next to nothing:

    special     activations and polynomials
    report      figures and pages
    linalg      spectra and solves
    data        inputs and labels
    networks    the learners of the papers
    taylor      a network seen through its derivatives
    kernels     a network seen as a kernel
    theory      what the papers prove, a room for each
    training    one loop over optax
    labels      a user's labels, analysed
    interop     other people's networks: PyTorch
    regime      a trained network measured
    estimators  scikit-learn faces
    lab         experiments: cells, executors, the store, claims
    papers      one module per figure or theorem
"""

import importlib
from types import ModuleType

from offtangent._version import __version__

# Not from `typing`: loading it would take most of the program's first moment, in which Ctrl-C is still a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from offtangent import (
        data,
        estimators,
        interop,
        kernels,
        lab,
        labels,
        linalg,
        networks,
        papers,
        regime,
        report,
        special,
        taylor,
        theory,
        training,
    )

ROOMS = (
    "special",
    "report",
    "linalg",
    "data",
    "networks",
    "taylor",
    "kernels",
    "theory",
    "training",
    "labels",
    "interop",
    "regime",
    "estimators",
    "lab",
    "papers",
)

__all__ = [
    "data",
    "estimators",
    "interop",
    "kernels",
    "lab",
    "labels",
    "linalg",
    "networks",
    "papers",
    "regime",
    "report",
    "special",
    "taylor",
    "theory",
    "training",
    "__version__",
]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name

    def __getattr__(name: str) -> ModuleType:
        if name in ROOMS:
            return importlib.import_module(f"offtangent.{name}")
        raise AttributeError(f"module 'offtangent' has no attribute {name!r}; its rooms are {', '.join(ROOMS)}")

    def __dir__() -> list[str]:
        return sorted(__all__)
