"""Predicted training curves against the recursion iterated by hand, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.linalg import Spectrum
from offtangent.theory import largest_stable_rate, predict_residual, steps_to


@pytest.fixture
def spd_problem():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 8))
    H = A @ A.T / 8 + 0.01 * np.eye(8)
    return H, rng.standard_normal(8), 0.9 / np.linalg.eigvalsh(H)[-1]


def iterated(H, y, rate, steps):
    """‖y − u(k)‖ for k < steps of u(k+1) = u(k) − ηH(u(k) − y) from zero: eq. (7)."""
    u, norms = np.zeros_like(y), []
    for _ in range(steps):
        norms.append(np.linalg.norm(y - u))
        u = u - rate * H @ (u - y)
    return np.array(norms)


@pytest.mark.parametrize("part", [0.5, 1.0, 1.9])  # of 1/λ_max; beyond 1, 1 − ηλ is negative for the largest
def test_equals_the_linear_recursion(spd_problem, part):
    """The truth is eq. (7) iterated by hand; eq. (8) must agree to rounding at every step."""
    H, y, rate = spd_problem
    rate *= part / 0.9
    predicted = predict_residual(Spectrum.of(H), y, rate=rate, steps=np.arange(50))
    np.testing.assert_allclose(predicted.norm, iterated(H, y, rate, 50), rtol=1e-12)
    assert predicted.unknown == 0.0


def test_the_directions_sum_to_the_squared_norm(spd_problem):
    H, y, rate = spd_problem
    predicted = predict_residual(Spectrum.of(H), y, rate=rate, steps=np.array([0, 3, 1000]))
    assert predicted.by_direction.shape == (3, 8)
    np.testing.assert_allclose(predicted.by_direction.sum(axis=1), predicted.norm**2, rtol=1e-14)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_a_truncated_spectrum_gives_an_upper_bound(spd_problem, k):
    H, y, rate = spd_problem
    steps = np.arange(100)
    whole, part = (predict_residual(Spectrum.of(H, r), y, rate=rate, steps=steps) for r in (None, k))
    assert (part.norm >= whole.norm * (1 - 1e-14)).all()
    np.testing.assert_allclose(part.norm[0], np.linalg.norm(y), rtol=1e-14)
    np.testing.assert_allclose(part.unknown, y @ y - Spectrum.of(H, k).energy(y).sum(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("part", [0.5, 1.0, 1.9])  # of 1/λ_max; beyond λ_max/λ_r, 1 − ηλ vanishes for some λ < λ_r
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_whole_curve_lies_between_those_of_a_truncated_spectrum(spd_problem, k, part):
    H, y, rate = spd_problem
    rate *= part / 0.9
    steps = np.arange(200)
    whole, truncated = (predict_residual(Spectrum.of(H, r), y, rate=rate, steps=steps) for r in (None, k))
    assert (truncated.lower <= whole.norm * (1 + 1e-13)).all()
    assert (whole.norm <= truncated.norm * (1 + 1e-13)).all()
    np.testing.assert_array_equal(whole.lower, whole.norm)
    np.testing.assert_allclose(truncated.lower[0], np.linalg.norm(y), rtol=1e-14)


def test_the_bounds_of_a_truncated_spectrum_are_attained():
    """The unknown direction has an eigenvalue of λ_r, or of zero; ½⁴ of the known energy is left after two steps."""
    y, steps = np.array([1.0, 1.0]), np.array([0, 1, 2])
    for last, bound in ((0.5, "lower"), (0.0, "norm")):
        whole = predict_residual(Spectrum(np.array([0.5, last]), np.eye(2)), y, rate=1.0, steps=steps)
        known = predict_residual(Spectrum(np.array([0.5]), np.eye(2)[:, :1]), y, rate=1.0, steps=steps)
        np.testing.assert_allclose(getattr(known, bound), whole.norm, rtol=1e-15)


def test_labels_in_float32_lose_nothing(spd_problem):
    H, y, rate = spd_problem
    y = y.astype(np.float32)
    single, double = (
        predict_residual(Spectrum.of(H, 4), v, rate=rate, steps=np.arange(9)) for v in (y, y.astype(np.float64))
    )
    np.testing.assert_array_equal(single.norm, double.norm)


@pytest.mark.parametrize("predict", [lambda s, y, r: predict_residual(s, y, rate=r, steps=np.arange(3)),
                                     lambda s, y, r: steps_to(s, y, rate=r, loss=0.1)])  # fmt: skip
@pytest.mark.parametrize("rate", [2.0, 2.5, 0.0, -1.0, np.nan])
def test_an_unstable_rate_is_refused_with_a_safe_one(predict, rate):
    with pytest.raises(InputError, match=r"2/λ_max = 2\. rate=1 is safe"):
        predict(Spectrum.of(np.diag([1.0, 0.1])), np.ones(2), rate)


def test_negative_steps_are_refused():
    with pytest.raises(InputError, match="-2"):
        predict_residual(Spectrum.of(np.eye(2)), np.ones(2), rate=1.0, steps=np.array([3, -2]))


@pytest.mark.parametrize(("factor", "grows"), [(0.999, False), (1.001, True)])
def test_gradient_descent_converges_just_below_the_largest_stable_rate_and_diverges_just_above(
    spd_problem, factor, grows
):
    H, y, _ = spd_problem
    norms = iterated(H, y, factor * largest_stable_rate(Spectrum.of(H)), 10_001)
    assert (norms[10_000] > 100 * norms[0]) == grows
    assert (norms[10_000] < 1e-3 * norms[0]) != grows


def test_a_matrix_without_positive_eigenvalues_has_no_rate():
    with pytest.raises(InputError, match="learns nothing"):
        largest_stable_rate(Spectrum.of(np.zeros((2, 2))))


@given(
    st.lists(st.floats(0.02, 1.0), min_size=1, max_size=5),
    st.floats(0.05, 0.99),
    st.floats(1e-6, 0.999),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_steps_to_is_the_first_step_of_the_recursion_at_or_below_the_target(values, part, loss, seed):
    """`part` of 2/λ_max: above one half, 1 − ηλ is negative for the largest eigenvalue."""
    rng = np.random.default_rng(seed)
    n = len(values)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H, y = Q * np.array(values) @ Q.T, rng.standard_normal(n)
    rate = part * 2 / max(values)
    k = steps_to(Spectrum.of(H), y, rate=rate, loss=loss)
    u, history = np.zeros(n), []
    for _ in range(k + 1):
        history.append(np.sum((y - u) ** 2) / np.sum(y**2))
        u = u - rate * H @ (u - y)
    assert history[k] <= loss * (1 + 1e-9)
    assert k == 0 or history[k - 1] > loss * (1 - 1e-9)


@pytest.mark.parametrize("loss", [1.0, 1.5, 1e9])
@pytest.mark.parametrize("seed", range(5))
def test_the_initial_loss_itself_needs_no_step(loss, seed):
    A = np.random.default_rng(seed).standard_normal((6, 6))
    spectrum = Spectrum.of(A @ A.T)
    y = np.random.default_rng(seed + 100).standard_normal(6)
    assert steps_to(spectrum, y, rate=largest_stable_rate(spectrum) / 2, loss=loss) == 0


def test_one_step_is_enough_for_the_right_rate():
    assert steps_to(Spectrum.of(np.eye(3)), np.ones(3), rate=1.0, loss=1e-300) == 1


def test_a_number_of_steps_beyond_counting_is_found():
    """1e-12 of curvature: k = log(0.5) / (2 log(1 − 1e-12)) ≈ 3.5e11, where 1 − ηλ has 4 digits of ηλ left."""
    found = steps_to(Spectrum.of(np.diag([1.0, 1e-12])), np.array([0.0, 1.0]), rate=1.0, loss=0.5)
    assert found == pytest.approx(np.log(0.5) / (2 * np.log1p(-1e-12)), rel=1e-3)


def test_zero_labels_are_learnt_already():
    assert steps_to(Spectrum.of(np.eye(2)), np.zeros(2), rate=1.0, loss=0.1) == 0


@pytest.mark.parametrize("loss", [0.0, -1.0, np.nan])
def test_a_target_that_is_not_positive_is_refused(loss):
    with pytest.raises(InputError, match="positive fraction"):
        steps_to(Spectrum.of(np.eye(2)), np.ones(2), rate=1.0, loss=loss)


def test_a_loss_that_is_never_reached_is_refused_with_what_stays():
    flat = Spectrum.of(np.diag([1.0, 0.0]))
    with pytest.raises(InputError, match=r"never reached: 0\.5 of the labels"):
        steps_to(flat, np.ones(2), rate=1.0, loss=0.4)
    assert steps_to(flat, np.ones(2), rate=1.0, loss=0.6) == 1


def test_what_lies_outside_the_known_eigenvectors_is_never_learnt():
    known = Spectrum.of(np.diag([1.0, 0.5]), 1)
    with pytest.raises(InputError, match=r"never reached: 0\.5 of the labels"):
        steps_to(known, np.ones(2), rate=1.0, loss=0.4)


@pytest.mark.parametrize("rounding", [-1e-16, -1e-14, -1e-12])
def test_an_eigenvalue_negative_by_rounding_counts_as_zero(rounding):
    """(1 + 1e-12)^(2k) would grow beyond all bounds before bisection ends."""
    spectrum = Spectrum(np.array([1.0, 0.5, rounding]), np.eye(3))
    y = np.array([1.0, 1.0, 1e-8])
    assert steps_to(spectrum, y, rate=1.0, loss=1e-3) == 5  # ¼^k ≤ 2e-3 first at k = 5
    with pytest.raises(InputError, match=r"never reached: 0\.333 of"):
        steps_to(spectrum, np.ones(3), rate=1.0, loss=1e-3)
    curve = predict_residual(spectrum, np.array([0.0, 0.0, 1.0]), rate=1.0, steps=np.array([0, 10**15])).norm
    np.testing.assert_array_equal(curve, [1, 1])


def test_a_rate_from_the_smallest_eigenvalues_alone_is_refused():
    spectrum = Spectrum.of(np.diag([4.0, 1.0, 0.5]), 2, which="smallest")
    with pytest.raises(InputError, match="smallest eigenvalues only"):
        largest_stable_rate(spectrum)


def test_jax_mixes_no_dtypes_in_the_tests_of_a_paper():
    """What tests/conftest.py promises for this room, however deep the folder."""
    with pytest.raises(jax.dtypes.TypePromotionError):
        jnp.ones(2, jnp.float32) + jnp.ones(2, jnp.int32)
