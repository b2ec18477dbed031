"""Lemmas 1 and 3 to 5 of Ge, Wang & Zhao, in float64 against autodiff, dense eigenvalues and explicit tensors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from offtangent._errors import InputError
from offtangent.networks import PolynomialNet, QuadraticNet
from offtangent.theory import QuadraticRisk
from offtangent.theory.ge_wang_zhao.descent import DescentSettings, algorithm1_settings, theorem4
from offtangent.theory.ge_wang_zhao.landscape import interpolant, negative_curvature_descent, smoothness

DIM, COUNT = 4, 9


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


def problem(width=2 * DIM + 2, *, gamma=0.0, seed=0, size=0.6):
    rng = np.random.default_rng(seed)
    risk = QuadraticRisk.of(
        QuadraticNet(DIM, width), rng.standard_normal((COUNT, DIM)), rng.standard_normal(COUNT), gamma=gamma
    )
    return risk, jnp.asarray(size * rng.standard_normal((DIM, width)))


@eqx.filter_jit
def hessian(risk, W):
    flat, unravel = ravel_pytree(W)
    return jax.hessian(lambda v: risk(unravel(v)))(flat)


def dense_hessian(risk, W):
    return np.asarray(hessian(risk, W))


def smallest_singular(X):
    tensors = np.einsum("ni,nj->nij", X, X).reshape(len(X), -1).T
    return np.linalg.svd(tensors, compute_uv=False)[-1]


def test_value_gradient_and_hessian_form_are_those_of_autodiff():
    risk, W = problem(gamma=0.3)
    V = np.asarray(W)
    residuals = [
        sum((1 if i < 5 else -1) * (V[:, i] @ x) ** 2 for i in range(10)) - y
        for x, y in zip(np.asarray(risk.X), np.asarray(risk.y), strict=True)
    ]
    assert float(risk(W)) == pytest.approx(np.mean(np.square(residuals)) / 4 + 0.15 * float((W**2).sum()), rel=1e-13)
    np.testing.assert_allclose(risk.gradient(W), jax.grad(risk)(W), rtol=1e-12)
    Z = jnp.asarray(np.random.default_rng(1).standard_normal(W.shape))
    flat = np.asarray(Z).ravel()
    assert float(risk.hessian_form(W, Z)) == pytest.approx(flat @ dense_hessian(risk, W) @ flat, rel=1e-12)


def test_the_dense_hessian_is_that_of_autodiff():
    risk, W = problem(gamma=0.3)
    np.testing.assert_allclose(risk.hessian(W), dense_hessian(risk, W), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_lemma_3_the_smallest_curvature_is_minus_the_norm_of_m(seed):
    risk, W = problem(gamma=0.1, seed=seed)
    lowest = np.linalg.eigvalsh(dense_hessian(risk, W))[0]
    assert float(risk.lowest_curvature(W)) == pytest.approx(lowest, abs=1e-12)


def test_lemma_3_holds_at_zero_for_any_width_and_fails_somewhere_at_2d():
    risk, W = problem(2 * DIM)
    zero = risk.net.origin
    assert float(risk.lowest_curvature(zero)) == pytest.approx(
        np.linalg.eigvalsh(dense_hessian(risk, zero))[0], abs=1e-12
    )
    gap = np.linalg.eigvalsh(dense_hessian(risk, W))[0] - float(risk.lowest_curvature(W))
    assert gap > 1e-3
    with pytest.raises(InputError, match=r"needs r ≥ 2d \+ 2 = 10 neurons"):
        risk.curvature(W)


@pytest.mark.parametrize("flip", [1.0, -1.0])
def test_the_direction_of_lemma_3_has_that_curvature_and_the_best_step(flip):
    """Both signs of zᵀMz, so that both halves of the neurons get to move."""
    risk, W = problem(seed=3)
    risk = QuadraticRisk(risk.net, risk.X, flip * risk.y + 5 * flip)
    found = risk.curvature(W)
    assert np.sign(found.value) == -flip
    assert float(jnp.linalg.norm(found.Z)) == pytest.approx(1.0, rel=1e-12)
    assert float(risk.hessian_form(W, found.Z)) == pytest.approx(-abs(float(found.value)), rel=1e-9)
    assert float(risk.lowest_curvature(W)) == pytest.approx(-abs(float(found.value)), rel=1e-12)
    at = [float(risk.loss(W + t * found.Z)) for t in np.linspace(0, 2 * float(found.best), 201)]
    assert np.argmin(at) == 100
    assert at[0] - at[100] == pytest.approx(float(found.gain), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_lemma_4_the_loss_is_at_most_its_bound(seed):
    risk, W = problem(seed=seed)
    sigma = smallest_singular(np.asarray(risk.X))
    assert float(risk.loss(W)) <= float(risk.bound(W, sigma))
    assert float(risk.bound(W, 2 * sigma)) == pytest.approx(float(risk.bound(W, sigma)) / 4)


def test_lemma_5_no_pair_of_points_in_the_ball_moves_faster():
    risk, _ = problem(gamma=0.2)
    B, Y = float(jnp.linalg.norm(risk.X, axis=1).max()), float(jnp.abs(risk.y).max())
    ball = 2.0
    limits = smoothness(radius=B, label=Y, ball=ball, gamma=0.2)
    rng = np.random.default_rng(4)
    for _ in range(10):
        U, V = (jnp.asarray(rng.standard_normal((DIM, 10))) for _ in range(2))
        U, V = (ball**0.5 * W / jnp.linalg.norm(W) for W in (U, U + 0.3 * V))
        apart = float(jnp.linalg.norm(U - V))
        assert float(jnp.linalg.norm(risk.gradient(U) - risk.gradient(V))) <= limits.gradient * apart
        assert np.linalg.norm(hessian(risk, U) - hessian(risk, V), 2) <= limits.hessian * apart


def test_the_interpolant_has_no_loss_and_the_least_quadratic_form():
    risk, _ = problem(2 * DIM)
    W = interpolant(risk.net, np.asarray(risk.X), np.asarray(risk.y))
    assert float(risk.loss(jnp.asarray(W))) < 1e-24
    A = np.diag([1.0] * DIM + [-1.0] * DIM)
    S = W @ A @ W.T
    X = np.asarray(risk.X)
    tensors = np.einsum("ni,nj->nij", X, X).reshape(len(X), -1)
    np.testing.assert_allclose(S.ravel(), np.linalg.lstsq(tensors, np.asarray(risk.y), rcond=None)[0], atol=1e-10)


def test_labels_that_cannot_be_had_are_refused():
    net, X = QuadraticNet(2, 4), np.array([[1.0, 0.0], [-2.0, 0.0]])
    with pytest.raises(InputError, match=r"Rows 0 and 1 of X.*signs"):
        interpolant(net, X, [1.0, 2.0])
    with pytest.raises(InputError, match=r"contradict.* 4 samples are more than the 3 that quadratic forms"):
        interpolant(net, [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InputError, match="2 eigenvalues of one sign, and there are 1"):
        interpolant(QuadraticNet(2, 2), np.eye(2), [1.0, 2.0])


def test_rows_that_are_nearly_parallel_are_named_and_said_to_be_dependent_to_rounding():
    X = np.random.default_rng(0).standard_normal((5, 3))
    X[4] = -2 * X[1] + np.array([0.0, 0.0, 1e-10])
    with pytest.raises(InputError, match=r"5 matrices xxᵀ are not independent to rounding.*Rows 1 and 4 of X"):
        interpolant(QuadraticNet(3, 8), X, np.ones(5))


def test_rows_that_are_dependent_without_a_parallel_pair_name_none():
    turns = np.array([0.1, 0.8, 1.5, 2.3])  # four in a plane, where there are three quadratic forms
    X = np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
    with pytest.raises(InputError, match=r"not independent to rounding[^R]*smooth_inputs"):
        interpolant(QuadraticNet(3, 8), X, np.array([1.0, 2.0, -1.0, 3.0]))


def three_layers(*, dim=3, features=5, power=2):
    net = PolynomialNet.gaussian(dim=dim, features=features, width=12, power=power, key=jax.random.key(2))
    rng = np.random.default_rng(8)
    return net, rng.standard_normal((8, dim)), rng.standard_normal(8)


def test_the_risk_of_three_layers_is_the_mean_square_of_their_residuals():
    net, X, y = three_layers()
    W = net.init(key=jax.random.key(3))
    outputs = ((X @ np.asarray(net.R).T) ** 2 @ np.asarray(W)) ** 2 @ np.repeat([1.0, -1.0], 6)
    assert float(QuadraticRisk.of(net, X, y)(W)) == pytest.approx(np.mean((outputs - y) ** 2) / 4, rel=1e-12)


def test_the_interpolant_of_three_layers_has_no_loss():
    net, X, y = three_layers()
    np.testing.assert_allclose(net(jnp.asarray(interpolant(net, X, y)), jnp.asarray(X)), y, atol=1e-8)


def test_more_samples_than_polynomials_warn_with_the_number_that_fits():
    net, X, y = three_layers(dim=2, features=10, power=1)
    with pytest.warns(UserWarning, match="8 samples are more than the 3 that polynomials of degree 2p = 2 in 2 inputs"):
        QuadraticRisk.of(net, X, y)


def test_more_samples_than_quadratic_forms_warn_with_the_number_that_fits():
    X, y = np.random.default_rng(0).standard_normal((4, 2)), np.ones(4)
    with pytest.warns(UserWarning, match="4 samples are more than the 3 that quadratic forms of 2 inputs can fit"):
        QuadraticRisk.of(QuadraticNet(2, 6), X, y)
    QuadraticRisk.of(QuadraticNet(2, 6), X[:3], y[:3])


@pytest.mark.parametrize(("row", "text"), [([2.0, -4.0], "Rows 0 and 2 of X"), ([0.0, 0.0], "1 zero row")])
def test_rows_that_make_sigma_vanish_warn_with_their_numbers(row, text):
    X = np.array([[-1.0, 2.0], [1.0, 0.0], row])
    with pytest.warns(UserWarning, match=rf"σ_min.* = 0.*{text}"):
        QuadraticRisk.of(QuadraticNet(2, 6), X, np.ones(3))


def test_negative_curvature_alone_memorises_and_each_step_gains_its_share():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, DIM))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    risk = QuadraticRisk.of(QuadraticNet(DIM, 2 * DIM + 2), X, rng.standard_normal(5))
    share = smallest_singular(X) ** 2 / (5 * DIM)  # B = 1
    W, losses = negative_curvature_descent(risk, risk.net.origin, 200)
    losses = np.asarray(losses)
    assert losses[-1] < 1e-6 * losses[0]
    seen = losses[losses > 1e-12]
    assert (seen[1:] <= (1 - share) * seen[:-1]).all()
    assert float(risk.loss(W)) == pytest.approx(losses[-1], rel=1e-9, abs=1e-24)  # rounding alone is left


def test_theorem_4_chooses_an_accuracy_whose_curvature_is_gamma():
    t = theorem4(samples=20, dim=6, width=14, smallest=0.3, radius=1.5, label=2.0, start=0.7, epsilon=0.05)
    assert (t.hessian * t.accuracy) ** 0.5 == pytest.approx(t.gamma, rel=1e-12)
    ball = 2 * (0.7 + 1) / t.gamma
    limits = smoothness(radius=1.5, label=2.0, ball=ball, gamma=t.gamma)
    assert t.smoothness == pytest.approx(limits.gradient)
    assert t.hessian == pytest.approx(limits.hessian)
    assert t.settings().rate == pytest.approx(1 / t.smoothness)
    assert t.settings(c=0.25).rate == pytest.approx(0.25 / t.smoothness)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: DescentSettings(0.0, 1.0, 1.0, 1.0, 5), "rate=0"),
        (lambda: DescentSettings(0.1, 1.0, 1.0, 1.0, 0), "wait=0"),
        (lambda: algorithm1_settings(smoothness=1, hessian=1, epsilon=2, parameters=3, gap=1), "ε ≤ ℓ²/ρ = 1"),
        (lambda: algorithm1_settings(smoothness=1, hessian=1, epsilon=0.1, parameters=3, gap=1, c=2), "c ≤ 1"),
        (lambda: QuadraticRisk.of(QuadraticNet(3, 8), np.ones((2, 2)), [1.0, 2.0]), "X has 2 features"),
        (lambda: theorem4(samples=2, dim=2, width=7, smallest=1, radius=1, label=1, start=1, epsilon=1), "7 is odd"),
        (lambda: QuadraticRisk.of(QuadraticNet(2, 8), np.eye(2), [1.0, 2.0], gamma=-1), "gamma=-1"),
        (
            lambda: QuadraticRisk.of(three_layers()[0], np.eye(2), [1.0, 2.0]),
            "X has 2 features, and the network takes 3",
        ),
        (lambda: QuadraticRisk.of(three_layers()[0], 1e200 * np.eye(3), [1.0, 2.0, 3.0]), "overflow.*unit_norm"),
        (lambda: smoothness(radius=1, label=2, ball=-4), "ball=-4: .*finite, and zero or positive"),
        (lambda: smoothness(radius=1, label=2, ball=float("nan")), "ball=nan"),
    ],
)
def test_bad_numbers_are_refused(make, text):
    with pytest.raises(InputError, match=text):
        make()


NEAR = [[1.0, 0.0], [1.0, 1e-7]]  # of other directions in float64, of one in float32
PLANE = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [3.0, -1.0, 1e-9]]  # four forms where there are three


@pytest.mark.parametrize("X", [NEAR, PLANE])
def test_rows_in_nearly_special_position_are_refused_or_warned_of(X):
    y = np.arange(1.0, len(X) + 1)
    net = QuadraticNet(len(X[0]), 10)
    with pytest.raises(InputError, match=r"matrices xxᵀ are (nearly dependent|not independent to rounding)"):
        interpolant(net, X, y)
    with jax.enable_x64(False), pytest.warns(UserWarning, match="not independent to rounding in float32"):
        QuadraticRisk.of(net, X, y)


def test_one_sample_is_met_and_has_a_risk():
    net = QuadraticNet(3, 8)
    W = interpolant(net, np.eye(3)[:1], [2.0])
    assert float(QuadraticRisk.of(net, np.eye(3)[:1], [2.0]).loss(jnp.asarray(W))) < 1e-12


def test_descent_along_negative_curvature_is_of_f_alone():
    net = QuadraticNet(3, 8)
    with pytest.raises(InputError, match="these steps lower f alone"):
        negative_curvature_descent(QuadraticRisk.of(net, np.eye(3), np.ones(3), gamma=1.0), net.origin, 3)


@pytest.mark.parametrize("smallest", [-1.0, 0.0, np.nan])
def test_a_bound_needs_a_positive_singular_value(smallest):
    risk = QuadraticRisk.of(QuadraticNet(3, 8), np.eye(3), np.ones(3))
    with pytest.raises(InputError, match=r"smallest=.*expected a positive number"):
        risk.bound(risk.net.origin, smallest)
    assert float(jax.jit(lambda W, smallest: risk.bound(W, smallest))(risk.net.origin, 1.0)) > 0
