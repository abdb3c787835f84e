"""How much of Algorithm 2's law is computed, and what is left to bounds: decided before, from the sizes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_sim.privacy.laws.known import Colluders
from p2p_sim.privacy.laws.walk import EARLY

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
    """What is computed for colluders, or none (``who``), a probability ``theta`` to report, and a composition.

    ``composition``: ones among the other honest users; None for the worst.
    """

    who: Colluders
    theta: float
    composition: int | None = None

    @property
    def work(self) -> float:
        """Counts of ones times numbers of reports, about, of one urn: what a walk takes."""
        pool, alpha = self.who.size - self.who.count, self.who.alpha
        chance = self.theta * pool / self.who.size
        counts = 20 * math.sqrt(pool * alpha * (1 - alpha)) + 40
        numbers = 20 * math.sqrt(pool * chance * (1 - chance)) + 30
        return min(counts, pool) * (min(numbers, pool) if pool > EARLY else pool)

    @property
    def few(self) -> bool:
        """Whether each case of one composition is computed."""
        ones = self.who.others if self.composition is None else self.composition
        if not self.who.count or self.scanned:
            return True
        return self.who.size <= WIDE and self.who.likely(ones) * self.work <= VALUE

    @property
    def scanned(self) -> bool:
        """Whether every case of every composition is computed."""
        if self.who.size > (2000 if self.who.count else 40):
            return False
        close = 20 * self.who.count <= self.who.others  # so few colluders that a search is shorter
        return self.who.urns() * self.work <= (SCAN / 50 if close and self.who.count else SCAN)

    @property
    def covered(self) -> bool:
        """Whether each composition is computed, or below a bound that is at most the value times 1 + TOLERANCE."""
        if self.composition is not None or self.scanned:
            return True
        if self.theta == 1 and not self.who.count:
            return self.who.size <= 3000 or (self.who.size <= WIDE and self.who.alpha <= 0.45)
        walks = (4 + 5 / self.growth**2) * (self.who.likely(0) / 2 if self.who.count else 1)
        return self.who.size <= WIDE and self.few and walks * (self.work + 1000) <= SEARCH

    @property
    def growth(self) -> float:
        """How fast blocks of compositions may grow with the distance from the end."""
        gain = (1 - 2 * self.who.alpha) / max(1e-9, self.who.alpha * (1.5 - self.who.alpha))
        return min(4.0, max(0.05, gain / 2))
