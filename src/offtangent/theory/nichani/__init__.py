"""Nichani, Bai and Lee (2022): what the paper proves, as functions.

Each statement and where it lives, in the order of the paper: an object of `offtangent`, or an experiment such as
`nichani/fig1` where it is measured. The numbers are those of the project's checklist of the paper: E for what can be
computed, V-E for what can be verified, X-E for the paper's experiments.

    no.    statement                                                 where
    E1     Eqs. (1), (8), (9): the network and its initialisation    networks.TwoLayer.symmetric
    E13    Section 1: √m max ‖w_r‖, an escape from the NTK regime    theory.nichani.furthest
    E2     Eqs. (2), (3), (13): the features φ, their matrix Φ, f_L  theory.nichani.TangentFeatures
    E2     Eq. (4): ΦΦᵀ, the Gram matrix of the features             theory.nichani.TangentFeatures.gram
    E11    Eq. (4): V₁ and V₂ of the training features               theory.nichani.FeatureCovariance.of_samples
    E2     Eqs. (5), (14): the covariance Σ of the features          theory.nichani.FeatureCovariance
    E11    Section 1.1: Q₁, Q₂ and Q₃, and the gaps between them     theory.nichani.feature_blocks
    E12    Goals 1 and 2: ‖P_Q₁W‖, ‖P_Q₂W‖, ‖P_Q₃W‖ and ‖P_V₂W‖      theory.nichani.Movement
    E12    Goals 1 and 2: where training moves, without and with R₃  nichani/directions
    E13    Section 1.1: the mean squares of f_L and f_Q on inputs    theory.nichani.Energies
    E18    Section 1.1: V₁ for Q₁, and Davis and Kahan's bound       theory.nichani.alignment
    E18    Section 1.1: ‖Σ̂ − Σ‖ in this bound                        theory.nichani.covariance_distance
    E18    Section 1.1: V₁, Q₁ and this bound over n                 nichani/spectrum
    E2     Eqs. (6), (7), (11), (12): f_L + f_Q                      taylor.two_layer.TwoLayerExpansion
    E3     Assumption 1: low degree plus sparse                      data.targets.LowDegreePlusSparse
    E1     Section 2.1: the sigmoid with a shift                     special.activations.sigmoid
    E1     Assumption 2: σ, σ' and σ'' are bounded by 1              theory.nichani.bounded_assumption
    E1     Assumption 3: the harmonics of σ' and σ''                 theory.nichani.harmonic_assumption
    E5     Section 2.1: what is asked of a loss                      theory.bai_lee.loss_contract
    E5     Section 2.1: a loss for numbers that keeps all of it      special.losses.pseudo_huber
    E6     Eqs. (16), (24): R₁                                       theory.nichani.R1
    E6     Eqs. (17), (25): R₂                                       theory.nichani.R2
    E6     Eqs. (18), (26): R₃                                       theory.nichani.R3
    E6     Section 5: R₃ with the training features' own V₁          theory.nichani.R3.empirical
    E6     Eqs. (19), (27): R₄                                       theory.nichani.R4
    E6     Eq. (20): L_λ as a function of W                          theory.nichani.JointRisk
    E6     Eq. (20): L_λ as an objective, of any regularisers        training.directions.RegularisedLoss
    E8     Eq. (21): perturbed gradient descent                      training.directions.perturbed_descent
    E8     Eq. (21): its noise                                       training.directions.add_perturbation
    V-E7   Theorem 1: from W = 0 to a small test loss                nichani/constructions
    V-E10  Remark 1: d^k, d^{k+1} and K² d^k samples                 theory.nichani.sample_needs
    V-E10  Remark 1: f_L alone and f_Q alone do worse                nichani/fig1
    E15    Lemma 1, eq. (22): W_Q, at which f_Q is f_sp              theory.nichani.express_sparse
    E15    Lemma 1: a(w) and E[a²] of one term                       theory.nichani.SphereRidge
    V-E1   Lemma 1: the exact mean square of the error               theory.nichani.SparseExpression.mean_square_error
    V-E1   Lemma 1: the bound on ‖W_Q‖⁴                              theory.nichani.SparseExpression.norm4_bound
    V-E1   Lemma 1, measured over m, d and k                         nichani/constructions
    E16    Lemma 2, eq. (23): W_L, at which f_L is f_k               theory.nichani.express_low_degree
    V-E2   Lemma 2, measured over n, m and d                         nichani/constructions
    V-E9   Eqs. (24)-(26): R₁, R₂ and R₃ as quadratic forms          theory.nichani.bilinear.FeatureForms
    V-E9   Eqs. (24), (25): Π_{≤r}W and Π_{>r}W                      theory.nichani.FeatureCovariance.split
    E13    Eq. (28): L̂^Q, the loss of f_L + f_Q, and R₁ to R₄        theory.nichani.JointRisk.parts
    E17    Theorem 2: W⋆ = W_L + W_Q S                               theory.nichani.express_jointly
    V-E3   Theorem 2: the width                                      theory.nichani.RegulariserChoice.expressive_width
    V-E3   Theorem 2: the samples                                    theory.nichani.RegulariserChoice.samples
    V-E3   Theorem 2, eq. (30): the sizes of R₁ to R₄ at W⋆          theory.nichani.RegulariserChoice.sizes
    V-E3   Theorem 2, eqs. (29), (30), measured over m               nichani/constructions
    E11    Section 4.1: the eigenvalues ξ_i at infinite width        special.sphere.tangent_eigenvalues
    E11    Section 4.1: the dimensions of Q₁ and Q₂                  special.sphere.block_dimensions
    V-E5   Section 4.1: the eigenvalues at finite width and sample   theory.nichani.finite_levels
    V-E5   Section 4.1: the three blocks of Σ, measured              nichani/spectrum
    V-E4   Section 4.1: f_L of WS for signs S, and its means         theory.nichani.SignedRegularisers
    V-E4   Section 4.1: E_S E_μ f_L(x; WS)², exactly                 theory.nichani.sign_energy
    V-E4   Section 4.1: random directions and signs, measured        nichani/constructions
    E10    Definition 2: is W a second-order stationary point?       taylor.certificate
    V-E6   Lemma 3, eq. (31): both sides at any W                    theory.nichani.JointLandscape.at
    V-E6   Lemma 3: the same with the proof's own terms              theory.nichani.JointLandscape.proven
    V-E6   Lemma 3: the width                                        theory.nichani.RegulariserChoice.landscape_width
    V-E6   Lemma 3, measured                                         nichani/constructions
    E10    Corollary 1: ν = m^{-1/2}                                 theory.nichani.RegulariserChoice.gradient
    E10    Corollary 1: γ = m^{-3/4}                                 theory.nichani.RegulariserChoice.curvature
    V-E7   Corollary 1: the loss at such a point, and its bound      theory.nichani.JointLandscape.stationary
    V-E7   Corollary 1 and Theorem 3: where perturbed descent ends   nichani/constructions
    E7     Theorem 4: r and λ₁ to λ₄                                 theory.nichani.regulariser_choice
    V-E8   Theorem 4: the width                                      theory.nichani.RegulariserChoice.generalising_width
    E14    Theorem 4, eq. (32): ε_min + √(d^k/n)                     theory.nichani.RegulariserChoice.loss_bound
    V-E8   Theorem 4, measured over n                                nichani/constructions
    E3     Section 5: x₁ − 1 + (βᵀx)², Figure 1's target             data.targets.sphere_target
    E3     Section 5: the target of Figure 1 in the authors' code    data.targets.gaussian_target
    E9     Section 5: plain gradient descent, or SGD on batches      training.train
    X-E1   Figure 1: λ₃ swept                                        nichani/fig1
    X-E6   Figure 1: f_L, f_Q, the network; sphere or Gaussian       nichani/fig1
    X-E2   Section 5, Appendix G: λ₁ swept                           nichani/appendix_g
    E6     Appendix G: R₁ on fresh inputs at every step              theory.nichani.RandomisedR1
    E3     Section 5: the target of Figure 2                         data.targets.quadratic_plus_cubic
    E4     Figure 2: the ReLU network                                networks.MLP
    X-E3   Figure 2: the smallest n, over d                          nichani/fig2
    E4     Appendix G: the convolutional network                     networks.standard.ConvNet
    E4     Appendix G: its Taylor models of any order                taylor.expand
    X-E4   Appendix G: the Taylor models next to the network         nichani/taylor

Taylorised training of deep networks up to order 4 on CIFAR-10 (X-E5), an experiment of the paper's reference [8] and
not of the paper, is missing. Its models are `taylor.expand(f, params, order)` of any network and order.
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.nichani import bases as bases
    from offtangent.theory.nichani import bilinear as bilinear
    from offtangent.theory.nichani import harmonics as harmonics
    from offtangent.theory.nichani import sphere_covariance as sphere_covariance
    from offtangent.theory.nichani.assumptions import *
    from offtangent.theory.nichani.blocks import *
    from offtangent.theory.nichani.choice import *
    from offtangent.theory.nichani.covariance import *
    from offtangent.theory.nichani.escape import *
    from offtangent.theory.nichani.feature_alignment import *
    from offtangent.theory.nichani.joint import *
    from offtangent.theory.nichani.landscape import *
    from offtangent.theory.nichani.levels import *
    from offtangent.theory.nichani.regularisers import *
    from offtangent.theory.nichani.risk import *
    from offtangent.theory.nichani.signed import *
    from offtangent.theory.nichani.sparse import *
    from offtangent.theory.nichani.tangent import *

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "assumptions": (
                "BoundedAssumption BoundPart HarmonicAssumption HarmonicPart bounded_assumption harmonic_assumption"
            ),
            "blocks": "Blocks Boundary Level feature_blocks",
            "choice": "RegulariserChoice RegulariserSizes SampleNeeds regulariser_choice sample_needs",
            "covariance": "FeatureCovariance",
            "escape": "Energies Movement furthest",
            "feature_alignment": "Alignment alignment covariance_distance",
            "joint": "JointExpression LinearExpression express_jointly express_low_degree",
            "landscape": "JointLandscape JointStationary",
            "levels": "FiniteLevel finite_levels",
            "regularisers": "R1 R2 R3 R4 RandomisedR1 Regulariser Stacked",
            "risk": "JointRisk",
            "signed": "SignedRegularisers SignMeans sign_energy",
            "sparse": "SparseExpression SphereRidge express_sparse",
            "tangent": "LinearPart TangentFeatures",
        },
    )
