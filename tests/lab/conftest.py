"""A trivial experiment in a file of its own, whose `run` notes every execution, and ways to run it."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

import trials
from offtangent import lab
from offtangent.cli import app

LOCAL = lab.executors.Placement("local")
DRIVER = Path(__file__).parent / "driver.py"

SOURCE = '''
"""A trivial sweep.

Cells note that they ran, wait a little, and draw numbers.
"""

import os
import time
from dataclasses import dataclass

import numpy as np
import xarray as xr

LOG = {log!r}


@dataclass(frozen=True)
class Cell:
    number: int
    size: int
    seconds: float


PROFILES = {{"smoke": ({cells}, {size}, {seconds})}}


def cells(config):
    count, size, seconds = config
    return [Cell(number, size, seconds) for number in range(count)]


def run(cell):
    log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, b"%d %d\\n" % (cell.number, os.getpid()))
    os.close(log)
    time.sleep(cell.seconds)
    {body}
    values = np.random.default_rng(cell.number).standard_normal(cell.size)
    return xr.Dataset({{"values": ("i", values), "mean": ((), values.mean())}}, attrs={{"number": cell.number}})


def claims(results):
    from offtangent.lab import Claim

    means = results.combine("number")["mean"]
    yield Claim.at_most(float(abs(means).max()), 10.0, source="arithmetic", statement="means are small", measured="max")


def draw(results):
    return []
'''


@dataclass(frozen=True)
class Sweep:
    """The experiment's file, and the log of its executions."""

    path: Path
    log: Path

    @property
    def experiment(self) -> lab.experiment.Experiment:
        return lab.experiment.load_experiment(self.path)

    @property
    def executed(self) -> list[int]:
        """The cells' numbers, one for each time one was run."""
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def executors(self) -> set[int]:
        """The processes in which cells ran."""
        return set(self.processes)

    @property
    def processes(self) -> list[int]:
        """The process of each execution, in their order."""
        return [int(line.split()[1]) for line in self.log.read_text().splitlines()]

    def forget(self) -> None:
        self.log.unlink(missing_ok=True)

    def run(
        self, folder: Path, placement: lab.executors.Placement = LOCAL, *, fresh: bool = False
    ) -> lab.runner.Outcome:
        """Run what is missing in the store at `folder`."""
        store = lab.store.Store.open(folder)
        (outcome,) = lab.runner.run(lab.runner.plan([self.experiment], "smoke", store, placement, fresh=fresh), store)
        return outcome

    def files(self, folder: Path, placement: lab.executors.Placement = LOCAL) -> dict[int, Path]:
        """Where the result of each cell belongs."""
        store, threads = lab.store.Store(folder), placement.threads
        return {cell.number: store.path(self.experiment.key(cell, threads)) for cell in self.experiment.cells("smoke")}


@pytest.fixture
def write_sweep(tmp_path) -> Callable[..., Sweep]:
    """`write_sweep(cells=4, size=10, seconds=0.0, body="", name="sweep")` writes the experiment and returns it."""

    def write(cells=4, size=10, seconds=0.0, body="", name="sweep") -> Sweep:
        folder = tmp_path / "user"
        folder.mkdir(exist_ok=True)
        path, log = folder / f"{name}.py", folder / f"{name}.log"
        body = textwrap.indent(textwrap.dedent(body).strip(), "    ").strip()
        path.write_text(SOURCE.format(log=str(log), cells=cells, size=size, seconds=seconds, body=body).lstrip())
        return Sweep(path, log)

    return write


@pytest.fixture
def own(tmp_path) -> Callable[..., Path]:
    """`own(body="", name="trial", source=SOURCE)` writes trials.py's experiment, with `body` at its end."""

    def write(body="", name="trial", source=trials.SOURCE) -> Path:
        path = tmp_path / "own" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{source}\n{body}\n")
        return path

    return write


@pytest.fixture
def sweep(write_sweep) -> Sweep:
    return write_sweep()


@pytest.fixture(scope="session")
def without_extras(tmp_path_factory) -> Path:
    """A folder that makes Python one of a plain installation; xarray and pandas would load these at every start."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules.update({'dask': None, 'pyarrow': None})\n")
    return folder


@pytest.fixture(autouse=True)
def plain(without_extras, monkeypatch) -> None:
    """Processes that the tests start are those of a plain installation: a third less to load."""
    path = [str(without_extras), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))


@pytest.fixture
def store(tmp_path) -> Path:
    """The folder of a store that does not exist yet."""
    return tmp_path / "store"


@pytest.fixture
def same() -> Callable[[lab.Results, lab.Results], bool]:
    """Whether two results are the same, bit for bit."""

    def same(one: lab.Results, other: lab.Results) -> bool:
        return (one.profile, one.complete, len(one)) == (other.profile, other.complete, len(other)) and all(
            repr(a) == repr(b) and x.identical(y) for (a, x), (b, y) in zip(one, other, strict=True)
        )

    return same


@dataclass(frozen=True)
class Told:
    """What a command said, and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "offtangent", *map(str, words)]


@pytest.fixture
def offtangent() -> Callable[..., Told]:
    """`offtangent("run", path, ...)` does what the program does, in this process; `start(*command(...))` starts it."""

    def call(*words: object) -> Told:
        with patch.dict(os.environ):  # it sets where JAX keeps compiled programs
            came = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
        return Told(came.exit_code, came.stdout, came.stderr)

    return call


@pytest.fixture
def program() -> Callable[..., Told]:
    """The same in a process of its own: submitit closes streams that pytest still needs."""

    def call(*words: object) -> Told:
        came = subprocess.run(command(*words), capture_output=True, text=True, timeout=120, check=False)
        return Told(came.returncode, came.stdout, came.stderr)

    return call


@contextmanager
def starting() -> Iterator[Callable[..., subprocess.Popen]]:
    started = []

    def begin(*words: object, **more) -> subprocess.Popen:
        process = subprocess.Popen(
            list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            **more,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
        for left in session(process.pid):
            os.kill(left, 9)


@pytest.fixture
def start():
    """`start(*words)` starts a program in a session of its own; what is left of it is killed after the test."""
    with starting() as begin:
        yield begin


@pytest.fixture(scope="module")
def start_for_all():
    """The same, and what is left is killed after the last test of the file."""
    with starting() as begin:
        yield begin


@pytest.fixture
def drive() -> Callable[..., dict]:
    """`drive(what, *words)` runs one of the functions of driver.py, which forks and kills, in a fresh interpreter."""

    def run(what: str, *words: object) -> dict:
        told = subprocess.run(
            [sys.executable, DRIVER, what, *map(str, words)], capture_output=True, text=True, timeout=200, check=False
        )
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    return run


def session(leader: int) -> list[int]:
    """The living processes of a session (zombies do not count), from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(sid) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is true; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{condition} was not met within {seconds:g} s"
        time.sleep(0.01)


@pytest.fixture(name="until", scope="session")
def until_() -> Callable[..., None]:
    return until


@pytest.fixture(name="session")
def session_() -> Callable[[int], list[int]]:
    return session


@pytest.fixture(name="command")
def command_() -> Callable[..., list[str]]:
    return command
