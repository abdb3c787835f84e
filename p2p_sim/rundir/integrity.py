"""The integrity of a run directory: checksums, a log of the files that a live run finished, errors that name damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from p2p_sim.core.errors import InputError
from p2p_sim.rundir import regular_files

_Part = TypeVar("_Part")


def guarded(path: Path, read: Callable[[], _Part]) -> _Part:
    """Return what ``read`` returns; raises InputError naming ``path`` if a file is damaged."""
    try:
        return read()
    except InputError:
        raise
    except PermissionError as error:
        file = str(error.filename or path)
        raise InputError(
            f"{file!r} cannot be read (permission denied): ask its owner for a copy, or to let you read it"
        ) from error
    except MemoryError as error:
        raise InputError(
            f"{str(path)!r} does not fit into the memory that this process may have: ask for less of it, or read it on "
            "a larger machine"
        ) from error
    except Exception as error:  # whatever a damaged file provokes
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(path)!r} is damaged ({what}): run the protocol again") from error


CHECKSUM = "checksum"
"""The field of a JSON object that holds the SHA-256 of all other fields."""
MANIFEST = "messages/manifest.json"
_CHECKED = (
    "population.parquet", "canaries.parquet", "graph.parquet", "outputs/**/*.parquet", "faults/**/*.parquet", MANIFEST,
)  # fmt: skip


def of(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file except messages and run.json, by its path in the run directory."""
    files = sorted(file for pattern in _CHECKED for file in folder.glob(pattern))
    return {file.relative_to(folder).as_posix(): sha256(file) for file in files}


def check(folder: Path, checksums: Mapping[str, str], part: str) -> None:
    """Check the files of ``part``, a folder or a file, against the checksums in run.json.

    Raises InputError for a file that is missing or was altered.
    """
    for name, expected in checksums.items():
        if name != part and not name.startswith(f"{part}/"):
            continue
        file = regular_files.find(folder, name)
        if file is None:
            raise InputError(f"{str(folder / name)!r} is missing; restore it, or run the protocol again")
        if (found := sha256(file)) != expected:
            raise InputError(
                f"{str(file)!r} is damaged: its SHA-256 is {found}, not {expected}; restore it, or run the protocol "
                "again"
            )


def with_checksum(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object as it is read back, with the checksum of its fields."""
    fields: dict[str, Any] = json.loads(json.dumps(bare(value), allow_nan=False))
    return fields | {CHECKSUM: _of_fields(fields)}


def was_altered(fields: Mapping[str, Any]) -> bool:
    """Whether a JSON object differs from what its checksum was made of; who alters one on purpose takes that out."""
    return CHECKSUM in fields and fields[CHECKSUM] != _of_fields(bare(fields))


def bare(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object without its checksum."""
    return {name: field for name, field in value.items() if name != CHECKSUM}


def _of_fields(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_FILES = ".site-*.jsonl"


def add(root: Path, site: int, entry: Mapping[str, Any]) -> None:
    """Add the entry of a finished file to the log of its site."""
    with (root / f".site-{site:05d}.jsonl").open("a") as stream:
        stream.write(json.dumps(with_checksum(entry)) + "\n")


def read(root: Path) -> dict[str, list[dict[str, Any]]]:
    """Return what was noted of each file, the last at the end.

    Raises InputError naming the log if it was altered, or is not as declared.
    """
    from p2p_sim.rundir import json_declarations

    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted(root.glob(_FILES)):
        *lines, _being_written = (regular_files.octets(root, file.name) or b"").split(b"\n")
        for line in lines:
            try:
                entry = regular_files.object_in(file, line)
                json_declarations.check(file, json_declarations.Noted, entry)
                if was_altered(entry):
                    raise InputError(f"the checksum of {entry['file']!r} does not match")
            except InputError as error:
                raise InputError(
                    f"the trace is damaged: {str(file)!r} was altered since it was written ({error}); "
                    f"{regular_files.RESTORE}"
                ) from error
            found.setdefault(entry["file"], []).append(bare(entry))
    return found


def forget(root: Path) -> None:
    """Remove the logs of a complete trace."""
    for file in root.glob(_FILES):
        file.unlink(missing_ok=True)
