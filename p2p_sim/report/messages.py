"""Messages on paper: slices of a run as JSON values, text, CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from p2p_sim.core.message import HEADER_BYTES, USER
from p2p_sim.report import console, layout
from p2p_sim.report.terminal import visible
from p2p_sim.trace import tables as arrow_tables
from p2p_sim.trace.slices import Slice

_ADDRESS = ("round", "sender", "recipient", "seq", "nbytes")
_LONGEST = 8


def tables(part: Slice, offset: int = 0) -> list[dict[str, Any]]:
    """Return a slice as JSON values, a table a kind; ``offset``: how many rows of each come before."""
    return [_table_of(part, kind, names, offset) for kind, names in part.ids().items()]


def _table_of(part: Slice, kind: str, names: list[str], offset: int) -> dict[str, Any]:
    columns, fields = part.kinds[kind], part.fields(kind)
    values = {name: column.tolist() for name, column in columns.items()}
    readable = values.get("readable", [True] * len(names))
    rows = [
        {"id": names[i]} | {name: values[name][i] for name in _ADDRESS}
        | {"readable": readable[i], "fields": {f: values[f][i] for f in fields} if readable[i] else None}
        for i in range(len(names))
    ]  # fmt: skip
    sender, recipient = part.roles[kind]
    return {
        "kind": kind, "text": part.texts[kind], "sender": sender, "recipient": recipient,
        "sealed_for": part.sealed[kind], "layers": list(part.layers[kind]), "fields": fields,
        **counted(part.total[kind], rows, offset),
    }  # fmt: skip


def counted(seen: int, rows: list[dict[str, Any]], offset: int = 0) -> dict[str, Any]:
    """Return rows of a table with how many there are and how many are left out."""
    return {"seen": seen, "offset": offset, "shown": len(rows), "left_out": seen - len(rows), "rows": rows}


def limited(columns: Mapping[str, Any], limit: int, offset: int = 0) -> dict[str, Any]:
    """Return some rows of a table, and how many there are."""
    values = [column[offset : offset + limit].tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    return counted(len(next(iter(columns.values()))), rows, offset)


def of_users(columns: Mapping[str, Any], name: str, users: Any) -> dict[str, Any]:
    """Return the rows in which a column names one of some users (ids); None: all."""
    mine = slice(None) if users is None else np.isin(columns[name], users)
    return {key: column[mine] for key, column in columns.items()}


def draws(drawn: Mapping[str, Any], users: Any, limit: int, offset: int = 0) -> dict[str, Any]:
    """Return draws as rows: stream, party, slot, value; ``users``: whose, beside servers'; None: all."""
    seen = 0
    rows: list[dict[str, Any]] = []
    for stream, columns in drawn.items():
        own = of_users(columns, "party", users if stream.startswith(f"{USER}/") else None)
        here = limited(own, max(0, limit - len(rows)), max(0, offset - seen))
        seen += here["seen"]
        rows += [{"stream": stream} | row for row in here["rows"]]
    return counted(seen, rows, offset)


def cuts(told: Mapping[str, Any]) -> list[str]:
    """Return what is not shown, in words."""
    found = list(told["notes"])
    found += [f"{part['kind']}: {said(part)}" for part in told["messages"] if part["left_out"]]
    for name in ("inputs", "draws"):
        if told.get(name, {}).get("seen"):
            found.append(
                f"own {name}: {told[name]['seen']:,} rows, which are not messages; --format json has them"
            )
    return found


def said(part: Mapping[str, Any]) -> str:
    """Say how many rows are shown, and how to see the others."""
    shown, seen, first = part["shown"], part["seen"], part["offset"] + 1
    if not part["left_out"]:
        return f"{shown:,} of {seen:,} shown"
    if not part["offset"]:
        return f"{shown:,} of {seen:,} shown; --limit shows the other {part['left_out']:,}"
    span = f"{first:,} to {first + shown - 1:,}" if shown else "none"
    return f"{span} of {seen:,} shown; --limit and --offset show the others"


def as_csv(told: Mapping[str, Any]) -> str:
    """Lay out all messages as one table, with the fields of all kinds; what cannot be read is empty."""
    return csv_of(told["messages"])


def csv_of(
    parts: Sequence[Mapping[str, Any]], lead: Sequence[str] = (), told: Sequence[Sequence[Any]] | None = None
) -> str:
    """Lay out tables of messages as one; ``lead``: names of first columns, ``told``: what they say of each table."""
    names = list(dict.fromkeys(name for part in parts for name in part["fields"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*lead, "kind", "sender_role", "recipient_role", *_ADDRESS, "readable", *names])
    for number, part in enumerate(parts):
        first = () if told is None else told[number]
        for row in part["rows"]:
            fields = row["fields"] or {}
            head = [
                *first,
                part["kind"],
                part["sender"],
                part["recipient"],
                *(row[name] for name in _ADDRESS),
            ]
            writer.writerow([*head, row["readable"], *(fields.get(name, "") for name in names)])
    return out.getvalue()


def parquet(part: Slice) -> bytes:
    """Return all messages as one Parquet file: columns as in CSV, null what a kind has not or nobody can read.

    A field that kinds have with different types is called KIND.FIELD.
    """
    import pyarrow as pa
    from pyarrow import parquet as files

    types: dict[str, set[Any]] = {}
    for kind, columns in part.kinds.items():
        for name in part.fields(kind):
            types.setdefault(name, set()).add((columns[name].dtype, columns[name].shape[1:]))
    joined = []
    for kind, columns in part.kinds.items():
        size = len(columns["round"])
        readable = columns.get("readable", np.ones(size, np.bool_))
        found = {name: columns[name] for name in _ADDRESS} | {"readable": readable}
        called = {name: name if len(types[name]) == 1 else f"{kind}.{name}" for name in part.fields(kind)}
        found |= {new: columns[name] for name, new in called.items()}
        table = arrow_tables.arrow(found, dict.fromkeys(called.values(), ~readable))
        for name, value in zip(
            ("recipient_role", "sender_role", "kind"), (*part.roles[kind][::-1], kind), strict=True
        ):
            table = table.add_column(0, name, pa.repeat(value, size))
        joined.append(table)
    sink = pa.BufferOutputStream()
    files.write_table(pa.concat_tables(joined, promote_options="default"), sink, compression="zstd")
    found_bytes: bytes = sink.getvalue().to_pybytes()
    return found_bytes


def as_text(told: Mapping[str, Any]) -> str:
    """Lay out messages, inputs and draws as tables."""
    what = (
        "every field shown"
        if told["view"] is None
        else f"as {told['coalition']} saw it, channels {told['channels']}"
    )
    blocks = [[f"{told['run']} ({told['protocol']}), {what}", *(f"note: {note}" for note in told["notes"])]]
    blocks += [lines(part) for part in told["messages"]]
    for name, title in (("inputs", "Own inputs"), ("draws", "Own draws")):
        if name in told:
            blocks.append([title, *lines_of(told[name])])
    if "unknown" in told:
        blocks.append([f"Own inputs and draws are not shown: {told['unknown']}"])
    return "\n\n".join("\n".join(map(visible, block)) for block in blocks) + "\n"


FORMATS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "table": as_text, "json": console.as_json, "csv": as_csv
}  # fmt: skip
"""What writes a document of messages, by the name of the format."""


def lines(part: Mapping[str, Any]) -> list[str]:
    """Lay out the messages of one kind."""
    route = f"{part['kind']}, {part['sender']} to {part['recipient']}: {part['text']}"
    rows = [_message_row(part, row) for row in part["rows"]]
    return [route, *_table([*_ADDRESS, *part["fields"]], rows, part)]


def lines_of(rows: Mapping[str, Any]) -> list[str]:
    """Lay out a table of other rows."""
    cells = [[cell(value) for value in row.values()] for row in rows["rows"]]
    return _table(list(rows["rows"][0]) if cells else [], cells, rows)


def sides(difference: Mapping[str, Any], first: str, second: str) -> list[str]:
    """Lay out a message that differs, as it is in either of two runs, which are called so."""
    found = []
    for name, fields in ((first, difference["first"]), (second, difference["second"])):
        pairs = [] if fields is None else [f"{key} = {cell(value)}" for key, value in fields.items()]
        found.append(f"  {name}: {'not there' if fields is None else ', '.join(pairs) or 'there'}")
    return found


def _message_row(part: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    names = {end: part[end] for end in ("sender", "recipient") if part[end] != USER}
    cells = [str(names.get(name, row[name])) for name in _ADDRESS]
    if row["fields"] is not None:
        return cells + [cell(value) for value in row["fields"].values()]
    sealed = f"sealed, {max(row['nbytes'] - HEADER_BYTES, 0)} bytes"
    return cells + [sealed if part["sealed_for"] else "not readable"] * len(part["fields"])


def _table(names: list[str], rows: list[list[str]], part: Mapping[str, Any]) -> list[str]:
    if not rows:
        return ["none" if not part["left_out"] else said(part)]
    right = [all(row[i].lstrip("-").isdigit() for row in rows) for i in range(len(names))]
    widths = [max(len(row[i]) for row in rows) if right[i] else 0 for i in range(len(names))]
    padded = [[text.rjust(width) for text, width in zip(row, widths, strict=True)] for row in rows]
    return [*layout.table(names, padded).splitlines(), said(part)]


def cell(value: Any) -> str:
    """Return one value: of long lists the first few."""
    if isinstance(value, list):
        shown = ", ".join(map(cell, value[:_LONGEST]))
        return f"[{shown}]" if len(value) <= _LONGEST else f"[{shown}, ... {len(value):,} values]"
    return str(value).lower() if isinstance(value, bool) else str(value)
