"""Stand-ins for ``me``, her cluster and her inboxes while one user's program is enumerated alone.

Each stops the program as soon as it looks at what is not the user's own, and remembers that it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import check_enough
from p2p_sim.core.message import USER
from p2p_sim.privacy.enumeration.exhaustive_draws import Tape, TapeDraw

SAMPLERS = (
    "bernoulli", "below", "member", "categorical", "weighted", "permutation", "uniform", "laplace", "step"
)  # fmt: skip


OUTSIDERS = 1 << 20
"""The first honest user whom somebody meets; colluders begin at 1."""


class ForbiddenReadError(Exception):
    """The program looked at what is not the user's own: ``what``, in words; ``size``: at how large her cluster is."""

    def __init__(self, what: str, *, size: bool = False):
        super().__init__(what)
        self.what, self.size = what, size


class StandInCluster:
    """The user's cluster as its members are met; ``me.cluster`` is one.  Row 0 is she, then come the colluders."""

    def __init__(self, users: int | None, colluders: int):
        self._users, self._colluders = users, colluders
        self._drawn: list[list[int]] = [[], []]  # colluders and honest others
        self.sized = self.measured = False
        self.refused: ForbiddenReadError | None = None

    def refuse(self, what: str, *, size: bool = False) -> NoReturn:
        """Stop the program."""
        self.refused = self.refused or ForbiddenReadError(what, size=size)
        raise self.refused

    def count(self) -> int:
        """Return how many users the cluster has."""
        if self._users is None:
            self.refuse("the size of her cluster", size=True)
        self.sized = True
        return self._users

    def draw(self, tape: Tape, barred: Collection[int] = ()) -> int:
        """Branch into herself, each who was met, a new colluder and a new honest user; return the row.

        ``barred``: rows of herself or of users met, none of whom it may be.
        """
        users = self.count()
        first = [self._colluders, users - 1 - self._colluders]
        drawn = [row for row in (0, *self._drawn[0], *self._drawn[1]) if row not in barred]
        left = users - len(barred)
        fresh = [
            Fraction(all_ - len(taken_rows), left)
            for all_, taken_rows in zip(first, self._drawn, strict=True)
        ]
        taken = tape.choose([Fraction(1, left)] * len(drawn) + fresh)
        if taken < len(drawn):
            return drawn[taken]
        side = taken - len(drawn)
        row = len(self._drawn[side]) + (OUTSIDERS if side else 1)
        self._drawn[side].append(row)
        return row

    @property
    def size(self) -> Any:
        """How many users there are, as a program reads it."""
        self.measured = True
        return np.array([self.count()])

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse(f"me.cluster.{name}")


class SingleUser:
    """``me`` of a user by herself."""

    def __init__(self, y: Any, draw: SingleUserDraw, crowd: StandInCluster):
        self.role, self.size, self.real = USER, 1, False
        self.y, self.draw, self.cluster = y, Samplers(draw, crowd), crowd
        self._crowd = crowd

    @contextmanager
    def doing(self, **_operations: int) -> Iterator[None]:
        """Count nothing."""
        yield

    def __getattr__(self, name: str) -> NoReturn:
        self._crowd.refuse(f"me.{name}")


class Samplers:
    """Her draws, and nothing else of what holds them."""

    def __init__(self, draw: SingleUserDraw, crowd: StandInCluster):
        self._draw, self._crowd = draw, crowd

    def __getattr__(self, name: str) -> Any:
        return getattr(self._draw, name) if name in SAMPLERS else self._crowd.refuse(f"me.draw.{name}")


@dataclass
class SingleUserDraw(TapeDraw):
    """Her draws, fed from a tape."""

    crowd: Any = None

    def member(
        self,
        name: str,
        members: Any,
        *,
        each: Any = None,
        times: int | None = None,
        distinct: bool = False,
        others: bool = False,
    ) -> Any:
        """Branch into who can be met."""
        if members is not self.crowd:
            self.crowd.refuse("other groups of users than her cluster")
        layout = self._layout(each, times)
        items = 1 if layout is None else layout.size
        if distinct or others:
            sizes, own = np.array([self.crowd.count()]), np.array([0 if others else -1])
            check_enough(f"draw {name!r}", sizes, own, items if distinct else 1, distinct=distinct)
        barred: set[int] = {0} if others else set()
        rows: list[int] = []
        for _ in range(items):
            rows.append(self.crowd.draw(self.tape, barred))
            barred |= {rows[-1]} if distinct else set()
        drawn = np.array(rows, np.int64)
        return DrawnPeer(drawn, self.crowd) if layout is None else DrawnPeers(drawn, layout, self.crowd)

    def _layout(self, each: Any, times: int | None) -> Layout | None:
        if isinstance(each, UnreadableInbox):
            each.refuse()
        return super()._layout(each, times)


class UnreadableInbox:
    """An inbox at which nobody may look."""

    def __init__(self, kind: str, crowd: StandInCluster):
        self._kind, self._crowd = kind, crowd

    def refuse(self) -> NoReturn:
        """Stop the program."""
        self._crowd.refuse(f"what she receives in {self._kind!r}")

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()


class DrawnPeer(NDArrayOperatorsMixin):
    """Whom she drew: to be written to, not to be computed with."""

    def __init__(self, rows: Any, crowd: StandInCluster):
        self._rows, self._crowd = rows, crowd

    def read(self) -> Any:
        """Return the rows."""
        return self._rows

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        self._crowd.refuse("whom she draws from her cluster")

    __array__ = __array_ufunc__ = __array_function__ = __getitem__ = __len__ = __iter__ = __bool__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()


class DrawnPeers(PerMessage):
    """Whom she drew, several times."""

    def __init__(self, rows: Any, layout: Layout, crowd: StandInCluster):
        super().__init__(rows, layout)
        self._crowd = crowd

    def read(self) -> Any:
        """Return the rows as a message column."""
        return PerMessage(self._data, self.layout)

    @property
    def data(self) -> Any:
        """Stop the program."""
        self._crowd.refuse("whom she draws from her cluster")

    def _moved(self, data: Any, layout: Layout, which: Any) -> PerMessage:  # noqa: ARG002
        return DrawnPeers(data, layout, self._crowd)
