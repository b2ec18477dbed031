"""Compiled programs are native code: they lie in the user's own cache folder, and never in an output folder."""

import os
import stat
from pathlib import Path

import pytest

from offtangent import lab
from offtangent._files import private_folder
from offtangent.lab import compiled

BODY = """
    import jax
    jax.jit(lambda x: x + 1)(1.0)
    return xr.Dataset({'folder': ((), jax.config.jax_compilation_cache_dir or "none")})
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's cache folder, and JAX told to keep whatever it compiles."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "offtangent"


def used(sweep, store):
    """The folder that a worker keeps its programs in."""
    return sweep.run(store, lab.executors.Placement("processes", "1")).results.pairs[0][1]["folder"].item()


def test_workers_keep_programs_in_the_user_s_cache_folder_and_for_the_user_alone(write_sweep, store, cache):
    folder = used(write_sweep(cells=1, body=BODY), store)
    (found,) = cache.iterdir()
    assert folder == str(found)
    assert any(found.iterdir())
    assert stat.S_IMODE(found.stat().st_mode) == 0o700


def test_what_the_user_has_set_stays(write_sweep, store, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "mine"))
    assert used(write_sweep(cells=1, body=BODY), store) == str(tmp_path / "mine")
    assert not cache.exists()


@pytest.mark.usefixtures("cache")
def test_a_folder_that_others_may_write_in_is_not_used(write_sweep, store):
    sweep = write_sweep(cells=1, body=BODY)
    os.chmod(used(sweep, store), 0o770)
    assert used(sweep, store.with_name("another")) == "none"


@pytest.mark.parametrize("kind", ["file", "link", "mode", "owner"])
def test_a_folder_that_is_not_the_user_s_alone_is_told(cache, tmp_path, monkeypatch, kind):
    folder = cache / "x"
    cache.mkdir(parents=True)
    if kind == "file":
        folder.write_text("")
    elif kind == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "theirs")
    else:
        folder.mkdir(mode=0o700)
        if kind == "mode":
            folder.chmod(0o755)
        else:
            monkeypatch.setattr(os, "getuid", lambda: 12345)
    words = {"file": "is a file", "link": "is a link", "mode": "others may use", "owner": "belongs to somebody else"}
    assert words[kind] in private_folder("x")[1]


@pytest.mark.parametrize("kind", ["mode", "sticky", "owner", "linked"])
def test_a_folder_that_somebody_could_replace_is_told(tmp_path, monkeypatch, kind):
    above = tmp_path / "above"
    above.mkdir(mode=0o700)
    given = above
    if kind == "linked":
        given = tmp_path / "link"
        given.symlink_to(above)
    monkeypatch.setenv("XDG_CACHE_HOME", str(given / "cache"))
    assert private_folder("x")[1] == ""
    if kind == "owner":
        theirs = os.stat_result((0o40755, 0, 0, 0, 12345, *[0] * 5))
        stat_of = Path.stat
        monkeypatch.setattr(Path, "stat", lambda self, **words: theirs if self == above else stat_of(self, **words))
    else:
        above.chmod(0o1777 if kind == "sticky" else 0o777)
    words = {"mode": "others may write in", "linked": "others may write in", "owner": "belongs to somebody else"}
    assert words.get(kind, "") in private_folder("x")[1]
    assert bool(private_folder("x")[1]) == (kind != "sticky")


def test_the_oldest_programs_go_first_where_too_many_are_kept(tmp_path, monkeypatch):
    for age, name in enumerate(["new", "middle", "old"]):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    monkeypatch.setattr(compiled, "MOST", 20)
    compiled._forget_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["middle", "new"]


@pytest.mark.parametrize("on", ["local", "processes:2", "slurm:local"])
def test_an_output_folder_holds_results_and_pages_and_no_code(write_sweep, tmp_path, program, cache, on):
    """Every kind of file in it, so that it can be handed on: arrays and JSON, a page, a log of failures."""
    body = BODY.replace("    return", "    if cell.number == 1: raise ValueError('no')\n    return")
    out = tmp_path / "out"
    file = write_sweep(cells=2, body=body).path
    assert program("run", file, "--profile", "smoke", "--on", on, "--out", out).status == 1
    kinds = {str(path.relative_to(out).parent / path.suffix) for path in out.rglob("*") if path.is_file()}
    folders = {path.parent.name for path in out.glob("cells/*/*.npz")}
    assert kinds == {".html", ".log", "results/.json", *(f"cells/{name}/.npz" for name in folders)}
    assert not [path for path in cache.rglob("*") if path.suffix == ".pkl"]
