"""Bai and Lee (2020): what the paper proves, as functions."""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.bai_lee.assumptions import *
    from offtangent.theory.bai_lee.bounds import *
    from offtangent.theory.bai_lee.closeness import *
    from offtangent.theory.bai_lee.complexity import *
    from offtangent.theory.bai_lee.contract import *
    from offtangent.theory.bai_lee.expressivity import *
    from offtangent.theory.bai_lee.landscape import *
    from offtangent.theory.bai_lee.orders import *
    from offtangent.theory.bai_lee.penalties import *
    from offtangent.theory.bai_lee.population import *
    from offtangent.theory.bai_lee.random_features import *
    from offtangent.theory.bai_lee.risks import *
    from offtangent.theory.bai_lee.signs import *
    from offtangent.theory.bai_lee.survey import *

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "assumptions": "AssumptionA AssumptionPart assumption_a",
        "bounds": (
            "GeneralisationGap SampleSizes coupling_width generalisation_gap initial_norm_bound largest_square_bound "
            "localisation_radius polynomial_samples quadratic_samples stationary_width xor_samples"
        ),
        "closeness": "Closeness risk_closeness",
        "complexity": (
            "FeatureTerm MatrixRademacher expected_input_spread feature_rademacher feature_term input_spread "
            "matrix_rademacher"
        ),
        "contract": "Contract ContractPart loss_contract",
        "expressivity": "Expression RidgePower column_norm express quadratic_part xor_target",
        "landscape": (
            "LandscapeInequality StationaryBound clean_landscape penalty_landscape randomised_landscape "
            "stationary_bound"
        ),
        "orders": (
            "MatchedMoments TermMoments extracting_weights matched_moments order_limit pair_terms ridge_columns "
            "term_moments"
        ),
        "penalties": (
            "LANDSCAPE_CONSTANT PenaltyChoice mean_penalty_hessian penalty penalty_choice penalty_gradient "
            "penalty_hessian"
        ),
        "population": "clean_population_risk population_risk randomised_population_risk",
        "random_features": (
            "random_feature_energy random_feature_energy_bound random_feature_variance random_feature_weights "
            "relu_hermite relu_series relu_series_bound"
        ),
        "risks": "CleanRisk RandomisedRisk empirical_risk",
        "signs": "SignIdentities all_signs flip random_signs sign_identities",
        "survey": "LandscapePoint landscape_survey",
    },
)
