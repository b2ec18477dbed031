"""Formulas alone: activations with their derivatives, Hermite polynomials and coefficients."""

from offtangent.special.activations import (
    CATALOGUE,
    Activation,
    activation,
    erf,
    gelu,
    quadratic,
    relu,
    relu3,
    sigmoid,
    sin,
    softplus,
    tanh,
)
from offtangent.special.hermite import HermiteEnergy, hermite, hermite_coefficients, hermite_energy

__all__ = [
    "Activation",
    "activation",
    "CATALOGUE",
    "relu",
    "relu3",
    "quadratic",
    "sigmoid",
    "tanh",
    "softplus",
    "erf",
    "gelu",
    "sin",
    "hermite",
    "hermite_coefficients",
    "hermite_energy",
    "HermiteEnergy",
]
