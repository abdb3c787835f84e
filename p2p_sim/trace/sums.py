"""Checksums of the files of a run directory, so that an altered file is found and named.

Those of the files of messages are in the manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError

CHECKSUM = "checksum"
"""The field of a JSON object that holds the SHA-256 of all others."""
MANIFEST = "messages/manifest.json"
_FILES = ("population.parquet", "graph.parquet", "outputs/**/*.parquet", "faults/**/*.parquet", MANIFEST)


def of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file but messages and run.json, by its path in the run directory."""
    files = sorted(file for pattern in _FILES for file in folder.glob(pattern))
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}


def check(folder: Path, told: Mapping[str, str], part: str) -> None:
    """Check the files of ``part``, a folder or a file, as run.json tells of them; earlier versions told nothing.

    Raises InputError for a file that is missing or was altered.
    """
    for name, expected in told.items():
        if name != part and not name.startswith(f"{part}/"):
            continue
        file = folder / name
        if not file.is_file():
            raise InputError(f"{str(file)!r} is missing; restore it, or run the protocol again")
        if (found := sha256(file)) != expected:
            raise InputError(
                f"{str(file)!r} is damaged: its SHA-256 is {found}, not {expected}; restore it, or run the protocol "
                "again"
            )


def with_checksum(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object as it will be read, with the checksum of its fields."""
    plain: dict[str, Any] = json.loads(json.dumps(bare(told), allow_nan=False))
    return plain | {CHECKSUM: _of_fields(plain)}


def was_altered(told: Mapping[str, Any]) -> bool:
    """Whether a JSON object holds something else than its checksum was made of; earlier versions wrote none."""
    return CHECKSUM in told and told[CHECKSUM] != _of_fields(bare(told))


def bare(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object without its checksum."""
    return {name: value for name, value in told.items() if name != CHECKSUM}


def _of_fields(told: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
