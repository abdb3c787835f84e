"""Encrypted shuffle: the law of the shuffled labels of a crowd, and of views that can undo the permutation.

Under faults a label that comes hides among those that came.  Whoever looks is told more than she sees: of whose reports
something came.  Who that is does not depend on any label, so what she learns is the law of a crowd of that size,
averaged over the sizes.

*Source:* ``docs/laws.md``, "Encrypted shuffle".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from p2p_sim.coalition import Coalition
from p2p_sim.core.faults import Faults
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.message import USER
from p2p_sim.observed_view import View
from p2p_sim.privacy import theorems as shared
from p2p_sim.privacy.auditing import common_statistics
from p2p_sim.privacy.auditing.common_statistics import Answered, CrowdLabels, counts
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import Blind, Statistic, WorldCounts
from p2p_sim.privacy.composition.grouped import apart
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanism_parts.arrivals import Counts, label_arrives, lies_at, silent, upper
from p2p_sim.privacy.mechanism_parts.label_groups import clusters_of
from p2p_sim.privacy.mechanism_parts.label_reports import (
    check_nothing_missing,
    check_prior_rows,
    readable,
)
from p2p_sim.privacy.mechanism_parts.noisy_crowds import (
    Crowds,
    handed_in,
    histograms,
    known_labels,
    learner_alone,
    of_crowds,
)
from p2p_sim.privacy.mechanism_parts.shuffled_crowds import (
    MOST_GROUPS,
    NOT_THERE,
    among_others,
    exact_profile,
    groups_of,
    of_crowd,
    shuffled_group,
)
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, LawOf, register
from p2p_sim.privacy.setting import LEARNER, Setting, crowd, fits
from protocols import EncryptedShuffle

TABLES = 4
"""Groups of crowd sizes where a law is a table of histograms, or a sum over many cases."""

ENTRIES = ("report", "report2", "report3")
"""What users send into a chain of one, two, three shufflers."""


def chain(protocol: EncryptedShuffle) -> frozenset[str]:
    """Return the servers whose keys and permutations it takes, all of them, to undo the shuffle."""
    return frozenset(protocol.roles()) - {USER, LEARNER} - set(protocol.idle_roles())


def shuffled(protocol: EncryptedShuffle, view: Coalition) -> bool:
    """Whether a view, to which the labels are shown, sees them shuffled."""
    return LEARNER in view.servers and not chain(protocol) <= view.servers


def local_epsilon(protocol: EncryptedShuffle) -> float:
    """Return the budget; infinite where a lie is rarer than any random word, so that nobody lies."""
    return float(protocol.epsilon) if protocol.randomizer.lying() else math.inf


def noise(protocol: EncryptedShuffle) -> LabelNoise:
    """Return that users lie, and that labels are permuted."""
    return LabelNoise(protocol.randomizer.lying(), protocol.labels, protocol.over)


def law(protocol: EncryptedShuffle, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: nothing without the learner, all with every shuffler, else the shuffled labels."""
    if setting.size is not None:
        fits(setting, setting.size)
    k, budget = protocol.labels, local_epsilon(protocol)
    if not setting.learner:
        return exact_profile(setting, Nothing(), "every report is sealed for the learner")
    if budget == 0:
        return exact_profile(setting, Nothing(), "no report depends on a label")
    if chain(protocol) <= setting.view.servers:
        local = LocalResponse(budget, k)
        return exact_profile(
            setting, local, "Warner 1965: the shufflers tell the learner whose report is whose"
        )
    about = "labels in a random order" + ("" if protocol.over == "cluster" else ", of everybody")
    assumes = ("a shuffler of the chain outside this view is honest", "a report handed in twice is refused")
    return of_crowd(setting, crowd(setting), budget, k, about, assumes)


def group(protocol: EncryptedShuffle, setting: Setting, members: int) -> PrivacyProfile | None:
    """Return what a view learns of several labels: of shuffled bits, or where it is seen whose report is whose."""
    found = law(protocol, setting)
    if not setting.learner or found.basis != "exact":
        return None
    if chain(protocol) <= setting.view.servers:
        return apart(found, members)
    return shuffled_group(
        found, crowd(setting) - setting.view.user_count, local_epsilon(protocol), members, protocol.labels
    )


def under_faults(
    law: LawOf[EncryptedShuffle], protocol: EncryptedShuffle, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults."""
    plain = law(protocol, setting)
    refused = lies_at(setting, faults)
    if refused is not None or plain.law is None:
        return refused or plain
    if plain.law.pure() == 0 or not silent(faults):
        return upper(plain, faults, "every report arrives once")
    chance = label_arrives(faults, _hops(protocol, setting), sealed=True)
    if chain(protocol) <= setting.view.servers or setting.size is None:
        return upper(replace(plain, law=Scaled(chance, plain.law)), faults, NOT_THERE)
    groups = min(groups_of(setting.size), MOST_GROUPS if protocol.labels == 2 else TABLES)
    others = setting.size - 1 - setting.view.user_count
    found = Counts.of(others, chance, chance).law(among_others(law, protocol, setting), groups)
    source = f"{plain.source}, of those whose reports come: docs/faults.md"
    return upper(replace(plain, law=found, source=source), faults, NOT_THERE)


def _hops(protocol: EncryptedShuffle, setting: Setting) -> int:
    """Return how many messages a report travels in until whoever looks can open it.

    That is, with the learner's key, when the last shuffler outside of the view has passed it on.
    """
    order = ("shuffler3", "shuffler2", "shuffler")[3 - protocol.shufflers :]
    outside = [place for place, role in enumerate(order, 1) if role not in setting.view.servers]
    return 1 + max(outside, default=0)


def smallest_is_worst(protocol: EncryptedShuffle, view: Coalition, _faulty: bool) -> bool:
    """Return whether labels are seen shuffled: of one user more, a view could be told the label."""
    return shuffled(protocol, view)


def theorems(
    protocol: EncryptedShuffle, view: str, sizes: Sequence[int], delta: float
) -> list[shared.Promise]:
    """Return the amplification by shuffling where a view sees labels shuffled, and otherwise the local guarantee."""
    coalition, local = Coalition.parse(view, protocol.roles()), local_epsilon(protocol)
    crowds = [size for size in sizes if size > coalition.user_count]
    if not crowds or not shuffled(protocol, coalition):
        return [shared.local(local)]
    return shared.shuffled(min(crowds), coalition.user_count, local, delta)


def statistic(
    protocol: EncryptedShuffle, coalition: Coalition, size: int, composition: int, _channels: str
) -> Statistic | None:
    """Return the victim's own report where the chain is undone, else what came out of it; None for k > 2."""
    if chain(protocol) | {LEARNER} <= coalition.servers:
        entry = ENTRIES[protocol.shufflers - 1]
        return Answered.of(local_epsilon(protocol), protocol.randomizer.lying(), protocol.labels, entry)
    if LEARNER not in coalition.servers:
        return Blind()
    alpha = float(protocol.randomizer.lying())
    return Mixed(alpha, size, coalition.user_count, composition) if protocol.labels == 2 else None


@dataclass(frozen=True)
class Mixed(CrowdLabels):
    """What came out of the last shuffler, without what colluders know that they put in."""

    def read(self, seen: Seen) -> WorldCounts:
        """Count by cluster; ``first`` is the label that arrived first."""
        m, k, first = (np.zeros(seen.worlds, np.int64) for _ in range(3))
        if (messages := seen.kinds.get("mixed")) is not None:
            world, y = seen.world_of(messages), messages.fields["y"]
            m, k = counts(world, y, seen.worlds)
            with_one, earliest = np.unique(world, return_index=True)
            first[with_one] = 1 + y[earliest].astype(np.int64)
        if not self.colluders:
            return {"m": m, "k": k, "first": first}
        for kind in ENTRIES:
            if (own := seen.kinds.get(kind)) is not None:
                rows = common_statistics.readable(own, "y", own.sender % seen.size != 0)
                known = counts(
                    own.sender[rows] // seen.size, own.fields["y"][rows] if len(rows) else rows, seen.worlds
                )
                m, k = m - known[0], k - known[1]
        return {"m": m, "k": k}


def attack(protocol: EncryptedShuffle, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what the shuffled labels of a crowd say of each of its users, and reports that the view reads itself.

    "lower" where reports are missing and the view sees more than the learner, such as who handed one in; and with
    more than two labels in large crowds, where of each user only how often her likeliest answer came is looked at.
    """
    check_nothing_missing(view)
    check_prior_rows(view, eta, protocol.labels)
    people = clusters_of(view)
    of = np.zeros(len(eta), np.int64) if protocol.mixes_everybody() else people.codes.astype(np.int64)
    mixed = view.messages["mixed"]
    here = mixed["readable"]
    cluster = np.zeros(int(here.sum()), np.int64)
    if not protocol.mixes_everybody() and people.labels is not None:
        cluster = np.searchsorted(people.labels, mixed["cluster"][here])
    seen = histograms(cluster, mixed["y"][here], int(of.max()) + 1, protocol.labels)
    entries = [readable(view, kind) for kind in ENTRIES]
    known = known_labels(view, *((report["sender"], report["y"]) for report in entries))
    short = bool((seen.sum(axis=1) < np.bincount(of)).any()) and bool(here.any())
    matrix = channel(protocol.labels, float(protocol.randomizer.lying()))
    source = "Unified 2023, proof of Lemma A.1, of the noisy labels of a crowd"
    basis: Literal["exact", "lower"] = "lower" if short and not learner_alone(view) else "exact"
    return of_crowds(view, eta, matrix, Crowds(of, known, seen, handed_in), source, basis)


register(
    EncryptedShuffle,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
        group=group,
        smallest_is_worst=smallest_is_worst,
        among_clusters=lambda protocol: replace(protocol, over="cluster"),
    ),
)
