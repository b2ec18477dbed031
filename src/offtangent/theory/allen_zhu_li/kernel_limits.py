"""Why kernels fail on F + αG(F): Theorem 2 of Allen-Zhu & Li (2019), its conditions and its lower bound on the norm.

The target is H(x) = (x_{i_1}, …, x_{i_k}) + α Π_j x_{i_j} (1, …, 1) on {±1}^d, with S* = {i_1, …, i_k} (Appendix E
scales inputs by √d). A kernel regression (3.1) has ‖u‖ at most that of any function through the samples; Lemma E.3 has
one, u′, that is small: `memorising.memorise` computes it, and its limit on N and the bound on ‖u′‖² are here. A
function that knows the product has a large one, by Lemma E.2. Theorem 2: with

    N ≤ O(d^{k/2}/log^k d) samples and α ∈ [Ω(d^{−k/4}), 1], k ≥ 4, every correlation kernel has E‖H − 𝔎‖² > α²/4

with probability 0.99. The proof shows more: each of the k outputs has an error above α²/4.
"""

import math
from dataclasses import dataclass

from offtangent._checks import check_bound, check_count, check_real, require
from offtangent._errors import InputError


def theorem2_samples(dim: int, degree: int) -> float:
    """d^{k/2}/log^k d: up to this N, times a constant that the paper leaves open, Theorem 2 speaks.

    >>> round(theorem2_samples(60, 4), 1), round(theorem2_samples(20, 4), 1)
    (12.8, 5.0)
    """
    check_sizes(dim, degree)
    return float((dim**0.5 / math.log(dim)) ** degree)


def memorising_samples(dim: int, degree: int) -> float:
    """(d/(20k² log² d))^{k/2}, Lemma E.3's limit on N: below 1 for k = 4 up to d = 35 000.

    >>> memorising_samples(60, 4) < 1e-3, int(memorising_samples(100_000, 4))
    (True, 5)
    """
    check_sizes(dim, degree)
    return float((dim / (20 * degree**2 * math.log(dim) ** 2)) ** (degree / 2))


def least_alpha(dim: int, degree: int) -> float:
    """40/(d/5)^{k/4}: the proof of Theorem 2 needs α at least this (it prints "at most"); for k = 4, 1 at d = 200.

    >>> least_alpha(200, 4), least_alpha(100_000, 4)
    (1.0, 0.002)
    """
    check_sizes(dim, degree)
    return float(40 / (dim / 5) ** (degree / 4))


def corollary71_samples(dim: int, alpha: float | int) -> float:
    """d/α⁸: up to logarithms, what Corollary 7.1 asks for to bring the ResNet's error down to Õ(α⁴).

    >>> round(corollary71_samples(20, 0.3))
    304832
    """
    check_count("dim", dim)
    check_alpha(alpha)
    require(
        alpha < 1,
        f"alpha={alpha:g}: Corollary 7.1 is about α below a constant, α in (0, 1). From α = 1 on Lemma D.2, which "
        "it rests on, is not stated, and α⁴ is no less than the α² of not learning G: take a smaller α.",
    )
    return dim / alpha**8


@dataclass(frozen=True)
class Theorem2:
    """Theorem 2 at given sizes: whether it speaks of them, and if not, which part of it does not.

    The constants of its O and Ω are open. `applies` takes them as 1; `explicit` asks for those that the proof has, its
    Lemma E.3's limit on N and α ≥ 40/(d/5)^{k/4}.
    """

    dim: int
    degree: int  # k
    samples: int  # N
    alpha: float

    @property
    def applies(self) -> bool:
        """Whether k ≥ 4, N ≤ d^{k/2}/log^k d and d^{−k/4} ≤ α ≤ 1."""
        enough = self.alpha >= self.dim ** (-self.degree / 4)
        return (
            self.degree >= 4 and enough and self.alpha <= 1 and self.samples <= theorem2_samples(self.dim, self.degree)
        )

    @property
    def explicit(self) -> bool:
        """Whether k ≥ 4, N ≤ (d/(20k² log² d))^{k/2} and 40/(d/5)^{k/4} ≤ α ≤ 1."""
        enough = self.alpha >= least_alpha(self.dim, self.degree)
        few = self.samples <= memorising_samples(self.dim, self.degree)
        return self.degree >= 4 and enough and self.alpha <= 1 and few

    @property
    def problems(self) -> tuple[str, ...]:
        """What does not apply, each with the part of the argument that is lost and the number that would do.

        The proof's own constants are asked for: it is empty where `explicit`, not wherever `applies`.
        """
        d, k, told = self.dim, self.degree, []
        if k < 4:
            told.append(f"k = {k}: Theorem 2 is for k ≥ 4; Proposition E.1, Lemmas E.2 and E.3 hold from k = 2 on.")
        if self.alpha > 1:
            told.append(
                f"α = {self.alpha:g} > 1: labels are no longer at most 2, so ‖u′‖ in the proof of Theorem 2 is not "
                "bounded, and Theorem 1 with Corollary 7.1 (α below a constant) is lost too. Lemmas E.2 and E.3 hold."
            )
        least = least_alpha(d, k)
        if self.alpha < least:
            room = (
                f"take α ≥ {least:.3g}" if least <= 1 else f"no α ≤ 1 will do below d = {math.ceil(5 * 40 ** (4 / k))}"
            )
            told.append(
                f"α = {self.alpha:g} < 40/(d/5)^(k/4) = {least:.3g}: the last step of the proof of Theorem 2, that the "
                f"bound on ‖u′‖ is below α/2|λ_S|, is lost ({room}). Lemmas E.2 and E.3 hold for every α, and "
                "memorise(X, Y, k) compares the norms themselves; Corollary 7.1 is for small α."
            )
        if self.samples > (limit := memorising_samples(d, k)):
            told.append(
                f"N = {self.samples} > (d/(20k² log² d))^(k/2) = {limit:.3g}: Lemma E.3 promises no memorising u′. One "
                "may exist: memorise(X, Y, k) computes it."
            )
        if self.samples > (limit := theorem2_samples(d, k)):
            told.append(f"N = {self.samples} > d^(k/2)/log^k d = {limit:.3g}: outside Theorem 2, but for its constant.")
        return tuple(told)


def theorem2(dim: int, degree: int, samples: int, alpha: float | int) -> Theorem2:
    """Theorem 2 for N = `samples` of {±1}^dim and a product of k = `degree` coordinates.

    >>> theorem2(60, 4, 1000, 0.3).applies, theorem2(60, 4, 12, 0.3).applies, theorem2(100_000, 4, 5, 0.3).explicit
    (False, True, True)
    """
    check_sizes(dim, degree)
    check_count("samples", samples)
    check_alpha(alpha)
    return Theorem2(dim, degree, samples, float(alpha))


def needed_norm(alpha: float | int, coefficient: float | int, *, error: float | int | None = None) -> float:
    """Lemma E.2: E|φ(u, x) − (x_i + αΠ_{j∈S} x_j)|² ≤ error needs ‖u‖ ≥ (α − √error)/|λ_S|; `coefficient` is λ_S.

    The lemma has error = α²/4, taken unless told. Infinite where λ_S = 0: then no such function exists.

    >>> needed_norm(0.5, 0.1), needed_norm(0.5, 0.1, error=0.0)
    (2.5, 5.0)
    """
    check_alpha(alpha)
    _check_coefficient(coefficient)
    allowed = alpha**2 / 4 if error is None else error
    check_real("error", allowed)
    if not 0 <= allowed < math.inf:
        raise InputError(f"error={allowed:g}: a mean squared error is zero or positive, and finite.")
    lack = max(alpha - math.sqrt(allowed), 0.0)
    return lack / abs(coefficient) if coefficient else math.inf if lack else 0.0


def error_floor(alpha: float | int, coefficient: float | int, norm: float | int) -> float:
    """The other way round: a function with ‖u‖ ≤ norm has an error of at least (α − |λ_S|·norm)².

    It is zero where |λ_S|·norm ≥ α.

    >>> error_floor(0.5, 0.1, 2.5), error_floor(0.5, 0.1, 7.0)
    (0.0625, 0.0)
    """
    check_alpha(alpha)
    _check_coefficient(coefficient)
    check_real("norm", norm)
    require(norm >= 0, f"norm={norm:g}: ‖u‖, or a bound on it, is at least 0; give math.inf where none is known.")
    seen = abs(coefficient) * norm if coefficient else 0.0  # and so for an infinite norm
    return max(alpha - seen, 0.0) ** 2


def memorising_bound(labels: float | int, dim: int, degree: int, coefficient: float | int) -> float:
    """400‖y‖²/((d/5)^k λ_o²), Lemma E.3's bound on ‖u′‖², with `labels` = ‖y‖² and `coefficient` = λ_o.

    It rests on C(d, k) ≥ (d/5)^k, which is refused where it is false: for k ≥ 12, at the latest, from some d on.
    """
    check_sizes(dim, degree)
    check_bound(coefficient=coefficient)
    check_real("labels", labels)
    require(
        0 <= labels < math.inf, f"labels={labels:g}: ‖y‖², the sum of the squared labels, is finite and at least 0."
    )
    if math.comb(dim, degree) < (dim / 5) ** degree:
        raise InputError(
            f"d = {dim}, k = {degree}: C(d, k) = {math.comb(dim, degree):.3g} is less than (d/5)^k = "
            f"{(dim / 5) ** degree:.3g}, which the bound of Lemma E.3 rests on. Take 2‖y‖²/(Λλ_o²) with Λ = C(d, k)."
        )
    return 400 * labels / ((dim / 5) ** degree * coefficient**2)


def _check_coefficient(coefficient: float | int) -> None:
    check_real("coefficient", coefficient)
    require(
        math.isfinite(coefficient),
        f"coefficient={coefficient:g}: λ_S is a finite number, which CubeKernel.of(kernel, dim).spectrum has as "
        "coefficient(k).",
    )


def check_sizes(dim: int, degree: int) -> None:
    """Refuse a product of fewer than two coordinates, or of more than there are."""
    check_count("dim", dim, least=2)
    check_count("degree", degree, least=2)
    require(degree <= dim, f"degree={degree}: a product of k coordinates of {dim}; k is at most {dim}.")


def check_alpha(alpha: float | int) -> None:
    """Refuse an α that is not positive and finite."""
    check_real("alpha", alpha)
    require(
        0 < alpha < math.inf,
        f"alpha={alpha:g}: H = F + αG(F) has α > 0; without G(F) there is nothing that kernels miss.",
    )
