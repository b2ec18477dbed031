"""A network seen as a kernel: closed forms, Gram operators, kernels at finite width."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.kernels.closed_forms import gaussian as gaussian
    from offtangent.kernels.closed_forms import relu_hidden as relu_hidden
    from offtangent.kernels.convolution import convolutional as convolutional
    from offtangent.kernels.empirical import empirical_conjugate as empirical_conjugate
    from offtangent.kernels.empirical import empirical_ntk as empirical_ntk
    from offtangent.kernels.fully_connected import deep as deep
    from offtangent.kernels.gram import Gram as Gram
    from offtangent.kernels.names import named_kernel as named_kernel
    from offtangent.kernels.regression import ridge_regression as ridge_regression

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
