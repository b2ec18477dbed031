"""Forks sweeps and kills them. Run in a fresh interpreter, by the tests, so that no thread and no JAX is about."""

import json
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from pathlib import Path

SEED = 20190524


class Scene:
    """An experiment, a store, and the log in which cells note that they run."""

    def __init__(self, path: str, folder: str):
        from offtangent import lab

        assert "jax" not in sys.modules
        self.lab, self.folder = lab, Path(folder)
        self.experiment = lab.experiment.load_experiment(Path(path))
        self.log = Path(self.experiment.module.LOG)
        os.environ.update({"NPROC": "1", "OMP_NUM_THREADS": "1"})  # as in workers, so that keys are the same
        self.names = {self.experiment.key(c, "1"): c.number for c in self.experiment.cells("smoke")}

    def sweep(self, ready=lambda: None, on="local"):
        store = self.lab.store.Store.open(self.folder)
        plan = self.lab.runner.plan([self.experiment], "smoke", store, self.lab.executors.parse_placement(on))
        ready()
        (outcome,) = self.lab.runner.run(plan, store)
        assert "jax" not in sys.modules
        return outcome

    def child(self, before=lambda: None, on="local"):
        """Fork a child that runs the sweep in a session of its own: its process, and a pipe that tells of its plan."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                os.close(reading)
                before()
                self.sweep(lambda: os.write(writing, b"!"), on)
                os._exit(0)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
        os.close(writing)
        return child, reading

    def executed(self) -> list[int]:
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def stored(self) -> set[int]:
        return {self.names[path.stem] for path in self.folder.glob("cells/*/[!.]*.npz")}

    def part_files(self) -> int:
        return len(list(self.folder.glob("cells/*/.*.part")))

    def digests(self):
        """The numbers, without the dates and times at which they were computed."""
        store = self.lab.store.Store(self.folder)
        return {n: repr(store.read(key)[0].to_dict()) for key, n in self.names.items()}


def end_of(child: int, reading: int) -> int:
    status = os.waitpid(child, 0)[1]
    os.close(reading)
    return status


def slow_sync() -> None:
    """Make the time between writing and renaming long, so that kills hit it."""
    sync = os.fsync
    os.fsync = lambda file: (time.sleep(0.005), sync(file))[1]


def kills(path: str, folder: str, wanted: str) -> dict:
    """Kill sweeps at random moments, on one store after another, as often as wanted; let each sweep end."""
    rng = random.Random(SEED)
    truth = Scene(path, f"{folder}/truth")
    assert not truth.sweep().failures
    truth.log.unlink()
    told: Counter[str] = Counter(kills=0)
    while told["kills"] < int(wanted):
        scene = Scene(path, f"{folder}/{told['sweeps']}")
        told["sweeps"] += 1
        before_here = told["kills"]
        while told["kills"] < int(wanted) and len(kept := scene.stored()) < len(scene.names):
            before = len(scene.executed())
            child, reading = scene.child(slow_sync if rng.random() < 0.5 else lambda: None)
            if rng.random() < 0.8:  # otherwise the kill may come during the plan
                select.select([reading], [], [], 30)
            time.sleep(rng.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            told["kills"] += os.WIFSIGNALED(end_of(child, reading))
            told["cut_short_in_a_write"] += scene.part_files()  # of this kill: the next run clears them away
            assert kept <= scene.stored(), "a finished cell was lost"
            told["finished_cells_run_again"] += len(kept.intersection(scene.executed()[before:]))
        told["cells"] += len(scene.names)
        kept = scene.stored()
        outcome = scene.sweep()
        assert scene.part_files() == 0
        assert (outcome.computed, outcome.reused) == (len(scene.names) - len(kept), len(kept))
        assert scene.digests() == truth.digests(), "other numbers than an uninterrupted run"
        recomputed = len(scene.executed()) - len(scene.names)
        assert recomputed <= told["kills"] - before_here
        told["recomputed"] += recomputed
        scene.log.unlink()
    return dict(told)


def pools(path: str, folder: str, wanted: str) -> dict:
    """The same with two worker processes, whose run is killed at random moments from their very start on."""
    rng = random.Random(SEED)
    truth = Scene(path, f"{folder}/truth")
    assert not truth.sweep().failures
    truth.log.unlink()
    scene = Scene(path, f"{folder}/store")
    told: Counter[str] = Counter(cells=len(scene.names))
    for kill in range(int(wanted)):
        kept, before = scene.stored(), len(scene.executed())
        child, reading = scene.child(on="processes:2")
        select.select([reading], [], [], 30)
        if kill % 2:  # while workers run cells; otherwise, while they are being born
            deadline = time.monotonic() + 30
            while len(scene.executed()) == before and time.monotonic() < deadline:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.15))
        else:
            time.sleep(rng.uniform(0.05, 0.8))
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(end_of(child, reading))
        deadline = time.monotonic() + 20
        while living(child) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not living(child), "workers linger"
        told["kills"] += 1
        told["finished_cells_run_again"] += len(kept.intersection(scene.executed()[before:]))
        assert kept <= scene.stored()
    assert not scene.sweep(on="processes:2").failures
    assert scene.digests() == truth.digests()
    told["recomputed"] = len(scene.executed()) - len(scene.names)
    return dict(told)


def living(leader: int) -> list[int]:
    """The living processes of a session, from /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(sid) == leader and state != "Z":
            found.append(int(stat.parent.name))
    return found


def faults(path: str, folder: str) -> dict:
    """Die before and after every sync and every rename of a sweep, each time on a new store; then go on."""
    truth = Scene(path, f"{folder}/truth")
    assert not truth.sweep().failures
    truth.log.unlink()
    cells = len(truth.names)
    told = {}
    for function, calls in (("fsync", 2 * cells), ("replace", cells)):
        for when in ("before", "after"):
            for nth in range(1, calls + 1):
                scene = Scene(path, f"{folder}/{function}-{when}-{nth}")
                child, reading = scene.child(lambda f=function, w=when, n=nth: die_at(f, w, n))
                assert os.waitstatus_to_exitcode(end_of(child, reading)) == 9
                stored, executed = len(scene.stored()), len(scene.executed())
                outcome = scene.sweep()
                told[f"{function} {when} {nth}"] = {
                    "stored": stored,
                    "executed": executed,
                    "computed": outcome.computed,
                    "reused": outcome.reused,
                    "executions": len(scene.executed()),
                    "same": scene.digests() == truth.digests(),
                }
                scene.log.unlink()
    return told


def die_at(function: str, when: str, nth: int) -> None:
    real, calls = getattr(os, function), []

    def faulty(*args, **kwargs):
        calls.append(1)
        if when == "before" and len(calls) == nth:
            os._exit(9)
        result = real(*args, **kwargs)
        if when == "after" and len(calls) == nth:
            os._exit(9)
        return result

    setattr(os, function, faulty)


if __name__ == "__main__":
    print(json.dumps({"kills": kills, "pools": pools, "faults": faults}[sys.argv[1]](*sys.argv[2:])))
