"""The server of secure aggregation: who shares a mask with whom, who stayed, and removing the masks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.columns import Inbox, PerMessage
from p2p_sim.core.kernels_numpy import as_array
from p2p_sim.core.party import Party
from p2p_sim.crypto import field as modular
from p2p_sim.crypto import pairs, shamir
from p2p_sim.crypto.octets import Octets
from p2p_sim.crypto.pairs import Mode
from p2p_sim.network.bags import Ring, connected

Array = npt.NDArray[Any]


@dataclass
class UnmaskingServer:
    """What the aggregator knows.  Users who joined are numbered by position in ``ids``; edges as in ``Ring``.

    ``need`` (users,): shares that recover a secret; ``routed`` (edges,): whose share reached the peer, in both ways;
    ``stayed`` (users,): whose masked value counts; ``asked``: edges, the owner's secret asked of the peer.
    """

    protocol: Any
    ids: Array
    bag: Array
    cluster: Array
    key: Octets
    ring: Ring
    need: Array
    routed: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    stayed: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    value: Array = field(default_factory=lambda: np.zeros(0, np.uint64))
    refused: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    asked: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, joined: Inbox, rank: Array, protocol: Any) -> UnmaskingServer:
        """Join the users of each bag; in one that too few joined nobody has a neighbour, and it is refused in the end.

        Its users then neither share secrets, which colluders could put together, nor hand in values.
        """
        ids, bag = joined.sender.data, joined.bag.data.astype(np.int64)
        sizes = np.bincount(bag)
        ring = Ring.of(bag, rank, protocol.degree)
        ring = ring.where(sizes[bag[ring.owner]] >= protocol.least)
        neighbours = np.bincount(ring.owner, minlength=len(ids))
        need = protocol.needed(sizes[bag], neighbours)
        return cls(protocol, ids, bag, joined.cluster.data, joined.key.data, ring, need)

    @property
    def owner_ids(self) -> Array:
        """The id of each edge's owner."""
        return np.asarray(self.ids[self.ring.owner])

    @property
    def peer_ids(self) -> Array:
        """The id of each edge's peer."""
        return np.asarray(self.ids[self.ring.peer])

    def neighbours(self) -> dict[str, Array]:
        """Return what the owner of each edge is told of its peer."""
        ring = self.ring
        return {
            "peer": self.peer_ids, "key": self.key[ring.peer], "place": ring.place, "need": self.need[ring.owner]
        }  # fmt: skip

    def mutual(self, shares: Inbox) -> tuple[Inbox, Array]:
        """Return the shares that are passed on, and their edges: of pairs of whom both sent theirs."""
        edges = _numbers(shares)  # an answer has the number of its question, which was that of the edge
        first = _firsts(edges)
        received = np.zeros(len(self.ring.owner), np.bool_)
        received[edges] = True
        self.routed = received & received[self.ring.back]
        keep = first & self.routed[edges]
        return shares.where(PerMessage(keep, shares.layout)), edges[keep]

    def close(self, reports: Inbox, edges: Array) -> dict[str, Array]:
        """Take the masked values; return whom to ask for what.

        Refused are bags of which too few stayed, and bags whose masks fall apart into sets with none in common: the
        server could add up each by itself.
        """
        ring, users = self.ring, len(self.ids)
        at = np.searchsorted(self.ids, reports.sender.data)
        masks = np.bincount(ring.peer[edges], minlength=users)
        self.value, self.stayed = np.zeros(users, np.uint64), np.zeros(users, np.bool_)
        self.value[at] = reports.value.data
        # who missed a share has a mask too few: she is left out
        self.stayed[at] = reports.masks.data == masks[at]
        both = self.routed & self.stayed[ring.owner] & self.stayed[ring.peer]
        part = connected(users, ring.owner[both], ring.peer[both])[self.stayed]
        bags = self.bag[np.flatnonzero(self.stayed)[np.unique(part, return_index=True)[1]]]
        self.refused = np.bincount(self.bag[self.stayed], minlength=self._bags) < self.protocol.least
        self.refused |= np.bincount(bags, minlength=self._bags) > 1
        open_ = self.routed & self.stayed[ring.peer] & ~self.refused[self.bag[ring.owner]]
        self.asked = np.flatnonzero(open_)
        owner = ring.owner[self.asked]
        return {"to": self.peer_ids[self.asked], "giver": self.ids[owner], "stayed": self.stayed[owner]}

    def unmask(self, reveals: Inbox, me: Party) -> dict[str, Array]:
        """Return the sum of every bag; where a secret cannot be recovered, the bag is refused."""
        crypto = pairs.mode(me)
        number = _numbers(reveals)
        keep = _firsts(number)
        edge, value = self.asked[number[keep]], reveals.value.data[keep]
        given = np.bincount(self.ring.owner[edge], minlength=len(self.ids))
        # whose secrets must be known: who stayed, and whoever shares a mask with them
        masked = self.stayed.copy()
        masked[self.ring.owner[self.asked]] = True
        self.refused[self.bag[masked & (given < self.need)]] = True
        found, secret = self._recovered(edge, value, me)
        counted = self.stayed & ~self.refused[self.bag]
        total = np.zeros(self._bags, np.uint64)
        np.add.at(total, self.bag[counted], self.value[counted])
        seeds = self.stayed[found]
        np.subtract.at(total, self.bag[found[seeds]], crypto.masks(secret[seeds]))
        self._take_off(total, found[~seeds], secret[~seeds], crypto)
        return self._sums(total)

    def _recovered(self, edge: Array, value: Array, me: Party) -> tuple[Array, Octets]:
        """Return the users, of bags that are not refused, whose secrets were revealed, and the secrets."""
        owner = self.ring.owner[edge]
        wanted = ~self.refused[self.bag[owner]]
        edge, value, owner = edge[wanted], value[wanted], owner[wanted]
        order = np.lexsort((self.ring.place[edge], owner))
        edge, value, owner = edge[order], value[order], owner[order]
        users, start = np.unique(owner, return_index=True)
        secrets = np.zeros((len(users), 32), np.uint8)
        for need in np.unique(self.need[users]).tolist():
            mine = np.flatnonzero(self.need[users] == need)
            rows = start[mine][:, None] + np.arange(need)
            with me.doing(recover=len(mine) * need**2):
                elements = shamir.recover(value[rows], self.ring.place[edge[rows]], need)
            secrets[mine] = shamir.join_octets(elements, 32)
        return users, secrets

    def _take_off(self, total: Array, gone: Array, private: Octets, crypto: Mode) -> None:
        """Take off the masks that those who stayed had put on with users who are gone."""
        place = np.full(len(self.ids), -1)
        place[gone] = np.arange(len(gone))
        edges = self.asked[place[self.ring.owner[self.asked]] >= 0]
        owner, peer = self.ring.owner[edges], self.ring.peer[edges]
        pair = crypto.masks(crypto.agreed(private[place[owner]], self.key[peer]))
        added = self.ids[peer] < self.ids[owner]
        np.subtract.at(total, self.bag[peer], np.where(added, pair, np.uint64(0) - pair))

    def _sums(self, total: Array) -> dict[str, Array]:
        joined = np.bincount(self.bag, minlength=self._bags)
        size = np.bincount(self.bag[self.stayed], minlength=self._bags)
        cluster = np.zeros(self._bags, np.int32)
        cluster[self.bag] = self.cluster
        here = np.flatnonzero(joined)
        signed = modular.centred(np.where(self.refused, np.uint64(0), total), 1 << 64)
        return {
            "bag": here, "cluster": cluster[here], "joined": joined[here], "size": size[here],
            "total": signed[here], "refused": self.refused[here],
        }  # fmt: skip

    @property
    def _bags(self) -> int:
        return int(self.bag.max(initial=-1)) + 1


def _numbers(answers: Inbox) -> Array:
    """Return the numbers of the questions that are answered."""
    seq = answers.rows.seq
    return np.zeros(answers.layout.size, np.int64) if seq is None else as_array(seq).astype(np.int64)


def _firsts(numbers: Array) -> Array:
    """Return a mask of the first of each number: what comes twice is counted once."""
    mask = np.zeros(len(numbers), np.bool_)
    mask[np.unique(numbers, return_index=True)[1]] = True
    return mask
