r"""Sections 4.1 to 4.4: the weights that the proofs construct, run; the landscape they imply, and what descent finds.

Lemma 1: at $W_Q$ the quadratic part of a network is the sparse term $\sum_i \alpha_i (\beta_i^T x)^{k+1}$. Lemma 2: at
$W_L$, in the span of the first $n_k$ eigenvectors of the feature covariance, the linear part is any polynomial of
degree k. Theorem 2: $W_\star = W_L + W_Q S$ with good column signs S does both, and is small on the four regularisers.
Lemma 3: curvature along $W_\star S$ pays for excess loss. So a second-order stationary point has small loss (Corollary
1), perturbed descent finds one (Theorem 3), and small regularised loss means small test loss (Theorem 4).

The widths the proofs ask for are out of reach ($d^{10k}$ for Lemma 2 and Theorem 2, more for Lemma 3). What scales is
judged by slopes; what needs those widths is shown, and said to be outside the hypothesis. Float64 on the host, but for
training.
"""

from offtangent.lab import combine

from . import corollary1, lemma1, lemma2, theorem2, theorem4

PROFILES, CELLS, cells, run, claims, draw, cost = combine(lemma1, lemma2, theorem2, corollary1, theorem4)
