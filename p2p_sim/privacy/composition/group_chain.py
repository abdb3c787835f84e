"""The labels of a group that change together: an upper bound from the curve of one label.

*Source:* ``docs/laws.md``, "Groups".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.law import Bracket, Law

Array = npt.NDArray[np.float64]

KNOTS = 64
"""Values of epsilon, from 0 up, at which the curve of one label is computed."""

_FAR = 1e-24  # the last knot is where delta has fallen to this, or to where it stays
_MOST = 700.0  # nats: beyond, the curve is not looked at
_GROWTH = 1.25  # from one try of the last knot to the next
_ROUNDED = 1e-12  # relative: what a value is raised by, more than any rounding in it


@dataclass(frozen=True)
class GroupChain(Law):
    """An upper bound of what a view learns of ``members`` labels that change together, at least 2.

    ``law``: of one label, which holds whatever the other labels are.  ``local``: another law that is nowhere below
    that of the group; the smaller bound counts.

    *Source:* a chain of worlds, each of which differs from the next in one label.
    """

    law: Law
    members: int
    local: Law | None = None
    closed = False
    symmetric = True

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the bound twice."""
        step, logs = self._table
        most = (
            _between(step, logs, epsilon) if epsilon < self.members * self.law.pure_bracket().upper else 0.0
        )
        if self.local is not None and most > 0:
            most = min(most, self.local.ceiling(epsilon) if epsilon < self.local.pure() else 0.0)
        return (Bracket(most * (1 - 4 * _ROUNDED * self.members), most, most),) * 2

    def pure(self) -> float:
        """Return that of one label, as often as there are labels."""
        return self.pure_bracket().value

    def pure_bracket(self) -> Bracket:
        """Return ``pure`` with certified ends."""
        return Bracket(*(self.members * end for end in self.law.pure_bracket()))

    def start(self, delta: float) -> float:
        """Begin where one label begins, as often as there are labels."""
        return self.members * self.law.start(delta)

    @cached_property
    def _table(self) -> tuple[float, Array]:
        return _chain(self.law, self.members)


def _chain(law: Law, members: int) -> tuple[float, Array]:
    """Return (step, log delta at 0, 1, 2, ... steps of epsilon) of a group, raised by more than rounding.

    delta of two chains one after the other is at most delta(first) + e^first delta(second), for any two epsilons,
    also below 0.
    """
    step, one = _curve(law)
    end = (len(one) - 1) // 2  # one[end] is at epsilon = 0
    at = (np.arange(len(one)) - end) * step
    logs = one
    for several in range(2, members + 1):
        longer = np.zeros(end * (several + 1) + 1)
        for first, epsilon, log in zip(range(-end, end + 1), at, one, strict=True):
            # From -end on; the second part is at most where the curve ends, beyond which it stays.
            second = np.arange(-end, end * several + 1) - first
            inside = second >= -end
            here = logs[np.minimum(second[inside], len(logs) - 1 - end) + end]
            longer[inside] = np.minimum(longer[inside], np.logaddexp(log, epsilon + here))
        logs = longer
    return step, np.minimum(0.0, logs[end:] + _ROUNDED)


def _curve(law: Law) -> tuple[float, Array]:
    """Return (step, log delta at epsilon = -n, .., n steps), upper ends, the worse direction.

    Below 0 it follows from the other direction: delta(-e) = 1 - e^-e + e^-e delta(e).
    """
    end = _far(law)
    step = end / KNOTS
    above = np.array([max(law.ceilings(i * step, _FAR)) for i in range(KNOTS)])
    above = np.append(above, 0.0 if end >= law.pure_bracket().upper else max(law.ceilings(end, _FAR)))
    above = np.minimum.accumulate(np.minimum(1.0, above))
    down = np.arange(1, KNOTS + 1) * step
    below = np.minimum(1.0, -np.expm1(-down) + np.exp(-down) * above[1:])
    with np.errstate(divide="ignore"):
        return step, np.log(np.concatenate([below[::-1], above])) + _ROUNDED


def _far(law: Law) -> float:
    """Return where the knots end: the pure epsilon, or where delta is tiny or stays.  Any end gives a bound."""
    pure, far = law.pure_bracket().upper, 0.02
    while far < min(pure, _MOST):
        now, later = (max(law.ceilings(min(at, _MOST), _FAR)) for at in (far, far * _GROWTH))
        if now < _FAR or (later >= now * (1 - 1e-9) and far * _GROWTH < pure):
            return far
        far *= _GROWTH
    return min(far, pure, _MOST)


def _between(step: float, logs: Array, epsilon: float) -> float:
    """Return delta at an epsilon: the chord in e^epsilon of a convex curve lies above it."""
    at = int(epsilon / step)
    if at >= len(logs) - 1:
        return math.exp(logs[-1])
    low, high = math.exp(logs[at]), math.exp(logs[at + 1])
    share = min(1.0, max(0.0, math.expm1(epsilon - at * step) / math.expm1(step)))
    return min(1.0, (low + share * (high - low)) * (1 + _ROUNDED))
