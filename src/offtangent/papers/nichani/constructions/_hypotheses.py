"""What the lemmas and theorems ask for, next to what a cell has: the same conditions for all of the slices."""

from functools import cache

from offtangent.lab.hypotheses import Hypothesis
from offtangent.papers.nichani.constructions._setting import SIGMAS
from offtangent.special.sphere import harmonic_energies
from offtangent.theory.nichani.assumptions import bounded_assumption
from offtangent.theory.nichani.choice import RegulariserChoice

# An energy of a degree below it cannot be told from zero.
NOTHING = 1e-20


@cache
def supremum(sigma: str) -> float:
    """Find the largest of ‖σ‖∞, ‖σ'‖∞ and ‖σ''‖∞; infinite where one is."""
    return max(part.supremum for part in bounded_assumption(SIGMAS[sigma]).parts)


@cache
def smallest_energy(sigma: str, dim: int, degree: int) -> float:
    """Find the smallest λ_i(σ')² B(d, i), i ≤ k, and λ_i(σ'')² B(d, i), i = k − 1, k − 3, …, of Assumption 3."""
    first = harmonic_energies(SIGMAS[sigma], dim=dim, degree=degree, derivative=1)
    second = harmonic_energies(SIGMAS[sigma], dim=dim, degree=degree - 1, derivative=2)
    return float(min(first.min(), second[(degree - 1) % 2 :: 2].min()))


def on_activation(sigma: str, dim: int, degree: int) -> tuple[Hypothesis, ...]:
    """State Assumptions 2 and 3 of σ. The paper's < 1 is read as ≤: it names the sigmoid, whose supremum is 1."""
    return (
        Hypothesis("largest of ‖σ‖∞, ‖σ'‖∞, ‖σ''‖∞", supremum(sigma), "≤", 1 + 1e-9, "Assumption 2"),
        Hypothesis(
            "smallest energy of σ' and σ'' in use", smallest_energy(sigma, dim, degree), ">", NOTHING, "Assumption 3"
        ),
    )


def width_of_lemma_1(width: float | int, dim: int, degree: int) -> Hypothesis:
    """State m ≥ d^{2k}."""
    return Hypothesis("width m", width, "≥", float(dim) ** (2 * degree), "Lemma 1: d^(2k)")


def width_of_lemma_2(width: float | int, dim: int, degree: int) -> Hypothesis:
    """State m ≥ d^{10k}."""
    return Hypothesis("width m", width, "≥", float(dim) ** (10 * degree), "Lemma 2: d^(10k)")


def sizes_of_theorem_2(choice: RegulariserChoice, width: float | int, samples: int) -> tuple[Hypothesis, ...]:
    """State m ≳ max(d^{3(k−1)}ε⁻⁴, d^{10k}) and n ≳ max(d^k ε⁻², d^k log d)."""
    eps = f"ε_min = {choice.epsilon:.3g}"
    return (
        Hypothesis(
            "width m",
            width,
            "≥",
            choice.expressive_width,
            f"Theorem 2: max(d^(3(k−1)) ε_min⁻⁴, d^(10k)), {eps}",
            given=False,
        ),
        Hypothesis(
            "samples n", samples, "≥", choice.samples, f"Theorem 2: d^k max(ε_min⁻², log d), {eps}", given=False
        ),
    )


def width_of_lemma_3(width: float | int, choice: RegulariserChoice, samples: int) -> Hypothesis:
    """State m ≥ n⁴ d^{26(k+1)/3} ε_min^{−22/3}."""
    return Hypothesis("width m", width, "≥", choice.landscape_width(samples), "Lemma 3: n⁴ d^(26(k+1)/3) ε_min^(−22/3)")


def width_of_theorem_4(width: float | int, choice: RegulariserChoice) -> Hypothesis:
    """State m ≳ ε_min⁻⁴ d^{3(k−1)}."""
    return Hypothesis("width m", width, "≥", choice.generalising_width, "Theorem 4: ε_min⁻⁴ d^(3(k−1))", given=False)


def hidden(source: str) -> Hypothesis:
    """Say that the conclusion has a constant of ≲ that is taken as 1."""
    return Hypothesis("constant of ≲", 1, "=", 1, source, given=False)


def on_labels(share: float) -> Hypothesis:
    """State ℓ(y, z) ≤ 1, which no convex ℓ meets for every z: read at z = 0, where the network starts."""
    return Hypothesis("share of labels with ℓ(y, 0) > 1", share, "≤", 0.0, "Section 2.1: ℓ ≤ 1, read at z = 0")


def on_strengths(ratio: float | int) -> Hypothesis:
    """State that λ₄ is the theorem's; where it is, λ₁, λ₂ and λ₃ are as well."""
    return Hypothesis("λ₄ over the theorem's λ₄", ratio, "=", 1.0, "Lemma 3, Theorem 4: d^(−2(k−1)) ε_min")


def on_start(start: str) -> Hypothesis:
    """State that descent starts at W = 0."""
    return Hypothesis("start", start, "=", "W = 0", "Theorem 1")
