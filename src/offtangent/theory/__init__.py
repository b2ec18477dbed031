"""What the papers prove, as functions: a room for each paper, whose text says which function is which statement."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory import allen_zhu_li as allen_zhu_li
    from offtangent.theory.arora import complexity as complexity
    from offtangent.theory.arora import generalisation_bound as generalisation_bound
    from offtangent.theory.arora import largest_stable_rate as largest_stable_rate
    from offtangent.theory.arora import predict_residual as predict_residual
    from offtangent.theory.arora import steps_to as steps_to
    from offtangent.theory.arora import worst_case_labels as worst_case_labels
    from offtangent.theory.bai_lee import RandomisedRisk as RandomisedRisk
    from offtangent.theory.ge_wang_zhao import QuadraticRisk as QuadraticRisk
    from offtangent.theory.nichani import R3 as R3
    from offtangent.theory.nichani import FeatureCovariance as FeatureCovariance

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "arora": "predict_residual steps_to largest_stable_rate complexity generalisation_bound worst_case_labels",
            "bai_lee": "RandomisedRisk",
            "nichani": "FeatureCovariance R3",
            "ge_wang_zhao": "QuadraticRisk",
        },
    )
