"""Arora et al., Figure 1, in its smoke profile: run once by the command line, looked at from all sides."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from offtangent import data
from offtangent.cli import app
from offtangent.lab import Results
from offtangent.lab.experiment import Experiment
from offtangent.lab.records import committed_records, read_record
from offtangent.papers.arora import _inside, fig1, fig1_widths
from offtangent.theory import predict_residual

FIG1 = Experiment("arora/fig1", "offtangent.papers.arora.fig1")


@dataclass(frozen=True)
class Smoke:
    folder: Path
    told: dict[str, Any]

    @property
    def results(self) -> Results:
        return read_record(self.folder / "results" / "arora-fig1-smoke.json", {"arora/fig1": FIG1}).results


def run(folder: Path) -> dict[str, Any]:
    """The command, in this process."""
    words = ["run", "arora/fig1", "--profile", "smoke", "--on", "local", "--out", str(folder), "--json"]
    with patch.dict(os.environ):  # it sets where JAX keeps compiled programs
        done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    folder = tmp_path_factory.mktemp("smoke")
    return Smoke(folder, run(folder))


def test_no_claim_fails(smoke: Smoke) -> None:
    assert [claim["statement"] for claim in smoke.told["claims"] if claim["verdict"] == "fails"] == []


def test_at_least_half_of_the_claims_are_tested(smoke: Smoke) -> None:
    verdicts = [claim["verdict"] for claim in smoke.told["claims"]]
    assert 2 * (verdicts.count("not testable at this size") + verdicts.count("not run here")) <= len(verdicts)


def test_theorem_31_holds_inside_its_hypothesis_at_a_tenth_and_lemma_c3_has_none(smoke: Smoke) -> None:
    verdicts = {claim["source"]: claim["verdict"] for claim in smoke.told["claims"]}
    assert verdicts["Theorem 3.1, n = 1, κ = 1"] == "holds with constants 1"
    assert verdicts["Lemma C.3"] == verdicts["Lemma C.3, its proof"] == "holds"
    assert verdicts["Theorem 4.1, eq. (8)"] == "not run here"


def inside(cell: fig1.Inside, **wrong: float) -> dict[str, Any]:
    """The claims on a cell as it would come out, but for what is wrong."""
    width, scale, rate = fig1._prescribed(cell)
    named = {"width": width, "scale": scale, "rate": rate, "allowed_ratio": 0.9} | wrong
    ones = np.ones(cell.seeds)
    found = xr.Dataset({"worst_ratio": ("seed", 0.8 * ones), "deviation": ("seed", 0.1 * ones), **named})
    return {claim.source: claim for claim in _inside.claims(Results("paper", ((cell, found),)))}


@pytest.mark.parametrize(("cell", "width"), [(fig1.ONE, 16_000), (fig1.TWO, 1_024_000), (fig1.FOLLOWS, 16_000_000)])
def test_inside_has_the_width_that_its_theorem_asks_for_at_a_tenth(cell: fig1.Inside, width: int) -> None:
    assert fig1._prescribed(cell)[0] == width
    (claim,) = [one for one in inside(cell).values() if one.verdict == "holds with constants 1"][-1:]
    assert claim.source.startswith(f"Theorem {cell.theorem}")
    narrower = inside(cell, width=width - 1)
    assert narrower[claim.source].verdict == "outside the hypothesis"
    assert inside(cell, rate=1.01 * fig1._prescribed(cell)[2])[claim.source].verdict == "outside the hypothesis"


def test_networks_that_do_not_contract_or_are_too_few_are_found_out() -> None:
    source = "Theorem 3.1, n = 2, κ = 1"
    assert inside(fig1.TWO)[source].verdict == "holds with constants 1"
    assert inside(fig1.TWO, allowed_ratio=0.7)[source].verdict == "fails"
    assert inside(replace(fig1.TWO, seeds=35))[source].verdict == "not testable at this size"
    assert inside(replace(fig1.TWO, seeds=36))[source].verdict == "holds with constants 1"


def test_theorem_41_for_two_inputs_is_outside_with_both_numbers() -> None:
    claims = inside(fig1.Inside(samples=2, delta=0.9, epsilon=0.3, seeds=20, steps=40))
    wide = claims["Theorem 4.1, eq. (8), n = 2, ε = 0.3"]
    assert wide.verdict == "outside the hypothesis"
    assert "width m = 9.515e+05, asked ≥ 5.057e+11" in wide.conditions
    assert "1.6·10⁷" in claims["Theorem 4.1, eq. (8)"].note


def test_networks_trained_in_parts_are_those_trained_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = fig1.Inside(2, delta=0.9, epsilon=0.9, seeds=5, steps=5, theorem="3.1")
    weights = 2 * fig1._prescribed(cell)[0]
    found = {}
    for most in (2, 4):
        monkeypatch.setattr(fig1, "AT_ONCE", most * weights)
        found[most] = fig1.run(cell)
    xr.testing.assert_allclose(found[2], found[4], rtol=1e-4)
    monkeypatch.undo()
    assert sorted(found[2].sizes.items()) == sorted(fig1.run(cell).sizes.items())
    assert float(fig1.run(cell).worst_ratio.max()) == pytest.approx(float(found[2].worst_ratio.max()), rel=0.05)


def test_the_variance_of_the_tangent_kernel_is_that_of_many_networks() -> None:
    """The truth is 4 000 kernels H(0) of width 3, drawn in NumPy."""
    X, rng = data.sphere(5, 3, key=jax.random.key(3)), np.random.default_rng(0)
    on = np.einsum("nd,sdm->snm", X, rng.standard_normal((4000, 3, 3))) >= 0
    H = X @ X.T * np.einsum("snm,skm->snk", on, on.astype(float)) / 3
    cosine = np.clip(X @ X.T, -1, 1)
    squares = ((H - cosine * (np.pi - np.arccos(cosine)) / (2 * np.pi)) ** 2).sum(axis=(1, 2))
    error = squares.std(ddof=1) / 4000**0.5
    assert abs(3 * squares.mean() - fig1_widths.kernel_variance(X)) < 4 * 3 * error


@pytest.mark.parametrize(("name", "factor"), [("gram", 2.0), ("gram", 0.5), ("start", 2.0)])
def test_a_kernel_or_output_off_by_a_factor_is_found_out(smoke: Smoke, name: str, factor: float) -> None:
    widths = smoke.results.where(fig1.Widths)
    wrong = Results("smoke", tuple((cell, found.assign({name: factor * found[name]})) for cell, found in widths))
    source = {"gram": "Lemma C.3, its proof", "start": "Theorem 4.1, before eq. (29)"}[name]
    for results, verdict in ((widths, "holds"), (wrong, "fails")):
        assert {claim.source: claim.verdict for claim in fig1.claims(results)}[source] == verdict


def test_a_second_run_computes_nothing_and_says_the_same(smoke: Smoke) -> None:
    again = run(smoke.folder)
    assert again["computed"] == 0
    assert again["reused"] == smoke.told["computed"]
    assert again["claims"] == smoke.told["claims"]


def test_the_spectrum_is_that_of_a_dense_eigh(smoke: Smoke) -> None:
    """H∞ written out by hand, eq. (3), in plain NumPy."""
    X, y = data.digits(classes=(0, 1))
    cosine = np.clip(X @ X.T, -1, 1)
    values, vectors = np.linalg.eigh(cosine * (np.pi - np.arccos(cosine)) / (2 * np.pi))
    (_, found), *_ = smoke.results.where(fig1.Training, data="digits")
    assert float(found.largest) == pytest.approx(values[-1], rel=1e-10)
    assert float(found.smallest) == pytest.approx(values[0], rel=1e-5)
    share = ((vectors[:, -10:].T @ y) ** 2).sum() / len(y)
    assert float(found.share.sel(kind="true")[0]) == pytest.approx(share, rel=1e-8)


def test_the_claims_would_fail_on_swapped_labels(smoke: Smoke) -> None:
    """The same results with true and random labels exchanged contradict the paper, and the claims say so."""
    swapped = tuple(
        (cell, found.assign_coords(kind=["random", "true", "worst"]) if isinstance(cell, fig1.Training) else found)
        for cell, found in smoke.results
    )
    verdicts = {claim.statement: claim.verdict for claim in fig1.claims(Results("smoke", swapped))}
    assert verdicts["true labels lie more in the top 10 eigenvectors of H∞ than random labels do"] == "fails"
    assert verdicts["true labels reach 10% of the loss before random labels do"] == "fails"


def test_a_missing_cell_leaves_the_other_claims_standing(smoke: Smoke) -> None:
    pairs = tuple(smoke.results)
    for gone in range(len(pairs)):
        less = Results("smoke", pairs[:gone] + pairs[gone + 1 :], complete=False)
        assert len(fig1.claims(less)) >= 5
        assert len(fig1.draw(less)) >= 2


def test_eq_8_at_half_the_rate_would_be_found_out(smoke: Smoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two inputs ε is small enough to tell a wrong prediction from a right one."""

    def slower(*args: Any, rate: float, **words: Any) -> Any:
        return predict_residual(*args, rate=rate / 2, **words)

    ((cell, right),) = smoke.results.where(fig1.Inside, theorem="4.1")
    monkeypatch.setattr(fig1, "predict_residual", slower)
    one = replace(cell, seeds=1)
    source = f"Theorem 4.1, eq. (8), n = 2, ε = {cell.epsilon:g}"
    share = {claim.source: claim.value for claim in fig1.claims(Results("smoke", ((one, fig1.run(one)),)))}[source]
    assert share == 0
    assert (right.deviation <= cell.epsilon).any()


def test_without_the_data_its_claims_are_not_run_and_say_what_to_do(
    smoke: Smoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OFFTANGENT_DATA", str(tmp_path))
    cells = fig1.cells(fig1.PROFILES["smoke"])
    assert [cell.data for cell in cells if isinstance(cell, fig1.Training)] == ["digits"]
    without = Results("smoke", tuple(pair for pair in smoke.results if getattr(pair[0], "data", "") != "mnist"))
    claims = {claim.source: claim for claim in fig1.claims(without) if claim.verdict == "not run here"}
    for source in ("Figure 1, MNIST 0/1", "Figure 1, CIFAR-10 airplane/automobile"):
        assert "OFFTANGENT_DATA" in claims[source].note
        assert "where the data is" in claims[source].note


def test_the_profile_s_name_decides_nothing(smoke: Smoke) -> None:
    told = {
        name: [(c.source, c.verdict, c.value) for c in fig1.claims(replace(smoke.results, profile=name))]
        for name in ("smoke", "laptop", "paper")
    }
    assert told["smoke"] == told["laptop"] == told["paper"]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_clean_on_a_screen_and_on_a_phone(smoke: Smoke, browse: Callable[..., Any], width: int) -> None:
    page = browse(Path(smoke.told["report"]), width)
    assert page.console == []
    assert page.requests == []
    assert page.scroll_width <= page.width
    assert len(page.figures) >= 4
    assert all(figure["traces"] >= 2 for figure in page.figures.values())
    for claim in smoke.told["claims"]:
        assert claim["verdict"] in page.dom
    assert "Lemma C.3" in page.dom


def test_the_report_can_be_written_again_from_its_results(smoke: Smoke) -> None:
    before = (smoke.folder / "report.html").read_text()
    (smoke.folder / "report.html").unlink()
    done = CliRunner().invoke(app, ["report", str(smoke.folder)])
    assert done.exit_code == 0, done.output
    assert done.stdout.strip().endswith("report.html")
    assert abs(len((smoke.folder / "report.html").read_text()) - len(before)) < 1000  # only the facts differ


def test_dry_run_lists_every_cell_with_time_and_memory(tmp_path: Path) -> None:
    words = ["run", "arora/fig1", "--profile", "paper", "--dry-run", "--json", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    cells = json.loads(done.stdout)
    assert len(cells) == len(fig1.cells(fig1.PROFILES["paper"]))
    assert all(cell["seconds"] > 0 and cell["bytes"] > 0 and not cell["stored"] for cell in cells)


def committed() -> Results:
    paths = [path for path in committed_records() if path.name == "arora-fig1-paper.json"]
    if not paths:
        pytest.skip("no committed results of arora/fig1")
    return read_record(paths[0], {"arora/fig1": FIG1}).results


@pytest.mark.parametrize(
    ("name", "largest", "smallest", "share"),
    [("mnist", 1454.6, 0.01535, 0.958), ("cifar10", 3381, 0.00799, 0.334)],
)
def test_the_committed_results_have_the_known_spectra(name: str, largest: float, smallest: float, share: float) -> None:
    """At n = 10 000 raw images of unit norm, in file order, measured independently before this code existed."""
    (_, found), *_ = committed().where(fig1.Training, data=name, samples=10_000)
    assert float(found.largest) == pytest.approx(largest, rel=3e-4)
    assert float(found.smallest) == pytest.approx(smallest, rel=2e-3)
    assert float(found.share.sel(kind="true")[0]) == pytest.approx(share, abs=6e-4)
    assert float(found.chance.mean()) == pytest.approx(0.001, abs=1e-4)


def test_the_committed_results_say_where_they_come_from() -> None:
    committed()
    (path,) = [path for path in committed_records() if path.name == "arora-fig1-paper.json"]
    origin = json.loads(path.read_text())["provenance"]
    assert origin["backend"] == "gpu"
    assert all(origin[name] for name in ("commit", "device", "date", "jax", "python", "offtangent", "code"))
    assert os.path.getsize(path) < 1_000_000
