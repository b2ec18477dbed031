"""Fixtures for every room's tests."""

import gc
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from jaxtyping import _import_hook

sys.path.append(str(Path(__file__).parent))  # importlib mode leaves the tests' folder off the path
import browser

# Two thirds of all time go into compiling small programs. LLVM's second level of optimisation takes a fifth less of it
# than its third, and XLA's older way of writing fused loops, not through MLIR, a third less; an XLA that does not know
# a flag refuses to start, hence the version. The processes that tests start inherit this, and whoever runs the tests
# may set something else. Experiments and benchmarks run with XLA's defaults.
FLAGS = {"xla_backend_optimization_level": "2"}
if version("jaxlib").startswith("0.10."):
    FLAGS["xla_cpu_use_fusion_emitters"] = "false"
given = os.environ.get("XLA_FLAGS", "")
os.environ["XLA_FLAGS"] = " ".join([*(f"--{k}={v}" for k, v in FLAGS.items() if k not in given), given]).strip()

# What one process has compiled the others need not: the workers of this session, and all processes that tests start,
# share a folder of compiled programs, which goes with the session. JAX looks a program up by its text, the flags and
# the versions. It writes files in place, so that another process may read half of one: then JAX warns, and compiles;
# pyproject.toml lets this one warning pass.
OURS = "" if "JAX_COMPILATION_CACHE_DIR" in os.environ else tempfile.mkdtemp(prefix="offtangent-compiled-")
if OURS:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = OURS
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

# Linear algebra in one thread: with more workers than cores, threads that wait for each other cost up to ten times the
# work they share. This is for the processes that tests start; NumPy may be loaded here already (see below).
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Under nohup or in a shell's background Ctrl-C is ignored, and so it would be in every process the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# jaxtyping's import hook looks for bytecode under a name of its own, also of all that a module of ours imports, and
# finds none: every process would compile a thousand files of NumPy, JAX and the like. Let the name be for ours alone.
marked = _import_hook._optimized_cache_from_source


def for_ours(mark: str, path: str, *rest: object) -> str:
    ours = "offtangent" in Path(str(path).rpartition("site-packages")[2]).parts
    return marked(mark, path, *rest) if ours else importlib.util.cache_from_source(path, *rest)


_import_hook._optimized_cache_from_source = for_ours


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("dist", "no") != "no":
        return  # this process hands the tests out, and others run them
    from hypothesis import settings
    from threadpoolctl import threadpool_limits  # scikit-learn's

    settings.register_profile("unhurried", deadline=None)  # a busy machine is no bug
    settings.load_profile("unhurried")
    threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), user_api="blas")


def pytest_unconfigure() -> None:
    if OURS:
        shutil.rmtree(OURS, ignore_errors=True)


def room_of(path: Path) -> str:
    """The room that a file of `tests` or `src` is about, however deep it lies; of one beside the rooms, its folder."""
    parts = path.parts[:-1]
    top = max((i for i, part in enumerate(parts) if part in ("tests", "offtangent")), default=len(parts) - 1)
    return parts[min(top + 1, len(parts) - 1)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The rooms with the longest files come first, so that no core is left waiting for one of them in the end."""
    if importlib.util.find_spec("torch") is None:
        for item in items:
            if isinstance(item, pytest.DoctestItem) and room_of(item.path) == "interop":
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed: pip install 'offtangent[torch]'"))
    first = ("papers", "lab", "tests", "training")
    items.sort(key=lambda item: first.index(room) if (room := room_of(item.path)) in first else len(first))


def pytest_collection_finish() -> None:
    """What is loaded by now stays: the collector need not look through a million objects, nor so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes of their own."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


# Rooms whose numerics mix no dtypes by accident.
STRICT = ("special", "networks", "linalg", "taylor", "kernels", "theory", "labels")


@pytest.fixture(autouse=True)
def strict_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
    """JAX refuses to mix dtypes in our own numerics; optax, flax and equinox need the standard way."""
    if room_of(request.path) not in STRICT or "standard_promotion" in request.fixturenames:
        yield
        return
    import jax

    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture
def standard_promotion() -> None:
    """Asked for by tests of strict rooms that run other people's code: `strict_promotion` then leaves JAX as it is."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[browser.Browser]:
    """A real browser: tests/browser.py."""
    program = browser.find()
    if program is None:
        pytest.skip(f"no Chromium found ({', '.join(browser.NAMES)})")
    with browser.started(program) as running:
        yield running


@pytest.fixture(scope="session")
def browse(chromium: browser.Browser) -> Callable[..., browser.Opened]:
    """`browse(path, width, ...)` opens a page and reads it to its end: Browser.open_page."""
    return chromium.open_page
