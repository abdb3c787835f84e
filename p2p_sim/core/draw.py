"""Keyed draws: the only source of chance of a protocol program.

Every value is a pure function of (run seed, role, draw name, step, party id, slot), so it does not depend on the
block, process or machine in which a party lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact
from p2p_sim.core.argument_checks import check_flag
from p2p_sim.core.columns import Array, Inbox, Layout, PerMessage, aligned
from p2p_sim.core.errors import ProtocolError, TooFewMembersError
from p2p_sim.core.groups import Members
from p2p_sim.core.message import USER
from p2p_sim.core.random_words import Words, stream, uniform

RESERVED_ROLES = frozenset({"fault", "graph", "split", "synthetic"})
"""Role names under which the engine itself draws."""

Observer = Callable[[str, int, Any], None]


@dataclass
class Draw:
    """The samplers of one block.  Each takes the draw's name first; a name is drawn once a step.

    ``each=`` draws once for every held message (an inbox or message column), ``times=`` several a party; both
    return message columns.  Otherwise a draw returns a party column.
    """

    seed: int
    role: str
    ids: range | Array
    compute: ModuleType
    observer: Observer | None = None
    step: int = 0
    _used: set[str] = field(default_factory=set)
    _several: dict[int, Layout] = field(default_factory=dict)
    _members: list[Array] = field(default_factory=list)

    def advance(self) -> None:
        """Begin the next step."""
        self.step += 1
        self._used.clear()
        self._members.clear()

    def note_members(self, ids: Array) -> None:
        """Take down ids of a party's group, which she knows without a draw."""
        self._members.append(ids)

    def drew(self, ids: Any) -> bool:
        """Whether ids are, unchanged, what ``member`` drew or ``note_members`` took down in this step."""
        given = ids.data if isinstance(ids, PerMessage) else ids
        return any(given is rows for rows in self._members)

    def several(self, times: int) -> Layout:
        """Return the layout of ``times`` items a party, the same object every time, so that columns combine."""
        if times not in self._several:
            layout = self._several[times] = Layout(None, len(self.ids), times)
            layout.server = layout.given = self.role != USER
        return self._several[times]

    def bernoulli(self, name: str, p: Any, *, each: Any = None, times: int | None = None) -> Any:
        """Draw true with probability p (a number, Fraction or column): word < floor(p * 2^64)."""
        if not isinstance(p, PerMessage) and np.ndim(p) == 0:
            bound = exact.threshold(f"p of draw {name!r}", p)
            key, layout = self._key(name), self._layout(name, each, times)
            row = self._row(layout)
            if row is not None:
                start, count, owner = row
                flips = self.compute.bernoulli(self.seed, key, start, count, bound, owner)
                return self._observed(name, flips, layout)
            words = self._drawn(key, layout, times)
            hits = np.ones(len(words), np.bool_) if bound == exact.WORD else words < np.uint64(bound)
            return self._observed(name, hits, layout)
        words, layout = self._words(name, each, times)
        bounds, certain = exact.thresholds(f"p of draw {name!r}", self._column(p, layout))
        return self._observed(name, (words < bounds) | certain, layout)

    def uniform(self, name: str, *, each: Any = None, times: int | None = None) -> Any:
        """Draw a float64 in [0, 1): (word >> 11) * 2^-53."""
        words, layout = self._words(name, each, times)
        return self._observed(name, uniform(words), layout)

    def below(
        self,
        name: str,
        m: Any,
        *,
        each: Any = None,
        times: int | None = None,
        dtype: type[np.integer[Any]] = np.int64,
    ) -> Any:
        """Draw an integer in 0 .. m - 1 (m a number or column, 1 <= m < 2^63): the high half of word * m.

        ``dtype``: the type of the column, which must hold m - 1; a narrow one is faster.
        """
        key, layout = self._key(name), self._layout(name, each, times)
        one = not isinstance(m, PerMessage) and np.ndim(m) == 0
        limit, end = np.asarray(m if one else self._column(m, layout)), int(np.iinfo(dtype).max) + 1
        most = min(end, (1 << 63) - 1)
        if limit.dtype.kind not in "ui" or (
            limit.size and not 1 <= int(limit.min()) <= int(limit.max()) <= most
        ):
            bound = "m < 2^63" if end > most else f"m <= {most} for {np.dtype(dtype)}"
            raise ProtocolError(f"{self._where(name)}: below needs integers 1 <= {bound}, not {_kind(m)}")
        bounds = limit.view(np.uint64) if limit.dtype == np.int64 else limit.astype(np.uint64)
        limits, row = bounds[()] if one else bounds, self._row(layout)
        if row is None:
            places = self.compute.below(self._drawn(key, layout, times), limits)
        else:
            start, count, owner = row
            kind = dtype if self.observer is None else np.int64  # a watcher sees the same whatever the type
            places = self.compute.words_below(self.seed, key, start, count, limits, owner, kind)
        drawn = self._observed(name, places, layout)
        return drawn if dtype is np.int64 else _narrowed(drawn, dtype)

    def member(
        self,
        name: str,
        members: Members,
        *,
        each: Any = None,
        times: int | None = None,
        distinct: bool = False,
        others: bool = False,
    ) -> Any:
        """Draw the id of a uniform member of a group (``me.cluster``, ``me.neighbours``): its k-th in ascending id.

        ``distinct``: the ``times`` members that a party draws differ; every order of every choice is equally likely.
        ``others``: never the drawer herself.  Raises ProtocolError for a group with too few to choose from.
        """
        if not isinstance(members, Members):
            raise ProtocolError(
                f"{self._where(name)}: member draws from me.cluster or me.neighbours, not {_kind(members)}"
            )
        check_flag(f"draw {name!r}: distinct", distinct)
        check_flag(f"draw {name!r}: others", others)
        if distinct and times is None:
            raise ProtocolError(
                f"{self._where(name)}: distinct= goes with times=, how many members a party draws"
            )
        key, layout = self._key(name), self._layout(name, each, times)
        if distinct or others:
            words = self._drawn(key, layout, times)
            rows = self._chosen(name, members, (words, layout), distinct, others)
        else:
            codes = members.codes if layout is None else np.ascontiguousarray(layout.spread(members.codes))
            if members.has_empty and not bool((members.size > 0).all()):
                raise ProtocolError(
                    f"{self._where(name)}: a party has nobody to choose from; give every user a neighbour"
                )
            groups, row = (codes, members.starts, members.order), self._row(layout)
            if row is None:
                rows = self.compute.member(self._drawn(key, layout, times), *groups)
            else:
                start, _, owner = row
                rows = self.compute.words_member(self.seed, key, start, *groups, owner)
        self._members.append(rows)
        return self._observed(name, rows, layout)

    def _chosen(
        self, name: str, members: Members, items: tuple[Words, Layout | None], distinct: bool, others: bool
    ) -> Array:
        """Return the rows of members who differ, without the drawer, or both.

        The k-th draw is one of those who are left, in ascending order: as many as the group has without the ``barred``.
        """
        words, layout = items
        times = layout.size // layout.parties if distinct and layout is not None else 1
        holder = slice(None) if layout is None else layout.holder[::times]
        own = np.where(others, members.places(whole(self.ids)), -1)
        check_enough(self._where(name), members.size, own, times, distinct=distinct)
        start, own = members.starts[members.codes][holder], own[holder]
        left = members.size[holder] - (own >= 0)
        barred = [np.where(own >= 0, own, _NOBODY)]
        places = np.empty((len(left), times), np.int64)
        for k in range(times):
            place = self.compute.below(words[k::times], (left - k).astype(np.uint64))
            for before in np.sort(np.stack(barred), axis=0):
                place = place + (place >= before)
            places[:, k] = place
            barred.append(place)
        rows = (places + start[:, None]).reshape(-1)
        return rows.astype(np.int32) if members.order is None else np.asarray(members.order[rows])

    def categorical(
        self,
        name: str,
        weights: Sequence[Any],
        *,
        each: Any = None,
        times: int | None = None,
        values: Array | None = None,
    ) -> Any:
        """Draw i with probability weights[i] / sum: the first i with word < floor(cumulative_i * 2^64).

        ``values``: float64, one a weight; then what is drawn is values[i].
        """
        key, layout = self._key(name), self._layout(name, each, times)
        table = exact.cumulative(f"draw {name!r}", weights)
        if values is not None and self.observer is None and times and layout and self._row(layout) is None:
            found = self.compute.several_looked_up(table, values, self.seed, key, self.ids, times)
            return PerMessage(found, layout)
        drawn = self._observed(name, self._picked(table, key, layout, times), layout)
        return drawn if values is None else worth(values, drawn)

    def weighted(
        self, name: str, weights: Array, row: Any, *, each: Any = None, times: int | None = None
    ) -> Any:
        """Draw i, uint8, by the weights of a row: the first i with (word * total) >> 64 < the running sum at i.

        ``weights``: integers from 0, shape (rows, outcomes), at most 256 outcomes, whose sum in each row is from 1 to
        2^63 - 1.  ``row``: of which row each draw is, a party or message column.
        """
        key, layout = self._key(name), self._layout(name, each, times)
        sums, rows = self._running(name, weights), np.ascontiguousarray(self._column(row, layout))
        if rows.dtype.kind not in "ui" or (
            rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < len(sums)
        ):
            raise ProtocolError(
                f"{self._where(name)}: row names rows of the weights, integers from 0 to {len(sums) - 1}"
            )
        rows = rows.astype(np.int32, copy=False)
        place = self._row(layout)
        if place is not None:
            start, _, owner = place
            drawn = self.compute.words_weighted(self.seed, key, start, sums, rows, owner)
        else:
            drawn = self.compute.weighted(self._drawn(key, layout, times), sums, rows)
        return self._observed(name, drawn, layout)

    def _running(self, name: str, weights: Array) -> Words:
        """Return the running sums of each row of integer weights."""
        given = np.asarray(weights)
        right = given.dtype.kind in "ui" and given.ndim == 2 and 0 < given.shape[1] <= _MOST_OUTCOMES
        if right and bool((given >= 0).all()) and int(given.max(initial=0)) < 1 << 63:
            sums = np.cumsum(given.astype(np.int64), axis=1)
            if bool(
                (sums[:, -1] >= 1).all() and (np.diff(sums, axis=1) >= 0).all()
            ):  # what overflows descends
                return sums.view(np.uint64)
        raise ProtocolError(
            f"{self._where(name)}: weighted needs integer weights from 0, shape (rows, outcomes), at most "
            f"{_MOST_OUTCOMES} outcomes, with a sum in each row from 1 to 2^63 - 1"
        )

    def laplace(
        self, name: str, scale: Any, *, each: Any = None, times: int | None = None, dtype: Any = np.int64
    ) -> Any:
        """Draw discrete Laplace noise in grid steps: P(k) proportional to e^(-|k| / scale), scale in steps.

        ``dtype``: np.int64, or np.int32, which holds all noise as well, in half the memory.
        """
        if dtype not in (np.int32, np.int64):
            raise ProtocolError(
                f"{self._where(name)}: laplace with dtype={dtype!r}: give np.int64 or np.int32"
            )
        key, layout = self._key(name), self._layout(name, each, times)
        table, least = exact.laplace_thresholds(exact.as_scale(f"scale of draw {name!r}", scale))
        steps = self._picked(table, key, layout, times, dtype)
        steps += least
        return self._observed(name, steps, layout)

    def permutation(self, name: str, *, each: Any) -> PerMessage:
        """Draw a uniform order of each holder's messages (for ``take``): by the order of words, ties by index."""
        words, layout = self._words(name, each, None)
        if layout is None:
            raise ProtocolError(f"{self._where(name)}: permutation needs each=: an inbox or a message column")
        result = self._observed(name, self.compute.orders(words, layout.starts), layout)
        assert isinstance(result, PerMessage)
        return result

    def _key(self, name: str) -> int:
        if not isinstance(name, str):
            raise ProtocolError(
                f"{self._where(name)}: a draw's first argument is its name, a text of its own"
            )
        if name in self._used:
            raise ProtocolError(
                f"{self._where(name)} is drawn twice in a step: give the second draw a name of its own"
            )
        self._used.add(name)
        return stream(self.role, name, self.step)

    def _words(self, name: str, each: Any, times: int | None) -> tuple[Words, Layout | None]:
        key, layout = self._key(name), self._layout(name, each, times)
        return self._drawn(key, layout, times), layout

    def _layout(self, name: str, each: Any, times: int | None) -> Layout | None:
        """Return who holds what is drawn; None if it is one value a party."""
        if each is None and times is None:
            return None
        return self._times(name, times) if each is None else self._each(name, each, times)

    def _row(self, layout: Layout | None) -> tuple[int, int, int] | None:
        """Return first, number and owner of words that follow each other in their stream; None if they do not.

        Those of consecutive parties do, and many items of one party, whose own stretch it is.
        """
        if layout is None:
            return (self.ids.start, len(self.ids), 0) if isinstance(self.ids, range) else None
        return (0, layout.size, int(self.ids[0]) + 1) if layout.parties == 1 else None

    def _drawn(self, key: int, layout: Layout | None, times: int | None) -> Words:
        """Return the words of draws, ``times`` a party where it is a number."""
        row, party = self._row(layout), whole(self.ids) if layout is not None else self.ids
        words: Words
        if row is not None:
            words = self.compute.words(self.seed, key, *row)
        elif layout is None:
            words = self.compute.words_at(self.seed, key, party)
        elif times is not None:
            words = self.compute.several_words(self.seed, key, party, times)
        elif layout.one_at_most:
            words = self.compute.several_words(self.seed, key, party[layout.holder], 1)
        else:
            words = self.compute.item_words(self.seed, key, party[layout.holder], layout.rank)
        return words

    def _each(self, name: str, each: Any, times: int | None) -> Layout:
        if times is not None or not isinstance(each, (Inbox, PerMessage)):
            raise ProtocolError(
                f"{self._where(name)}: each= takes an inbox or a message column, and no times= beside it"
            )
        return each.layout

    def _times(self, name: str, times: int | None) -> Layout:
        if not isinstance(times, int) or times < 1:
            raise ProtocolError(f"{self._where(name)}: times={times!r} must be an integer of at least 1")
        return self.several(times)

    def _picked(
        self, table: Words, key: int, layout: Layout | None, times: int | None, dtype: Any = np.int64
    ) -> Array:
        """Return how many thresholds are at most each word of draws."""
        picked: Array
        if times is not None and self._row(layout) is None:
            picked = self.compute.several_picked(table, self.seed, key, self.ids, times, dtype)
        else:
            picked = self.compute.pick(table, self._drawn(key, layout, times)).astype(dtype, copy=False)
        return picked

    def _column(self, value: Any, layout: Layout | None) -> npt.NDArray[Any]:
        if layout is None:
            return np.broadcast_to(value, (len(self.ids),))
        return np.broadcast_to(aligned(value, layout), (layout.size,))

    def _observed(self, name: str, values: Array, layout: Layout | None) -> Any:
        result = values if layout is None else PerMessage(values, layout)
        if self.observer is not None:
            self.observer(name, self.step, result)
        return result

    def _where(self, name: str) -> str:
        return f"role {self.role!r}, step {self.step}, draw {name!r}"


_MOST_OUTCOMES = 256
_NOBODY = np.int64(2**62)  # no place in a group


def check_enough(where: str, sizes: Array, own: Array, times: int, *, distinct: bool) -> None:
    """Check that parties can draw ``times`` members each of groups of some sizes.

    ``own``: the place of each party who is not to draw herself, -1 of the rest.  Raises TooFewMembersError.
    """
    short = sizes - (own >= 0) < times
    if not bool(short.any()):
        return
    first = int(np.flatnonzero(short)[0])
    size, out = int(sizes[first]), int(own[first] >= 0)
    what = f"{times} distinct {'others' if out else 'members'}" if distinct else "another member"
    raise TooFewMembersError(
        f"{where}: draws {what} of a group of {size} user{'' if size == 1 else 's'}: groups of at least {times + out} "
        "are needed; make clusters larger or give more neighbours, or draw fewer",
        times + out,
    )


def _kind(value: Any) -> str:
    """Describe a value without its contents, which may be secret."""
    return (
        f"{value!r}"
        if isinstance(value, (int, float))
        else f"{type(value).__name__} of {np.ndim(value)} dimensions"
    )


def _narrowed(drawn: Any, dtype: type[np.integer[Any]]) -> Any:
    if isinstance(drawn, PerMessage):
        return PerMessage(drawn.data.astype(dtype, copy=False), drawn.layout)
    return drawn.astype(dtype, copy=False)


def worth(values: Array, drawn: Any) -> Any:
    """Return the value of each number that was drawn, from 0 up, in a column like theirs."""
    if isinstance(drawn, PerMessage):
        return PerMessage(values.take(drawn.data), drawn.layout)
    return values.take(drawn)


def whole(ids: range | Array) -> npt.NDArray[np.int64]:
    """Return ids as an int64 array; numpy itself would go through a range one by one."""
    return np.arange(ids.start, ids.stop) if isinstance(ids, range) else ids.astype(np.int64)
