"""Programs that JAX has compiled, kept between runs in the user's cache folder.

They are native code, which is loaded and run unread. So they never lie in an output folder, which people hand on, and
are used only where nobody else may write; processors of different kinds keep theirs apart.
"""

import contextlib
import hashlib
import os
import platform
from pathlib import Path

from offtangent._files import private_folder

LEAST_SECONDS = 0.2  # of compiling; what is compiled faster is not worth a file
MOST = 1_000_000_000  # bytes that are kept


def keep_compiled() -> str:
    """Let JAX, in this process, keep what it compiles, unless the user has said where; why not, if it may not."""
    import jax

    if os.environ.get("JAX_COMPILATION_CACHE_DIR") or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return ""
    folder, fault = private_folder(f"compiled-{_processor()}")
    if fault:
        return f"Compiled programs are not kept: {fault}."
    _forget_oldest(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if not os.environ.get("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return ""


def _processor() -> str:
    """Names what programs are compiled for: one kind's instructions may be unknown to another."""
    told = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        told += sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def _forget_oldest(folder: Path) -> None:
    """Remove what was not used for longest, where more is kept than may be."""
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another run was faster
                facts = entry.stat(follow_symlinks=False)
                found.append((facts.st_mtime, facts.st_size, entry.path))
    kept = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if kept <= MOST:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        kept -= size
