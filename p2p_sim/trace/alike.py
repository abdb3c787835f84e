"""All files of a kind with the same columns, so that other programs read them as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from p2p_sim.trace import notes, tables
from p2p_sim.trace.compact import ADDRESSES, STORED
from p2p_sim.trace.sums import sha256
from p2p_sim.trace.writer import unfinished


def alike(folder: Path, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write again those files of a whole trace that leave out an address column which another of their kind stores.

    There the column is null.  Returns what the manifest says of the files.  Kinds whose files all leave out the same,
    as in most runs on one machine, are left as they are: a million nulls take Parquet 4 ms.
    """
    stored = {kind: set[str]().union(*forms) for kind, forms in _forms(files).items()}
    return [_with_nulls(folder, entry, stored[entry["kind"]] - _stored(entry)) for entry in files]


def uneven(files: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of whose files, as the manifest tells of them, not all have the same columns."""
    return [kind for kind, forms in _forms(files).items() if any(form != forms[0] for form in forms)]


def _forms(files: Iterable[Mapping[str, Any]]) -> dict[str, list[set[str]]]:
    """Return the address columns of each file, by kind."""
    forms: dict[str, list[set[str]]] = {}
    for entry in files:
        forms.setdefault(entry["kind"], []).append(_stored(entry))
    return forms


def _stored(entry: Mapping[str, Any]) -> set[str]:
    return {name for name in ADDRESSES if entry[name] == STORED}


def _with_nulls(folder: Path, entry: dict[str, Any], absent: Iterable[str]) -> dict[str, Any]:
    """Return the entry of a file to which columns of nulls were added, if any are absent."""
    from pyarrow import parquet

    if not absent:
        return entry
    path = folder / entry["file"]
    half_done = unfinished(path)
    with parquet.ParquetFile(path) as old:
        about = {key.decode(): text.decode() for key, text in old.schema_arrow.metadata.items()}
        new: Any = None
        for group in range(old.num_row_groups):
            table = old.read_row_group(group)
            columns = {name: tables.column(table[name].combine_chunks()) for name in table.column_names}
            if new is None:
                new = tables.Stream(half_done, columns, ADDRESSES, about, frozenset(absent))
            new.write(columns)
        new.close()
    fresh = entry | {"bytes": half_done.stat().st_size, "sha256": sha256(half_done)}
    notes.add(folder, 0, fresh)
    half_done.rename(path)
    return fresh
