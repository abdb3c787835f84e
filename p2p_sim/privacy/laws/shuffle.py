"""Shuffled binary randomized response: the number of reported ones, with colluders or without."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.laws.randomized_response import local_epsilon
from p2p_sim.privacy.laws.tails import noisy_ones, reach
from p2p_sim.privacy.laws.worst import Found, climb, search
from p2p_sim.privacy.profile import Bracket, Law

CUTS = (1e-20, 1e-60, 1e-290)
WIDE = 2_000_000
"""Users beyond which one bound holds for all compositions and only few are tried."""
FULL = 20_000
"""Users up to which every composition is covered; beyond, some are, and one bound holds for the rest."""


@dataclass(frozen=True)
class ShuffledBits(Law):
    """What a shuffler's output shows of one of ``size`` users who flip their bits with probability ``flip``.

    ``colluders``: users who give away their bits, 0 to size - 1: delta is that of size - colluders users.
    ``composition``: ones among the other honest users; None for the worst.  ``side``: only the direction from 0 to 1.
    Raises InputError for parameters out of range.

    *Source:* ``claims.md`` section 3: K = Bin(n1, 1 - a) + Bin(n - n1, a), exact by tails.
    *Assumes:* the shuffler hides who sent what, and does not collude.
    """

    flip: float
    size: int
    colluders: int = 0
    composition: int | None = None
    side: bool = False

    def __post_init__(self) -> None:
        local_epsilon(self.flip)
        whole = "must be an integer"
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"size = {self.size!r}: {whole}, at least 1")
        if not isinstance(self.colluders, int) or not 0 <= self.colluders < self.size:
            raise InputError(f"colluders = {self.colluders!r}: {whole} from 0 to size - 1 = {self.size - 1}")
        ones = self.composition
        if ones is not None and (not isinstance(ones, int) or not 0 <= ones <= self.others):
            raise InputError(
                f"composition = {ones!r}: {whole} from 0 to {self.others}, or None for the worst"
            )

    @classmethod
    def of(
        cls, size: int, epsilon0: float, *, colluders: int = 0, composition: int | None = None
    ) -> ShuffledBits:
        """Return the law for a local budget ``epsilon0`` >= 0, in nats."""
        return cls(1 / (1 + math.exp(min(epsilon0, 709.0))), size, colluders, composition)

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.colluders - 1

    @property
    def covered(self) -> bool:
        """Whether every composition is computed or lies in a block whose bound is below the value."""
        return self.composition is not None or self.size <= FULL

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta in both directions, maximised over the composition where it is None."""
        if self.composition is None:
            first = self.at_worst(epsilon)
            both = first.directions(epsilon)[0]
            high = both.upper if self.covered else self._search(epsilon, first).upper  # type: ignore[arg-type]
            return (Bracket(both.lower, both.value, max(both.upper, high)),) * 2
        one = self._gain(self.composition, self.others - self.composition, epsilon)
        return one, one if self.side else self._gain(
            self.others - self.composition, self.composition, epsilon
        )

    def pure(self) -> float:
        """Return the local budget: if all reports are ones, the victim's is."""
        return local_epsilon(self.flip)

    def start(self, delta: float) -> float:
        """Guess epsilon from a normal approximation."""
        spread = math.sqrt(self.size * self.flip * (1 - self.flip) + 1e-9)
        return max(1e-9, (1 - 2 * self.flip) / spread * math.sqrt(2 * math.log(1 / delta)) * 0.75)

    def at_worst(self, epsilon: float | None, known: Law | None = None) -> Law:
        """Return the law at the composition that is worst at ``epsilon``."""
        if self.composition is not None:
            return self
        old = known if isinstance(known, ShuffledBits) else None
        old = old or replace(self, composition=max(0, self.others - 2), side=True)
        if epsilon is None:
            return old
        found = self._search(epsilon, old)
        return old if found.at in (-1, old.composition) else replace(old, composition=found.at)

    def ceiling(self, epsilon: float) -> float:
        """Return an upper bound of delta over the compositions."""
        if self.composition is not None:
            return self.delta(epsilon).upper
        return self.delta(epsilon).upper

    def _search(self, epsilon: float, old: ShuffledBits) -> Found:
        floor = old.delta(epsilon)
        cut = next((c for c in CUTS if c * 1e9 < floor.value), CUTS[-1])

        def single(ones: int) -> float:
            return self._gain(ones, self.others - ones, epsilon, cut).value

        best, at = floor.value, -1
        if not self.covered:
            best, at = climb(self.others, single, best)
        if self.size > WIDE or (0 < floor.value < CUTS[-1] * 1e9):
            return Found(best, at, max(best, floor.upper, self._bound(0, self.others, epsilon, cut)))

        def bound(low: int, high: int) -> float:
            return self._bound(low, high, epsilon, cut)

        budget = None if self.covered else 200
        growth = min(0.5, 1 / math.sqrt(self.size)) if self.covered else 0.5
        found = search(self.others + 1, single, bound, growth=growth, floor=best, budget=budget)
        return found if found.at >= 0 else Found(best, at, found.upper)

    def _bound(self, low: int, high: int, epsilon: float, cut: float) -> float:
        """Return an upper bound for every composition of a block.

        A user whose label depends on the composition tosses a fair coin with probability 2 flip and tells the truth
        otherwise; the truth of the latter is revealed and can be subtracted.
        """
        sure = 2 * self.flip * (high - low)
        coins = max(0, math.floor(sure - reach(sure * (1 - 2 * self.flip), cut))) if high > low else 0
        return self._gain(low, self.others - high, epsilon, cut, coins).upper + cut

    def _gain(self, ones: int, zeros: int, epsilon: float, cut: float = 0.0, coins: int = 0) -> Bracket:
        """Return delta from label 0 to 1; a ``cut`` of 0 is chosen by how small delta is."""
        for cutting in (cut,) if cut else CUTS:
            found = _best_event(self.flip, ones, zeros, coins, epsilon, cutting)
            if found.value > cutting * 1e9:
                break
        return found


def _best_event(flip: float, ones: int, zeros: int, coins: int, epsilon: float, cut: float) -> Bracket:
    """Return the largest over k of keep P(R = k - 1) - (e^eps - 1) P(R >= k), where R are the others' ones."""
    keep = (1 - flip) - flip * math.exp(epsilon) if epsilon < 700 or flip == 0 else 0.0
    if keep <= 0:
        return Bracket(0.0, 0.0, 0.0)
    window = noisy_ones(flip, ones, zeros, coins, cut)
    above = np.append(np.cumsum(window.mass[::-1])[::-1], 0.0)
    price = math.expm1(min(epsilon, 700.0))
    gains = keep * window.mass - price * above[1:]
    best = int(gains.argmax())
    value = max(0.0, float(gains[best]), keep * 0.0 - price * above[0])
    lost = window.lost * (keep + (price if value < window.lost * 1e9 else 0.0))
    error = 2e-15 * math.sqrt(len(window.mass)) * float(keep * window.mass[best] + price * above[best + 1])
    return Bracket(max(0.0, value - error - lost), value, value + error + lost)
