"""Peer-to-peer cluster randomized response (Algorithm 2), over clusters and over neighbours in a graph."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.privacy.mechanisms.peer_to_peer.attack import attack
from p2p_sim.privacy.mechanisms.peer_to_peer.faults import under_faults
from p2p_sim.privacy.mechanisms.peer_to_peer.graph_law import over_neighbours, reports_of_victim
from p2p_sim.privacy.mechanisms.peer_to_peer.law import group, over_clusters
from p2p_sim.privacy.mechanisms.peer_to_peer.statistic import statistic
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import local_epsilon, theorems
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, register
from p2p_sim.privacy.setting import Setting
from protocols import PeerToPeer


def law(protocol: PeerToPeer, setting: Setting) -> PrivacyProfile:
    """Return what a view learns."""
    return (over_clusters if setting.people is None else over_neighbours)(protocol, setting)


def noise(protocol: PeerToPeer) -> LabelNoise:
    """Return that labels are replaced, and drawn from the cluster or from the reporter's neighbours."""
    return LabelNoise(Fraction(protocol.alpha), protocol.labels, protocol.over)


register(
    PeerToPeer,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        group=group,
        among_clusters=lambda protocol: replace(protocol, over="cluster"),
        reports_of_victim=reports_of_victim,
        attack=attack,
    ),
)
