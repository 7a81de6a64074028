"""Peak memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["peak_memory_mib", "reset_peak_memory"]

_KIB_PER_MIB = 1024


def reset_peak_memory() -> None:
    """Make the high-water mark of resident memory start from now; only Linux can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_memory_mib() -> float | None:
    """High-water mark of resident memory, None where the system keeps none."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return round(int(status.split("VmHWM:")[1].split()[0]) / _KIB_PER_MIB, 1)
    except (OSError, IndexError):
        pass
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (_KIB_PER_MIB**2 if sys.platform == "darwin" else _KIB_PER_MIB), 1)
