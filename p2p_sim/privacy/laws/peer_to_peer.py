"""Algorithm 2: what the learner, alone or with users of the cluster, sees of one label."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.laws.known import Colluders, cases_of
from p2p_sim.privacy.laws.randomized_response import local_epsilon
from p2p_sim.privacy.laws.reports import COARSE, FEW, FINE, Reports
from p2p_sim.privacy.laws.tails import reach
from p2p_sim.privacy.laws.urn import Urn
from p2p_sim.privacy.laws.walk import EARLY
from p2p_sim.privacy.laws.worst import Found, climb, search
from p2p_sim.privacy.profile import Bracket, Law

Array = npt.NDArray[np.float64]

CUTS = (1e-20, 1e-60, 1e-290)
"""Mass cut off each window; a smaller one is taken where delta is small."""

WIDE = 2_000_000
"""Cluster size up to which every composition is covered; beyond, the ends and one bound for all."""

SCAN = 100_000_000
"""Work, counts of ones times numbers of reports, up to which every case of every composition is computed."""

VALUE = 60_000_000
"""Work up to which every case of one composition is computed."""

SEARCH = 1_000_000_000
"""Work up to which a search over compositions that looks at every number of reports goes on to its end."""

TOLERANCE = 1e-8
"""Part of delta by which a composition that was not computed may exceed the worst that was."""

LOOSE = 0.01
"""The same where a search does not look at every number of reports: what its upper end may be too large by."""


@dataclass(frozen=True)
class Drawn(Law):
    """Reports of a cluster of ``size`` users, and what its ``colluders`` see, if none got the victim's bit.

    ``flip``: probability in [0, 1/2].  ``theta``: probability that a user reports.  ``composition``: ones among the
    other honest users, 0 to size - 1 - colluders; None for the worst.  ``side``: only the direction from 0 to 1,
    which over all compositions is as bad as the other (swap the names of the labels).  ``nodes``: of ``Reports``.
    ``least``: deltas below need not be told from 0.

    *Source:* Clustering 2022, Algorithm 2; law of ``claims.md`` section 1.  *Assumes:* users follow the protocol.
    """

    flip: float
    theta: float
    size: int
    colluders: int = 0
    composition: int | None = None
    side: bool = False
    nodes: tuple[float, ...] = FINE
    least: float = 0.0
    closed = False

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.colluders - 1

    @property
    def covered(self) -> bool:
        """Whether each composition is computed, or below a bound that is at most the value times 1 + TOLERANCE."""
        if self.composition is not None or self.scanned:
            return True
        if self.theta == 1 and not self.colluders:
            return self.size <= 3000 or (self.size <= WIDE and self.flip <= 0.45)
        walks = 4 + 5 / self.growth**2
        return self.size <= WIDE and walks * (self.work + 1000) <= SEARCH

    @property
    def proven(self) -> bool:
        """Whether the value is that of the law, so that the bracket tells what it can be wrong by."""
        return self.covered and self.few

    @property
    def who(self) -> Colluders:
        """The colluders."""
        return Colluders(self.flip, self.size, self.colluders)

    @property
    def work(self) -> float:
        """Counts of ones times numbers of reports, about, of one urn: what a walk takes."""
        pool = self.size - self.colluders
        chance = self.theta * pool / self.size
        counts = 20 * math.sqrt(pool * self.flip * (1 - self.flip)) + 40
        numbers = 20 * math.sqrt(pool * chance * (1 - chance)) + 30
        return min(counts, pool) * (min(numbers, pool) if pool > EARLY else pool)

    @property
    def few(self) -> bool:
        """Whether each case of one composition is computed."""
        ones = self.others if self.composition is None else self.composition
        if not self.colluders or self.scanned:
            return True
        return self.size <= WIDE and self.who.likely(ones) * self.work <= VALUE

    @property
    def scanned(self) -> bool:
        """Whether every case of every composition is computed."""
        few = self.size <= 40 or bool(self.colluders)
        return few and self.size <= 2000 and self.who.urns() * self.work <= SCAN

    @property
    def growth(self) -> float:
        """How fast blocks of compositions may grow with the distance from the end."""
        gain = (1 - 2 * self.flip) / max(1e-9, self.flip * (1.5 - self.flip))
        return min(4.0, max(0.05, gain / 2))

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions, maximised over the composition where it is None."""
        if self.composition is None:
            law, upper = self._worst(epsilon, None)
            both = law.directions(epsilon)[0]
            return (both._replace(upper=max(both.upper, upper)),) * 2
        first = self._gain(self.composition, epsilon, mirrored=False)
        return first, first if self.side else self._gain(self.composition, epsilon, mirrored=True)

    def pure(self) -> float:
        """Return the log ratio of the event that every user reports a one.

        It is largest there, because the ratio increases with the reports and the ones among them, and over the
        compositions where all others are zeros.  With colluders: the local budget, as they may know the rest.
        """
        local = local_epsilon(self.flip)
        given = self.composition not in (None, 0, self.others)
        if self.colluders or self.flip == 0.5 or (self.flip == 0 and not given):
            return local
        ones = {0} if self.composition is None else {self.composition, self.others - self.composition}
        urns = [Urn(self.flip, one, self.others - one) for one in ones]
        ratios = [urn.draws(CUTS[-1]).ratio(self.size, self.size) for urn in urns]
        return min(local, max(_mixed(ratio, self.flip) for ratio in ratios) * (1 + 1e-12))

    def start(self, delta: float) -> float:
        """Guess epsilon from a normal approximation at the end of the compositions."""
        a, pool = self.flip, self.size - self.colluders
        m = pool * self.theta * pool / self.size
        spread = math.sqrt((m + m * m / pool) * max(a * (1 - a), 1e-12) + 1e-12)
        return max(1e-9, (1 - 2 * a) * m / pool / spread * math.sqrt(2 * math.log(1 / delta)) * 0.75)

    def at_worst(self, epsilon: float | None, known: Law | None = None) -> Law:
        """Return the law at the composition that is worst at ``epsilon``."""
        if self.composition is not None:
            return self
        return self._end if epsilon is None else self._worst(epsilon, known)[0]

    @property
    def _end(self) -> Drawn:
        return replace(self, composition=0, side=True)

    def _worst(self, epsilon: float, known: Law | None) -> tuple[Drawn, float]:
        """Return (the law at the worst composition found, an upper bound of delta over all)."""
        old = replace(known, least=self.least) if isinstance(known, Drawn) else self._end
        new = old
        if not self.covered and self.size <= WIDE:
            new = self._better(new, self._climbed(epsilon), epsilon)
        found = self._search(epsilon, new)
        new = self._better(new, found.at, epsilon)
        return (known if new is old and isinstance(known, Drawn) else new), found.upper

    def _better(self, old: Drawn, at: int, epsilon: float) -> Drawn:
        if at in (-1, old.composition):
            return old
        new = replace(old, composition=at)
        return new if new.delta(epsilon).value > old.delta(epsilon).value * (1 + 1e-11) else old

    def _climbed(self, epsilon: float) -> int:
        """Return the composition that a search finds worst at one number of reports, somewhat above the mean."""
        trials, chance = self.size - self.colluders, self.theta * ((self.size - self.colluders) / self.size)
        m = min(trials, math.ceil(trials * chance + 1.5 * math.sqrt(trials * chance * (1 - chance))))

        def single(ones: int) -> float:
            urn = Urn(self.flip, ones, self.others - ones)
            return urn.draws(CUTS[0]).gain(m, epsilon)[0]

        return climb(self.others, single, 0.0, near=1000)[1]

    def quick(self) -> Law:
        """Return the law looked at in few numbers of reports."""
        same = (self.theta == 1 and not self.colluders) or self.size > WIDE
        return self if same else replace(self, nodes=COARSE)

    def with_floor(self, least: float) -> Law:
        """Return the law whose deltas below ``least`` need not be told from 0."""
        return replace(self, least=least)

    def ceiling(self, epsilon: float) -> float:
        """Return an upper bound of delta over the compositions."""
        if self.composition is None:
            return self._search(epsilon, self._end).upper
        return self.delta(epsilon).upper

    def _search(self, epsilon: float, old: Drawn) -> Found:
        first, floor = old, old.delta(epsilon)
        if floor.value < CUTS[-1] * 1e9 or self.size > WIDE:
            # One end is not enough: epsilon may be beyond its pure epsilon, or be all that is tried.
            end = replace(old, composition=self.others - (old.composition or 0))
            old, floor = max((old, floor), (end, end.delta(epsilon)), key=lambda pair: pair[1].value)
        cut = next((c for c in (1e-16, *CUTS) if c * 1e9 < floor.value or c < self.least), CUTS[-1])
        best = max(floor.upper, self.least)
        at = -1 if old is first or old.composition is None else old.composition
        if self.scanned:
            return self._scan(epsilon, cut)
        if self.size > WIDE or max(floor.value, self.least) < CUTS[-1] * 1e9:
            return Found(best, at, max(best, self._bound(0, self.others, epsilon, cut)))

        def single(ones: int) -> float:
            crude = self._bound(ones, ones, epsilon, cut, best)
            if crude <= best or not self.colluders or not self.covered:
                return crude
            return min(crude, replace(old, composition=ones).delta(epsilon).upper)

        def bound(low: int, high: int) -> float:
            return self._bound(low, high, epsilon, cut, best)

        slack, budget = (TOLERANCE, None) if self.covered else (LOOSE, 150)
        found = search(
            self.others + 1, single, bound, growth=self.growth, floor=best, slack=slack, budget=budget
        )
        return found if found.at >= 0 else Found(found.value, at, found.upper)

    def _scan(self, epsilon: float, cut: float) -> Found:
        """Return the largest of all compositions."""
        value, upper = self._gains(0, self.others, epsilon, cut, mirrored=False)
        at = int(value.argmax())
        return Found(float(value[at]), at, float(upper.max()))

    def _bound(self, low: int, high: int, epsilon: float, cut: float, enough: float = 0.0) -> float:
        """Return an upper bound of delta from 0 to 1 for every composition from ``low`` to ``high`` ones.

        More is revealed than is seen: the bits that colluders know, and which reports carry them.  Of the users
        whose label depends on the composition, each tosses a fair coin with probability 2 flip and tells the truth
        otherwise; the truth of the latter is revealed, and which reports carry it.  What is left has no composition.
        """
        known = self.who.known
        first, last = max(0, low - known), min(high, self.others - known)
        open_ = last - first
        sure = 2 * self.flip * open_
        coins = max(0, math.floor(sure - reach(sure * (1 - 2 * self.flip), cut))) if open_ else 0
        urn = Urn(self.flip, first, self.others - known - last, coins)
        chance = self.theta * (urn.size / self.size)
        reports = Reports(urn, self.size - self.colluders, chance)
        return reports.greatest(epsilon, cut, enough - cut, walk=self.covered) + cut

    def _gain(self, ones: int, epsilon: float, *, mirrored: bool) -> Bracket:
        """Return delta in one direction at one composition, cutting off less while delta is small."""
        for cut in CUTS:
            found = self._summed(ones, epsilon, cut, mirrored)
            if found.value > cut * 1e9 or cut < self.least:
                return found
        return Bracket(0.0, found.value, found.upper + CUTS[-1])

    def _summed(self, ones: int, epsilon: float, cut: float, mirrored: bool) -> Bracket:
        if not self.colluders or not self.few:
            pool = self.size - self.colluders
            urn = Urn(self.flip, ones, self.others - ones)
            asked = Reports(urn.mirrored() if mirrored else urn, pool, self.theta * (pool / self.size))
            seen = asked.gain(epsilon, cut, self.nodes if self.size <= WIDE else FEW)
            if not self.colluders:
                return seen
            at = self.others - ones if mirrored else ones
            return seen._replace(upper=max(seen.upper, self._bound(at, at, epsilon, cut)))
        value, upper = self._gains(ones, ones, epsilon, cut, mirrored=mirrored)
        return Bracket(max(0.0, float(2 * value[0] - upper[0])), float(value[0]), float(upper[0]))

    def _gains(
        self, low: int, high: int, epsilon: float, cut: float, *, mirrored: bool
    ) -> tuple[Array, Array]:
        """Return (delta in one direction, an upper bound) of each composition, shape (high - low + 1,)."""
        cases = cases_of(self.who, low, high)
        pool = self.size - self.colluders
        value, error = cases.gains(pool, self.theta * (pool / self.size), epsilon, cut, mirrored=mirrored)
        most = Reports(cases.urns[0], pool, self.theta * (pool / self.size)).most(epsilon)
        return value, np.minimum(value + error + cases.missing * most, most)


def _mixed(ratio: float, flip: float) -> float:
    """Return the log ratio of the two labels where the bit's is ``ratio`` >= 0."""
    if flip == 0:
        return ratio
    if ratio > 700:
        return local_epsilon(flip)
    up = math.expm1(ratio)
    return math.log1p((1 - flip) * up) - math.log1p(flip * up)
