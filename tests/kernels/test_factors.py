"""Tangent kernels from the factors of each layer's gradient, against whole Jacobians in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small_networks
from offtangent._errors import InputError
from offtangent.kernels import blocks, empirical_ntk
from offtangent.kernels.factors import Factored, gradients

MANY, ONE = (10**6,), (1,)  # samples with which factors are kept as far as possible, and multiplied at once


@pytest.fixture(autouse=True)
def standard_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(params=small_networks.ALL)
def network(request):
    """f, parameters, inputs and the Gram matrix of all Jacobians, (n, n, k, k)."""
    with jax.enable_x64(True):
        f, params, X = small_networks.ALL[request.param]()

        def one(x):
            return jax.jacrev(lambda p: f(p, jax.tree.map(lambda leaf: leaf[None], x))[0].reshape(-1))(params)

        J = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(jax.vmap(one))(X))]
        J = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in J], axis=-1)
        yield f, params, X, np.einsum("nkp,mlp->nmkl", J, J)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_kernel_is_that_of_the_jacobians_in_every_form(network):
    f, params, X, full = network
    K = empirical_ntk(f, params, X)
    pairs = full if len(K.outputs) == 2 else full[:, :, 0, 0]
    assert_close(K.dense(), pairs)
    assert_close(K.trace(), np.einsum("nmkk->nm", full))
    assert_close(K.diagonal(), np.einsum("nmkk->nmk", full) if len(K.outputs) == 2 else pairs)
    assert_close(sum(K.by_leaf().values()), np.einsum("nmkk->nm", full))


@pytest.mark.parametrize("samples", [MANY, ONE])
def test_both_ways_of_every_leaf_give_the_same(network, samples):
    f, params, X, full = network
    n, _, k, _ = full.shape
    found = gradients(f, params, X, samples)
    assert_close(sum(one.every_pair(one) for one in found).reshape(n, k, n, k).swapaxes(1, 2), full)
    assert_close(sum(one.summed(one) for one in found), np.einsum("nmkk->nm", full))
    assert_close(sum(one.each_output(one) for one in found), np.einsum("nmkk->nmk", full))


@pytest.mark.parametrize(
    ("name", "leaves", "way"),
    [
        ("MLP, three outputs", ("[0][0]", "[1][0]", "[2][0]"), "positions"),
        ("MLP, three outputs", ("[0][1]", "[1][1]", "[2][1]"), "with its weights"),
        ("sequences through one layer", ("[1]",), "positions"),
        ("NTK parametrisation", ("[0]", "[1]"), "positions"),
        ("shared weights", ("params",), "outer products"),
        ("weights above their biases", ("[0]", "[1]"), "positions"),
        ("slices that overlap", ("params",), "gradient"),
        ("CNN", ("[0][0][0]", "[0][1][0]"), "outer products"),
        ("CNN, groups", ("[0][0][0]", "[0][1][0]"), "outer products"),
        ("layers in a scan, checkpointed", ("[0][0]",), "positions"),
        ("transformer", ("['E']",), "lookup"),
        ("transformer, tied embedding", ("['E']",), "gradient"),
        ("an unused leaf", ("[1]",), "unused"),
    ],
)
def test_leaves_take_the_way_that_costs_least(name, leaves, way):
    """Nothing of these falls back silently: a layer whose factors are lost would be slow, and right all the same."""
    f, params, X = small_networks.ALL[name]()
    ways = empirical_ntk(f, params, X).ways
    assert {leaf: ways[leaf] for leaf in leaves} == dict.fromkeys(leaves, way)


def test_few_samples_at_a_time_give_the_same_also_against_other_inputs(monkeypatch):
    with jax.enable_x64(True):
        f, params, X = small_networks.ALL["CNN"]()
        whole, across = empirical_ntk(f, params, X).dense(), empirical_ntk(f, params, X[:2]).dense(X)
        monkeypatch.setattr(blocks, "AT_ONCE", 1)
        K = empirical_ntk(f, params, X)
        np.testing.assert_allclose(K.dense(), whole, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(empirical_ntk(f, params, X[:2]).dense(X), across, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(across, whole[:2], rtol=1e-12, atol=1e-12)


def test_blocks_of_a_side_have_one_size_and_cover_it():
    f, params, X = small_networks.ALL["MLP, three outputs"]()
    routes = Factored.of(f, params, X).routes((10,))
    rows, columns = blocks._cut(routes, (10, 7), 2000)
    for side, n in ((rows, 10), (columns, 7)):
        assert len({part.stop - part.start for part in side}) == 1
        assert {i for part in side for i in range(part.start, part.stop)} == set(range(n))
    assert len(rows) > 1


def test_a_network_without_dependence_on_its_parameters_has_the_kernel_zero():
    K = empirical_ntk(lambda w, x: jnp.sum(x, axis=1) + 0 * jax.lax.stop_gradient(w), jnp.ones(()), jnp.ones((3, 2)))
    assert K.dense().tolist() == np.zeros((3, 3)).tolist()


def test_a_network_whose_samples_know_of_each_other_is_refused():
    """Batch norm in training mode: the mean is that of the batch."""
    K = empirical_ntk(lambda w, x: (x - x.mean(0)) @ w, jnp.ones(2), jnp.asarray([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]]))
    with pytest.raises(InputError, match="evaluation mode"):
        K.dense()


def test_the_matrix_cannot_be_changed_by_accident():
    K = empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.ones((3, 2)))
    with pytest.raises(ValueError, match="read-only"):
        K.dense()[0, 0] = 1.0
