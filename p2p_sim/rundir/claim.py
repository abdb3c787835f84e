"""The claim of a run to its folder: of two runs that are to be saved under one name, the second does not begin."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from p2p_sim.core import write_errors
from p2p_sim.core.errors import InputError
from p2p_sim.rundir import file_lock
from p2p_sim.rundir.run_directory import check_free


@contextlib.contextmanager
def claimed(path: Path, force: bool) -> Iterator[None]:
    """Hold the name of a run that is to be written; see ``held``.  Raises StorageError where it cannot be."""
    with contextlib.ExitStack() as stack:
        with write_errors.translated("the run", path.parent):
            stack.enter_context(held(path, force))
        yield


@contextlib.contextmanager
def held(path: Path, force: bool) -> Iterator[None]:
    """Hold the name of a run directory from before a run is computed until it is in its place.

    A locked file beside it, ``.NAME.claim``, says so to other processes; it goes at the end, and the lock of a process
    that is killed goes with it.  Where files cannot be locked, only the end of a run tells.  Raises InputError if
    another run holds the name, or what is there must not be replaced; ``force``: see ``check_free``.
    """
    check_free(path, force)
    new = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    place = path.with_name(f".{path.name}.claim")
    try:
        descriptor = _locked(place, path)
        try:
            check_free(path, force)  # another run may have come to its end since this was last asked
            yield
        finally:
            if descriptor is not None:
                place.unlink(missing_ok=True)
                os.close(descriptor)
    finally:
        for parent in new:
            with contextlib.suppress(OSError):  # something is in it now
                parent.rmdir()


def _locked(place: Path, path: Path) -> int | None:
    """Return a locked file; None where files cannot be locked."""
    if os.name != "posix":  # elsewhere a file that is open cannot be removed
        return None
    while True:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        mine = file_lock.lock(descriptor)
        if mine is None:
            os.close(descriptor)
            place.unlink(missing_ok=True)
            return None
        if not mine:
            os.close(descriptor)
            raise InputError(
                f"output {str(path)!r} is being written by another run: choose another name, or wait for its end"
            )
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # whoever held it has removed it just now
