"""Allen-Zhu and Li (2019): what the paper proves, as functions."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.allen_zhu_li.concept import *
    from offtangent.theory.allen_zhu_li.gradients import *
    from offtangent.theory.allen_zhu_li.indicator import *
    from offtangent.theory.allen_zhu_li.kernel_limits import *
    from offtangent.theory.allen_zhu_li.kernel_risk import *
    from offtangent.theory.allen_zhu_li.memorising import *
    from offtangent.theory.allen_zhu_li.parameters import *
    from offtangent.theory.allen_zhu_li.parity import *
    from offtangent.theory.allen_zhu_li.worst_signs import *

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "concept": "ConceptComplexity composite_bound concept_complexity series_complexity series_smoothness",
        "gradients": (
            "Coupling DescentPoint SignChanges Signs coupling descent_parts gradient_parts sign_changes sign_patterns"
        ),
        "indicator": (
            "IndicatorFunction existence_hidden existence_norm existence_weights indicator_mean indicator_moment"
        ),
        "kernel_limits": (
            "Theorem2 corollary71_samples error_floor least_alpha memorising_bound memorising_samples needed_norm "
            "theorem2 theorem2_samples"
        ),
        "kernel_risk": "ProductRisk product_risk",
        "memorising": "MemorisingSolution SubsetSolution memorise memorise_on_top",
        "parameters": "ResNetSettings resnet_settings theorem1",
        "parity": "LowNormParity low_norm_parity padded_copies parity_correlation",
        "worst_signs": (
            "flip_fraction most_flips operator_limit output_limit worst_change worst_operator worst_output worst_relu"
        ),
    },
)
