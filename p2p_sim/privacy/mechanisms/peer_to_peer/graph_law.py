"""Algorithm 2 on a graph: the profile of every view of the user about whom it learns most.

*Source:* ``docs/laws.md``, "Peers among neighbours".
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.mechanism_parts.arrivals import ARRIVES, upper
from p2p_sim.privacy.mechanisms.peer_to_peer import neighbour_votes
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import local_law
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.setting import Setting, fits, joined
from protocols import PeerToPeer

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_PAIRS, _PART = 50_000_000, 2_000_000  # users met by victims' neighbours: in all, and at a time
_FAR = np.iinfo(np.int64).max // 4  # stands for a neighbour that there is not

SOURCE = "Clustering 2022, Algorithm 2, with peers among neighbours"


def over_neighbours(protocol: PeerToPeer, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of the user of whom it learns most; for a sparse graph, not a complete one."""
    found = bit_seen_profile(protocol, setting)
    if found.law is None or found.basis == "exact" or protocol.labels > 2:  # votes are of bits
        return found
    people, graph = joined(setting)
    alpha, theta = float(protocol.alpha), float(protocol.theta)
    degrees, unseen = _worst(people)
    bounds = [neighbour_votes.least(alpha, theta, degrees)] if alpha else []
    if alpha and unseen is not None:
        bounds.append(neighbour_votes.fresh(alpha, theta, degrees, unseen))
    direct = float(seen_probability(graph, setting.view, 0.0).max())
    local = local_law(protocol)
    apart = [Mixture(((direct, local), (1 - direct, bound))) if direct else bound for bound in bounds]
    about = "the reports of her neighbours as votes; or, " + found.source.partition(": ")[2]
    return replace(found, source=f"{SOURCE}: {about}", law=neighbour_votes.Least((found.law, *apart)))


def under_faults(
    plain: PrivacyProfile, protocol: PeerToPeer, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile where messages may be missing: without users who drop out there are only fewer votes."""
    found = bit_seen_profile(protocol, setting) if faults.drop else plain
    return upper(found, faults, "fewer messages show the victim's noisy label less often")


def bit_seen_profile(protocol: PeerToPeer, setting: Setting) -> PrivacyProfile:
    """Return the profile of a view that is told who asked whom: exact where it knows, an upper bound otherwise."""
    people, graph = joined(setting)
    view, theta = setting.view, float(protocol.theta)
    colluders = fits(setting, people.users)
    local = local_law(protocol)
    assumes = ["one run", "users ask a uniform neighbour, and randomize once", ARRIVES]
    if setting.deviating and colluders:
        about = f"{SOURCE}: a colluder asks the victim"
        assumes.append("colluders may ask whom they like")
        return PrivacyProfile(setting.text, "exact", about, tuple(assumes), "", local)
    if local.epsilon0 == 0:
        return PrivacyProfile(setting.text, "exact", SOURCE, tuple(assumes), "", Nothing())
    report_chance = 1.0 if view.wire and not setting.encrypted else theta if setting.learner else 0.0
    chances = seen_probability(graph, view, report_chance)
    victim = int(chances.argmax())
    chance = float(chances[victim])
    assumes.append(f"the worst of {people.users:,} users: user {victim}, of degree {int(graph.size[victim])}")
    basis, about = "exact", f"the bit is seen in the clear, with probability {chance:.6g}, or not at all"
    if setting.learner and not view.wire:
        basis, about = "upper", f"if who asked whom is told, the bit is seen with probability {chance:.6g}"
    law = Scaled(chance, local)
    return PrivacyProfile(setting.text, basis, f"{SOURCE}: {about}", tuple(assumes), "", law)


@lru_cache(maxsize=2)
def _worst(people: Population) -> tuple[Ints, Ints | None]:
    """Return degrees of a victim's neighbours, and how many others each meets first, that are worse than anybody's.

    The second is None where there are too many to count.
    """
    graph = people.graph
    assert graph is not None
    longest, work = int(graph.size.max()), np.square(graph.size.astype(np.int64))
    counted = longest <= neighbour_votes.MOST and int(work.sum()) <= _MOST_PAIRS
    near = np.add.reduceat(work[graph.order], graph.starts[:-1])  # users met, twice or more, a victim
    parts = np.searchsorted(np.cumsum(near + longest), np.arange(0, int((near + longest).sum()), _PART))
    worst = np.full((2, longest), _FAR)
    for low, high in itertools.pairwise([*np.unique(parts).tolist(), len(graph.codes)]):
        first_known = _first_known(graph, low, high) if counted else None
        worst = np.minimum(worst, _sorted(graph, low, high, first_known, longest))
    return worst[0], worst[1] if counted else None


def _first_known(graph: Members, low: int, high: int) -> Ints:
    """Return of how many users each neighbour of the victims ``low`` .. ``high`` - 1 is the first who knows them.

    Neighbours are asked in ascending id; the victim herself does not count.
    """
    assert graph.order is not None
    edges = slice(int(graph.starts[low]), int(graph.starts[high]))
    neighbours = graph.order[edges]
    users, starts = Members(neighbours, graph.starts, graph.order).everybody()
    edge = np.repeat(np.arange(len(neighbours)), np.diff(starts))
    victim = np.repeat(np.arange(low, high), graph.size[low:high])[edge]
    others = np.flatnonzero(users != victim)
    _, first = np.unique(victim[others] * len(graph.codes) + users[others], return_index=True)
    return np.bincount(edge[others[first]], minlength=len(neighbours))


def _sorted(graph: Members, low: int, high: int, first_known: Ints | None, longest: int) -> Ints:
    """Return the worst degree and number of users met at each rank, over some victims, shape (2, longest)."""
    assert graph.order is not None
    edges = slice(int(graph.starts[low]), int(graph.starts[high]))
    degrees = graph.size[graph.order[edges]].astype(np.int64)
    first_known = np.zeros_like(degrees) if first_known is None else first_known
    victim = np.repeat(np.arange(high - low), graph.size[low:high])
    order = np.lexsort((first_known, degrees, victim))
    rank = np.arange(len(order)) - (graph.starts[low:high] - graph.starts[low])[victim]
    table = np.full((2, high - low, longest), _FAR)
    table[0, victim, rank], table[1, victim, rank] = degrees[order], first_known[order]
    return np.asarray(table.min(axis=1))


def seen_probability(graph: Members, view: Coalition, report_chance: float) -> Floats:
    """Return with which probability a view that knows who asked whom sees each user's bit, shape (users,).

    A neighbour of degree d asks her with probability 1/d.  If she colludes, that is seen; otherwise with probability
    ``report_chance``.  Users who are not named collude where they see most.  Those who are named are no victims: 0.
    """
    near = graph.order
    assert near is not None
    share = 1 / graph.size[near]
    with np.errstate(divide="ignore", invalid="ignore"):
        honest, colluding = np.log1p(-report_chance * share), np.log1p(-share)
        more = np.where(
            np.isneginf(honest), 0.0, colluding - honest
        )  # what it adds that this neighbour colludes
    named = np.isin(near, np.fromiter(view.users, np.int64, len(view.users)))
    log_unseen = np.where(named, colluding, honest)
    if view.some_users:
        more[named] = 0.0
        victim = np.repeat(np.arange(len(graph.size)), graph.size)
        order = np.lexsort((more, victim))
        rank = np.arange(len(near)) - graph.starts[:-1][victim]
        chosen = order[rank < view.some_users]
        log_unseen[chosen] += more[chosen]
    found = -np.expm1(np.add.reduceat(log_unseen, graph.starts[:-1]))
    found[list(view.users)] = 0.0
    return np.asarray(found)


def reports_of_victim(_protocol: PeerToPeer, graph: Members) -> Floats:
    """Return the chance that each user asks the victim."""
    share: Floats = 1 / graph.size
    asks = np.zeros(len(share))
    asks[graph.rows_of(int(graph.codes[0]))] = 1
    return asks * share
