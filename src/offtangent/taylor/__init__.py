"""A network seen through its derivatives: every term, of every order, for any f(params, x)."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.taylor.curvature import certificate as certificate
    from offtangent.taylor.curvature import sharpness as sharpness
    from offtangent.taylor.expansion import expand as expand
    from offtangent.taylor.expansion import linearise as linearise

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "expansion": "expand linearise",
        "curvature": "certificate sharpness",
    },
)
