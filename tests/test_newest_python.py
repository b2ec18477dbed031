"""The search of .ci/run for the newest Python: a shim that runs nothing is no Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "newest-python"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def python(path, version, *, level="final", runs=True):
    """A command that answers as a Python of that version would: our own, told to be another."""
    pretend = (
        "import sys, collections; V = collections.namedtuple('V', 'major minor micro releaselevel'); "
        f"sys.version_info = V(*{version}, {level!r}); sys.executable = {str(path)!r}\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    body = f'exec "{sys.executable}" -c "{pretend}$2"' if runs else "exit 127"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def newest(tmp_path):
    """What the search finds among the commands below tmp_path alone: `bin` on the PATH, `pyenv` for pyenv's folders."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "sort", "tail", "cut"):
        (tools / tool).symlink_to(shutil.which(tool))

    def search():
        place = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{tools}", "PYENV_ROOT": str(tmp_path / "pyenv")}
        found = subprocess.run([tools / "bash", SCRIPT], env=place, capture_output=True, text=True, check=True).stdout
        return Path(found.strip()) if found else None

    return search


def in_pyenv(tmp_path, version):
    return tmp_path / "pyenv" / "versions" / version / "bin" / "python"


def test_a_shim_that_does_not_run_is_passed_over_for_a_folder_of_pyenv(tmp_path, newest):
    python(tmp_path / "bin" / "python3.13", (3, 13, 0), runs=False)
    expected = python(in_pyenv(tmp_path, "3.13.0"), (3, 13, 0))
    assert newest() == expected


def test_the_newest_release_is_found_wherever_it_is(tmp_path, newest):
    python(tmp_path / "bin" / "python3.12", (3, 12, 9))
    python(in_pyenv(tmp_path, "3.13.9"), (3, 13, 9))
    expected = python(in_pyenv(tmp_path, "3.13.10"), (3, 13, 10))
    python(in_pyenv(tmp_path, "3.14.0rc1"), (3, 14, 0), level="candidate")
    assert newest() == expected


def test_python_3_11_is_not_newer(tmp_path, newest):
    python(in_pyenv(tmp_path, "3.11.7"), (3, 11, 7))
    assert newest() is None
