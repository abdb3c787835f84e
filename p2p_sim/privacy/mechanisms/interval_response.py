"""Randomized response in an interval: every observer of the report sees a number, near the victim's or not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core import exp
from p2p_sim.privacy.auditing.common_statistics import AnsweredByMatrix
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import IntervalResponse

SOURCE = "Liu and Huang 2026, RPWithPrior on a grid; two labels as far apart as they can be, see docs/laws.md"
GIVEN = "the prior is public and depends on no user's label"


def law(protocol: IntervalResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: which of the outputs that are near one of two labels alone came."""
    return read_by(setting, worst(protocol), SOURCE, GIVEN)


def worst(protocol: IntervalResponse) -> Law:
    """Return the law of two labels with the fewest outputs near both."""
    first, last = protocol.interval()
    if first == last:
        return Nothing()
    odds, near = exp(protocol.epsilon), 2 * protocol.window + 1
    alone = min(last - first, near) / (near * odds + last - first)
    rest = 1 - (odds + 1) * alone
    return Atoms.of([odds * alone, alone, rest], [alone, odds * alone, rest])


def matrix(protocol: IntervalResponse) -> npt.NDArray[np.float64]:
    """Return P(output | label), row by label, of the outputs in ascending order."""
    first, last = protocol.interval()
    near, far = 2 * protocol.window + 1, float(protocol.far())
    place = np.clip(np.arange(protocol.labels), first, last) - first
    rows = np.full((protocol.labels, last - first + near), far / max(1, last - first))
    rows[np.arange(protocol.labels)[:, None], place[:, None] + np.arange(near)] = (1 - far) / near
    return rows


def statistic(
    protocol: IntervalResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the output that the victim reported, for a view that reads it."""
    if not reads(coalition, channels):
        return Blind()
    return AnsweredByMatrix(tuple(map(tuple, matrix(protocol).tolist())), field="output")


def local_epsilon(protocol: IntervalResponse) -> float:
    """Return the budget; 0 where the interval is one label, and all report alike."""
    first, last = protocol.interval()
    return float(protocol.epsilon) if last > first else 0.0


register(
    IntervalResponse,
    Accounting(
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        others_matter=False,
    ),
)
