"""Label proportions: a trusted aggregator tells the learner how many labels of each bag are positive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import BagSums, Message, Party, Protocol, Rounds, check_whole
from p2p_sim.core.columns import Inbox
from p2p_sim.network.bags import bag_numbers, once


@dataclass(frozen=True)
class LabelProportions(Protocol):
    """Users are cut into bags of k; the learner sees the number of ones of each bag, which is k times its proportion.

    ``bag_size``: k, users a bag, at least 1: consecutive ids of a cluster; the last bag of a cluster takes the rest, so
    it has k to 2k - 1 users, and a cluster of fewer than k is one bag.  Labels are bits.  The learner returns columns
    ``bag``, ``cluster``, ``size`` (labels that arrived) and ``total`` (ones among them).  A bag of which nothing
    arrived is not there.  Raises InputError for a parameter out of range.

    *Source:* Unified 2023, sections 2 and 3.1 (LLP).
    *Assumes:* the aggregator is trusted: she sees every label.  Counts are exact, so whoever knows the other labels of
    a bag knows the last one: no differential privacy at all.
    """

    bag_size: int = 16

    report = Message(
        "user", "aggregator", "hands the trusted aggregator a label", bag=np.int32, cluster=np.int32, y=bool
    )
    proportion = Message(
        "aggregator", "learner", "tells how many labels of a bag there are, and how many are 1",
        bag=np.int32, cluster=np.int32, size=np.int32, total=np.int64,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_whole("bag_size", self.bag_size)

    def bag_sums(self) -> BagSums:
        """Return the bags."""
        return BagSums(self.bag_size)

    def user(self, me: Party) -> Rounds:
        """Hand in the label, with the public number of the bag."""
        bag = bag_numbers(me.cluster, me.id, self.bag_size)
        yield self.report(bag=bag, cluster=me.cluster.codes, y=me.y)

    def aggregator(self, me: Party) -> Rounds:
        """Count each bag."""
        reports = yield self.report.receive()
        bag, cluster, size, ones = counted(reports)
        yield self.proportion(
            bag=me.each(bag), cluster=me.each(cluster), size=me.each(size), total=me.each(ones)
        )

    def learner(self, me: Party) -> Rounds:
        """Receive the counts."""
        proportions = yield self.proportion.receive()
        return proportions.columns()


def counted(reports: Inbox) -> tuple[npt.NDArray[Any], ...]:
    """Return (bag, cluster, reports, ones) of every bag that reported, in the order of bags; duplicates count once."""
    reports = once(reports)
    bag, cluster, y = reports.bag.data, reports.cluster.data, reports.y.data
    if not len(bag):
        return bag, cluster, bag, bag
    if bool((bag[1:] < bag[:-1]).any()):  # clusters are not of consecutive users
        order = np.argsort(bag, kind="stable")
        bag, cluster, y = bag[order], cluster[order], y[order]
    start = np.flatnonzero(np.append(True, bag[1:] != bag[:-1]))
    size = np.diff(np.append(start, len(bag)))
    return bag[start], cluster[start], size, np.add.reduceat(y, start, dtype=np.int64)
