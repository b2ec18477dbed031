"""Fixtures for every room's tests."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.append(str(Path(__file__).parent))  # importlib mode leaves the tests' folder off the path
import browser

settings.register_profile("unhurried", deadline=None)  # a busy machine is no bug
settings.load_profile("unhurried")

# Under nohup or in a shell's background Ctrl-C is ignored, and so it would be in every process the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes of their own."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


STRICT = ("special", "networks", "linalg", "kernels", "theory")  # rooms whose numerics mix no dtypes by accident


@pytest.fixture(autouse=True)
def strict_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
    """JAX refuses to mix dtypes in our own numerics; optax and equinox need the standard way."""
    if request.path.parent.name not in STRICT:
        yield
        return
    import jax

    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(scope="session")
def browse() -> Iterator[Callable[..., browser.Opened]]:
    """`browse(path, width, ...)` opens a page in a real browser: Browser.open_page in tests/browser.py."""
    program = browser.find()
    if program is None:
        pytest.skip(f"no Chromium found ({', '.join(browser.NAMES)})")
    with browser.started(program) as running:
        yield running.open_page
