"""A law of which only the certified upper end is told: where a value may be too small, this one may be too large."""

from __future__ import annotations

from dataclasses import dataclass

from p2p_sim.privacy.profile import Bracket, Law


@dataclass(frozen=True)
class Above(Law):
    """The upper end of every bracket of ``law``, as a value."""

    law: Law

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the upper ends."""
        first, second = (bracket.upper for bracket in self.law.directions(epsilon))
        return Bracket(0.0, first, first), Bracket(0.0, second, second)

    def pure(self) -> float:
        """Return that of the law, rounded up."""
        return self.law.pure_bracket().upper

    def start(self, delta: float) -> float:
        """Begin where the law begins."""
        return self.law.start(delta)
