"""Which messages two runs do not share: joined by address, compared field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.trace.slices import message_id, party

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_ADDRESS = ("round", "recipient", "sender", "seq")


def differing(one: Columns, other: Columns, fields: list[str]) -> Columns:
    """Return the messages of one kind that differ: addresses, ``first``, ``second``, and the fields of both runs."""
    places = _joined(one, other)
    there = [place >= 0 for place in places]
    changed = ~(there[0] & there[1])
    both = np.flatnonzero(~changed)
    for name in fields:
        apart = one[name][places[0][both]] != other[name][places[1][both]]
        changed[both] |= apart if apart.ndim == 1 else apart.any(axis=1)
    places, there = [place[changed] for place in places], [mask[changed] for mask in there]
    result: Columns = {}
    for name in ("round", "sender", "recipient", "seq"):
        result[name] = _taken(one[name], places[0])
        result[name][there[1]] = other[name][places[1][there[1]]]
    result |= {"first": there[0], "second": there[1]}
    for name in fields:
        result[f"{name}_first"] = _taken(one[name], places[0])
        result[f"{name}_second"] = _taken(other[name], places[1])
    return result


def _joined(one: Columns, other: Columns) -> list[Array]:
    """Return, for every address of either run in order, its row in each, -1 where it is not there."""
    sizes = [len(columns["round"]) for columns in (one, other)]
    if sizes[0] == sizes[1] and all(np.array_equal(one[name], other[name]) for name in _ADDRESS):
        return [np.arange(sizes[0]), np.arange(sizes[0])]
    keys = [np.concatenate([one[name], other[name]]) for name in _ADDRESS]
    order = np.lexsort(keys[::-1])  # stable: of two equal addresses the first run's comes first
    new = np.ones(len(order), np.bool_)
    if len(order):
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    group = np.cumsum(new) - 1
    places = [np.full(int(new.sum()), -1) for _ in sizes]
    mine = order < sizes[0]
    places[0][group[mine]] = order[mine]
    places[1][group[~mine]] = order[~mine] - sizes[0]
    return places


def _taken(column: Array, places: Array) -> Array:
    """Return a column's values at some places, 0 where a place is -1."""
    taken = np.zeros((len(places), *column.shape[1:]), column.dtype)
    taken[places >= 0] = column[places[places >= 0]]
    return taken


def first_of(found: Mapping[str, Columns]) -> tuple[str, int] | None:
    """Return kind and row of the first of some messages in causal order, None if there are none.

    ``found``: by kind, as declared: within a round, kinds come in that order.
    """
    firsts = []
    for place, (kind, columns) in enumerate(found.items()):
        if len(columns["round"]):
            row = int(np.lexsort([columns[name] for name in _ADDRESS[::-1]])[0])
            firsts.append((int(columns["round"][row]), place, kind, row))
    return min(firsts)[2:] if firsts else None


def as_value(
    kind: str, roles: tuple[str, str], columns: Mapping[str, Array], row: int, fields: list[str]
) -> dict[str, Any]:
    """Return one difference as JSON values; ``first``, ``second``: its fields, None where it is not in that run."""
    round, sender, recipient, seq = (
        int(columns[name][row]) for name in ("round", "sender", "recipient", "seq")
    )
    told: dict[str, Any] = {
        "id": message_id(kind, round, sender, recipient, seq), "kind": kind, "round": round,
        "sender": party(roles[0], sender), "recipient": party(roles[1], recipient),
    }  # fmt: skip
    for end in ("first", "second"):
        there = bool(columns[end][row])
        told[end] = {name: columns[f"{name}_{end}"][row].tolist() for name in fields} if there else None
    return told
