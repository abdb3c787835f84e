"""``Law``: the hockey-stick divergences between the two distributions of a view, one for each label.

*Source:* ``docs/laws.md``, "Conventions".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from p2p_sim.privacy.root_bracket import root_bracket

LARGE = 1e15
"""Nats: a delta that is not reached here never is."""

_ROOT = 4e-14  # relative tolerance of a root
_NEAR = 1.0002  # first step from a good guess
_SPREAD = 1e-12  # what a root is rounded outward by
_HAIR = 1e-11  # relative step beyond a root
_TURNS = 60
_FLOOR = 1e-9  # of a promised delta: smaller ones need not be distinguished to see whether it is kept
_LOOSE = 1 + 1e-6  # a step from a certified end to the next that may have passed a closer one by much
_CLOSE = 1e-9  # relative tolerance of an end that was passed
_EDGE = 4e-12  # this close to the pure epsilon (relative) delta is all rounding: there the root is the pure epsilon


class Bracket(NamedTuple):
    """A value between two certified ends, rounded outward: ``lower <= value <= upper``."""

    lower: float
    value: float
    upper: float

    @classmethod
    def around(cls, value: float, error: float = 0.0) -> Bracket:
        """Return a bracket of a probability with an absolute error, kept in [0, 1]."""
        value = min(1.0, max(0.0, value))
        slack = error + 4e-16 * value
        return cls(max(0.0, value - slack), value, min(1.0, value + slack))


ZERO = Bracket(0.0, 0.0, 0.0)


def largest(brackets: list[Bracket]) -> Bracket:
    """Return the bracket of the maximum of some values: the maximum of each end."""
    return Bracket(*(max(ends) for ends in zip(*brackets, strict=True)))


Coverage = Literal["unstated", "all", "searched"]


class AdditiveNoise(NamedTuple):
    """Noise of one kind on a number that one label moves.

    ``kind``: "gaussian" or "laplace".  ``ratio``: how far the label moves the number, in standard deviations of
    Gaussian noise (mu of Gaussian differential privacy) or in scales of Laplace noise (its pure epsilon); above 0.
    """

    kind: Literal["gaussian", "laplace"]
    ratio: float


class Law(ABC):
    """A pair of distributions of a view, one for each value of one label, given by its hockey-stick divergences.

    Two methods must be written, ``directions`` and ``pure``: with them a law is evaluated, composed, calibrated, drawn
    and audited.  All others have defaults that hold for every law.  They may be overridden where more is known: a law
    that lists its ``outcomes``, or says what ``noise`` it is of, is composed exactly instead of by an upper bound; one
    that names ``one_pair`` gives compositions a closer lower end.
    """

    closed = True
    """Whether evaluating is instant."""

    @property
    def cases_covered(self) -> Coverage:
        """Of which cases the figures are, where the value depends on others' labels.

        "all" where there is nothing to search for; "searched" where the value is the worst that was found, and the
        upper ends hold for all; by default "unstated": what the basis of the profile says.
        """
        return "unstated"

    @property
    def slow(self) -> bool:
        """Whether one figure takes so long that a report in a hurry leaves it out."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether delta is known to be the same in both directions, so that ``ceiling`` bounds both."""
        return False

    @property
    def composition(self) -> int | None:
        """The ones among the other honest users for which this law holds; None where it holds for all, or the worst."""
        return None

    @abstractmethod
    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return delta from label 0 to 1 and from 1 to 0; ``epsilon`` is finite and at least 0, in nats."""

    @abstractmethod
    def pure(self) -> float:
        """Return the least epsilon at which delta is 0, in nats, or infinity."""

    def pure_bracket(self) -> Bracket:
        """Return ``pure`` with certified ends."""
        return Bracket(*[self.pure()] * 3)

    def delta(self, epsilon: float) -> Bracket:
        """Return the larger direction."""
        return largest(list(self.directions(epsilon)))

    def start(self, delta: float) -> float:  # noqa: ARG002
        """Return a guess of epsilon(delta), where a search begins."""
        return 0.1

    def at_worst(self, epsilon: float | None, previous: Law | None = None) -> Law:  # noqa: ARG002
        """Return this law at the composition that is worst at ``epsilon`` (None: a first guess), cheap to evaluate.

        ``previous``: what an earlier call returned; it comes back if nothing is worse.
        """
        return self

    def quick(self) -> Law:
        """Return a law of nearly the same value that is faster to evaluate, or this one."""
        return self

    def with_floor(self, least: float) -> Law:  # noqa: ARG002
        """Return a law that need not tell deltas below ``least`` from 0; it may save the work."""
        return self

    def ceiling(self, epsilon: float) -> float:
        """Return a certified upper bound of delta."""
        return self.delta(epsilon).upper

    def ceilings(self, epsilon: float, least: float = 0.0) -> tuple[float, float]:
        """Return certified upper bounds of delta in both directions; below ``least`` they need not be close."""
        if epsilon >= self.pure():
            return 0.0, 0.0
        if self.symmetric:
            return (self.with_floor(least).ceiling(epsilon),) * 2
        first, second = self.directions(epsilon)
        return first.upper, second.upper

    def keeps(self, epsilon: float, delta: float) -> bool:
        """Whether (epsilon, delta) is promised: certified, without distinguishing deltas far below from 0."""
        return epsilon >= self.pure() or self.with_floor(delta * _FLOOR).delta(epsilon).upper <= delta

    def alternatives(self) -> tuple[Law, ...]:
        """Return the laws of which this is the worst, one for each of several cases; by default itself alone.

        What case it is must depend on labels alone, so that it is the same in all runs on the same labels; cases that
        chance chooses anew in each run are none of these.  Of two cases that are mirror images one will do in a law
        that is ``symmetric``.
        """
        return (self,)

    def visible_cases(self) -> tuple[tuple[float, Law], ...]:
        """Return (probability, law) of cases that the view can tell apart; in the rest it sees nothing."""
        return ((1.0, self),)

    def one_pair(self) -> Law | None:
        """Return a law of one pair of distributions that this view may face, about the worst; None if none is known.

        Its brackets must hold for that pair on both sides; compositions have their lower end from it.
        """
        return None

    def outcomes(self) -> tuple[list[float], list[float]] | None:
        """Return natural logarithms of the probabilities of all outcomes under label 0 and under label 1.

        -infinity is an outcome that cannot be; each probability must be right to four units in the last place.
        None, the default, for laws whose outcomes are not listed.
        """
        return None

    def outcomes_error(self) -> float:
        """Return by what share each probability of ``outcomes`` may be wrong, beyond those four units."""
        return 0.0

    def noise(self) -> AdditiveNoise | None:
        """Return the Gaussian or Laplace noise that this law is exactly of; None, the default, for other laws."""
        return None

    def response(self) -> tuple[float, int] | None:
        """Return local epsilon and labels, where the view sees one answer of a randomized response, alone.

        Then several runs of one seed have a law (``docs/laws.md``, "Shared coins").  None, the default, elsewhere.
        """
        return None

    def worst(self, delta: float) -> tuple[Law, float]:
        """Return the law at the worst composition and the least epsilon whose delta is at most ``delta``."""
        pure, law = self.pure(), self.at_worst(None)
        value = root(_values(law.quick()), delta, self.start(delta), pure)
        if law.quick() is not law:
            value = root(_values(law), delta, value, pure, _NEAR)
        high = pure
        for turn in range(_TURNS):
            # A hair beyond: at its own pure epsilon a composition is all rounding, which would hide a worse one.
            beyond = min(pure, value * (1 + _HAIR))
            found = self.at_worst(beyond, law)
            if found is law and law.delta(beyond).value < delta / 2:  # past a cliff the old law says nothing
                found = self.at_worst(beyond)
            if found is law or found.delta(beyond).value <= delta * (1 - 1e-6):
                break
            law, value = found, root(_values(found), delta, value, pure, _NEAR)
            if turn > 1 and value < high:  # small steps from one composition to the next: leap half the way
                bold = self.at_worst((value + high) / 2, law)
                if bold.delta((value + high) / 2).value <= delta:
                    high = (value + high) / 2
                else:
                    law, value = bold, root(_values(bold), delta, (value + high) / 2, pure, _NEAR)
        return law, value if value < pure * (1 - _EDGE) else pure

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon whose delta is at most ``delta``, in (0, 1)."""
        return self.worst(delta)[1]

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return ``epsilon`` with certified ends."""
        pure, top = self.pure(), self.pure_bracket()
        law, value = self.worst(delta)
        low = root(lambda e: law.delta(e).lower, delta, value, pure, _NEAR)
        high = max(value, root(law.ceiling, delta, value, pure, _NEAR)) * (1 + _SPREAD)
        step, below = 1e-9, high
        while high < pure and self.ceiling(high) > delta * (1 + 1e-12):
            below, high, step = high, high * (1 + step) + step * 1e-6, step * 4
        if high > below * _LOOSE:  # the last step was a leap, as the bound is not close to the value
            high = _between(self.ceiling, delta, below, min(high, pure))
        high = top.upper if high >= pure else high
        return Bracket(min(value, low * (1 - _SPREAD)), value, max(value, high))


def _values(law: Law) -> Callable[[float], float]:
    return lambda epsilon: law.delta(epsilon).value


def _between(f: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Return an x in (low, high] with f(x) <= target, about the least; ``high`` if none is found.

    f is above the target at ``low``.
    """
    gap = _Gap(f, target, high)
    if gap(low) > 0 >= gap(high):
        root_bracket(gap, low, high, _CLOSE)
    return float(gap.best)


@dataclass
class _Gap:
    """How far f is above a target, on a logarithmic scale; ``best``: the least x at which it was seen not to be.

    f is computed once at each x: a solver asks again for both ends, and f may take seconds.
    """

    f: Callable[[float], float]
    target: float
    best: float
    seen: dict[float, float] = field(default_factory=dict)

    def __call__(self, x: float) -> float:
        """Return a number above 0 where f(x) is above the target, taking down an x where it is not."""
        if x in self.seen:
            return self.seen[x]
        over = math.log(max(self.f(x), 1e-320) / 1e-200) - math.log(self.target / 1e-200)
        self.seen[x] = over
        if over <= 0:
            self.best = min(self.best, x)
        return over


def root(
    f: Callable[[float], float], target: float, guess: float, limit: float = math.inf, step: float = 1.25
) -> float:
    """Return the least x in [0, limit] with f(x) <= target; f decreases, and is at most target at ``limit``.

    At the x returned f was seen to be at most the target, just below (1e-13) to be more.  The interval grows from
    ``guess`` (above 0) by factors from ``step`` on; f may reach 0.  All arguments in the units of x and f.
    """
    gap = _Gap(f, target, limit)
    if limit == 0:
        return 0.0
    guess = max(guess, 1e-12) if math.isfinite(guess) else 1.0
    low, high, grow = 0.0, min(guess, limit), step
    at_high = gap(high)
    while at_high > 0 and high < min(limit, LARGE):
        low, high, grow = high, min(high * grow, limit, LARGE), grow * grow
        at_high = gap(high)
    if at_high > 0:
        return limit  # never at most the target below it
    grow = step
    while low == 0.0 and high > 1e-15:
        inner = high / grow
        if gap(inner) > 0:
            low = inner
        elif gap(0.0) <= 0:
            return 0.0
        else:
            high, grow = inner, grow * grow
    if low == 0.0 and gap(0.0) <= 0:
        return 0.0
    if at_high != 0:
        root_bracket(gap, low, high, _ROOT)
    return float(gap.best)
