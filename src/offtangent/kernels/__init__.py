"""A network seen as a kernel: closed forms, Gram operators, kernels at finite width."""

from offtangent.kernels.angular import AngularKernel
from offtangent.kernels.closed_forms import (
    arc_cosine,
    erf_output,
    gaussian,
    relu3_hidden,
    relu_both,
    relu_hidden,
    relu_output,
    tensor_square,
)
from offtangent.kernels.convolution import ConvolutionalKernel, convolutional
from offtangent.kernels.coordinates import Coordinates, CorrelationFit, correlation_regression, cube_coefficients
from offtangent.kernels.correlation import (
    CORRELATION_KERNELS,
    arcsine,
    check_correlation,
    correlation_kernel,
    linear_plus_power,
    recursive,
)
from offtangent.kernels.cross import Cross
from offtangent.kernels.cube import CubeKernel
from offtangent.kernels.deep import deep, hermite_remainder
from offtangent.kernels.empirical import TangentKernel, empirical_conjugate, empirical_ntk
from offtangent.kernels.finite import tangent_gram
from offtangent.kernels.gram import Gram, Kernel
from offtangent.kernels.inverse import Inverse
from offtangent.kernels.layered import layered_ntk
from offtangent.kernels.names import KERNELS, named_kernel
from offtangent.kernels.regression import (
    LeaveOneOut,
    RidgePath,
    RidgeRegression,
    ridge_for_norm,
    ridge_path,
    ridge_regression,
)
from offtangent.kernels.resnet import resnet
from offtangent.kernels.ridges import RegularisedCurve, regularised

__all__ = [
    "relu_hidden",
    "relu_output",
    "relu_both",
    "relu3_hidden",
    "tensor_square",
    "arc_cosine",
    "gaussian",
    "erf_output",
    "deep",
    "hermite_remainder",
    "AngularKernel",
    "Kernel",
    "Gram",
    "Cross",
    "RegularisedCurve",
    "regularised",
    "KERNELS",
    "named_kernel",
    "ridge_regression",
    "RidgeRegression",
    "LeaveOneOut",
    "ridge_path",
    "ridge_for_norm",
    "RidgePath",
    "Inverse",
    "tangent_gram",
    "empirical_ntk",
    "empirical_conjugate",
    "TangentKernel",
    "CORRELATION_KERNELS",
    "arcsine",
    "linear_plus_power",
    "recursive",
    "resnet",
    "correlation_kernel",
    "check_correlation",
    "CubeKernel",
    "cube_coefficients",
    "correlation_regression",
    "CorrelationFit",
    "Coordinates",
    "layered_ntk",
    "ConvolutionalKernel",
    "convolutional",
]
