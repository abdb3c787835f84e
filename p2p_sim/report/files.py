"""Files of text or bytes, written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from p2p_sim.core.errors import InputError


def check(name: str, option: str = "--out") -> Path:
    """Return the path of a file that is to be written; raises InputError naming the option if it cannot be one."""
    place = Path(name)
    if not name or place.is_dir() or not place.absolute().parent.is_dir():
        raise InputError(f"{option} {name!r}: give a file in a folder that exists")
    return place


def write(place: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file under another name, and then give it its own; what was there is replaced.

    ``private``: the owner alone may read it.  Raises InputError if the place cannot be written.
    """
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        fresh.unlink(missing_ok=True)  # left behind by a process of this number
        with open(fresh, "wb", opener=_owner_s if private else None) as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        fresh.replace(place)
    except OSError as error:
        raise InputError(
            f"{str(place)!r} cannot be written ({error.strerror}): choose another place"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def _owner_s(name: str, flags: int) -> int:
    """Open a new file that nobody else ever could open."""
    return os.open(name, flags | os.O_EXCL, 0o600)
