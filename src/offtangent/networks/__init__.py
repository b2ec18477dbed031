"""The learners of the papers, each an initialisation and a function f(params, x)."""

from offtangent.networks.quadratic import PolynomialNet, QuadraticNet
from offtangent.networks.resnet import DirectHidden, DirectResNet, FullyConnected, Hidden, ResNet
from offtangent.networks.standard import MLP, ConvNet, Layer
from offtangent.networks.two_layer import TwoLayer

__all__ = [
    "TwoLayer",
    "MLP",
    "ConvNet",
    "Layer",
    "QuadraticNet",
    "PolynomialNet",
    "ResNet",
    "Hidden",
    "DirectResNet",
    "DirectHidden",
    "FullyConnected",
]
