"""Algorithm 2 in clusters: the profile of every view, and the probability that the victim's bit is seen.

*Source:* ``docs/laws.md``, "Algorithm 2, peer to peer", and "Groups".
"""

from __future__ import annotations

import math
from dataclasses import replace

from p2p_sim.privacy.composition.compose import composed
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.group_counts import WORK, GroupCounts
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import ARRIVES
from p2p_sim.privacy.mechanisms.peer_to_peer.bounded_categories import ShownUsers
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.mechanisms.peer_to_peer.colluder_knowledge import distinct_hits
from p2p_sim.privacy.mechanisms.peer_to_peer.histogram_pmf import SmallCluster
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import local_law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting, crowd, fits
from protocols import PeerToPeer


def over_clusters(protocol: PeerToPeer, setting: Setting) -> PrivacyProfile:
    """Return what a view learns."""
    view, n = setting.view, crowd(setting)
    c = fits(setting, n)
    alpha, theta = float(protocol.alpha), float(protocol.theta)
    local = local_law(protocol)
    assumes = ["one run", "users ask a uniform peer of the cluster, and randomize once", ARRIVES]
    assumes += ["colluders may ask whom they like"] if setting.deviating and c else []
    source = "Clustering 2022, Algorithm 2"
    if setting.deviating and c:
        return PrivacyProfile(
            setting.text, "exact", f"{source}: a colluder asks the victim", tuple(assumes), "", local
        )
    if local.epsilon0 == 0:
        return PrivacyProfile(setting.text, "exact", source, tuple(assumes), "", Nothing())
    if view.wire or not setting.learner:
        law: Law = Scaled(seen_probability(setting, n, c, theta), local)
        about = "the victim's noisy label is seen or not at all"
        return PrivacyProfile(setting.text, "exact", f"{source}: {about}", tuple(assumes), "", law)
    if protocol.labels > 2:
        guaranteed = PrivacyProfile(setting.text, "upper", source, tuple(assumes), "", local)
        return _of_categories(protocol, setting, guaranteed)
    rest = ClusterReports(alpha, theta, n, c, setting.composition)
    law = _or_asked(rest, n, c, local)
    how = "exact law of the number of ones among the reports"
    basis = "exact" if rest.proven else "lower"
    return PrivacyProfile(setting.text, basis, f"{source}: {how}", tuple(assumes), "", law)


def _or_asked(rest: Law, n: int, c: int, local: LocalResponse) -> Law:
    """Return the law where a colluder may have asked the victim: ``rest`` where none did."""
    if not c:
        return rest
    return Mixture(((_not_asked_probability(n, c, 0.0, 0), rest), (_asked_probability(n, c, 0.0, 0), local)))


def group(protocol: PeerToPeer, setting: Setting, members: int) -> PrivacyProfile | None:
    """Return what a view learns of several labels, users curious; None for other views and for large clusters."""
    view, n, alpha = setting.view, crowd(setting), float(protocol.alpha)
    one = over_clusters(protocol, setting)
    if view.wire:
        return None
    if not setting.learner:
        law = _of_asked(one, local_law(protocol), distinct_hits(view.user_count, members, n))
        return replace(one, law=law, source=f"{one.source}, of as many of the group as peers ask")
    if view.user_count or protocol.labels > 2:
        return None
    counts = GroupCounts(alpha, n, members, float(protocol.theta))
    return replace(one, law=counts, basis="exact") if counts.work <= WORK else None


def _of_asked(one: PrivacyProfile, local: Law, chances: tuple[float, ...]) -> Law:
    """Return the law of a view that sees the noisy bits of so many of the group: ``chances`` of 0, 1, 2, ..."""
    cases = []
    for many, chance in enumerate(chances):
        seen = composed(replace(one, law=local), many).law
        assert seen is not None
        cases.append((chance, seen))
    return Mixture(tuple(cases))


def _of_categories(protocol: PeerToPeer, setting: Setting, found: PrivacyProfile) -> PrivacyProfile:
    """Return the profile of the learner, or of her with colluders, of several labels.

    ``found``: the local guarantee, as a profile.
    """
    n, c, ones = crowd(setting), setting.view.user_count, setting.composition
    if setting.real:
        why = f"composition = 'population': counts two labels, the protocol has {protocol.labels}; ask for the worst"
        return PrivacyProfile.refused(setting.text, why)
    each = (float(protocol.alpha), float(protocol.theta), n, protocol.labels, c)
    small, rest, basis = SmallCluster(*each), None, "upper"
    about = "a random set of users, shuffled, as the reports show no more (Balle et al. 2018, 2019)"
    if small.listable:
        rest, basis, about = small.law(ones), "exact", "exact law of the histogram of the reports"
    pair = ("her label and the others' are 0 or 1",) if ones is not None and rest is not None else ()
    law = _or_asked(rest or ShownUsers(*each), n, c, local_law(protocol))
    return replace(
        found, basis=basis, source=f"{found.source}: {about}", assumes=(*found.assumes, *pair), law=law
    )


def seen_probability(setting: Setting, n: int, c: int, theta: float, turns: int = 1) -> float:
    """Return the probability that a view that knows who asks whom sees the victim's bit.

    ``turns``: how often everybody asks.
    """
    if setting.view.wire and not setting.encrypted:
        hit = theta * _asks_probability(n, turns)
        return -math.expm1((n - 1) * turns * _log1m(1 / n) + math.log1p(-hit)) if n > 1 else theta
    if setting.view.wire and setting.learner:
        return asks_known_probability(n, c, theta, turns)
    return _asked_probability(n, c, 0.0, 0, turns)


def asks_known_probability(n: int, c: int, theta: float, turns: int = 1) -> float:
    """Return the probability that the learner and c users see the victim's bit, if they are told who asked whom."""
    return _asked_probability(n, c, theta, n - c, turns)


def _asks_probability(n: int, turns: int) -> float:
    """Return the probability that one user asks a certain one."""
    return 1 / n if turns == 1 or n == 1 else -math.expm1(turns * _log1m(1 / n))


def _asked_probability(n: int, c: int, theta: float, reporters: int, turns: int = 1) -> float:
    """Return the probability that a colluder, or a reporter, asks the victim."""
    if n == 1:
        return theta if reporters else 0.0
    return -math.expm1(
        c * turns * _log1m(1 / n) + reporters * math.log1p(-theta * _asks_probability(n, turns))
    )


def _not_asked_probability(n: int, c: int, theta: float, reporters: int) -> float:
    return math.exp(c * _log1m(1 / n) + reporters * math.log1p(-theta / n))


def _log1m(x: float) -> float:
    return math.log1p(-x)
