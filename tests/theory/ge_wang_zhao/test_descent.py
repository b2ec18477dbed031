"""Algorithm 1's numbers and Theorem 4's of Ge, Wang & Zhao, by hand: sizes that make every power a plain fraction."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.networks import QuadraticNet
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import algorithm1_settings, theorem4, theorem4_as_printed
from offtangent.training.perturbed import find_stationary

LOG_3200 = 8.070906088787819  # 7 log 2 + 2 log 5
GIVEN = {
    "samples": 3, "dim": 2, "width": 8, "smallest": 2, "radius": 2, "label": 0.75, "start": 1, "epsilon": 3 / 32,
}  # fmt: skip


def test_algorithm_1_has_the_numbers_of_its_first_line():
    """ℓ = 2, ρ = 8, ε = 1/2, c = 1/4, δ = 1/10, Δ = 1 and ten parameters: dℓΔ/(cε²δ) = 20/(1/160) = 3200."""
    found = algorithm1_settings(smoothness=2, hessian=8, epsilon=0.5, parameters=10, gap=1, c=0.25, delta=0.1)
    chi = 3 * LOG_3200  # 24.2…, as log 3200 > 4
    assert found.rate == 1 / 8
    assert found.gradient == pytest.approx(0.25 / chi**2, rel=1e-12)  # √c ε = ½ · ½
    assert found.radius == pytest.approx(0.125 / chi**2, rel=1e-12)  # over ℓ
    assert found.decrease == pytest.approx(1 / (32 * chi**3), rel=1e-12)  # ¼ √(1/64)
    assert found.wait == 388  # χℓ/(c²√(ρε)) = 24.2127 · 2/(1/16 · 2) = 387.40


def test_chi_is_no_less_than_twelve():
    """Two parameters, ℓ = ρ = Δ = c = 1, ε = 1 and δ = 1/2: log 4 < 4, and so χ = 12."""
    found = algorithm1_settings(smoothness=1, hessian=1, epsilon=1, parameters=2, gap=1, delta=0.5)
    assert (found.gradient, found.decrease, found.wait) == (pytest.approx(1 / 144), pytest.approx(1 / 1728), 12)


def test_a_perturbation_raises_the_function_by_what_the_proof_of_theorem_4_says():
    """Its equation (1): r g_thres + ℓr²/2 = 3cε²/2χ⁴ℓ. So the root of Algorithm 1's first line is over c alone."""
    found = algorithm1_settings(smoothness=2, hessian=8, epsilon=0.5, parameters=10, gap=1, c=0.25, delta=0.1)
    rise = found.radius * found.gradient + found.radius**2
    assert rise == pytest.approx(3 * 0.25 * 0.25 / (4 * (3 * LOG_3200) ** 4), rel=1e-12)


def test_theorem_4_has_its_constants():
    """N = 3, d = 2, σ = 2, ε = 3/32: σ²ε/nd = 1/16. B = 2, f(0) = 1: 6B⁴√(2(f(0) + 1)) = 6 · 16 · 2 = 192."""
    found = theorem4(**GIVEN)
    assert found.gamma == pytest.approx(1 / 4, rel=1e-12)
    assert found.hessian == pytest.approx(192 * 2, rel=1e-12)  # (nd/σ²ε)^{1/4} = 2
    assert found.smoothness == pytest.approx(48 * 4 * 4 + 0.75 * 4 + 0.25, rel=1e-12)  # 3B⁴·2(f(0) + 1)/γ + YB² + γ
    assert found.accuracy == pytest.approx(1 / (32 * 192), rel=1e-12)  # (1/16)^{5/4} = 1/32
    assert found.parameters == 16


def test_theorem_4_has_its_number_of_iterations():
    """B⁸ℓ(nd)^{5/2}(f(0) + 1)²/(σ⁵ε^{5/2}), and log⁴ of Bnrdℓ Δ(f(0) + 1)/(ε²δσ) with Δ = f(0) + 1."""
    found = theorem4(**GIVEN, delta=0.1)
    leading = 256 * 771.25 * 4 / 32 * 8**5  # nd/ε = 64
    inside = 2 * 3 * 8 * 2 * 771.25 * 2 * 2 / (9 / 1024 * 0.1 * 2)
    assert found.iterations == pytest.approx(leading * math.log(inside) ** 4, rel=1e-12)


def test_theorem_4_hands_algorithm_1_the_smaller_accuracy():
    """ε′ = 1/6144, ℓ = 771.25, ρ = 384, Δ = 2, dr = 16: √(ρε′) = ¼, and √(ε′³/ρ) = ¼/(6144 · 384)."""
    found = theorem4(**GIVEN).settings(delta=0.1)
    chi = 3 * math.log(16 * 771.25 * 2 * 6144**2 * 10)
    assert found.rate == pytest.approx(1 / 771.25, rel=1e-12)
    assert found.gradient == pytest.approx(1 / (6144 * chi**2), rel=1e-12)
    assert found.radius == pytest.approx(1 / (6144 * 771.25 * chi**2), rel=1e-12)
    assert found.decrease == pytest.approx(0.25 / (6144 * 384 * chi**3), rel=1e-12)
    assert found.wait == math.ceil(771.25 * 4 * chi)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"start": -2}, r"start=-2: f\(0\).*not negative.*risk.loss\(net.origin\)"),
        ({"start": math.nan}, "start=nan"),
        ({"start": math.inf}, "start=inf"),
        ({"delta": 0}, "delta=0: .*between 0 and 1"),
        ({"delta": 2}, "delta=2: .*between 0 and 1"),
        ({"delta": math.nan}, "delta=nan"),
        ({"width": 4}, r"width=4: Theorem 4 holds for r ≥ 2d \+ 2 = 6 neurons"),
        ({"epsilon": 0}, "epsilon=0"),
    ],
)
def test_numbers_outside_theorem_4_are_refused(wrong, text):
    with pytest.raises(InputError, match=text):
        theorem4(**GIVEN | wrong)


def test_more_samples_than_quadratic_forms_have_no_theorem4():
    with pytest.raises(InputError, match="samples=50: 2 inputs have 3 quadratic forms"):
        theorem4(samples=50, dim=2, width=6, smallest=1, radius=1, label=1, start=1, epsilon=0.1)


@pytest.fixture
def standard_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


def parallel(angle):
    """Two unit inputs at an angle, with labels 2 and −2: what `theorem4_as_printed` speaks of."""
    return np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]]), np.array([2.0, -2.0])


@pytest.mark.parametrize("angle", [0.05, 0.4, 1.2])
def test_the_pair_that_refutes_theorem_4_as_printed_has_the_numbers_of_its_proof(angle):
    """σ = ‖M(0)‖ = sin θ and f(0) = 1, by the tensors and matrices written out."""
    X, y = parallel(angle)
    squares = np.stack([np.outer(x, x).ravel() for x in X], axis=1)
    assert np.linalg.svd(squares, compute_uv=False)[-1] == pytest.approx(math.sin(angle), rel=1e-9)
    M = -sum(label * np.outer(x, x) for x, label in zip(X, y, strict=True)) / 2
    assert np.abs(np.linalg.eigvalsh(M)).max() == pytest.approx(math.sin(angle), rel=1e-9)
    found = theorem4_as_printed(angle)
    chosen = theorem4(samples=2, dim=2, width=6, smallest=math.sin(angle), radius=1, label=2, start=1, epsilon=0.5)
    assert found.settings.gradient > chosen.settings().gradient  # of ε, where the proof takes the smaller ε′
    assert found.ratio == np.mean(y**2) / 4 / 0.5


@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize(("angle", "c"), [(0.1, 1.0), (0.5, 1.0), (0.2, 0.5)])
def test_where_it_is_proven_to_stay_algorithm_1_returns_the_saddle(angle, c):
    found = theorem4_as_printed(angle, c=c)
    assert found.stays
    with jax.enable_x64(True):
        X, y = parallel(angle)
        gamma = math.sin(angle) * 0.5**0.5 / 2  # (σ²ε/nd)^½
        risk = QuadraticRisk.of(QuadraticNet(2, 6), X, y, gamma=gamma)
        zero = jnp.zeros((2, 6))
        for seed in range(3):
            end = find_stationary(risk, zero, found.settings, most=found.settings.wait + 10, key=jax.random.key(seed))
            assert bool(end.returned)
            assert not np.asarray(end.params).any()
        assert float(end.loss) == pytest.approx(1.0)


def test_the_way_down_from_the_saddle_stays_within_its_bounds():
    """A whole wait of plain descent, from the longest perturbation along the steepest way down."""
    found, angle = theorem4_as_printed(0.5), 0.5
    X, y = parallel(angle)
    gamma, signs = math.sin(angle) * 0.5**0.5 / 2, np.repeat([1.0, -1.0], 3)
    M = -(np.outer(X[0], X[0]) - np.outer(X[1], X[1]))
    W = np.zeros((2, 6))
    W[:, 0] = found.settings.radius * np.linalg.eigh(M)[1][:, 0]
    longest, gained = 0.0, 0.0
    for _ in range(found.settings.wait):
        seen = X @ W
        q = (seen**2) @ signs
        W = W - found.settings.rate * (X.T @ ((q - y)[:, None] * seen) / 2 * signs + gamma * W)
        q = ((X @ W) ** 2) @ signs
        longest = max(longest, np.linalg.norm(W))
        gained = max(gained, -np.mean(q * (q - 2 * y)) / 4 - gamma / 2 * np.sum(W**2))
    assert found.settings.radius < longest <= found.length
    assert 0 < gained <= found.gain


def test_wide_angles_are_not_proven_and_angles_out_of_range_are_refused():
    assert not theorem4_as_printed(1.5).stays
    assert not theorem4_as_printed(0.5, c=1e-3).stays
    for angle in (0.0, -0.1, 2.0):
        with pytest.raises(InputError, match="angle"):
            theorem4_as_printed(angle)
