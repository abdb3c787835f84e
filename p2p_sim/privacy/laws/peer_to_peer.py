"""Algorithm 2: what the learner, alone or with users of the cluster, sees of one label."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from p2p_sim.privacy.laws.randomized_response import local_epsilon
from p2p_sim.privacy.laws.reports import COARSE, FEW, FINE, Reports
from p2p_sim.privacy.laws.tails import binomial, reach
from p2p_sim.privacy.laws.urn import Urn
from p2p_sim.privacy.laws.worst import Found, climb, search
from p2p_sim.privacy.profile import Bracket, Law

CUTS = (1e-20, 1e-60, 1e-290)
"""Mass cut off each window; a smaller one is taken where delta is small."""

WIDE = 2_000_000
"""Cluster size up to which every composition is covered; beyond, the ends and one bound for all."""

CASES = 80
"""Cases of what colluders know up to which each is computed."""


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
        """Whether the value is that of the law: each case computed, each composition computed or below a bound."""
        few = self.cases <= CASES or (self.composition is None and self.cases <= 2 * CASES)
        if not few or self.composition is not None:
            return few
        return self.size <= 3000 or (self.size <= WIDE and self.flip <= 0.45)

    @property
    def proven(self) -> bool:
        """Whether no composition can be worse than the one that is computed.

        With theta < 1, or colluders, the composition comes from a search: the bracket's upper end covers all, but the
        value may lie below the true maximum.
        """
        searched = self.composition is None and not self.scanned and (self.theta < 1 or self.colluders > 0)
        return self.covered and not searched

    @property
    def scanned(self) -> bool:
        """Whether every case of every composition is computed."""
        return self.size <= 40 and self.cases <= 40

    @property
    def cases(self) -> int:
        """About how many cases of known bits there are at an end of the compositions."""
        known = min(self.colluders, self.others)
        return (known + 1) * (known + 2) // 2

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions, maximised over the composition where it is None."""
        if self.composition is None:
            worst = self.at_worst(epsilon)
            both = worst.directions(epsilon)[0]
            high = max(both.upper, self.ceiling(epsilon))
            return (Bracket(both.lower, both.value, high),) * 2
        first = self._gain(self.composition, epsilon, mirrored=False)
        return first, first if self.side else self._gain(self.composition, epsilon, mirrored=True)

    def pure(self) -> float:
        """Return the log ratio of the event that every user reports a one.

        It is largest there, because the ratio increases with the reports and the ones among them, and over the
        compositions where all others are zeros.  With colluders: the local budget, as they may know the rest.
        """
        local = local_epsilon(self.flip)
        if self.colluders or self.flip in (0, 0.5):
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
        if epsilon is None:
            return replace(self, composition=self.others, side=True)
        end = replace(self, composition=self.others, side=True)
        old = replace(known, least=self.least) if isinstance(known, Drawn) else end
        new = old
        if (self.colluders or self.theta < 1) and self.size <= WIDE:
            new = self._better(new, self._climbed(epsilon), epsilon)
        new = self._better(new, self._search(epsilon, new).at, epsilon)
        return known if new is old and known is not None else new

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
        return self if self.theta == 1 and not self.colluders else replace(self, nodes=COARSE)

    def with_floor(self, least: float) -> Law:
        """Return the law whose deltas below ``least`` need not be told from 0."""
        return replace(self, least=least)

    def ceiling(self, epsilon: float) -> float:
        """Return an upper bound of delta over the compositions, from few numbers of reports."""
        if self.composition is None:
            return self._search(epsilon, replace(self, composition=self.others, side=True)).upper
        if not self.side or self.scanned:
            return self.delta(epsilon).upper
        for cut in CUTS:
            upper = self._bound(self.composition, self.composition, epsilon, cut)
            if upper > cut * 1e9 or cut < self.least:
                break
        return upper

    def _search(self, epsilon: float, old: Drawn) -> Found:
        first, floor = old, old.delta(epsilon)
        if (
            floor.value < CUTS[-1] * 1e9
        ):  # beyond the pure epsilon of this composition, perhaps: try the other end
            end = replace(old, composition=0)
            old, floor = max((old, floor), (end, end.delta(epsilon)), key=lambda pair: pair[1].value)
        cut = next((c for c in CUTS if c * 1e9 < floor.value or c < self.least), CUTS[-1])
        reached = (
            floor.upper
            if self.scanned
            else old._bound(old.composition or 0, old.composition or 0, epsilon, cut)
        )
        reached = max(reached, self.least)
        if self.size > WIDE or (max(floor.value, self.least) < CUTS[-1] * 1e9 and not self.scanned):
            low = self._bound(0, 0, epsilon, cut)
            upper = max(reached, low, self._bound(0, self.others, epsilon, cut))
            return Found(low, 0, upper) if low > reached else Found(reached, -1, upper)
        best = reached

        def single(ones: int) -> float:
            if self.scanned:
                return self._gain(ones, epsilon, mirrored=False).upper
            return self._bound(ones, ones, epsilon, cut, best)

        def bound(low: int, high: int) -> float:
            return self._bound(low, high, epsilon, cut, best)

        gain = (1 - 2 * self.flip) / max(1e-9, self.flip * (1.5 - self.flip))
        budget = None if self.covered else 150
        growth = min(4.0, max(0.05, gain / 2))
        found = search(self.others + 1, single, bound, growth=growth, floor=best, budget=budget)
        return found if found.at >= 0 or old is first else Found(found.value, 0, found.upper)

    def _bound(self, low: int, high: int, epsilon: float, cut: float, enough: float = 0.0) -> float:
        """Return an upper bound of delta from 0 to 1 for every composition from ``low`` to ``high`` ones.

        More is revealed than is seen: the bits that colluders know, and which reports carry them.  Of the users
        whose label depends on the composition, each tosses a fair coin with probability 2 flip and tells the truth
        otherwise; the truth of the latter is revealed, and which reports carry it.  What is left has no composition.
        """
        known = min(self.colluders, self.others)
        first, last = max(0, low - known), min(high, self.others - known)
        open_ = last - first
        sure = 2 * self.flip * open_
        coins = max(0, math.floor(sure - reach(sure * (1 - 2 * self.flip), cut))) if open_ else 0
        urn = Urn(self.flip, first, self.others - known - last, coins)
        chance = self.theta * (urn.size / self.size)
        return Reports(urn, self.size - self.colluders, chance).greatest(epsilon, cut, enough - cut) + cut

    def _gain(self, ones: int, epsilon: float, *, mirrored: bool) -> Bracket:
        """Return delta in one direction at one composition, cutting off less while delta is small."""
        for cut in CUTS:
            found = self._summed(ones, epsilon, cut, mirrored)
            if found.value > cut * 1e9 or cut < self.least:
                return found
        return Bracket(0.0, found.value, found.upper + CUTS[-1])

    def _summed(self, ones: int, epsilon: float, cut: float, mirrored: bool) -> Bracket:
        pool = self.size - self.colluders
        trials, chance = pool, self.theta * (pool / self.size)
        fine = self.nodes if self.size <= WIDE else FEW
        if not self.colluders or self.cases > CASES or self.size > WIDE:
            urn = Urn(self.flip, ones, self.others - ones)
            seen = Reports(urn.mirrored() if mirrored else urn, trials, chance).gain(epsilon, cut, fine)
            if not self.colluders:
                return seen
            at = self.others - ones if mirrored else ones
            return Bracket(seen.lower, seen.value, max(seen.upper, self._bound(at, at, epsilon, cut)))
        ends, total = [0.0, 0.0, 0.0], 0.0
        for weight, urn in _known(self.flip, self.size, self.colluders, ones):
            nodes = fine if weight > 1e-3 else COARSE
            part = Reports(urn.mirrored() if mirrored else urn, trials, chance).gain(epsilon, cut, nodes)
            ends = [end + weight * new for end, new in zip(ends, part, strict=True)]
            total += weight
        return Bracket(ends[0], ends[1], ends[2] + max(0.0, 1 - total) * max(0.0, 1 - 2 * self.flip))


def _known(flip: float, size: int, colluders: int, ones: int) -> Iterator[tuple[float, Urn]]:
    """Yield (probability, urn) over which honest bits the colluders got, none of them the victim's."""
    others = size - colluders - 1
    for known, chance in enumerate(_distinct(colluders, others, size - 1)):
        for picked in range(max(0, known - others + ones), min(known, ones) + 1):
            ways = math.comb(ones, picked) * math.comb(others - ones, known - picked)
            share = chance * (ways / math.comb(others, known))
            rest = ones - picked, others - ones - known + picked
            for seen, weight in enumerate(_ones_seen(flip, picked, known - picked)):
                if share * weight > 1e-18:
                    yield share * weight, Urn(flip, *rest, 0, seen, known - seen)


@lru_cache(maxsize=64)
def _distinct(balls: int, wanted: int, cells: int) -> tuple[float, ...]:
    """Return the law of how many of ``wanted`` cells, among ``cells``, get a ball."""
    law = [1.0] + [0.0] * min(balls, wanted)
    for _ in range(balls):
        for d in range(len(law) - 1, -1, -1):
            new = law[d - 1] * (wanted - d + 1) / cells if d else 0.0
            law[d] = law[d] * (1 - (wanted - d) / cells) + new
    return tuple(law)


@lru_cache(maxsize=1024)
def _ones_seen(flip: float, ones: int, zeros: int) -> tuple[float, ...]:
    first, second = binomial(ones, 1 - flip, flip, 1e-300), binomial(zeros, flip, 1 - flip, 1e-300)
    law = [0.0] * (ones + zeros + 1)
    for i, p in enumerate(first.mass):
        for j, q in enumerate(second.mass):
            law[first.low + i + second.low + j] += float(p * q)
    return tuple(law)


def _mixed(ratio: float, flip: float) -> float:
    """Return the log ratio of the two labels where the bit's is ``ratio`` >= 0."""
    if ratio > 700:
        return local_epsilon(flip)
    up = math.expm1(ratio)
    return math.log1p((1 - flip) * up) - math.log1p(flip * up)
