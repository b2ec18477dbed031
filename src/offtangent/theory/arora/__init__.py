"""Arora, Du, Hu, Li and Wang (2019): what the paper proves, as functions.

Each statement and where it lives, in the order of the paper: an object of `offtangent`, or an experiment such as
`arora/fig1` where it is measured. The numbers are those of the project's checklist of the paper: B for what can be
computed, V-B for what can be verified, X-B for the paper's experiments.

    no.    statement                                                        where
    B1     Section 3.1, eq. (1): the network, w_r(0) ~ N(0, κ²I), a_r = ±1  networks.TwoLayer.gaussian
    B2     Eq. (2): the objective Φ = ½ Σ (y_i − u_i)²                      training.HalfSquares
    B2     Section 3.1: the ReLU with the sub-gradient 1{z ≥ 0}             special.activations.relu
    B2     Section 3.1: gradient descent on the first layer                 training.train
    B5     Eq. (3): H∞ as a kernel, xᵀx'(π − arccos xᵀx')/2π                kernels.relu_hidden
    B5     Eq. (3): H∞ as a matrix, with its eigenpairs and λ₀              kernels.Gram
    B9     Theorem 3.1: the width, κ and rate that it asks for              theory.arora.prescribe
    B9     Theorem 3.1: the width alone                                     theory.arora.required_width
    B9     Theorem 3.1: ‖y − u(0)‖ = O(√(n/δ))                              theory.arora.initial_residual_bound
    B9     Theorem 3.1: Φ(W(0)) = O(n/δ)                                    theory.arora.initial_loss_bound
    V-B2   Theorem 3.1: Φ(W(0)) = O(n/δ), measured                          arora/lemmas
    V-B2   Theorem 3.1: Φ(k+1) ≤ (1 − ηλ₀/2) Φ(k), measured                 arora/fig1
    B3     Section 3.4: Z, the gradients of the outputs                     theory.arora.Features
    B3     Section 3.4: H = ZᵀZ at any weights                              kernels.finite.tangent_gram
    B4     Eq. (7): the linear recursion ũ(k) in closed form                theory.arora.linearised_outputs
    B4     Eq. (7) at any input, and its variance over initial weights      theory.arora.gradient_descent
    B6     Theorem 4.1, eq. (8): the predicted residual                     theory.arora.predict_residual
    B6     Section 4: steps until the predicted loss is small               theory.arora.steps_to
    B6     Section 4: ξ_i(0) = (v_iᵀy)², the terms of eq. (8) at k = 0      linalg.Spectrum.energy
    B9     Theorem 4.1: the width, κ and rate that it asks for              theory.arora.prescribe
    V-B1   Theorem 4.1: the ± ε of eq. (8) as its proof has it              theory.arora.deviation_bound
    V-B1   Theorem 4.1, eq. (8), measured over widths and κ                 arora/fig1
    B5     Figure 1: the projections (v_iᵀy)² on the eigenvectors of H∞     linalg.Spectrum.energy
    B5     Figure 1: how much of y lies in the top eigenvectors             linalg.Spectrum.share
    B11    Figure 1: worst-case labels, the eigenvector of λ_min            theory.arora.worst_case_labels
    X-B1   Figure 1: the rate from which on descent diverges, 2/λ_max       theory.arora.largest_stable_rate
    X-B1   Figure 1: true, random and worst-case labels                     arora/fig1
    V-B10  Remark 5.1: λ_min(H∞) > 0 if no two inputs are parallel          arora/section6
    V-B12  Remark 5.1: a proven lower bound for λ_min(H∞)                   linalg.stream.series_floor
    V-B12  Eq. (10): brackets of yᵀ(H∞)⁻¹y that rest on it                  kernels.Gram.inverse_quadratic
    B7     Theorem 5.1, eq. (9): the bound on the loss, term by term        theory.arora.generalisation_bound
    B9     Theorem 5.1: the κ and width that it asks for                    theory.arora.prescribe
    B7     Corollary 5.2: the same for the classification error             theory.arora.generalisation_bound
    B7     Corollary 5.2: the 0-1 loss                                      theory.arora.zero_one_loss
    V-B9   Corollary 5.2 next to the test error                             arora/fig2
    B7     Eq. (10): the complexity measure √(2yᵀ(H∞)⁻¹y/n)                 theory.arora.complexity
    B7     Section 5: the ℓ1 loss                                           theory.arora.absolute_loss
    X-B2   Figure 2: the measure and the test error, more and more noise    arora/fig2
    X-B2   Figure 2 and Lemma 5.3 on seeds that no rule was chosen by       arora/again
    V-B4   Lemma 5.3: the bound on ‖W(k) − W(0)‖_F                          theory.arora.movement_bound
    V-B4   Lemma 5.3: the movement of each neuron and of all, measured      arora/lemmas
    B4     Eq. (11): the linear recursion W̃(k), and W̃(∞)                    theory.arora.linearised_weights
    B8     Lemma 5.4: the bound on the Rademacher complexity                theory.arora.rademacher_bound
    V-B6   Lemma 5.4 next to the complexity itself                          arora/lemmas
    B4     Section 5.2: ‖W̃(k)‖_F in closed form                             theory.arora.linearised_distance
    V-B5   Section 5.2: ‖W̃(∞)‖_F = √(yᵀH(0)⁻¹y), measured                   arora/lemmas
    B10    Section 6: (M_g + log(1/δ))/ε² samples suffice                   theory.arora.sample_size
    B10    Theorem 6.1: √(yᵀ(H∞)⁻¹y) ≤ 3p|α|‖β‖^p for y = α(βᵀx)^p          theory.arora.Target.power
    V-B7   Theorem 6.1, measured                                            arora/section6
    V-B8   Theorem 6.1: odd p from 3 on, which it leaves out                arora/section6
    V-B11  Section 6: a sum of labels costs at most the sum of costs        arora/section6
    B10    Corollary 6.2: functions Σ α_j (β_jᵀx)^{p_j}                     theory.arora.Target.series
    B10    Corollary 6.2, eq. (13): what they cost                          theory.arora.Target.bound
    B10    Example 6.1: βᵀx                                                 theory.arora.Target.linear
    B10    Example 6.2: xᵀAx                                                theory.arora.Target.quadratic
    B10    Example 6.3: cos(βᵀx) − 1                                        theory.arora.Target.cosine
    B10    Example 6.4: z·arctan(z/2) of z = βᵀx                            theory.arora.Target.arctan
    B12    Appendix A: a portion of the labels drawn anew from ±1           data.labels.add_label_noise
    B7     Theorem B.1: the loss on new data by Rademacher complexity       theory.arora.rademacher_gap_bound
    B9     Lemma C.1: no neuron moves by more than R                        theory.arora.movement_radius
    B9     Lemma C.2, eq. (15): the neurons that may flip, S̄_i              theory.arora.flip_candidates
    B9     Lemma C.2: the neurons that did flip                             theory.arora.flip_counts
    B9     Lemma C.2, eq. (17): P(A_{r,i}), exactly                         theory.arora.flip_probability
    B9     Lemma C.2, eq. (17): P(A_{r,i}) ≤ 2R/√(2π)κ                      theory.arora.flip_probability_bound
    V-B3   Lemma C.2: the bound on ‖H(k) − H(0)‖_F                          theory.arora.kernel_change_bound
    V-B3   Lemma C.2: the bound on ‖Z(k) − Z(0)‖_F                          theory.arora.feature_change_bound
    V-B3   Lemma C.2, both sides over widths                                arora/lemmas
    V-B3   Lemma C.3: the bound on ‖H(0) − H∞‖_F                            theory.arora.gram_deviation_bound
    V-B3   Lemma C.3, measured                                              arora/fig1
    B9     Theorem 4.1, eq. (19): the bound on Σ |S̄_i|                      theory.arora.flip_sum_bound
    V-B1   Theorem 4.1, before eq. (29): ‖u(0)‖ ≤ κ√(n/δ)                   theory.arora.initial_output_bound
    B7     Corollary 5.2, proof: the ramp loss                              theory.arora.ramp_loss
    B14    Lemma E.1: P_A B† P_A ⪯ A† where B ⪰ A ⪰ 0                       theory.arora.pseudo_inverse_ratio
    B14    Lemma E.1 on c_p K^{∘p} ⪯ H∞, measured                           arora/section6
    B13    Theorem 6.1, proof: the Khatri-Rao powers of X                   theory.arora.tensor_powers
    B5     Theorem 6.1, proof: the power series of H∞                       kernels.series.relu_hidden
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.arora.dynamics import *
    from offtangent.theory.arora.generalisation import *
    from offtangent.theory.arora.learnability import *
    from offtangent.theory.arora.linearised import *
    from offtangent.theory.arora.movement import *
    from offtangent.theory.arora.order import *
    from offtangent.theory.arora.predictions import *
    from offtangent.theory.arora.prescriptions import *
    from offtangent.theory.arora.widths import *

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
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
                "MovementBound feature_change_bound flip_candidates flip_counts flip_probability "
                "flip_probability_bound flip_sum_bound kernel_change_bound movement_bound movement_radius"
            ),
            "order": "pseudo_inverse_ratio",
            "predictions": "Descent Predicted gradient_descent",
            "prescriptions": "Prescription prescribe",
            "widths": (
                "deviation_bound gram_deviation_bound initial_loss_bound initial_output_bound initial_residual_bound "
                "required_width"
            ),
        },
    )
