"""Network shuffling: reports are sealed, and the learner sees where each one's walk ended.

*Source:* ``docs/laws.md``, "Network shuffle".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.core.groups import Members
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.population import Population
from p2p_sim.network.walks import distribution, stationary
from p2p_sim.privacy import theorems as shared
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.laws.random_size_shuffle import (
    CUT,
    CoinTails,
    Tails,
    certain,
    crowd_size_tails,
    crowded,
    likely,
)
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import upper
from p2p_sim.privacy.mechanism_parts.shuffled_crowds import of_crowd
from p2p_sim.privacy.mechanisms.network_shuffle.attack import attack
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, LawOf, register
from p2p_sim.privacy.setting import Setting, fits, joined
from protocols import NetworkShuffle

KNOWN = ("one run", "users randomize once")


def law(protocol: NetworkShuffle, setting: Setting) -> PrivacyProfile:
    """Return what a view learns of the user of whom it learns most."""
    people, graph = joined(setting)
    view, steps = setting.view, int(protocol.steps)
    colluders = fits(setting, people.users)
    budget = local_epsilon(protocol)
    local = LocalResponse(budget, protocol.labels)
    if not setting.learner:
        return _profile(setting, "exact", "every report is sealed for the learner", Nothing())
    if budget == 0:
        return _profile(setting, "exact", "no report depends on a label", Nothing())
    if not steps:
        return _profile(
            setting, "exact", "Warner 1965: without a step everybody hands in her own report", local
        )
    if view.wire and not setting.encrypted and not graph.complete:
        return _profile(setting, "exact", "Warner 1965: the first step is read on the wire", local)
    if view.wire:
        return _profile(setting, "upper", "the local guarantee: traffic shows where reports go", local)
    if colluders and graph.complete and not setting.deviating:
        about = (
            f"a report whose first step leads to one of {colluders} colluders is read, with the learner's key; "
            "of the rest, nobody knows who began it"
        )
        return _profile(setting, "upper", about, _after_one_step(people.users, colluders, protocol))
    if colluders:
        about = (
            "the local guarantee: a colluder whom the victim's report meets reads it with the learner's key"
        )
        return _profile(setting, "upper", about, local)
    if graph.complete:
        about = f"places, after {steps} steps anywhere alike"
        return of_crowd(setting, people.users, budget, protocol.labels, about)
    tails, how = _crowd_size_tails(people, steps)
    few = likely(tails, 1e-6)
    if likely(tails, 0.5) == 0:
        about = (
            f"the local guarantee: {steps} steps do not carry two users' reports to the same places ({how})"
        )
        return _profile(setting, "upper", about, local)
    about = f"walks of {steps} steps hide each user among {few:,} others or more, but for a chance of 1e-6 ({how})"
    return _profile(
        setting, "upper", f"exact shuffles of so many: {about}", crowded(tails, budget, protocol.labels)
    )


def under_faults(
    law: LawOf[NetworkShuffle], protocol: NetworkShuffle, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults: fewer reports hide each other, and who drops out takes several with her.

    Only the learner opens what is sealed, so only what is handed in can fail to open.
    """
    found = law(protocol, setting)
    if found.law is None or found.law.pure() == 0:
        return upper(found, faults)
    people, graph = joined(setting)
    budget = local_epsilon(protocol)
    local = LocalResponse(budget, protocol.labels)
    colluders = setting.view.user_count
    curious = not (setting.deviating and colluders)
    if graph.complete and protocol.steps and not setting.view.wire and curious:
        fewer: Law = _after_one_step(people.users, colluders, protocol, faults)
        about = "exact shuffles of those whose first step came: what happens to them later does not depend on labels"
        return upper(replace(found, law=fewer, source=about), faults)
    if setting.view.wire or not protocol.steps or colluders:
        return upper(found, faults)
    if faults.drop:
        about = "the local guarantee: who drops out takes several reports with her, so their ends are not independent"
        return upper(replace(found, law=local, source=about), faults)
    arrives = ((1 - faults.loss) * (1 - faults.late)) ** int(protocol.steps) * (1 - faults.loss)
    arrives *= (1 - faults.tamper) * (1 - faults.misdirect)
    tails, how = _crowd_size_tails(people, int(protocol.steps), arrives)
    about = f"exact shuffles of {likely(tails, 1e-6):,} others or more whose reports arrive ({how})"
    fewer = Scaled(arrives, crowded(tails, budget, protocol.labels))
    return upper(
        replace(found, law=fewer, source=about), faults, f"a report arrives with probability {arrives:.6g}"
    )


def _after_one_step(
    users: int, colluders: int, protocol: NetworkShuffle, faults: Faults | None = None
) -> Law:
    """Return an upper bound on a complete graph, for the learner with ``colluders`` curious users, 0 or more.

    After the first step to somebody else the victim's report is at one of the honest users who are still there, and
    so are those of others: from then on what the view sees is computed from a shuffle of them.  A step to oneself is
    never lost, so the victim's may stay with her more often: of the others, a share is as likely to be there.
    """
    from scipy.stats import binom

    wrong = Faults() if faults is None else faults
    stays, comes = 1 - wrong.drop, (1 - wrong.loss) * (1 - wrong.late)
    budget, honest = local_epsilon(protocol), users - colluders
    others = int(binom.ppf(CUT, honest - 1, stays)) if wrong.drop else honest - 1

    def reached(there: int) -> float:
        return min(1.0, (1 + there * comes) / users)

    coin = comes * reached(others) * (1 - 1e-12)
    tails: Tails = CoinTails(others, coin)
    if comes == 1 and not wrong.drop and others + 1 == users:  # every hop ends in the crowd
        tails = certain(others)
    read = stays * (1 - wrong.loss) * colluders / users
    hidden = stays * reached(honest - 1)
    cases = (
        (read, LocalResponse(budget, protocol.labels)),
        (hidden, crowded(tails, budget, protocol.labels)),
    )
    return Mixture(cases[0 if colluders else 1 :])


@lru_cache(maxsize=2)
def _crowd_size_tails(people: Population, steps: int, arrives: float = 1.0) -> tuple[Tails, str]:
    """Return ``crowd_size_tails``, once for a table of views and for a search."""
    assert people.graph is not None
    return crowd_size_tails(people.graph, steps, arrives)


def _profile(setting: Setting, basis: str, about: str, law: Law) -> PrivacyProfile:
    return PrivacyProfile(setting.text, basis, about, KNOWN, "", law)


def theorems(
    protocol: NetworkShuffle, _view: str, _sizes: Sequence[int], _delta: float
) -> list[shared.Promise]:
    """Return the local guarantee."""
    return [shared.local(local_epsilon(protocol))]


def local_epsilon(protocol: NetworkShuffle) -> float:
    """Return the budget; infinite where a lie is rarer than any random word, so that nobody lies."""
    return float(protocol.epsilon) if protocol.randomizer.lying() else math.inf


def noise(protocol: NetworkShuffle) -> LabelNoise:
    """Return that users lie, and that labels walked over the graph."""
    sender = "walk" if protocol.steps else "sender"
    return LabelNoise(protocol.randomizer.lying(), protocol.labels, sender, protocol.steps)


def reports_of_victim(protocol: NetworkShuffle, graph: Members) -> npt.NDArray[np.float64]:
    """Return the chance that the victim's walk ends at each user, over how many reports are expected there."""
    expected = stationary(graph) * len(graph.codes)
    return np.asarray(distribution(graph, 0, int(protocol.steps)) / expected)


register(
    NetworkShuffle,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
        reports_of_victim=reports_of_victim,
    ),
)
