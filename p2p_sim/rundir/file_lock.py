"""A lock on an open file or folder against other processes; it goes with the process that holds it."""

from __future__ import annotations


def lock(descriptor: int) -> bool | None:
    """Lock without waiting: True, or False where another process has it; None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # not on this file system
        return None
    return True
