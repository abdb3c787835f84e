"""``Party``: what a program sees of the parties in its block, their columns and their draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Layout, PerMessage
from p2p_sim.core.draw import Draw, whole
from p2p_sim.core.errors import MissingColumnError, ProtocolError
from p2p_sim.core.groups import Members
from p2p_sim.core.lazy_attribute import lazy

Array = npt.NDArray[Any]


class NamedColumns(dict[str, Array]):
    """Further columns by name, ``part`` being "public" or "secret"; one that is not there is refused by its name."""

    def __init__(self, part: str, columns: Mapping[str, Array]):
        super().__init__(columns)
        self._part = part

    def __missing__(self, name: str) -> Array:
        has = f"it has {', '.join(map(repr, self))}" if self else f"it has no {self._part} columns"
        raise MissingColumnError(
            f"this population has no {self._part} column {name!r}, {has}: make it with "
            f"Population.from_arrays(..., {self._part}={{{name!r}: values}}), one row a user",
            self._part,
            name,
        )


class FleetingColumns(Mapping[str, Any]):
    """Columns that are made when a program reads one, and let go while it waits: no memory, and a little time."""

    def __init__(self, makes: Mapping[str, Callable[[], Any]]):
        self._makes, self._made = makes, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makes[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makes

    def __iter__(self) -> Iterator[str]:
        return iter(self._makes)

    def __len__(self) -> int:
        return len(self._makes)

    def let_go(self) -> None:
        """Forget what was made."""
        self._made.clear()


@dataclass(repr=False)
class Party:
    """A block of parties of one role, ``me`` in a program; a single user is a block of length 1.

    ``draw``: keyed chance.  Users also have ``y`` (secret label), ``x`` (features), ``cluster`` and ``neighbours``
    (groups), ``public`` and ``secret`` (further columns); one entry a user, read-only.  ``real``: whether cryptography
    is real in this run.  ``clock``: seconds computed so far; ``aside``: those of them spent on cryptography, and on
    making columns.
    """

    role: str
    rows: range
    ids: range | Array
    draw: Draw
    columns: Mapping[str, Any] = field(default_factory=dict)
    real: bool = False
    spent: dict[str, int] = field(default_factory=dict)
    clock: Callable[[], float] = float  # none: always 0.0
    aside: float = 0.0

    @contextmanager
    def doing(self, **operations: int) -> Iterator[None]:
        """Count cryptographic operations for the run's costs, by name.

        What they take here, real or modelled, is left out of the program's time: their rates say what they cost.
        """
        for operation, number in operations.items():
            self.spent[operation] = self.spent.get(operation, 0) + number
        begun = self.clock()
        yield
        self.aside += self.clock() - begun

    def rest(self) -> None:
        """Let go of what can be made again, while the program waits for messages."""
        vars(self).pop("id", None)
        if isinstance(self.columns, FleetingColumns):
            self.columns.let_go()

    @property
    def size(self) -> int:
        """How many parties the block holds."""
        return len(self.rows)

    @lazy
    def id(self) -> npt.NDArray[np.int64]:
        """Each party's id, int64; a server is 0."""
        return whole(self.ids)

    @property
    def y(self) -> Array:
        """The secret labels: bool for binary protocols, otherwise uint8."""
        return self._column("y")  # type: ignore[no-any-return]

    @property
    def x(self) -> Array:
        """The public features, shape (parties, d)."""
        return self._column("x")  # type: ignore[no-any-return]

    @property
    def cluster(self) -> Members:
        """The cluster of each user; one cluster of everyone where the population has none."""
        return self._column("cluster")  # type: ignore[no-any-return]

    @property
    def neighbours(self) -> Members:
        """The neighbours of each user in the population's graph."""
        return self._column("neighbours")  # type: ignore[no-any-return]

    @property
    def public(self) -> Mapping[str, Array]:
        """Further public columns by name; reading one that the population does not have raises an error naming it."""
        return self._column("public")  # type: ignore[no-any-return]

    @property
    def secret(self) -> Mapping[str, Array]:
        """Further secret columns by name; reading one that the population does not have raises an error naming it."""
        return self._column("secret")  # type: ignore[no-any-return]

    def each(self, values: Any) -> PerMessage:
        """Turn an array into a server's message column: one message an entry.  Servers only."""
        if self.size != 1 or self.columns:
            raise ProtocolError(
                f"role {self.role!r}: me.each is for servers; a user's several items come from times="
            )
        array = np.asarray(values)
        return PerMessage(array, self.draw.several(len(array)))

    def contingency(self, groups: Array, values: Array, outcomes: int) -> npt.NDArray[np.int64]:
        """Return how often each value, 0 to ``outcomes`` - 1, stands beside each group, 0 to the largest.

        ``groups``: integers from 0; ``values``: uint8, of the same length.  The table has shape (groups, outcomes).
        Raises ProtocolError for values outside.
        """
        if len(groups) != len(values):
            raise ProtocolError(
                f"contingency: {len(groups)} groups beside {len(values)} values; give one of each for every entry"
            )
        low, high, most = int(groups.min(initial=0)), int(groups.max(initial=-1)), int(values.max(initial=0))
        if low < 0 or most >= outcomes:
            raise ProtocolError(
                f"contingency: groups from {low} and values up to {most}; groups are integers from 0, and values are "
                f"below {outcomes}"
            )
        table: npt.NDArray[np.int64] = self.draw.compute.contingency(groups, values, (high + 1, outcomes))
        return table

    def all_of(self, members: Members) -> PerMessage:
        """Return the ids of all users of each party's group, ascending: what to send to, one message a user."""
        rows, starts = members.everybody()
        self.draw.note_members(rows)
        return PerMessage(rows, Layout(starts))

    def _column(self, name: str) -> Any:
        if name in self.columns:
            begun = self.clock()
            column = self.columns[name]
            self.aside += self.clock() - begun
            return column
        if not self.columns:
            raise ProtocolError(
                f"role {self.role!r} is a server and has no {name!r}: only users hold columns"
            )
        fix = {
            "x": "make the population with x=",
            "neighbours": "join the users with population.with_graph(edges)",
        }
        text = f"this population has no {name!r}: {fix.get(name, 'give it that column')}"
        raise MissingColumnError(text, name, name)
