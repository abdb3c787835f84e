"""The manifest of a trace, ``messages/manifest.json``: what its files hold, and whether they are all there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import field_dtype, field_shape
from p2p_sim.trace import shape, sums, tables

FORMAT = 2
"""1: address columns that follow from a row's place are left out; 2: or null, if other files of the kind store them."""
NAME = "manifest.json"

Counts = Mapping[tuple[str, int], Count]


def begun(
    protocol: Any, level: str, users: int | None, token: str, origin: str | None = None
) -> dict[str, Any]:
    """Return the manifest of a trace of which nothing is there yet; ``origin``: where the seed came from."""
    return {
        "format": FORMAT, "complete": False, "token": token, "level": level, "users": users,
        "protocol": f"{type(protocol).__module__}:{type(protocol).__name__}", "kinds": kinds_of(protocol),
        "seed_source": origin, "counts": [], "files": [],
    }  # fmt: skip


def ended(told: Mapping[str, Any], counts: Counts, files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest of a whole trace."""
    in_order = sorted(files, key=lambda entry: (entry["kind"], entry["round"], entry["file"]))
    rest = {name: value for name, value in told.items() if name != "token"}
    return {**rest, "complete": True, "counts": counts_as_rows(counts), "files": in_order}


def counts_as_rows(counts: Counts) -> list[dict[str, Any]]:
    """Return counts as JSON values, by round."""
    return [
        {"kind": kind, "round": round, "messages": c.messages, "travelled": c.travelled, "nbytes": c.nbytes}
        for (kind, round), c in sorted(counts.items(), key=lambda item: item[0][::-1])
    ]


def rows_as_counts(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], Count]:
    """Return what ``counts_as_rows`` was given."""
    return {(c["kind"], c["round"]): Count(c["messages"], c["travelled"], c["nbytes"]) for c in rows}


def write(folder: Path, told: Mapping[str, Any]) -> None:
    """Write the manifest, whole."""
    fresh = folder / f"{NAME}.tmp"
    fresh.write_text(text_of(told))
    fresh.replace(folder / NAME)


def text_of(told: Mapping[str, Any]) -> str:
    """Return the text of the manifest."""
    return json.dumps(sums.with_checksum(told), indent=1) + "\n"


def read(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder ``messages``; raises InputError if there is none or it cannot be read."""
    file = folder / NAME
    tables.check_name(folder)
    if not file.is_file():
        raise InputError(f"{str(folder)!r} holds no trace: it has no {NAME}")
    try:
        told: dict[str, Any] = json.loads(file.read_text())
        newer = told["format"] > FORMAT
    except (ValueError, KeyError, TypeError, OSError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(file)!r} is damaged ({what}): run the protocol again") from error
    if newer:
        raise InputError(
            f"{str(file)!r} has format {told['format']}; this version reads up to {FORMAT}: read it with the version "
            "that wrote it, or a newer one"
        )
    try:
        shape.check(told)
        if sums.was_altered(told):
            raise ValueError("its checksum is that of something else")
    except ValueError as error:
        raise InputError(
            f"{str(file)!r} is damaged or was altered since it was written: {error}; restore it, or run the protocol "
            "again"
        ) from error
    return sums.bare(told)


def kinds_of(protocol: Any) -> dict[str, dict[str, Any]]:
    """Return, by kind, its sender and recipient role, text, sealed_for, layers, bytes on the wire, and fields.

    A field is its ``dtype`` and the ``length`` of a vector, None for a single value.
    """
    sizes = protocol.vector_lengths()
    return {
        kind: {
            "sender": message.sender,
            "recipient": message.recipient,
            "text": message.text,
            "sealed_for": message.sealed_for,
            "layers": list(message.layers),
            "nbytes": message.nbytes(sizes),
            "fields": {
                name: {
                    "dtype": field_dtype(field).name,
                    "length": next(iter(field_shape(field, sizes)), None),
                }
                for name, field in message.fields.items()
            },
        }
        for kind, message in protocol.messages().items()
    }
