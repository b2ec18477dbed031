"""Theorem 2's argument: norms and errors against enumeration of the whole cube, limits against the printed formulas."""

import math

import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import gaussian
from offtangent.kernels.coordinates import correlation_regression, cube_coefficients
from offtangent.kernels.correlation import correlation_kernel
from offtangent.kernels.cube import CubeKernel
from offtangent.special.boolean import character, corners, krawtchouk_matrix, subset_sizes, subsets
from offtangent.theory.allen_zhu_li.kernel_limits import (
    corollary71_samples,
    error_floor,
    least_alpha,
    memorising_bound,
    memorising_samples,
    needed_norm,
    theorem2,
    theorem2_samples,
)
from offtangent.theory.allen_zhu_li.kernel_risk import product_risk
from offtangent.theory.allen_zhu_li.memorising import memorise, memorise_on_top

DIM, S, ALPHA = 8, (1, 2, 4, 7), 0.4
NAMES = ["gaussian", "arcsine", "recursive arc-cosine", "fully connected NTK", "ResNet NTK", "u + u⁴"]


def target(X):
    return X[:, S] + ALPHA * character(S, X)[:, None]


def samples(n, dim=DIM, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], (n, dim))


def apart(n):
    """Corners no two of which are equal or opposite: those with x_1 = 1."""
    half = corners(DIM)[::2]
    return half[np.random.default_rng(0).permutation(len(half))[:n]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [40, 180])
def test_the_risk_is_the_mean_over_all_corners(name, count):
    X = samples(count)
    fit = correlation_regression(name, X, target(X), strength=1e-4)
    risk = product_risk(CubeKernel.of(correlation_kernel(name), DIM), X, fit.beta, S, ALPHA)
    x = corners(DIM)
    f = fit.predict(x / DIM**0.5)
    np.testing.assert_allclose(risk.outputs, ((f - target(x)) ** 2).mean(axis=0), rtol=1e-9, atol=1e-12)
    assert risk.total == pytest.approx(((f - target(x)) ** 2).sum(axis=1).mean(), rel=1e-9)
    np.testing.assert_allclose(risk.composite, (character(S, x) @ f / len(x) - ALPHA) ** 2, atol=1e-12)
    np.testing.assert_allclose(risk.base, ((x[:, S] * f).mean(axis=0) - 1) ** 2, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "u + u⁴", "ResNet NTK"])
@pytest.mark.parametrize("strength", [1e-8, 1e-4, 1e-2])
def test_lemma_e2_a_small_error_needs_a_large_norm(name, strength):
    X = samples(200)
    fit = correlation_regression(name, X, target(X), strength=strength)
    table = CubeKernel.of(correlation_kernel(name), DIM)
    errors, norms = product_risk(table, X, fit.beta, S, ALPHA).outputs, np.sqrt(fit.norms)
    for error, norm in zip(errors, norms, strict=True):
        assert norm >= needed_norm(ALPHA, table.spectrum.coefficient(4), error=error) * (1 - 1e-9)
        assert error >= error_floor(ALPHA, table.spectrum.coefficient(4), norm) * (1 - 1e-9)


def test_a_norm_of_any_size_is_no_use_where_the_kernel_does_not_see_the_product():
    assert error_floor(0.3, 0.0, math.inf) == 0.3**2
    assert error_floor(0.3, 0.1, math.inf) == 0


def test_lemma_e2_is_attained_but_for_the_part_of_x_i():
    """A u with λ_S u_S = α/2 and λ_i u_i = 1 has the error α²/4 and ‖u‖² = (α/2λ_S)² + 1/λ_i²."""
    roots = np.sqrt(cube_coefficients("gaussian", DIM))
    number, single = sum(1 << j for j in S), 1 << S[0]
    u = np.zeros(2**DIM)
    u[number], u[single] = ALPHA / 2 / roots[number], 1 / roots[single]
    x = corners(DIM)
    f = roots[number] * u[number] * character(S, x) + roots[single] * u[single] * x[:, S[0]]
    assert ((f - target(x)[:, 0]) ** 2).mean() == pytest.approx(ALPHA**2 / 4)
    assert np.linalg.norm(u) >= needed_norm(ALPHA, roots[number])
    assert np.abs(u[number]) == pytest.approx(needed_norm(ALPHA, roots[number]))


def test_the_memorising_solution_is_the_one_on_all_subsets_of_size_k():
    X = apart(25)
    Y = target(X)
    features = np.stack([character(T, X) for T in subsets(DIM, 4)])  # Φ
    spread = features @ np.linalg.solve(features.T @ features, Y)
    found = memorise(X, Y, 4)
    np.testing.assert_allclose(found.quadratics, (spread**2).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(found.predict(X), Y, atol=1e-10)
    assert found.smallest == pytest.approx(np.linalg.eigvalsh(features.T @ features)[0] / 70)
    assert found.features == 70
    np.testing.assert_allclose(found.norms(0.1), found.quadratics * 100)
    assert np.isinf(found.norms(0.0)).all()


def test_it_is_the_smallest_function_of_degree_k_through_the_labels():
    X = apart(25)
    Y = target(X)
    features = np.stack([character(T, X) for T in subsets(DIM, 4)])
    smallest = np.linalg.lstsq(features.T, Y, rcond=None)[0]
    np.testing.assert_allclose(memorise(X, Y, 4).quadratics, (smallest**2).sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "u + u⁴", "ResNet NTK"])
def test_every_regression_is_smaller_than_the_memorising_solution_and_errs_by_its_floor(name):
    X = samples(60, dim=14)
    S14 = (0, 3, 8, 13)
    Y = X[:, S14] + ALPHA * character(S14, X)[:, None]
    table, held = CubeKernel.of(correlation_kernel(name), 14), memorise(X, Y, 4)
    for strength in (1e-9, 1e-5, 1e-2):
        fit = correlation_regression(name, X, Y, strength=strength)
        assert (fit.norms <= held.norms(table.spectrum.coefficient(4)) * (1 + 1e-9)).all()
        errors = product_risk(table, X, fit.beta, S14, ALPHA).outputs
        assert (errors >= held.floor(ALPHA)).all()
    assert (held.floor(ALPHA) > 0).all()


@pytest.mark.parametrize(("dim", "count", "paper"), [(30, 50, 0.74), (30, 150, 0.75), (30, 400, 0.62), (60, 400, 0.91)])
def test_the_gram_matrix_is_well_conditioned_far_beyond_lemma_e3_s_limit(dim, count, paper):
    """λ_min(ΦᵀΦ)/Λ against one draw each, made elsewhere; draws differ by a tenth, and by more where N is small."""
    X = samples(count, dim)
    found = np.linalg.eigvalsh(krawtchouk_matrix(4, X))[0] / math.comb(dim, 4)
    assert found == pytest.approx(paper, abs=0.15)
    assert count > memorising_samples(dim, 4)


def test_where_the_gram_matrix_is_at_least_half_the_bound_of_lemma_e3_holds():
    X = samples(100, 30)
    Y = X[:, :4] + 0.3 * X[:, :4].prod(axis=1, keepdims=True)
    found = memorise(X, Y, 4)
    assert found.smallest >= 0.5
    for labels, norm in zip((Y**2).sum(axis=0), found.norms(0.01), strict=True):
        assert norm <= 2 * labels / (found.features * 0.01**2) <= memorising_bound(labels, 30, 4, 0.01)


@pytest.mark.parametrize(
    ("X", "degree", "why"),
    [
        (np.vstack([samples(5), samples(5)[2:3]]), 3, "rows 2 and 5 are equal or opposite"),
        (np.vstack([samples(5), -samples(5)[2:3]]), 4, "rows 2 and 5 are equal or opposite"),
        (samples(30, 5), 2, "30 samples, and only 10 characters"),
    ],
)
def test_labels_that_no_solution_has_are_told(X, degree, why):
    found = memorise(X, X[:, :1] + 0.3 * X[:, :degree].prod(axis=1, keepdims=True), degree)
    assert not found.exists
    assert why in found.problem
    assert np.isinf(found.quadratics).all()
    assert found.floor(0.3).max() == 0
    with pytest.raises(InputError, match="no memorising solution"):
        found.predict(X)


def of_theorem2(X, alpha):
    return X[:, :4] + alpha * X[:, :4].prod(axis=1, keepdims=True)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.7])
def test_the_floor_is_for_theorem_2_s_labels_and_in_single_precision_too(alpha):
    X = samples(40, 16)
    Y = of_theorem2(X, alpha)
    expected = np.maximum(alpha - np.sqrt(memorise(X, Y, 4).quadratics), 0) ** 2
    np.testing.assert_allclose(memorise(X, Y, 4).floor(alpha), expected)
    np.testing.assert_allclose(memorise(X, Y.astype(np.float32), 4).floor(alpha), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "output"),
    [
        (lambda Y: 0 * Y, 0),
        (lambda Y: 2 * Y, 0),
        (lambda Y: -Y, 0),
        (np.sign, 0),
        (lambda Y: np.hstack([Y[:, :2], Y[:, 2:] + 0.01]), 2),
    ],
)
def test_no_floor_is_certified_for_labels_that_are_not_theorem_2_s(change, output):
    X = samples(40, 16)
    with pytest.raises(InputError, match=rf"^Output {output} of Y is no x_j \+ αχ_S\(x\) with α = 0\.3"):
        memorise(X, change(of_theorem2(X, 0.3)), 4).floor(0.3)


def test_no_floor_is_certified_for_another_alpha_than_the_labels():
    X = samples(40, 16)
    with pytest.raises(InputError, match=r"with α = 0\.3.*the same alpha here"):
        memorise(X, of_theorem2(X, 0.4), 4).floor(0.3)


def test_with_one_lambda_the_top_subsets_are_all_of_them():
    X = apart(20)
    Y, coefficient = target(X), 0.2
    every = memorise_on_top(X, Y, 4, np.full(70, coefficient))
    assert len(every.subsets) == 70
    np.testing.assert_allclose(every.norms, memorise(X, Y, 4).norms(coefficient), rtol=1e-9)
    np.testing.assert_allclose(every.predict(X), Y, atol=1e-9)


def test_with_many_lambdas_half_a_percent_of_the_subsets_is_kept():
    dim, rng = 16, np.random.default_rng(0)
    X, lambdas = samples(6, dim), rng.uniform(0.1, 1.0, math.comb(16, 4))
    found = memorise_on_top(X, np.arange(6.0), 4, lambdas)
    assert len(found.subsets) == math.ceil(0.005 * 1820)
    assert found.level == np.sort(lambdas)[-10]
    assert (found.coefficients >= found.level).all()
    np.testing.assert_allclose(found.predict(X)[:, 0], np.arange(6.0), atol=1e-9)
    assert np.mean(lambdas <= found.level) >= 0.995  # what S* is with probability 0.995


def test_the_order_of_coefficients_is_that_of_the_subsets():
    sizes = subset_sizes(DIM)
    numbers = (1 << subsets(DIM, 4)).sum(axis=1)
    assert (sizes[numbers] == 4).all()


def test_the_limits_are_the_printed_ones():
    for dim, k in ((60, 4), (1000, 6)):
        log = math.log(dim)
        assert theorem2_samples(dim, k) == pytest.approx(dim ** (k / 2) / log**k)
        assert memorising_samples(dim, k) == pytest.approx((dim / (20 * k**2 * log**2)) ** (k / 2))
        assert least_alpha(dim, k) == pytest.approx(40 / (dim / 5) ** (k / 4))
    assert corollary71_samples(30, 0.3) == pytest.approx(30 / 0.3**8)


def test_the_proof_s_last_step_follows_from_its_two_conditions():
    """N and α at their limits: ‖u‖² ≤ 4kN·400/((d/5)^k λ²) is at most (α/2λ)²; with α below, as printed, it is not."""
    for dim in (40_000, 10**6):
        for k in (4, 6):
            if (count := memorising_samples(dim, k)) < 1:
                continue
            bound = 1600 * k * count / (dim / 5) ** k
            assert bound <= (least_alpha(dim, k) / 2) ** 2
            assert bound > (least_alpha(dim, k) * 1e-8 / 2) ** 2


def test_sizes_that_the_theorem_does_not_speak_of_are_told_with_the_part_that_is_lost():
    assert theorem2(100_000, 4, 5, 0.3).problems == ()
    (few,) = theorem2(100_000, 4, 6, 0.3).problems
    assert "Lemma E.3 promises no" in few
    told = " ".join(theorem2(60, 4, 1000, 0.3).problems)
    assert "no α ≤ 1 will do below d = 200" in told
    assert "outside Theorem 2" in told
    assert "last step of the proof" in theorem2(100_000, 4, 5, 1e-4).problems[0]
    assert "Corollary 7.1" in theorem2(100_000, 4, 5, 1.5).problems[0]
    assert "k ≥ 4" in theorem2(100_000, 3, 1, 0.5).problems[0]
    assert not theorem2(100_000, 4, 5, 1e-6).applies


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: theorem2(10, 4, 5, 0), "α > 0"),
        (lambda: theorem2(3, 4, 5, 0.3), "k is at most 3"),
        (lambda: corollary71_samples(20, 2.0), r"Corollary 7\.1 is about α below a constant.*Lemma D\.2"),
        (lambda: corollary71_samples(20, 0), "α > 0"),
        (lambda: product_risk(gaussian(), samples(5), np.ones((5, 2)), (0, 1), 0.3), r"CubeKernel\.of\(kernel, 8\)"),
        (
            lambda: product_risk(CubeKernel.of(gaussian(), 8), samples(5), np.ones((5, 2)), (0, 40), 0.3),
            "different coordinates, whole numbers from 0 to 7",
        ),
        (lambda: product_risk("gaussian", samples(5), np.ones((5, 2)), (0, 1), 0.3), r"CubeKernel\.of\(kernel, 8\)"),
        (
            lambda: product_risk(CubeKernel.of("gaussian", 3), samples(5), np.ones((5, 4)), range(4), 0.3),
            "a table for 3 dimensions, and X has 8 columns",
        ),
        (lambda: needed_norm(0.3, 0.1, error=-1), "zero or positive"),
        (lambda: needed_norm(0.3, 0.1, error=math.nan), "zero or positive"),
        (lambda: needed_norm(0.3, math.nan), "coefficient=nan: λ_S is a finite number"),
        (lambda: error_floor(0.3, 0.1, -1), "norm=-1: .* at least 0"),
        (lambda: error_floor(0.3, 0.1, math.nan), "norm=nan"),
        (lambda: error_floor(0.3, math.nan, 1.0), "coefficient=nan"),
        (lambda: error_floor(math.nan, 0.1, 1.0), "alpha=nan"),
        (lambda: memorising_bound(1.0, 2000, 12, 0.1), "less than"),
        (lambda: memorise_on_top(samples(5), np.ones(5), 4, np.ones(3)), "the 70 subsets"),
        (lambda: memorise_on_top(samples(5), np.ones(5), 4, np.zeros(70)), "λ_o = 0"),
        (lambda: memorise(samples(5), np.ones(4), 4), r"expected \(5,\)"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, said):
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(("samples", "applies"), [(1, True), (12, True), (13, False), (25, False)])
def test_theorem_2_applies_up_to_its_limit_on_n_with_a_constant_of_one(samples, applies):
    """d²/log⁴ d = 12.8 at d = 60."""
    assert theorem2(60, 4, samples, 0.3).applies == applies
