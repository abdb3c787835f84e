"""Files that parameters name, kept with 16 digits of their SHA-256: a run means the file as it was."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path

from p2p_sim.core import InputError


def pinned(name: str, path: str, forms: str) -> str:
    """Return PATH@DIGEST for the path of a .csv file, other text as it is; ``forms``: what may be given instead.

    Raises InputError, which begins with the parameter's ``name``, for a file that cannot be read.
    """
    if not path.endswith(".csv"):
        return path
    return f"{path}@{hashlib.sha256(_content(name, path, forms)).hexdigest()[:16]}"


def path_in(spec: str) -> str:
    """Return the path of a pinned file; empty for other text."""
    path = spec.rpartition("@")[0]
    return path if path.endswith(".csv") else ""


def lines_of(name: str, spec: str, forms: str) -> tuple[str, list[str], Iterator[tuple[str, list[str]]]]:
    """Return what to call a pinned file, its first line, and its further ones, each with what to call it.

    Raises InputError if it is not what it was, is no CSV in UTF-8, or has a line of another length.
    """
    path, _, digest = spec.rpartition("@")
    content, where = _content(name, path, forms), f"{name} = {path!r}"
    if hashlib.sha256(content).hexdigest()[:16] != digest:
        raise InputError(
            f"{where}: the file has changed since; its SHA-256 began with {digest}: give that file"
        )
    try:
        lines = list(csv.reader(content.decode("utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{where}: cannot be read as CSV in UTF-8: {error}") from None
    header = [word.strip() for word in lines[0]] if lines else []
    return where, header, _further(where, header, lines)


def _further(where: str, header: list[str], lines: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    for number, line in enumerate(lines[1:], 2):
        if line and len(line) != len(header):
            raise InputError(
                f"{where}, line {number}: has {len(line)} values, the first line names {len(header)} columns"
            )
        if line:
            yield f"{where}, line {number}", [word.strip() for word in line]


def _content(name: str, path: str, forms: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{name} = {path!r}: cannot be read ({why}); give {forms}") from None
