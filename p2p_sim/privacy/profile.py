"""Privacy profiles: delta as a function of epsilon, both directions, with brackets and a stated basis."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

from p2p_sim.core.errors import InputError

BASES = ("exact", "upper", "lower", "claimed", "measured", "refused")
TINY = 1e-300
"""Deltas below this are not told apart from 0: a bracket then reaches from 0 to here."""

_FAR = 1e-100  # deltas below this are bounded by the one at which it is reached
_ROOT = 4e-14  # relative tolerance of a root
_NEAR = 1.0002  # first step from a good guess
_LARGE = 1e15  # nats; a delta that is not reached here never is
_SPREAD = 1e-12  # what a root is rounded outward by
_HAIR = 1e-11  # relative step beyond a root
_TURNS = 60
_EDGE = 4e-12  # this close to the pure epsilon (relative) delta is all rounding: there the root is the pure epsilon


class RefusedError(InputError):
    """A figure was asked of a view that has no law; the text says why and what could be audited instead."""


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


class Law(ABC):
    """A pair of distributions of a view, one for each value of one label, told by its hockey-stick divergences."""

    closed = True
    """Whether evaluating is instant."""

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

    def at_worst(self, epsilon: float | None, known: Law | None = None) -> Law:  # noqa: ARG002
        """Return this law at the composition that is worst at ``epsilon`` (None: a first guess), cheap to evaluate.

        ``known``: what an earlier call returned; it comes back if nothing is worse.
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
            if (
                found is law and law.delta(beyond).value < delta / 2
            ):  # past a cliff nothing is told by the old law
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
        step = 1e-9
        while high < pure and self.ceiling(high) > delta * (1 + 1e-12):
            high, step = high * (1 + step) + step * 1e-6, step * 4
        high = top.upper if high >= pure else high
        return Bracket(min(value, low * (1 - _SPREAD)), value, max(value, high))


def _values(law: Law) -> Callable[[float], float]:
    return lambda epsilon: law.delta(epsilon).value


def root(
    f: Callable[[float], float], target: float, guess: float, limit: float = math.inf, step: float = 1.25
) -> float:
    """Return the least x in [0, limit] with f(x) <= target; f decreases, and is at most target at ``limit``.

    At the x returned f was seen to be at most the target, just below (1e-13) to be more.  The interval grows from
    ``guess`` (above 0) by factors from ``step`` on; f may reach 0.  All arguments in the units of x and f.
    """
    from scipy.optimize import toms748

    kept = limit

    def gap(x: float) -> float:
        nonlocal kept
        over = math.log(max(f(x), 1e-320) / 1e-200) - math.log(target / 1e-200)
        if over <= 0:
            kept = min(kept, x)
        return over

    if limit == 0 or gap(0.0) <= 0:
        return 0.0
    guess = max(guess, 1e-12) if math.isfinite(guess) else 1.0
    low, high, grow = 0.0, min(guess, limit), step
    at_high = gap(high)
    while at_high > 0 and high < min(limit, _LARGE):
        low, high, grow = high, min(high * grow, limit, _LARGE), grow * grow
        at_high = gap(high)
    if at_high > 0:
        return limit  # never at most the target below it
    grow = step
    while low == 0.0 and high > 1e-15:
        inner = high / grow
        if gap(inner) > 0:
            low = inner
        else:
            high, grow = inner, grow * grow
    if at_high != 0:
        toms748(gap, low, high, xtol=1e-300, rtol=_ROOT)
    return float(kept)


@dataclass(frozen=True)
class PrivacyProfile:
    """How well a party's view hides one label: delta as a function of epsilon, with basis and source.

    ``view``: who looks.  ``basis``: one of ``BASES``; "exact" where every composition is computed or lies below a
    bound (the bracket holds what numbers can be wrong by), "lower" where the value may be too small (the bracket's
    upper end still holds for all), "upper" where it may be too large.
    ``source``: paper and section of the law.  ``assumes``: what it relies on.  ``why``: the reason of a refusal and
    what could be audited instead.  Neighbours differ in one label, replaced; epsilon in nats.
    """

    view: str
    basis: str
    source: str
    assumes: tuple[str, ...] = ()
    why: str = ""
    law: Law | None = None

    def __post_init__(self) -> None:
        if self.basis not in BASES or (self.law is None) != (self.basis == "refused"):
            raise InputError(
                f"basis = {self.basis!r}: must be one of {BASES}, 'refused' where there is no law"
            )

    def __repr__(self) -> str:
        return f"<PrivacyProfile of {self.view}: {self.basis}, {(self.why or self.source)[:60]}>"

    @classmethod
    def refused(cls, view: str, why: str) -> PrivacyProfile:
        """Return a profile that refuses every figure and says why."""
        return cls(view, "refused", "no law", (), why)

    def delta(self, epsilon: float) -> float:
        """Return delta in [0, 1] at epsilon >= 0 (nats, may be infinite); raises InputError, or RefusedError."""
        return self.delta_bracket(epsilon).value

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 (nats, may be infinite) whose delta is at most ``delta`` >= 0.

        Raises InputError for a negative delta or one that is no number, RefusedError where there is no law.
        """
        law, wanted = self._law(), _number("delta", delta)
        if wanted >= 1:
            return 0.0
        return law.epsilon(wanted) if wanted > 0 else law.pure()

    def delta_bracket(self, epsilon: float) -> Bracket:
        """Return ``delta`` with certified ends, rounded outward."""
        law, at = self._law(), _number("epsilon", epsilon)
        low, pure, high = law.pure_bracket()
        if at >= high and math.isfinite(at):
            return ZERO
        if low < at < math.inf:  # whether delta is 0 is rounding
            value = law.delta(at).value if at < pure else 0.0
            return Bracket(0.0, value, max(value, law.delta(low).upper))
        found = law.delta(min(at, _LARGE))
        if (
            found.upper > _FAR and found.value < _FAR and math.isfinite(at)
        ):  # delta falls: an earlier end bounds it
            before = law.delta(min(at, law.epsilon(_FAR)))
            return found._replace(upper=min(1.0, found.upper, before.upper))
        return found._replace(upper=min(1.0, found.upper))

    def epsilon_bracket(self, delta: float) -> Bracket:
        """Return ``epsilon`` with certified ends, rounded outward."""
        law, wanted = self._law(), _number("delta", delta)
        if wanted >= 1:
            return ZERO
        return law.epsilon_bracket(wanted) if wanted > 0 else law.pure_bracket()

    def directions(self, epsilon: float) -> tuple[float, float]:
        """Return (delta from label 0 to 1, delta from 1 to 0) at epsilon >= 0, in nats."""
        law, at = self._law(), _number("epsilon", epsilon)
        if at >= law.pure() and math.isfinite(at):
            return 0.0, 0.0
        first, second = law.directions(min(at, _LARGE))
        return first.value, second.value

    def _law(self) -> Law:
        if self.law is None:
            raise RefusedError(f"view {self.view!r}: {self.why}")
        return self.law


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:  # type: ignore[operator]
        raise InputError(f"{name} = {value!r}: must be a number, at least 0")
    try:
        return float(value)
    except OverflowError:  # an integer or fraction beyond all floats: any law treats it as infinite
        return math.inf
