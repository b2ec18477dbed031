"""Arora, Du, Hu, Li and Wang (2019): what the paper proves, as functions."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.arora.dynamics import *
    from offtangent.theory.arora.generalisation import *
    from offtangent.theory.arora.learnability import *
    from offtangent.theory.arora.linearised import *
    from offtangent.theory.arora.movement import *
    from offtangent.theory.arora.predictions import *
    from offtangent.theory.arora.prescriptions import *
    from offtangent.theory.arora.widths import *

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "dynamics": "PredictedResidual largest_stable_rate predict_residual steps_to worst_case_labels",
        "generalisation": (
            "Complexity GeneralisationBound RademacherBound absolute_loss complexity generalisation_bound "
            "rademacher_bound rademacher_gap_bound ramp_loss zero_one_loss"
        ),
        "learnability": "Target sample_size tensor_powers",
        "linearised": "Features linearised_distance linearised_outputs linearised_weights",
        "movement": (
            "MovementBound feature_change_bound flip_candidates flip_counts flip_probability flip_probability_bound "
            "flip_sum_bound kernel_change_bound movement_bound movement_radius"
        ),
        "predictions": "Descent Predicted gradient_descent",
        "prescriptions": "Prescription prescribe",
        "widths": "deviation_bound gram_deviation_bound initial_output_bound initial_residual_bound required_width",
    },
)
