"""A network seen as a kernel: closed forms, Gram operators, kernels at finite width."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.kernels import angular as angular
    from offtangent.kernels import arcs as arcs
    from offtangent.kernels import coordinates as coordinates
    from offtangent.kernels import correlation as correlation
    from offtangent.kernels import cross as cross
    from offtangent.kernels import cube as cube
    from offtangent.kernels import definiteness as definiteness
    from offtangent.kernels import expansion as expansion
    from offtangent.kernels import finite as finite
    from offtangent.kernels import inverse as inverse
    from offtangent.kernels import moments as moments
    from offtangent.kernels import pairs as pairs
    from offtangent.kernels import residual as residual
    from offtangent.kernels import ridges as ridges
    from offtangent.kernels import rounding as rounding
    from offtangent.kernels import series as series
    from offtangent.kernels import solves as solves
    from offtangent.kernels import trusting as trusting
    from offtangent.kernels.closed_forms import gaussian as gaussian
    from offtangent.kernels.closed_forms import relu_hidden as relu_hidden
    from offtangent.kernels.convolution import convolutional as convolutional
    from offtangent.kernels.empirical import empirical_conjugate as empirical_conjugate
    from offtangent.kernels.empirical import empirical_ntk as empirical_ntk
    from offtangent.kernels.fully_connected import deep as deep
    from offtangent.kernels.gram import Gram as Gram
    from offtangent.kernels.names import named_kernel as named_kernel
    from offtangent.kernels.regression import ridge_regression as ridge_regression

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "gram": "Gram",
            "closed_forms": "relu_hidden gaussian",
            "fully_connected": "deep",
            "convolution": "convolutional",
            "names": "named_kernel",
            "empirical": "empirical_ntk empirical_conjugate",
            "regression": "ridge_regression",
        },
    )
