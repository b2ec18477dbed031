"""A user's data are looked through for NaN and infinity once at each door, and not again behind it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from offtangent._errors import InputError
from offtangent.cli import app
from offtangent.data.duplicates import merge_duplicates
from offtangent.data.preprocessing import fit_preprocessing, preprocess, unit_norm
from offtangent.kernels import Gram, convolutional, gaussian, relu_hidden
from offtangent.kernels.solves import exact_matrix
from offtangent.labels import analyse
from offtangent.linalg import stream

ROWS, COLUMNS = 60, 7
RNG = np.random.default_rng(0)
X = RNG.standard_normal((ROWS, COLUMNS))
Y = np.where(X[:, 0] + 0.5 * RNG.standard_normal(ROWS) > 0, 1.0, 0.0)


class Scans:
    """How often all rows were looked through; a part of them counts as its share."""

    def __init__(self) -> None:
        self.rows = 0

    def watched(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def looking(values: Any, *rest: Any, **settings: Any) -> Any:
            if np.ndim(values) == 2 and np.shape(values)[1] in (COLUMNS, COLUMNS + 1):  # with the bias coordinate
                self.rows += np.shape(values)[0]
            return look(values, *rest, **settings)

        return looking

    @property
    def number(self) -> float:
        return self.rows / ROWS


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scans]:
    counted = Scans()
    for library in (np, jnp):
        for name in ("isfinite", "isnan", "isinf"):
            monkeypatch.setattr(library, name, counted.watched(getattr(library, name)))
    monkeypatch.setattr(np, "asarray_chkfinite", counted.watched(np.asarray_chkfinite))
    return counted


@pytest.mark.parametrize("name", ["mine.csv", "mine.npz"])
def test_the_command_looks_through_a_file_when_it_is_read_analysed_and_made_a_kernel_matrix(
    name: str, scans: Scans, tmp_path: Path
) -> None:
    if name == "mine.csv":
        np.savetxt(tmp_path / name, np.column_stack([X, Y]), delimiter=",")
    else:
        np.savez(tmp_path / name, X=X, y=Y)
    result = CliRunner().invoke(app, ["labels", str(tmp_path / name), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert scans.number == 3


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ridge": 1e-3},
        {"kernel": "gaussian"},
        {"kernel": convolutional(depth=1, patch=3)},
        {"task": "regression", "preprocess": "raw", "bias": False},
        {"preprocess": "centred", "unit": False},
    ],
)
def test_arrays_are_looked_through_by_analyse_and_by_its_kernel_matrix(settings: dict[str, Any], scans: Scans) -> None:
    analyse(X, Y, **settings)
    assert scans.number == 2


def test_in_parts_the_matrix_of_each_part_and_that_of_all_rows_look_at_their_own(scans: Scans) -> None:
    assert len(analyse(X, Y, rows_at_once=20).parts) == 3
    assert scans.number == 3


def test_a_gram_matrix_looks_through_its_inputs_once_whatever_is_asked_of_it(scans: Scans) -> None:
    H = Gram(relu_hidden, X)
    H.dense(), H.diag(), H.solve(Y), H.inverse_quadratic(Y), H.eigh(3)
    H.solve(Y, method="conjugate gradients")
    assert scans.number == 1


@pytest.mark.parametrize("kernel", [relu_hidden, gaussian(), convolutional(depth=1, patch=2)])
def test_tiles_are_those_of_the_kernel_and_their_inputs_are_not_looked_at(
    kernel: Any, scans: Scans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "rows_per_tile", lambda: 25)
    found = exact_matrix(kernel, X)
    assert scans.number == 0
    np.testing.assert_allclose(found, kernel.exact(X), rtol=1e-12, atol=1e-14)
    assert scans.number == 1


class Theirs:
    """A kernel that has no more than a Gram matrix asks for."""

    name = "linear"

    def __call__(self, X1: Any, X2: Any) -> Any:
        return X1 @ X2.T

    def diag(self, X: Any) -> Any:
        return (X * X).sum(axis=1)

    def exact(self, X1: Any, X2: Any = None) -> Any:
        return X1 @ (X1 if X2 is None else X2).T


def test_a_kernel_of_the_user_needs_only_its_doors() -> None:
    np.testing.assert_allclose(Gram(Theirs(), X, 1.0).dense(), X @ X.T + np.eye(ROWS))
    assert analyse(X, Y, kernel=Theirs(), ridge=1e-3).kernel == "linear"


BAD = X.copy()
BAD[3, 2] = np.nan


@pytest.mark.parametrize(
    "door",
    [
        lambda: analyse(BAD, Y),
        lambda: merge_duplicates(BAD, Y),
        lambda: fit_preprocessing(BAD, "standardised"),
        lambda: fit_preprocessing(X, "standardised")(BAD),
        lambda: preprocess(BAD, "centred"),
        lambda: unit_norm(BAD),
        lambda: Gram(relu_hidden, BAD),
        lambda: Gram(relu_hidden, BAD, 1.0),
        lambda: Gram(gaussian(), BAD),
        lambda: relu_hidden.diag(BAD),
        lambda: relu_hidden.exact(BAD),
        lambda: relu_hidden.exact(X, BAD),
        lambda: convolutional(depth=1, patch=3).diag(BAD),
        lambda: convolutional(depth=1, patch=3).exact(X, BAD),
    ],
)
def test_every_public_function_checks_what_it_is_given_by_itself(door: Callable[[], object]) -> None:
    with pytest.raises(InputError, match=r"1 entry that is NaN or infinite, in 1 row; .* row 3, column 2"):
        door()
