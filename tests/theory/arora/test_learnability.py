"""Section 6: the series and its algebra against mpmath and dense matrices, the targets against direct formulas."""

import math

import mpmath
import numpy as np
import pytest
import scipy.linalg

from offtangent._errors import InputError
from offtangent.kernels import Gram, relu_hidden
from offtangent.theory.arora.learnability import Target, sample_size, tensor_powers

DIM = 4
BETA = np.array([0.3, -0.4, 0.5, 0.2])
A = (lambda B: (B + B.T) / 6)(np.random.default_rng(5).standard_normal((DIM, DIM)))
LENGTH = float(np.linalg.norm(BETA))
C = relu_hidden.series(201)  # the coefficients c_p; tested against mpmath with the kernels

TARGETS = {
    "linear": (Target.linear(BETA), lambda X: X @ BETA),
    "power": (Target.power(BETA, 6, coefficient=-2.5), lambda X: -2.5 * (X @ BETA) ** 6),
    "quadratic": (Target.quadratic(A), lambda X: np.einsum("ni,ij,nj->n", X, A, X)),
    "cosine": (Target.cosine(3 * BETA), lambda X: np.cos(3 * X @ BETA) - 1),
    "arctan": (Target.arctan(BETA), lambda X: X @ BETA * np.arctan(X @ BETA / 2)),
    "series": (Target.series(BETA, [0.0, 1.0, -2.0, 0.0, 3.0]), lambda X: np.polyval([3, 0, -2, 1, 0], X @ BETA)),
    "sum": (Target.linear(BETA) + Target.quadratic(A), lambda X: X @ BETA + np.einsum("ni,ij,nj->n", X, A, X)),
}


@pytest.fixture(scope="module")
def inputs():
    X = np.random.default_rng(0).standard_normal((60, DIM))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def gram(inputs):
    return Gram(relu_hidden, inputs).dense()


def test_the_series_adds_up_to_the_gram_matrix(inputs, gram):
    K = inputs @ inputs.T
    far = np.abs(K) < 0.9  # where 200 powers are enough
    total = sum(C[p] * K**p for p in range(201))
    np.testing.assert_allclose(total[far], gram[far], atol=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4])
def test_inner_products_of_tensor_powers_are_powers_of_inner_products(inputs, power):
    rows = tensor_powers(inputs, power)
    assert rows.shape == (60, DIM**power)
    np.testing.assert_allclose(rows @ rows.T, (inputs @ inputs.T) ** power, atol=1e-14)
    np.testing.assert_allclose(rows @ tensor_powers(BETA[None], power)[0], (inputs @ BETA) ** power, atol=1e-14)


@pytest.mark.parametrize("power", [1, 2, 4, 6])
def test_the_gram_matrix_lies_above_each_of_its_terms(inputs, gram, power):
    """H∞ ⪰ c_p K^{∘p} ⪰ K^{∘p}/(2π(p−1)²), the step on which Theorem 6.1 rests."""
    K = (inputs @ inputs.T) ** power
    assert np.linalg.eigvalsh(gram - C[power] * K)[0] >= -1e-13
    if power > 1:
        assert C[power] >= 1 / (2 * math.pi * (power - 1) ** 2)


def test_the_gram_matrix_does_not_lie_above_any_multiple_of_an_odd_power():
    """On points and their antipodes H∞ is singular where K^{∘3} is not: no constant can save p = 3."""
    half = np.random.default_rng(1).standard_normal((DIM + 3, DIM))
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    X = np.concatenate([half, -half])
    values, vectors = np.linalg.eigh(Gram(relu_hidden, X).dense())
    null = vectors[:, np.abs(values) < 1e-13]
    assert null.shape[1] == 3
    assert np.linalg.eigvalsh(null.T @ (X @ X.T) ** 3 @ null)[0] > 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_lemma_e1_the_inverse_reverses_the_order_on_the_smaller_ones_range(seed):
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((6, rng.integers(1, 6)))
    smaller = half @ half.T
    more = rng.standard_normal((6, rng.integers(1, 7)))
    larger = smaller + more @ more.T
    projection = scipy.linalg.orth(half) @ scipy.linalg.orth(half).T
    gap = np.linalg.pinv(smaller) - projection @ np.linalg.pinv(larger) @ projection
    assert np.linalg.eigvalsh(gap)[0] >= -1e-12 * np.linalg.norm(np.linalg.pinv(smaller))


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_its_formula(inputs, name):
    target, formula = TARGETS[name]
    np.testing.assert_allclose(target(inputs), formula(inputs), atol=1e-14)


@pytest.mark.parametrize("name", TARGETS)
def test_its_labels_cost_less_than_the_tightest_bound_and_this_less_than_the_papers(inputs, gram, name):
    target, _ = TARGETS[name]
    y = target(inputs)
    cost = math.sqrt(y @ np.linalg.solve(gram, y))
    assert 0.1 * target.tightest < cost <= target.tightest <= target.proof * (1 + 1e-12)
    assert target.proof <= target.bound


def test_the_bounds_are_the_papers_closed_forms():
    assert TARGETS["linear"][0].bound == pytest.approx(3 * LENGTH)
    assert TARGETS["linear"][0].tightest == TARGETS["linear"][0].proof == pytest.approx(2 * LENGTH)
    assert TARGETS["power"][0].bound == pytest.approx(3 * 6 * 2.5 * LENGTH**6)
    assert TARGETS["power"][0].proof == pytest.approx(math.sqrt(2 * math.pi) * 5 * 2.5 * LENGTH**6)
    assert TARGETS["quadratic"][0].bound == pytest.approx(6 * np.linalg.norm(A, "nuc"))
    assert TARGETS["quadratic"][0].tightest == pytest.approx(math.sqrt(2 * math.pi) * np.linalg.norm(A))
    assert TARGETS["cosine"][0].bound == pytest.approx(3 * (3 * LENGTH) * math.sinh(3 * LENGTH), rel=1e-13)
    z = LENGTH / 2  # Σ 3·2j·2^{1−2j}/(2j−1) ‖β‖^{2j} = 3(2z²/(1 − z²) + 2z artanh z)
    assert TARGETS["arctan"][0].bound == pytest.approx(3 * (2 * z**2 / (1 - z**2) + 2 * z * math.atanh(z)), rel=1e-13)
    total = TARGETS["linear"][0].bound + TARGETS["quadratic"][0].bound
    assert TARGETS["sum"][0].bound == pytest.approx(total, rel=1e-15)


@pytest.mark.parametrize("length", [1e-3, 1.0, 20.0])
def test_series_are_as_long_as_their_argument_needs(length):
    beta = length * BETA / LENGTH
    assert Target.cosine(beta).bound == pytest.approx(3 * length * math.sinh(length), rel=1e-12)
    with mpmath.workdps(30):
        square = mpmath.nsum(
            lambda j: (mpmath.mpf(length) ** (2 * j) / mpmath.factorial(2 * j)) ** 2
            * 2 * mpmath.pi * (2 * j - 1) * mpmath.fac2(2 * j - 2) / mpmath.fac2(2 * j - 3),
            [1, 60],
        )  # fmt: skip
    assert Target.cosine(beta).tightest == pytest.approx(float(mpmath.sqrt(square)), rel=1e-12)


def test_parts_that_cancel_cost_nothing_in_the_tightest_bound():
    target = Target.cosine(BETA) + Target.series(BETA, [0.0, 0.0, 0.5]) + Target.power(BETA, 4, coefficient=-1 / 24)
    rest = LENGTH**6 / 720 / math.sqrt(C[6])
    assert target.tightest == pytest.approx(rest, rel=1e-2)
    assert target.bound > Target.cosine(BETA).bound


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Target.power(BETA, 3), "power 3 is odd"),
        (lambda: Target.series(BETA, [0.0, 1.0, 0.0, 0.0, 0.0, 1e-9]), "power 5 is odd"),
        (lambda: Target.power(BETA, 0), "constant 1 has no term"),
        (lambda: Target.power(BETA, -2), "power=-2"),
        (lambda: Target.arctan(3 * BETA), "Divide β by its length"),
        (lambda: Target.cosine(1e4 * BETA), "too long"),
        (lambda: Target.cosine(0 * BETA), "positive, finite length"),
        (lambda: Target.quadratic(np.array([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
        (lambda: Target.linear(np.array([1.0, np.nan])), "finite"),
        (lambda: Target.linear(BETA) + Target.linear(BETA[:2]), "one dimension"),
        (lambda: Target.linear(BETA)(np.ones((2, 3))), "dimension 4"),
        (lambda: tensor_powers(np.ones((2, 2)), -1), "power=-1"),
    ],
)
def test_what_section_6_does_not_cover_is_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()


def test_a_constant_on_the_sphere_is_a_quadratic(inputs):
    np.testing.assert_allclose(Target.quadratic(0.7 * np.eye(DIM))(inputs), 0.7, atol=1e-14)


def test_zero_labels_cost_nothing(inputs):
    for target in (Target.quadratic(np.zeros((DIM, DIM))), Target.series(BETA, [0.0]), Target.series(BETA, [0.0, 0.0])):
        assert (target.bound, target.proof, target.tightest) == (0.0, 0.0, 0.0)
        np.testing.assert_array_equal(target(inputs), np.zeros(60))


def test_samples_grow_with_the_square_of_the_bound():
    """M_g bounds yᵀH⁻¹y: twice the target takes four times as many (but for log 1/δ)."""
    once, twice = (Target.linear(factor * BETA).samples(epsilon=0.1, delta=0.5) for factor in (1.0, 2.0))
    log = math.log(2) / 0.01
    assert twice - log == pytest.approx(4 * (once - log))
    assert once - log == pytest.approx(9 * LENGTH**2 / 0.01)
    with pytest.raises(InputError, match="bounds a square"):
        sample_size(-1.0, epsilon=0.1, delta=0.1)
