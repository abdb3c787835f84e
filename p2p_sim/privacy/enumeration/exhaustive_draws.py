"""Draws that take every outcome in turn: what the enumerator uses in the place of ``core.draw``.

A tape holds the choices of one way through a program.  Running the program again with the next tape takes the next way,
until all have been taken; the weight of a way is the product of its choices' probabilities, exact fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from p2p_sim.core import exact
from p2p_sim.core.columns import Array, Inbox, Layout, PerMessage, aligned
from p2p_sim.core.draw import check_enough, whole, worth
from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.message import USER

MOST_OUTCOMES = 5040
"""Most outcomes of a single draw that are followed."""


class Tape:
    """The choices on the way that is being taken, and which come next."""

    def __init__(self) -> None:
        self._choices: list[int] = []
        self._sizes: list[int] = []
        # Outcomes, each with the weight up to it, of the way before, as far as this one shares it.
        self._taken: list[tuple[int, Fraction]] = []
        self._place = 0
        self.weight = Fraction(1)

    def choose(self, weights: Sequence[Fraction]) -> int:
        """Take one of some outcomes; those of weight 0 are never taken."""
        if self._place < len(self._taken):  # as on the way before
            outcome, self.weight = self._taken[self._place]
            self._place += 1
            return outcome
        possible = [i for i, weight in enumerate(weights) if weight]
        if self._place == len(self._choices):
            self._choices.append(0)
            self._sizes.append(len(possible))
        outcome = possible[self._choices[self._place]]
        self._place += 1
        self.weight *= weights[outcome]
        self._taken.append((outcome, self.weight))
        return outcome

    @property
    def about(self) -> int:
        """How many ways there are, if every way has as many outcomes as this one."""
        return math.prod(self._sizes)

    def rewind(self) -> bool:
        """Go to the next way; False when all have been taken."""
        while self._choices and self._choices[-1] + 1 == self._sizes[-1]:
            self._choices.pop()
            self._sizes.pop()
        if not self._choices:
            return False
        self._choices[-1] += 1
        del self._taken[len(self._choices) - 1 :]
        self._place, self.weight = 0, Fraction(1)
        return True


class TapeFaultDraws:
    """The decisions of ``core.fault_injection``, fed from a tape."""

    def __init__(self, tape: Tape):
        self._tape = tape

    def users(self, name: str, _step: int, p: float, ids: range | Array) -> Any:
        """Branch for each user."""
        return self._either(name, p, len(ids))

    def labels(self, name: str, labels: int, ids: range | Array) -> Array:
        """Branch into the labels for each user."""
        return np.array([self._tape.choose(_even(name, labels)) for _ in ids], np.int64)

    def messages(self, name: str, _round: int, p: float, ids: tuple[Array, ...]) -> Any:
        """Branch for each message."""
        return self._either(name, p, len(ids[0]))

    def _either(self, name: str, p: float, items: int) -> Any:
        shares = _either_way(name, p)
        return np.array([bool(self._tape.choose(shares)) for _ in range(items)], np.bool_)


@dataclass
class TapeDraw:
    """The samplers of ``core.draw.Draw``, fed from a tape.  ``log``: (name, step, value of each item)."""

    tape: Tape
    role: str
    ids: range | Array
    step: int = 0
    log: list[tuple[str, int, Any]] = field(default_factory=list)
    compute: Any = None
    _several: dict[int, Layout] = field(default_factory=dict)

    def advance(self) -> None:
        """Begin the next step."""
        self.step += 1

    def note_members(self, ids: Any) -> None:
        """Take nothing down: see ``drew``."""

    def drew(self, ids: Any) -> bool:  # noqa: ARG002
        """Enumeration knows everybody: nobody is out of reach."""
        return True

    def several(self, times: int) -> Layout:
        """Return the layout of ``times`` items a party."""
        if times not in self._several:
            layout = self._several[times] = Layout(np.arange(len(self.ids) + 1) * times)
            layout.server = layout.given = self.role != USER
        return self._several[times]

    def bernoulli(self, name: str, p: Any, *, each: Any = None, times: int | None = None) -> Any:
        """Branch into false and true."""
        layout = self._layout(each, times)
        shares = [_either_way(f"p of draw {name!r}", share) for share in self._column(p, layout)]
        return self._values(name, shares, layout, np.bool_)

    def below(
        self,
        name: str,
        m: Any,
        *,
        each: Any = None,
        times: int | None = None,
        dtype: type[np.integer[Any]] = np.int64,
    ) -> Any:
        """Branch into 0 .. m - 1."""
        layout = self._layout(each, times)
        shares = [_even(name, int(limit)) for limit in self._column(m, layout)]
        return self._values(name, shares, layout, dtype)

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
        """Branch into the members of each party's group, those that are left where they are to differ."""
        layout = self._layout(each, times)
        ids = whole(self.ids)
        if distinct or others:
            own = np.where(others, members.places(ids), -1)
            check_enough(
                f"draw {name!r}", members.size, own, (times or 1) if distinct else 1, distinct=distinct
            )
        drawn: dict[int, set[int]] = {}
        rows = []
        for holder in range(len(ids)) if layout is None else layout.holder.tolist():
            barred = drawn.setdefault(holder, {int(ids[holder])} if others else set())
            group = [row for row in members.rows_of(int(members.codes[holder])).tolist() if row not in barred]
            rows.append(group[self._take([_even(name, len(group))])[0]])
            if distinct:
                barred.add(rows[-1])
        return self._observed(name, np.array(rows, np.int64), layout)

    def categorical(
        self,
        name: str,
        weights: Sequence[Any],
        *,
        each: Any = None,
        times: int | None = None,
        values: Array | None = None,
    ) -> Any:
        """Branch into the outcomes."""
        layout = self._layout(each, times)
        shares = [Fraction(weight) for weight in weights]
        total = sum(shares, Fraction(0))
        items = len(self.ids) if layout is None else layout.size
        drawn = self._values(name, [[share / total for share in shares]] * items, layout)
        return drawn if values is None else worth(values, drawn)

    def weighted(
        self, name: str, weights: Array, row: Any, *, each: Any = None, times: int | None = None
    ) -> Any:
        """Branch into the outcomes of each row."""
        layout = self._layout(each, times)
        table = [
            [Fraction(weight, sum(weights)) for weight in weights] for weights in np.asarray(weights).tolist()
        ]
        rows = [table[int(place)] for place in self._column(row, layout)]
        return self._values(name, rows, layout, np.uint8)

    def permutation(self, name: str, *, each: Any) -> PerMessage:
        """Branch into the orders of each holder's messages."""
        layout = self._layout(each, None)
        assert layout is not None
        parts: list[Sequence[int]] = []
        for count in layout.count.tolist():
            orders = (
                list(itertools.permutations(range(count))) if math.factorial(count) <= MOST_OUTCOMES else []
            )
            parts.append(orders[self._take([_even(name, len(orders) or math.factorial(count))])[0]])
        result = self._observed(name, np.array([i for part in parts for i in part], np.int64), layout)
        assert isinstance(result, PerMessage)
        return result

    def uniform(self, name: str, **_: Any) -> Any:
        """Refuse: there are 2^53 outcomes."""
        raise InputError(
            f"draw {name!r} of role {self.role!r} is uniform: too many outcomes to follow; audit instead"
        )

    def laplace(self, name: str, _scale: Any, **_: Any) -> Any:
        """Refuse: there is no end of outcomes."""
        raise InputError(
            f"draw {name!r} of role {self.role!r} is Laplace: too many outcomes to follow; audit instead"
        )

    def _layout(self, each: Any, times: int | None) -> Layout | None:
        if isinstance(each, (Inbox, PerMessage)):
            return each.layout
        return None if times is None else self.several(times)

    def _column(self, value: Any, layout: Layout | None) -> list[Any]:
        size = len(self.ids) if layout is None else layout.size
        if isinstance(value, PerMessage) and layout is not None:
            return list(aligned(value, layout))
        if isinstance(value, Fraction) or np.ndim(value) == 0:
            return [value] * size
        return list(value if layout is None else aligned(value, layout))

    def _take(self, weights: Sequence[Sequence[Fraction]]) -> list[int]:
        return [self.tape.choose(each) for each in weights]

    def _values(
        self, name: str, weights: Sequence[Sequence[Fraction]], layout: Layout | None, dtype: Any = np.int64
    ) -> Any:
        return self._observed(name, np.array(self._take(weights), dtype), layout)

    def _observed(self, name: str, values: Array, layout: Layout | None) -> Any:
        owners = whole(self.ids) if layout is None else whole(self.ids)[layout.holder]
        self.log.append((name, self.step, list(zip(owners.tolist(), values.tolist(), strict=True))))
        return values if layout is None else PerMessage(values, layout)


def _either_way(name: str, p: Any) -> tuple[Fraction, Fraction]:
    """Return the probabilities of false and true."""
    return _kept_pair(name, p) if isinstance(p, float | Fraction) else _pair(name, p)


def _pair(name: str, p: Any) -> tuple[Fraction, Fraction]:
    share = exact.as_fraction(name, p)
    return 1 - share, share


_kept_pair = lru_cache(maxsize=1024)(_pair)  # the same few chances on every way


def _even(name: str, outcomes: int) -> list[Fraction]:
    if not 1 <= outcomes <= MOST_OUTCOMES:
        raise InputError(
            f"draw {name!r} has {outcomes} outcomes: from 1 to {MOST_OUTCOMES} are followed; audit instead"
        )
    return [Fraction(1, outcomes)] * outcomes
