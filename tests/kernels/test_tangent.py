"""What a tangent kernel is asked for beyond its matrix, against whole Jacobians and refitted regressions in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import small_networks
from offtangent._errors import InputError
from offtangent.kernels import empirical_ntk, passes, solves
from offtangent.kernels.all_pairs import AllPairs
from offtangent.taylor import linearise

NAMES = ["MLP, three outputs", "MLP, one output, jitted", "CNN", "transformer", "weights above their biases"]


@pytest.fixture(autouse=True)
def standard_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(params=NAMES)
def network(request):
    """f, parameters, inputs, other inputs and the Jacobian, (nk, P), samples first."""
    with jax.enable_x64(True):
        f, params, X = small_networks.ALL[request.param]()
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
        yield f, params, X, X[:2], jacobian(f, params, X)


def jacobian(f, params, X):
    found = jax.jit(jax.jacrev(lambda p: f(p, X).ravel()))(params)
    return np.concatenate([np.asarray(leaf).reshape(f(params, X).size, -1) for leaf in jax.tree.leaves(found)], axis=1)


def labels(K):
    return np.random.default_rng(0).standard_normal(K.outputs)


def test_the_diagonal_and_the_kernel_against_other_inputs_are_those_of_the_jacobians(network):
    f, params, X, few, J = network
    K, cross = empirical_ntk(f, params, X), empirical_ntk(f, params, X, few)
    np.testing.assert_allclose(K.diag(), np.sum(J**2, axis=1).reshape(K.outputs), rtol=1e-12)
    k = J.shape[0] // len(K)
    block = J @ J[: 2 * k].T
    flat = cross.dense().reshape(len(K), 2, k, k).swapaxes(1, 2).reshape(cross.shape)
    np.testing.assert_allclose(flat, block, rtol=0, atol=1e-12 * np.abs(block).max())
    v = labels(K)[:2]
    np.testing.assert_allclose(cross @ v, (block @ v.ravel()).reshape(K.outputs), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(cross.T @ labels(K), (block.T @ labels(K).ravel()).reshape(v.shape), atol=1e-9)
    np.testing.assert_allclose((cross @ np.stack([v, 3 * v], -1))[..., 1], 3 * (cross @ v), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sum(cross.by_leaf().values()), cross.trace(), rtol=1e-10, atol=1e-10)
    assert cross.diagonal().shape[:2] == cross.trace().shape == (len(K), 2)


def test_the_ridge_counts_in_the_matrix_its_products_eigenvalues_and_solves(network):
    f, params, X, few, J = network
    K = empirical_ntk(f, params, X).with_ridge(0.7)
    H = J @ J.T + 0.7 * np.eye(len(J))
    b = labels(K)
    np.testing.assert_allclose(K @ b, (H @ b.ravel()).reshape(b.shape), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(K.diag().ravel(), H.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(K.eigh().values, np.linalg.eigvalsh(H)[::-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(K.eigh(2).values, np.linalg.eigvalsh(H)[:-3:-1], rtol=1e-9)
    both = K.solve(np.stack([b, 2 * b], axis=-1))
    expected = np.linalg.solve(H, b.ravel()).reshape(b.shape)
    np.testing.assert_allclose(K.solve(b).value, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(both.value[..., 1], 2 * expected, rtol=1e-8, atol=1e-10)
    assert both.method == "cholesky"
    assert both.converged
    np.testing.assert_allclose(K.dense(few), empirical_ntk(f, params, X).dense(few), rtol=1e-12)
    np.testing.assert_allclose(K.trace(), empirical_ntk(f, params, X).trace(), rtol=1e-12)


def test_conjugate_gradients_solve_and_lanczos_diagonalises_without_the_matrix(network, monkeypatch):
    f, params, X, _, J = network
    monkeypatch.setattr(passes, "BATCH", 3)
    monkeypatch.setattr(solves, "DENSE_ROWS", 0)
    monkeypatch.setattr(AllPairs, "dense", lambda _: pytest.fail("the matrix is formed"))
    K = empirical_ntk(f, params, X).with_ridge(1.0)
    H = J @ J.T + np.eye(len(J))
    found = K.solve(labels(K), method="conjugate gradients", tolerance=1e-9)
    expected = np.linalg.solve(H, labels(K).ravel())
    np.testing.assert_allclose(found.value.ravel(), expected, rtol=1e-6, atol=1e-8)
    assert found.converged
    assert found.method == "conjugate gradients"
    assert found.iterations > 0
    if len(J) >= 10:
        np.testing.assert_allclose(K.eigh(1).values, np.linalg.eigvalsh(H)[-1:], rtol=1e-8)


def test_a_regression_ends_where_the_linearised_network_has_its_least_loss(network):
    """Ridge regression in the parameters themselves, from the Jacobian, and the linearised network there."""
    f, params, X, few, J = network
    K = empirical_ntk(f, params, X).with_ridge(0.3)
    Y = labels(K)
    model = K.fit(Y)
    theta = np.linalg.solve(J.T @ J + 0.3 * np.eye(J.shape[1]), J.T @ (Y - np.asarray(f(params, X))).ravel())
    moved = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model.displacement)])
    np.testing.assert_allclose(moved, theta, rtol=1e-7, atol=1e-9)
    end = jax.tree.map(jnp.add, params, model.displacement)
    np.testing.assert_allclose(model.predict(few), linearise(f, params)(end, few), rtol=1e-9, atol=1e-9)
    by_kernel = np.asarray(f(params, few)) + np.asarray(empirical_ntk(f, params, few, X) @ model.coefficients)
    np.testing.assert_allclose(model.predict(few), by_kernel, rtol=1e-9, atol=1e-9)


def test_leaving_a_sample_out_is_refitting_without_it(network):
    f, params, X, _, _ = network
    K = empirical_ntk(f, params, X).with_ridge(0.3)
    Y = labels(K)
    found = K.fit(Y).leave_one_out
    for left in range(len(K)):
        others = np.arange(len(K)) != left
        refitted = empirical_ntk(f, params, X[others]).with_ridge(0.3).fit(Y[others])
        np.testing.assert_allclose(found[left], refitted.predict(X[left : left + 1])[0], rtol=1e-7, atol=1e-8)


def test_moments_with_enough_products_are_exact(network):
    f, params, X, _, J = network
    K = empirical_ntk(f, params, X).with_ridge(5.0)  # which does not count
    Y = labels(K)
    full = J @ J.T
    found = K.moments(Y, products=3 * len(full), key=jax.random.key(0))
    size = np.linalg.norm(full)
    assert found.trace.value == pytest.approx(np.trace(full), rel=1e-9)
    assert found.frobenius.value == pytest.approx(size, rel=1e-9)
    assert found.effective_rank.value == pytest.approx((np.trace(full) / size) ** 2, rel=1e-9)
    aligned = Y.ravel() @ full @ Y.ravel() / (size * np.sum(Y**2))
    assert found.alignment.value == pytest.approx(aligned, rel=1e-9)
    assert found.trace.error < 1e-6 * np.trace(full)
    assert K.moments(key=jax.random.key(0), products=6).alignment is None


def test_a_projection_estimates_the_kernel_with_the_error_that_it_says():
    """Over 300 draws of directions the squared deviation of every entry has the mean that `error` claims."""
    with jax.enable_x64(True):
        f, params, X = small_networks.ALL["MLP, three outputs"]()
        K = empirical_ntk(f, params, X)
        drawn = [K.project(8, key=jax.random.key(seed)) for seed in range(300)]
        full = K.dense()
        deviations = np.stack([one.dense() - full for one in drawn])
        size = np.einsum("iijj->ij", full)
        claimed = np.sqrt((full**2 + size[:, None, :, None] * size[None, :, None, :]) / 8)
        z = deviations.mean(axis=0) / (claimed / np.sqrt(300))
        assert np.abs(z).max() < 5
        # 300 squared deviations have a mean off by about √(5/300), 13 %, their root by half of it, and there are 144.
        np.testing.assert_allclose(np.sqrt(np.mean(deviations**2, axis=0)), claimed, rtol=0.35)
        mean_error = np.mean([one.error() for one in drawn], axis=0)
        np.testing.assert_allclose(mean_error, claimed, rtol=0.15)
        one = drawn[0]
        np.testing.assert_allclose(one.of_inputs(X[:2]), one.features[:2], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(one.dense(X[:2]), one.dense()[:, :2], rtol=1e-12)
        np.testing.assert_allclose(one.error(X[:2]), one.error()[:, :2], rtol=1e-12)


@pytest.mark.parametrize("budget", [1, 20_000, 10**9])
def test_the_budget_changes_nothing_but_memory(budget):
    with jax.enable_x64(True):
        f, params, X = small_networks.ALL["CNN"]()
        K, whole = empirical_ntk(f, params, X, budget=budget), empirical_ntk(f, params, X)
        np.testing.assert_allclose(K.dense(), whole.dense(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(K.diag(), whole.diag(), rtol=1e-12)
        assert empirical_ntk(f, params, X, X, budget=budget).trace().shape == (3, 3)


def test_float32_stays_float32_and_agrees_with_float64():
    f, params, X = small_networks.ALL["MLP, three outputs"]()
    K = empirical_ntk(f, params, X).with_ridge(0.5)
    with jax.enable_x64(True):
        in_float64 = [jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), one) for one in (params, X)]
        exact = empirical_ntk(f, *in_float64).with_ridge(0.5)
        expected, solution = exact.dense(), exact.solve(labels(exact)).value
    assert K.dense().dtype == (K @ labels(K)).dtype == K.diag().dtype == np.float32
    np.testing.assert_allclose(K.dense(), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    found = K.solve(labels(K))
    np.testing.assert_allclose(found.value, solution, rtol=0, atol=1e-3 * np.abs(solution).max())


def linear(**words):
    return empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.ones((3, 2)), **words)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear(budget=0), "positive number of bytes"),
        (lambda: linear().with_ridge(-1.0), "ridge"),
        (lambda: linear().solve(np.ones(4)), r"b has shape \(4,\)"),
        (lambda: linear().solve(np.ones(3)), "singular"),
        (lambda: linear().eigh(4), "between 1 and 3 eigenpairs"),
        (lambda: linear().with_ridge(1.0).fit([1.0, 2.0]), r"Y has shape \(2,\)"),
        (lambda: linear().with_ridge(1.0).fit([1.0, 2.0, np.nan]), "NaN"),
        (lambda: linear().moments(np.zeros(3), key=jax.random.key(0)), "Y is zero"),
        (lambda: linear().moments(products=3, key=jax.random.key(0)), "at least 6"),
        (lambda: linear().project(0, key=jax.random.key(0)), "rank=0"),
        (lambda: empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.ones((3, 2)), jnp.ones((3, 3))), "fails on x"),
        (
            lambda: empirical_ntk(lambda w, x: x @ w, jnp.ones(2), jnp.ones((3, 2)), jnp.ones((4, 2))) @ jnp.ones(3),
            r"outputs on X2, \(4,\)",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
