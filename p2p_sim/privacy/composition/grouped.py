"""``grouped``: what a view learns of the labels of several users that change together, from what it learns of one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.composition.compose import composed
from p2p_sim.privacy.composition.group_chain import GroupChain
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile

MOST = 100
"""Largest group."""


def check_group(group: Any) -> None:
    """Check how many labels change together, 1 to 100; raises InputError."""
    whole = isinstance(group, (int, np.integer)) and not isinstance(group, bool)
    if not whole or not 1 <= group <= MOST:
        raise InputError(
            f"group = {group!r}: must be a whole number from 1 to {MOST}, how many labels change together"
        )


def assumption(members: int) -> str:
    """Return who neighbours are."""
    return f"neighbours differ in up to {members} labels"


def grouped(profile: PrivacyProfile, members: int, local_epsilon: float | None = None) -> PrivacyProfile:
    """Return an upper bound of what a view learns of ``members`` labels that change together, 1 to 100.

    ``profile``: of one label, whatever labels all others have.  ``local_epsilon``: of what each user does to her own
    label, by herself, before anybody else sees it, in nats; None if nothing is known of it.  The basis is "upper", or
    "claimed" where that of the profile is.  Raises InputError for another number, for a profile of one composition,
    and for one whose figures are not certified for all cases ("lower" or "measured").  A refused profile is returned.

    *Source:* ``docs/laws.md``, "Groups": a chain of worlds, each of which differs from the next in one label; and the
    composition of ``members`` local reports.
    *Assumes:* users draw independently of each other.
    """
    check_group(members)
    law = profile.law
    if members == 1 or law is None:
        return profile
    if profile.one_composition or law.composition is not None:
        raise InputError(
            f"group = {members}: the profile of view {profile.view!r} is of one composition, which changes with the "
            "first label of a group; give that of the worst"
        )
    if profile.basis == "measured" or (profile.basis == "lower" and law.cases_covered != "searched"):
        raise InputError(
            f"group = {members}: the profile of view {profile.view!r} has basis {profile.basis!r}, and holds for no "
            "other label; give an exact, upper or claimed one"
        )
    assumes = (*profile.assumes, assumption(members))
    if law.pure() == 0:
        return replace(profile, assumes=assumes, members=members)
    source = f"group of {members} from one label's profile: {profile.source}"
    basis = "claimed" if profile.basis == "claimed" else "upper"
    found = GroupChain(law, members, _local(local_epsilon, members))
    return replace(profile, basis=basis, source=source, assumes=assumes, law=found, members=members)


def apart(profile: PrivacyProfile, members: int) -> PrivacyProfile:
    """Return what a view learns of ``members`` labels that it sees apart, each by itself and with draws of its own.

    ``profile``: of one label, with a law.  Labels of a group may change in opposite directions, 0 to 1 and 1 to 0: only
    where both directions show the same is that a composition of equal runs; otherwise it is bounded as any group.
    """
    assert profile.law is not None
    if not _alike_both_ways(profile.law):
        return grouped(profile, members)
    many = composed(profile, members)
    source = f"{profile.source}, each of {members} labels by itself"
    return replace(many, source=source, assumes=(*profile.assumes, assumption(members)), members=members)


def _alike_both_ways(law: Law) -> bool:
    """Whether labels 0 and 1 may be swapped: it is known of the law, or seen in its outcomes."""
    outcomes = law.outcomes() if law.one_pair() is law else None
    if law.symmetric or outcomes is None:
        return law.symmetric
    pairs = list(zip(*outcomes, strict=True))
    return sorted(pairs) == sorted((second, first) for first, second in pairs)


def _local(epsilon0: float | None, members: int) -> Law | None:
    """Return the law of ``members`` binary randomized responses, which dominate any others of that budget."""
    if epsilon0 is None or not math.isfinite(epsilon0):
        return None
    if epsilon0 == 0:
        return Nothing()
    one = PrivacyProfile("local", "exact", "one report", law=LocalResponse(epsilon0))
    return composed(one, members).law
