"""What the papers prove, as functions."""

from offtangent.theory.concentration import (
    deviation_bound,
    gram_deviation_bound,
    initial_output_bound,
    required_width,
)
from offtangent.theory.dynamics import (
    PredictedResidual,
    largest_stable_rate,
    predict_residual,
    steps_to,
)
from offtangent.theory.labels import worst_case_labels

__all__ = [
    "PredictedResidual",
    "deviation_bound",
    "gram_deviation_bound",
    "initial_output_bound",
    "largest_stable_rate",
    "predict_residual",
    "required_width",
    "steps_to",
    "worst_case_labels",
]
