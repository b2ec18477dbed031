"""A run that is stopped and taken up again gives, to the last bit, what it would have given."""

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from offtangent._errors import InputError
from offtangent.training import train
from offtangent.training.checkpoint import fingerprint, load, save
from offtangent.training.loop import BLOCK, Checkpoint

STEPS = 2 * BLOCK + 40
START = np.zeros(3, np.float32)
SGD = optax.sgd(0.01)
OPTIMISERS = {"momentum": optax.sgd(0.01, momentum=0.9), "adam": optax.adam(0.01)}


class Stopped(Exception):
    pass


def stop_at(block):
    def progress(done, _):
        if done == block * BLOCK:
            raise Stopped

    return progress


def everything(run):
    return [*jax.tree.leaves(run.params), *jax.tree.leaves(run.state), run.losses, *run.records.values()]


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_stopped_run_goes_on_to_the_same_bits(regression, least_squares, tmp_path, optimiser, batch):
    """Stopped twice, and taken up from each of the two files."""
    settings = {
        "optimiser": OPTIMISERS[optimiser],
        "steps": STEPS,
        "batch": batch,
        "key": jax.random.key(5),
        "record": {"w": lambda w: w},
        "record_at": np.array([0, 100, BLOCK, 400, STEPS]),
    }
    whole = train(least_squares, START, *regression, **settings)
    settings["checkpoint"] = Checkpoint(tmp_path / "run.npz", seconds=0.0)
    for block in (1, 2):
        with pytest.raises(Stopped):
            train(least_squares, START, *regression, **settings, progress=stop_at(block))
    resumed = train(least_squares, START, *regression, **settings)
    assert resumed.resumed_at == 2 * BLOCK
    for a, b in zip(everything(resumed), everything(whole), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_run_stopped_in_the_middle_of_an_epoch_keeps_its_shuffle(least_squares, tmp_path):
    X = np.random.default_rng(0).standard_normal((10, 3)).astype(np.float32)
    settings = {"optimiser": SGD, "steps": BLOCK + 20, "batch": 2, "key": jax.random.key(5)}
    assert BLOCK % 5
    whole = train(least_squares, START, X, X[:, 0], **settings)
    kept = Checkpoint(tmp_path / "run.npz", seconds=0.0)
    with pytest.raises(Stopped):
        train(least_squares, START, X, X[:, 0], **settings, checkpoint=kept, progress=stop_at(1))
    np.testing.assert_array_equal(
        train(least_squares, START, X, X[:, 0], **settings, checkpoint=kept).losses, whole.losses
    )


def test_a_finished_run_is_read_and_not_run_again(regression, least_squares, tmp_path):
    settings = {"optimiser": SGD, "steps": 9, "checkpoint": Checkpoint(tmp_path / "deep" / "run.npz")}
    first = train(least_squares, START, *regression, **settings)
    told = []
    again = train(least_squares, START, *regression, **settings, progress=lambda *now: told.append(now))
    assert (first.resumed_at, again.resumed_at, told) == (0, 9, [])
    np.testing.assert_array_equal(again.params, first.params)
    np.testing.assert_array_equal(again.losses, first.losses)


def test_a_checkpoint_is_written_at_the_end_even_when_its_time_has_not_come(regression, least_squares, tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(Stopped):
        train(least_squares, START, *regression, optimiser=SGD, steps=STEPS, checkpoint=Checkpoint(path, 1e9),
              progress=stop_at(1))  # fmt: skip
    assert not path.exists()
    train(least_squares, START, *regression, optimiser=SGD, steps=STEPS, checkpoint=Checkpoint(path, 1e9))
    assert [found.name for found in tmp_path.iterdir()] == ["run.npz"]


def test_another_process_goes_on_where_one_was_stopped(tmp_path):
    """The digest of a run must not depend on where its functions lie in memory."""
    script = textwrap.dedent(f"""
        import jax, numpy as np, optax
        from pathlib import Path
        from offtangent.networks import TwoLayer
        from offtangent.training.loop import Checkpoint
        from offtangent.training import HalfSquares, train
        def stop(done, steps):
            if done < steps: raise SystemExit(7)
        net = TwoLayer.gaussian(dim=2, width=3, activation="gelu", key=jax.random.key(0))
        X = np.eye(2, dtype=np.float32)
        settings = dict(optimiser=optax.adam(0.01), steps={BLOCK + 5}, record={{"w": lambda w: w}},
                        record_at=np.array([3]), checkpoint=Checkpoint(Path(r"{tmp_path}") / "run.npz", seconds=0.0))
        run = train(HalfSquares(net), net.origin, X, X[0], **settings, progress=stop)
        assert run.resumed_at == {BLOCK}
    """)
    with pytest.raises(SystemExit, match="7"):
        exec(compile(script, "script", "exec"), {})
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def shifted(w, X, y):
    return 0.5 * jnp.sum((X @ w - y - 1.0) ** 2)


CHANGES = ["rate", "optimiser", "objective", "data", "labels", "start", "key", "batch", "steps", "precision"]


@pytest.mark.parametrize("change", CHANGES)
def test_the_checkpoint_of_another_run_is_refused_with_what_to_do(regression, least_squares, tmp_path, change):
    X, y = regression
    path = tmp_path / "run.npz"
    base = {"optimiser": SGD, "steps": 5, "batch": 3, "key": jax.random.key(0), "checkpoint": Checkpoint(path)}
    train(least_squares, START, X, y, **base)
    other = {
        "rate": {"optimiser": optax.sgd(0.02)},
        "optimiser": {"optimiser": optax.adam(0.01)},
        "key": {"key": jax.random.key(1)},
        "batch": {"batch": 2},
        "steps": {"steps": 6},
        "precision": {"precision": "bfloat16"},
    }.get(change, {})
    arguments = (
        shifted if change == "objective" else least_squares,
        START + (change == "start"),
        X + (change == "data"),
        y + (change == "labels"),
    )
    with pytest.raises(InputError, match=r"run\.npz belongs to another run.*remove it"):
        train(*arguments, **{**base, **other})


def test_arrays_inside_an_objective_belong_to_the_run(regression, tmp_path):
    """A closure's arrays are constants of the program, a module's are leaves: both count."""
    X, y = regression

    def weighted(weights):
        return lambda w, X, y: 0.5 * jnp.sum(weights @ (X @ w - y) ** 2)

    settings = {"optimiser": SGD, "steps": 2, "checkpoint": Checkpoint(tmp_path / "run.npz")}
    train(weighted(jnp.arange(7.0)), START, X, y, **settings)
    train(weighted(jnp.arange(7.0)), START, X, y, **settings)
    with pytest.raises(InputError, match="another run"):
        train(weighted(jnp.arange(7.0) + 1), START, X, y, **settings)


# --- the file ------------------------------------------------------------------------------------------------

STATE = {"w": jnp.arange(3.0), "count": jnp.asarray(7), "key": jax.random.key(3), "fast": jax.random.key(3, impl="rbg")}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "run.npz"
    save(path, "print", STATE, np.array([1.0, 0.5]), 2)
    return path


def test_a_state_comes_back_as_it_was(saved):
    state, losses, done = load(saved, "print", jax.tree.map(jnp.zeros_like, STATE))
    assert (losses.tolist(), done) == ([1.0, 0.5], 2)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(STATE), strict=True):
        assert a.dtype == b.dtype
        assert (a == b).all()


def test_a_damaged_file_is_refused_or_harmless_whichever_byte_is_wrong(saved):
    whole = saved.read_bytes()
    refused = []
    for at in range(0, len(whole), 5):
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            state, losses, done = load(saved, "print", STATE)
        except InputError as error:
            refused.append(str(error))
        else:  # a date, or the like
            assert (losses.tolist(), done, state["w"].tolist()) == ([1.0, 0.5], 2, [0.0, 1.0, 2.0])
            assert (state["key"] == STATE["key"]).all()
    assert len(refused) > 0.5 * len(whole) / 5
    assert all("emove it to start again" in message for message in refused)


def test_a_file_cut_short_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(0, len(whole), 37):
        saved.write_bytes(whole[:length])
        with pytest.raises(InputError, match="Remove it to start again"):
            load(saved, "print", STATE)


def test_a_file_of_another_kind_is_refused(saved):
    for content in (b"not a checkpoint", b"PK\x03\x04", b"\x93NUMPY"):
        saved.write_bytes(content)
        with pytest.raises(InputError, match="Remove it to start again"):
            load(saved, "print", STATE)
    with saved.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="Remove it to start again"):
        load(saved, "print", STATE)


def test_the_digest_sees_values_shapes_dtypes_and_structure():
    parts = [
        {"a": np.zeros(4)}, {"a": np.zeros((2, 2))}, {"a": np.zeros(4, np.int64)}, {"b": np.zeros(4)},
        {"a": np.ones(4)}, {"a": jax.random.key(0)}, {"a": jax.random.key(1)}, {"a": "text"}, {"a": 1.0}, {"a": None},
    ]  # fmt: skip
    assert len({fingerprint(part) for part in parts}) == len(parts)
    assert fingerprint({"a": jnp.zeros(2)}, 3) == fingerprint({"a": jnp.zeros(2)}, 3)
