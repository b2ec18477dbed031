"""What an experiment and a cell may be, and what a cell's key depends on."""

import dataclasses
from dataclasses import dataclass

import pytest

import offtangent
from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab import machinery
from offtangent.lab.experiment import fields_of, rebuild
from offtangent.lab.fingerprints import Fingerprint


@dataclass(frozen=True)
class Cell:
    value: object


@dataclass(eq=False)
class Soft:
    value: int


@pytest.mark.parametrize("value", [1, 1.5, True, None, "text", (1, ("a", None))])
def test_plain_fields_make_a_cell(value):
    assert fields_of(Cell(value)) == {"value": value}


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, object(), float("nan"), float("inf"), (1, [2])])
def test_other_fields_are_refused(value):
    with pytest.raises(InputError, match="field value="):
        fields_of(Cell(value))


@pytest.mark.parametrize("cell", [Soft(1), Cell, 3, (1, 2)])
def test_only_instances_of_frozen_dataclasses_are_cells(cell):
    with pytest.raises(InputError, match="no cell"):
        fields_of(cell)


def test_the_key_depends_on_every_field_and_on_its_type(sweep):
    experiment, kind = sweep.experiment, sweep.experiment.module.Cell
    cells = [kind(1, 2, 3.0), kind(2, 2, 3.0), kind(1, 3, 3.0), kind(1, 2, 4.0), kind(True, 2, 3.0), kind("1", 2, 3.0)]
    keys = [experiment.key(cell, "1") for cell in cells]
    assert len(set(keys)) == len(keys)
    assert keys == [experiment.key(dataclasses.replace(cell), "1") for cell in cells]


def test_the_key_depends_on_the_versions_the_backend_and_the_data(write_sweep, monkeypatch):
    sweep = write_sweep(body="import jax")
    sweep.path.write_text(sweep.path.read_text() + '\ndef datasets(cell):\n    return ("digits",)\n')
    import jax

    cell = sweep.experiment.cells("smoke")[0]
    keys = [sweep.experiment.key(cell, "1")]
    for target, name, value in (
        (machinery, "_release", lambda name: "99"),  # noqa: ARG005
        (jax, "default_backend", lambda: "tpu"),
        (offtangent.data.fetch, "checksum", lambda name: f"other {name}"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(target, name, value)
            keys.append(sweep.experiment.key(cell, "1"))
    with jax.enable_x64(True):
        keys.append(sweep.experiment.key(cell, "1"))
    assert len(set(keys)) == 5
    assert sweep.experiment.key(cell, "1") == keys[0]


def test_an_experiment_without_jax_does_not_depend_on_it(sweep, monkeypatch):
    import jax

    cell = sweep.experiment.cells("smoke")[0]
    key = sweep.experiment.key(cell, "1")
    monkeypatch.setattr(jax, "__version__", "99")
    assert sweep.experiment.key(cell, "1") == key


@pytest.mark.parametrize("part", ["PROFILES", "cells", "run", "claims", "draw"])
def test_a_file_that_lacks_a_part_is_refused_by_its_name(part, sweep):
    sweep.path.write_text(sweep.path.read_text() + f"\ndel {part}\n")
    with pytest.raises(InputError, match=f"lacks {part}"):
        lab.experiment.load_experiment(sweep.path)


def test_a_file_that_cannot_be_imported_is_refused_with_the_reason(sweep):
    sweep.path.write_text("import nothing_of_that_name")
    with pytest.raises(InputError, match="nothing_of_that_name"):
        lab.experiment.load_experiment(sweep.path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="There is no file"):
        lab.experiment.load_experiment(tmp_path / "none.py")


def test_an_unknown_profile_is_refused_with_those_there_are(sweep):
    with pytest.raises(InputError, match="it has smoke"):
        sweep.experiment.cells("huge")


def test_a_cell_is_rebuilt_from_its_fields(sweep):
    for cell in sweep.experiment.cells("smoke"):
        assert rebuild(sweep.experiment, "Cell", fields_of(cell)) == cell


@pytest.mark.parametrize("kind", ["os", "run", "np", "dataclass", "__builtins__", "nothing"])
def test_nothing_but_a_dataclass_is_rebuilt(kind, sweep):
    with pytest.raises(InputError, match="no cells of a class"):
        rebuild(sweep.experiment, kind, {})


@pytest.mark.parametrize(
    ("flags", "plugins", "expected"),
    [
        (None, True, {"XLA_FLAGS": "--xla_gpu_deterministic_ops=true"}),
        ("--xla_a=1", True, {"XLA_FLAGS": "--xla_a=1 --xla_gpu_deterministic_ops=true"}),
        ("--xla_gpu_deterministic_ops=false", True, {}),
        (None, False, {}),
    ],
)
def test_a_gpu_adds_in_the_same_order_in_every_run_unless_the_user_says_otherwise(
    flags, plugins, expected, monkeypatch
):
    monkeypatch.setattr(machinery.importlib.util, "find_spec", lambda name: name if plugins else None)
    if flags is None:
        monkeypatch.delenv("XLA_FLAGS", raising=False)
    else:
        monkeypatch.setenv("XLA_FLAGS", flags)
    assert machinery.deterministic() == expected


@pytest.mark.parametrize(("flags", "told"), [("--xla_gpu_deterministic_ops=true", "yes"), ("", "no")])
def test_the_order_of_sums_on_a_gpu_is_part_of_the_key(flags, told, monkeypatch):
    import jax

    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    code = Fingerprint("0123", frozenset({"jax"}))
    assert machinery.machinery_of(code)["deterministic"] == told
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert "deterministic" not in machinery.machinery_of(code)
