"""The memorising solution u′ of Lemma E.3 (Allen-Zhu & Li 2019), computed, not bounded.

On the characters of size k with the largest |λ_S|, Φ_{S,j} = χ_S(x_j), S ∈ ℋ, Λ = |ℋ|:

    ũ = Φ(ΦᵀΦ)⁻¹y,   u′_S = ũ_S/λ_S,   φ(u′, x_j) = y_j,   ‖u′‖² ≤ yᵀ(ΦᵀΦ)⁻¹y/λ_o² ≤ 400‖y‖²/((d/5)^k λ_o²)

the last where ΦᵀΦ ⪰ Λ/2. A kernel of ⟨x, y⟩ has one λ for all of size k: then ℋ is all of them and (ΦᵀΦ)_{jj'} is the
Krawtchouk polynomial K_k of the Hamming distance, without a list of subsets. There λ‖u′‖ does not depend on the kernel,
nor does what follows for the error of every one of them: `MemorisingSolution.floor`.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from jaxtyping import Float, Int

from offtangent._checks import check_numbers, require
from offtangent._errors import InputError
from offtangent.data.duplicates import merge_duplicates
from offtangent.kernels.regression import check_targets
from offtangent.linalg.brackets import cholesky_factor
from offtangent.special.boolean import krawtchouk_matrix, signs, subsets
from offtangent.theory.allen_zhu_li.kernel_limits import check_alpha, check_sizes

TOP = 0.005  # of the subsets lie at or above λ_o, the 99.5 % percentile
DENSE = 200  # rows up to which all eigenvalues are computed
LABEL = 1e-6  # how far |y − x_j| may be from α, over 1 + α: float32, with room
SINGULAR = 1e-10  # λ_min/Λ below which ΦᵀΦ counts as singular


@dataclass(frozen=True, eq=False, repr=False)
class MemorisingSolution:
    """u′ for kernels with one λ for all characters of size k; `quadratics` are λ²‖u′_i‖² of the outputs."""

    X: Float[np.ndarray, "n d"]  # signs
    degree: int
    Y: Float[np.ndarray, "n k"]
    weights: Float[np.ndarray, "n k"]  # (ΦᵀΦ)⁻¹Y: ũ_S = Σ_j χ_S(x_j) weights_j
    quadratics: Float[np.ndarray, " k"]  # y_iᵀ(ΦᵀΦ)⁻¹y_i = ‖ũ_i‖², infinite where there is no u′
    smallest: float  # λ_min(ΦᵀΦ)/Λ; Lemma E.3 shows ≥ ½ up to its limit on N
    problem: str  # why there is no u′ for all labels, or nothing

    def __repr__(self) -> str:
        (n, d), k = self.X.shape, self.Y.shape[1]
        rest = self.problem or f"λ²‖u′‖² = {self.quadratics.sum():.3g}"
        return f"MemorisingSolution({n} samples in {d} dimensions, degree {self.degree}, outputs: {k}; {rest})"

    @property
    def exists(self) -> bool:
        return not self.problem

    @property
    def features(self) -> int:
        """Λ = C(d, k)."""
        return math.comb(self.X.shape[1], self.degree)

    def norms(self, coefficient: float | int) -> Float[np.ndarray, " k"]:
        """‖u′_i‖² for a kernel with λ_S = `coefficient`; infinite where it is 0."""
        return self.quadratics / coefficient**2 if coefficient else np.full_like(self.quadratics, math.inf)

    def floor(self, alpha: float | int) -> Float[np.ndarray, " k"]:
        """(α − λ‖u′_i‖)₊², a lower bound for the error of output i of every regression (3.1) on these samples.

        For every λ in (3.1) and every kernel of ⟨x, y⟩: the regression has ‖u_i‖ ≤ ‖u′_i‖, since u′ has no misfit, and
        Lemma E.2 says what that costs. Above α²/4 where 2λ‖u′_i‖ < α, which is how Theorem 2 is proven.

        The certificate is for the labels of Theorem 2 without noise: Y_i = x_j + αχ_S(x), x = ±1, for some j and some S
        of size k = `degree`, and the error is that against this very function. Labels are refused where for no j all
        y − x_j are ±α; whether their signs are those of a χ_S with |S| = k is not looked at. Time O(nd · outputs).
        """
        check_alpha(alpha)
        self._check_labels(float(alpha))
        return np.maximum(alpha - np.sqrt(self.quadratics), 0.0) ** 2

    def _check_labels(self, alpha: float) -> None:
        for i, labels in enumerate(self.Y.T):
            apart = np.abs(np.abs(labels[:, None] - self.X) - alpha)
            if not (apart <= LABEL * (1 + alpha)).all(axis=0).any():
                raise InputError(
                    f"Output {i} of Y is no x_j + αχ_S(x) with α = {alpha:g}: for no coordinate j is y − x_j = ±α on "
                    f"all {len(labels)} samples (x = ±1). Theorem 2 says nothing of other labels: give its own, "
                    "X[:, S] + alpha * special.boolean.character(S, X)[:, None], and the same alpha here."
                )

    def predict(self, X_new: object) -> Float[np.ndarray, "p k"]:
        """φ(u′, x) at corners. Time O(pnd)."""
        if not self.exists:
            raise InputError(f"There is no memorising solution: {self.problem}")
        return krawtchouk_matrix(self.degree, X_new, self.X) @ self.weights


def memorise(X: object, Y: object, degree: int) -> MemorisingSolution:
    """The u′ of Lemma E.3 for labels Y (n × k) at corners X of a cube, for every kernel of ⟨x, y⟩.

    Where ΦᵀΦ is singular (more samples than C(d, k), equal samples, opposite samples) labels exist that no u′
    has: `problem` says why, and norms are infinite. Time n³/3, memory 3n².

    >>> X = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]])
    >>> found = memorise(X, np.array([[1.0], [0.0]]), 2)  # ΦᵀΦ = [3, −1; −1, 3]
    >>> found.quadratics.round(6), round(found.smallest, 6)
    (array([0.375]), 0.666667)
    >>> found
    MemorisingSolution(2 samples in 3 dimensions, degree 2, outputs: 1; λ²‖u′‖² = 0.375)
    """
    corners = signs(X)
    targets = _columns(Y, len(corners))
    dim = corners.shape[1]
    check_sizes(dim, degree)
    G = krawtchouk_matrix(degree, corners)
    count = math.comb(dim, degree)
    factor = _factor(G)
    smallest = _smallest(G, factor) / count if factor is not None else 0.0
    if factor is None or smallest <= SINGULAR:
        reason = _why_singular(corners, degree, count)
        nothing = np.zeros_like(targets), np.full(targets.shape[1], math.inf)
        return MemorisingSolution(corners, degree, targets, *nothing, max(smallest, 0.0), reason)
    weights = scipy.linalg.cho_solve(factor, targets)
    return MemorisingSolution(corners, degree, targets, weights, (weights * targets).sum(axis=0), smallest, "")


@dataclass(frozen=True, eq=False)
class SubsetSolution:
    """u′ where λ_S differs within a size: on ℋ, the subsets with |λ_S| ≥ λ_o."""

    level: float  # λ_o
    subsets: Int[np.ndarray, "chosen degree"]  # ℋ
    u: Float[np.ndarray, "chosen k"]  # u′
    coefficients: Float[np.ndarray, " chosen"]  # λ_S
    smallest: float  # λ_min(ΦᵀΦ)/Λ

    @property
    def norms(self) -> Float[np.ndarray, " k"]:
        """‖u′_i‖² of the outputs."""
        return (self.u**2).sum(axis=0)

    def predict(self, X_new: object) -> Float[np.ndarray, "p k"]:
        """φ(u′, x) at corners. Time O(p|ℋ|k)."""
        return _products(signs(X_new), self.subsets) @ (self.coefficients[:, None] * self.u)


def memorise_on_top(X: object, Y: object, degree: int, coefficients: Float[np.ndarray, " subsets"]) -> SubsetSolution:
    """The u′ of Lemma E.3 for |λ_S| given for all C(d, k) subsets, in the order of `special.boolean.subsets(d, k)`.

    λ_o is their 99.5 % percentile: the largest value that at least 0.5 % of them reach. It is an InputError when ΦᵀΦ on
    ℋ is singular. Time O(n²|ℋ| + n³), memory n|ℋ|.
    """
    corners = signs(X)
    targets = _columns(Y, len(corners))
    check_sizes(corners.shape[1], degree)
    every = subsets(corners.shape[1], degree)
    given = check_numbers(coefficients, "coefficients")
    require(
        given.shape == (len(every),),
        f"coefficients of shape {given.shape}: expected ({len(every)},), one for each of the {len(every)} "
        f"subsets of {degree} coordinates.",
    )
    if bad := int((~np.isfinite(given)).sum()):
        raise InputError(f"{bad} of the {len(every)} coefficients are NaN or infinite: expected λ_S, finite numbers.")
    sizes = np.abs(given)
    level = float(np.sort(sizes)[-math.ceil(TOP * len(sizes))])
    chosen = sizes >= level
    features = _products(corners, every[chosen])
    G = features @ features.T
    smallest = float(np.linalg.eigvalsh(G)[0]) / int(chosen.sum())
    if level == 0 or smallest <= SINGULAR:
        reason = "λ_o = 0" if level == 0 else _why_singular(corners, degree, int(chosen.sum()))
        raise InputError(f"There is no memorising solution on the top {int(chosen.sum())} subsets: {reason}")
    spread = features.T @ scipy.linalg.cho_solve(cholesky_factor(G, lower=False), targets)
    return SubsetSolution(level, every[chosen], spread / sizes[chosen, None], sizes[chosen], smallest)


def _factor(G: Float[np.ndarray, "n n"]) -> tuple[np.ndarray, bool] | None:
    """The Cholesky factor, or None where rounding leaves none."""
    try:
        return cholesky_factor(G, lower=False)
    except np.linalg.LinAlgError:
        return None


def _smallest(G: Float[np.ndarray, "n n"], factor: tuple[np.ndarray, bool]) -> float:
    """λ_min(G): of a large matrix by Lanczos on its inverse, which costs less than the factor did."""
    if len(G) <= DENSE:
        return float(np.linalg.eigvalsh(G)[0])
    inverse = scipy.sparse.linalg.LinearOperator(G.shape, lambda v: scipy.linalg.cho_solve(factor, v), dtype=G.dtype)
    start = np.random.default_rng(0).standard_normal(len(G))
    return float(1 / scipy.sparse.linalg.eigsh(inverse, 1, v0=start, tol=1e-6, return_eigenvectors=False)[0])


def _products(corners: Float[np.ndarray, "n d"], chosen: Int[np.ndarray, "s k"]) -> Float[np.ndarray, "n s"]:
    return corners[:, chosen].prod(axis=2)


def _columns(Y: object, n: int) -> Float[np.ndarray, "n k"]:
    targets = check_targets(Y, n)
    return targets.reshape(n, -1)


def _why_singular(corners: Float[np.ndarray, "n d"], degree: int, count: int) -> str:
    if len(corners) > count:
        return f"{len(corners)} samples, and only {count} characters."
    folded = corners * corners[:, :1]  # opposite samples have the same characters of size k, up to one sign
    groups = merge_duplicates(folded, np.zeros(len(folded))).groups
    if groups:
        first, second = groups[0][:2]
        return f"rows {first} and {second} are equal or opposite, and characters of size {degree} tell no more of them."
    return "the characters are linearly dependent on these samples."
