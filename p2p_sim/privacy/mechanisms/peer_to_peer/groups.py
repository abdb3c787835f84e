"""Algorithm 2 where the labels of several users of a cluster change together: exact for the learner, and for peers.

*Source:* ``docs/laws.md``, "Groups".
"""

from __future__ import annotations

from dataclasses import replace

from p2p_sim.privacy.composition.compose import composed
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.group_counts import WORK, GroupCounts
from p2p_sim.privacy.laws.mixtures import Mixture
from p2p_sim.privacy.mechanisms.peer_to_peer.colluder_knowledge import distinct_hits
from p2p_sim.privacy.mechanisms.peer_to_peer.law import over_clusters
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import local_law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting, crowd
from protocols import PeerToPeer


def group(protocol: PeerToPeer, setting: Setting, members: int) -> PrivacyProfile | None:
    """Return what a view learns of several labels, users curious; None for other views and for large clusters."""
    view, n, alpha = setting.view, crowd(setting), float(protocol.alpha)
    one = over_clusters(protocol, setting)
    if view.wire:
        return None
    if not setting.learner:
        law = _asked(one, local_law(protocol), distinct_hits(view.user_count, members, n))
        return replace(one, law=law, source=f"{one.source}, of as many of the group as peers ask")
    if view.user_count or protocol.labels > 2:
        return None
    counts = GroupCounts(alpha, n, members, float(protocol.theta))
    return replace(one, law=counts, basis="exact") if counts.work <= WORK else None


def _asked(one: PrivacyProfile, local: Law, chances: tuple[float, ...]) -> Law:
    """Return the law of a view that sees the noisy bits of so many of the group: ``chances`` of 0, 1, 2, ..."""
    cases = []
    for many, chance in enumerate(chances):
        seen = composed(replace(one, law=local), many).law
        assert seen is not None
        cases.append((chance, seen))
    return Mixture(tuple(cases))
