"""Algorithm 2 under faults: a proven upper bound, or a refusal.

Drop-outs, losses and delays do not depend on labels, and messages that arrive are some of those that would have been
there otherwise.  Three statements follow, of which a profile names the one that it rests on.

Local: whatever happens, all that leaves a user depends on her label by her one noisy label.

Seen: a view that knows who asked whom sees the victim's noisy label in the clear or not at all; with fewer messages
less often.

Thinned: the learner does not know who asked whom, and messages to oneself are never lost: so a report that arrives is
more likely of the reporter's own label than without faults, and the law without them is no bound.  Tell the learner
who can answer (still there), and which of the others' reports that arrive, of those who asked themselves, would not
have arrived had it been somebody else: these are seen in the clear.  The rest draw evenly from the users who can answer
and are not seen, as in a smaller cluster without faults whose users report less often, except for the victim, whose
report leans towards her own bit (``tilted.py``).  Fewer users, and more reports, only tell more; so counts of users
are put together in groups, at a cost that is added.

*Source:* ``docs/laws.md``, "Faults of Algorithm 2".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.mixtures import Mixture, Scaled
from p2p_sim.privacy.mechanism_parts.arrivals import CUT, lies_at, silent, upper
from p2p_sim.privacy.mechanisms.peer_to_peer import graph_law
from p2p_sim.privacy.mechanisms.peer_to_peer.law import asks_known_probability, seen_probability
from p2p_sim.privacy.mechanisms.peer_to_peer.retried import RetriedReports
from p2p_sim.privacy.mechanisms.peer_to_peer.theorems import local_law
from p2p_sim.privacy.mechanisms.peer_to_peer.tilted import TiltedLaw
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import LawOf
from p2p_sim.privacy.setting import Setting
from protocols import PeerToPeer

Array = npt.NDArray[np.float64]

GROUPS = 16
"""Into how many groups counts of users are put."""

LARGEST = 1_000_000
"""Largest cluster of which groups are made."""

CROWD = 12
"""Smallest cluster in which a shuffle is looked for where users ask again: fewer hide little, and take long."""

ONCE = "the local guarantee: all that leaves a user depends on her one noisy label, and retries tell no more"
"""The first statement."""


def under_faults(
    law: LawOf[PeerToPeer], protocol: PeerToPeer, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile of Algorithm 2."""
    refused = lies_at(setting, faults)
    if refused is not None:
        return refused
    plain = law(protocol, setting)
    if plain.law is None or plain.law.pure() == 0 or not silent(faults):
        return upper(plain, faults, "every message arrives in time")
    local = upper(replace(plain, law=local_law(protocol)), faults)
    colluders = setting.view.user_count
    if protocol.retries and (setting.people is not None or (setting.deviating and colluders)):
        return replace(local, source=ONCE)
    if (setting.deviating and colluders) or setting.view.wire or not setting.learner:
        return _in_the_clear(plain, protocol, setting, faults)
    if setting.people is not None:
        return graph_law.under_faults(plain, protocol, setting, faults)
    if protocol.labels > 2:
        return _as_if_asks_were_known(local, protocol, setting)
    if protocol.retries and (faults.drop or colluders):  # who can answer changes, or colluders hear several
        return _retried(local, protocol, setting, faults)
    thinned = _thinned(law, protocol, setting, faults)
    if thinned is None:
        return replace(local, source=ONCE)
    return replace(local, source=f"{plain.source}, of a smaller cluster: docs/faults.md", law=thinned)


def _retried(local: PrivacyProfile, protocol: PeerToPeer, setting: Setting, faults: Faults) -> PrivacyProfile:
    """Return the profile of the learner, or of her with curious users, where it matters who asks again."""
    n, c = setting.size or 1, setting.view.user_count
    if not CROWD <= n <= LARGEST:
        return replace(local, source=ONCE)
    turns = 1 + int(protocol.retries)
    reports = RetriedReports(float(protocol.alpha), float(protocol.theta), n, c, turns, faults)
    about = "shuffles of the bits of those who could answer; who drops out and when is told: docs/faults.md"
    if c:
        about = f"a colluder hears the victim's noisy label; otherwise {about}"
    return replace(local, source=about, law=reports.law())


def _in_the_clear(
    plain: PrivacyProfile, protocol: PeerToPeer, setting: Setting, faults: Faults
) -> PrivacyProfile:
    """Return the profile of a view that sees the victim's bit in the clear or not at all; all may ask several times."""
    if protocol.retries:
        n, c = setting.size or 1, setting.view.user_count
        chance = seen_probability(setting, n, c, float(protocol.theta), 1 + protocol.retries)
        about = f"of {1 + protocol.retries} peers whom each may ask"
        law = Scaled(chance, local_law(protocol))
        plain = replace(plain, law=law, source=f"{plain.source}, {about}")
    return upper(plain, faults, "fewer messages show the victim's noisy label less often")


def _as_if_asks_were_known(local: PrivacyProfile, protocol: PeerToPeer, setting: Setting) -> PrivacyProfile:
    """Return the profile of the learner, or of her with curious users, of several labels: the second statement.

    It holds for who knows who asked whom, and so for who does not.
    """
    n, turns = setting.size or 1, 1 + int(protocol.retries)
    chance = asks_known_probability(n, setting.view.user_count, float(protocol.theta), turns)
    about = f"if who asked whom is told, the victim's label is seen with probability {chance:.6g} at most"
    return replace(local, source=about, law=Scaled(chance, local_law(protocol)))


@dataclass(frozen=True)
class Thinning:
    """What faults leave of a cluster of Algorithm 2, by the module's third statement.

    ``answers``: probability that a user can answer; ``clear``: that one who can is seen in the clear; ``rate``: that
    a report arrives of another of them, and carries one certain user's bit.
    """

    answers: float
    clear: float
    rate: float

    @classmethod
    def of(cls, faults: Faults, theta: float, size: int, retries: int = 0) -> Thinning:
        """Derive it: an ask, an answer and a report travel; the first two must come in time, or it is asked again.

        ``retries``: 0 where users drop out, for then who can answer changes.
        """
        relayed = ((1 - faults.loss) * (1 - faults.late)) ** 2
        fails = (1 - 1 / size) * (1 - relayed)
        turns = math.fsum(fails**turn for turn in range(1 + retries))
        reported = theta * (1 - faults.loss) * (1 - faults.drop) * turns
        clear = reported * (1 - relayed) / size
        return cls((1 - faults.drop) ** 2, clear, reported * relayed / size / (1 - clear))


def _thinned(law: LawOf[PeerToPeer], protocol: PeerToPeer, setting: Setting, faults: Faults) -> Law | None:
    """Return the mixture over how many users can answer unseen; None if a part of it is not proven."""
    n, colluders = setting.size or 1, setting.view.user_count
    if n > LARGEST:
        return None
    left = Thinning.of(faults, float(protocol.theta), n, int(protocol.retries))
    local = local_law(protocol)
    if not left.rate:
        return Scaled(left.answers * left.clear, local)
    cases: list[tuple[float, Law]] = [(2 * CUT, local)]
    here = left.answers * (1 - left.clear)
    for weight, users, hit in _groups(n - 1 - colluders, here, left.rate, colluders):
        size = users + colluders
        part = replace(protocol, theta=min(1.0, hit * size / users))
        found = law(part, replace(setting, size=size, composition=None))
        if found.law is None or found.basis != "exact":
            return None
        cases.append((weight, found.law))
    drawn = Mixture(tuple(cases))
    return TiltedLaw(left.answers, left.clear, left.rate, drawn, drawn, local)


def _groups(others: int, chance: float, rate: float, colluders: int) -> Iterator[tuple[float, int, float]]:
    """Yield (probability, users, with which probability each reports) of clusters that tell at least as much.

    ``chance``: that each of the ``others`` is one of the users.  All but ``CUT`` of what can happen is in a group.
    """
    from scipy.stats import binom

    low, high = 0, others
    if others:
        low = max(0, int(binom.ppf(CUT / 4, others, chance)) - 1)
        high = min(others, int(binom.isf(CUT / 4, others, chance)) + 1)
    width = math.ceil((high - low + 1) / GROUPS)
    left = [(first, min(first + width - 1, high)) for first in range(low, high + 1, width)]
    while left:
        first, last = left.pop()
        hit = _dominating(first + 1, last + 1, rate, colluders)
        if hit is None:
            middle = (first + last) // 2
            left += [(first, middle), (middle + 1, last)]
        else:
            counts = np.arange(first, last + 1)
            yield float(binom.pmf(counts, others, chance).sum()) if others else 1.0, first + 1, hit


def _dominating(urn: int, askers: int, rate: float, colluders: int) -> float | None:
    """Return with which probability ``urn`` askers must report to tell at least what ``askers`` tell, None if never.

    Each of those reports a bit of the urn with probability ``urn * rate``.  What a view learns grows with the number of
    reports, so it is enough that every number is reached with the same probability, except for ``CUT``.
    """
    from scipy.stats import binom

    least, most = urn * rate, urn / (urn + colluders)
    if askers == urn:
        return least
    numbers = np.arange(urn + 1)  # more than 0, 1, .. urn reports
    wanted: Array = binom.sf(numbers, askers, least) - CUT
    if wanted[-1] > 0 or bool((wanted > binom.sf(numbers, urn, most)).any()):
        return None
    low, high = least, most
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if bool((wanted > binom.sf(numbers, urn, middle)).any()):
            low = middle
        else:
            high = middle
    return high
