"""How much memory this process took at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def peak(backend: str) -> dict[str, Any]:
    """Return the peak in bytes (None where the system does not tell) and what it covers."""
    covers = "this process since its start"
    if backend != "local":
        covers += ", without Ray's own processes"
    return {"bytes": _bytes(), "covers": covers}


def _bytes() -> int | None:
    status = Path("/proc/self/status")  # getrusage would count what the shell held before this process
    if status.is_file():
        found = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024 * int(found[0]) if found else None
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
