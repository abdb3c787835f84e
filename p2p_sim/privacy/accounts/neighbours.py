"""Algorithm 2 with peers among neighbours in a graph: who could have asked the victim, and what became of her bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.privacy.accounts.peer_to_peer import ARRIVES
from p2p_sim.privacy.accounts.setting import Setting, fits, joined
from p2p_sim.privacy.laws.combine import Nothing, Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.views import Coalition

Floats = npt.NDArray[np.float64]
SOURCE = "Clustering 2022, Algorithm 2, with peers among neighbours"


def over_neighbours(protocol: Any, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of the user of whom it learns most; for a sparse graph, not a complete one."""
    people, graph = joined(setting)
    view, alpha, theta = setting.view, float(protocol.alpha), float(protocol.theta)
    colluders = fits(setting, people.users)
    local = LocalResponse.flipping(alpha)
    assumes = ["one run", "users ask a uniform neighbour, and flip once", ARRIVES]
    if setting.deviating and colluders:
        assumes.append("colluders may ask whom they like")
        return PrivacyProfile(
            setting.text, "exact", f"{SOURCE}: a colluder asks the victim", tuple(assumes), "", local
        )
    if alpha == 0.5:
        return PrivacyProfile(setting.text, "exact", SOURCE, tuple(assumes), "", Nothing())
    heard = 1.0 if view.wire and not setting.encrypted else theta if setting.learner else 0.0
    chances = seen(graph, view, heard)
    victim = int(chances.argmax())
    chance = float(chances[victim])
    assumes.append(f"the worst of {people.users:,} users: user {victim}, of degree {int(graph.size[victim])}")
    if setting.learner and not view.wire:
        basis, about = "upper", f"if who asked whom is told, the bit is seen with probability {chance:.6g}"
    else:
        basis, about = "exact", f"the bit is seen in the clear, with probability {chance:.6g}, or not at all"
    return PrivacyProfile(
        setting.text, basis, f"{SOURCE}: {about}", tuple(assumes), "", Scaled(chance, local)
    )


def seen(graph: Members, view: Coalition, heard: float) -> Floats:
    """Return with which probability a view that knows who asked whom sees each user's bit, shape (users,).

    A neighbour of degree d asks her with probability 1/d.  If she colludes, that is seen; otherwise with probability
    ``heard``.  Users who are not named collude where they see most.  Those who are named are no victims: 0.
    """
    near = graph.order
    assert near is not None
    share = 1 / graph.size[near]
    with np.errstate(divide="ignore", invalid="ignore"):
        open_, told = np.log1p(-heard * share), np.log1p(-share)
        more = np.where(np.isneginf(open_), 0.0, told - open_)  # what it adds that this neighbour colludes
    named = np.isin(near, np.fromiter(view.users, np.int64, len(view.users)))
    miss = np.where(named, told, open_)
    if view.some_users:
        more[named] = 0.0
        victim = np.repeat(np.arange(len(graph.size)), graph.size)
        order = np.lexsort((more, victim))
        rank = np.arange(len(near)) - graph.starts[:-1][victim]
        chosen = order[rank < view.some_users]
        miss[chosen] += more[chosen]
    found = -np.expm1(np.add.reduceat(miss, graph.starts[:-1]))
    found[list(view.users)] = 0.0
    return np.asarray(found)
