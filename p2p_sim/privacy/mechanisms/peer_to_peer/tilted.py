"""The law of a view in which an event that reveals the label is likelier by a tilt: an upper bound.

*Source:* ``docs/laws.md``, "Faults of Algorithm 2".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from p2p_sim.privacy.law import ZERO, Bracket, Law


@dataclass(frozen=True)
class TiltedLaw(Law):
    """An upper bound of: with probability ``weight``, ``law``, except for an event that is likelier than there.

    The event shows the victim's noisy label in the clear to whoever knew of it; the view does not.  It has probability
    ``rate`` under ``law``, and ``tilt`` more here, at the cost of all the others: P = (1 - tilt) D + tilt E, where D
    is ``law`` and E is D given the event.  ``clear``: the law of the noisy label itself.  ``tilted``: ``law`` once
    more, for the second bound; the two may stand at different compositions.

    *Source:* two bounds, of which the smaller holds.  (1) Reveal whether the tilt decided: (1 - tilt) D + tilt clear.
    (2) D is at least rate E, so P is at most ratio D, ratio = 1 - tilt + tilt / rate, and at least (1 - tilt) D: delta
    at epsilon is at most ratio times that of D at epsilon - ln(ratio / (1 - tilt)).
    """

    weight: float
    tilt: float
    rate: float
    law: Law
    tilted: Law
    clear: Law
    closed = False

    @property
    def ratio(self) -> float:
        """By how much anything can be likelier than under ``law``."""
        return 1 - self.tilt + self.tilt / self.rate if self.tilt else 1.0

    @property
    def shift(self) -> float:
        """How much epsilon the second bound takes, in nats."""
        return math.log(self.ratio) - math.log1p(-self.tilt)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the smaller bound of each direction."""
        plain, clear = _open(self.law, epsilon), _open(self.clear, epsilon)
        first = [_sum((1 - self.tilt, a), (self.tilt, b)) for a, b in zip(plain, clear, strict=True)]
        if self.tilt and epsilon >= self.shift:
            second = [_sum((self.ratio, a)) for a in _open(self.tilted, epsilon - self.shift)]
            first = [min(pair, key=lambda one: one.upper) for pair in zip(first, second, strict=True)]
        one, other = (_sum((self.weight, bracket)) for bracket in first)
        return one, other

    def pure(self) -> float:
        """Return that of the noisy label."""
        return self.clear.pure()

    def start(self, delta: float) -> float:
        """Begin where the law without the tilt begins."""
        return self.law.start(delta)

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the bound with each law at the composition that is worst where it is looked at."""
        old = previous if isinstance(previous, TiltedLaw) else None
        behind = None if epsilon is None else max(0.0, epsilon - self.shift)
        law = self.law.at_worst(epsilon, None if old is None else old.law)
        tilted = law if not self.tilt else self.tilted.at_worst(behind, None if old is None else old.tilted)
        if old is not None and law is old.law and tilted is old.tilted:
            return old
        return replace(self, law=law, tilted=tilted)

    def quick(self) -> Law:
        """Return the bound of the quick laws."""
        law, tilted = self.law.quick(), self.tilted.quick()
        same = law is self.law and tilted is self.tilted
        return self if same else replace(self, law=law, tilted=tilted)

    def ceiling(self, epsilon: float) -> float:
        """Return the smaller bound of ceilings."""
        plain = self.law.ceiling(epsilon) if epsilon < self.law.pure() else 0.0
        clear = self.clear.ceiling(epsilon) if epsilon < self.clear.pure() else 0.0
        most = (1 - self.tilt) * plain + self.tilt * clear
        if self.tilt and epsilon >= self.shift:
            behind = epsilon - self.shift
            most = min(most, self.ratio * self.tilted.ceiling(behind) if behind < self.tilted.pure() else 0.0)
        return min(1.0, self.weight * most * (1 + 1e-15))


def _open(law: Law, epsilon: float) -> tuple[Bracket, Bracket]:
    return law.directions(epsilon) if epsilon < law.pure() else (ZERO, ZERO)


def _sum(*terms: tuple[float, Bracket]) -> Bracket:
    low, value, high = (math.fsum(weight * bracket[end] for weight, bracket in terms) for end in range(3))
    return Bracket(low * (1 - 1e-15), min(1.0, value), min(1.0, high * (1 + 1e-15)))
