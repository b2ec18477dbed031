r"""Sections 4.1 to 4.4: the weights that the proofs construct, run; the landscape they imply, and what descent finds.

Lemma 1: at $W_Q$ the quadratic part of a network is the sparse term $\sum_i \alpha_i (\beta_i^T x)^{k+1}$. Lemma 2: at
$W_L$, in the span of the first $n_k$ eigenvectors of the feature covariance, the linear part is any polynomial of
degree k. Theorem 2: $W_\star = W_L + W_Q S$ with good column signs S does both, and is small on the four regularisers.
Lemma 3: curvature along $W_\star S$ pays for excess loss. So a second-order stationary point has small loss (Corollary
1), perturbed descent finds one (Theorem 3), and small regularised loss means small test loss (Theorem 4).

Every claim carries what its statement asks for. The widths of Lemma 1 ($d^{2k}$) and Theorem 4 are had, those of
Lemma 2 and Theorem 2 ($d^{10k}$) for k = 1 at d = 2 to 4; that of Lemma 3 is out of reach. Assumption 2 excludes
softplus, which stands beside the paper's sigmoid(z − 1). Theorems 1, 3 and 4 and Corollary 1 are run as they are
stated, with their λ; with λ as small as W⋆ asks for, $\lambda_i R_i(W_\star) \approx \varepsilon_{min}$, they stand
outside the hypothesis. Float64 on the host, but for training.
"""

from offtangent.lab.slices import combine

from . import corollary1, lemma1, lemma2, stated, theorem2, theorem4

PROFILES, CELLS, cells, run, claims, draw, cost = combine(lemma1, lemma2, theorem2, stated, corollary1, theorem4)
