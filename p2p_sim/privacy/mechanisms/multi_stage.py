"""Multi-stage response: every user answers once, under a prior that shows nothing of her; stages are disjoint users.

*Source:* ``docs/laws.md``, "Disjoint users".
"""

from __future__ import annotations

import math
from dataclasses import replace

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.composition.parallel import parallel
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import BLIND, Nothing
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import upper
from p2p_sim.privacy.mechanism_parts.one_report import ONCE
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LawOf, register
from p2p_sim.privacy.setting import Setting, fits
from protocols import MultiStage
from protocols.multi_stage import CHANCE

SOURCE = "Ghazi et al. 2021, LP-MST; parallel composition over disjoint users, see docs/laws.md"
GIVEN = "a prior comes from other users' reports; the worst prior there may be"


def law(protocol: MultiStage, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: of one report, in whatever stage shows most."""
    if setting.size is not None:
        fits(setting, setting.size)
    if setting.learner or (setting.view.wire and not setting.encrypted):
        found = parallel(_stages(protocol, setting.text, protocol.stages))
        drawn = protocol.split == CHANCE and protocol.stages > 1
        # stage 1 alone is known exactly, and nobody is sure to be drawn into it
        return replace(found, basis="upper") if drawn else found
    if not setting.view.user_count or protocol.stages == 1:
        return PrivacyProfile(setting.text, "exact", BLIND, (ONCE,), "", Nothing())
    told = parallel(_stages(protocol, setting.text, protocol.stages - 1))
    why = "a peer sees the prior of her stage, which is computed from the reports of the stages before"
    return replace(told, basis="upper", assumes=(*told.assumes, why))


def _stages(protocol: MultiStage, view: str, stages: int) -> list[PrivacyProfile]:
    """Return what whoever sees all reports learns in each of the first stages."""

    def profile(basis: str, law: Law, *assumes: str) -> PrivacyProfile:
        return PrivacyProfile(view, basis, SOURCE, (ONCE, *assumes), "", law)

    epsilon = local_epsilon(protocol)
    first = profile("exact", LocalResponse(epsilon, protocol.labels) if epsilon else Nothing())
    later = profile("upper", LocalResponse(epsilon) if epsilon else Nothing(), GIVEN)
    return [first, *[later] * (stages - 1)]


def under_faults(
    law: LawOf[MultiStage], protocol: MultiStage, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults: of what is said, that it was said."""
    return upper(law(protocol, setting), faults, "one noisy label at most is said")


def local_epsilon(protocol: MultiStage) -> float:
    """Return the budget; infinite where no lie can be drawn."""
    return float(protocol.epsilon) if protocol.response.lying(2) else math.inf


register(
    MultiStage,
    Accounting(
        law=law,
        under_faults=under_faults,
        local_epsilon=local_epsilon,
    ),
)
