"""One training loop over optax, its losses, and what makes it stable."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.training.divergence import Diverged as Diverged
    from offtangent.training.grids import search as search
    from offtangent.training.loop import train as train
    from offtangent.training.losses import HalfSquares as HalfSquares
    from offtangent.training.randomised import MeanLoss as MeanLoss

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
