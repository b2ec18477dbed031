"""A user's trained network: which order of its Taylor series carries it."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.regime import course as course
    from offtangent.regime import course_page as course_page
    from offtangent.regime import kernel as kernel
    from offtangent.regime import measured as measured
    from offtangent.regime import movement as movement
    from offtangent.regime import neurons as neurons
    from offtangent.regime import page as page
    from offtangent.regime import scores as scores
    from offtangent.regime import words as words
    from offtangent.regime.measure import measure_regime as measure_regime
    from offtangent.regime.training import Training as Training

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "measure": "measure_regime",
            "training": "Training",
        },
    )
