"""Laplace label proportions: the law of a bag's noisy count.

*Source:* ``docs/laws.md``, "Laplace label proportions".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.common_statistics import Answered, BagCount, trusts
from p2p_sim.privacy.auditing.statistic import Blind, Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.laws import noise
from p2p_sim.privacy.mechanism_parts.bag_sums import PAPER, trusted, trusted_under_faults
from p2p_sim.privacy.mechanism_parts.likelihoods_from_sums import discrete_laplace, of_proportions
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import LEARNER, Setting
from p2p_sim.privacy.theorems import Promise, noise_on_the_count
from protocols import LaplaceLabelProportions


def law(protocol: LaplaceLabelProportions, setting: Setting) -> PrivacyProfile:
    """Return what a view learns."""
    law = noise.DiscreteLaplace(float(protocol.epsilon), int(protocol.grid))
    return trusted(setting, law, f"{PAPER}, section 6: discrete Laplace noise on the count of a bag")


def theorems(
    protocol: LaplaceLabelProportions, view: str, _sizes: Sequence[int], _delta: float
) -> list[Promise]:
    """Return the guarantee of the noise; whoever sees labels has none."""
    sees = "aggregator" in view or "wire" in view
    why = "the aggregator, and a plain wire to her, see labels as they are" if sees else ""
    source = "Unified 2023, section 6: Laplace(1/(k epsilon)) on a proportion"
    return [noise_on_the_count(float(protocol.epsilon), why, source)]


def statistic(
    protocol: LaplaceLabelProportions, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic:
    """Return the victim's own report, for who is shown it, or the noisy count of her bag."""
    if trusts(coalition, channels):
        return Answered.of(math.inf, Fraction(0), 2)
    if LEARNER not in coalition.servers:
        return Blind()
    situation = (coalition.user_count, size, composition)
    return BagCount.noisy("proportion", protocol.bag_size, *situation, protocol.epsilon, protocol.grid)


def attack(protocol: LaplaceLabelProportions, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what the noisy counts of bags say of each label in them; to the aggregator the labels themselves."""
    noise = discrete_laplace(float(protocol.epsilon) / protocol.grid)
    source = "Unified 2023, Theorem 6.3, with discrete noise"
    return of_proportions(view, eta, protocol.bag_size, noise, protocol.grid, source)


register(
    LaplaceLabelProportions,
    Accounting(
        labels=(BINARY,),
        law=law,
        under_faults=trusted_under_faults,
        theorems=theorems,
        statistic=statistic,
        attack=attack,
    ),
)
