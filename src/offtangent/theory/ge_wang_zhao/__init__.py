"""Ge, Wang and Zhao (2019): what the paper proves, as functions."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.ge_wang_zhao.capacity import *
    from offtangent.theory.ge_wang_zhao.descent import *
    from offtangent.theory.ge_wang_zhao.features import *
    from offtangent.theory.ge_wang_zhao.landscape import *
    from offtangent.theory.ge_wang_zhao.tensor_squares import *
    from offtangent.theory.ge_wang_zhao.tensors import *

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "capacity": "Capacity admissible_features least_width memorisation most_samples theorem_features",
        "descent": "DescentSettings Theorem4 algorithm1_settings theorem4",
        "features": (
            "decoupled_subspace feature_norm_bound feature_rows feature_square_floor most_features net_expansion "
            "perturbed_feature_norm_bound perturbed_singular_floor spanning_floor squared_features"
        ),
        "landscape": "Curvature QuadraticRisk Smoothness interpolant negative_curvature_descent smoothness",
        "tensor_squares": "SmallestSingular leave_one_out_distances smallest_singular",
        "tensors": (
            "SymmetricTensor decoupled_variance decoupled_variance_floor gaussian_variance gaussian_variance_floor "
            "hermite_basis hermite_expansion isometric_power leading_hermite log_covering_bound multi_indices "
            "reduced_power rv_norm_floor symmetric_product"
        ),
    },
)
