"""Theorem 2 of Allen-Zhu & Li at the smallest size; wrong numbers are found out."""

from functools import partial

import numpy as np
import pytest

import faults
from offtangent.kernels import CubeKernel, correlation_kernel, correlation_regression
from offtangent.lab import Results
from offtangent.papers.allen_zhu_li import _regressions, theorem2
from offtangent.papers.allen_zhu_li._targets import Product


@pytest.fixture(scope="module")
def smoke():
    cells = theorem2.cells(theorem2.PROFILES["smoke"])
    return Results("smoke", tuple((cell, theorem2.run(cell)) for cell in cells))


changed = partial(faults.changed, theorem2)


def test_no_claim_fails_and_every_point_says_whether_it_is_inside(smoke):
    claims = theorem2.claims(smoke)
    assert {claim.verdict for claim in claims} == {"holds", "outside the hypothesis", "refuted as printed"}
    points = [claim for claim in claims if claim.source == "Theorem 2" and "d = 100000" not in claim.statement]
    assert len(points) == 2 * 3
    inside = [claim.statement.split(":")[0] for claim in points if claim.verdict == "holds"]
    assert inside == ["d = 12, N = 3", "d = 24, N = 5"]  # (√d/log d)⁴ = 3.8 and 5.6
    assert [claim.verdict for claim in claims].count("refuted as printed") == 1
    assert len(theorem2.draw(smoke)) == 2 + 3
    assert all(theorem2.cost(cell).flops > 0 and theorem2.cost(cell).bytes > 0 for cell, _ in smoke)


def test_statements_can_be_read_in_a_terminal(smoke):
    assert not [
        claim.statement for claim in theorem2.claims(smoke) if "$" in claim.statement or "\\" in claim.statement
    ]


def test_a_norm_known_at_one_n_alone_is_drawn(smoke):
    (figure,) = [one for one in theorem2.draw(smoke) if one.title.startswith("‖u′‖ available")]
    drawn = [trace for trace in figure.plot.data if trace.name.startswith("d = ") and trace.meta != "band"]
    assert len(drawn) == 2
    assert all("markers" in trace.mode for trace in drawn)


def test_the_choice_of_lambda_is_never_at_the_end_of_the_grid(smoke):
    for cell, found in smoke:
        if isinstance(cell, theorem2.Regression):
            assert (found["inside"].values == 1).all()


def test_a_run_that_is_not_complete_has_claims_and_figures(smoke):
    for kept in (theorem2.Regression, theorem2.Memorised, theorem2.Enumerated, theorem2.Inside):
        part = Results("smoke", tuple(pair for pair in smoke if type(pair[0]) is kept), complete=False)
        assert theorem2.claims(part)
        assert len(theorem2.draw(part)) == {theorem2.Regression: 2, theorem2.Memorised: 3}.get(kept, 0)


def scaled(name, factor):
    return {name: lambda _, data: data[name] * factor}


@pytest.mark.parametrize(
    ("kind", "fault", "source"),
    [
        (theorem2.Enumerated, {"norm": lambda _, data: data["norm"] + 1e-6}, "Proposition E.1"),
        (theorem2.Enumerated, {"function": lambda _, data: data["function"] + 1e-6}, "Proposition E.1"),
        (theorem2.Enumerated, scaled("size", 1e-3), "Lemma E.2"),
        (theorem2.Enumerated, {"polarised": lambda *_: 0.1}, "Corollary 7.1, Section E.4"),
        (theorem2.Memorised, {"misfit": lambda _, data: data["misfit"] + 0.1}, "Lemma E.3"),
        (theorem2.Memorised, scaled("quadratic", 1e5), "Lemma E.3"),
        (theorem2.Inside, scaled("smallest", 0.4), "Lemma E.3"),
        (theorem2.Regression, {"slack": lambda _, data: data["slack"] - 1.0}, "Lemma E.2"),
        (theorem2.Regression, scaled("largest", 100.0), "Theorem 2, its proof"),
        (theorem2.Regression, scaled("best", 1e-3), "Theorem 2, its proof"),
        (theorem2.Regression, scaled("error", 1e-3), "Theorem 2"),
        (theorem2.Inside, scaled("error", 1e-3), "Theorem 2"),
    ],
)
def test_wrong_numbers_would_be_found_out(smoke, kind, fault, source):
    assert changed(smoke, kind, **fault) == {source}


def test_outside_the_hypothesis_small_errors_are_shown_and_not_judged(smoke):
    def at_large_n(_, data):
        return data["error"].where(data["n"] < 50, 1e-6)

    assert changed(smoke, theorem2.Regression, error=at_large_n) == set()


def test_the_target_is_the_printed_one_and_seeds_and_draws_differ():
    problem = Product(9, 4, 0.3, 1)
    X, Y = problem.sample(50, "train")
    S = list(problem.coordinates)
    assert sorted(np.unique(X)) == [-1, 1]
    np.testing.assert_allclose(Y, X[:, S] + 0.3 * X[:, S].prod(axis=1, keepdims=True))
    np.testing.assert_array_equal(problem.sample(20, "train")[0], X[:20])
    assert not np.array_equal(problem.sample(50, "choose")[0], X)
    assert len({Product(9, 4, 0.3, seed).coordinates for seed in range(6)}) > 1
    base, composite = problem.function.parts(X)
    np.testing.assert_allclose(base + composite, Y)


def test_a_path_is_the_solution_of_3_1_at_every_ridge_on_the_host_and_on_a_device(monkeypatch):
    problem, table = Product(8, 4, 0.3, 0), CubeKernel.of(correlation_kernel("gaussian"), 8)
    (X, Y), (C, labels) = problem.sample(40, "train"), problem.sample(100, "choose")
    for limit in (_regressions.HOST, 10):
        monkeypatch.setattr(_regressions, "HOST", limit)
        path = _regressions.path(table.exact(X), Y, table.exact(C, X), labels)
        assert (np.diff(path.ridges) > 0).all()
        for at in (0, path.chosen, -1):
            fit = correlation_regression("gaussian", X, Y, strength=path.ridges[at] * table.values[0] / 40)
            np.testing.assert_allclose(path.betas[at], fit.beta, rtol=1e-7, atol=1e-9)
            error = ((fit.predict(C / 8**0.5) - labels) ** 2).sum() / (labels**2).sum()
            assert path.chosen_by[at] == pytest.approx(error)


@pytest.mark.parametrize("limit", [_regressions.HOST, 10])
def test_a_ridge_below_the_rounding_of_a_matrix_ends_the_grid(monkeypatch, limit):
    """Exact labels of a smooth kernel: the smaller the ridge the better, until single precision is not positive."""
    monkeypatch.setattr(_regressions, "HOST", limit)
    x = np.sort(np.random.default_rng(0).uniform(-1, 1, 300))
    K = np.exp(-((x[:, None] - x) ** 2)).astype(np.float32)
    wave = np.sin(20 * x[:, None])
    path = _regressions.path(K[::2, ::2], wave[::2], K[1::2, ::2], wave[1::2])
    assert np.isinf(path.chosen_by[0])
    assert np.isfinite(path.chosen_by[path.chosen])
    assert path.ridges[0] > 1e-9
    assert not path.inside


@pytest.mark.parametrize(("steps", "enough"), [(_regressions.STEPS, True), (50, False)])
def test_one_krylov_space_solves_for_every_ridge_and_a_factorisation_what_it_does_not(monkeypatch, steps, enough):
    monkeypatch.setattr(_regressions, "STEPS", steps)
    rng = np.random.default_rng(1)
    features, y = rng.standard_normal((450, 900)) / np.arange(1, 901) ** 0.3, rng.standard_normal((450, 1))
    K, ridges, asked = features @ features.T / 900, np.geomspace(1e-4, 1, 5), []
    exact = _regressions._device_solver(K, y)
    found = _regressions._krylov_solver(K, y, lambda rest: asked.extend(rest) or exact(rest))(ridges)
    for one, ridge in zip(found, ridges, strict=True):
        assert np.linalg.norm(K @ one + ridge * one - y) <= 1.01e-6 * np.linalg.norm(y)
    assert (not asked) == enough
    assert ridges[-1] not in asked


def noisy(noise):
    """The identity as a kernel: with noise the best ridge is its variance over the signal's, which is 1."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((300, 1))
    return _regressions.path(np.eye(300), truth + noise * rng.standard_normal((300, 1)), np.eye(300), truth)


def test_the_grid_widens_until_the_best_ridge_is_inside():
    path = noisy(30.0)
    assert len(path.ridges) > 2 * _regressions.AT_ONCE
    assert 0 < path.chosen < len(path.ridges) - 1
    assert abs(np.log10(path.ridges[path.chosen] / 900)) < 0.5


def test_the_grid_widens_no_further_than_to_the_limit():
    path = noisy(1e-3)
    assert path.inside
    assert path.chosen == 0
    assert _regressions.LEAST < path.ridges[0] < 1e-2


def test_a_choice_at_the_end_that_is_still_getting_better_is_told():
    falling = _regressions.Path(np.ones(3), np.zeros((3, 1, 1)), np.array([3.0, 2.0, 1.0]))
    flat = _regressions.Path(np.ones(3), np.zeros((3, 1, 1)), np.array([3.0, 1.0001, 1.0]))
    ended = _regressions.Path(np.ones(4), np.zeros((4, 1, 1)), np.array([np.inf, 1.0, 2.0, 3.0]))
    assert not ended.inside
    assert not falling.inside
    assert flat.inside
