"""Errors of the operating system in writing, as StorageError: in the same words for every part of a run.

The message has the name of the error and what to do about it; only a disk or quota that is used up is called full.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from p2p_sim.core.errors import StorageError

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk, or a quota, that is used up."""

_REMEDIES = dict.fromkeys(FULL, "make room") | {
    errno.EFBIG: "raise the limit of a file's size (ulimit -f)",
    errno.EACCES: "change its permissions",
    errno.EPERM: "change its permissions",
    errno.EROFS: "mount its file system for writing",
    errno.EIO: "check its disk",
    errno.ENOENT: "do not remove it meanwhile",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close files of other programs",
    errno.ENAMETOOLONG: "choose a shorter name",
}


_ANYWHERE = (errno.EMFILE, errno.ENFILE)
"""The errors that come in any folder."""


def remedy(error: OSError) -> str:
    """Return what to do about an error in writing, as an imperative."""
    return _REMEDIES.get(error.errno or 0, "check its disk and its permissions")


@contextmanager
def translated(what: str, folder: str | Path, elsewhere: str = "another folder with --out") -> Iterator[None]:
    """Raise StorageError for an OSError in the ``with`` block.

    ``what``: what is being written to the folder, such as "outputs".  ``elsewhere``: what the user can choose instead.
    """
    try:
        yield
    except OSError as error:
        file = error.filename2 or error.filename  # of a copy the second, which is written
        of = "" if file is None or str(file) == str(folder) else f" ({str(file)!r})"
        instead = "" if error.errno in _ANYWHERE else f", or choose {elsewhere}"
        raise StorageError(
            f"{what} cannot be written to {str(folder)!r}: {error.strerror or error}{of}; {remedy(error)}{instead}"
        ) from error
