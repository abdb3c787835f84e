"""Laws made of laws: finite atoms, mixtures over a visible case, the worst of several, nothing at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.profile import ZERO, Bracket, Law, largest

Array = npt.NDArray[np.float64]

_NEARLY = 0.999  # part of a delta below which nothing need be told to see whether a law is above it


@dataclass(frozen=True)
class Nothing(Law):
    """The view does not depend on the label."""

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:  # noqa: ARG002
        """Return 0 in both directions."""
        return ZERO, ZERO

    def pure(self) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Atoms(Law):
    """Finitely many outcomes, with their probabilities under label 0 (``p``) and label 1 (``q``).

    Shape (a,), or (cases, a) for the worst of several pairs; each row sums to 1.  *Source:* the hockey-stick
    divergence, summed outcome by outcome.  *Assumes:* each probability is right to four units in the last place.
    """

    p: Array
    q: Array

    @classmethod
    def of(cls, p: Sequence[Fraction | float], q: Sequence[Fraction | float]) -> Atoms:
        """Make atoms from fractions or floats; raises InputError unless both are distributions of one length."""
        first, second = (np.array([float(v) for v in side], np.float64) for side in (p, q))
        for name, side, mass in (("p", p, first), ("q", q, second)):
            total = float(sum(side)) if isinstance(side[0], Fraction) else math.fsum(mass)
            if len(p) != len(q) or not np.all(mass >= 0) or not abs(total - 1) < 1e-9:
                raise InputError(
                    f"{name}: {len(mass)} atoms of total {total}: give probabilities that sum to 1"
                )
        return cls(first[None], second[None])

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Sum the positive parts; the worst row of each direction."""
        return _excess(self.q, self.p, epsilon), _excess(self.p, self.q, epsilon)

    def pure(self) -> float:
        """Return the largest log ratio."""
        if np.any((self.p > 0) != (self.q > 0)):
            return math.inf
        seen = self.p > 0
        return float(np.abs(np.log(self.p[seen]) - np.log(self.q[seen])).max())


def _excess(over: Array, under: Array, epsilon: float) -> Bracket:
    if epsilon > 700:
        value = float(np.where(under == 0, over, 0.0).sum(-1).max())
        return Bracket(value, value, min(1.0, value + 1e-290))
    scaled = math.exp(epsilon) * under
    gain = np.maximum(over - scaled, 0.0)
    sums = gain.sum(-1)
    slack = np.where(gain > 0, over + scaled, 0.0).sum(-1) * 2e-15
    best = int(sums.argmax())
    return Bracket(
        max(0.0, float((sums - slack).max())),
        min(1.0, float(sums[best])),
        min(1.0, float((sums + slack).max())),
    )


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

    def at_worst(self, epsilon: float | None, known: Law | None = None) -> Law:
        """Return the mixture of the cases at their worst; at most one case may depend on the composition."""
        old = [law for _, law in known.cases] if isinstance(known, Mixture) else [None] * len(self.cases)
        new = [before or law for before, (_, law) in zip(old, self.cases, strict=True)]
        for i, _, law in self._open(epsilon):
            new[i] = law.at_worst(epsilon, old[i])
        if known is not None and all(a is b for a, b in zip(new, old, strict=True)):
            return known
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


def _widened(bracket: Bracket) -> Bracket:
    low, value, high = bracket
    return Bracket(low * (1 - 1e-15), min(1.0, value), min(1.0, high * (1 + 1e-15)))
