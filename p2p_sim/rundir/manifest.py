"""The manifest of a trace, ``messages/manifest.json``: its message kinds, its files, and whether it is complete."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.fixed_point import FixedPoint
from p2p_sim.core.ledger import Count
from p2p_sim.core.message import FieldType, Message, Vector, field_dtype, field_shape, fixed_point
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import integrity, parquet_columns, regular_files
from p2p_sim.rundir.regular_files import MOST_BYTES, RESTORE, short

FORMAT = 2
NAME = "manifest.json"

Counts = Mapping[tuple[str, int], Count]


def begun(
    protocol: Protocol, level: str, users: int | None, token: str, origin: str | None = None
) -> dict[str, Any]:
    """Return the manifest of an empty trace; ``origin``: where the seed came from."""
    return {
        "format": FORMAT, "complete": False, "token": token, "level": level, "users": users,
        "protocol": f"{type(protocol).__module__}:{type(protocol).__name__}", "kinds": kinds_of(protocol),
        "seed_source": origin, "counts": [], "files": [],
    }  # fmt: skip


def ended(manifest: Mapping[str, Any], counts: Counts, files: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest of a complete trace."""
    in_order = sorted(files, key=lambda entry: (entry["kind"], entry["round"], entry["file"]))
    rest = {name: value for name, value in manifest.items() if name != "token"}
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


def write(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, completely or not at all."""
    text = text_of(manifest)
    if len(text) > MOST_BYTES:
        raise InputError(
            f"the trace has {len(manifest['files']):,} files, more than are read again: run with fewer shards, or with "
            "trace='sample=N'"
        )
    fresh = folder / f"{NAME}.tmp"
    fresh.write_text(text)
    fresh.replace(folder / NAME)


def text_of(manifest: Mapping[str, Any]) -> str:
    """Return the text of the manifest."""
    return json.dumps(integrity.with_checksum(manifest), indent=1) + "\n"


def _of_this_format(folder: Path) -> dict[str, Any]:
    """Return what a manifest holds; raises InputError if there is none, or it has another format."""
    file = folder / NAME
    parquet_columns.check_name(folder)
    manifest = regular_files.json_of(folder, NAME)
    if manifest is None:
        raise InputError(f"{str(folder)!r} holds no trace: it has no {NAME}")
    if type(manifest.get("format")) is not int:
        raise InputError(f"{str(file)!r} is damaged: it does not say which format it has; {RESTORE}")
    if manifest["format"] != FORMAT:
        raise InputError(
            f"{str(file)!r} has format {manifest['format']}; this version reads format {FORMAT}: run the protocol "
            "again, or read it with the version that wrote it"
        )
    return manifest


def check_format(folder: Path) -> None:
    """Raise InputError unless a folder has a manifest of this format, whatever else it holds."""
    _of_this_format(folder)


def read(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder ``messages``; raises InputError if there is none, or it is not as declared."""
    from p2p_sim.rundir.json_declarations import ManifestFile, check

    file, manifest = folder / NAME, _of_this_format(folder)
    check(file, ManifestFile, manifest)
    if integrity.was_altered(manifest):
        raise InputError(
            f"{str(file)!r} is damaged or was altered since it was written: its checksum does not match; {RESTORE}"
        )
    if (wrong := _contradiction(manifest)) is not None:
        raise InputError(f"{str(file)!r} is damaged: {wrong}; {RESTORE}")
    return integrity.bare(manifest)


def _contradiction(manifest: Mapping[str, Any]) -> str | None:
    """Return where a manifest contradicts itself, in words; None if it does not."""
    kinds = manifest["kinds"]
    for part in ("counts", "files"):
        for place, row in enumerate(manifest[part]):
            if row["kind"] not in kinds:
                return (
                    f"{part}.{place}.kind = {short(row['kind'])}: must be one of its kinds, {sorted(kinds)}"
                )
    names = [entry["file"] for entry in manifest["files"]]
    name, times = max(Counter(names).items(), key=lambda each: each[1], default=("", 0))
    if times > 1:
        return f"files: {name!r} is there twice"
    try:
        declared(kinds)
    except (ProtocolError, InputError) as error:
        return f"kinds: {error}"
    for kind, name, about in ((k, n, f) for k, entry in kinds.items() for n, f in entry["fields"].items()):
        if (fixed := fixed_point_of(about)) is not None and fixed.dtype.name != about["dtype"]:
            return f"kinds.{kind}.fields.{name}.dtype = {about['dtype']}: must be {fixed.dtype.name} for its range"
    if not manifest["complete"]:
        return None
    held: dict[tuple[str, int], int] = {}
    for entry in manifest["files"]:
        held[entry["kind"], entry["round"]] = held.get((entry["kind"], entry["round"]), 0) + entry["rows"]
    counts = rows_as_counts(manifest["counts"])
    for (kind, round), rows in held.items():
        most = counts.get((kind, round), Count()).messages
        if rows > most:
            return (
                f"files of {kind} in round {round} have {rows:,} rows, and counts tells of {most:,} messages"
            )
    return None


def kinds_of(protocol: Protocol) -> dict[str, dict[str, Any]]:
    """Return, by kind, its sender and recipient role, text, sealed_for, layers, bytes on the wire, and fields.

    A field is its ``dtype`` and the ``length`` of a vector, None for a single value.  Fixed-point numbers have also
    ``fixed_point``, with ``resolution``, ``low`` and ``high``; the ``dtype`` is that of the multiples.
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
            "fields": {name: _field_entry(field, sizes) for name, field in message.fields.items()},
        }
        for kind, message in protocol.messages().items()
    }


def _field_entry(field: FieldType, sizes: dict[str, int]) -> dict[str, Any]:
    fixed = fixed_point(field)
    about = {"dtype": field_dtype(field).name, "length": next(iter(field_shape(field, sizes)), None)}
    return about if fixed is None else about | {"fixed_point": asdict(fixed)}


def fixed_point_of(about: Mapping[str, Any]) -> FixedPoint | None:
    """Return how the numbers of a field of the manifest are rounded; None for a field of integers."""
    entry = about.get("fixed_point")
    return None if entry is None else FixedPoint(entry["resolution"], entry["low"], entry["high"])


def declared(kinds: Mapping[str, Any]) -> dict[str, Message]:
    """Return the message kinds that ``manifest["kinds"]`` describes, in its order."""
    found = {}
    for kind, about in kinds.items():
        fields = {name: _field(field) for name, field in about["fields"].items()}
        message = Message(
            about["sender"], about["recipient"], about["text"], sealed_for=about["sealed_for"],
            layers=tuple(about.get("layers", ())), **fields,
        )  # fmt: skip
        message.kind = kind
        found[kind] = message
    return found


def _field(about: Mapping[str, Any]) -> Any:
    inner = fixed_point_of(about) or np.dtype(about["dtype"])
    return inner if about["length"] is None else Vector(inner, about["length"])
