"""Bai and Lee (2020): what the paper proves, as functions.

Each statement and where it lives, in the order of the paper: an object of `offtangent`, or an experiment such as
`bai_lee/coupling` where it is measured. The numbers are those of the project's checklist of the paper: A for what can
be computed, V-A for what can be verified, X-A for experiments, which the paper does not have.

    no.    statement                                                        where
    A8     Section 2: what is asked of a loss, part by part                 theory.bai_lee.loss_contract
    A8     Section 2: the logistic loss                                     special.losses.logistic
    A8     Section 2: the soft hinge loss                                   special.losses.soft_hinge
    A9     Section 2: L_P(f), the population risk                           theory.bai_lee.population_risk
    A1     Eq. (1): the two-layer network, of which W is trained            networks.TwoLayer
    A3     Assumption A: the three constants of an activation               theory.bai_lee.assumption_a
    A3     Assumption A: relu³/6, its example (there without the 6)         special.activations.relu3
    A15    Section 2.1: ‖W‖_{2,p}                                           theory.bai_lee.column_norm
    A4     Section 3: f^L, f^Q and all further terms in closed form         taylor.two_layer.TwoLayerExpansion
    A4     Section 3: the terms of any network                              taylor.expand
    A4     Section 3: f^Q alone, in float64                                 theory.bai_lee.quadratic_part
    A7     Section 3: the linear model f^L of any network                   taylor.linearise
    A7     Section 3: the feature map of f^L                                theory.nichani.TangentFeatures
    A7     Section 3: its kernel E[σ'σ']⟨x, x'⟩ for relu³/6                 kernels.closed_forms.relu3_hidden
    A7     Section 3: f^L in a ball of ‖W‖_F                                kernels.regression.ridge_for_norm
    A5     Eq. (2): WΣ for random signs Σ                                   theory.bai_lee.flip
    A5     Eq. (2): the signs                                               theory.bai_lee.random_signs
    A5     Eq. (2): all 2^m of them, up to a common sign                    theory.bai_lee.all_signs
    V-A1   Section 3: E f^L_{WΣ} = 0, E (f^L_{WΣ})², f^Q_{WΣ} = f^Q_W       theory.bai_lee.sign_identities
    V-A1   Section 3: the same, over widths                                 bai_lee/coupling
    V-A2   Section 3: f^L ~ m^{-1/4} and f^Q ~ 1 at ‖w_r‖ ~ m^{-1/4}        bai_lee/coupling
    A9     Section 3.1: L̃, the risk of the network                          theory.bai_lee.empirical_risk
    A9     Section 3.1: L = E_Σ L̃(WΣ), and L_λ                              theory.bai_lee.RandomisedRisk
    A9     Section 3.1: L on the population                                 theory.bai_lee.randomised_population_risk
    A10    Section 3.1: the regulariser ‖W‖⁸_{2,4}                          theory.bai_lee.penalty
    A2     Eq. (3): the symmetric initialisation                            networks.TwoLayer.symmetric
    A2     Eq. (4): the bound on max_r B_x‖w_{0,r}‖                         theory.bai_lee.initial_norm_bound
    V-A6   Eq. (4), measured                                                bai_lee/coupling
    A9     Section 4.1: L^Q, the clean risk                                 theory.bai_lee.CleanRisk
    A9     Section 4.1: L^Q on the population                               theory.bai_lee.clean_population_risk
    V-A3   Lemma 1, eq. (5): both sides at one W                            theory.bai_lee.clean_landscape
    V-A3   Lemma 1, measured                                                bai_lee/landscape
    A17    Theorem 2, eq. (6): the width                                    theory.bai_lee.coupling_width
    V-A5   Theorem 2, eq. (7): both sides at one W                          theory.bai_lee.randomised_landscape
    V-A5   Corollary 3, eq. (8): both sides at one W, for λ > 0             theory.bai_lee.randomised_landscape
    V-A5   Lemma 1, Theorem 2, Corollary 3: at many W                       theory.bai_lee.landscape_survey
    V-A5   Theorem 2 and Corollary 3, measured                              bai_lee/landscape
    A11    Theorem 4: the λ to take                                         theory.bai_lee.penalty_choice
    A17    Theorem 4: the width                                             theory.bai_lee.stationary_width
    V-A7   Theorem 4, eq. (10): loss and norm, and their bounds             theory.bai_lee.stationary_bound
    V-A7   Theorem 4, measured from many starts                             bai_lee/landscape
    A12    Section 4.2: noisy SGD with fresh signs at every step            training.randomised.randomised_sgd
    A13    Section 4.2: perturbed gradient descent                          training.directions.perturbed_descent
    A13    Section 4.2: is W a second-order stationary point?               taylor.certificate
    X-A3   Section 4.2: λ_min of the Hessian along training                 bai_lee/landscape
    A15    Lemma 5: E max_r ‖n⁻¹ Σ σ_i σ''(w_{0,r}ᵀx_i) x_i x_iᵀ‖           theory.bai_lee.feature_term
    V-A8   Lemma 5: its right side                                          theory.bai_lee.FeatureTerm.loss_bound
    V-A8   Lemma 5: the complexity of f^Q itself, exactly                   theory.bai_lee.FeatureTerm.complexity
    V-A8   Lemma 5: its right side over widths                              bai_lee/constructions
    A15    Theorem 6: M_{x,op}                                              theory.bai_lee.expected_input_spread
    A15    Theorem 6: the same of one sample                                theory.bai_lee.input_spread
    A15    Theorem 6: M_{x,op} on the sphere, with its constant             theory.bai_lee.sphere_spread_bound
    A16    Theorem 6: the bound, part by part                               theory.bai_lee.generalisation_gap
    A16    Theorem 6: the W that fits labels without signal best            theory.bai_lee.widest_gap_weights
    A16    Theorem 6: L_P(Ŵ) − L(Ŵ) there, over n, m and d                  bai_lee/constructions
    V-A9   Theorem 6: M_{x,op} over dimensions                              bai_lee/constructions
    A20    Theorem 7: W⋆ at which f^Q is α(βᵀx)^p                           theory.bai_lee.express
    A20    Theorem 7: the norm of W⋆ and its bound                          theory.bai_lee.RidgePower
    A20    Theorem 7, measured over widths                                  bai_lee/constructions
    A17    Section 5.2: n_Q of any target                                   theory.bai_lee.quadratic_samples
    A17    Section 5.2: n_Q and n_L of one polynomial                       theory.bai_lee.polynomial_samples
    A17    Section 5.2: n_Q and n_L of 2-XOR                                theory.bai_lee.xor_samples
    A21    Section 5.2: 2-XOR as a difference of two squares                theory.bai_lee.xor_target
    A21    Footnote 5: W⋆¹ + W⋆²Σ for a sum of functions                    theory.bai_lee.express
    A21    Footnote 5: the variance that Σ brings                           theory.bai_lee.Expression.sign_variance
    A14    Section 5.2: the quadratic model, the NTK, the network, trained  bai_lee/samples
    X-A1   Section 5.2: samples for a polynomial, measured                  bai_lee/samples
    X-A2   Section 5.2: noisy 2-XOR of Wei et al.                           data.distributions.noisy_xor
    X-A2   Section 5.2: samples for 2-XOR, measured                         bai_lee/samples
    X-A2   Section 5.2: 2-XOR's samples at d ≥ 25, on new seeds             bai_lee/again
    A6     Section 6: f^{(k)}, the k-th order NTK, of 2m neurons            theory.bai_lee.pair_terms
    A22    Section 6.1: z₊ and z₋ with matched moments                      theory.bai_lee.matched_moments
    A6     Section 6.1: w⋆ of length m^{-1/2k}                              theory.bai_lee.ridge_columns
    A6     Section 6.1: W = (z₊w⋆, z₋w⋆)                                    theory.bai_lee.extracting_weights
    V-A10  Section 6.1: mean and variance of every f^{(j)}, exactly         theory.bai_lee.term_moments
    V-A10  Section 6.1: the limit of f^{(k)}                                theory.bai_lee.order_limit
    V-A10  Section 6.1: the orders in m of every f^{(j)}, measured          bai_lee/orders
    X-A4   Section 6.1: the k-th order term brought out                     bai_lee/orders
    A23    Lemma 8: the matrix Rademacher bound                             theory.bai_lee.matrix_rademacher
    A23    Lemma 8 for the matrices of Lemma 5                              theory.bai_lee.feature_rademacher
    A19    Lemma 9: a(w₀) with E[relu(w₀ᵀx) a] = α(βᵀx)^p                   theory.bai_lee.random_feature_weights
    A19    Lemma 9: ĉ_p = E[relu(g) h_p(g)]                                 theory.bai_lee.relu_hermite
    A19    Lemma 9: E[a²], exactly                                          theory.bai_lee.random_feature_energy
    A19    Lemma 9: its bound on E[a²]                                      theory.bai_lee.random_feature_energy_bound
    A19    Lemma 9: how far m features stray                                theory.bai_lee.random_feature_variance
    A18    Lemma 9, proof: the kernel K(u) of random ReLU features          kernels.closed_forms.relu_output
    A18    Lemma 9, proof: its power series Σ c_p u^p                       theory.bai_lee.relu_series
    A18    Lemma 9, proof: c_p ≥ 1/2π(p ∨ 1)³                               theory.bai_lee.relu_series_bound
    V-A4   Lemmas 10, 12, 13 and 14: both sides at one W                    theory.bai_lee.risk_closeness
    V-A4   Lemmas 10, 12, 13 and 14, measured over widths                   bai_lee/landscape
    V-A4   Lemma 11, measured over widths                                   bai_lee/coupling
    A10    Appendix B.5: ∇‖W‖⁸_{2,4}                                        theory.bai_lee.penalty_gradient
    A10    Appendix B.5: ∇²‖W‖⁸_{2,4}[V, V]                                 theory.bai_lee.penalty_hessian
    A10    Appendix B.5: its mean over column signs                         theory.bai_lee.mean_penalty_hessian
    V-A5   Appendix B.5: what the regulariser adds to eq. (8)               theory.bai_lee.penalty_landscape
    A11    Appendix B.5: C = 378(14/5)³ of Corollary 3                      theory.bai_lee.penalties.LANDSCAPE_CONSTANT
    A17    Appendix B.6: B_{w,0}, the ball of all stationary points         theory.bai_lee.localisation_radius
    A16    Appendix C.2: the Õ(1) of E max σ''(w_{0,r}ᵀx_i)²                theory.bai_lee.largest_square_bound
    A20    Lemma 15: w₊ and w₋ from a(w₀) of degree p − 2                   theory.bai_lee.express
"""

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

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "assumptions": "AssumptionA AssumptionPart assumption_a",
            "bounds": (
                "GeneralisationGap SampleSizes coupling_width generalisation_gap initial_norm_bound "
                "largest_square_bound localisation_radius polynomial_samples quadratic_samples "
                "stationary_width xor_samples"
            ),
            "closeness": "Closeness risk_closeness",
            "complexity": (
                "FeatureTerm MatrixRademacher expected_input_spread feature_rademacher feature_term input_spread "
                "matrix_rademacher sphere_spread_bound widest_gap_weights"
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
