"""A user's trained network: which order of its Taylor series carries it."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.regime import page as page
    from offtangent.regime.measure import measure_regime as measure_regime

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "measure": "measure_regime",
        },
    )
