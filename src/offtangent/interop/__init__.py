"""Other people's networks: PyTorch modules as f(params, x), their weights from files.

Neither PyTorch nor JAX is loaded before one of these names is used; `pip install 'offtangent[torch]'` brings PyTorch.
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.interop import arrays as arrays
    from offtangent.interop import elementwise as elementwise
    from offtangent.interop import exporting as exporting
    from offtangent.interop import indexing as indexing
    from offtangent.interop import layers as layers
    from offtangent.interop import network as network
    from offtangent.interop import operations as operations
    from offtangent.interop import pooling as pooling
    from offtangent.interop import products as products
    from offtangent.interop import reductions as reductions
    from offtangent.interop import shapes as shapes
    from offtangent.interop import states as states
    from offtangent.interop import trainings as trainings
    from offtangent.interop import translation as translation
    from offtangent.interop.pytorch import from_torch as from_torch

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "pytorch": "from_torch",
        },
    )
