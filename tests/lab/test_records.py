"""Results as JSON: they come back as they were, and a file from elsewhere runs nothing."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab.records import _from_plain, _to_plain, record_of

ARRAYS = st.sampled_from(["f4", "f8", "f2", "i4", "i8", "?", "U4"]).flatmap(
    lambda dtype: hnp.arrays(
        dtype,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements=st.text("abcé", max_size=4) if dtype == "U4" else None,
    )
)


@given(ARRAYS)
def test_numbers_come_back_through_json(array):
    """NaN and infinity included, and empty arrays with their shape."""
    dataset = xr.Dataset({"x": ([f"d{i}" for i in range(array.ndim)], array)})
    came = _from_plain(json.loads(json.dumps(_to_plain(dataset), allow_nan=False)))
    xr.testing.assert_identical(came, dataset)
    assert came.x.dtype == dataset.x.dtype


@pytest.fixture
def written(sweep, store):
    """A record's path, and the record."""
    record = record_of(sweep.run(store))
    return lab.records.write_record(record, store / "results"), record


def test_a_record_comes_back_with_its_cells_and_provenance(written, sweep):
    path, record = written
    came = lab.records.read_record(path, {"sweep": sweep.experiment})
    assert path.name == "sweep-smoke.json"
    assert (came.name, came.provenance) == (record.name, record.provenance)
    assert came.results.complete
    for (cell, dataset), (old_cell, old_dataset) in zip(came.results, record.results, strict=True):
        assert cell == old_cell
        assert dataset.equals(old_dataset)


def test_a_changed_source_makes_a_record_stale(written, sweep):
    _, record = written
    assert not record.stale(sweep.experiment)
    assert replace(record, provenance=replace(record.provenance, code="other")).stale(sweep.experiment)
    sweep.path.write_text(sweep.path.read_text().replace("standard_normal", "standard_cauchy"))
    assert record.stale(sweep.experiment)


def test_a_record_of_a_profile_that_has_grown_says_how_many_cells_it_lacks(written, sweep):
    _, record = written
    assert record.missing(sweep.experiment) == 0
    fewer = replace(record, results=replace(record.results, pairs=record.results.pairs[1:]))
    assert fewer.missing(sweep.experiment) == 1


def test_a_record_of_other_code_does_not_import_it(written, sweep, tmp_path):
    """The name is looked up among the experiments given, never as a module or a path."""
    path, _ = written
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    content = json.loads(path.read_text()) | {"format": 1}
    del content["checksum"]
    for name in ("evil", str(tmp_path / "evil.py"), "antigravity", "offtangent.papers.arora.fig1", "../evil"):
        path.write_text(json.dumps(content | {"experiment": name}))
        with pytest.raises(InputError, match="none of the papers' experiments"):
            lab.records.read_record(path, {"sweep": sweep.experiment})
    assert not (tmp_path / "mark").exists()
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[1, 2]",
        "null",
        "[" * 100_000,
        '{"format": 99, "experiment": "sweep"}',
        '{"format": 1, "experiment": ["sweep"]}',
        '{"format": 1, "experiment": "sweep", "cells": [{"kind": "os", "fields": {}, "data": {}}]}',
        '{"format": 1, "experiment": "sweep", "cells": [{"kind": "Cell", "fields": {"x": 1}, "data": {}}]}',
        "\ud800",
    ],
)
def test_a_file_that_is_no_record_is_refused(content, sweep, tmp_path):
    path = tmp_path / "record.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError):
        lab.records.read_record(path, {"sweep": sweep.experiment})


def test_incomplete_results_are_marked_so(write_sweep, store):
    sweep = write_sweep(body="if cell.number == 1: raise ValueError")
    path = lab.records.write_record(record_of(sweep.run(store)), store / "results")
    assert not lab.records.read_record(path, {"sweep": sweep.experiment}).results.complete


def test_nan_becomes_text_that_numpy_reads():
    plain = _to_plain(xr.Dataset({"x": ("i", np.array([np.nan, np.inf, -np.inf, 1.5]))}))
    assert plain["x"]["data"] == ["nan", "inf", "-inf", 1.5]


def test_single_precision_is_written_with_the_digits_it_has():
    plain = _to_plain(xr.Dataset({"x": ("k", np.array([0.1, 1 / 3], np.float32))}))
    assert json.dumps(plain["x"]["data"]) == "[0.1, 0.33333334]"
