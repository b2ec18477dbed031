"""Allen-Zhu and Li (2019): what the paper proves, as functions.

Each statement and where it lives, in the order of the paper: an object of `offtangent`, or an experiment such as
`allen_zhu_li/fig2` where it is measured. The numbers are those of the project's checklist of the paper: C for what can
be computed, V-C for what can be verified, X-C for the paper's experiments.

    no.    statement                                                  where
    C1     Eq. (2.1): the three-layer ResNet, U itself trained        networks.resnet.DirectResNet
    C6     Eq. (2.2): H = βF + αG(F) (β = 1 in the concept class)     data.hierarchy.Hierarchy
    X-C3   Section 2.1: both layers together, or one after the other  allen_zhu_li/hierarchy
    C5     Eq. (3.1): kernel regression, in β                         kernels.coordinates.correlation_regression
    C5     Section 3: correlation kernels by name                     kernels.correlation.correlation_kernel
    C5     Section 3: is a kernel one?                                kernels.correlation.check_correlation
    C5     Section 3 (1): the Gaussian kernel                         kernels.gaussian
    C5     Section 3 (2): the arcsine kernel                          kernels.correlation.arcsine
    C5     Section 3 (3): the recursive kernel                        kernels.correlation.recursive
    C5     Section 3 (4): the arc-cosine kernels, features relu^n     kernels.closed_forms.arc_cosine
    C5     Section 3 (4)-(6): any features, fully connected networks  kernels.deep
    C5     Section 3 (5), (6): convolutional networks                 kernels.convolutional
    C5     Section 3 (5), (6): residual networks                      kernels.residual.resnet
    C9     Section 4: 𝔠_ε of a power series                           theory.allen_zhu_li.series_complexity
    C9     Section 4: 𝔠_s of a power series                           theory.allen_zhu_li.series_smoothness
    C6     Concept 1, eq. (5.2): sums of smooth ridges                data.hierarchy.SmoothRidges
    C9     Section 5: 𝔅_{F∘G}, the bound on ‖G(F(x))‖                 theory.allen_zhu_li.composite_bound
    C1     Section 6: the network with U = VA                         networks.ResNet
    C10    Section 6: out₁                                            networks.ResNet.first
    C2     Section 6: its initialisation                              networks.ResNet.theory
    C4     Figure 2: the fully connected networks, 2layer and 3layer  networks.FullyConnected
    C4     Figure 2: (NTK), the tangent kernel of the hidden weights  kernels.layered.layered_ntk
    C4     Figure 2: (last), the conjugate kernel                     kernels.empirical_conjugate
    C6     Figure 2: its target                                       data.hierarchy.parity_hierarchy
    X-C1   Figure 2: nine methods                                     allen_zhu_li/fig2
    X-C3   Figure 2: 3layer and the kernels fail on αG(F)             allen_zhu_li/fig2
    C7     Algorithm 1: SGD on W and V at once                        training.two_rates.residual_sgd
    C7     Theorem 1: T, η_w and η_v for a target                     theory.allen_zhu_li.theorem1
    C2     Table 1: σ_w, σ_v, τ_w and τ_v, and their ranges           theory.allen_zhu_li.resnet_settings
    C10    Section 6.1: D_W and D_{V,W}                               theory.allen_zhu_li.sign_patterns
    C11    Section 6.1: Ξ_t and Err_t                                 theory.allen_zhu_li.descent_parts
    V-C11  Section 6.1: Ξ_t ≥ ½‖H − out‖² − 2‖Err_t‖² along SGD       allen_zhu_li/descent
    V-C9   Theorem 2: does it speak of these sizes?                   theory.allen_zhu_li.theorem2
    V-C9   Theorem 2: its limit on N                                  theory.allen_zhu_li.theorem2_samples
    V-C9   Theorem 2: E‖H − K‖², exactly                              theory.allen_zhu_li.product_risk
    V-C9   Theorem 2: a floor under every kernel's error              theory.allen_zhu_li.MemorisingSolution.floor
    V-C9   Theorem 2, measured for six kernels over d and N           allen_zhu_li/theorem2
    V-C10  Corollary 7.1: the samples, d/α⁸                           theory.allen_zhu_li.corollary71_samples
    V-C10  Corollary 7.1: Algorithm 1 as stated, against α            allen_zhu_li/corollary71
    V-C10  Corollary 7.1: the ResNet where kernels fail               allen_zhu_li/corollary71
    C3     Appendix A: the initialisation of its experiments          networks.ResNet.experiment
    C8     Appendix A: SGD with momentum and weight decay, on a grid  training.grids.grid_sgd
    C8     Appendix A: the grid widened, and the best of it           training.search
    C13    Appendix A.1: 2‖W‖_F/√N                                    theory.allen_zhu_li.LowNormParity.rademacher
    C19    Appendix A.1: a parity by weights of small norm, exactly   theory.allen_zhu_li.low_norm_parity
    C19    Appendix A.1: what one neuron sees of a parity             theory.allen_zhu_li.parity_correlation
    C19    Footnote 13: weights for d = 6 padded and copied           theory.allen_zhu_li.padded_copies
    C19    Appendix A.1: such weights trained for d = 6               allen_zhu_li/norms
    X-C2   Figures 1 and 3: SGD does not find them                    allen_zhu_li/norms
    C6     Definition B.1, Concept 2: the general maps                data.hierarchy.GeneralRidges
    C9     Definition B.1: the general complexity of a map            theory.allen_zhu_li.concept_complexity
    C6     Lemma B.2: Concept 1 as Concept 2                          data.hierarchy.SmoothRidges.general
    C9     Fact B.3: the Lipschitz constant                           theory.allen_zhu_li.ConceptComplexity.lipschitz
    C9     Fact B.3: the bound, 𝔅_F                                   theory.allen_zhu_li.ConceptComplexity.bound
    V-C6   Fact B.3, measured                                         allen_zhu_li/existence
    V-C6   Lemma B.2 and Example 4.1, computed                        allen_zhu_li/existence
    V-C7   Proposition C.1: lengths of Gaussian vectors, exactly      allen_zhu_li/existence
    V-C7   Proposition C.2: lengths of sparse vectors under M         theory.allen_zhu_li.sparse_norm_bound
    V-C7   Proposition C.2, measured                                  allen_zhu_li/existence
    V-C7   Lemma C.3: sums of Gaussian indicators                     allen_zhu_li/existence
    V-C1   Proposition C.4: the most signs that g′ turns              theory.allen_zhu_li.most_flips
    V-C1   Proposition C.4: their share as m → ∞                      theory.allen_zhu_li.flip_fraction
    V-C1   Proposition C.4, measured                                  allen_zhu_li/coupling
    C10    Lemma D.1(a), (d): left sides, signs that changed          theory.allen_zhu_li.sign_changes
    C10    Lemma D.1(b), (c), (e)-(g): left sides, norms              theory.allen_zhu_li.coupling
    V-C2   Lemma D.1(b), (e): the worst displacement                  theory.allen_zhu_li.worst_output
    V-C2   Lemma D.1(b), (e): its limit as m → ∞                      theory.allen_zhu_li.output_limit
    V-C2   Lemma D.1(f): the worst displacement                       theory.allen_zhu_li.worst_operator
    V-C2   Lemma D.1(f): its limit as m → ∞                           theory.allen_zhu_li.operator_limit
    V-C2   Lemma D.1(c), (g): the worst displacement                  theory.allen_zhu_li.worst_relu
    V-C2   Lemma D.1, measured over m, τ_w and τ_v                    allen_zhu_li/coupling
    C16    Lemma D.2: W⋆ and V⋆ of both layers                        theory.allen_zhu_li.existence_hidden
    C16    Lemma D.3: the worst change of the signs there             theory.allen_zhu_li.worst_change
    V-C5   Lemmas D.2 and D.3, measured                               allen_zhu_li/existence
    C11    Fact D.4: f(W′; x) and g(V′; x) of the gradient            theory.allen_zhu_li.gradient_parts
    V-C5   Claims D.5, D.6 and D.7, measured along SGD                allen_zhu_li/descent
    C12    Proposition E.1: λ_S² of a kernel of ⟨x, y⟩                special.boolean.cube_spectrum
    C12    Proposition E.1: λ_S² of any correlation kernel            kernels.coordinates.cube_coefficients
    C12    Proposition E.1: u from β                                  kernels.coordinates.CorrelationFit.coordinates
    C12    Proposition E.1: Krawtchouk polynomials                    special.boolean.krawtchouk
    V-C8   Proposition E.1, by enumeration                            allen_zhu_li/theorem2
    V-C8   Lemma E.2: the ‖u‖ that a small error needs                theory.allen_zhu_li.needed_norm
    V-C8   Lemma E.2: the error that a ‖u‖ leaves                     theory.allen_zhu_li.error_floor
    C18    Lemma E.3: the memorising u′, kernels of ⟨x, y⟩            theory.allen_zhu_li.memorise
    C18    Lemma E.3: u′ for any λ_S, on ℋ                            theory.allen_zhu_li.memorise_on_top
    V-C8   Lemma E.3: its bound on ‖u′‖²                              theory.allen_zhu_li.memorising_bound
    V-C9   Lemma E.3: its limit on N                                  theory.allen_zhu_li.memorising_samples
    V-C8   Lemmas E.2 and E.3, measured                               allen_zhu_li/theorem2
    V-C9   Theorem 2, proof: the least α                              theory.allen_zhu_li.least_alpha
    C17    Corollary 7.1, Section E.4: its target by polarisation     data.hierarchy.polarised_hierarchy
    C15    Lemma F.1, eq. (F.3): W⋆ of one layer                      theory.allen_zhu_li.existence_weights
    V-C4   Lemma F.1: √E‖W⋆‖_F², exactly                              theory.allen_zhu_li.existence_norm
    V-C4   Lemma F.1, measured over m                                 allen_zhu_li/existence
    C14    Lemma F.2: h, from indicators to φ                         theory.allen_zhu_li.IndicatorFunction
    V-C3   Lemma F.2(a): its left side by quadrature                  theory.allen_zhu_li.indicator_mean
    V-C3   Lemma F.2: E[h²]                                           theory.allen_zhu_li.IndicatorFunction.energy
    V-C3   Lemma F.2, measured                                        allen_zhu_li/existence
    C14    Claim F.3: p′_i, exactly                                   theory.allen_zhu_li.indicator_moment
"""

from typing import TYPE_CHECKING

from offtangent._lazy import lazily

if TYPE_CHECKING:
    from offtangent.theory.allen_zhu_li.concept import *
    from offtangent.theory.allen_zhu_li.gaussian_matrices import *
    from offtangent.theory.allen_zhu_li.gradients import *
    from offtangent.theory.allen_zhu_li.indicator import *
    from offtangent.theory.allen_zhu_li.kernel_limits import *
    from offtangent.theory.allen_zhu_li.kernel_risk import *
    from offtangent.theory.allen_zhu_li.memorising import *
    from offtangent.theory.allen_zhu_li.parameters import *
    from offtangent.theory.allen_zhu_li.parity import *
    from offtangent.theory.allen_zhu_li.worst_signs import *

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` takes every name
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "concept": "ConceptComplexity composite_bound concept_complexity series_complexity series_smoothness",
            "gaussian_matrices": "sparse_norm_bound",
            "gradients": (
                "Coupling DescentPoint SignChanges Signs coupling descent_parts gradient_parts sign_changes "
                "sign_patterns"
            ),
            "indicator": (
                "IndicatorFunction existence_hidden existence_norm existence_weights indicator_mean indicator_moment"
            ),
            "kernel_limits": (
                "Theorem2 corollary71_samples error_floor least_alpha memorising_bound memorising_samples needed_norm "
                "theorem2 theorem2_samples"
            ),
            "kernel_risk": "ProductRisk product_risk",
            "memorising": "MemorisingSolution SubsetSolution memorise memorise_on_top",
            "parameters": "ResNetSettings resnet_settings theorem1",
            "parity": "LowNormParity low_norm_parity padded_copies parity_correlation",
            "worst_signs": (
                "flip_fraction most_flips operator_limit output_limit worst_change worst_operator worst_output "
                "worst_relu"
            ),
        },
    )
