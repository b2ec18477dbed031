"""Ge, Wang and Zhao (2019): what the paper proves, as functions.

Each statement and where it lives, in the order of the paper: an object of `offtangent`, or an experiment such as
`ge_wang_zhao/mnist` where it is measured. The numbers are those of the project's checklist of the paper: D for what
can be computed, V-D for what can be verified, X-D for the paper's experiments.

    no.    statement                                                  where
    D3     Theorem 1: n ≤ C(d + 1, 2) samples                         theory.ge_wang_zhao.most_samples
    D3     Theorem 1: r = 2d + 2 neurons                              theory.ge_wang_zhao.least_width
    D12    Theorem 1: W with f(W) = 0, in closed form                 theory.ge_wang_zhao.interpolant
    D3     Theorems 1, 2 and 5: what a network of a shape memorises   theory.ge_wang_zhao.memorisation
    D3     Theorems 1 and 2: n next to r, d and k, a phase diagram    ge_wang_zhao/phases
    D1     Section 2.2: the two-layer network                         networks.QuadraticNet
    D1     Section 2.2: f; Section 3.2: g with γ                      theory.ge_wang_zhao.QuadraticRisk
    D2     Section 2.2: the three-layer network, R ~ N(0, I)          networks.PolynomialNet.gaussian
    D5     Section 2.3: descent with noise at every step instead      training.directions.add_perturbation
    D5     Section 2.3: the same from the saddle at W = 0             ge_wang_zhao/synthetic
    V-D2   Lemma 1: f ≤ nd‖M‖²/4σ², measured where paths end          ge_wang_zhao/synthetic
    V-D10  Lemma 1: second-order stationary points over r and n       ge_wang_zhao/landscape
    D6     Theorem 4: γ, ρ, ℓ and the accuracy ε′                     theory.ge_wang_zhao.theorem4
    V-D4   Theorem 4: a refutation of it as printed, for every c      theory.ge_wang_zhao.theorem4_as_printed
    D2     Section 4: inputs with Gaussian noise                      data.distributions.smooth_inputs
    D2     Theorem 5: k = 2⌈√n⌉                                       theory.ge_wang_zhao.theorem_features
    D2     Theorems 1, 5 and 6 by perturbed descent, as printed       ge_wang_zhao/phases
    D5     Section 5: gradient descent from a small start             ge_wang_zhao/synthetic
    D5     Section 5: a small Gaussian start                          networks.QuadraticNet.init
    X-D1   Figures 2 and 5: 300 random samples                        ge_wang_zhao/synthetic
    X-D2   Figure 6: MNIST, two layers, no noise                      ge_wang_zhao/mnist
    X-D3   Figures 3a and 7: MNIST, two layers, noise                 ge_wang_zhao/mnist
    X-D4   Figures 3b and 8: MNIST, three layers                      ge_wang_zhao/mnist
    X-D5   Figures 4, 9 and 10: random labels                         ge_wang_zhao/mnist
    D5     Appendix A.1: Adam on batches                              ge_wang_zhao/mnist
    D4     Algorithm 1: perturbed gradient descent                    training.perturbed.algorithm1
    D4     Algorithm 1, run until it returns                          training.perturbed.find_stationary
    D4     Algorithm 1: its first line, χ, η, r and the thresholds    theory.ge_wang_zhao.algorithm1_settings
    D7     Appendix C: the residuals δ_j                              theory.ge_wang_zhao.QuadraticRisk.residuals
    D7     Appendix C: ∇f = MWA                                       theory.ge_wang_zhao.QuadraticRisk.gradient
    D7     Appendix C: ∇²f[Z, Z]                                      theory.ge_wang_zhao.QuadraticRisk.hessian_form
    D7     Appendix D.1: M                                            theory.ge_wang_zhao.QuadraticRisk.matrix
    V-D1   Lemma 3: λ_min(∇²f) = −‖M‖                                 theory.ge_wang_zhao.QuadraticRisk.lowest_curvature
    D11    Lemma 3: the direction of this curvature                   theory.ge_wang_zhao.QuadraticRisk.curvature
    D11    Lemma 3: descent along it alone                            theory.ge_wang_zhao.negative_curvature_descent
    V-D1   Lemma 3, measured over widths                              ge_wang_zhao/landscape
    V-D2   Lemma 4: the bound nd‖M‖²/4σ² on f                         theory.ge_wang_zhao.QuadraticRisk.bound
    D8     Lemma 1, Theorem 4: σ, the least of [x_j ⊗ x_j]            theory.ge_wang_zhao.smallest_singular
    V-D3   Lemma 5: the constants of ∇g and ∇²g in a ball             theory.ge_wang_zhao.smoothness
    V-D3   Lemma 5, measured and by search                            ge_wang_zhao/landscape
    V-D4   Theorem 4, proof: the induction on g along Algorithm 1     ge_wang_zhao/landscape
    D10    Appendix E.1: D_d^p                                        networks.quadratic.symmetric_dimension
    D10    Appendix E.1: the multi-indices I_d^p                      theory.ge_wang_zhao.multi_indices
    D10    Appendix E.1: φ_d^p of x^{⊗p}                              theory.ge_wang_zhao.reduced_power
    D10    Appendix E.1: x^{⊗p} with lengths and angles kept          theory.ge_wang_zhao.isometric_power
    D10    Appendix E.1: A ⊗ B, made symmetric                        theory.ge_wang_zhao.symmetric_product
    D10    Appendix E.1: ‖·‖_rv                                       theory.ge_wang_zhao.SymmetricTensor.rv_norm
    V-D6   Lemma 6: ‖M‖_rv ≥ ‖M‖/√p!                                  theory.ge_wang_zhao.rv_norm_floor
    V-D6   Lemma 7: the size of a net                                 theory.ge_wang_zhao.log_covering_bound
    D10    Proposition 1: a net of the unit sphere                    theory.ge_wang_zhao.sphere_net
    D9     Definition 5: the leave-one-out distances of [x_j ⊗ x_j]   theory.ge_wang_zhao.leave_one_out_distances
    V-D5   Lemma 8: l/√n ≤ σ_min ≤ l, measured                        ge_wang_zhao/lemmas
    D10    Proposition 2: how seldom a polynomial is near a value     theory.ge_wang_zhao.anticoncentration
    D10    Definition 6: the normalised Hermite basis                 theory.ge_wang_zhao.hermite_basis
    D10    Proposition 4: the leading Hermite coefficients            theory.ge_wang_zhao.leading_hermite
    D10    Proposition 5: mean and variance by Hermite coefficients   theory.ge_wang_zhao.hermite_expansion
    V-D6   Lemma 9: its left side, exactly                            theory.ge_wang_zhao.gaussian_variance
    V-D6   Lemma 9: its right side                                    theory.ge_wang_zhao.gaussian_variance_floor
    V-D6   Lemma 10: its left side, exactly                           theory.ge_wang_zhao.decoupled_variance
    V-D6   Lemma 10: its right side                                   theory.ge_wang_zhao.decoupled_variance_floor
    V-D6   Lemmas 6, 7 and 9 to 12, measured                          ge_wang_zhao/lemmas
    V-D6   Propositions 2 and 4, measured                             ge_wang_zhao/lemmas
    D13    Lemma 13: Q, its rows r_i^{⊗p}                             theory.ge_wang_zhao.feature_rows
    D13    Lemma 13: Z = (Q ⊗ Q)X̄                                     theory.ge_wang_zhao.squared_features
    D13    Lemma 13, proof: the subspaces S_(i,j)                     theory.ge_wang_zhao.decoupled_subspace
    D10    Lemma 13, eq. (4): the floor under σ_min(Z)                theory.ge_wang_zhao.perturbed_singular_floor
    V-D7   Lemma 13: the largest k that it admits                     theory.ge_wang_zhao.admissible_features
    V-D7   Lemma 13: the largest k by a sharper dimension of S_(i,j)  theory.ge_wang_zhao.most_features
    V-D7   Lemma 13 and beyond, measured                              ge_wang_zhao/lemmas
    D10    Lemma 14: the bound on ‖z_j‖, with noise                   theory.ge_wang_zhao.perturbed_feature_norm_bound
    V-D8   Lemmas 14 and 20, measured                                 ge_wang_zhao/lemmas
    D10    Lemma 15: the least ‖Qc‖ on a net                          theory.ge_wang_zhao.net_floor
    D10    Lemmas 16 and 17: the largest on a net, and everywhere     theory.ge_wang_zhao.net_ceiling
    V-D9   Lemmas 15 to 17, measured                                  ge_wang_zhao/lemmas
    D13    Lemma 17, proof: the expansion in a net                    theory.ge_wang_zhao.net_expansion
    D10    Lemma 18: the least singular value of Q                    theory.ge_wang_zhao.spanning_floor
    D10    Lemma 19, eq. (5): the floor under σ_min(Z)                theory.ge_wang_zhao.feature_square_floor
    V-D9   Lemmas 18 and 19, measured                                 ge_wang_zhao/lemmas
    D10    Lemma 20: the bound on ‖z_j‖, without noise                theory.ge_wang_zhao.feature_norm_bound
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.ge_wang_zhao import samples as samples
    from offtangent.theory.ge_wang_zhao.capacity import *
    from offtangent.theory.ge_wang_zhao.descent import *
    from offtangent.theory.ge_wang_zhao.features import *
    from offtangent.theory.ge_wang_zhao.landscape import *
    from offtangent.theory.ge_wang_zhao.monomials import *
    from offtangent.theory.ge_wang_zhao.nets import *
    from offtangent.theory.ge_wang_zhao.tensor_squares import *
    from offtangent.theory.ge_wang_zhao.tensors import *

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "capacity": "Capacity admissible_features least_width memorisation most_samples theorem_features",
            "descent": "DescentSettings PrintedRun Theorem4 algorithm1_settings theorem4 theorem4_as_printed",
            "features": (
                "decoupled_subspace feature_norm_bound feature_rows feature_square_floor most_features net_expansion "
                "perturbed_feature_norm_bound perturbed_singular_floor spanning_floor squared_features"
            ),
            "landscape": "Curvature QuadraticRisk Smoothness interpolant negative_curvature_descent smoothness",
            "monomials": "multi_indices",
            "nets": "anticoncentration net_ceiling net_floor sphere_net",
            "tensor_squares": "SmallestSingular leave_one_out_distances smallest_singular",
            "tensors": (
                "SymmetricTensor decoupled_variance decoupled_variance_floor gaussian_variance gaussian_variance_floor "
                "hermite_basis hermite_expansion isometric_power leading_hermite log_covering_bound "
                "reduced_power rv_norm_floor symmetric_product"
            ),
        },
    )
