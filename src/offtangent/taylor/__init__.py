"""A network seen through its derivatives: every term, of every order, for any f(params, x)."""

from offtangent.taylor.expansion import Expansion, TaylorModel, expand, linearise
from offtangent.taylor.two_layer import TwoLayerExpansion

__all__ = ["Expansion", "TaylorModel", "TwoLayerExpansion", "expand", "linearise"]
