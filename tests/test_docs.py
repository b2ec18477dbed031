"""What the documentation shows is run as it stands."""

import json
import re
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from offtangent.cli import app
from offtangent.lab import Claim

ROOT = Path(__file__).parent.parent


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_s_example_runs() -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["spectrum"].share(names["y"], top=10) == pytest.approx(0.97, abs=0.005)  # type: ignore[attr-defined]


def test_the_readme_s_first_screen_has_exactly_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text().partition("![")[0]
    commands = re.findall(r"^```sh\n(.*?)^```", first_screen, re.MULTILINE | re.DOTALL)
    assert [command.count("\n") for command in commands] == [1, 1]
    assert commands[0].endswith("offtangent run\n")
    assert commands[1].endswith("pytest\n")


def test_the_experiments_in_the_docs_run_by_command_and_by_script_and_their_claims_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flips, coins, script, _ = blocks(ROOT / "docs" / "experiments.md", "python")
    monkeypatch.chdir(tmp_path)
    Path("my_experiment.py").write_text(flips)
    Path("coins.py").write_text(coins)
    words = ["run", "my_experiment.py", "coins.py", "--profile", "smoke", "--on", "local"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert len(re.findall(r"^holds", result.output, re.MULTILINE)) == 2
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(script.replace('"coins-run")', '"coins-run", on="local")'), "experiments.md", "exec"), names)
    assert [claim.verdict for _, claim in names["run"].claims] == ["holds"]
    assert "coins holds" in capsys.readouterr().out


def test_the_experiment_of_two_slices_in_the_docs_is_put_together(tmp_path: Path) -> None:
    _, coins, *_ = blocks(ROOT / "docs" / "experiments.md", "python")
    (whole,) = blocks(ROOT / "docs" / "experiments.md", "py")
    Path(tmp_path / "coins.py").write_text(coins)
    Path(tmp_path / "dice.py").write_text(coins.replace("Coins", "Dice"))
    Path(tmp_path / "whole.py").write_text(whole)
    words = ["run", str(tmp_path / "whole.py"), "--profile", "smoke", "--on", "local", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert len(re.findall(r"^holds", result.output, re.MULTILINE)) == 2


def test_the_claim_with_a_hypothesis_in_the_docs_lies_outside_and_says_why() -> None:
    *_, claim = blocks(ROOT / "docs" / "experiments.md", "python")
    names: dict[str, Any] = {"Claim": Claim}
    exec(compile(claim, "experiments.md", "exec"), names)
    assert names["claim"].verdict == "outside the hypothesis"
    assert names["claim"].conditions == "Outside: width m = 1e+04, asked ≥ 5e+11 (Theorem 4.1)."


def test_the_guide_to_regimes_runs_by_command_and_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, python = blocks(ROOT / "docs" / "regime.md", "python")
    monkeypatch.chdir(tmp_path)
    Path("my_model.py").write_text(file)
    result = CliRunner().invoke(app, ["regime", "my_model.py", "--samples", "50"])
    assert result.exit_code == 0, result.output
    assert "Is it lazy?" in result.output
    names: dict[str, Any] = {}
    exec(compile(file, "regime.md", "exec"), names)
    exec(compile(python, "regime.md", "exec"), names)
    assert names["course"].names == ("10", "100", "300")
    assert "The regime of my network" in Path("regime.html").read_text()


def test_the_guide_to_one_s_own_data_runs_and_its_network_follows_eq_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    rows = [",".join(f"{v:.6f}" for v in x) + (",cat" if x[0] > 0 else ",dog") for x in X]
    (tmp_path / "mine.csv").write_text("a,b,c,d,e,f,animal\n" + "\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(ROOT / "docs" / "your-data.md", "python")
    names: dict[str, Any] = {}
    exec(compile(code, "your-data.md", "exec"), names)
    assert np.abs(names["predicted"] - names["measured"]).max() < 0.1 * np.sqrt(40)


def test_the_guide_to_kernels_runs_and_its_bracket_is_certified() -> None:
    (code,) = blocks(ROOT / "docs" / "kernels.md", "python")
    names: dict[str, Any] = {}
    exec(compile(code, "kernels.md", "exec"), names)
    assert names["q"].certified
    assert names["q"].lower <= names["y"] @ names["x"].value <= names["q"].upper


def test_every_link_in_the_docs_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_guide_to_any_network_runs_and_its_orders_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks(ROOT / "docs" / "taylor.md", "python")), "taylor.md", "exec"), names)
    whole = names["f"](names["end"], names["X"])
    np.testing.assert_allclose(names["model"](names["end"], names["X"]), whole, atol=1e-4)
    assert "Orders of the Taylor series" in (tmp_path / "regime.html").read_text()
    # A kernel 3 × 3 × 1 × 4 and its bias, a scale and a shift for each channel, a matrix 256 × 2 and its bias; the
    # running statistics, twice four numbers, are not trained.
    for params in (names["params"], names["trained"]):
        assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 36 + 4 + 2 * 4 + 256 * 2 + 2
    for left in (names["variables"], names["rest"]):
        floating = [leaf for leaf in jax.tree.leaves(left) if eqx.is_inexact_array(leaf)]
        assert sum(leaf.size for leaf in floating) == 2 * 4


def test_the_guide_to_tangent_kernels_runs_and_its_regression_is_that_of_the_matrix() -> None:
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks(ROOT / "docs" / "tangent.md", "python")), "tangent.md", "exec"), names)
    matrix = names["K"].dense().swapaxes(1, 2).reshape(60, 60).astype(float)
    missed = (names["Y"] - names["f"](names["params"], names["X"])).ravel()
    expected = matrix @ np.linalg.solve(matrix + 0.1 * np.eye(60), missed) - missed
    found = names["model"].predict(names["X"]) - names["Y"]
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-3)
    seen = names["seen"]
    assert abs(seen.trace.value - np.trace(matrix)) < 5 * seen.trace.error


def test_the_guide_to_good_directions_runs_and_splits_the_weights() -> None:
    names: dict[str, Any] = {}
    exec(compile("\n".join(blocks(ROOT / "docs" / "directions.md", "python")), "directions.md", "exec"), names)
    parts = names["exact"].split(names["W"], *names["blocks"].ends)
    np.testing.assert_allclose(sum(parts), names["W"], atol=1e-6)
    assert names["moved"].names == ("Q1", "Q2", "Q3", "V2")


def test_the_guide_to_memorisation_runs_and_every_way_arrives() -> None:
    names: dict[str, Any] = {}
    for code in blocks(ROOT / "docs" / "memorisation.md", "python"):
        exec(compile(code, "memorisation.md", "exec"), names)
    risk = names["risk"]
    assert float(names["losses"][-1]) < 1e-6 * float(names["losses"][0])
    assert bool(names["found"].returned)
    assert float(names["found"].loss) < 1e-5
    end = names["end"]
    lowest = float(risk.lowest_curvature(names["found"].params))
    assert end.lowest <= lowest <= end.curvature
    assert float(names["found"].loss) <= names["bound"]
    assert float(names["three"].loss(jax.numpy.asarray(names["weights"], jax.numpy.float32))) < 1e-8
    assert float(risk.loss(jax.numpy.asarray(names["W"], jax.numpy.float32))) < 1e-8
    assert names["ot"].theory.ge_wang_zhao.memorisation(60_000, 784).fits


def test_the_guide_to_hierarchy_runs_and_its_kernel_errs_by_more_than_the_certificate() -> None:
    names: dict[str, Any] = {}
    for code in blocks(ROOT / "docs" / "hierarchy.md", "python"):
        exec(compile(code, "hierarchy.md", "exec"), names)
    assert (names["risk"].outputs >= names["held"].floor(names["alpha"])).all()
    assert (names["held"].floor(names["alpha"]) > names["alpha"] ** 2 / 4).all()
    resnet, few = names["resnet"], names["few"]
    J = [np.asarray(leaf).reshape(*leaf.shape[:2], -1) for leaf in jax.jacrev(resnet)(resnet.origin, few)]
    by_jacobians = sum(np.einsum("nkp,mlp->nmkl", leaf, leaf) for leaf in J)
    np.testing.assert_allclose(names["ntk"].dense(), by_jacobians, rtol=1e-3, atol=1e-3 * by_jacobians.max())
    assert len(names["swept"].rates) > 2
    assert names["swept"].inside


def test_the_list_of_misprints_has_all_that_the_shipped_records_refute_and_no_others() -> None:
    claims = json.loads((ROOT / "tests" / "golden" / "claims.json").read_text())
    refuted = {
        (claim["experiment"], claim["source"].removesuffix(", as printed"))
        for claim in claims
        if claim["verdict"] == "refuted as printed"
    }
    listed = re.findall(r"^- \*\*`(.*?)`, (.*?)\.\*\*", (ROOT / "docs" / "misprints.md").read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == refuted
