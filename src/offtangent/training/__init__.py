"""One training loop over optax, its losses, and what makes it stable."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.training import arguments as arguments
    from offtangent.training import checkpoint as checkpoint
    from offtangent.training import directions as directions
    from offtangent.training import perturbed as perturbed
    from offtangent.training import two_rates as two_rates
    from offtangent.training.divergence import Diverged as Diverged
    from offtangent.training.grids import search as search
    from offtangent.training.loop import train as train
    from offtangent.training.losses import HalfSquares as HalfSquares
    from offtangent.training.randomised import MeanLoss as MeanLoss

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "loop": "train",
            "divergence": "Diverged",
            "losses": "HalfSquares",
            "randomised": "MeanLoss",
            "grids": "search",
        },
    )
