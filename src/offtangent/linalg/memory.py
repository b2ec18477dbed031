"""How much memory there is to spare."""

import os
from collections.abc import Sequence

import jax


def memory_to_spare(devices: Sequence[jax.Device] | None = None) -> float:
    """Bytes free on the fullest of these devices (default: JAX's first): of an accelerator, or of this machine.

    On CPU devices they share the machine, and each is told its part.
    """
    devices = list(devices) if devices else jax.devices()[:1]
    found = []
    for device in devices:
        stats = device.memory_stats() if device.platform != "cpu" else None
        if stats and "bytes_limit" in stats:
            found.append(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
        else:
            found.append(_free() / len(devices))
    return float(min(found))


def _free() -> float:
    """What the system could give without swapping; 4 GiB where it does not say."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    return 4 * 2.0**30
