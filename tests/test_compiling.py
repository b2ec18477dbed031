"""A second call of the same shapes compiles nothing: four rooms' public functions, called by tests/compiling.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMPILE_AT_FIRST = 60  # so many of the calls compiled something at first when this was written


@pytest.fixture(scope="module")
def programs():
    """Name of a call → programs compiled in its first call and in its second, in a process that has none yet."""
    script = Path(__file__).with_name("compiling.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_compiles_again_on_a_second_call_of_the_same_shapes(programs):
    assert {name: second for name, (_, second) in programs.items() if second} == {}


def test_what_is_compiled_at_first_is_counted(programs):
    assert sum(first > 0 for first, _ in programs.values()) >= COMPILE_AT_FIRST


def test_every_room_is_called(programs):
    assert {name.partition(".")[0] for name in programs} >= {"kernels", "linalg", "taylor", "training"}
