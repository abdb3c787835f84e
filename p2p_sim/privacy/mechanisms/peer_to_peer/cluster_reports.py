"""The law of a cluster's reports as seen by the learner, alone or with colluding users."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.branch_and_bound import Maximum, climb, search
from p2p_sim.privacy.law import Bracket, Law, largest
from p2p_sim.privacy.laws.binomial_tails import two_levels
from p2p_sim.privacy.laws.bit_count_pmf import compositions, listed_pair
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanisms.peer_to_peer.colluder_knowledge import (
    LEAST,
    Colluders,
    UrnDeltas,
    knowledge_cases,
)
from p2p_sim.privacy.mechanisms.peer_to_peer.pure_epsilon import all_ones
from p2p_sim.privacy.mechanisms.peer_to_peer.report_counts import COARSE, EARLY, FEW, FINE, Reports
from p2p_sim.privacy.mechanisms.peer_to_peer.report_pmf import listable, report_pmf, reports_error
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn

WIDE = 2_000_000
"""Cluster size up to which every composition is covered; beyond, the ends and one bound for all."""

SCAN = 100_000_000
"""Work, counts of ones times numbers of reports, up to which every case of every composition is computed."""

VALUE = 60_000_000
"""Work up to which every case of one composition is computed."""

SEARCH = 1_000_000_000
"""Work up to which a search over compositions that looks at every number of reports goes on to its end."""


@dataclass(frozen=True)
class WorkPlan:
    """What is computed for colluders, or none (``knowledge``), a probability ``theta`` to report, and a composition.

    ``composition``: ones among the other honest users; None for the worst.
    """

    knowledge: Colluders
    theta: float
    composition: int | None = None

    @property
    def work(self) -> float:
        """Counts of ones times numbers of reports, about, of one urn: what a walk takes."""
        pool, alpha = self.knowledge.size - self.knowledge.count, self.knowledge.alpha
        chance = self.theta * pool / self.knowledge.size
        counts = 20 * math.sqrt(pool * alpha * (1 - alpha)) + 40
        numbers = 20 * math.sqrt(pool * chance * (1 - chance)) + 30
        return min(counts, pool) * (min(numbers, pool) if pool > EARLY else pool)

    @property
    def few(self) -> bool:
        """Whether each case of one composition is computed."""
        ones = self.knowledge.others if self.composition is None else self.composition
        if not self.knowledge.count or self.scanned:
            return True
        return self.knowledge.size <= WIDE and self.knowledge.likely(ones) * self.work <= VALUE

    @property
    def scanned(self) -> bool:
        """Whether every case of every composition is computed."""
        if self.knowledge.size > (2000 if self.knowledge.count else 40):
            return False
        close = (
            20 * self.knowledge.count <= self.knowledge.others
        )  # so few colluders that a search is shorter
        return self.knowledge.urns() * self.work <= (SCAN / 50 if close and self.knowledge.count else SCAN)

    @property
    def covered(self) -> bool:
        """Whether each composition is computed, or below a bound that is at most the value times 1 + TOLERANCE."""
        if self.composition is not None or self.scanned:
            return True
        if self.theta == 1 and not self.knowledge.count:
            return self.knowledge.size <= 3000 or (
                self.knowledge.size <= WIDE and self.knowledge.alpha <= 0.45
            )
        walks = (4 + 5 / self.growth**2) * (self.knowledge.likely(0) / 2 if self.knowledge.count else 1)
        return self.knowledge.size <= WIDE and self.few and walks * (self.work + 1000) <= SEARCH

    @property
    def growth(self) -> float:
        """How fast blocks of compositions may grow with the distance from the end."""
        gain = (1 - 2 * self.knowledge.alpha) / max(1e-9, self.knowledge.alpha * (1.5 - self.knowledge.alpha))
        return min(4.0, max(0.05, gain / 2))


Array = npt.NDArray[np.float64]

CUTS = (1e-20, 1e-60, 1e-290)
"""Mass cut off each window; a smaller one is taken where delta is small."""

CRUDE = (1e-10, 1e-12, 1e-14, 1e-16)
"""The same for one bound over all compositions, which leaves this much out and adds it again."""

STAGES = (0.02, 1e-4, LEAST)
"""Least probabilities of the cases that a search computes of a composition, until it is below the worst found."""

TOLERANCE = 1e-8
"""Part of delta by which a composition that was not computed may exceed the worst that was."""

LOOSE = 0.01
"""The same where a search does not look at every number of reports: what its upper end may be too large by."""

_NONE = 1e-4  # part of a floor below which a delta is as good as none


@dataclass(frozen=True)
class ClusterReports(Law):
    """Reports of a cluster of ``size`` users, and what its ``colluders`` see, if none got the victim's bit.

    ``alpha``: probability in [0, 1/2].  ``theta``: probability that a user reports.  ``composition``: ones among the
    other honest users, 0 to size - 1 - colluders; None for the worst.  ``side``: only the direction from 0 to 1,
    which over all compositions is as bad as the other (swap the names of the labels).  ``nodes``: of ``Reports``.
    ``least``: deltas below need not be distinguished from 0.

    *Source:* Clustering 2022, Algorithm 2; ``docs/laws.md``, "The learner".  *Assumes:* users follow the protocol.
    """

    alpha: float
    theta: float
    size: int
    colluders: int = 0
    composition: int | None = None
    side: bool = False
    nodes: tuple[float, ...] = FINE
    least: float = 0.0
    closed = False
    cases_covered = "searched"

    @property
    def symmetric(self) -> bool:
        """Whether the composition is the worst: over all, both directions are as bad."""
        return self.composition is None

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.colluders - 1

    @property
    def proven(self) -> bool:
        """Whether the value is that of the law, so that the bracket tells what it can be wrong by."""
        return self.plan.covered and self.plan.few

    @property
    def knowledge(self) -> Colluders:
        """The colluders."""
        return Colluders(self.alpha, self.size, self.colluders)

    @property
    def plan(self) -> WorkPlan:
        """What is computed and what is left to bounds."""
        return WorkPlan(self.knowledge, self.theta, None if self.side else self.composition)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions, maximised over the composition where it is None."""
        if self.composition is None:
            law, upper = self._worst(epsilon, None)
            both = law.directions(epsilon)[0]
            return (both._replace(upper=max(both.upper, upper)),) * 2
        first = _gain(self, self.composition, epsilon, mirrored=False)
        return first, first if self.side else _gain(self, self.composition, epsilon, mirrored=True)

    def pure(self) -> float:
        """Return the log ratio of the event that every user reports a one.

        It is largest there, because the ratio increases with the reports and the ones among them, and over the
        compositions where all others are zeros.  With colluders: the local budget, as they may know the rest.
        """
        return self.pure_bracket().value

    def pure_bracket(self) -> Bracket:
        """Return ``pure`` with certified ends."""
        return _pure(self.alpha, self.others, self.colluders, self.composition)

    def start(self, delta: float) -> float:
        """Guess epsilon from a normal approximation at the end of the compositions."""
        a, pool = self.alpha, self.size - self.colluders
        m = pool * self.theta * pool / self.size
        spread = math.sqrt((m + m * m / pool) * max(a * (1 - a), 1e-12) + 1e-12)
        return max(1e-9, (1 - 2 * a) * m / pool / spread * math.sqrt(2 * math.log(1 / delta)) * 0.75)

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the law at the composition that is worst at ``epsilon``."""
        if self.composition is not None:
            return self
        return self._end if epsilon is None else self._worst(epsilon, previous)[0]

    @property
    def _end(self) -> ClusterReports:
        """The law at the end that is worse more often: a search that begins well is short."""
        return replace(self, composition=self.others if self.theta == 1 else 0, side=True)

    def _worst(self, epsilon: float, previous: Law | None) -> tuple[ClusterReports, float]:
        """Return (the law at the worst composition found, an upper bound of delta over all)."""
        old = replace(previous, least=self.least) if isinstance(previous, ClusterReports) else self._end
        new = old
        if not self.plan.covered and self.size <= WIDE:
            new = self._better(new, self._climbed(epsilon), epsilon)
        found = self._search(epsilon, new)
        new = self._better(new, found.at, epsilon)
        return (previous if new is old and isinstance(previous, ClusterReports) else new), found.upper

    def _better(self, old: ClusterReports, at: int, epsilon: float) -> ClusterReports:
        if at in (-1, old.composition):
            return old
        new = replace(old, composition=at)
        return new if new.delta(epsilon).value > old.delta(epsilon).value * (1 + 1e-11) else old

    def _climbed(self, epsilon: float) -> int:
        """Return the composition that a search finds worst at one number of reports, somewhat above the mean."""
        trials, chance = self.size - self.colluders, self.theta * ((self.size - self.colluders) / self.size)
        m = min(trials, math.ceil(trials * chance + 1.5 * math.sqrt(trials * chance * (1 - chance))))

        def single(ones: int) -> float:
            urn = Urn(self.alpha, ones, self.others - ones)
            return urn.draws(CUTS[0]).gain(m, epsilon)[0]

        return climb(self.others, single, 0.0, near=1000)[1]

    @property
    def listed(self) -> bool:
        """Whether the outcomes of each composition are listed: of few users, none of whom colludes."""
        return not self.colluders and listable(self.alpha, self.theta, self.size)

    def alternatives(self) -> tuple[Law, ...]:
        """Return each composition, one of each two mirror images; this law alone where they are not listed."""
        if self.composition is not None or not self.listed:
            return (self,)
        return tuple(replace(self, composition=ones) for ones in compositions(self.others))

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return every (reports, ones among them), at a composition of few users."""
        ones = self.composition
        if ones is None or self.side or not self.listed:
            return None
        return listed_pair(lambda all_ones: report_pmf(self.alpha, self.theta, self.size, all_ones), ones)

    def outcomes_error(self) -> float:
        """Return what the sums may round away."""
        return reports_error(self.size)

    def one_pair(self) -> Law:
        """Return the law at one composition, about the worst, in both directions."""
        if self.composition is not None:
            return self
        at = self.worst(1e-6)[0].composition
        return replace(self, composition=at)

    def quick(self) -> Law:
        """Return the law looked at in few numbers of reports."""
        same = (self.theta == 1 and not self.colluders) or self.size > WIDE
        return self if same else replace(self, nodes=COARSE)

    def with_floor(self, least: float) -> Law:
        """Return the law whose deltas below ``least`` need not be distinguished from 0."""
        return replace(self, least=least)

    def ceiling(self, epsilon: float) -> float:
        """Return an upper bound of delta over the compositions."""
        if self.composition is None:
            return self._search(epsilon, self._end).upper
        return self.delta(epsilon).upper

    def _search(self, epsilon: float, old: ClusterReports) -> Maximum:
        first, floor = old, old.delta(epsilon)
        simple = self.theta == 1 and not self.colluders and self.size <= WIDE
        if not simple or floor.value < CUTS[-1] * 1e9:
            # Either end may be the worse one, and epsilon may be beyond the pure epsilon of one of them.
            end = replace(old, composition=self.others - (old.composition or 0))
            old, floor = max((old, floor), (end, end.delta(epsilon)), key=lambda pair: pair[1].value)
        cut = next((c for c in (1e-16, *CUTS) if c * 1e9 < floor.value or c < self.least), CUTS[-1])
        best = max(floor.upper, self.least)
        at = -1 if old is first or old.composition is None else old.composition
        if self.plan.scanned:
            return self._scan(epsilon, cut)
        if self.size > WIDE or max(floor.value, self.least) < CUTS[-1] * 1e9:
            # What leaves out less counts on fewer coins, and so reveals more: any of these bounds may be the closest.
            cuts = [c for c in (*CRUDE, *CUTS) if c >= cut]
            return Maximum(best, at, max(best, min(self._bound(0, self.others, epsilon, c) for c in cuts)))
        seen = self._seen(epsilon, cut) if self.colluders else None

        def single(ones: int) -> float:
            crude = self._bound(ones, ones, epsilon, cut, best)
            for least in STAGES:
                if crude > best * (1 + TOLERANCE) and seen is not None and self.plan.covered:
                    crude = min(crude, float(self._gains(ones, ones, seen, least, crude)[1][0]))
            return crude

        def bound(low: int, high: int) -> float:
            return self._bound(low, high, epsilon, cut, best)

        slack, budget = (TOLERANCE, None) if self.plan.covered else (LOOSE, 150)
        found = search(
            self.others + 1, single, bound, growth=self.plan.growth, floor=best, slack=slack, budget=budget
        )
        return found if found.at >= 0 else Maximum(found.value, at, found.upper)

    def _scan(self, epsilon: float, cut: float) -> Maximum:
        """Return the largest of all compositions."""
        value, upper = self._gains(0, self.others, self._seen(epsilon, cut))
        at = int(value.argmax())
        return Maximum(float(value[at]), at, float(upper.max()))

    def _bound(self, low: int, high: int, epsilon: float, cut: float, enough: float = 0.0) -> float:
        """Return an upper bound of delta from 0 to 1 for every composition from ``low`` to ``high`` ones.

        More is revealed than is seen: the bits that colluders know, and which reports carry them.  Of the users
        whose label depends on the composition, each tosses a fair coin with probability 2 alpha and tells the truth
        otherwise; the truth of the latter is revealed, and which reports carry it.  What is left has no composition.
        Nearly always there are ``many`` coins, and always, as good as, the ``least``: the fewer, the more is revealed.
        """
        total, wanted, walk = 0.0, enough - cut, self.plan.covered
        for weight, known in self.knowledge.at_most():
            first, last = max(0, low - known), min(high, self.others - known)
            rare, least, many = two_levels(last - first, 2 * self.alpha, cut)
            both = 0 < rare < 0.5 and self.theta == 1  # where bounds from few numbers of reports are close
            urn = Urn(self.alpha, first, self.others - known - last, least)
            found = self._asked(urn).greatest(epsilon, cut, wanted, walk=walk and not both)
            if both and found > wanted:
                hope = (wanted - rare * found) / (1 - rare)
                usual = self._asked(replace(urn, coins=many)).greatest(epsilon, cut, hope, walk=walk)
                found = rare * found + (1 - rare) * min(found, usual)
            total += weight * found
        return total * (1 + 1e-14) + cut

    def summed(self, ones: int, epsilon: float, cut: float, *, mirrored: bool) -> Bracket:
        """Return delta in one direction at one composition, without a few times ``cut``."""
        at = self.others - ones if mirrored else ones
        some = replace(self.knowledge, forgetful=True)
        if self.colluders and self.plan.few:
            value, upper = self._gains(ones, ones, self._seen(epsilon, cut, mirrored=mirrored))
            return Bracket(max(0.0, float(2 * value[0] - upper[0])), float(value[0]), float(upper[0]))
        if self.colluders and self.size <= WIDE and some.likely(ones) * self.plan.work <= VALUE:
            value, error = knowledge_cases(some, ones, ones).gains(
                self._seen(epsilon, cut, mirrored=mirrored)
            )
            seen = Bracket(*(float(value[0] + sign * error[0]) for sign in (-1, 0, 1)))
        else:
            urn = Urn(self.alpha, ones, self.others - ones)
            asked = self._asked(urn.mirrored() if mirrored else urn)
            enough = _NONE * self.least if cut < self.least or cut == CUTS[-1] else cut * 1e9
            seen = asked.gain(epsilon, cut, self.nodes if self.size <= WIDE else FEW, enough)
        if not self.colluders:
            return seen
        return seen._replace(
            lower=max(0.0, seen.lower),
            upper=max(seen.upper, self._bound(at, at, epsilon, cut, _NONE * self.least)),
        )

    def _seen(self, epsilon: float, cut: float, *, mirrored: bool = False) -> UrnDeltas:
        return UrnDeltas(self._asked(Urn(self.alpha, 0, self.others)), epsilon, cut, mirrored=mirrored)

    def _asked(self, urn: Urn) -> Reports:
        """Return the reports whose bits are drawn from an urn."""
        return Reports(urn, self.size - self.colluders, self.theta * (urn.size / self.size))

    def _gains(
        self, low: int, high: int, seen: UrnDeltas, least: float = LEAST, rest: float = 1.0
    ) -> tuple[Array, Array]:
        """Return (delta, an upper bound) of each composition, shape (high - low + 1,).

        ``least``: probability of a case that is computed; the others show at most ``rest``.
        """
        cases = knowledge_cases(self.knowledge, low, high, least)
        value, error = cases.gains(seen)
        return value, np.minimum(value + error + cases.missing * min(rest, seen.most), seen.most)


@lru_cache(maxsize=256)
def _pure(alpha: float, others: int, colluders: int, composition: int | None) -> Bracket:
    local = LocalResponse.flipping(alpha).pure_bracket()
    given = composition not in (None, 0, others)
    if colluders or alpha == 0.5 or (alpha == 0 and not given):
        return local
    ones = {0} if composition is None else {composition, others - composition}
    found = largest([all_ones(alpha, one, others - one) for one in ones])
    return Bracket(*(min(ends) for ends in zip(local, found, strict=True)))


@lru_cache(maxsize=64)
def _gain(law: ClusterReports, ones: int, epsilon: float, *, mirrored: bool) -> Bracket:
    """Return delta in one direction at one composition, cutting off less while delta is small.

    Kept, because a root, its bracket and the search for the worst composition ask again.
    """
    for cut in CUTS:
        found = law.summed(ones, epsilon, cut, mirrored=mirrored)
        if found.value > cut * 1e9 or cut < law.least:
            return found
    return Bracket(0.0, found.value, found.upper + CUTS[-1])
