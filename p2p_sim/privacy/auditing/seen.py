"""What a coalition saw in the worlds of an audit: what every statistic and attack counts on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import USER, Message
from p2p_sim.privacy.auditing import numbering
from p2p_sim.trace.replay import Draws

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SeenMessages:
    """The messages of one kind that a coalition sees; ``fields``: those that it can read in at least some.

    ``readable``: in which, None for all; what it cannot read is 0.  ``sender``, ``recipient``: ids, 0 for a server.
    ``cluster``: the world of each, where neither end tells it, whether or not the coalition can read that field.
    """

    message: Message
    round: Array
    sender: Array
    recipient: Array
    fields: dict[str, Array]
    readable: Array | None = None
    cluster: Array | None = None


@dataclass(frozen=True)
class Seen:
    """What one coalition saw in some worlds of ``size`` users; colluders have the positions 1 to ``colluders``.

    ``ones``: in which worlds the victim has the second label, which the coalition does not see; ``which``: the place
    of her label among those compared, in each world.  ``draws``: of the colluders, if they were asked for.
    ``weights``: how likely a report of each user of a world is of the victim's label, where a graph tells it.
    """

    size: int
    worlds: int
    colluders: int
    kinds: dict[str, SeenMessages]
    ones: Array | None = None
    draws: Draws = field(default_factory=dict)
    weights: Array | None = None
    which: Array | None = None

    def world_of(self, columns: SeenMessages) -> Array:
        """Return the world of each message: that of its user, or of its field ``cluster`` between servers."""
        message = columns.message
        if message.sender == USER:
            return columns.sender // self.size
        if message.recipient == USER:
            return columns.recipient // self.size
        named = columns.fields.get("cluster") if columns.cluster is None else columns.cluster
        if named is None:
            raise InputError(
                f"messages {message.kind!r} go from server to server, so worlds cannot be told apart: "
                "give them a field `cluster`, cluster=np.int64, with what a user hands in as me.cluster.label"
            )
        if len(named) and not 0 <= int(named.min()) <= int(named.max()) < self.worlds:
            raise InputError(
                f"messages {message.kind!r} have a field `cluster` from {named.min()} to {named.max()}: it must be "
                f"the number of the cluster in the run, here from 0 to {self.worlds - 1}"
            )
        return named.astype(np.int64)

    def numbers_a_world(self, columns: SeenMessages, name: str, world: Array) -> int:
        """Return how many numbers each world has where a field counts through all of them; 0 where it does not.

        ``world``: of each message.  What cannot be read is not looked at.
        """
        values = columns.fields[name]
        if columns.readable is not None:
            values, world = values[columns.readable], world[columns.readable]
        if name == numbering.CLUSTER and np.array_equal(values, world):
            return 1
        return numbering.a_world(values, world, self.size, self.worlds)
