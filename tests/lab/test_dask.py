"""A Dask cluster on this machine: a scheduler and two workers, each a process of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import distributed
import pytest

from offtangent import lab
from offtangent._errors import InputError
from offtangent.lab import cluster
from offtangent.lab.workers import ClusterLost

JAX_BODY = """
import jax
import jax.numpy as jnp
W = np.random.default_rng(cell.number).standard_normal((64, 64)).astype(np.float32)
step = jax.jit(lambda W, v: jnp.tanh(W @ v) / jnp.linalg.norm(v))
v = jnp.ones(64)
for _ in range(20):
    v = step(W, v)
threads = os.environ.get("NPROC", "")
return xr.Dataset({"v": ("i", np.asarray(v)), "mean": ((), float(v.mean())), "threads": ((), threads)})
"""


@pytest.fixture
def plain():
    """Instead of the one of all other tests in this room: these processes need Dask."""


class Cluster:
    """A scheduler in a folder of its own, and the workers that were started for it."""

    def __init__(self, start, until, folder):
        self._start, self._folder, self.workers = start, folder, []
        self._settings = {"env": os.environ | {"NPROC": "1", "PYTHONWARNINGS": "ignore"}, "cwd": folder}
        self._file = folder / "scheduler.json"
        self.scheduler = self._dask("scheduler", "--port", "0")
        until(lambda: self._file.exists() and b'"address"' in self._file.read_bytes())
        self.address = json.loads(self._file.read_text())["address"]

    def _dask(self, role, *words, prefix=()):
        common = ("--host", "127.0.0.1", "--scheduler-file", self._file, "--no-dashboard")
        return self._start(*prefix, sys.executable, "-m", "dask", role, *common, *words, **self._settings)

    def add(self, *prefix):
        place = self._folder / f"worker-{len(self.workers)}"
        self.workers.append(self._dask("worker", "--nthreads", "1", "--no-nanny", "--local-directory", place,
                                       prefix=prefix))  # fmt: skip
        return self.workers[-1]

    def both(self):
        """Two workers, whatever became of those before."""
        while len(living := [worker for worker in self.workers if worker.poll() is None]) < 2:
            self.add()
        return living

    def only(self, *prefix):
        """One worker alone, started with a prefix: the others are ended."""
        for worker in self.workers:
            end(worker)
        return self.add(*prefix)


def end(process):
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def pair(start_for_all, until, tmp_path_factory):
    """A cluster for all tests: a scheduler takes a second to start, and so does a worker."""
    return Cluster(start_for_all, until, tmp_path_factory.mktemp("cluster"))


def test_dask_gives_the_numbers_of_this_process_bit_for_bit(pair, write_sweep, store, offtangent, tmp_path):
    """The workers have one thread each."""
    sweep = write_sweep(cells=4, seconds=0.2, body=JAX_BODY)
    workers = pair.both()
    words = ("run", sweep.path, "--profile", "smoke", "--json")
    there = offtangent(*words, "--on", f"dask:{pair.address}", "--out", store)
    assert there.status == 0, there.err
    assert sweep.executors == {worker.pid for worker in workers}
    sweep.forget()
    assert offtangent(*words, "--on", "local", "--out", tmp_path / "here").status == 0
    assert sweep.executors == {os.getpid()}
    there = sweep.files(store, lab.executors.Placement("dask", pair.address))
    for one, other in zip(there.values(), sweep.files(tmp_path / "here").values(), strict=True):
        (a, _), (b, _) = lab.store.Store(store).read(one.stem), lab.store.Store(tmp_path / "here").read(other.stem)
        assert str(a.threads.values) == "1"
        assert a.drop_vars("threads").identical(b.drop_vars("threads"))


def test_a_sweep_survives_a_killed_worker(pair, write_sweep, store, start, command, until, same, tmp_path):
    """The other worker does the rest; only what the dead one had in hand, or in its memory alone, runs again."""
    sweep = write_sweep(cells=12, seconds=0.25)
    victim, other = pair.both()
    words = ("run", sweep.path, "--profile", "smoke", "--on", f"dask:{pair.address}", "--out", store, "--json")
    run = start(*command(*words))
    until(lambda: sweep.log.exists() and sweep.executors == {victim.pid, other.pid})
    victim.kill()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert '"computed": 12' in out
    assert '"failures": []' in out
    assert len(sweep.executed) <= 12 + 3
    assert same(
        sweep.run(store, lab.executors.Placement("dask", pair.address)).results, sweep.run(tmp_path / "here").results
    )


def test_a_worker_that_does_not_see_the_store_sends_its_results_back(
    pair, write_sweep, store, offtangent, same, tmp_path, request
):
    """Where the store is, the worker sees an empty folder of the same name, which stays empty."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a view of the disk of one's own needs root and unshare")
    store.mkdir()
    hidden = ("unshare", "--mount", "sh", "-c", f'mount -t tmpfs tmpfs {store} && exec "$@"', "sh")
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no view of the disk of one's own")
    sweep = write_sweep(cells=3)
    worker = pair.only(*hidden)
    request.addfinalizer(lambda: end(worker))  # no other test may meet it
    told = offtangent("run", sweep.path, "--profile", "smoke", "--on", f"dask:{pair.address}", "--out", store,
                      "--json")  # fmt: skip
    assert told.status == 0, told.err
    assert (told.json["computed"], told.json["failures"]) == (3, [])
    assert sweep.executors == {worker.pid}
    assert not list(Path(f"/proc/{worker.pid}/root{store}").iterdir())
    assert same(
        sweep.run(store, lab.executors.Placement("dask", pair.address)).results, sweep.run(tmp_path / "here").results
    )


def test_a_scheduler_that_does_not_answer_is_refused_in_words(monkeypatch):
    patient = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *a, timeout, **k: patient(*a, timeout="0.3s", **k))  # noqa: ARG005
    with (
        pytest.raises(InputError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9 "),
        lab.executors.Placement("dask", "tcp://127.0.0.1:9").executor(),
    ):
        pass


def test_an_address_of_an_unknown_kind_is_refused_in_words(monkeypatch):
    """Before anybody tries to connect, which Dask does for ten seconds, and then with a traceback."""
    monkeypatch.setattr(distributed, "Client", None)
    with (
        pytest.raises(InputError, match=r"--on dask:foo://bar is no address of a Dask scheduler"),
        lab.executors.Placement("dask", "foo://bar").executor(),
    ):
        pass


def test_a_killed_scheduler_ends_the_run_with_a_sentence_and_nothing_is_lost(
    write_sweep, store, start, command, until, same, tmp_path
):
    own = Cluster(start, until, tmp_path)
    own.both()
    sweep = write_sweep(cells=40, seconds=0.3)
    words = ("run", sweep.path, "--profile", "smoke", "--on", f"dask:{own.address}", "--out", store)
    run = start(*command(*words))
    until(lambda: len(list(store.glob("cells/*/[!.]*.npz"))) > 2)
    end(own.scheduler)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 1
    assert f"The Dask scheduler at {own.address} is gone." in err
    assert "of 40 cells are stored. Run the same command again to go on." in err
    assert "Traceback" not in err
    for worker in own.workers:
        end(worker)
    kept, executed = len(list(store.glob("cells/*/[!.]*.npz"))), len(sweep.executed)
    assert 2 < kept < 40
    assert executed - kept <= 2  # what the two workers had in hand
    outcome = sweep.run(store, lab.executors.Placement("processes", "2"))
    assert (outcome.computed, outcome.reused) == (40 - kept, kept)
    assert same(outcome.results, sweep.run(tmp_path / "here").results)


def test_a_scheduler_that_answers_no_more_ends_the_run(write_sweep, store, start, until, tmp_path, monkeypatch):
    """It is there and its connections stand, but it is stopped."""
    monkeypatch.setattr(cluster, "SILENT", 3.0)
    monkeypatch.setattr(cluster, "ASK", 0.2)
    monkeypatch.setattr(cluster, "CLOSE", 1.0)
    own = Cluster(start, until, tmp_path)
    own.add()
    body = f"os.kill({own.scheduler.pid}, {int(signal.SIGSTOP)})"
    with pytest.raises(ClusterLost, match=r"has not answered for 3 s\. 1 of 1 cells are stored"):
        write_sweep(cells=1, body=body).run(store, lab.executors.Placement("dask", own.address))


def test_a_cluster_without_workers_is_told_and_goes_on_when_there_is_one(pair, write_sweep, store, monkeypatch):
    monkeypatch.setattr(cluster, "SILENT", 1.0)
    monkeypatch.setattr(cluster, "ASK", 0.2)
    for worker in pair.workers:
        end(worker)
    opened, told = lab.store.Store.open(store), []

    def tell(sentence):
        told.append(sentence)
        pair.add()
        monkeypatch.setattr(cluster, "SILENT", 60.0)

    sweep = write_sweep(cells=2)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, lab.executors.Placement("dask", pair.address))
    (outcome,) = lab.runner.run(plan, opened, tell=tell)
    assert (outcome.computed, outcome.failures) == (2, ())
    (sentence,) = told
    assert "has had no workers for 1 s; 2 cells wait for one" in sentence
