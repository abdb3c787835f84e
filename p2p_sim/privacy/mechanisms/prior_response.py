"""Randomized response with a prior: every observer of the report sees one of the m labels that can be reported."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing.common_statistics import AnsweredByMatrix
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import PriorResponse

SOURCE = "Ghazi et al. 2021, RRWithPrior; the worst pair of labels, see docs/laws.md"
GIVEN = "the prior is public and depends on no user's label"


def law(protocol: PriorResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: randomized response among the m labels that can be reported."""
    m = reportable(protocol)
    found: Law = LocalResponse(local_epsilon(protocol), 2 if m is None else m) if m != 1 else Nothing()
    basis, assumes = (
        ("exact", GIVEN) if m is not None else ("upper", f"{GIVEN}; the worst prior there may be")
    )
    return read_by(setting, found, SOURCE, assumes, basis=basis)


def reportable(protocol: PriorResponse) -> int | None:
    """Return m, how many labels can be reported; None if every user has a prior of her own."""
    shared = protocol.shared_prior()
    return None if shared is None else int(protocol.reportable(shared[None])[1][0])


def matrix(protocol: PriorResponse) -> npt.NDArray[np.float64] | None:
    """Return P(report | label), shape (k, k), row by label; None if every user has a prior of her own."""
    shared = protocol.shared_prior()
    if shared is None:
        return None
    order, m = protocol.reportable(shared[None])
    said = order[0, : m[0]]
    rows = np.zeros((protocol.labels, protocol.labels))
    rows[:, said] = 1 / len(said)
    lie = float(protocol.lying(len(said)))
    if len(said) > 1:
        rows[np.ix_(said, said)] = lie / (len(said) - 1)
    rows[said, said] = 1 - lie
    return rows


def statistic(
    protocol: PriorResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic | None:
    """Return the victim's answer, for a view that reads it and a prior that all users share."""
    if not reads(coalition, channels):
        return Blind()
    rows = matrix(protocol)
    return None if rows is None else AnsweredByMatrix(tuple(map(tuple, rows.tolist())))


def local_epsilon(protocol: PriorResponse) -> float:
    """Return the budget; 0 where only one label can be reported, infinite where no lie can be drawn."""
    if reportable(protocol) == 1:
        return 0.0
    return float(protocol.epsilon) if protocol.lying(2) else math.inf


register(
    PriorResponse,
    Accounting(
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        others_matter=False,
    ),
)
