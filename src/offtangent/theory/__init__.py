"""What the papers prove, as functions."""

from offtangent.theory.analysis import LabelAnalysis, analyse_labels
from offtangent.theory.concentration import (
    deviation_bound,
    gram_deviation_bound,
    initial_output_bound,
    initial_residual_bound,
    required_width,
)
from offtangent.theory.dynamics import (
    PredictedResidual,
    largest_stable_rate,
    predict_residual,
    steps_to,
)
from offtangent.theory.generalisation import (
    Complexity,
    GeneralisationBound,
    RademacherBound,
    absolute_loss,
    complexity,
    generalisation_bound,
    rademacher_bound,
    rademacher_gap_bound,
    ramp_loss,
    zero_one_loss,
)
from offtangent.theory.labels import worst_case_labels
from offtangent.theory.learnability import Target, sample_size, tensor_powers
from offtangent.theory.linearised import Features, linearised_distance, linearised_outputs, linearised_weights
from offtangent.theory.movement import (
    MovementBound,
    feature_change_bound,
    flip_candidates,
    flip_counts,
    flip_probability,
    flip_probability_bound,
    flip_sum_bound,
    kernel_change_bound,
    movement_bound,
    movement_radius,
)
from offtangent.theory.noise import InverseMoments, NoiseEstimate, noise_bound, noise_estimate, noise_variance_bound
from offtangent.theory.predictions import Descent, Predicted, gradient_descent
from offtangent.theory.prescriptions import Prescription, prescribe

__all__ = [
    "Complexity",
    "Descent",
    "Features",
    "GeneralisationBound",
    "LabelAnalysis",
    "InverseMoments",
    "MovementBound",
    "NoiseEstimate",
    "Predicted",
    "PredictedResidual",
    "Prescription",
    "RademacherBound",
    "Target",
    "absolute_loss",
    "analyse_labels",
    "complexity",
    "deviation_bound",
    "feature_change_bound",
    "flip_candidates",
    "flip_counts",
    "flip_probability",
    "flip_probability_bound",
    "flip_sum_bound",
    "generalisation_bound",
    "gradient_descent",
    "gram_deviation_bound",
    "initial_output_bound",
    "initial_residual_bound",
    "kernel_change_bound",
    "largest_stable_rate",
    "linearised_distance",
    "linearised_outputs",
    "linearised_weights",
    "movement_bound",
    "movement_radius",
    "noise_bound",
    "noise_estimate",
    "noise_variance_bound",
    "predict_residual",
    "prescribe",
    "rademacher_bound",
    "rademacher_gap_bound",
    "ramp_loss",
    "required_width",
    "sample_size",
    "steps_to",
    "tensor_powers",
    "worst_case_labels",
    "zero_one_loss",
]
