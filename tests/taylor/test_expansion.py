"""Taylor terms of any network against finite differences in float64, jet, and closed forms."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.experimental import jet

import models
from offtangent._errors import InputError
from offtangent.networks import TwoLayer
from offtangent.taylor import expand, linearise
from offtangent.taylor.expansion import Expansion, TaylorModel
from offtangent.taylor.two_layer import TwoLayerExpansion

X64 = jax.enable_x64


def along(f, params, other, x, *, degree, reach):
    """The coefficients of the polynomial of this degree closest to t ↦ f(params + t(other − params)), |t| ≤ reach.

    On 17 Chebyshev nodes; with them, how far from the values it is. Of degree 16, through all nodes, it is exact to
    about the 17th derivative and to the rounding of f times 2·10⁴/reach^k: T₁₆ has that many t⁶, and fewer of less.
    """
    nodes = np.cos(np.pi * (np.arange(17) + 0.5) / 17)

    @jax.jit
    def at(t):
        mixed = jax.tree.map(lambda p, q: p + t * (q - p) if eqx.is_inexact_array(p) else p, params, other)
        return f(mixed, x)

    values = np.stack([np.asarray(at(reach * t), np.float64) for t in nodes])
    powers = np.vander(nodes, degree + 1, increasing=True)
    coefficients = np.linalg.lstsq(powers, values.reshape(17, -1), rcond=None)[0]
    left = np.abs(powers @ coefficients - values.reshape(17, -1)).max()
    return [coefficients[k].reshape(values.shape[1:]) / reach**k for k in range(degree + 1)], left


# Every order more costs more than all below it: one model goes up to six, and jet has the scanned network's, below.
ORDERS = {"linen_cnn": 3, "nnx_cnn": 3, "equinox_mlp": 6, "attention": 4, "scanned": 3}


@pytest.mark.parametrize("name", models.ALL)
@pytest.mark.usefixtures("standard_promotion")
def test_every_term_of_real_models_is_that_of_finite_differences(name):
    """In float64, to 10⁻⁵ of the term's own size, so that no term is too small to be seen wrong.

    The CNN with relu (convolution, batch norm's scale, dense) is a cubic as far as its next kink, and nothing beyond.
    """
    order = ORDERS[name]
    with X64(True):
        f, params, x = models.in_float64(models.ALL[name]())
        other = models.moved(params, 0.1)
        terms = expand(f, params, order).terms(other, x)
        shape = {"degree": 3, "reach": 0.005} if name == "linen_cnn" else {"degree": 16, "reach": 0.6}
        expected, left = along(f, params, other, x, **shape)
        assert left < 1e-13  # or a kink is nearer
        for term, truth in zip(terms, expected, strict=False):
            np.testing.assert_allclose(np.asarray(term), truth, rtol=0, atol=1e-5 * np.abs(truth).max())


def test_terms_up_to_order_six_are_those_of_jet():
    """Where jet works: on tanh, in float64."""
    with X64(True):
        f, params, x = models.in_float64(models.scanned())
        other = models.moved(params, 0.2)

        def g(p, x):
            state = jnp.zeros((len(x), 4))
            for t in range(x.shape[1]):
                state = jnp.tanh(state @ p[0]["w"] + x[:, t] @ p[0]["u"])
            return state @ p[1]

        delta = jax.tree.map(jnp.subtract, other, params)
        leaves, structure = jax.tree.flatten(params)
        series = [[d, *(jnp.zeros_like(d) for _ in range(5))] for d in jax.tree.leaves(delta)]
        value, rest = jet.jet(lambda *p: g(jax.tree.unflatten(structure, p), x), leaves, series)
        found = expand(f, params, 6).terms(other, x)
        np.testing.assert_allclose(found[0], value, rtol=1e-12)
        for k, term in enumerate(rest, start=1):
            np.testing.assert_allclose(found[k], term / math.factorial(k), rtol=1e-8, atol=1e-13)


def test_the_sum_comes_closer_to_the_network_with_every_order():
    with X64(True):
        f, params, x = models.in_float64(models.equinox_mlp())
        other = models.moved(params, 0.05)
        terms, truth = expand(f, params, 6).terms(other, x), f(other, x)
        errors = [float(jnp.abs(sum(terms[: k + 1]) - truth).max()) for k in range(7)]
    assert all(after < before / 2 for before, after in itertools.pairwise(errors))


def test_a_polynomial_is_its_own_series():
    """f(w) = (w·x)³ around w₀: the terms by the binomial theorem, and nothing beyond the third."""
    w0, w, x = jnp.array([1.0, -2.0]), jnp.array([1.5, -1.0]), jnp.array([[2.0, 1.0], [1.0, 3.0]])
    terms = expand(lambda w, x: (x @ w) ** 3, w0, 5).terms(w, x)
    u, v = np.asarray(x @ w0, float), np.asarray(x @ (w - w0), float)
    for term, truth in zip(terms, [u**3, 3 * u**2 * v, 3 * u * v**2, v**3, 0 * u, 0 * u], strict=True):
        np.testing.assert_allclose(term, truth, rtol=1e-6, atol=1e-5)


def test_a_deep_relu_network_has_a_genuine_second_term():
    """Around its own piece a relu network of two hidden layers is a polynomial: cross terms of the layers remain."""
    with X64(True):
        rng = np.random.default_rng(0)
        params = [rng.standard_normal((4, 6)), rng.standard_normal((6, 6)), rng.standard_normal(6)]
        params, x = jax.tree.map(jnp.asarray, params), jnp.asarray(rng.standard_normal((3, 4)))

        def f(p, x):
            return jax.nn.relu(jax.nn.relu(x @ p[0]) @ p[1]) @ p[2]

        other = models.moved(params, 1e-4)
        terms = expand(f, params, 3).terms(other, x)
        assert float(jnp.abs(terms[2]).max()) > 0
        np.testing.assert_allclose(sum(terms), f(other, x), rtol=1e-13)  # a polynomial of degree three
        assert float(jnp.abs(terms[3]).max()) > 0


@pytest.mark.usefixtures("standard_promotion")
def test_a_model_can_be_jitted_differentiated_and_trained():
    f, params, x = models.equinox_mlp()
    model, y = expand(f, params, 2), jnp.ones((4, 2))
    moving, fixed = eqx.partition(params, eqx.is_inexact_array)
    optimiser = optax.adam(1e-2)

    def loss(p):
        return jnp.mean((model(eqx.combine(p, fixed), x) - y) ** 2)

    @jax.jit
    def step(p, state):
        value, slope = jax.value_and_grad(loss)(p)
        updates, state = optimiser.update(slope, state)
        return optax.apply_updates(p, updates), state, value

    state, losses = optimiser.init(moving), []
    for _ in range(60):
        moving, state, value = step(moving, state)
        losses.append(float(value))
    assert losses[-1] < losses[0] / 10


def test_a_model_goes_through_jit_as_it_is():
    f, params, x = models.scanned()
    net = TwoLayer.symmetric(dim=3, width=4, activation="tanh", key=jax.random.key(0))
    for model, at, inputs in (
        (expand(f, params, 1), params, x),
        (expand(net, net.origin, 2), net.W0, jnp.ones((2, 3))),
    ):
        np.testing.assert_allclose(jax.jit(model)(at, inputs), model(at, inputs), rtol=1e-5, atol=1e-6)


def test_a_gradient_at_the_origin_is_that_of_the_network():
    f, params, x = models.scanned()
    ours, theirs = (jax.jit(jax.grad(lambda p, g=g: jnp.sum(g(p, x) ** 2)))(params) for g in (expand(f, params, 2), f))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), ours, theirs)


def test_what_it_gives_is_a_model_of_the_protocol():
    f, params, _ = models.scanned()
    net = TwoLayer.symmetric(dim=3, width=4, activation="tanh", key=jax.random.key(0))
    assert isinstance(expand(f, params, 2), TaylorModel)
    assert isinstance(expand(net, net.origin, 2), TwoLayerExpansion)
    assert linearise(f, params).order == 1
    assert isinstance(linearise(f, params), Expansion)


def test_whole_numbers_among_the_parameters_stay_as_they_are():
    params = {"w": jnp.ones(2), "power": jnp.asarray(2)}
    model = expand(lambda p, x: (x @ p["w"]) ** p["power"], params, 2)
    terms = model.terms({"w": jnp.array([1.0, 2.0]), "power": jnp.asarray(2)}, jnp.array([[1.0, 1.0]]))
    np.testing.assert_allclose(np.ravel(terms), [4.0, 4.0, 1.0])


W = jnp.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expand(lambda w, x: x @ w, W, -1), "order between 0 and"),
        (lambda: expand(lambda w, x: x @ w, W, 31), "order between 0 and"),
        (lambda: expand(lambda w, x: x * w["n"], {"n": 3}, 1), "no array of floating-point"),
        (lambda: expand(lambda w, x: x @ w["a"], {"a": W}, 1).terms({"b": W}, jnp.ones((4, 2))), "another structure"),
        (lambda: expand(lambda w, x: x @ w["a"], {"a": W}, 1).terms(W, jnp.ones((4, 2))), "another structure"),
        (
            lambda: expand(lambda w, x: x @ w["a"], {"a": W}, 1).terms({"a": W.T}, jnp.ones((4, 2))),
            r"\['a'\] has shape",
        ),
        (lambda: expand(lambda w, x: (x @ w, 1), W, 1)(W, jnp.ones((4, 2))), "gave a tuple"),
        (lambda: expand(lambda w, x: jnp.sum(x @ w), W, 1)(W, jnp.ones((4, 2))), r"has shape \(\)"),
        (lambda: expand(lambda w, x: (x @ w).T, W, 1)(W, jnp.ones((4, 2))), "jax.vmap"),
        (lambda: expand(lambda w, x: x @ w > 0, W, 1)(W, jnp.ones((4, 2))), "dtype bool"),
    ],
)
def test_what_cannot_be_expanded_is_refused_with_a_reason(call, message):
    with pytest.raises(InputError, match=message):
        call()
