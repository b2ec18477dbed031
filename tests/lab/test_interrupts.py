"""Ctrl-C is never swallowed and never a traceback, wherever it lands."""

import os
import signal
import textwrap
import time

import pytest

from offtangent import lab

SWALLOWERS = {
    "callback": """
        import jax
        def host(x):
            os.kill(os.getpid(), 2)
            time.sleep(0.2)
            return x
        jax.jit(lambda x: jax.pure_callback(host, x, x) + 1)(np.float32(0)).block_until_ready()
    """,
    "callbacks": """
        import jax
        began = []
        def host(x):
            if not began:
                began.append(True)
                os.kill(os.getpid(), 2)
            time.sleep(0.01)
            return x
        jax.jit(lambda x: jax.lax.fori_loop(0, 3000, lambda i, x: jax.pure_callback(host, x, x), x))(np.float32(0))
    """,
    "except": """
        try:
            os.kill(os.getpid(), 2)
            time.sleep(5)
        except BaseException:
            pass
    """,
    "finaliser": """
        class Dropped:
            def __del__(self):
                os.kill(os.getpid(), 2)
                time.sleep(0.2)
        Dropped()
    """,
}


def when(number, body):
    return f"if cell.number == {number}:\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}"


@pytest.mark.parametrize("who", SWALLOWERS)
def test_a_ctrl_c_that_somebody_swallows_ends_the_run(who, write_sweep, store, capfd, caplog):
    """After the cell in which it was swallowed, at the latest; and nobody prints it."""
    sweep = write_sweep(cells=3, body=when(1, SWALLOWERS[who]))
    with pytest.raises(lab.runner.Interrupted, match=r"[12] of 3 cells are stored"):
        sweep.run(store)
    assert sweep.executed == [0, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "Traceback" not in capfd.readouterr().err + caplog.text


def test_a_long_cell_that_has_swallowed_a_ctrl_c_gets_another(write_sweep, store):
    body = """
    try:
        os.kill(os.getpid(), 2)
        time.sleep(5)
    except KeyboardInterrupt:
        time.sleep(60)
    """
    start = time.monotonic()
    with pytest.raises(lab.runner.Interrupted, match=r"1 of 3 cells are stored"):
        write_sweep(cells=3, body=when(1, body)).run(store)
    assert time.monotonic() - start < 30


def test_a_run_in_processes_stops_between_two_looks(write_sweep, store):
    """The signal comes while the main thread is in the middle of its own business: here, telling of a cell."""
    sweep = write_sweep(cells=20, seconds=0.05)
    opened = lab.store.Store.open(store)
    plan = lab.runner.plan([sweep.experiment], "smoke", opened, lab.executors.Placement("processes", "2"))
    seen = []

    def on_done(job, _):
        if not seen:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        seen.append(job)

    with pytest.raises(lab.runner.Interrupted) as caught:
        lab.runner.run(plan, opened, on_done=on_done)
    assert seen  # it was not cut short
    assert caught.value.stored == len(list(store.glob("cells/*/[!.]*.npz"))) < 20


MOMENTS = {
    "loading": ("typer.py", "os.kill(os.getpid(), 2); time.sleep(5)"),
    "ending": ("sitecustomize.py", "atexit.register(lambda: (os.kill(os.getpid(), 2), time.sleep(5)))"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_while_the_program_loads_or_ends_is_no_traceback(moment, start, command, tmp_path, monkeypatch):
    name, code = MOMENTS[moment]
    (tmp_path / name).write_text(f"import atexit, os, time\n{code}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    process = start(*command("--version"))
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "offtangent: Interrupted. What was finished is kept.\n")


def test_a_program_that_hangs_where_no_signal_reaches_it_is_ended_all_the_same(
    write_sweep, store, start, command, until
):
    """The cell blocks the signal in its thread and sleeps on, as compiled code would compute on."""
    body = "signal.pthread_sigmask(signal.SIG_BLOCK, {2}); time.sleep(100)"
    sweep = write_sweep(cells=2, body=f"import signal; {body}")
    process = start(*command("run", sweep.path, "--profile", "smoke", "--out", store, "--on", "local"))
    until(lambda: sweep.executed)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "offtangent: Interrupted." in err
    assert "Traceback" not in out + err


def test_where_ctrl_c_is_ignored_it_stays_so(write_sweep, store, start, command):
    """As under nohup, or in the background of a script."""
    sweep = write_sweep(cells=2, body="os.kill(os.getpid(), 2)")
    words = command("run", sweep.path, "--profile", "smoke", "--out", store, "--on", "local")
    process = start("sh", "-c", 'trap "" INT && exec "$@"', "sh", *words)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
