"""A law in which one hidden choice of the victim's leans towards what tells most of her label.

*Source:* ``docs/laws.md``, "Faults of Algorithm 2".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from p2p_sim.privacy.law import ZERO, Bracket, Law


@dataclass(frozen=True)
class Leaning(Law):
    """An upper bound of: with probability ``weight``, ``law``, but for an event that is likelier than there.

    The event shows the victim's noisy label in the clear to whoever knew of it; the view does not.  It has probability
    ``rate`` under ``law``, and ``lean`` more here, at the cost of all the others: P = (1 - lean) D + lean E, where D
    is ``law`` and E is D given the event.  ``clear``: the law of the noisy label itself.  ``ahead``: ``law`` once more,
    for the second bound; the two may stand at different compositions.

    *Source:* two bounds, of which the smaller holds.  (1) Tell whether the lean decided: (1 - lean) D + lean ``clear``.
    (2) D is at least rate E, so P is at most ratio D, ratio = 1 - lean + lean / rate, and at least (1 - lean) D: delta
    at epsilon is at most ratio times that of D at epsilon - ln(ratio / (1 - lean)).
    """

    weight: float
    lean: float
    rate: float
    law: Law
    ahead: Law
    clear: Law
    closed = False

    @property
    def ratio(self) -> float:
        """By how much anything can be likelier than under ``law``."""
        return 1 - self.lean + self.lean / self.rate if self.lean else 1.0

    @property
    def shift(self) -> float:
        """How much epsilon the second bound takes, in nats."""
        return math.log(self.ratio) - math.log1p(-self.lean)

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the smaller bound of each direction."""
        plain, clear = _open(self.law, epsilon), _open(self.clear, epsilon)
        first = [_sum((1 - self.lean, a), (self.lean, b)) for a, b in zip(plain, clear, strict=True)]
        if self.lean and epsilon >= self.shift:
            second = [_sum((self.ratio, a)) for a in _open(self.ahead, epsilon - self.shift)]
            first = [min(pair, key=lambda one: one.upper) for pair in zip(first, second, strict=True)]
        one, other = (_sum((self.weight, bracket)) for bracket in first)
        return one, other

    def pure(self) -> float:
        """Return that of the noisy label."""
        return self.clear.pure()

    def start(self, delta: float) -> float:
        """Begin where the law without the lean begins."""
        return self.law.start(delta)

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the bound with each law at the composition that is worst where it is looked at."""
        old = previous if isinstance(previous, Leaning) else None
        behind = None if epsilon is None else max(0.0, epsilon - self.shift)
        law = self.law.at_worst(epsilon, None if old is None else old.law)
        ahead = law if not self.lean else self.ahead.at_worst(behind, None if old is None else old.ahead)
        if old is not None and law is old.law and ahead is old.ahead:
            return old
        return replace(self, law=law, ahead=ahead)

    def quick(self) -> Law:
        """Return the bound of the quick laws."""
        law, ahead = self.law.quick(), self.ahead.quick()
        same = law is self.law and ahead is self.ahead
        return self if same else replace(self, law=law, ahead=ahead)

    def ceiling(self, epsilon: float) -> float:
        """Return the smaller bound of ceilings."""
        plain = self.law.ceiling(epsilon) if epsilon < self.law.pure() else 0.0
        clear = self.clear.ceiling(epsilon) if epsilon < self.clear.pure() else 0.0
        most = (1 - self.lean) * plain + self.lean * clear
        if self.lean and epsilon >= self.shift:
            behind = epsilon - self.shift
            most = min(most, self.ratio * self.ahead.ceiling(behind) if behind < self.ahead.pure() else 0.0)
        return min(1.0, self.weight * most * (1 + 1e-15))


def _open(law: Law, epsilon: float) -> tuple[Bracket, Bracket]:
    return law.directions(epsilon) if epsilon < law.pure() else (ZERO, ZERO)


def _sum(*terms: tuple[float, Bracket]) -> Bracket:
    low, value, high = (math.fsum(weight * bracket[end] for weight, bracket in terms) for end in range(3))
    return Bracket(low * (1 - 1e-15), min(1.0, value), min(1.0, high * (1 + 1e-15)))
