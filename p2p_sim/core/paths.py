"""Checks of paths that users give; numpy is not loaded for them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError


def path_of(name: str, value: Any) -> Path:
    """Return a path; raises InputError for what is neither a text nor a path."""
    if not isinstance(value, (str, Path)):
        raise InputError(f"{name} = {value!r}: give the path as text or as a pathlib.Path")
    return Path(value)


def check_usable(path: Path) -> Path:
    """Return a path; raises InputError for one that nothing can have: a name too long, a null byte."""
    try:
        path.lstat()
    except ValueError as error:
        raise InputError(f"{str(path)!r} is no usable path ({error}): check it") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"{str(path)!r} is no usable path ({error.strerror}; most systems allow 255 bytes): check it"
            ) from error
    return path


def link_target(path: Path) -> str:
    """Return where a link leads in the end, as a path from the current folder; absolute if ``path`` is."""
    real = os.path.realpath(path)
    return real if path.is_absolute() else os.path.relpath(real)
