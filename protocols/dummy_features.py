"""Uniform randomized response on the label, with dummy features: what a release without features costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import Message, Party, Protocol, Rounds, check_flip, check_labels, check_range


@dataclass(frozen=True)
class DummyFeatures(Protocol):
    """Users hand in their label, or with probability lambda a uniform one, and no features.

    ``lam``: lambda, from 0 to 1: how often a label is replaced by a uniform one of all k, her own among them.
    ``labels``: k, from 2 to 256.

    The learner returns the column ``y`` (uint8).  It has no ``sender``: the released features are dummies, so that
    labels go with no features.  Raises InputError for parameters out of range.

    *Source:* Release 2023, Mechanism 3.
    *Assumes:* users follow the protocol; nobody else need be trusted.
    """

    lam: float
    labels: int = 2

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def __post_init__(self) -> None:
        check_range("lam", self.lam, 0, 1)
        check_labels("labels", self.labels)

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def user(self, me: Party) -> Rounds:
        """Report the label or a uniform one."""
        yield self.report(y=uniform_response(me, self.lam, self.labels))  # line 4: no features; 9

    def learner(self, me: Party) -> Rounds:
        """Receive the labels."""
        reports = yield self.report.receive()
        return {"y": reports.columns()["y"]}


def uniform_response(me: Party, lam: float, labels: int) -> npt.NDArray[np.uint8]:
    """Draw what each user says: her label, or with probability ``lam`` a uniform one of ``labels``.

    Raises InputError for a probability that is never drawn.
    """
    check_flip("lam", lam)
    y: npt.NDArray[Any] = me.y.view(np.uint8)
    other = me.draw.below("label", labels, dtype=np.uint8)  # line 8
    new = me.draw.bernoulli("new label", lam)  # 5
    return np.asarray(y + new * (other - y))  # 7; np.where would take ten times as long
