"""A valid call of each public function of `theory`, `kernels` and `special` that takes arrays: name → its arguments.

`tests/test_odd_input.py` replaces one array after the other in them.
"""

import jax
import jax.numpy as jnp
import numpy as np

from offtangent import kernels, networks, special, theory
from offtangent.data import hierarchy
from offtangent.kernels import cube
from offtangent.linalg import Spectrum
from offtangent.networks.resnet import Hidden
from offtangent.theory import allen_zhu_li, arora, bai_lee, ge_wang_zhao, nichani
from offtangent.theory.ge_wang_zhao.tensors import SymmetricTensor

KEY = jax.random.key(0)
# Behind the door: called by jitted code or by functions that have checked already.
INNER = (
    "kernels.arcs", "kernels.moments", "kernels.pairs", "kernels.solves", "kernels.rounding", "kernels.series",
    "kernels.definiteness", "kernels.expansion", "kernels.names", "kernels.inverse", "kernels.angular",
    "kernels.correlation", "kernels.cross", "kernels.trusting", "kernels.backward", "kernels.uses", "kernels.factors",
    "kernels.gradients", "kernels.blocks", "kernels.tilewise", "kernels.passes", "kernels.tangent",
    "special.derivatives",
)  # fmt: skip


def calls():
    """The table. Numbers are of ordinary size, inputs of length two, labels −1 and 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 3))
    sphere = 2 * X / np.linalg.norm(X, axis=1, keepdims=True)
    y, z, beta = np.tile([-1.0, 1.0], 3), rng.standard_normal(6), np.array([0.25, -0.5, 0.5])
    W0, W, V = (rng.standard_normal((3, 8)) for _ in range(3))
    cubes = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, 1.0], [-1.0, 1.0, 1.0]])
    two = networks.TwoLayer.symmetric(dim=3, width=8, activation="relu3", key=KEY)
    soft = networks.TwoLayer.symmetric(dim=3, width=8, law="sphere", activation="softplus", key=KEY)
    residual = networks.ResNet.theory(dim=3, outputs=2, width=8, sigma_v=2.0, key=KEY)
    moved = Hidden(*(jnp.asarray(rng.standard_normal(leaf.shape), jnp.float32) for leaf in residual.origin))
    single, images = jnp.asarray(X, jnp.float32), np.asarray(residual(moved, jnp.asarray(X, jnp.float32)))
    move, star = jnp.asarray(0.3 * W, jnp.float32), jnp.asarray(0.3 * V, jnp.float32)
    risk, clean = bai_lee.RandomisedRisk.of(two, sphere, y), bai_lee.CleanRisk.of(two, sphere, y)
    strong = bai_lee.RandomisedRisk.of(two, sphere, y, strength=0.000274850070223225)
    spectrum = Spectrum.of(np.asarray(kernels.relu_hidden.exact(sphere)))
    covariance = nichani.FeatureCovariance.of_samples(soft, sphere)
    quadratic = networks.QuadraticNet(3, 8)
    ridges = hierarchy.SmoothRidges.random(3, outputs=2, terms=1, series=[0.0, 1.0, 0.5], key=KEY).general()
    tensor, dots = SymmetricTensor(np.array([1.0, 0.5, -0.5, 2.0, 0.25, -1.0]), 3, 2), np.array([-0.5, 0.0, 0.75])
    law, gaussian = bai_lee.matched_moments(2), kernels.cube.CubeKernel.of("gaussian", 3)
    symmetric = rng.standard_normal((2, 3, 2, 2))
    f, params = (lambda p, x: jnp.tanh(x @ p)), jnp.asarray(beta, jnp.float32)
    return {
        # Allen-Zhu & Li
        "allen_zhu_li.series_complexity": {"series": np.array([0.0, 1.0, 0.5]), "epsilon": 0.1},
        "allen_zhu_li.series_smoothness": {"series": np.array([0.0, 1.0, 0.5])},
        "allen_zhu_li.coupling": {"net": residual, "params": moved, "X": single},
        "allen_zhu_li.descent_parts": {
            "net": residual,
            "params": moved,
            "X": single,
            "target": jnp.asarray(images),
            "star": residual.origin,
        },
        "allen_zhu_li.gradient_parts": {"net": residual, "params": moved, "X": single, "direction": moved},
        "allen_zhu_li.sign_changes": {"net": residual, "params": moved, "X": single},
        "allen_zhu_li.sign_patterns": {"net": residual, "params": moved, "X": single},
        "allen_zhu_li.existence_weights": {
            "F": ridges,
            "A": np.asarray(residual.A),
            "W0": np.asarray(residual.W0),
            "scale": 8**-0.125,
        },
        "allen_zhu_li.indicator_mean": {"h": allen_zhu_li.IndicatorFunction(np.array([0.5, 1.0])), "cosines": dots},
        "allen_zhu_li.IndicatorFunction": {"series": np.array([0.5, 1.0])},
        "allen_zhu_li.product_risk": {
            "kernel": gaussian,
            "X": cubes,
            "beta": np.ones((4, 2)),
            "coordinates": (0, 1),
            "alpha": 0.5,
        },
        "allen_zhu_li.memorise": {"X": cubes, "Y": np.array([1.0, -1.0, 1.0, 2.0]), "degree": 2},
        "allen_zhu_li.memorise_on_top": {
            "X": cubes[:2],
            "Y": np.array([1.0, -1.0]),
            "degree": 2,
            "coefficients": np.ones(3),
        },
        "allen_zhu_li.padded_copies": {"weights": rng.standard_normal((2, 4)), "dim": 5, "coordinates": (0, 1)},
        "allen_zhu_li.most_flips": {"g": z, "length": 1.0},
        "allen_zhu_li.worst_change": {"A": V[:2], "values": W[0], "g": W[1], "length": 1.0},
        "allen_zhu_li.worst_operator": {"A": V[:2], "V0": W, "z": beta, "length": 1.0},
        "allen_zhu_li.worst_output": {"A": V[:2], "g": W[0], "length": 1.0},
        "allen_zhu_li.worst_relu": {"A": V[:2], "g": W[0], "length": 1.0},
        # Arora et al.
        "arora.predict_residual": {"spectrum": spectrum, "y": y, "rate": 0.1, "steps": np.array([0, 5])},
        "arora.steps_to": {"spectrum": spectrum, "y": y, "rate": 0.1, "loss": 0.5},
        "arora.absolute_loss": {"u": z, "y": y},
        "arora.ramp_loss": {"u": z, "y": y},
        "arora.zero_one_loss": {"u": z, "y": y},
        "arora.tensor_powers": {"X": X, "power": 2},
        "arora.linearised_distance": {"spectrum": spectrum, "y": y, "rate": 0.1, "steps": np.array([0, 5])},
        "arora.linearised_outputs": {"spectrum": spectrum, "y": y, "rate": 0.1, "steps": np.array([0, 5])},
        "arora.linearised_weights": {"features": arora.Features.of(soft, sphere), "y": y},
        "arora.Features.of": {"net": soft, "X": sphere, "W": W},
        "arora.flip_candidates": {"W0": W0, "X": X, "radius": 0.5},
        "arora.flip_counts": {"W0": W0, "W": W, "X": X},
        "arora.gradient_descent": {"kernel": kernels.relu_hidden, "X": sphere, "Y": y, "rate": 0.1},
        "arora.pseudo_inverse_ratio": {"A": np.diag([1.0, 0.5, 0.0]), "B": np.diag([2.0, 1.0, 3.0])},
        "arora.Target.power": {"beta": beta, "power": 2},
        "arora.Target.series": {"beta": beta, "coefficients": np.array([0.0, 1.0, 0.5])},
        "arora.Target.linear": {"beta": beta},
        "arora.Target.quadratic": {"A": np.diag([1.0, 2.0, -1.0])},
        "arora.Target.cosine": {"beta": beta},
        "arora.Target.arctan": {"beta": beta},
        # Bai & Lee
        "bai_lee.risk_closeness": {"risk": risk, "W": move, "W_star": star},
        "bai_lee.RandomisedRisk.of": {"net": two, "X": sphere, "y": y},
        "bai_lee.CleanRisk.of": {"net": two, "X": sphere, "y": y},
        "bai_lee.feature_rademacher": {"net": two, "X": sphere},
        "bai_lee.feature_term": {"net": two, "X": sphere, "draws": 4, "key": KEY},
        "bai_lee.input_spread": {"X": X},
        "bai_lee.widest_gap_weights": {"net": two, "X": sphere, "signs": y, "norm": 1.0},
        "bai_lee.matrix_rademacher": {"A": symmetric + np.swapaxes(symmetric, 2, 3)},
        "bai_lee.column_norm": {"W": W},
        "bai_lee.RidgePower": {"direction": beta, "power": 4},
        "bai_lee.quadratic_part": {"net": two, "W": move, "X": sphere},
        "bai_lee.clean_landscape": {"risk": clean, "W": move, "W_star": star},
        "bai_lee.penalty_landscape": {"W": move, "W_star": star},
        "bai_lee.randomised_landscape": {"risk": risk, "W": move, "W_star": star},
        "bai_lee.stationary_bound": {"risk": strong, "W": move, "W_star": star, "gamma": 1.0, "epsilon": 0.5},
        "bai_lee.extracting_weights": {"net": two, "stars": np.asarray(W[:, :4], np.float32), "law": law, "key": KEY},
        "bai_lee.order_limit": {"sigma": "tanh", "X": sphere, "beta": beta, "order": 2},
        "bai_lee.pair_terms": {"net": two, "W": move, "X": single, "order": 2},
        "bai_lee.ridge_columns": {"net": two, "beta": beta, "order": 2},
        "bai_lee.term_moments": {
            "net": two,
            "stars": np.asarray(W[:, :4], np.float32),
            "law": law,
            "X": sphere,
            "order": 2,
        },
        "bai_lee.penalty": {"W": W},
        "bai_lee.penalty_gradient": {"W": W},
        "bai_lee.penalty_hessian": {"W": W, "V": V},
        "bai_lee.mean_penalty_hessian": {"W": W, "V": V},
        "bai_lee.clean_population_risk": {"net": two, "W": move, "source": (sphere, y)},
        "bai_lee.population_risk": {"f": f, "params": params, "source": (sphere, y)},
        "bai_lee.randomised_population_risk": {"net": two, "W": move, "source": (sphere, y), "key": KEY},
        "bai_lee.random_feature_energy": {"beta": beta, "power": 2},
        "bai_lee.random_feature_energy_bound": {"beta": beta, "power": 2},
        "bai_lee.random_feature_variance": {"X": sphere, "beta": beta, "power": 2, "radius": 2.0},
        "bai_lee.random_feature_weights": {"W0": W0, "beta": beta, "power": 2},
        "bai_lee.empirical_risk": {"f": f, "params": params, "X": single, "y": jnp.asarray(y, jnp.float32)},
        "bai_lee.flip": {"W": W, "signs": np.tile([1.0, -1.0], 4)},
        "bai_lee.sign_identities": {"net": two, "W": move, "X": sphere},
        "bai_lee.landscape_survey": {"risk": risk, "W": np.stack([W, V]), "W_star": V},
        # Ge, Wang & Zhao
        "ge_wang_zhao.decoupled_subspace": {"R": X[:4], "power": 1, "pair": (0, 1)},
        "ge_wang_zhao.feature_rows": {"R": X, "power": 2},
        "ge_wang_zhao.net_expansion": {
            "point": np.array([0.6, 0.8]),
            "net": np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]]),
            "terms": 2,
        },
        "ge_wang_zhao.squared_features": {"R": X, "X": sphere, "power": 1},
        "ge_wang_zhao.interpolant": {"net": quadratic, "X": X[:4], "y": y[:4]},
        "ge_wang_zhao.QuadraticRisk.of": {"net": quadratic, "X": X[:4], "y": y[:4]},
        "ge_wang_zhao.negative_curvature_descent": {
            "risk": theory.QuadraticRisk.of(quadratic, X[:4], y[:4]),
            "W": jnp.asarray(W, jnp.float32),
            "steps": 3,
        },
        "ge_wang_zhao.leave_one_out_distances": {"X": X[:4]},
        "ge_wang_zhao.smallest_singular": {"X": X[:4]},
        "ge_wang_zhao.decoupled_variance": {"M": tensor, "first": beta, "second": beta},
        "ge_wang_zhao.gaussian_variance": {"M": tensor, "shift": beta},
        "ge_wang_zhao.hermite_expansion": {"M": tensor, "shift": beta},
        "ge_wang_zhao.hermite_basis": {"X": X, "order": 2},
        "ge_wang_zhao.isometric_power": {"X": X, "power": 2},
        "ge_wang_zhao.reduced_power": {"X": X, "power": 2},
        "ge_wang_zhao.SymmetricTensor": {
            "coefficients": np.array([1.0, 0.5, -0.5, 2.0, 0.25, -1.0]),
            "dim": 3,
            "power": 2,
        },
        # Nichani, Bai & Lee
        "nichani.FeatureCovariance.of_samples": {"net": soft, "X": sphere},
        "nichani.R3.empirical": {"net": soft, "X": sphere, "rank": 2},
        "nichani.R3.of": {"covariance": covariance, "X": sphere, "rank": 2},
        "nichani.feature_blocks": {"values": np.arange(40.0, 0.0, -1.0), "net": soft, "degree": 1, "trace": 820.0},
        "nichani.furthest": {"W": W},
        "nichani.express_low_degree": {"covariance": covariance, "X": sphere, "y": z, "rank": 2},
        "nichani.sign_energy": {"net": soft, "W": W},
        # kernels
        "kernels.Gram": {"kernel": kernels.relu_hidden, "X": sphere},
        "kernels.relu_hidden": {"X1": single, "X2": single},
        "kernels.relu_hidden.exact": {"X1": sphere, "X2": X},
        "kernels.relu_hidden.diag": {"X": single},
        "kernels.ridge_regression": {"kernel": kernels.relu_hidden, "X": sphere, "Y": z, "ridge": 0.5},
        "kernels.regression.ridge_for_norm": {"spectrum": spectrum, "Y": z, "norm": 0.5},
        "kernels.regression.ridge_path": {"spectrum": spectrum, "Y": z, "ridges": np.array([0.5, 1.0])},
        "kernels.regression.expansion": {"kernel": kernels.relu_hidden, "X": sphere, "coefficients": z, "X_new": X},
        "kernels.ridges.regularised": {
            "kernel": kernels.relu_hidden,
            "X": sphere,
            "y": z,
            "ridges": np.array([0.5, 1.0]),
        },
        "kernels.finite.tangent_gram": {"net": soft, "W": move, "X": single},
        "kernels.empirical_ntk": {"f": f, "params": params, "X": single},
        "kernels.empirical_conjugate": {"features": lambda p, x: x * p, "params": params, "X": single, "X2": single},
        "kernels.fully_connected.hermite_remainder": {"kernel": kernels.deep(1, activation="tanh"), "X": sphere},
        "kernels.coordinates.correlation_regression": {
            "kernel": "gaussian",
            "X": cubes,
            "Y": np.ones((4, 1)),
            "strength": 1.0,
        },
        "on_cube": {"X1": cubes, "X2": cubes},
        "on_cube_exactly": {"X1": cubes, "X2": cubes},
        # special
        **{
            f"special.activations.{name}": {"z": z}
            for name in ["erf", "gelu", "quadratic", "relu", "relu3", "sin", "softplus", "tanh"]
        },
        **{f"special.losses.{name}": {"y": y, "z": z} for name in special.losses.LOSSES},
        "special.boolean.character": {"subset": (0, 1), "X": cubes},
        "special.boolean.cube_spectrum": {"values": np.array([1.0, 0.5, 0.25, 0.125])},
        "special.boolean.cube_values": {"squares": np.array([1.0, 0.5, 0.25, 0.125])},
        "special.boolean.hamming": {"X1": cubes, "X2": cubes},
        "special.boolean.krawtchouk_matrix": {"degree": 2, "X1": cubes, "X2": cubes},
        "special.boolean.signs": {"X": cubes},
        "special.boolean.walsh": {"values": np.array([1.0, 2.0, -1.0, 0.5])},
        "special.hermite_polynomials.hermite": {"k_max": 3, "z": z},
        "special.sphere.gegenbauer": {"degree": 3, "t": dots, "dim": 4},
        "special.sphere.gegenbauers": {"degree": 3, "t": dots, "dim": 4},
    }


def on_cube(X1, X2):
    """A kernel on the cube."""
    return cube.CubeKernel.of("gaussian", 3)(X1, X2)


def on_cube_exactly(X1, X2):
    """The same in float64."""
    return cube.CubeKernel.of("gaussian", 3).exact(X1, X2)


def named(name):
    """The function of a name in the table."""
    rooms = {"kernels": kernels, "special": special, "on_cube": on_cube, "on_cube_exactly": on_cube_exactly}
    rooms |= {"allen_zhu_li": allen_zhu_li, "arora": arora, "bai_lee": bai_lee}
    return eval(name, rooms | {"ge_wang_zhao": ge_wang_zhao, "nichani": nichani})  # noqa: S307
