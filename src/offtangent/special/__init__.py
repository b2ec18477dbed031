"""Formulas alone: activations, what theorems ask of them, Hermite and Gegenbauer polynomials, the cube, losses."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.special import boolean as boolean
    from offtangent.special import derivatives as derivatives
    from offtangent.special import hermite_polynomials as hermite_polynomials
    from offtangent.special import sphere as sphere
    from offtangent.special.activations import activation as activation
    from offtangent.special.losses import Loss as Loss

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "activations": "activation",
            "losses": "Loss",
        },
    )
