"""The manifest of a trace, ``messages/manifest.json``: its message kinds, its files, and whether it is complete."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.deliveries import Count
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import Message, Vector, field_dtype, field_shape
from p2p_sim.core.protocol import Protocol
from p2p_sim.rundir import integrity, parquet_columns
from p2p_sim.rundir.parquet_columns import ADDRESSES, STORED

_Fits = Callable[[Any], bool]


def _number(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _text(value: Any) -> bool:
    return type(value) is str


def _or_none(fits: _Fits) -> _Fits:
    return lambda value: value is None or fits(value)


def _dtype(value: Any) -> bool:
    return value in ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))


def _rule(value: Any) -> bool:
    """Return whether a value is a rule for an address column; see ``parquet_columns.narrowest_rule``."""
    if type(value) is not dict or len(value) != 1:
        return bool(value == STORED)
    (name, argument), whole = next(iter(value.items())), type(next(iter(value.values()))) is int
    copied = type(argument) is list and len(argument) == 2 and all(map(_text, argument))
    return {"all": whole, "from": whole, "as": copied}.get(name, False)


_MANIFEST: dict[str, _Fits] = {
    "complete": lambda value: type(value) is bool, "level": _text, "users": _or_none(_number), "protocol": _text,
}  # fmt: skip
_KIND: dict[str, _Fits] = {
    "sender": _text, "recipient": _text, "text": _text, "sealed_for": _or_none(_text), "nbytes": _number,
}  # fmt: skip
_FIELD: dict[str, _Fits] = {"dtype": _dtype, "length": _or_none(_number)}
_COUNT: dict[str, _Fits] = dict.fromkeys(("round", "messages", "travelled", "nbytes"), _number)
_FILE: dict[str, _Fits] = {
    "file": _text,
    "round": _number,
    "rows": _number,
    **dict.fromkeys(ADDRESSES, _rule),
}


def check(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError unless this is a manifest."""
    _fields("", manifest, _MANIFEST)
    for kind, about in _named("kinds", manifest).items():
        _fields(f"kinds: {kind}: ", about, _KIND)
        for name, field in _named("fields", about).items():
            _fields(f"kinds: {kind}: {name}: ", field, _FIELD)
    for what, shape in (("counts", _COUNT), ("files", _FILE)):
        rows = manifest.get(what)
        if type(rows) is not list:
            raise ValueError(f"{what} is no list")
        for row in rows:
            _fields(f"{what}: ", row, shape)
            if not _text(row.get("kind")) or row["kind"] not in manifest["kinds"]:
                raise ValueError(f"{what}: kind = {row.get('kind')!r}")


def fits(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> bool:
    """Return whether a value can be a manifest's entry of a file."""
    known = _text(entry.get("kind")) and entry["kind"] in kinds
    return known and all(good(entry.get(name)) for name, good in _FILE.items())


def _fields(where: str, values: Any, shape: Mapping[str, _Fits]) -> None:
    if not isinstance(values, Mapping):
        raise ValueError(f"{where}no values by name")
    for name, good in shape.items():
        if name not in values or not good(values[name]):
            raise ValueError(f"{where}{name} = {str(values.get(name))[:60]!r}")


def _named(name: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    found = values.get(name)
    if not isinstance(found, Mapping):
        raise ValueError(f"{name} is not values by name")
    return found


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
    fresh = folder / f"{NAME}.tmp"
    fresh.write_text(text_of(manifest))
    fresh.replace(folder / NAME)


def text_of(manifest: Mapping[str, Any]) -> str:
    """Return the text of the manifest."""
    return json.dumps(integrity.with_checksum(manifest), indent=1) + "\n"


def read(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder ``messages``; raises InputError if there is none or it cannot be read."""
    file = folder / NAME
    parquet_columns.check_name(folder)
    if not file.is_file():
        raise InputError(f"{str(folder)!r} holds no trace: it has no {NAME}")
    try:
        manifest: dict[str, Any] = json.loads(file.read_text())
        other = manifest["format"] != FORMAT
    except (ValueError, KeyError, TypeError, OSError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{str(file)!r} is damaged ({what}): run the protocol again") from error
    if other:
        raise InputError(
            f"{str(file)!r} has format {manifest['format']}; this version reads format {FORMAT}: run the protocol "
            "again, or read it with the version that wrote it"
        )
    try:
        check(manifest)
        if integrity.was_altered(manifest):
            raise ValueError("its checksum does not match")
    except ValueError as error:
        raise InputError(
            f"{str(file)!r} is damaged or was altered since it was written: {error}; restore it, or run the protocol "
            "again"
        ) from error
    return integrity.bare(manifest)


def kinds_of(protocol: Protocol) -> dict[str, dict[str, Any]]:
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
    dtype = np.dtype(about["dtype"])
    return dtype if about["length"] is None else Vector(dtype, about["length"])
