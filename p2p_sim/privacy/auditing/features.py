"""What a coalition saw of each world, as a row of numbers: messages by who, when and in what order, and its draws.

Every number is a function of one world's messages alone, and 0 where there are none; ids and what else counts through
all worlds become places in the world.  So rows of different batches may stand in one table (``common``), and no number
tells which batch a world was in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.privacy.auditing import worlds
from p2p_sim.privacy.auditing.numbering import CLUSTER

if TYPE_CHECKING:
    from p2p_sim.privacy.auditing.seen import Seen, SeenMessages

Array = npt.NDArray[Any]

WIDEST = 8
"""Vectors up to this length give a number for each component, longer ones for the sum of all."""

SMALL = 16
"""Worlds up to so many users give a number for each user; of a server's messages so many are told apart by order."""

ROUNDS = 32
"""Rounds from this one on are taken together."""

_CELLS = 128  # positions times components, at most


def features(seen: Seen) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Return a table (worlds, f) and the names of its columns.

    Sums of unsigned integers of 32 and 64 bits are taken modulo 2^32 and 2^64, from the middle, so that masks cancel.
    """
    names: list[str] = []
    columns: list[Array] = []
    for kind in sorted(seen.kinds):
        for name, values in _of_kind(seen, kind, seen.kinds[kind]):
            names.append(name)
            columns.append(values.astype(np.float64))
    if seen.weights is not None and (reports := seen.kinds.get("report")) is not None:
        names.append("report.y weighed by how likely it is the victim's")
        columns.append(_weighed(seen, reports, seen.weights))
    messages = np.stack(columns, axis=1) if columns else np.zeros((seen.worlds, 0))
    drawn, more = worlds.numbers(seen.draws, seen.size, seen.worlds)
    return np.concatenate([messages, drawn], axis=1), names + more


def common(parts: Sequence[tuple[Array, list[str]]]) -> tuple[list[Array], list[str]]:
    """Return tables with the same columns, those of any part: a kind, field or round that a part lacks counts 0."""
    names = list(dict.fromkeys(name for _, part in parts for name in part))
    place = {name: i for i, name in enumerate(names)}
    tables = []
    for table, part in parts:
        if part == names:
            tables.append(table)
            continue
        wide = np.zeros((len(table), len(names)))
        wide[:, [place[name] for name in part]] = table
        tables.append(wide)
    return tables, names


def _weighed(seen: Seen, reports: SeenMessages, weights: Array) -> Array:
    """Return the sum of all reports of a world, label 1 up and label 0 down, by who handed them in."""
    y = reports.fields.get("y")
    if y is None:
        return np.zeros(seen.worlds)
    sign = np.where(y == 1, 1.0, np.where(y == 0, -1.0, 0.0))
    if reports.readable is not None:
        sign[~reports.readable] = 0.0
    return np.bincount(seen.world_of(reports), sign * weights[reports.sender % seen.size], seen.worlds)


class _Group(NamedTuple):
    """A way to sort a kind's messages into ``width`` cells a world; ``mask``: which of them, None for all.

    ``cells``: names and cells of the numbers; all but the first ``always`` are left out for long vectors.
    """

    cell: Array
    mask: Array | None
    width: int
    cells: list[tuple[str, slice]]
    always: int


def _of_kind(seen: Seen, kind: str, columns: SeenMessages) -> Iterator[tuple[str, Array]]:
    """Yield every number that one kind of message gives, with its name."""
    quantities = list(_quantities(seen, columns))
    for group in _groups(seen, columns):
        cell = group.cell if group.mask is None else group.cell[group.mask]
        for quantity, values, parts in quantities:
            mine = values if group.mask is None else values[group.mask]
            totals = _totals(mine, cell, seen.worlds * group.width).reshape(seen.worlds, group.width)
            short = len(group.cells) * parts <= _CELLS
            for where, cells in group.cells if short else group.cells[: group.always]:
                yield f"{kind}.{quantity} {where}", _centred(totals[:, cells].sum(axis=1), values.dtype)


def _quantities(seen: Seen, columns: SeenMessages) -> Iterator[tuple[str, Array, int]]:
    """Yield what is summed: messages, those that can be read, and fields; with the number of components."""
    ones = np.ones(len(columns.round), np.bool_)
    yield "messages", ones, 1
    if columns.message.fields:
        # A batch in which nothing could be read has no fields; one in which all could has no mask.
        yield "readable", (ones if columns.readable is None else columns.readable) & bool(columns.fields), 1
    for name, values in columns.fields.items():
        if name == CLUSTER:
            continue
        if values.ndim == 1:
            yield name, _within(seen, columns, name), 1
        elif values.shape[1] > WIDEST:
            yield name, values.sum(axis=1, dtype=_sum_type(values.dtype)), 1
        else:
            for i, part in enumerate(values.T):
                yield f"{name}[{i}]", np.ascontiguousarray(part), values.shape[1]


def _within(seen: Seen, columns: SeenMessages, name: str) -> Array:
    """Return a field; of ids and other numbers that count through all worlds, the place among those of the world."""
    values, world = columns.fields[name], seen.world_of(columns)
    each = seen.numbers_a_world(columns, name, world)
    if not each:
        return values
    within = values.astype(np.int64) - world * each
    return within if columns.readable is None else np.where(columns.readable, within, 0)


def _groups(seen: Seen, columns: SeenMessages) -> Iterator[_Group]:
    """Yield the ways to sort messages: by world, round, sender, recipient, both where one is the victim, and order."""
    world, size = seen.world_of(columns), seen.size
    yield _Group(world, None, 1, [("in all", slice(0, 1))], 1)
    late = np.minimum(columns.round.astype(np.int64), ROUNDS)
    rounds = [
        (f"in round {r}{' or later' * (r == ROUNDS)}", slice(r, r + 1)) for r in np.unique(late).tolist()
    ]
    yield _Group(world * (ROUNDS + 1) + late, None, ROUNDS + 1, rounds, 0)
    by_user, to_user = columns.message.sender == USER, columns.message.recipient == USER
    if by_user:
        yield _users(seen, columns.sender, None, "from", "")
    if to_user:
        yield _users(seen, columns.recipient, None, "to", "")
    if by_user and to_user and size <= SMALL:
        yield _users(seen, columns.sender, columns.recipient % size == 0, "from", " to the victim")
        yield _users(seen, columns.recipient, columns.sender % size == 0, "to", " from the victim")
    if not by_user:
        rank = _rank(world)
        ranks = [(f"at rank {r}", slice(r, r + 1)) for r in range(SMALL)]
        yield _Group(world * SMALL + np.minimum(rank, SMALL - 1), rank < SMALL, SMALL, ranks, 0)


def _users(seen: Seen, ids: Array, mask: Array | None, end: str, rest: str) -> _Group:
    cells = [(f"{end} the victim{rest}", slice(0, 1))]
    if seen.colluders:
        cells.append((f"{end} colluders{rest}", slice(1, 1 + seen.colluders)))
    always = len(cells)
    if seen.size <= SMALL:
        cells += [(f"{end} user {j}{rest}", slice(j, j + 1)) for j in range(1, seen.size)]
    return _Group(ids.astype(np.int64), mask, seen.size, cells, always)


def _rank(world: Array) -> Array:
    """Return how many messages of the same world come before each one."""
    order = np.argsort(world, kind="stable")
    ordered = world[order]
    rank = np.empty(len(world), np.int64)
    rank[order] = np.arange(len(world)) - np.searchsorted(ordered, ordered)
    return rank


def _totals(values: Array, cell: Array, cells: int) -> npt.NDArray[np.int64]:
    """Return the sum of the values in each cell, modulo 2^64; exact for up to two million a cell."""
    if values.dtype.itemsize < 8:
        return np.bincount(cell, values, cells).astype(np.int64)
    words = values.astype(np.uint64)
    low = np.bincount(cell, words & np.uint64(0xFFFFFFFF), cells).astype(np.uint64)
    high = np.bincount(cell, words >> np.uint64(32), cells).astype(np.uint64)
    return ((high << np.uint64(32)) + low).view(np.int64)


def _centred(sums: npt.NDArray[np.int64], dtype: np.dtype[Any]) -> Array:
    """Return sums of uint32 modulo 2^32, from the middle; those of 64 bits are so already."""
    return sums.astype(np.uint32).view(np.int32) if dtype == np.uint32 else sums


def _sum_type(dtype: np.dtype[Any]) -> type[Any]:
    return np.uint32 if dtype == np.uint32 else np.uint64 if dtype == np.uint64 else np.int64
