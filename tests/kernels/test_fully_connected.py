"""Deep kernels against finite random networks, mpmath and quadrature in two dimensions."""

import itertools

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent._errors import InputError
from offtangent.kernels import deep
from offtangent.kernels.closed_forms import erf_output, relu_both, relu_output
from offtangent.kernels.expansion import Expansion
from offtangent.kernels.fully_connected import hermite_remainder
from offtangent.kernels.moments import CLOSED, relu_moments
from offtangent.kernels.pairs import Pair
from offtangent.special import activation
from offtangent.special.activations import erf, gelu, relu, sigmoid, sin, softplus, tanh

EPS = np.finfo(np.float64).eps
leaky = activation(lambda z: jnp.where(z < 0, 0.1 * z, z), smooth=1, kinks=(0.0,))
clipped = activation(lambda z: jnp.clip(z, -1, 1), smooth=1, kinks=(-1.0, 1.0))


def unit(rng, n, d):
    X = rng.standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# --- finite networks --------------------------------------------------------------------------------------


def network(params, x, sigma, weight, bias, residual):
    """The network of the docstring for one input, layer by layer."""
    (W, b), *rest = params
    h = weight * x @ W + bias * b
    for number, (W, b) in enumerate(rest, 1):
        out = weight / np.sqrt(len(W)) * sigma(h) @ W + bias * b
        h = h + out if residual and number < len(rest) else out
    return h[0]


def finite_kernels(X, depth, width, sigma, weight, bias, residual, draws):
    """Mean and squared standard error of tangent and conjugate kernels over random networks, by autodiff."""
    rng, sizes = np.random.default_rng(width), [X.shape[1], *[width] * depth, 1]
    shapes = [((a, b), (b,)) for a, b in itertools.pairwise(sizes)]
    params = [tuple(rng.standard_normal((draws, *shape), np.float32) for shape in layer) for layer in shapes]

    def kernels(params):
        slope = jax.grad(lambda params, x: network(params, x, sigma, weight, bias, residual))
        layers = jax.vmap(slope, (None, 0))(params, X)
        flat = [jnp.concatenate([leaf.reshape(len(X), -1) for leaf in layer], axis=1) for layer in layers]
        grams = [rows @ rows.T for rows in flat]
        return sum(grams), grams[-1]  # the readout's gradient is its own features

    found = jax.tree.map(np.asarray, jax.jit(lambda params: jax.lax.map(kernels, params, batch_size=50))(params))
    return [(np.mean(k, axis=0, dtype=np.float64), np.var(k, axis=0, dtype=np.float64) / draws) for k in found]


@pytest.mark.parametrize(
    ("depth", "sigma", "weight", "bias", "residual"),
    [(2, relu, 1.3, 0.5, False), (3, erf, 0.9, 0.4, True)],
    ids=["relu", "erf, residual"],
)
def test_it_is_the_mean_over_random_networks(depth, sigma, weight, bias, residual):
    """Autodiff at widths 64 and 128: 2·mean(128) − mean(64) is free of the first correction in 1/width."""
    X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    setting = {"weight": weight, "bias": bias, "residual": residual}
    narrow, wide = (finite_kernels(jnp.asarray(X), depth, w, sigma, draws=600, **setting) for w in (64, 128))
    for kind, (mean, error), (better, smaller) in zip(("ntk", "nngp"), narrow, wide, strict=True):
        truth = deep(depth, activation=sigma, kind=kind, **setting).exact(X)
        z = (2 * better - mean - truth) / np.sqrt(4 * smaller + error)
        assert abs(z).max() <= 4
        assert (np.sqrt(4 * smaller + error) <= 0.03 * np.sqrt(np.outer(truth.diagonal(), truth.diagonal()))).all()


# --- mpmath -----------------------------------------------------------------------------------------------


def relu_dual(q, p, k):
    angle = mp.acos(max(min(k / mp.sqrt(q * p), mp.mpf(1)), mp.mpf(-1)))
    value = mp.sqrt(q * p) * (mp.sin(angle) + (mp.pi - angle) * mp.cos(angle)) / (2 * mp.pi)
    return value, (mp.pi - angle) / (2 * mp.pi)


def erf_dual(q, p, k):
    inside = (1 + 2 * q) * (1 + 2 * p)
    return 2 / mp.pi * mp.asin(2 * k / mp.sqrt(inside)), 4 / mp.pi / mp.sqrt(inside - 4 * k * k)


def sin_dual(q, p, k):
    return mp.exp(-(q + p) / 2) * mp.sinh(k), mp.exp(-(q + p) / 2) * mp.cosh(k)


def gelu_dual(q, p, k):
    """As neural-tangents writes it (stax.Gelu, after Tsuchida et al. 2021)."""
    ones = (1 + q) * (1 + p)
    square = ones - k * k
    root = mp.sqrt(square)
    angle = mp.atan2(k, root)
    value = ((k * k + q * p * square) / (ones * root) + k * angle) / (2 * mp.pi) + k / 4
    slope = k / root * (1 / square + (1 - q * p) / ones + 1) / (2 * mp.pi) + angle / (2 * mp.pi) + mp.mpf(1) / 4
    return value, slope


DUALS = {"relu": relu_dual, "erf": erf_dual, "sin": sin_dual, "gelu": gelu_dual}


def recursion(x, z, depth, dual, weight, bias, residual):
    """The tangent and the conjugate kernel of two rows, as printed in the docstring, with the digits mp has."""
    weight, bias = mp.mpf(weight) ** 2, mp.mpf(bias) ** 2
    x, z = ([mp.mpf(float(c)) for c in row] for row in (x, z))
    pairs = ((x, x), (z, z), (x, z))
    q, p, k = (weight * mp.fsum(a * b for a, b in zip(*rows, strict=True)) + bias for rows in pairs)
    tangent = k
    for number in range(1, depth + 1):
        skip = 1 if residual and number < depth else 0
        value, slope = dual(q, p, k)
        tangent = weight * value + bias + tangent * (weight * slope + skip)
        q, p = (weight * dual(v, v, v)[0] + bias + skip * v for v in (q, p))
        k = weight * value + bias + skip * k
    return tangent, k


def rows(angle, lengths=(1.0, 1.0)):
    u, v = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 2)))[0].T
    return np.stack([lengths[0] * u, lengths[1] * ((1 - 2 * np.sin(angle / 2) ** 2) * u + np.sin(angle) * v)])


def error(x, z, depth, name, weight, bias, residual):
    """The larger of both kernels' errors, in units of ε√(k(x, x) k(z, z))."""
    errors = []
    with mp.workdps(340):
        setting = (depth, DUALS[name], weight, bias, residual)
        truths, mine, theirs = (recursion(a, b, *setting) for a, b in ((x, z), (x, x), (z, z)))
        for kind, truth, first, second in zip(("ntk", "nngp"), truths, mine, theirs, strict=True):
            kernel = deep(depth, activation=name, weight=weight, bias=bias, residual=residual, kind=kind)
            found = kernel.exact(x[None], z[None]).item()
            errors.append(float(abs(found - truth) / mp.sqrt(first * second)) / EPS)
    return max(errors)


NEAR = [1e-9, 1e-6, 1e-3]
ANGLES = [0.0, *NEAR, 1.0, np.pi / 2, *(np.pi - angle for angle in reversed(NEAR)), np.pi]


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize(("depth", "bias", "residual"), [(1, 0.0, False), (3, 0.0, False), (3, 0.2, True)])
def test_the_relu_is_accurate_to_rounding_at_every_angle(angle, depth, bias, residual):
    assert error(*rows(angle, (0.5, 2.0)), depth, "relu", 1.4, bias, residual) <= 24


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", ["erf", "sin", "gelu"])
def test_smooth_activations_are_accurate_at_every_angle(angle, name):
    assert error(*rows(angle, (0.5, 2.0)), 2, name, 1.2, 0.3, True) <= 64


@pytest.mark.parametrize("lengths", [(1e-150, 1e-150), (1e-150, 1.0), (1e-150, 1e150), (1e150, 1e150)])
@pytest.mark.parametrize(("name", "bias"), [("relu", 0.0), ("relu", 0.2), ("erf", 0.2), ("gelu", 0.0)])
def test_tiny_and_huge_inputs_keep_their_accuracy(lengths, name, bias):
    for angle in (1e-3, 1.0, np.pi - 1e-3):
        assert error(*rows(angle, lengths), 2, name, 1.0, bias, False) <= (64 if name == "relu" else 1e4)


def test_very_deep_networks_stay_accurate_for_nearly_parallel_inputs():
    """After 50 layers arccos of the cosine alone would have lost everything: 1 − cos is 1e-15 and below."""
    assert error(*rows(1e-7), 50, "relu", np.sqrt(2), 0.0, False) <= 200


# --- moments ----------------------------------------------------------------------------------------------

PAIRS = [(1.0, 1.0, 0.3), (0.7, 1.6, -0.8), (1.2, 0.5, 0.99), (0.1, 0.9, -0.99), (1.5, 1.5, 1.0)]
WRITTEN_OUT = {
    erf: (scipy.special.erf, lambda z: 2 / np.sqrt(np.pi) * np.exp(-(z**2))),
    gelu: (
        lambda z: z * scipy.special.ndtr(z),
        lambda z: scipy.special.ndtr(z) + z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
    ),
    sin: (np.sin, np.cos),
    tanh: (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    softplus: (lambda z: np.logaddexp(0, z), scipy.special.expit),
    sigmoid(0.5): (
        lambda z: scipy.special.expit(z - 0.5),
        lambda z: scipy.special.expit(z - 0.5) * scipy.special.expit(0.5 - z),
    ),
}
LAYERS = [(sigma, CLOSED[sigma]) for sigma in (erf, gelu, sin)]
LAYERS += [(sigma, Expansion.of(sigma, 128)) for sigma in (tanh, softplus, sigmoid(0.5))]


def by_quadrature(function, r, s, cosine):
    """E[σ(u)σ(v)] by the trapezoidal rule on a square of 361² points: for σ analytic within 0.6/r it is exact."""
    z = np.linspace(-9, 9, 361)
    weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    other = s * (cosine * z[:, None] + np.sqrt(1 - cosine**2) * z)
    return weights @ (function(r * z)[:, None] * function(other)) @ weights


@pytest.mark.parametrize(("sigma", "layer"), LAYERS, ids=lambda it: getattr(it, "name", type(it).__name__))
def test_both_moments_agree_with_quadrature_for_inputs_of_different_lengths(sigma, layer):
    r, s, cosine = np.array(PAIRS).T
    found = layer(Pair(r, s, 1 - cosine, 1 + cosine), np)
    function, slope = WRITTEN_OUT[sigma]
    np.testing.assert_allclose(found.value, [by_quadrature(function, *at) for at in PAIRS], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.slope, [by_quadrature(slope, *at) for at in PAIRS], rtol=0, atol=1e-11)
    squares = [by_quadrature(function, length, length, 1.0) for length in r]
    np.testing.assert_allclose(found.pair.r**2, squares, rtol=1e-12)
    np.testing.assert_allclose(found.pair.inner, found.value, rtol=0, atol=1e-14)


def test_a_corner_at_zero_is_summed_in_closed_form():
    """The leaky one is 0.1z + 0.9 relu(z), so its moments follow from the ReLU's; the series alone misses 1/√terms."""
    cosine = np.array([-1.0, -0.999, 0.3, 0.999, 1.0])
    at = Pair(np.full(5, 1.3), np.full(5, 0.4), 1 - cosine, 1 + cosine)
    exact, found = relu_moments(at, np), Expansion.of(leaky, 32)(at, np)
    np.testing.assert_allclose(found.value, 0.81 * exact.value + 0.1 * at.inner, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.slope, 0.81 * exact.slope + 0.1, rtol=0, atol=1e-13)


def test_corners_elsewhere_agree_with_monte_carlo():
    """At cosine 0.8, where what 128 terms leave of σ' counts for nothing: 0.8^128 = 4e-13."""
    r, s, cosine = 1.3, 0.6, 0.8
    found = Expansion.of(clipped, 128)(Pair(*np.array([[r], [s], [1 - cosine], [1 + cosine]])), np)
    z = np.random.default_rng(0).standard_normal((2, 400_000))
    u, v = r * z[0], s * (cosine * z[0] + np.sqrt(1 - cosine**2) * z[1])
    for moment, products in (
        (found.value, np.clip(u, -1, 1) * np.clip(v, -1, 1)),
        (found.slope, (abs(u) < 1) * (abs(v) < 1.0)),
    ):
        assert abs(moment.item() - products.mean()) <= 4 * products.std() / np.sqrt(products.size)


def test_the_closing_terms_make_the_diagonal_exact_and_the_remainder_bounds_the_error_elsewhere():
    kernel = deep(1, activation="tanh", kind="nngp", terms=8)
    length, cosine = np.array([1.5, 1.5]), np.array([1.0, 0.8])
    found = kernel.of_pair(Pair(length, length, 1 - cosine, 1 + cosine), np)
    truth = [by_quadrature(np.tanh, 1.5, 1.5, c) for c in cosine]
    np.testing.assert_allclose(found[0], truth[0], rtol=1e-13)
    share = hermite_remainder(kernel, np.array([[1.5], [1.0]]))
    assert 1e-4 < share < 0.1
    assert 1e-3 * share < abs(found[1] - truth[1]) / truth[0] < share


def test_only_a_deep_kernel_has_a_remainder_and_in_closed_form_it_is_zero():
    assert hermite_remainder(deep(2), np.eye(2)) == 0
    with pytest.raises(InputError, match="deep"):
        hermite_remainder(relu_both, np.eye(2))


# --- identities -------------------------------------------------------------------------------------------


def test_one_hidden_layer_is_the_two_layer_network():
    X = np.random.default_rng(0).standard_normal((7, 4))
    np.testing.assert_allclose(deep(1).exact(X), relu_both.exact(X), rtol=0, atol=1e-14)
    np.testing.assert_allclose(deep(1, weight=1.7, kind="nngp").exact(X), 1.7**4 * relu_output.exact(X), rtol=1e-14)
    np.testing.assert_array_equal(deep(1, residual=True).exact(X), deep(1).exact(X))
    network = deep(1, activation="erf", weight=1.3, bias=0.4, kind="nngp").exact(X)
    np.testing.assert_allclose(network, 1.3**2 * erf_output(weight=1.3, bias=0.4).exact(X) + 0.4**2, rtol=1e-14)


def test_he_scaling_keeps_lengths():
    """With weight √2 each layer doubles what the ReLU halves, so k(x, x) = 2‖x‖², and (depth + 1) times that."""
    X = np.random.default_rng(0).standard_normal((3, 4))
    squares = (X**2).sum(axis=1)
    for depth in (1, 4):
        np.testing.assert_allclose(deep(depth, weight=2**0.5, kind="nngp").diag(X), 2 * squares, rtol=1e-14)
        np.testing.assert_allclose(deep(depth, weight=2**0.5).diag(X), 2 * (depth + 1) * squares, rtol=1e-14)


def test_a_row_of_zeros_sees_the_biases_alone():
    X = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(deep(2).exact(X)[0], [0, 0])
    with_bias = deep(2, bias=0.5).exact(X)
    np.testing.assert_allclose(with_bias[0, 0], deep(2, bias=0.5).diag(np.zeros((1, 1)))[0], rtol=1e-15)
    assert with_bias[0, 1] > 0


@pytest.mark.parametrize("setting", [(1, False, True), (2, False, False), (3, True, True)])
def test_the_series_of_the_relu_is_mpmaths_taylor_series(setting):
    depth, residual, tangent = setting
    kernel = deep(depth, weight=1.2, residual=residual, kind="ntk" if tangent else "nngp")

    def of_cosine(c):
        q = p = mp.mpf(1.2) ** 2
        k = tangent_kernel = q * c
        for number in range(1, depth + 1):
            skip = 1 if residual and number < depth else 0
            value, slope = relu_dual(q, p, k)
            tangent_kernel = q_weight * value + tangent_kernel * (q_weight * slope + skip)
            q = p = q_weight * q / 2 + skip * q
            k = q_weight * value + skip * k
        return tangent_kernel if tangent else k

    q_weight = mp.mpf(1.2) ** 2
    with mp.workdps(60):
        expected = mp.taylor(of_cosine, 0, 8)
    found = kernel.series(9)
    np.testing.assert_allclose(found, [float(c) for c in expected], rtol=64 * EPS, atol=1e-20)
    assert (kernel.series(300) >= 0).all()
    X = unit(np.random.default_rng(1), 5, 4)
    off = np.triu_indices(5, 1)
    cosine = (X @ X.T)[off]
    assert abs(cosine).max() < 0.9
    summed = np.polynomial.polynomial.polyval(cosine, kernel.series(300))
    np.testing.assert_allclose(summed, kernel.exact(X)[off], rtol=1e-13)
    assert kernel.degree == 1


def test_only_homogeneous_networks_have_a_series():
    assert deep(2, bias=0.1).series is None
    assert deep(2, activation="erf").degree is None


# --- shapes, dtypes, gradients, refusals ------------------------------------------------------------------

FAMILY = [
    deep(2, weight=1.4, bias=0.3),
    deep(2, activation="gelu", residual=True),
    deep(2, activation="erf", bias=0.1, kind="nngp"),
    deep(2, activation="sin"),
    deep(1, activation="softplus", kind="nngp", terms=16),
]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_every_matrix_is_symmetric_and_positive_semidefinite(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, 3)) * 10.0 ** rng.uniform(-2, 1, size=(6, 1))
    X[4], X[5] = 2 * X[0], -X[1]
    for kernel in FAMILY:
        K = kernel.exact(X)
        np.testing.assert_array_equal(K, K.T)
        values = np.linalg.eigvalsh(K)
        assert values[0] >= -200 * EPS * values[-1]
        np.testing.assert_allclose(kernel.diag(X), K.diagonal(), rtol=1e-14)


def test_float32_is_close_to_float64():
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    other = X[::-1] + np.float32(0.1)
    some = (FAMILY[0], FAMILY[1], FAMILY[-1])
    blocks = jax.jit(lambda X1, X2: [kernel(X1, X2) for kernel in some])(jnp.asarray(X), jnp.asarray(other))
    for kernel, found in zip(some, blocks, strict=True):
        assert found.dtype == np.float32
        scale = np.sqrt(np.outer(kernel.diag(X), kernel.diag(other)))
        assert (abs(np.asarray(found) - kernel.exact(X, other)) / scale).max() <= 4e-6, kernel.name


@pytest.mark.parametrize("kernel", [deep(2, kind="nngp"), FAMILY[-1]], ids=lambda kernel: kernel.name)
def test_gradients_agree_with_differences(kernel):
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    slope = jax.jit(jax.grad(lambda X1, X2: kernel(X1, X2).sum()))(jnp.asarray(X), jnp.asarray(X[::-1] + 0.1))
    step = 1e-5 * np.random.default_rng(1).standard_normal((6, 3))
    other = X[::-1] + np.float32(0.1)
    change = kernel.exact(X + step, other).sum() - kernel.exact(X - step, other).sum()
    np.testing.assert_allclose((np.asarray(slope) * 2 * step).sum(), change, rtol=1e-3, atol=1e-8)


def test_beyond_a_few_layers_the_jitted_recursion_is_a_loop_and_the_same():
    X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    kernel = deep(12, weight=1.4, bias=0.1, residual=True)
    truth = kernel.exact(X[:3], X[3:])
    np.testing.assert_allclose(jax.jit(kernel)(jnp.asarray(X[:3]), jnp.asarray(X[3:])), truth, rtol=1e-5)


def test_kernels_are_equal_by_their_parameters():
    assert deep(2, activation="tanh", bias=0.1) == deep(2, activation="tanh", bias=0.1)
    assert hash(deep(2)) == hash(deep(2))
    different = {deep(2), deep(3), deep(2, bias=0.1), deep(2, residual=True), deep(2, kind="nngp"), deep(2, weight=2.0)}
    assert len({kernel.name for kernel in different}) == len(different) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth=0: it must be a whole number of at least 1"),
        ({"depth": 1, "kind": "gp"}, "'ntk'.*'nngp'"),
        ({"depth": 1, "weight": 0.0}, "positive"),
        ({"depth": 1, "bias": -0.1}, "zero or positive"),
        ({"depth": 1, "terms": 1}, "at least 2"),
        ({"depth": 1, "activation": "rleu"}, "Did you mean 'relu'"),
    ],
)
def test_what_makes_no_network_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        deep(**arguments)


def test_a_step_has_a_conjugate_kernel_but_no_tangent_kernel():
    step = activation(lambda z: jnp.where(z < 0, jnp.zeros_like(z), jnp.ones_like(z)), smooth=0, kinks=(0.0,))
    with pytest.raises(InputError, match="delta"):
        deep(1, activation=step)
    X = unit(np.random.default_rng(0), 4, 3)
    K = deep(1, activation=step, kind="nngp").exact(X)
    np.testing.assert_allclose(K.diagonal(), 0.5, rtol=1e-12)
    np.testing.assert_allclose(K, 0.25 + np.arcsin(np.clip(X @ X.T, -1, 1)) / (2 * np.pi), atol=1e-2)
