"""What a full disk, or one that fails, is called: every part of a run that is written says it in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from p2p_sim.core.errors import StorageError


@contextmanager
def told(what: str, folder: str | Path) -> Iterator[None]:
    """Raise StorageError for an OSError inside; ``what``: is written to the folder, such as "outputs"."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{what} cannot be written to {str(folder)!r}: {error.strerror or error}; make room, or choose another "
            "folder with --out"
        ) from error
