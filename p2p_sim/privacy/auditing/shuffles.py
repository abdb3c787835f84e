"""Shuffles: the ones among the labels of a crowd, or the victim's own bit where the permutation is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.privacy.accounts import shuffles
from p2p_sim.privacy.auditing import reading
from p2p_sim.privacy.auditing.base import (
    Array,
    Blind,
    Columns,
    Statistic,
    anything,
    bit_ratio,
    in_table,
)
from p2p_sim.privacy.auditing.peer_to_peer import CUT, Told
from p2p_sim.privacy.auditing.reading import BOTH, UNSEEN
from p2p_sim.privacy.auditing.worlds import Seen
from p2p_sim.privacy.laws.tails import noisy_ones
from p2p_sim.views import Coalition
from protocols import peer_permutation

ENTRIES = ("report", "report2", "report3")
"""What users send into a chain of one, two, three shufflers."""


def mixed(protocol: Any, coalition: Coalition, size: int, composition: int) -> Statistic | None:
    """Return the statistic of an encrypted shuffle's view that does not read reports by sender; None for k > 2."""
    if "learner" not in coalition.servers:
        return Blind()
    flip = float(protocol.randomizer.lying())
    return Mixed(flip, size, coalition.user_count, composition) if protocol.labels == 2 else None


def permuted(
    protocol: Any, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the statistic of a view of a peer permutation."""
    alpha, few = float(protocol.alpha), coalition.user_count
    if shuffles.shuffled(protocol, coalition):
        return Permuted(alpha, size, 0, composition)
    if "learner" in coalition.servers or (coalition.wire and channels == "plain"):
        return Placed(alpha, 1.0, coalition.wire)
    return Told(alpha, few / size, False) if few else Blind()


@dataclass(frozen=True)
class Crowd(Statistic):
    """``m`` labels of honest users, ``k`` ones among them; without colluders ``first``, the one at a fixed place.

    ``composition``: honest others with label 1.  ``first``: 0 if there is none, else 1 more than the bit.

    *Source:* claims.md section 3; in a uniformly random order every place holds a one with chance k / m.
    """

    flip: float
    size: int
    colluders: int
    composition: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", ("m", "k") if self.colluders else ("m", "k", "first"))

    @property
    def honest(self) -> int:
        """Honest users, the victim among them."""
        return self.size - self.colluders

    def _others(self) -> tuple[int, Array]:
        """Return the law of the ones among the honest others: the least number of them, and probabilities."""
        window = noisy_ones(self.flip, self.composition, self.honest - 1 - self.composition, 0, CUT)
        return window.low, window.mass

    def _ratio(self, rows: Columns) -> Array:
        low, mass = self._others()
        with np.errstate(divide="ignore", invalid="ignore"):
            one, zero = (np.log(in_table(mass, rows["k"] - low - bit)[1]) for bit in (1, 0))
            ratio = np.where(np.isneginf(one) & np.isneginf(zero), 0.0, one - zero)
        return bit_ratio(ratio, self.flip)

    def _law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        low, mass = self._others()
        noise = np.array([self.flip, 1 - self.flip] if label else [1 - self.flip, self.flip])
        below, chance = anything(len(rows["m"]), self.draws)
        chance[:, 0] = rows["m"] == self.honest
        below[:, 1], chance[:, 1] = in_table(np.convolve(mass, noise), rows["k"] - low)
        if not self.colluders:
            share = np.clip(rows["k"] / self.honest, 0.0, 1.0)
            below[:, 2] = np.where(rows["first"] == 2, 1 - share, 0.0)
            chance[:, 2] = np.choose(np.clip(rows["first"], 0, 2), [0.0 * share, 1 - share, share])
        return below, chance


@dataclass(frozen=True)
class Mixed(Crowd):
    """What came out of the last shuffler, without what colluders know that they put in."""

    def read(self, seen: Seen) -> Columns:
        """Count by cluster; ``first`` is the label that arrived first."""
        m, k, first = (np.zeros(seen.worlds, np.int64) for _ in range(3))
        if (came := seen.kinds.get("mixed")) is not None:
            world, y = seen.world_of(came), came.fields["y"]
            m, k = _counts(world, y, seen.worlds)
            with_one, earliest = np.unique(world, return_index=True)
            first[with_one] = 1 + y[earliest].astype(np.int64)
        if not self.colluders:
            return {"m": m, "k": k, "first": first}
        for kind in ENTRIES:
            if (own := seen.kinds.get(kind)) is not None:
                rows = reading.readable(own, "y", own.sender % seen.size != 0)
                known = _counts(
                    own.sender[rows] // seen.size, own.fields["y"][rows] if len(rows) else rows, seen.worlds
                )
                m, k = m - known[0], k - known[1]
        return {"m": m, "k": k}


@dataclass(frozen=True)
class Permuted(Crowd):
    """What the users of a cluster report by a permutation that the learner does not know."""

    def read(self, seen: Seen) -> Columns:
        """Count reports; ``first`` is the victim's, which is anybody's label."""
        m, k, own = reading.open_reports(seen)
        return {"m": m, "k": k, "first": own}


@dataclass(frozen=True)
class Placed(Told):
    """The victim's noisy bit, in the report of whom she gave it to: known from the traffic, or from the seed."""

    def read(self, seen: Seen) -> Columns:
        """Return ``bit``."""
        holder = _heard(seen) if self.through_reports else _agreed(seen)
        bit = np.full(seen.worlds, UNSEEN, np.int8)
        if (reports := seen.kinds.get("report")) is not None:
            world = reports.sender // seen.size
            rows = reading.readable(reports, "y", reports.sender == holder[world])
            if len(rows):
                bit[world[rows]] = reports.fields["y"][rows]
        told = reading.bit_of_victim(seen, through_reports=False)
        return {"bit": np.where((told != UNSEEN) & (told != bit), np.int8(BOTH), bit)}


def _heard(seen: Seen) -> Array:
    """Return to whom the victim of each world sent her label: nobody heard it if she kept it."""
    holder = np.arange(seen.worlds) * seen.size
    if (labels := seen.kinds.get("label")) is not None:
        hers = labels.sender % seen.size == 0
        holder[labels.sender[hers] // seen.size] = labels.recipient[hers]
    return holder


def _agreed(seen: Seen) -> Array:
    """Return who gets the victim's label by the seed that the first colluder knows."""
    seeds = np.zeros(seen.worlds, np.uint64)
    if (shares := seen.kinds.get("share")) is not None:
        rows = reading.readable(shares, "word", shares.recipient % seen.size == 1)
        np.add.at(seeds, shares.recipient[rows] // seen.size, shares.fields["word"][rows])
    kept = seeds % np.uint64(peer_permutation.SHARES)
    first = [peer_permutation.agreed_order(seed, seen.size)[0] for seed in kept.tolist()]
    return np.arange(seen.worlds) * seen.size + np.array(first, np.int64)


def _counts(world: Array, y: Array, worlds: int) -> tuple[Array, Array]:
    return (
        np.bincount(world, minlength=worlds),
        np.bincount(world, y, minlength=worlds).astype(np.int64),
    )
