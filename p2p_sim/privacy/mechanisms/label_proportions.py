"""Label proportions: exact counts, which hide nothing from an observer who knows the rest of a bag.

*Source:* ``docs/laws.md``, "Label proportions".
"""

from __future__ import annotations

import math
from fractions import Fraction

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.common_statistics import Answered, BagCount, trusts
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.mechanism_parts.bag_sums import PAPER, full_disclosure, trusted, trusted_under_faults
from p2p_sim.privacy.mechanism_parts.likelihoods_from_sums import of_proportions, without_noise
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import LEARNER, Setting
from protocols import LabelProportions


def law(_protocol: LabelProportions, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: the learner, the label, if she knows the others of the bag."""
    why = f"{PAPER}, section 2: the exact count of a bag gives a label away to whoever knows the others of the bag"
    return trusted(setting, full_disclosure(), why)


def statistic(
    protocol: LabelProportions, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic:
    """Return the victim's own report, for who is shown it, or the count of her bag."""
    if trusts(coalition, channels):
        return Answered.of(math.inf, Fraction(0), 2)
    if LEARNER not in coalition.servers:
        return Blind()
    return BagCount.exact("proportion", protocol.bag_size, coalition.user_count, size, composition)


def attack(protocol: LabelProportions, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what the counts of bags say of each label in them; to the aggregator the labels themselves."""
    return of_proportions(view, eta, protocol.bag_size, without_noise, 1, "Unified 2023, proof of Lemma A.1")


register(
    LabelProportions,
    Accounting(
        labels=(BINARY,), law=law, under_faults=trusted_under_faults, statistic=statistic, attack=attack
    ),
)
