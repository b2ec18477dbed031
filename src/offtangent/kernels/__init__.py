"""A network seen as a kernel: closed forms, Gram operators, kernels at finite width."""

from offtangent.kernels.angular import AngularKernel, relu_hidden
from offtangent.kernels.finite import tangent_gram
from offtangent.kernels.gram import Gram, Kernel

__all__ = ["AngularKernel", "Gram", "Kernel", "relu_hidden", "tangent_gram"]
