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


def write(place: Path, content: str | bytes) -> None:
    """Write a file under another name, and then give it its own; what was there is replaced.

    Raises InputError if the place cannot be written.
    """
    fresh = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
        fresh.replace(place)
    except OSError as error:
        raise InputError(
            f"{str(place)!r} cannot be written ({error.strerror}): choose another place"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
