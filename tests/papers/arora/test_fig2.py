"""Arora et al., Figure 2, in its smoke profile: every cell run once in this process, looked at from all sides."""

import itertools
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent import data
from offtangent.lab import Results
from offtangent.lab.claims import HELD, Verdict
from offtangent.lab.experiment import Experiment
from offtangent.lab.records import committed_records, read_record
from offtangent.linalg import Spectrum
from offtangent.networks import TwoLayer
from offtangent.papers.arora import fig2

FIG2 = Experiment("arora/fig2", "offtangent.papers.arora.fig2")
RISES = "as the portion of random labels increases, the complexity measure (10) increases"
BOUNDS = "where the measure (10) is below one it bounds the test ℓ1 loss"
TREND = (
    "the measure matches the trend of kernel regression's test error: as the measure, ℓ1 loss and classification error "
    "increase with every step of the portion"
)
TRAINED = "the measure matches the trend of trained networks' test error as the portion increases"


@pytest.fixture(scope="module")
def smoke() -> Results:
    cells = fig2.cells(fig2.PROFILES["smoke"])
    return Results("smoke", tuple((cell, fig2.run(cell)) for cell in cells))


def verdicts(results: Results) -> dict[str, Verdict]:
    """The last claim of every statement."""
    return {claim.statement.partition(", and so")[0]: claim.verdict for claim in fig2.claims(results)}


def changed(results: Results, **functions: Any) -> Results:
    """The same results with some variables altered."""
    pairs = [
        (cell, found.assign({name: change(found[name]) for name, change in functions.items()}))
        for cell, found in results
    ]
    return Results(results.profile, tuple(pairs))


def test_no_claim_fails_and_most_are_tested(smoke: Results) -> None:
    claims = fig2.claims(smoke)
    told = [claim.verdict for claim in claims]
    assert [claim.statement for claim in claims if claim.verdict == Verdict.FAILS] == []
    assert sum(verdict in HELD for verdict in told) >= 4
    assert told.count(Verdict.UNTESTABLE) == 1  # ten networks are few
    assert [claim.statement[:24] for claim in claims if claim.kind == "identity"] == ["the ℓ1 loss is always an"]


def test_measure_and_regression_are_those_of_a_plain_solve(smoke: Results) -> None:
    """H∞ written out by hand, eq. (3), and NumPy's solver."""
    X, y = data.digits(classes=(0, 1), samples=280)
    cosine = np.clip(X @ X.T, -1, 1)
    H = cosine * (np.pi - np.arccos(cosine)) / (2 * np.pi)
    weights = np.linalg.solve(H[:80, :80], y[:80])
    outputs = H[80:, :80] @ weights
    ((_, found),) = smoke.where(fig2.Regression)
    true = found.sel(portion=0.0).isel(draw=0)
    assert float(true.measure) == pytest.approx(np.sqrt(2 * y[:80] @ weights / 80), rel=1e-7)
    assert float(true.l1) == pytest.approx(np.abs(outputs - y[80:]).mean(), rel=1e-7)
    assert float(true.wrong) == float(true.clean) == (np.sign(outputs) != y[80:]).mean()


def test_the_expected_measure_is_the_mean_over_every_choice_of_rows_and_coins() -> None:
    """Brute force: all subsets of rows and all signs, n = 5."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((5, 5))
    spectrum = Spectrum.of(G @ G.T + np.eye(5))
    y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    problem = fig2._Problem(G, y, G, y, spectrum, G)
    inverse = np.linalg.inv(G @ G.T + np.eye(5))
    for k in range(6):
        squares = []
        for rows in itertools.combinations(range(5), k):
            for coins in itertools.product([-1.0, 1.0], repeat=k):
                noisy = y.copy()
                noisy[list(rows)] = coins
                squares.append(2 * noisy @ inverse @ noisy / 5)
        assert fig2._expected(problem, np.array([k / 5]))[0] == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-12)


def test_a_larger_portion_keeps_the_noise_of_a_smaller_one_and_training_and_test_noise_differ() -> None:
    problem = fig2._problem("digits", 80, 200)
    (some, _), (more, more_test) = problem.labels(0.3, draw=1), problem.labels(0.6, draw=1)
    moved = some != problem.y
    assert 0 < moved.sum() < 24
    assert (more[moved] == some[moved]).all()
    everything, _ = problem.labels(1.0, draw=1)
    assert abs((everything != problem.y).mean() - 0.5) < 0.2
    changed_test = more_test != problem.y_test
    assert abs(changed_test.mean() - 0.3) < 0.1
    assert ((more != problem.y) != changed_test[:80]).any()


def test_the_draws_measures_scatter_around_the_exact_mean_square(smoke: Results) -> None:
    ((_, found),) = smoke.where(fig2.Regression)
    squares = found.measure.transpose("draw", "portion").values[:, 1:] ** 2
    error = squares.std(axis=0, ddof=1) / len(squares) ** 0.5
    assert (np.abs(squares.mean(axis=0) - found.expected.values[1:] ** 2) < 4 * error).all()


def test_claims_would_fail_on_reversed_portions(smoke: Results) -> None:
    ((cell, found),) = smoke.where(fig2.Regression)
    measure = found.measure.copy(data=found.measure.values[::-1])
    told = verdicts(Results("smoke", ((cell, found.assign(measure=measure)),)))
    assert told[RISES] == Verdict.FAILS
    for kind in ("l1", "wrong"):
        backwards = found[kind].copy(data=found[kind].values[::-1])
        assert verdicts(Results("smoke", ((cell, found.assign({kind: backwards})),)))[TREND] == Verdict.FAILS
    networks = changed(smoke.where(fig2.Network), measure=lambda measure: 10 - measure)
    assert verdicts(networks)[TRAINED] == Verdict.FAILS


def test_the_bound_would_fail_for_a_measure_ten_times_smaller(smoke: Results) -> None:
    small = changed(smoke.where(fig2.Regression), measure=lambda measure: measure / 10)
    assert verdicts(small)[BOUNDS] == Verdict.FAILS


def test_a_network_s_bound_is_outside_the_hypothesis(smoke: Results) -> None:
    (claim,) = [c for c in fig2.claims(smoke.where(fig2.Network)) if c.statement.startswith(BOUNDS)]
    assert claim.verdict == Verdict.OUTSIDE
    assert "Outside: width m = 500, asked ≥" in claim.conditions


def test_one_step_at_which_the_error_does_not_rise_breaks_the_trend(smoke: Results) -> None:
    """The rank correlation stays above what chance gives; the claim is stricter."""
    ((cell, found),) = smoke.where(fig2.Regression)
    values = found.wrong.values.copy()
    values[2] = values[1]
    assert verdicts(smoke)[TREND] == Verdict.HOLDS
    assert verdicts(Results("smoke", ((cell, found.assign(wrong=(found.wrong.dims, values))),)))[TREND] == Verdict.FAILS


def test_networks_whose_order_is_half_noise_do_not_match_the_trend() -> None:
    """An interval above zero is not enough: it has to lie above what chance gives in as many portions."""
    seen = committed().where(fig2.Network, data="mnist", samples=2000, momentum=0.95)
    networks = Results("paper", tuple((replace(cell, seed=1000 + cell.seed), found) for cell, found in seen))
    spread = float(np.std([float(found.l1) for _, found in networks]))
    rng = np.random.default_rng(1)
    noisy = changed(networks, l1=lambda l1: l1 + spread * rng.standard_normal())
    assert verdicts(seen)[TRAINED] == Verdict.NOT_RUN
    assert verdicts(networks)[TRAINED] == Verdict.HOLDS
    assert verdicts(noisy)[TRAINED] == Verdict.UNTESTABLE
    assert verdicts(changed(networks, l1=lambda l1: -l1))[TRAINED] == Verdict.FAILS


def test_the_profile_s_name_decides_nothing(smoke: Results) -> None:
    told = [
        [(claim.source, claim.verdict, claim.value) for claim in fig2.claims(replace(smoke, profile=name))]
        for name in ("smoke", "laptop", "paper")
    ]
    assert told[0] == told[1] == told[2]


def test_an_l1_loss_below_a_wrong_sign_would_be_found_out(smoke: Results) -> None:
    wrong = changed(smoke, excess=lambda excess: excess + 1)
    assert fig2.claims(wrong)[-1].verdict == Verdict.FAILS


def test_a_missing_cell_leaves_the_other_claims_standing(smoke: Results) -> None:
    pairs = tuple(smoke)
    for gone in range(len(pairs)):
        less = Results("smoke", pairs[:gone] + pairs[gone + 1 :], complete=False)
        assert len(fig2.claims(less)) >= 3
        assert len(fig2.draw(less)) >= 2


def test_every_network_ends_at_its_level(smoke: Results) -> None:
    for cell, found in smoke.where(fig2.Network):
        assert float(found.loss) <= cell.level
        assert float(found.path_loss[0]) == 1.0
        assert float(found.steps_to_level) <= float(found.steps) <= cell.cap
        assert float(found.path_l1[-1]) == float(found.l1)


def test_stretches_of_plain_descent_are_one_run() -> None:
    """The truth is gradient descent by hand, in float64; 600 steps are more than two stretches."""
    cell = fig2.Network("digits", 20, 30, 50, portion=1.0, seed=0, cap=600, level=1e-9, momentum=0.0)
    problem = fig2._problem("digits", 20, 30)
    targets, _ = problem.labels(1.0, 0)
    net = TwoLayer.gaussian(dim=64, width=50, scale=1e-2, key=jax.random.key(0))
    path = fig2._descend(cell, problem, net, targets)
    W, a, X = np.asarray(net.W0, np.float64), np.asarray(net.a, np.float64) / 50**0.5, problem.X
    losses = []
    for _ in range(601):
        hidden = X @ W
        left = np.maximum(hidden, 0) @ a - targets
        losses.append(left @ left / 2)
        last, W = W, W - problem.rate * X.T @ (left[:, None] * (hidden >= 0) * a)
    np.testing.assert_allclose(path.losses, np.array(losses) / losses[0], rtol=1e-3)
    np.testing.assert_allclose(path.outputs[-1], np.maximum(problem.X_test @ last, 0) @ a, atol=1e-3)
    assert path.steps[-1] == 600


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_predicted_steps_are_those_of_the_recursion_on_the_kernel(momentum: float) -> None:
    """The truth is optax on ½(u − y)ᵀ... in function space: u moves by −η H∞ (u − y)."""
    problem = fig2._problem("digits", 20, 30)
    targets, _ = problem.labels(0.5, 0)
    cell = fig2.Network("digits", 20, 30, 50, 0.5, 0, cap=1, level=0.05, momentum=momentum)
    V = problem.spectrum.vectors
    H = (V * problem.spectrum.values) @ V.T
    optimiser = optax.sgd(problem.rate, momentum=momentum or None, nesterov=momentum > 0)
    left, steps = jnp.asarray(targets, jnp.float32), 0
    state = optimiser.init(left)
    while float(left @ left) > 0.05 * len(targets):
        updates, state = optimiser.update(jnp.asarray(H @ np.asarray(left, np.float64), jnp.float32), state)
        left, steps = optax.apply_updates(left, updates), steps + 1
    assert abs(fig2._predicted_steps(cell, problem, targets) - steps) <= 1
    assert steps > 10


def test_without_the_data_its_claims_are_not_run_and_say_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, smoke: Results
) -> None:
    monkeypatch.setenv("OFFTANGENT_DATA", str(tmp_path))
    assert {cell.data for cell in fig2.cells(fig2.PROFILES["laptop"])} == {"digits"}
    claims = fig2.claims(Results("laptop", tuple(smoke)))
    missing = [claim for claim in claims if claim.verdict == Verdict.NOT_RUN]
    assert len(missing) == 2
    assert all("OFFTANGENT_DATA" in claim.note for claim in missing)


def test_five_networks_are_too_few_for_an_order(smoke: Results) -> None:
    five = smoke.where(fig2.Network, seed=1000)
    assert verdicts(five)[TRAINED] == Verdict.NOT_RUN


def test_cells_of_one_kernel_matrix_stand_together_and_every_cell_has_its_cost() -> None:
    config = fig2.PROFILES["paper"]
    cells = sorted_cells = [*config.regressions, *config.networks]
    if not fig2.absent(config):
        sorted_cells = fig2.cells(config)
        problems = [key for key, _ in itertools.groupby(sorted_cells, key=lambda c: (c.data, c.samples))]
        assert len(problems) == len(set(problems))
        assert set(sorted_cells) == set(cells)
    assert all(fig2.cost(cell).flops > 0 and fig2.cost(cell).bytes > 0 for cell in sorted_cells)
    longer = replace(config.networks[0], cap=2 * config.networks[0].cap)
    assert fig2.cost(longer).flops > 1.9 * fig2.cost(config.networks[0]).flops


def committed() -> Results:
    paths = [path for path in committed_records() if path.name == "arora-fig2-paper.json"]
    if not paths:
        pytest.skip("no committed results of arora/fig2")
    return read_record(paths[0], {"arora/fig2": FIG2}).results


@pytest.mark.parametrize(
    ("name", "measure", "l1", "wrong"),
    [
        ("mnist", (0.38, 4.32, 5.70, 6.45, 6.65), (0.021, 0.464, 0.770, 0.936, 1.001), (0, 0.122, 0.298, 0.429, 0.511)),
        ("cifar10", (3.86, 5.55, 6.49, 7.09, 7.26), (0.399, 0.632, 0.834, 0.954, 1.008), None),
    ],
)
def test_the_committed_results_have_the_known_sizes(
    name: str, measure: tuple[float, ...], l1: tuple[float, ...], wrong: tuple[float, ...] | None
) -> None:
    """One draw at portions 0, 0.25, ..., 1, n = 10 000, measured independently before this code existed."""
    ((_, found),) = committed().where(fig2.Regression, data=name, samples=10_000)
    at = found.sel(portion=list(fig2.FIVE)).transpose("portion", "draw")
    np.testing.assert_allclose(at.measure.mean("draw"), measure, rtol=0.03)
    np.testing.assert_allclose(at.measure[0, 0], measure[0], atol=0.006)
    np.testing.assert_allclose(at.l1.mean("draw"), l1, atol=0.03)
    np.testing.assert_allclose(at.l1[0, 0], l1[0], atol=6e-4)
    if wrong is not None:
        np.testing.assert_allclose(at.wrong.mean("draw"), wrong, atol=0.03)


def test_the_committed_results_say_where_they_come_from() -> None:
    committed()
    (path,) = [path for path in committed_records() if path.name == "arora-fig2-paper.json"]
    origin = json.loads(path.read_text())["provenance"]
    assert origin["backend"] == "gpu"
    assert all(origin[name] for name in ("commit", "device", "date", "jax", "python", "offtangent", "source"))
    assert os.path.getsize(path) < 1_000_000
