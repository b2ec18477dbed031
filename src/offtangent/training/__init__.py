"""One training loop over optax, its losses, and what makes it stable."""

from offtangent.training.algorithm1 import Algorithm1State, Stationary, algorithm1, find_stationary
from offtangent.training.directions import (
    RegularisedLoss,
    add_perturbation,
    add_regulariser,
    chain,
    perturbed_descent,
)
from offtangent.training.grids import Bounded, Search, grid_sgd, refine, search
from offtangent.training.loop import Checkpoint, Diverged, History, train
from offtangent.training.losses import HalfSquares
from offtangent.training.randomised import (
    FreshSignsState,
    MeanLoss,
    add_penalty,
    fresh_signs,
    randomised_sgd,
    unsigned,
)
from offtangent.training.residual import residual_sgd
from offtangent.training.stability import Sharpness, sharpness

__all__ = [
    "Checkpoint",
    "Diverged",
    "HalfSquares",
    "History",
    "Sharpness",
    "sharpness",
    "train",
    "FreshSignsState",
    "MeanLoss",
    "add_penalty",
    "fresh_signs",
    "randomised_sgd",
    "unsigned",
    "RegularisedLoss",
    "add_perturbation",
    "add_regulariser",
    "chain",
    "perturbed_descent",
    "Algorithm1State",
    "Stationary",
    "algorithm1",
    "find_stationary",
    "residual_sgd",
    "Bounded",
    "Search",
    "grid_sgd",
    "refine",
    "search",
]
