"""Shuffles under faults: a label that comes hides among those that came; what is not proven has the local bound.

Whoever looks is told more than she sees: of whose reports something came.  Who that is does not depend on any label,
so what she learns is the law of a crowd of that size, averaged over the sizes.

A permutation that a cluster agrees on is another matter.  Users who drop out leave shares away for all others alike,
who still agree.  A share that is lost or late, or does not open, is missing for one: she has another seed, and takes a
place in another permutation, where labels hide from each other only in part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.accounts.arrivals import Counts, heard, lies_at, missing, silent, upper
from p2p_sim.privacy.accounts.setting import LawOf, Setting
from p2p_sim.privacy.accounts.shuffles import chain, shuffled
from p2p_sim.privacy.laws.combine import Nothing, Scaled
from p2p_sim.privacy.laws.crowds import Ceiling
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.profile import Law, PrivacyProfile

MOST_GROUPS = 12
"""Groups of crowd sizes, at most."""

WORK = 4_000
"""Users of all groups together, beyond which there are fewer groups."""

TABLES = 4
"""Groups where a law is a table of histograms, or a sum over many cases."""

STEPS = 100
"""Groups of those who stay, at most."""

NOT_THERE = "whose reports come does not depend on labels, and is told"


def encrypted_shuffle(law: LawOf, protocol: Any, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile of an encrypted shuffle under faults."""
    plain = law(protocol, setting)
    refused = lies_at(setting, faults)
    if refused is not None or plain.law is None:
        return refused or plain
    if isinstance(plain.law, Nothing) or not silent(faults):
        return upper(plain, faults, "every report arrives once")
    chance = heard(faults, _hops(protocol, setting), sealed=True)
    if chain(protocol) <= setting.view.servers or setting.size is None:
        return upper(replace(plain, law=Scaled(chance, plain.law)), faults, NOT_THERE)
    crowd = _crowd(law, protocol, setting)
    groups = min(_groups(setting.size), MOST_GROUPS if protocol.labels == 2 else TABLES)
    others = setting.size - 1 - setting.view.user_count
    found = Counts.of(others, chance, chance).law(crowd, groups)
    source = f"{plain.source}, of those whose reports come: docs/faults.md"
    return upper(replace(plain, law=found, source=source), faults, NOT_THERE)


def peer_permutation(law: LawOf, protocol: Any, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile of a peer permutation under faults."""
    plain = law(protocol, setting)
    refused = lies_at(setting, faults)
    if refused is not None or plain.law is None:
        return refused or plain
    if not shuffled(protocol, setting.view) or isinstance(plain.law, Nothing) or not silent(faults):
        return upper(plain, faults, "who gets a label is as uniform as without, and fewer are sent")
    if missing(faults) or setting.size is None:
        local = replace(plain, law=LocalResponse.flipping(float(protocol.alpha)))
        source = "all that leaves a user depends on her one noisy label: who misses a share has another seed"
        return upper(replace(local, source=source), faults)
    crowd = _crowd(law, protocol, setting)
    found = staying(setting.size, faults.drop).law(crowd, _groups(setting.size))
    source = f"{plain.source}, of those who stayed: docs/faults.md"
    return upper(replace(plain, law=found, source=source), faults, NOT_THERE)


def staying(users: int, drop: float) -> Counts:
    """Return among how many other labels that are reported the victim's is.

    A label is handed on by those who are there before the second step, and reported if so is the one it goes to, and
    she is still there before the third.  Given those who are there, a with the victim, the label of each goes to one of
    them with probability a / users, and Hyp(users - 1, a - 1, a - 1) of the others' do; each is reported by itself.
    """
    from scipy.stats import binom, hypergeom

    there = Counts.of(users - 1, (1 - drop) ** 2, (1 - drop) ** 2)
    sizes = there.low + 1 + np.arange(len(there.chances))
    there = replace(there, chances=there.chances * sizes / users)
    handed = _each(there, users, lambda others, left: hypergeom.pmf(left, users - 1, others, others))
    handed = replace(handed, chances=handed.chances * (1 - drop), lost=handed.lost * (1 - drop))
    return _each(handed, users, lambda others, left: binom.pmf(left, others, 1 - drop))


def _each(counts: Counts, users: int, law: Callable[[int, Any], Any]) -> Counts:
    """Return how many are left of each number of others, whose law is ``law``."""
    left, lost = np.zeros(users), 0.0
    for weight, others in counts.groups(STEPS):
        if others:
            left[: others + 1] += weight * law(others, np.arange(others + 1))
        else:
            lost += weight
    return Counts(0, left, lost) if left.any() else Counts(0, np.array([lost]))


def _crowd(law: LawOf, protocol: Any, setting: Setting) -> Any:
    """Return what tells the law of a label among so many others of the worst composition, all of them honest."""
    view = replace(setting.view, users=frozenset(), some_users=0)

    def among_others(others: int) -> Law:
        alone = replace(setting, view=view, size=others + 1, composition=None, real=False)
        found = law(protocol, alone)
        assert found.law is not None
        return Ceiling(found.law) if found.basis == "lower" else found.law

    return among_others


def _groups(users: int) -> int:
    return min(MOST_GROUPS, max(1, WORK // users))


def _hops(protocol: Any, setting: Setting) -> int:
    """Return how many messages a report travels in until whoever looks can open it.

    That is, with the learner's key, when the last shuffler outside of the view has passed it on.
    """
    order = ("shuffler3", "shuffler2", "shuffler")[3 - protocol.shufflers :]
    outside = [place for place, role in enumerate(order, 1) if role not in setting.view.servers]
    return 1 + max(outside, default=0)
