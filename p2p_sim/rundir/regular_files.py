"""Reading files of a run directory that anybody may have made: regular files only, and JSON within limits.

A FIFO would make a reader wait for ever, and a link leads to what is not the run's.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.paths import check_usable

MOST_BYTES = 1 << 27
"""Bytes of the largest JSON file that is read: what a trace of some 400,000 files notes."""

DEEPEST = 32
"""Levels of lists and objects in JSON; those of a run have at most 8."""

RESTORE = "restore it, or run the protocol again"

_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_LEAST, _GREATEST = -(1 << 63), (1 << 64) - 1
FILE_TYPES = {
    stat.S_IFDIR: "a folder", stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device", stat.S_IFIFO: "a FIFO",
}  # fmt: skip


def find(root: Path, name: str, advice: str = RESTORE) -> Path | None:
    """Return the path of a file in a folder; None if there is nothing.

    ``name``: its path below the folder, with slashes.  Raises InputError for anything but a regular file, and for a
    link on the way to it; the folder itself may be one.
    """
    place = check_usable(root)
    parts = name.split("/")
    for part in parts:
        place /= part
        try:
            kind = stat.S_IFMT(place.lstat().st_mode)
        except OSError as error:
            if error.errno in _NOTHING:
                return None
            raise
        if kind == stat.S_IFLNK:
            raise InputError(
                f"{str(place)!r} is damaged: it is a link, and a run directory has none; {advice}"
            )
    if kind != stat.S_IFREG:
        what = FILE_TYPES.get(kind, "something else")
        raise InputError(f"{str(place)!r} is damaged: it is {what}, not a regular file; {advice}")
    return place


def names_in(root: Path, name: str) -> list[str]:
    """Return the names in a folder below ``root``, sorted; empty if there is none.  Raises InputError for a link."""
    place = root / name
    if place.is_symlink():
        raise InputError(f"{str(place)!r} is damaged: it is a link, and a run directory has none; {RESTORE}")
    return sorted(file.name for file in place.iterdir()) if place.is_dir() else []


def octets(root: Path, name: str, advice: str = RESTORE) -> bytes | None:
    """Return what a small file holds; None if there is none.  Raises InputError as ``find``, and for a large one."""
    place = find(root, name, advice)
    if place is None:
        return None
    # what replaced it just now is not waited for, and not followed
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as stream:
        about = os.fstat(descriptor)
        if about.st_size > MOST_BYTES or not stat.S_ISREG(about.st_mode):
            raise InputError(
                f"{str(place)!r} is damaged: it has {about.st_size:,} bytes, and at most {MOST_BYTES:,} are read; "
                f"{advice}"
            )
        return stream.read(MOST_BYTES)


def json_of(root: Path, name: str, advice: str = RESTORE) -> dict[str, Any] | None:
    """Return the JSON object that a file holds; None if there is no file.

    Raises InputError as ``octets``, and for a file that holds something else, or values that no file of a run has.
    """
    text = octets(root, name, advice)
    return None if text is None else object_in(root / name, text, advice)


def object_in(file: Path, text: bytes, advice: str = RESTORE) -> dict[str, Any]:
    """Return the JSON object that is in a text; raises InputError naming the file."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(file)!r} is damaged: it is no JSON ({error}); {advice}") from error
    if type(found) is not dict:
        raise InputError(f"{str(file)!r} is damaged: it holds {short(found)}, not an object; {advice}")
    if (beyond := _beyond(found)) is not None:
        where, value, allowed = beyond
        raise InputError(f"{str(file)!r} is damaged: {where} = {short(value)}: must be {allowed}; {advice}")
    return found


def _beyond(content: Any) -> tuple[str, Any, str] | None:
    """Return the first value that no file of a run has, with its place and what is allowed there; None if all fit."""
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), content)]
    while waiting:
        path, value = waiting.pop()
        kind = type(value)
        if kind in (dict, list):
            if len(path) >= DEEPEST:
                return place_of(path), "...", f"nested in at most {DEEPEST} levels"
            inner = value.items() if kind is dict else enumerate(value)
            for key, each in inner:
                if isinstance(key, str) and not _is_text(key):
                    return place_of((*path, key)), each, "named by Unicode text"
                waiting.append(((*path, key), each))
        elif kind is int and not _LEAST <= value <= _GREATEST:
            return place_of(path), value, "an integer of 64 bits"
        elif kind is float and not math.isfinite(value):
            return place_of(path), value, "a finite number"
        elif kind is str and not _is_text(value):
            return place_of(path), value, "Unicode text"
    return None


def _is_text(value: str) -> bool:
    """Whether a text can be written in UTF-8: it has no lone surrogates."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def place_of(path: tuple[Any, ...]) -> str:
    """Return the place of a value in JSON, such as ``files.0.rows``."""
    text = ".".join(map(str, path))
    return text if len(text) <= 120 else f"{text[:117]}..."


def short(value: Any) -> str:
    """Return a value as a text of at most 60 letters."""
    text = repr(value if type(value) not in (dict, list) else _shallow(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shallow(value: Any) -> Any:
    """Return the beginning of a list or an object without what lies deeper, which can be deep and large."""
    deep: dict[type, Any] = {dict: {}, list: []}
    if isinstance(value, Mapping):
        return {key: deep.get(type(each), each) for key, each in list(value.items())[:5]}
    return [deep.get(type(each), each) for each in value[:5]]
