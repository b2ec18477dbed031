"""What makes a cell's numbers besides its fields: code, versions of packages, device, threads, data."""

import hashlib
import importlib.metadata
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from offtangent._errors import InputError
from offtangent._files import kind_of
from offtangent.lab.costs import cores
from offtangent.lab.fingerprints import Fingerprint

ON_JAX = frozenset(("jax", "equinox", "optax", "lineax", "flax", "diffrax", "matfree"))
JAX_THREADS = "NPROC"  # JAX reads it when it is imported, and never again
BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ONE = "1"
XLA_FLAGS, DETERMINISTIC = "XLA_FLAGS", "--xla_gpu_deterministic_ops"


def machinery_of(code: Fingerprint) -> dict[str, str]:
    """The code's hash, major.minor of every package that it names and, where JAX computes, backend and precision."""
    found = {"code": code.code}
    found |= {name: _release(name) for name in sorted(code.packages) if name not in sys.stdlib_module_names}
    if uses_jax(code):
        import jax

        precision = "float64" if jax.config.read("jax_enable_x64") else "float32"
        found |= {"jax": _release("jax"), "backend": jax.default_backend(), "precision": precision}
        if found["backend"] == "gpu":
            found["deterministic"] = "yes" if f"{DETERMINISTIC}=true" in os.environ.get(XLA_FLAGS, "") else "no"
    return found


def deterministic() -> dict[str, str]:
    """The environment in which a GPU adds in the same order in every run; what a user says of it stays.

    Without it two runs of one training differ in their last digits, and what is chaotic in all of them. It costs
    nothing that could be measured (docs/benchmarks.md). XLA reads it when JAX first looks for a device.
    """
    flags = os.environ.get(XLA_FLAGS, "")
    # An XLA that does not know a flag refuses to start: it is told of this one where a plugin of JAX serves a device.
    if DETERMINISTIC in flags or importlib.util.find_spec("jax_plugins") is None:
        return {}
    return {XLA_FLAGS: f"{flags} {DETERMINISTIC}=true".strip()}


def threads() -> str:
    """How many threads share a sum in this process: its last digits depend on it, as sums are cut into parts."""
    jax = os.environ.get(JAX_THREADS) or str(cores())
    blas = next((os.environ[name] for name in BLAS_THREADS if os.environ.get(name)), str(cores()))
    return jax if jax == blas else f"{jax}, {blas} in BLAS"


@contextmanager
def computing_with(count: str) -> Iterator[None]:
    """Use one thread in here if `count` says so; any other number is what this process was started with.

    Workers that we start are born so. In others (Dask's, Slurm's) JAX is told before it is imported, and BLAS as we go.
    """
    if count != ONE or threads() == ONE:
        yield
        return
    from threadpoolctl import threadpool_limits

    if "jax" not in sys.modules:
        os.environ[JAX_THREADS] = ONE
    with threadpool_limits(int(ONE)):
        yield


def uses_jax(code: Fingerprint) -> bool:
    """Whether a cell's numbers are JAX's."""
    return bool(ON_JAX & code.packages)


@cache
def _release(package: str) -> str:
    """Major and minor version of what an import of this name brings; "?" for what has none."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package)
        if not names:
            return "?"
        version = importlib.metadata.version(names[0])
    return ".".join(version.split(".")[:2])


def checksums(names: Iterable[str | Path], beside: Path) -> dict[str, str]:
    """The sha256 of everything that `datasets(cell)` names.

    Args:
        names: Data sets of `offtangent.data`, and paths; relative ones lie beside the experiment's file.
        beside: The folder of the experiment's file.

    Returns:
        A checksum by name.
    """
    from offtangent.data.catalogue import NAMES
    from offtangent.data.fetch import checksum

    return {str(name): checksum(str(name)) if name in NAMES else _of_file(beside / name) for name in names}


def _of_file(path: Path) -> str:
    wanted = "It names data sets of offtangent.data, or files by their path from the experiment's folder."
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # not there, in a folder that cannot be looked into, of letters no path has
        missing = isinstance(error, FileNotFoundError)
        why = "there is no such file" if missing else f"it cannot be looked at ({getattr(error, 'strerror', error)})"
        raise InputError(f"datasets(cell) names {path}, and {why}. {wanted}") from None
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"datasets(cell) names {path}, and that is {kind_of(found.st_mode)}, not a file. {wanted}")
    return _digest(path, found.st_size, found.st_mtime_ns, found.st_ino)


@cache
def _digest(path: Path, size: int, changed: int, inode: int) -> str:  # noqa: ARG001
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
