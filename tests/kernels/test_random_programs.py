"""Tangent kernels of random small programs, in float64 against whole Jacobians.

A program is a list of steps on a batch of sequences, (n, positions, channels). Each step may take weights of its own,
or those of an earlier step with the same shapes.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offtangent.kernels import empirical_ntk

C, PLACES, SAMPLES = 4, 3, 4  # channels, positions, samples


@pytest.fixture(autouse=True)
def standard_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


def convolve(h, w, **words):
    return jax.lax.conv_general_dilated(h, w, (1,), dimension_numbers=("NWC", "WIO", "NWC"), **words)


def through_time(h, w, *, backwards, remember):
    def step(state, x):
        state = jnp.tanh(state @ w[0] + x @ w[1])
        return state, state

    step = step if remember else jax.checkpoint(step)
    return jax.lax.scan(step, jnp.zeros_like(h[:, 0]), h.swapaxes(0, 1), reverse=backwards)[1].swapaxes(0, 1)


def through_layers(h, w):
    return jax.lax.scan(lambda x, one: (jnp.tanh(x @ one[0]) + one[1][0], None), h, (w[:, 0], w[:, 1]))[0]


@jax.custom_vjp
def twice(x):
    return 2 * x


twice.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))

# Each step: the shape of its weights, and what it makes of a batch and of them.
STEPS = {
    "dense": ((C, C), lambda h, w: h @ w),
    "weights above biases": ((C + 1, C), lambda h, w: h @ w[:-1] + w[-1]),
    "scaled": ((C, C), lambda h, w: h @ (-0.3 * w) / 1.5),
    "to and fro": ((C, C), lambda h, w: jnp.tanh(h @ w) @ w.T),
    "halves": ((C, C), lambda h, w: jnp.concatenate([h @ w[:, :2], jnp.sin(h) @ w[:, 2:]], -1)),
    "along positions": ((PLACES, PLACES), lambda h, w: jnp.einsum("nsc,st->ntc", h, w)),
    "a matrix a place": ((PLACES, C, C), lambda h, w: jnp.einsum("nsc,scd->nsd", h, w)),
    "convolution": ((2, C, C), lambda h, w: convolve(h, w, padding=[(1, 0)])),
    "dilated": ((2, C, C), lambda h, w: convolve(h, w, padding=[(2, 0)], rhs_dilation=(2,))),
    "depthwise": ((2, 1, C), lambda h, w: convolve(h, w, padding=[(0, 1)], feature_group_count=C)),
    "two groups": ((2, C // 2, C), lambda h, w: convolve(h, w, padding=[(0, 1)], feature_group_count=2)),
    "gain": ((C,), lambda h, w: h * w),
    "bias": ((C,), lambda h, w: h + w),
    "temperature": ((), lambda h, w: h * jnp.exp(0.1 * w)),
    "forwards in time": ((2, C, C), lambda h, w: through_time(h, w, backwards=False, remember=True)),
    "backwards in time": ((2, C, C), lambda h, w: through_time(h, w, backwards=True, remember=False)),
    "through layers": ((2, 2, C, C), through_layers),
    "cond": ((C, C), lambda h, w: jax.lax.cond(w[0, 0] > 0, lambda: h @ w, lambda: jnp.sin(h) @ w.T)),
    "checkpointed": ((C, C), jax.checkpoint(lambda h, w: jnp.tanh(h @ w))),
    "jitted": ((C, C), jax.jit(lambda h, w: h @ w + h)),
    "each sample": ((C, C), lambda h, w: jax.vmap(lambda one: jnp.cos(one @ w))(h)),
    "looked up": ((5, C), lambda h, w: h + w[jnp.array([1, 4, 1])]),
    "attention": ((C, C), lambda h, w: jax.nn.softmax(jnp.einsum("nsc,cd,ntd->nst", h, w, h), -1) @ h),
    "tanh": (None, lambda h, _: jnp.tanh(h)),
    "gelu": (None, lambda h, _: jax.nn.gelu(h)),
    "relu": (None, lambda h, _: jax.nn.relu(h)),
    "centred": (None, lambda h, _: h - h.mean(-1, keepdims=True)),
    "largest": (None, lambda h, _: h + h.max(1, keepdims=True)),
    "summed up": (None, lambda h, _: jnp.cumsum(h, 1) / PLACES),
    "turned": (None, lambda h, _: h[:, ::-1]),
    "a rule of one's own": (None, lambda h, _: twice(h)),
}

step = st.tuples(st.sampled_from(sorted(STEPS)), st.booleans(), st.booleans())  # its name, old weights, a residual link
programs = st.tuples(st.lists(step, min_size=2, max_size=6), st.sampled_from([0, 1, 3]))


def network(steps, outputs):
    """f, its parameters and inputs; with no outputs f gives one number for a sample."""
    params, places, known = [], [], {}

    def place(shape):
        params.append(jax.random.normal(jax.random.key(len(params)), shape) / max(1, C) ** 0.5)
        return len(params) - 1

    for name, again, _ in steps:
        shape = STEPS[name][0]
        if shape is not None and not (again and shape in known):
            known[shape] = place(shape)
        places.append(None if shape is None else known[shape])
    head = place((C, max(outputs, 1)))

    def f(p, x):
        for (name, _, link), at in zip(steps, places, strict=True):
            made = STEPS[name][1](x, None if at is None else p[at])
            x = x + made if link else made
        found = x.sum(1) @ p[head]
        return found if outputs else found[:, 0]

    return f, params, jax.random.normal(jax.random.key(100), (SAMPLES, PLACES, C))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(programs)
def test_any_program_has_the_kernel_of_its_jacobian(program):
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        f, params, X = network(*program)
        K = empirical_ntk(f, params, X)
        found = jax.jit(jax.jacrev(lambda p: f(p, X).reshape(SAMPLES, -1)))(params)
        J = np.concatenate([np.asarray(leaf).reshape(SAMPLES, -1, leaf.size // f(params, X).size) for leaf in found], 2)
        full = np.einsum("nkp,mlp->nmkl", J, J)
        atol = 1e-12 * np.abs(full).max()
        np.testing.assert_allclose(K.dense().reshape(full.shape), full, rtol=0, atol=atol)
        np.testing.assert_allclose(K.trace(), np.einsum("nmkk->nm", full), rtol=0, atol=3 * atol)
        sizes = np.concatenate([np.ravel(one) for one in (K.diag(),)])
        np.testing.assert_allclose(sizes, np.einsum("nnkk->nk", full).ravel(), rtol=0, atol=atol)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_every_step_by_itself_twice_has_the_kernel_of_its_jacobian(name):
    """So that none is left to chance: each once with its own weights, and again with the same."""
    test_any_program_has_the_kernel_of_its_jacobian.hypothesis.inner_test(
        ([(name, False, False), ("tanh", False, True), (name, True, False)], 2)
    )
