"""Formulas alone: activations, what theorems ask of them, Hermite and Gegenbauer polynomials, the cube, losses."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.special.activations import activation as activation
    from offtangent.special.losses import Loss as Loss

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "activations": "activation",
        "losses": "Loss",
    },
)
