"""Every public function of these rooms, found by walking their modules: each parameter in turn is given wrongly.

A function has a valid call in `tests/door_calls.py`, or stands below with the reason why it checks nothing: nothing new
slips in. The calls run in a process of their own, without the run-time types of the tests, which would refuse some of
them first.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS = ("linalg", "data", "networks", "taylor", "training", "labels", "regime", "estimators")

BEHIND_THE_DOOR = {
    "a check itself": """
        data.catalogue.check_name data.preprocessing.check_how linalg.tiles.check_length
        linalg.brackets.right_sides networks.layers.check_batch networks.layers.check_shapes networks.layers.check_sizes
        networks.quadratic.check_batch networks.quadratic.check_halves networks.quadratic.check_weights
        networks.two_layer.check_batch networks.two_layer.check_displacement networks.two_layer.check_pairs
        taylor.checks.check_function taylor.checks.check_like taylor.checks.check_order taylor.checks.check_outputs
        taylor.checks.check_some training.arguments.check_data training.arguments.check_finite
        training.arguments.check_manner training.arguments.check_params training.arguments.check_settings
    """,
    "makes an error, or raises one or warns, for `train` and others": """
        data.catalogue.damaged linalg.brackets.singular training.divergence.Diverged
        training.divergence.refuse_divergence training.divergence.warn_of_a_rise
    """,
    "takes what `Gram` and other operators have checked": """
        linalg.brackets.bracket linalg.brackets.cholesky_factor linalg.brackets.cholesky_floor
        linalg.brackets.factorise linalg.brackets.matrix_product linalg.conjugate.conjugate_gradients
        linalg.factor.factor_bytes linalg.factor.factor_rows linalg.factor.tiled_cholesky linalg.krylov.lanczos
        linalg.memory.memory_to_spare linalg.preconditioner.low_rank linalg.preconditioner.pivoted_cholesky
        linalg.spectrum.Spectrum.refined linalg.stream.product_with_error linalg.stream.rows_per_tile
        linalg.stream.series_floor linalg.stochastic.moments
        linalg.stream.tile_slices linalg.stream.Cut linalg.stream.Cut.of linalg.stream.Pass
        linalg.tiles.SymmetricTiles linalg.tiles.SymmetricTiles.build linalg.tiles.entries_ready linalg.tiles.group
        linalg.tiles.rows_per_product_tile
    """,
    "takes names and paths that the loaders of images have checked": """
        data.catalogue.find data.catalogue.locate data.catalogue.read
    """,
    "a part of the targets of `data.hierarchy` and of networks, on arrays that these have checked": """
        data.hierarchy.evaluate_series networks.layers.affine networks.layers.combine
    """,
    "takes inputs that a door has checked": "data.duplicates.merge_checked data.preprocessing.fit_checked",
    "takes what `train` has checked": """
        training.checkpoint.fingerprint training.checkpoint.load training.checkpoint.save
    """,
    "takes what `analyse` and `advise` have checked or found": """
        labels.analysis.describe labels.energies.generator labels.measure.exact_measure labels.measure.lanczos_measure
        labels.noise.InverseMoments.of labels.noise.noise_bound labels.noise.noise_estimate
        labels.noise.noise_variance_bound labels.page.answers labels.page.doubt labels.partition.predict_within_parts
        labels.partition.random_parts labels.partition.rows_that_fit labels.spectrum.label_spectrum
        labels.tasks.labels_of taylor.two_layer.TwoLayerExpansion.of
    """,
    "a command, which tests/labels, tests/regime and tests/test_cli.py run": """
        labels.command.labels
    """,
    "takes what `measure_regime` and `follow` have checked or found": """
        regime.words.ordinal regime.kernel.KernelAt.of regime.kernel.centred regime.kernel.layers
        regime.kernel.turned regime.measured.Regime.read regime.measured.bootstrap regime.movement.movements
        regime.neurons.neurons_of regime.neurons.plain_name regime.scores.Scoring.of
    """,
}

MADE_INSIDE = {
    "a result, which users read": """
        data.duplicates.Merged data.files.UserData data.labels.Labelled data.labels.Noisy
        data.preprocessing.Preprocessing data.targets.DegreeEnergies labels.advice_text.Advice labels.advice_text.Cut
        labels.advice_text.Measured labels.analysis.LabelAnalysis labels.analysis.Suspects
        labels.energies.EnergyEstimate labels.learning_curves.KernelCurve labels.measure.Measure
        labels.measure.MeasureBracket labels.noise.InverseMoments labels.noise.NoiseEstimate
        labels.partition.WithinParts labels.spectrum.Alignment labels.spectrum.LabelSpectrum
        labels.spectrum.PredictedCurve labels.tasks.Classes labels.tasks.Noise labels.tasks.Numbers labels.tasks.Verdict
        linalg.brackets.Bracket linalg.brackets.Floor linalg.conjugate.Iterates linalg.factor.TiledFactor
        linalg.krylov.Krylov linalg.stochastic.Estimate linalg.stochastic.Moments
        linalg.preconditioner.LowRank linalg.solution.Solution linalg.spectrum.Spectrum
        regime.course.Course regime.kernel.KernelAt regime.kernel.Layer regime.kernel.Turn regime.measured.Regime
        regime.movement.Movement regime.neurons.Neurons regime.scores.Prediction regime.scores.Scoring
        taylor.curvature.Certificate taylor.curvature.Sharpness
        training.grids.Search training.loop.History training.perturbed.Stationary
    """,
    "what a function of its module makes, drawn or checked": """
        data.fetch.Original data.targets.QuadraticPlusCubic networks.fully_connected.FullyConnected
        networks.resnet.DirectResNet networks.resnet.ResNet networks.two_layer.TwoLayer taylor.expansion.Expansion
        taylor.two_layer.OnInputs taylor.two_layer.TwoLayerExpansion
    """,
    "parameters of a network, or an optimiser's state: whoever takes them looks at them": """
        networks.resnet.DirectHidden networks.resnet.Hidden networks.standard.Layer
        training.directions.PerturbationState training.directions.RegulariserState training.perturbed.Algorithm1State
        training.randomised.FreshSignsState
    """,
    "a protocol": "labels.tasks.Labels regime.course.Kept taylor.expansion.TaylorModel",
}

NO_NETWORK = "data.fetch.download"  # of its calls only the bad ones can be made here

# so many there were when this was written, and fewer there may not be
WALKED = 245
CALLED = 89  # read_training went to `lab`, whose own tests give it wrongly
VALUES = 1890
UPPER = 502  # of `theory`, `kernels` and `special`, which tests/test_odd_input.py looks after
TRIED = 156


def listed(table):
    return [name for names in table.values() for name in names.split()]


@pytest.fixture(scope="module")
def seen():
    """What tests/doors.py, in a process of its own, found and was told."""
    script = Path(__file__).with_name("doors.py")
    done = subprocess.run([sys.executable, script, *ROOMS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_public_function_is_called_or_listed_with_a_reason(seen):
    assert sorted([*seen["given"], *listed(BEHIND_THE_DOOR), *listed(MADE_INSIDE)]) == sorted(seen["walked"])


def test_every_parameter_has_a_kind(seen):
    assert {name: sorted(words) for name, words in seen["given"].items()} == seen["parameters"]


def test_the_valid_calls_pass(seen):
    fails = {name: told for name, *told in seen["valid"] if told[0] != "a result" and name != NO_NETWORK}
    assert not fails


def test_each_bad_value_is_refused_by_a_message_that_names_it(seen):
    taken, unnamed = {}, []
    for name, parameter, bad, says, kind, message in seen["bad"]:
        if kind != "InputError":
            taken[f"{name}({parameter}: {bad})"] = f"{kind}: {message}"
        elif not re.search(rf"\b({says or parameter})\b", message):
            unnamed.append(f"{name}({parameter}: {bad}) does not say {says or parameter}: {message}")
    assert not taken
    assert not unnamed


def test_the_walk_grows_no_shorter(seen):
    assert len(seen["walked"]) >= WALKED
    assert len(seen["given"]) >= CALLED
    assert len(seen["bad"]) >= VALUES
    assert len(seen["upper"]) >= UPPER
    assert len(seen["tried"]) >= TRIED
