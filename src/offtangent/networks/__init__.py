"""The learners of the papers, each an initialisation and a function f(params, x)."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.networks import layers as layers
    from offtangent.networks.fully_connected import FullyConnected as FullyConnected
    from offtangent.networks.quadratic import PolynomialNet as PolynomialNet
    from offtangent.networks.quadratic import QuadraticNet as QuadraticNet
    from offtangent.networks.resnet import ResNet as ResNet
    from offtangent.networks.standard import MLP as MLP
    from offtangent.networks.two_layer import TwoLayer as TwoLayer

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "two_layer": "TwoLayer",
            "resnet": "ResNet",
            "fully_connected": "FullyConnected",
            "quadratic": "QuadraticNet PolynomialNet",
            "standard": "MLP",
        },
    )
