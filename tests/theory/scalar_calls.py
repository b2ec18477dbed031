"""A valid call of every public function of `theory`, `kernels` and `special` that takes numbers: name → its arguments.

`test_scalar_input` gives each number wrongly in turn. Those that take arrays as well are in `tests/odd_calls.py`.
"""

import importlib
import inspect
import pkgutil
import sys
import typing
from pathlib import Path

import jax

sys.path.append(str(Path(__file__).parents[1]))

import odd_calls
from offtangent import kernels, networks, special
from offtangent.data import hierarchy, targets
from offtangent.theory import allen_zhu_li, arora, bai_lee, ge_wang_zhao, nichani

PAPERS = (allen_zhu_li, arora, bai_lee, ge_wang_zhao, nichani)
KEY = jax.random.key(0)
ALGORITHM = {"smoothness": 1.0, "hessian": 1.0, "epsilon": 0.01, "parameters": 10, "gap": 1.0, "c": 1.0, "delta": 0.1}
THEOREM = {"samples": 3, "dim": 2, "width": 6, "smallest": 0.5, "radius": 1.0, "label": 1.0, "start": 0.1}
BOUND = {"quadratic": 1.0, "n": 100, "smallest": 0.1, "delta": 0.1, "width": 100, "scale": 0.1, "training": 0.0}
MOVEMENT = {"quadratic": 1.0, "n": 100, "width": 100, "scale": 0.1, "smallest": 0.1, "delta": 0.1}
RESNET = {"tau_w": 5.0, "tau_v": 0.5, "outputs": 2, "width": 4096, "delta": 0.5, "sigma_w": 0.3, "sigma_v": 4.0}
FLOOR = {"dim": 8, "features": 3, "power": 1, "delta": 0.1}
PERTURBED = {"samples": 6, "dim": 8, "features": 4, "power": 1, "variance": 0.5, "delta": 0.1}
GAP = {"n": 1000, "dim": 10, "width": 100, "norm": 1.0, "radius": 1.0, "spread": 1.0, "curvature": 1.0, "delta": 0.1}
STATIONARY = {"dim": 10, "norm": 1.0, "opt": 0.1, "gamma": 1.0, "epsilon": 0.1, "radius": 1.0}


def calls():
    """The table."""
    ridges = hierarchy.SmoothRidges.random(3, outputs=2, terms=1, series=[0.0, 1.0, 0.5], key=KEY).general()
    others = hierarchy.GeneralRidges.random(2, outputs=2, terms=1, series=[0.0, 1.0], key=KEY)
    base, composite = (allen_zhu_li.concept_complexity(one) for one in (ridges, others))
    residual = networks.ResNet.theory(dim=3, outputs=2, width=8, sigma_v=2.0, key=KEY)
    soft = networks.TwoLayer.symmetric(dim=3, width=40, law="sphere", activation="softplus", key=KEY)
    relu = networks.TwoLayer.symmetric(dim=3, width=40, activation="relu3", key=KEY)
    X = jax.random.normal(KEY, (6, 3))
    covariance = nichani.FeatureCovariance.of_samples(soft, X)
    star = targets.LowDegreePlusSparse.random(dim=3, degree=1, rank=1, key=KEY)
    return odd_calls.calls() | {
        "allen_zhu_li.composite_bound": {"composite": composite, "base_bound": 1.0},
        "allen_zhu_li.concept_complexity": {"F": ridges, "epsilon": 0.1, "constant": 1.0},
        "allen_zhu_li.existence_hidden": {
            "net": residual,
            "base": ridges,
            "composite": others,
            "alpha": 0.1,
            "sigma_w": 1.0,
            "sigma_v": 2.0,
            "epsilon": 1e-3,
        },
        "allen_zhu_li.indicator_moment": {"order": 3},
        "allen_zhu_li.corollary71_samples": {"dim": 100, "alpha": 0.1},
        "allen_zhu_li.error_floor": {"alpha": 0.1, "coefficient": 0.1, "norm": 1.0},
        "allen_zhu_li.least_alpha": {"dim": 100, "degree": 2},
        "allen_zhu_li.memorising_bound": {"labels": 1.0, "dim": 100, "degree": 2, "coefficient": 0.1},
        "allen_zhu_li.memorising_samples": {"dim": 100, "degree": 2},
        "allen_zhu_li.needed_norm": {"alpha": 0.1, "coefficient": 0.1, "error": 1e-4},
        "allen_zhu_li.theorem2": {"dim": 100, "degree": 2, "samples": 10, "alpha": 0.1},
        "allen_zhu_li.theorem2_samples": {"dim": 100, "degree": 2},
        "allen_zhu_li.sparse_norm_bound": {"rows": 3, "columns": 4, "sparsity": 2, "delta": 0.1},
        "allen_zhu_li.resnet_settings": RESNET,
        "allen_zhu_li.theorem1": {
            "base": base,
            "composite": composite,
            "alpha": 0.1,
            "width": 100,
            "base_bound": 1.0,
            "optimum": 0.1,
        },
        "allen_zhu_li.low_norm_parity": {"dim": 5, "coordinates": (0, 1), "width": 8, "fit": 1.0},
        "allen_zhu_li.parity_correlation": {"degree": 2},
        "allen_zhu_li.flip_fraction": {"delta": 0.1},
        "allen_zhu_li.operator_limit": {"length": 1.0, "size": 1.0, "width": 100},
        "allen_zhu_li.output_limit": {"length": 1.0, "size": 1.0, "width": 100},
        "arora.complexity": {"quadratic": 1.0, "n": 100},
        "arora.generalisation_bound": BOUND,
        "arora.movement_bound": MOVEMENT,
        "arora.sample_size": {"quadratic": 1.0, "epsilon": 0.1, "delta": 0.1},
        "arora.rademacher_gap_bound": {"rademacher": 0.1, "n": 100, "delta": 0.1, "lipschitz": 1.0, "ceiling": 1.0},
        "arora.rademacher_bound": {"n": 9, "width": 9, "radius": 0.1, "movement": 1.0, "scale": 1.0, "delta": 0.1},
        "arora.movement_radius": {"n": 4, "width": 100, "smallest": 0.5, "residual": 2.0},
        "arora.feature_change_bound": {"n": 100, "radius": 0.1, "scale": 1.0, "delta": 0.1},
        "arora.flip_probability": {"radius": 1.0, "scale": 1.0},
        "arora.flip_probability_bound": {"radius": 1.0, "scale": 1.0},
        "arora.flip_sum_bound": {"n": 100, "width": 100, "radius": 0.1, "scale": 1.0, "delta": 0.1},
        "arora.kernel_change_bound": {"n": 100, "radius": 0.1, "scale": 1.0, "delta": 0.1},
        "arora.prescribe": {"theorem": "4.1", "n": 100, "smallest": 0.1, "delta": 0.1, "epsilon": 0.1, "scale": 1e-4},
        "arora.deviation_bound": {"n": 100, "width": 100, "scale": 0.1, "smallest": 0.1, "delta": 0.1},
        "arora.gram_deviation_bound": {"n": 100, "width": 100, "delta": 0.1},
        "arora.initial_loss_bound": {"n": 100, "scale": 0.1, "delta": 0.1},
        "arora.initial_output_bound": {"n": 100, "scale": 0.1, "delta": 0.1},
        "arora.initial_residual_bound": {"n": 100, "scale": 0.1, "delta": 0.1},
        "arora.required_width": {"n": 100, "scale": 0.1, "smallest": 0.1, "delta": 0.1, "epsilon": 0.1},
        "bai_lee.relu_series": {"power": 2},
        "bai_lee.relu_series_bound": {"power": 2},
        "bai_lee.relu_hermite": {"power": 2},
        "bai_lee.polynomial_samples": {"power": 4, "dim": 100, "epsilon": 0.1, "coefficient": 1.0, "length": 1.0},
        "bai_lee.coupling_width": {"dim": 10, "norm": 1.0, "epsilon": 0.1, "radius": 1.0},
        "bai_lee.generalisation_gap": GAP,
        "bai_lee.initial_norm_bound": {"dim": 10, "width": 100, "delta": 0.1},
        "bai_lee.largest_square_bound": {"count": 100},
        "bai_lee.localisation_radius": {"dim": 10, "width": 100, "strength": 0.1, "radius": 1.0},
        "bai_lee.quadratic_samples": {"norm": 1.0, "epsilon": 0.1, "radius": 1.0, "spread": 1.0},
        "bai_lee.stationary_width": STATIONARY,
        "bai_lee.xor_samples": {"dim": 10, "epsilon": 0.1},
        "bai_lee.expected_input_spread": {"sample": lambda _: X, "draws": 4, "key": KEY},
        "bai_lee.sphere_spread_bound": {"n": 100, "dim": 10},
        "bai_lee.express": {"net": relu, "targets": bai_lee.RidgePower(X[0], 4), "radius": 1.0},
        "bai_lee.xor_target": {"dim": 4, "first": 0, "second": 1},
        "bai_lee.matched_moments": {"order": 2, "shift": 0},
        "bai_lee.penalty_choice": {"norm": 1.0, "opt": 0.1, "gamma": 1.0, "epsilon": 0.1},
        "bai_lee.all_signs": {"width": 3},
        "bai_lee.random_signs": {"width": 4, "samples": 4, "key": KEY},
        "ge_wang_zhao.theorem4": {**THEOREM, "epsilon": 0.1, "delta": 0.1},
        "ge_wang_zhao.theorem4_as_printed": {"angle": 1e-3, "c": 1.0, "delta": 0.1, "epsilon": 0.5},
        "ge_wang_zhao.algorithm1_settings": ALGORITHM,
        "ge_wang_zhao.feature_norm_bound": {"dim": 3, "features": 2, "power": 1, "radius": 1.0, "delta": 0.1},
        "ge_wang_zhao.admissible_features": {"dim": 8, "power": 1},
        "ge_wang_zhao.least_width": {"dim": 3},
        "ge_wang_zhao.memorisation": {"samples": 3, "dim": 8, "width": 16, "power": 1, "features": 4},
        "ge_wang_zhao.most_samples": {"dim": 3},
        "ge_wang_zhao.theorem_features": {"samples": 9},
        "ge_wang_zhao.feature_square_floor": {**FLOOR, "smallest": 0.1},
        "ge_wang_zhao.most_features": {"dim": 8, "power": 1},
        "ge_wang_zhao.perturbed_feature_norm_bound": {**PERTURBED, "radius": 1.0},
        "ge_wang_zhao.perturbed_singular_floor": PERTURBED,
        "ge_wang_zhao.spanning_floor": FLOOR,
        "ge_wang_zhao.smoothness": {"radius": 1.0, "label": 1.0, "ball": 2.0, "gamma": 0.1},
        "ge_wang_zhao.multi_indices": {"dim": 3, "power": 2},
        "ge_wang_zhao.log_covering_bound": {"dim": 3, "power": 2, "epsilon": 0.1},
        "ge_wang_zhao.anticoncentration": {"power": 2, "epsilon": 0.1},
        "ge_wang_zhao.net_floor": {"size": 3, "features": 2, "power": 2, "delta": 0.1},
        "ge_wang_zhao.net_ceiling": {
            "size": 3,
            "dim": 3,
            "features": 2,
            "power": 2,
            "delta": 0.1,
            "radius": 0.1,
        },
        "ge_wang_zhao.sphere_net": {"dim": 2, "radius": 0.5},
        "ge_wang_zhao.rv_norm_floor": {"norm": 1.0, "power": 2},
        "nichani.regulariser_choice": {"dim": 10, "width": 100, "degree": 2, "epsilon": 0.1},
        "nichani.harmonic_assumption": {"sigma": "softplus", "dim": 3, "degree": 1, "least": 0.0},
        "nichani.sample_needs": {"dim": 10, "degree": 2, "rank": 10},
        "nichani.alignment": {"training": covariance, "population": covariance, "rank": 2},
        "nichani.express_jointly": {"covariance": covariance, "X": X, "target": star, "draws": 4, "key": KEY},
        "nichani.finite_levels": {"sigma": "softplus", "dim": 3, "neurons": 4, "samples": 5, "degree": 2},
        "kernels.coordinates.cube_coefficients": {"kernel": "gaussian", "dim": 3},
        "kernels.closed_forms.arc_cosine": {"order": 1},
        "kernels.closed_forms.gaussian": {"width": 1.0},
        "kernels.closed_forms.erf_output": {"weight": 1.0, "bias": 0.5},
        "kernels.convolution.convolutional": {"depth": 2, "patch": 2, "weight": 1.0, "bias": 0.5},
        "kernels.correlation.recursive": {"depth": 2},
        "kernels.fully_connected.deep": {"depth": 2, "weight": 1.0, "bias": 0.5, "terms": 16},
        "kernels.residual.resnet": {"weight": 1.0, "bias": 0.5},
        "special.activations.sigmoid": {"shift": 1.0},
        "special.activations.shifted": {"sigma": "relu", "by": 1.0},
        "special.boolean.krawtchouk": {"degree": 1, "distance": 2, "dim": 4},
        "special.boolean.krawtchouks": {"dim": 4},
        "special.boolean.subsets": {"dim": 4, "degree": 2},
        "special.boolean.corners": {"dim": 4},
        "special.boolean.subset_sizes": {"dim": 4},
        "special.hermite_polynomials.hermite_coefficients": {"sigma": "relu", "order": 2, "derivative": 0},
        "special.hermite_polynomials.hermite_energy": {"sigma": "relu", "order": 2, "derivative": 0},
        "special.sphere.harmonic_dimension": {"dim": 3, "degree": 2},
        "special.sphere.polynomial_dimension": {"dim": 3, "degree": 2},
        "special.sphere.block_dimensions": {"dim": 3, "degree": 1},
        "special.sphere.monomial_coefficients": {"power": 3, "dim": 4},
        "special.sphere.harmonic_coefficients": {"g": "softplus", "dim": 3, "degree": 2, "derivative": 0},
        "special.sphere.harmonic_energies": {"g": "softplus", "dim": 3, "degree": 2, "derivative": 0},
        "special.sphere.tangent_eigenvalues": {"sigma": "softplus", "dim": 3, "degree": 2},
    }


def taking_numbers():
    """The names of all public functions of the three rooms with a parameter that is written as one number."""
    for room in PAPERS:
        short = room.__name__.rpartition(".")[2]
        yield from (f"{short}.{name}" for name in room.__all__ if _takes_numbers(getattr(room, name)))
    for room in (kernels, special):
        for found in pkgutil.iter_modules(room.__path__, room.__name__ + "."):
            module, short = importlib.import_module(found.name), found.name.removeprefix("offtangent.")
            for name, thing in vars(module).items() if short not in odd_calls.INNER else ():
                own = getattr(thing, "__module__", "") == found.name and not name.startswith(("_", "check_"))
                if own and _takes_numbers(thing):
                    yield f"{short}.{name}"


def _takes_numbers(thing):
    function = inspect.unwrap(thing)
    written = inspect.signature(function).parameters.values() if inspect.isfunction(function) else ()
    kinds = (one.annotation for one in written)
    return any(part in (int, float) for kind in kinds for part in (kind, *typing.get_args(kind)))
