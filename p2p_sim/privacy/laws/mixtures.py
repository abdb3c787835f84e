"""Laws built from other laws: mixtures over a visible case, and the worst of several.

*Source:* ``docs/laws.md``, "Cases that the view can see".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from p2p_sim.privacy.law import ZERO, Bracket, Coverage, Law, largest
from p2p_sim.privacy.laws.finite import Atoms, Nothing

__all__ = ["Atoms", "Mixture", "Nothing", "Scaled", "Worst"]

_NEARLY = 0.999  # of a delta: smaller ones need not be distinguished to see whether a law is above it


@dataclass(frozen=True)
class Mixture(Law):
    """A visible case chooses the law: directions are averaged over the cases, the larger is taken last.

    ``cases``: (weight, law) pairs; weights sum to at most 1, the rest shows nothing.
    """

    cases: tuple[tuple[float, Law], ...]

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the weighted sum of each direction."""
        pairs = [(w, law.directions(epsilon)) for _, w, law in self._open(epsilon)]
        first, second = (
            Bracket(*(math.fsum(w * pair[side][end] for w, pair in pairs) for end in range(3)))
            for side in range(2)
        )
        return _widened(first), _widened(second)

    def pure(self) -> float:
        """Return the largest pure epsilon of a case that can happen."""
        return max((law.pure() for weight, law in self.cases if weight > 0), default=0.0)

    def pure_bracket(self) -> Bracket:
        """Return the largest of each end."""
        return largest([ZERO, *(law.pure_bracket() for weight, law in self.cases if weight > 0)])

    def start(self, delta: float) -> float:
        """Begin where the heaviest case begins."""
        return max(self.cases, key=lambda case: case[0])[1].start(delta)

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:
        """Return the mixture of the cases at their worst; at most one case may depend on the composition."""
        old = (
            [law for _, law in previous.cases] if isinstance(previous, Mixture) else [None] * len(self.cases)
        )
        new = [before or law for before, (_, law) in zip(old, self.cases, strict=True)]
        for i, _, law in self._open(epsilon):
            new[i] = law.at_worst(epsilon, old[i])
        if previous is not None and all(a is b for a, b in zip(new, old, strict=True)):
            return previous
        return Mixture(tuple((w, law) for (w, _), law in zip(self.cases, new, strict=True)))

    def quick(self) -> Law:
        """Return the mixture of the quick laws."""
        new = tuple((w, law.quick()) for w, law in self.cases)
        same = all(a is b for (_, a), (_, b) in zip(new, self.cases, strict=True))
        return self if same else Mixture(new)

    def ceiling(self, epsilon: float) -> float:
        """Return the weighted sum of the ceilings."""
        terms = [w * law.ceiling(epsilon) for _, w, law in self._open(epsilon)]
        return min(1.0, math.fsum(terms) * (1 + 1e-15))

    @property
    def cases_covered(self) -> Coverage:
        """What is known of all cases together."""
        return _coverage([law for _, law in self.cases])

    @property
    def symmetric(self) -> bool:
        """Whether every case is."""
        return all(law.symmetric for _, law in self.cases)

    @property
    def composition(self) -> int | None:
        """That of the first case that has one."""
        found = (law.composition for _, law in self.cases)
        return next((ones for ones in found if ones is not None), None)

    def visible_cases(self) -> tuple[tuple[float, Law], ...]:
        """Return the cases."""
        return self.cases

    def one_pair(self) -> Law | None:
        """Return the mixture of one pair of each case; None if two are chosen, which may not go together."""
        pairs = [law.one_pair() for _, law in self.cases]
        chosen = sum(pair is not law for pair, (_, law) in zip(pairs, self.cases, strict=True))
        if None in pairs or chosen > 1:
            return None
        weights = (weight for weight, _ in self.cases)
        return Mixture(tuple((w, pair) for w, pair in zip(weights, pairs, strict=True) if pair is not None))

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return the outcomes of all cases, if each lists them, and that of seeing nothing."""
        rest = 1.0 - math.fsum(weight for weight, _ in self.cases)
        first: list[float] = [math.log(rest)] if rest > 0 else []
        second = first.copy()
        for weight, law in self.cases:
            inner = law.outcomes() if weight > 0 else ([], [])
            if inner is None:
                return None
            first += [math.log(weight) + v for v in inner[0]]
            second += [math.log(weight) + v for v in inner[1]]
        return first, second

    def outcomes_error(self) -> float:
        """Return the largest of a case."""
        return max((law.outcomes_error() for _, law in self.cases), default=0.0)

    def _open(self, epsilon: float | None) -> list[tuple[int, float, Law]]:
        """Return (place, weight, law) of cases that can show more than epsilon (None: all).

        None of them need be exact below 1e-12 of what the closed forms among them show.
        """
        if epsilon is None:
            return [(i, w, law) for i, (w, law) in enumerate(self.cases)]
        cases = [(i, w, law) for i, (w, law) in enumerate(self.cases) if w > 0 and epsilon < law.pure()]
        sure = math.fsum(w * law.delta(epsilon).value for _, w, law in cases if law.closed)
        return [(i, w, law.with_floor(sure * 1e-12 / w)) for i, w, law in cases]


@dataclass(frozen=True)
class Scaled(Law):
    """The law is seen with probability ``weight``, otherwise nothing, and which of the two is visible."""

    weight: float
    law: Law

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return weight times each direction."""
        return Mixture(((self.weight, self.law),)).directions(epsilon)

    def pure(self) -> float:
        """Return the pure epsilon of the law, or 0 if it is never seen."""
        return self.law.pure() if self.weight > 0 else 0.0

    def pure_bracket(self) -> Bracket:
        """Return that of the law, or 0 if it is never seen."""
        return self.law.pure_bracket() if self.weight > 0 else ZERO

    def epsilon(self, delta: float) -> float:
        """Return epsilon of the law at delta / weight."""
        return self.law.epsilon(delta / self.weight) if self.weight > delta else 0.0

    @property
    def cases_covered(self) -> Coverage:
        """What is known of the law."""
        return self.law.cases_covered

    @property
    def symmetric(self) -> bool:
        """Whether the law is."""
        return self.law.symmetric

    def visible_cases(self) -> tuple[tuple[float, Law], ...]:
        """Return the one case in which the law is seen."""
        return ((self.weight, self.law),)

    def alternatives(self) -> tuple[Law, ...]:
        """Return those of the law, each seen as often."""
        found = self.law.alternatives()
        return (self,) if found[0] is self.law else tuple(Scaled(self.weight, law) for law in found)

    def one_pair(self) -> Law | None:
        """Return one pair of the law, seen as often."""
        inner = self.law.one_pair()
        return None if inner is None else Scaled(self.weight, inner)

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return those of the law, seen as often, and that of seeing nothing."""
        return Mixture(((self.weight, self.law),)).outcomes()

    def outcomes_error(self) -> float:
        """Return that of the law."""
        return self.law.outcomes_error()


@dataclass(frozen=True)
class Worst(Law):
    """The worst of several laws, for instance of clusters of several sizes."""

    laws: tuple[Law, ...]

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the maximum of each direction."""
        pairs = [law.directions(epsilon) if epsilon < law.pure() else (ZERO, ZERO) for law in self.laws]
        return largest([pair[0] for pair in pairs]), largest([pair[1] for pair in pairs])

    def delta(self, epsilon: float) -> Bracket:
        """Return the maximum over the laws."""
        return largest([law.delta(epsilon) if epsilon < law.pure() else ZERO for law in self.laws])

    def pure(self) -> float:
        """Return the largest pure epsilon."""
        return max(law.pure() for law in self.laws)

    def pure_bracket(self) -> Bracket:
        """Return the largest of each end."""
        return largest([law.pure_bracket() for law in self.laws])

    def epsilon(self, delta: float) -> float:
        """Return the largest epsilon; of laws that are not above it there, none is computed."""
        found = 0.0
        for law in self.laws:
            if found < law.pure() and law.with_floor(_NEARLY * delta).delta(found).value > delta:
                found = max(found, law.epsilon(delta))
        return found

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return the largest of each end; laws that are certainly below are left out."""
        found = ZERO
        for law in self.laws:
            inside = found.lower < law.pure_bracket().upper
            if inside and law.with_floor(_NEARLY * delta).ceiling(found.lower) > delta:
                found = largest([found, law.epsilon_bracket(delta)])
        return found

    def with_floor(self, least: float) -> Law:
        """Return the worst of the laws with that floor."""
        return Worst(tuple(law.with_floor(least) for law in self.laws))

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether every law keeps the promise."""
        return all(law.keeps(epsilon, delta) for law in self.laws)

    @property
    def cases_covered(self) -> Coverage:
        """What is known of all laws together."""
        return _coverage(self.laws)

    @property
    def symmetric(self) -> bool:
        """Whether every law is."""
        return all(law.symmetric for law in self.laws)

    def alternatives(self) -> tuple[Law, ...]:
        """Return the laws, each of which may have cases of its own."""
        return self.laws

    def one_pair(self) -> Law | None:
        """Return one pair of the law that is worst at delta = 1e-6."""
        return max(self.laws, key=lambda law: law.epsilon(1e-6)).one_pair()


def _coverage(laws: Sequence[Law]) -> Coverage:
    """Return what is known of the cases of several laws together: one that states nothing spoils it."""
    found = {law.cases_covered for law in laws}
    return "unstated" if "unstated" in found else "searched" if "searched" in found else "all"


def _widened(bracket: Bracket) -> Bracket:
    low, value, high = bracket
    return Bracket(low * (1 - 1e-15), min(1.0, value), min(1.0, high * (1 + 1e-15)))
