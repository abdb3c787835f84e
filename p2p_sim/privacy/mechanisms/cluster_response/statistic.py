"""What an audit counts of cluster response: q~ of a small cluster of known labels, and the victim's label as released.

*Source:* ``docs/laws.md``, "Cluster response".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing.common_statistics import Answered, chance_ratio
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import Array, Blind, Statistic, WorldCounts, in_table
from p2p_sim.privacy.mechanisms.cluster_response.view_pmf import MOST_LISTED, Floats, outcomes, views
from p2p_sim.privacy.setting import LEARNER
from protocols import ClusterResponse

CURATOR = "curator"
NONE, SEVERAL = -1, -2
"""Stand for a value that is not there, or is none that the law knows, and for a label that came more than once."""


@dataclass(frozen=True)
class DistributionAndLabel(Statistic):
    """The number of q~ among those that a cluster can have, and the victim's label as released.

    ``others``: honest others with the second label of the ``pair``; all the rest have the first.
    """

    protocol: ClusterResponse
    size: int
    others: int
    pair: tuple[int, int] = (0, 1)
    coordinates = ("q", "y")

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the distribution of the cluster, and the victim's label."""
        q, y = np.full(seen.worlds, NONE, np.int64), np.full(seen.worlds, NONE, np.int64)
        distributions, labels = seen.kinds.get("distribution"), seen.kinds.get("released")
        if distributions is not None and "weights" in distributions.fields:
            q[seen.world_of(distributions)] = self._numbers(distributions.fields["weights"])
        if labels is not None and "y" in labels.fields:
            mine = labels.fields["user"] % self.size == 0
            world = seen.world_of(labels)[mine]
            y[world] = labels.fields["y"][mine]
            y[np.bincount(world, minlength=seen.worlds) > 1] = SEVERAL
        return {"q": q, "y": y}

    def _numbers(self, weights: Array) -> Array:
        """Return the index of the value of q~ that each row of weights is, ``NONE`` if it is none."""
        known = views(self.protocol, self.size).weights
        rows, back = np.unique(weights, axis=0, return_inverse=True)
        place = {tuple(row): number for number, row in enumerate(known.tolist())}
        return np.array([place.get(tuple(row), NONE) for row in rows.tolist()], np.int64)[back.ravel()]

    def _table(self, label: int) -> Floats:
        """Return the joint law of both, where the victim has ``label``, one of the pair."""
        counts = [0] * self.protocol.labels
        counts[self.pair[0]] += self.size - 1 - self.others
        counts[self.pair[1]] += self.others
        counts[label] += 1
        return views(self.protocol, self.size).table(tuple(counts), label)

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels; None if the protocol does not have them."""
        return replace(self, pair=labels) if max(labels) < self.protocol.labels else None

    def _chance(self, rows: WorldCounts, label: int) -> Array:
        """Return the joint probability of each row."""
        table = self._table(label)
        there = (rows["q"] >= 0) & (rows["y"] >= 0) & (rows["y"] < self.protocol.labels)
        return np.where(there, table[np.where(there, rows["q"], 0), np.where(there, rows["y"], 0)], 0.0)

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratio of the two joint probabilities; 0 where both are 0."""
        first, second = (self._chance(rows, label) for label in self.pair)
        return chance_ratio(first, second)

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of q~, and that of the label given q~."""
        table = self._table(label)
        alone = table.sum(axis=1)
        below, mass = np.zeros((len(rows["q"]), 2)), np.zeros((len(rows["q"]), 2))
        below[:, 0], mass[:, 0] = in_table(alone, rows["q"])
        there = (rows["q"] >= 0) & (rows["y"] >= 0) & (mass[:, 0] > 0)
        given = table[rows["q"][there]] / alone[rows["q"][there]][:, None]
        at = np.arange(len(given)), rows["y"][there]
        mass[there, 1] = given[at]
        below[there, 1] = np.cumsum(given, axis=1)[at] - given[at]
        return below, mass


def sees_curator(coalition: Coalition, *, encrypted: bool) -> bool:
    """Return whether a view has the labels that the curator receives."""
    return CURATOR in coalition.servers or (coalition.wire and not encrypted)


def unaudited(protocol: ClusterResponse, coalition: Coalition, channels: str) -> str:
    """Return why worlds do not show what the learner sees once phi is estimated from all of them together."""
    if not protocol.phi_share or sees_curator(coalition, encrypted=channels == "encrypted"):
        return ""
    if LEARNER not in coalition.servers:
        return ""
    return (
        f"phi_share = {protocol.phi_share!r}: phi is estimated from all clusters, and the worlds of an audit are "
        "clusters of one run, which would share it; audit what follows, with the rest of epsilon and a phi that is "
        "given"
    )


def statistic(
    protocol: ClusterResponse, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the victim's own label, for who is shown it, or the distribution of her cluster, if that is small."""
    if sees_curator(coalition, encrypted=channels == "encrypted"):
        return Answered.of(math.inf, Fraction(0), protocol.labels)
    if LEARNER not in coalition.servers:
        return Blind()
    settings = protocol.settings()
    if settings.sigma is None or outcomes(protocol, size) > MOST_LISTED:
        return None
    return DistributionAndLabel(protocol, size, composition)
