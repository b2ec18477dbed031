"""Where inputs and labels come from: distributions, targets, image sets, label noise, a user's own file.

Everything here is host-level and returns NumPy float64: X is n×d with samples as rows, y has length n.
JAX and scikit-learn are imported only by the functions that need them.
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.data import catalogue as catalogue
    from offtangent.data import duplicates as duplicates
    from offtangent.data import hierarchy as hierarchy
    from offtangent.data import labels as labels
    from offtangent.data import targets as targets
    from offtangent.data.distributions import hypercube as hypercube
    from offtangent.data.distributions import sphere as sphere
    from offtangent.data.fetch import download as download
    from offtangent.data.files import load as load
    from offtangent.data.images import cifar10 as cifar10
    from offtangent.data.images import digits as digits
    from offtangent.data.images import mnist as mnist
    from offtangent.data.preprocessing import preprocess as preprocess

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "files": "load",
            "images": "digits mnist cifar10",
            "fetch": "download",
            "distributions": "sphere hypercube",
            "preprocessing": "preprocess",
        },
    )
