"""Shuffles of a crowd of random size, of which the law is known from below: an upper bound of delta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.categories import shuffled_response
from p2p_sim.privacy.laws.combine import Mixture
from p2p_sim.privacy.laws.company import CUT
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.laws.shuffle import FULL, ShuffledBits, guarantee

Floats = npt.NDArray[np.float64]

LEVELS = (1e-10, 1e-7, 1e-5, 1e-3, 0.05, 0.3, 0.7)
"""Where crowds are cut into groups: each counts as its smallest."""

EACH = 12
"""Users up to whom every size of a crowd is a group of its own."""

_GROWTH = 1.06  # a group begins where crowds are larger by this factor at least


@dataclass(frozen=True)
class Ceiling(Law):
    """A certified upper bound of a law whose worst composition is only searched for."""

    law: Law
    closed = False

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice, with nothing below it."""
        most = self.law.ceiling(epsilon)
        return (Bracket(0.0, most, most),) * 2

    def pure(self) -> float:
        """Return that of the law."""
        return self.law.pure()

    def start(self, delta: float) -> float:
        """Begin where the law begins."""
        return self.law.start(delta)


def crowded(tails: Floats, epsilon0: float, labels: int = 2) -> Law:
    """Return an upper bound of what shuffled randomized response shows of one of 1 + M users.

    ``tails``: a lower bound of P(M >= m) for m = 0, 1, ..., not increasing; M may be less with a further chance of
    ``CUT``.  ``epsilon0``: local budget, above 0, nats.
    """
    local = LocalResponse(epsilon0, labels)
    if len(tails) == 1 or tails[1] == 0 or guarantee(epsilon0, labels) is not None:
        return local
    below = 1 - tails  # P(M < m), at most
    cuts = _cuts(tails)
    ends = [*(float(below[m]) for m in cuts[1:]), 1.0]
    cases: list[tuple[float, Law]] = [(CUT + float(below[cuts[0]]), local)]
    start = 0.0
    for size, end in zip(cuts, ends, strict=True):
        cases.append((end - start, _shuffle(size + 1, epsilon0, labels)))
        start = end
    return Mixture(tuple(cases))


def _cuts(tails: Floats) -> list[int]:
    """Return at which m the groups begin, ascending."""
    if len(tails) <= EACH:
        return [m for m in range(len(tails)) if tails[m] > 0]
    cuts = [likely(tails, CUT)]
    for level in LEVELS if cuts[0] <= FULL else ():
        size = likely(tails, level)
        cuts += [size] if size >= max(1, _GROWTH * cuts[-1]) else []
    return cuts


def likely(tails: Floats, level: float) -> int:
    """Return the largest m so that M is at least m but with probability ``level``."""
    return int(np.searchsorted(1 - tails, level, "right")) - 1


def _shuffle(users: int, epsilon0: float, labels: int) -> Law:
    if labels > 2:
        found = shuffled_response(users, epsilon0, labels).law
        assert found is not None
        return found
    law = ShuffledBits.of(users, epsilon0)
    return law if law.covered else Ceiling(law)
