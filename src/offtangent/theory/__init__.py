"""What the papers prove, as functions."""

from offtangent.networks.quadratic import symmetric_dimension
from offtangent.theory.advice import Advice, Cut, Measured
from offtangent.theory.advise import advise
from offtangent.theory.analysis import LabelAnalysis, analyse_labels
from offtangent.theory.averages import Average
from offtangent.theory.certificates import (
    Certificate,
    certificate,
)
from offtangent.theory.closeness import Closeness, Sides, risk_closeness
from offtangent.theory.concentration import (
    deviation_bound,
    gram_deviation_bound,
    initial_output_bound,
    initial_residual_bound,
    required_width,
)
from offtangent.theory.concept import (
    ConceptComplexity,
    composite_bound,
    concept_complexity,
    series_complexity,
    series_smoothness,
)
from offtangent.theory.dynamics import (
    PredictedResidual,
    largest_stable_rate,
    predict_residual,
    steps_to,
)
from offtangent.theory.energy_estimates import EnergyEstimate, degree_energies, departure
from offtangent.theory.escape import Energies, Movement, furthest
from offtangent.theory.expressivity import (
    Expression,
    RidgePower,
    column_norm,
    express,
    quadratic_part,
    xor_target,
)
from offtangent.theory.feature_alignment import Alignment, alignment, covariance_distance
from offtangent.theory.feature_blocks import Blocks, Boundary, Level, feature_blocks
from offtangent.theory.feature_norms import (
    FeatureTerm,
    MatrixRademacher,
    expected_input_spread,
    feature_rademacher,
    feature_term,
    input_spread,
    matrix_rademacher,
)
from offtangent.theory.feature_squares import (
    decoupled_subspace,
    feature_norm_bound,
    feature_rows,
    feature_square_floor,
    most_features,
    net_expansion,
    perturbed_feature_norm_bound,
    perturbed_singular_floor,
    spanning_floor,
    squared_features,
)
from offtangent.theory.features import FeatureCovariance
from offtangent.theory.finite_levels import FiniteLevel, finite_levels
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
from offtangent.theory.indicator import (
    IndicatorFunction,
    existence_hidden,
    existence_norm,
    existence_weights,
    indicator_mean,
    indicator_moment,
)
from offtangent.theory.joint_expressivity import (
    JointExpression,
    LinearExpression,
    express_jointly,
    express_low_degree,
)
from offtangent.theory.joint_landscape import JointLandscape, JointStationary
from offtangent.theory.joint_risk import JointRisk
from offtangent.theory.kernel_limits import (
    Theorem2,
    corollary71_samples,
    error_floor,
    least_alpha,
    memorising_bound,
    memorising_samples,
    needed_norm,
    theorem2,
    theorem2_samples,
)
from offtangent.theory.kernel_memorisation import MemorisingSolution, SubsetSolution, memorise, memorise_on_top
from offtangent.theory.kernel_risk import ProductRisk, product_risk
from offtangent.theory.labels import worst_case_labels
from offtangent.theory.landscape import (
    LandscapeInequality,
    StationaryBound,
    clean_landscape,
    penalty_landscape,
    randomised_landscape,
    stationary_bound,
)
from offtangent.theory.learnability import Target, sample_size, tensor_powers
from offtangent.theory.learning_curves import KernelCurve, kernel_curve
from offtangent.theory.linearised import Features, linearised_distance, linearised_outputs, linearised_weights
from offtangent.theory.memorisation import (
    Capacity,
    admissible_features,
    least_width,
    memorisation,
    most_samples,
    theorem_features,
)
from offtangent.theory.moment_matching import (
    MatchedMoments,
    TermMoments,
    extracting_weights,
    matched_moments,
    order_limit,
    pair_terms,
    ridge_columns,
    term_moments,
)
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
from offtangent.theory.parity_network import LowNormParity, low_norm_parity, padded_copies, parity_correlation
from offtangent.theory.penalties import (
    LANDSCAPE_CONSTANT,
    PenaltyChoice,
    mean_penalty_hessian,
    penalty,
    penalty_choice,
    penalty_gradient,
    penalty_hessian,
)
from offtangent.theory.perturbed_descent import DescentSettings, Theorem4, algorithm1_settings, theorem4
from offtangent.theory.population import clean_population_risk, population_risk, randomised_population_risk
from offtangent.theory.predictions import Descent, Predicted, gradient_descent
from offtangent.theory.prescriptions import Prescription, prescribe
from offtangent.theory.quadratic_bounds import (
    GeneralisationGap,
    SampleSizes,
    coupling_width,
    generalisation_gap,
    initial_norm_bound,
    largest_square_bound,
    localisation_radius,
    polynomial_samples,
    quadratic_samples,
    stationary_width,
    xor_samples,
)
from offtangent.theory.quadratic_risk import (
    Curvature,
    QuadraticRisk,
    Smoothness,
    interpolant,
    negative_curvature_descent,
    smoothness,
)
from offtangent.theory.random_features import (
    random_feature_energy,
    random_feature_energy_bound,
    random_feature_variance,
    random_feature_weights,
    relu_hermite,
    relu_series,
    relu_series_bound,
)
from offtangent.theory.randomised import (
    CleanRisk,
    RandomisedRisk,
    empirical_risk,
)
from offtangent.theory.regulariser_choice import RegulariserChoice, RegulariserSizes, regulariser_choice
from offtangent.theory.regularisers import R1, R2, R3, R4, RandomisedR1, Regulariser, Stacked
from offtangent.theory.residual import (
    Coupling,
    DescentPoint,
    SignChanges,
    Signs,
    coupling,
    descent_parts,
    gradient_parts,
    sign_changes,
    sign_patterns,
)
from offtangent.theory.signed_regularisers import SignedRegularisers, SignMeans, sign_energy
from offtangent.theory.signs import (
    SignIdentities,
    all_signs,
    flip,
    random_signs,
    sign_identities,
)
from offtangent.theory.sphere_expressivity import SparseExpression, SphereRidge, express_sparse
from offtangent.theory.survey import LandscapePoint, landscape_survey
from offtangent.theory.symmetric_tensors import (
    SymmetricTensor,
    decoupled_variance,
    decoupled_variance_floor,
    gaussian_variance,
    gaussian_variance_floor,
    hermite_basis,
    hermite_expansion,
    isometric_power,
    leading_hermite,
    log_covering_bound,
    multi_indices,
    reduced_power,
    rv_norm_floor,
    symmetric_product,
)
from offtangent.theory.table1 import ResNetSettings, resnet_settings, theorem1
from offtangent.theory.tangent import LinearPart, TangentFeatures
from offtangent.theory.tensor_squares import SmallestSingular, leave_one_out_distances, smallest_singular
from offtangent.theory.worst_signs import (
    flip_fraction,
    most_flips,
    operator_limit,
    output_limit,
    worst_change,
    worst_operator,
    worst_output,
    worst_relu,
)

__all__ = [
    "Complexity", "Descent", "Features", "GeneralisationBound", "LabelAnalysis", "InverseMoments", "MovementBound",
    "NoiseEstimate", "Predicted", "PredictedResidual", "Prescription", "RademacherBound", "Target", "absolute_loss",
    "analyse_labels", "complexity", "deviation_bound", "feature_change_bound", "flip_candidates", "flip_counts",
    "flip_probability", "flip_probability_bound", "flip_sum_bound", "generalisation_bound", "gradient_descent",
    "gram_deviation_bound", "initial_output_bound", "initial_residual_bound", "kernel_change_bound",
    "largest_stable_rate", "linearised_distance", "linearised_outputs", "linearised_weights", "movement_bound",
    "movement_radius", "noise_bound", "noise_estimate", "noise_variance_bound", "predict_residual", "prescribe",
    "rademacher_bound", "rademacher_gap_bound", "ramp_loss", "required_width", "sample_size", "steps_to",
    "tensor_powers", "worst_case_labels", "zero_one_loss", "Expression", "RidgePower", "column_norm", "express",
    "quadratic_part", "xor_target", "Average", "FeatureTerm", "MatrixRademacher", "expected_input_spread",
    "feature_rademacher", "feature_term", "input_spread", "matrix_rademacher", "MatchedMoments", "TermMoments",
    "extracting_weights", "matched_moments", "order_limit", "pair_terms", "ridge_columns", "term_moments",
    "GeneralisationGap", "SampleSizes", "coupling_width", "generalisation_gap", "initial_norm_bound",
    "largest_square_bound", "localisation_radius", "polynomial_samples", "quadratic_samples", "stationary_width",
    "xor_samples", "random_feature_energy", "random_feature_energy_bound", "random_feature_variance",
    "random_feature_weights", "relu_hermite", "relu_series", "relu_series_bound", "Certificate", "certificate",
    "Closeness", "Sides", "risk_closeness", "LandscapeInequality", "LandscapePoint", "StationaryBound",
    "landscape_survey", "clean_landscape", "penalty_landscape", "randomised_landscape", "stationary_bound",
    "LANDSCAPE_CONSTANT", "PenaltyChoice", "mean_penalty_hessian", "penalty", "penalty_choice", "penalty_gradient",
    "penalty_hessian", "CleanRisk", "RandomisedRisk", "empirical_risk", "clean_population_risk", "population_risk",
    "randomised_population_risk", "SignIdentities", "all_signs", "flip", "random_signs", "sign_identities", "Alignment",
    "alignment", "covariance_distance", "Blocks", "Boundary", "Level", "feature_blocks", "FeatureCovariance", "Advice",
    "Cut", "Measured", "advise", "EnergyEstimate", "degree_energies", "departure", "KernelCurve", "kernel_curve",
    "FiniteLevel", "finite_levels", "Energies", "Movement", "furthest", "RegulariserChoice", "RegulariserSizes",
    "regulariser_choice", "R1", "R2", "R3", "R4", "RandomisedR1", "Regulariser", "Stacked", "LinearPart",
    "TangentFeatures", "JointExpression", "JointLandscape", "JointRisk", "JointStationary", "LinearExpression",
    "SignMeans", "SignedRegularisers", "SparseExpression", "SphereRidge", "express_jointly", "express_low_degree",
    "express_sparse", "sign_energy", "Capacity", "admissible_features", "least_width", "memorisation", "most_samples",
    "symmetric_dimension", "theorem_features", "DescentSettings", "Theorem4", "algorithm1_settings", "theorem4",
    "Curvature", "QuadraticRisk", "Smoothness", "interpolant", "negative_curvature_descent", "smoothness",
    "SmallestSingular", "leave_one_out_distances", "smallest_singular", "SymmetricTensor", "decoupled_variance",
    "decoupled_variance_floor", "gaussian_variance", "gaussian_variance_floor", "hermite_basis", "hermite_expansion",
    "isometric_power", "leading_hermite", "log_covering_bound", "multi_indices", "reduced_power", "rv_norm_floor",
    "symmetric_product", "decoupled_subspace", "feature_norm_bound", "feature_rows", "feature_square_floor",
    "squared_features", "most_features", "perturbed_feature_norm_bound", "perturbed_singular_floor", "spanning_floor",
    "net_expansion", "ConceptComplexity", "composite_bound", "concept_complexity", "series_complexity",
    "series_smoothness", "IndicatorFunction", "existence_hidden", "existence_norm", "existence_weights",
    "indicator_mean", "indicator_moment", "Coupling", "DescentPoint", "SignChanges", "Signs", "coupling",
    "descent_parts", "gradient_parts", "sign_changes", "sign_patterns", "ResNetSettings", "resnet_settings", "theorem1",
    "LowNormParity", "low_norm_parity", "padded_copies", "parity_correlation", "flip_fraction", "most_flips",
    "operator_limit", "output_limit", "worst_change", "worst_operator", "worst_output", "worst_relu", "Theorem2",
    "theorem2", "theorem2_samples", "memorising_samples", "least_alpha", "corollary71_samples", "needed_norm",
    "error_floor", "memorising_bound", "MemorisingSolution", "SubsetSolution", "memorise", "memorise_on_top",
    "ProductRisk", "product_risk",
]  # fmt: skip
