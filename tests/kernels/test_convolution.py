"""Convolutional kernels: against finite networks, against fully connected ones, and that pooling spoils them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from offtangent._errors import InputError
from offtangent.kernels import Gram, convolutional, deep
from offtangent.kernels.closed_forms import relu_output
from offtangent.kernels.correlation import check_correlation

DIM, PATCH, WIDTH = 5, 3, 200
X = np.random.default_rng(0).standard_normal((3, DIM)) / 2


def around(dim, patch):
    """The positions of each patch."""
    return (np.arange(dim)[:, None] + np.arange(patch)) % dim


def network(params, x):
    """Two hidden layers in the parametrisation of the module, with weight 1.3 and bias 0.4."""
    places = around(DIM, PATCH)
    first = 1.3 * (DIM / PATCH) ** 0.5 * jnp.einsum("pq,qm->pm", x[places], params["W"]) + 0.4 * params["b"]
    hidden = jax.nn.relu(first)[places]
    second = 1.3 / (PATCH * WIDTH) ** 0.5 * jnp.einsum("pqm,qmn->pn", hidden, params["U"]) + 0.4 * params["c"]
    return 1.3 / (DIM * WIDTH) ** 0.5 * jnp.sum(params["v"] * jax.nn.relu(second)) + 0.4 * params["e"]


@jax.jit
def gradients(key, X):
    shapes = {
        "W": (PATCH, WIDTH), "b": (WIDTH,), "U": (PATCH, WIDTH, WIDTH), "c": (WIDTH,), "v": (DIM, WIDTH), "e": (),
    }  # fmt: skip
    keys = jax.random.split(key, len(shapes))
    params = {name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}
    rows = jax.vmap(jax.grad(network), (None, 0))(params, X)
    last = jnp.concatenate([rows["v"].reshape(len(X), -1), rows["e"][:, None]], axis=1)
    every = jnp.concatenate([leaf.reshape(len(X), -1) for leaf in jax.tree.leaves(rows)], axis=1)
    return tuple(jnp.matmul(part, part.T, precision="highest") for part in (every, last))


@pytest.fixture(scope="module")
def draws():
    keys = jax.random.split(jax.random.key(0), 60)
    pairs = [gradients(key, jnp.asarray(X, jnp.float32)) for key in keys]
    return {
        kind: np.stack([np.asarray(pair[i], np.float64) for pair in pairs]) for i, kind in enumerate(("ntk", "nngp"))
    }


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
def test_the_kernel_is_the_mean_over_wide_networks(draws, kind):
    found = draws[kind]
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    exact = convolutional(2, patch=PATCH, weight=1.3, bias=0.4, kind=kind).exact(X)
    # beside the standard error, networks of width m have a bias of order 1/m
    assert (abs(found.mean(axis=0) - exact) <= 4 * error + 2 * exact.max() / WIDTH).all()
    assert (error < 0.03 * exact.max()).all()


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_patch_of_all_positions_is_a_fully_connected_network(depth, kind):
    found = convolutional(depth, patch=DIM, weight=1.2, bias=0.3, kind=kind)
    np.testing.assert_allclose(found.exact(X), deep(depth, weight=1.2, bias=0.3, kind=kind).exact(X), rtol=1e-12)


@pytest.mark.parametrize("patch", [1, 3])
def test_one_layer_is_the_mean_over_patches_of_a_fully_connected_one(patch):
    """Also where a patch is zero in one input, or in both."""
    rows = np.vstack([X, [[1.0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]])
    parts = [rows[:, places] * (DIM / patch) ** 0.5 for places in around(DIM, patch)]
    for kind in ("ntk", "nngp"):
        truth = np.mean([deep(1, weight=1.2, bias=0.3, kind=kind).exact(part) for part in parts], axis=0)
        found = convolutional(1, patch=patch, weight=1.2, bias=0.3, kind=kind)
        np.testing.assert_allclose(found.exact(rows), truth, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
def test_blocks_diagonals_and_precisions_agree(kind, monkeypatch):
    kernel = convolutional(3, patch=2, kind=kind)
    K = kernel.exact(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(K), rtol=1e-14)
    small = jnp.asarray(X, jnp.float32)
    np.testing.assert_allclose(jax.jit(kernel)(small, small[:2]), K[:, :2], rtol=1e-5)
    np.testing.assert_allclose(kernel.diag(small), np.diagonal(K), rtol=1e-5)
    np.testing.assert_allclose(Gram(kernel, X).dense(), K, rtol=1e-12)
    monkeypatch.setattr("offtangent.kernels.convolution.AT_ONCE", 2 * DIM)
    np.testing.assert_array_equal(kernel.exact(X, X), K)


def test_a_network_that_pools_over_positions_has_no_correlation_kernel():
    """By definition: each patch of x with each patch of y."""

    class Pooled:
        name = "pooled"

        def __call__(self, X1, X2):
            raise NotImplementedError

        def diag(self, X):
            return np.diagonal(self.exact(X))

        def exact(self, X1, X2=None):
            X2 = X1 if X2 is None else X2
            places = around(DIM, PATCH)
            return np.mean([relu_output.exact(X1[:, p], X2[:, q]) for p in places for q in places], axis=0)

    with pytest.raises(InputError, match="pooled is no correlation kernel"):
        check_correlation(Pooled(), DIM)
    assert check_correlation(convolutional(3, patch=PATCH), DIM).depth == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: convolutional(0, patch=1), "depth=0"),
        (lambda: convolutional(1, patch=0), "patch=0"),
        (lambda: convolutional(1, patch=2, kind="last"), "kind='last'"),
        (lambda: convolutional(1, patch=2, weight=float("nan")), "weight=nan"),
        (lambda: convolutional(1, patch=2, bias=-1), "bias=-1"),
        (lambda: convolutional(1, patch=9).exact(X), "Inputs have 5 positions: a patch of 9"),
        (lambda: convolutional(1, patch=1)._of(X, X[:, :1], np), "Inputs of 5 and of 1 positions"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(call, said):
    with pytest.raises(InputError, match=said):
        call()
