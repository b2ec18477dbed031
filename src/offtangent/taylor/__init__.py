"""A network seen through its derivatives: every term, of every order, for any f(params, x)."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.taylor import checks as checks
    from offtangent.taylor import two_layer as two_layer
    from offtangent.taylor.curvature import certificate as certificate
    from offtangent.taylor.curvature import sharpness as sharpness
    from offtangent.taylor.expansion import expand as expand
    from offtangent.taylor.expansion import linearise as linearise

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "expansion": "expand linearise",
            "curvature": "certificate sharpness",
        },
    )
