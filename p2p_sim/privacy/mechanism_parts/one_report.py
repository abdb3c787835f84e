"""Mechanisms in which each user says one noisy thing to the learner, by herself: who reads it, with which law."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.faults import Faults
from p2p_sim.privacy.auditing.common_statistics import AnsweredByMatrix
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Nothing
from p2p_sim.privacy.mechanism_parts.arrivals import upper
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import LawOf, P
from p2p_sim.privacy.setting import LEARNER, Setting, fits

ONCE = "each user reports once"


def read_by(setting: Setting, law: Law, source: str, *assumes: str, basis: str = "exact") -> PrivacyProfile:
    """Return the profile of a view: ``law`` for the learner and for who sees a plain wire, nothing for others.

    ``assumes``: beside that each user reports once.
    """
    if setting.size is not None:
        fits(setting, setting.size)
    if not (setting.learner or (setting.view.wire and not setting.encrypted)):
        return PrivacyProfile(setting.text, "exact", BLIND, (ONCE,), "", Nothing())
    return PrivacyProfile(setting.text, basis, source, (ONCE, *assumes), "", law)


def reads(coalition: Coalition, channels: str) -> bool:
    """Whether a coalition reads what users say; ``channels``: "plain" or "encrypted"."""
    return LEARNER in coalition.servers or (coalition.wire and channels == "plain")


def answer(coalition: Coalition, channels: str, matrix: npt.NDArray[Any], field: str = "y") -> Statistic:
    """Return the ``field`` of the victim's message, P(what it says | label) in rows, for a view that reads it."""
    if not reads(coalition, channels):
        return Blind()
    return AnsweredByMatrix(tuple(map(tuple, matrix.tolist())), field=field)


def under_faults(law: LawOf[P], protocol: P, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile under faults: of what is said, that it was said."""
    return upper(law(protocol, setting), faults, "one noisy label at most is said")
