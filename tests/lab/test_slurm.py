"""Slurm: a real one of a single node where its programs are installed and we are root, and submitit's stand-in."""

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from offtangent import lab
from offtangent.lab.worker import JOB_ENDED

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=tiny Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def succeeds(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30).stdout


@pytest.fixture
def slurm(start, until, monkeypatch):
    """The name of the partition of a Slurm that has all of its files in a folder of its own, and goes away again."""
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    missing = [name for name in NEEDED if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"Slurm is not installed ({', '.join(missing)}); Debian has it as slurm-wlm and munge")
    if os.geteuid() != 0:
        pytest.skip("a Slurm of one's own needs root")
    monkeypatch.setenv("PATH", path)
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder, host = Path(name), socket.gethostname().partition(".")[0]
        folder.chmod(0o755)
        controller, node = free_ports(2)
        for part in ("state", "spool"):
            (folder / part).mkdir()
        settings = CONFIGURATION.format(host=host, folder=folder, controller=controller, node=node)
        (folder / "slurm.conf").write_text(settings)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o600)
        monkeypatch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        places = (("socket", "munge.socket"), ("key-file", "munge.key"), ("log-file", "munge.log"),
                  ("pid-file", "munge.pid"), ("seed-file", "munge.seed"))  # fmt: skip
        daemons = [start("munged", "--foreground", "--force", *(f"--{k}={folder / v}" for k, v in places))]
        try:
            until((folder / "munge.socket").exists, 20)
            daemons += [start(daemon, "-D", "-f", folder / "slurm.conf") for daemon in ("slurmctld", "slurmd")]
            until(lambda: "idle" in succeeds("sinfo", "--noheader", "--format=%T"), 30)
            yield "tiny"
            succeeds("scancel", "--state=RUNNING", "--me")
            succeeds("scancel", "--me")
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                daemon.wait(20)


def test_a_real_slurm_gives_the_numbers_of_this_process(slurm, write_sweep, store, program, same, tmp_path):
    sweep = write_sweep(cells=3)
    words = ("run", sweep.path, "--profile", "smoke", "--on", f"slurm:{slurm}", "--out", store, "--json")
    told = program(*words)
    assert told.status == 0, told.err
    assert (told.json["computed"], told.json["reused"], told.json["failures"]) == (3, 0, [])
    assert len(sweep.executors) == 3  # a job each
    again = sweep.run(store, lab.executors.Placement("slurm", slurm))
    assert (again.computed, again.reused) == (0, 3)
    assert same(again.results, sweep.run(tmp_path / "here").results)


def test_a_slurm_job_that_dies_is_reported_and_the_others_go_on(slurm, write_sweep, store, monkeypatch):
    """The accounting that submitit would ask is not there."""
    monkeypatch.setattr("offtangent.lab.executors.LOOK", 0.5)
    body = """
    if cell.number == 1:
        os.system("scancel --full --signal=KILL $SLURM_JOB_ID")
        time.sleep(60)
    """
    outcome = write_sweep(cells=2, body=body).run(store, lab.executors.Placement("slurm", slurm))
    ((job, done),) = outcome.failures
    assert job.cell.number == 1
    assert "left the queue without a result" in done.error or "cancel" in done.error.lower()
    assert outcome.computed == 1


def test_a_slurm_job_over_its_time_limit_is_told_so_and_keeps_what_it_has_finished(
    slurm, write_sweep, store, monkeypatch
):
    """Two jobs of two cells. The second cell of each sees to it that its job ends, one of them deaf to the warning."""
    monkeypatch.setattr("offtangent.lab.executors.LOOK", 0.5)
    monkeypatch.setattr(lab.executors.Placement, "chunk", lambda *_: 2)
    body = """
    if cell.number >= 2:
        import signal, subprocess
        if cell.number == 3:
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        subprocess.run(["scontrol", "update", "JobId=" + os.environ["SLURM_JOB_ID"], "EndTime=now+1"], check=True)
        time.sleep(200)
    """
    sweep = write_sweep(cells=4, body=body)
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, lab.executors.Placement("slurm", slurm))
    (outcome,) = lab.runner.run(plan, opened, timeout=100.0)
    scripts = [path.read_text() for path in (store / "slurm").glob("*_submission.sh")]
    assert all("--time=5" in script for script in scripts)  # 200 s are four minutes, and one to start
    assert [job.cell.number for job, _ in outcome.failures] == [2, 3]
    assert {done.error for _, done in outcome.failures} == {JOB_ENDED}
    assert outcome.computed == 2


def test_submitits_stand_in_gives_the_numbers_of_this_process(write_sweep, store, program, same, tmp_path):
    sweep = write_sweep(cells=2)
    told = program("run", sweep.path, "--profile", "smoke", "--on", "slurm:local", "--out", store, "--json")
    assert told.status == 0, told.err
    assert (told.json["computed"], told.json["failures"]) == (2, [])
    assert os.getpid() not in sweep.executors
    assert same(
        sweep.run(store, lab.executors.Placement("slurm", "local")).results, sweep.run(tmp_path / "here").results
    )


def test_many_cells_go_to_slurm_in_few_jobs():
    """A job pays for its own start: at most 32 of them, and no cell left out."""
    placement = lab.executors.Placement("slurm", "tiny")
    for cells in (1, 31, 32, 33, 1000):
        chunk = placement.chunk(cells)
        assert chunk >= 1
        assert 32 * chunk >= cells
    assert placement.chunk(32) == 1
    assert lab.executors.Placement("dask", "x").chunk(1000) == 1


def test_slurm_without_slurm_is_refused_in_words(sweep, store, program, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    told = program("run", sweep.path, "--profile", "smoke", "--on", "slurm:x", "--out", store)
    assert told.status == 2
    assert "Traceback" not in told.err
    assert "sbatch" in told.err
