"""Messages that two traces do not share, found in bounded memory.

Of each kind and round both traces are read at once.  As long as they hold the same rows in the same order nothing is
kept; otherwise a 64-bit hash of every row (80 MB for ten million) says which rows are in one trace alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import Message
from p2p_sim.core.plain import as_words
from p2p_sim.trace.differences import as_value, differing
from p2p_sim.trace.reader import Source

Array = npt.NDArray[Any]
Columns = dict[str, Array]

_MULTIPLIER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_PIECE = 1 << 20
_AT = ("recipient", "sender", "seq")


@dataclass(frozen=True)
class Apart:
    """Messages of a kind and round that differ: in one run alone, or in both with other fields (``changed``).

    ``least``: the first of them by recipient, sender and sequence number: kind, round, id, sender, recipient, and
    ``first`` and ``second``: its fields in that run, None where it is not there.
    """

    kind: str
    round: int
    only_first: int
    only_second: int
    changed: int
    least: dict[str, Any]


def apart(first: Source, second: Source, kinds: Mapping[str, Message]) -> Iterator[Apart]:
    """Yield what differs, in causal order: by round, and in it by kind as declared."""
    order = {kind: place for place, kind in enumerate(kinds)}
    issues = {key for trace in (first, second) for key in trace.counts if key[1] and key[0] in order}
    for kind, round in sorted(issues, key=lambda key: (key[1], order[key[0]])):
        traces = [first, second]
        if _in_step(traces, kind, round):
            continue
        found = _differing(traces, kinds[kind], round)
        if found is not None:
            yield found


def _in_step(traces: list[Source], kind: str, round: int) -> bool:
    """Whether two traces hold the same rows in the same order and in batches of the same size."""
    one, other = (_batches(trace, kind, round) for trace in traces)
    for first in one:
        second = next(other, None)
        if second is None or any(
            not np.array_equal(first[name], second[name]) for name in first if name != "nbytes"
        ):
            return False
    return next(other, None) is None


def _differing(traces: list[Source], message: Message, round: int) -> Apart | None:
    """Find the rows that are in one trace alone."""
    names = [*_AT, *message.fields]
    hashes = [_hashes(trace, message.kind, round, names) for trace in traces]
    alone = [_not_among(*pair) for pair in (hashes, hashes[::-1])]
    del hashes
    if not alone[0].any() and not alone[1].any():
        return None
    found = [_alone(trace, message.kind, round, mine) for trace, mine in zip(traces, alone, strict=True)]
    places, least = [addresses for addresses, _ in found], [first for _, first in found]
    only = [int(np.count_nonzero(_not_among(*pair))) for pair in (places, places[::-1])]
    rows = differing(least[0], least[1], list(message.fields))
    told = as_value(
        message.kind, (message.sender, message.recipient), rows, _first(rows), list(message.fields)
    )
    return Apart(message.kind, round, only[0], only[1], len(places[0]) - only[0], told)


def _hashes(trace: Source, kind: str, round: int, names: list[str]) -> Array:
    """Return a hash of every row."""
    parts = [_hash(columns, names) for columns in _batches(trace, kind, round)]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _alone(trace: Source, kind: str, round: int, mine: Array) -> tuple[Array, Columns]:
    """Return hashes of the addresses of some rows (a mask), and the first of these rows."""
    addresses = [np.zeros(0, np.uint64)]
    least, low = [trace.rows(kind, limit=0)[0]], 0
    for columns in _batches(trace, kind, round):
        high = low + len(columns["round"])
        some = {name: column[mine[low:high]] for name, column in columns.items()}
        addresses.append(_hash(some, list(_AT)))
        if len(some["round"]):
            first = _first(some)
            least.append({name: column[first : first + 1] for name, column in some.items()})
        low = high
    joined = {name: np.concatenate([row[name] for row in least]) for name in least[0]}
    if not len(joined["round"]):
        return addresses[0], joined
    first = _first(joined)
    return np.concatenate(addresses), {name: column[first : first + 1] for name, column in joined.items()}


def _first(columns: Mapping[str, Array]) -> int:
    """Return the first of some rows by recipient, sender and sequence number."""
    rows = np.arange(len(columns["recipient"]))
    for name in _AT:
        rows = rows[columns[name][rows] == columns[name][rows].min()]
    return int(rows[0])


def _not_among(hashes: Array, others: Array) -> Array:
    """Return a mask of the hashes that are not among others: both in order, for a search in order is fast."""
    order, known = np.argsort(hashes), np.sort(others)
    mask = np.ones(len(hashes), np.bool_)
    for low in range(0, len(order) if len(known) else 0, _PIECE):
        rows = order[low : low + _PIECE]
        wanted = hashes[rows]
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        mask[rows] = known[place] != wanted
    return mask


def _batches(trace: Source, kind: str, round: int) -> Iterator[Columns]:
    return trace.batches(kind, round) if (kind, round) in trace.counts else iter(())


def _hash(columns: Mapping[str, Array], names: list[str]) -> Array:
    """Return 64 bits for each row, by some of its columns."""
    state = np.zeros(len(columns["round"]), np.uint64)
    for name in names:
        for column in [columns[name]] if columns[name].ndim == 1 else list(columns[name].T):
            state ^= as_words(column)
            state *= _MULTIPLIER
            state ^= state >> _SHIFT
            state += _MULTIPLIER  # so that leading zeros count too
    return state
