"""Peer permutation: the learner sees shuffled labels; views that know the permutation see one randomized label.

The shares of users who drop out are missing for all others alike, who still agree on a seed.  A share that is lost, or
late, or does not open, is missing for one user alone: she has another seed, and so another permutation, and labels are
only partly shuffled.

*Source:* ``docs/laws.md``, "Peer permutation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.faults import Faults
from p2p_sim.core.label_kinds import BINARY
from p2p_sim.observed_view import View
from p2p_sim.privacy import theorems as shared
from p2p_sim.privacy.auditing import common_statistics
from p2p_sim.privacy.auditing.common_statistics import BOTH, UNSEEN, CrowdLabels, VictimBit
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import Array, Blind, Statistic, WorldCounts
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.laws import randomized_response
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Scaled
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffled_bits import ShuffledBits
from p2p_sim.privacy.mechanism_parts.arrivals import Counts, lies_at, missing, silent, upper
from p2p_sim.privacy.mechanism_parts.label_groups import clusters_of
from p2p_sim.privacy.mechanism_parts.label_reports import (
    check_nothing_missing,
    check_prior_rows,
    members,
    readable,
    rows_of,
)
from p2p_sim.privacy.mechanism_parts.linked_reports import linked
from p2p_sim.privacy.mechanism_parts.noisy_crowds import (
    Crowds,
    handed_in,
    histograms,
    known_labels,
    learner_alone,
    of_crowds,
)
from p2p_sim.privacy.mechanism_parts.shuffled_crowds import (
    NOT_THERE,
    among_others,
    bits,
    exact_profile,
    groups_of,
    shuffled_group,
)
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, LawOf, register
from p2p_sim.privacy.setting import LEARNER, Setting, crowd, fits
from protocols import PeerPermutation, peer_permutation

MOST_GROUPS = 100
"""Largest number of groups into which numbers of remaining users are put."""


def shuffled(view: Coalition) -> bool:
    """Return whether a view that sees reports does not know whose label each of them is."""
    return str(view) == LEARNER


def local_epsilon(protocol: PeerPermutation) -> float:
    """Return epsilon of a flip."""
    return randomized_response.local_epsilon(float(protocol.alpha))


def noise(protocol: PeerPermutation) -> LabelNoise:
    """Return that labels are flipped, and permuted within clusters."""
    return LabelNoise(Fraction(protocol.alpha), whose="cluster")


def law(protocol: PeerPermutation, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: a peer knows the permutation, the wire sees it, the learner alone does not."""
    view, n = setting.view, crowd(setting)
    c, alpha = fits(setting, n), float(protocol.alpha)
    local = LocalResponse.flipping(alpha)
    if alpha == 0.5:
        return exact_profile(setting, Nothing(), "no label depends on its owner's")
    if setting.deviating and c:
        return exact_profile(
            setting, local, "who contributes last chooses the seed, and who gets the victim's label"
        )
    if view.wire and not setting.encrypted:
        return exact_profile(
            setting, local, "the victim's label, or the report of who got none, is seen on its way"
        )
    if setting.learner and (view.wire or c):
        how = "traffic shows" if view.wire else "a member knows"
        return exact_profile(setting, local, f"{how} whose label each report is")
    if setting.learner:
        assumes = ("SHAKE-256 of the secret seed is as good as random",)
        ones = ShuffledBits(alpha, n, 0, setting.composition)
        return bits(setting, ones, "labels in a random order", assumes)
    if not c:
        return exact_profile(setting, Nothing(), "who writes to whom does not depend on a label")
    reason = "a member gets one label, whose she knows, and each other's is as likely"
    return exact_profile(setting, Scaled(c / n, local), reason)


def group(protocol: PeerPermutation, setting: Setting, members: int) -> PrivacyProfile | None:
    """Return what the learner learns of several labels among shuffled bits; None for other views."""
    found = law(protocol, setting)
    if not shuffled(setting.view) or found.basis != "exact":
        return None
    return shuffled_group(found, crowd(setting), local_epsilon(protocol), members)


def under_faults(
    law: LawOf[PeerPermutation], protocol: PeerPermutation, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile under faults: "upper", or refused."""
    plain = law(protocol, setting)
    refused = lies_at(setting, faults)
    if refused is not None or plain.law is None:
        return refused or plain
    if not shuffled(setting.view) or plain.law.pure() == 0 or not silent(faults):
        return upper(plain, faults, "who gets a label is as uniform as without, and fewer are sent")
    if missing(faults) or setting.size is None:
        local = replace(plain, law=LocalResponse.flipping(float(protocol.alpha)))
        source = "all that leaves a user depends on her one noisy label: who misses a share has another seed"
        return upper(replace(local, source=source), faults)
    crowds = among_others(law, protocol, setting)
    found = remaining(setting.size, faults.drop).law(crowds, groups_of(setting.size))
    source = f"{plain.source}, of those who stayed: docs/faults.md"
    return upper(replace(plain, law=found, source=source), faults, NOT_THERE)


def remaining(users: int, drop: float) -> Counts:
    """Return the law of how many other labels are reported beside the victim's; ``drop``: the probability a step.

    Users who are there before the second step send their label to another; who receives one, and is still there
    before the third step, reports it.  If a users are there before the second, with the victim, her label goes to one
    of them with probability a / users, and so do those of Hyp(users - 1, a - 1, a - 1) others; whether each is then
    reported is independent.  Numbers of users are grouped, and the least of a group stands for all, which is safe.
    """
    from scipy.stats import binom, hypergeom

    there = Counts.of(users - 1, (1 - drop) ** 2, (1 - drop) ** 2)
    sizes = there.low + 1 + np.arange(len(there.chances))
    there = replace(there, chances=there.chances * sizes / users)
    delivered = _each(there, users, lambda others, left: hypergeom.pmf(left, users - 1, others, others))
    delivered = replace(delivered, chances=delivered.chances * (1 - drop), lost=delivered.lost * (1 - drop))
    return _each(delivered, users, lambda others, left: binom.pmf(left, others, 1 - drop))


def _each(counts: Counts, users: int, law: Callable[[int, Any], Any]) -> Counts:
    """Return the law of how many others are left, given for each number of others by ``law(others, left)``."""
    left, lost = np.zeros(users), 0.0
    for weight, others in counts.groups(MOST_GROUPS):
        if others:
            left[: others + 1] += weight * law(others, np.arange(others + 1))
        else:
            lost += weight
    return Counts(0, left, lost) if left.any() else Counts(0, np.array([lost]))


def smallest_is_worst(_protocol: PeerPermutation, view: Coalition, faulty: bool) -> bool:
    """Return whether the smallest cluster is the worst: where labels are shuffled, and nobody drops out."""
    return not faulty and shuffled(view)


def theorems(
    protocol: PeerPermutation, view: str, sizes: Sequence[int], delta: float
) -> list[shared.Promise]:
    """Return the amplification by shuffling where a view sees labels shuffled, and otherwise the local guarantee."""
    coalition, local = Coalition.parse(view, protocol.roles()), local_epsilon(protocol)
    if not sizes or not shuffled(coalition):
        return [shared.local(local)]
    return shared.shuffled(min(sizes), 0, local, delta)


def statistic(
    protocol: PeerPermutation, coalition: Coalition, size: int, composition: int, channels: str
) -> Statistic | None:
    """Return the statistic of a view of a peer permutation."""
    alpha, colluders = float(protocol.alpha), coalition.user_count
    if shuffled(coalition):
        return Permuted(alpha, size, 0, composition)
    if LEARNER in coalition.servers or (coalition.wire and channels == "plain"):
        return Placed(alpha, 1.0, coalition.wire)
    return VictimBit(alpha, colluders / size, False) if colluders else Blind()


@dataclass(frozen=True)
class Permuted(CrowdLabels):
    """The reports of a cluster, in a permutation that the learner does not know."""

    def read(self, seen: Seen) -> WorldCounts:
        """Return the counts of reports and of ones, and as ``first`` the victim's report, whosever label it is."""
        m, k, own = common_statistics.open_reports(seen)
        return {"m": m, "k": k, "first": own}


@dataclass(frozen=True)
class Placed(VictimBit):
    """The victim's noisy bit, in the report of the user who got it: she is known from the traffic, or from the seed."""

    def read(self, seen: Seen) -> WorldCounts:
        """Return ``bit``."""
        holder = _recipient_of_label(seen) if self.through_reports else _recipient_by_seed(seen)
        bit = np.full(seen.worlds, UNSEEN, np.int8)
        if (reports := seen.kinds.get("report")) is not None:
            world = reports.sender // seen.size
            rows = common_statistics.readable(reports, "y", reports.sender == holder[world])
            if len(rows):
                bit[world[rows]] = reports.fields["y"][rows]
        direct = common_statistics.bit_of_victim(seen, through_reports=False)
        return {"bit": np.where((direct != UNSEEN) & (direct != bit), np.int8(BOTH), bit)}


def _recipient_of_label(seen: Seen) -> Array:
    """Return who has the label of the victim of each world, by the traffic: herself if she sent none."""
    holder = np.arange(seen.worlds) * seen.size
    if (labels := seen.kinds.get("label")) is not None:
        mask = labels.sender % seen.size == 0
        holder[labels.sender[mask] // seen.size] = labels.recipient[mask]
    return holder


def _recipient_by_seed(seen: Seen) -> Array:
    """Return who gets the victim's label by the seed that the first colluder knows."""
    seeds = np.zeros(seen.worlds, np.uint64)
    if (shares := seen.kinds.get("share")) is not None:
        rows = common_statistics.readable(shares, "word", shares.recipient % seen.size == 1)
        np.add.at(seeds, shares.recipient[rows] // seen.size, shares.fields["word"][rows])
    agreed = seeds % np.uint64(peer_permutation.SHARES)
    first = [peer_permutation.agreed_order(seed, seen.size)[0] for seed in agreed.tolist()]
    return np.arange(seen.worlds) * seen.size + np.array(first, np.int64)


def attack(protocol: PeerPermutation, view: View, eta: Floats) -> LabelLikelihoods:
    """Return the likelihoods of labels: from shuffled reports, or from single ones if the view knows whose they are.

    The wire knows that from who writes to whom; colluders know the permutation of their cluster.  The basis is "lower"
    where reports are missing and the view sees more than the learner.
    """
    check_nothing_missing(view)
    check_prior_rows(view, eta, 2)
    of = clusters_of(view).codes.astype(np.int64)
    labels, reports = readable(view, "label"), readable(view, "report")
    source = linked(view, "label", reports["sender"])
    permuted = _permuted(view)
    source = np.where(source < 0, permuted[rows_of(view, reports["sender"])], source)
    whose = source >= 0
    known = known_labels(view, (labels["sender"], labels["y_hat"]), (source[whose], reports["y"][whose]))
    crowd = of[rows_of(view, reports["sender"])]
    seen = histograms(crowd, reports["y"], int(of.max()) + 1, 2)
    seen[np.unique(of[rows_of(view, members(view))])] = 0  # colluders know whose label each report is
    reads = not np.isin(reports["sender"], members(view)).all()
    short = reads and len(reports["y"]) < len(eta) and not learner_alone(view)
    found = Crowds(of, known, seen, handed_in)
    source_text = "Unified 2023, proof of Lemma A.1, of the noisy labels of a cluster"
    return of_crowds(view, eta, channel(2, protocol.alpha), found, source_text, "lower" if short else "exact")


def _permuted(view: View) -> npt.NDArray[np.int64]:
    """Return ids (n,) of whose label each user of a colluder's cluster was sent, by the seed; -1 for other users."""
    people, shares = clusters_of(view), view.messages["share"]
    found = np.full(len(people.codes), -1)
    ids = view.public["user"]
    for user in members(view).tolist():
        rows = people.rows_of(int(people.codes[rows_of(view, np.array([user]))[0]]))
        mine = shares["readable"] & (shares["recipient"] == user)
        seed = int(shares["word"][mine].astype(np.uint64).sum() % np.uint64(peer_permutation.SHARES))
        found[rows[peer_permutation.agreed_order(seed, len(rows))]] = ids[rows]
    return found


register(
    PeerPermutation,
    Accounting(
        labels=(BINARY,),
        law=law,
        under_faults=under_faults,
        theorems=theorems,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        group=group,
        attack=attack,
        smallest_is_worst=smallest_is_worst,
    ),
)
