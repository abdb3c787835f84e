"""Where a function of one number crosses 0, by Algorithm 748: the steps of ``scipy.optimize.toms748``, bit for bit.

Every run accounts for its privacy, and importing scipy.optimize takes as long as all of that.  The tests hold the two
against each other, point by point.

*Source:* Alefeld, Potra and Shi 1995, algorithm 4.1.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_EPS = sys.float_info.epsilon
_TURNS = 100


def toms748(f: Callable[[float], float], low: float, high: float, *, xtol: float, rtol: float) -> float:
    """Return an x in [low, high] within ``xtol`` + ``rtol`` |x| of where f crosses 0.

    f has different signs at the ends, and is a number everywhere between.  Raises ValueError for a function that is
    not, and RuntimeError after 100 steps.
    """
    search = _Search(f, low, high, f(low), f(high), xtol, rtol)
    if search.at_low == 0:
        return low
    if search.at_high == 0:
        return high
    if (search.at_low > 0) == (search.at_high > 0):
        raise ValueError(f"f({low}) = {search.at_low} and f({high}) = {search.at_high} have one sign")
    found = search.try_at(search.secant())
    turns = 1
    while found is None and not search.close:
        if turns >= _TURNS:
            raise RuntimeError(f"no root within {_TURNS} steps; one is in [{search.low}, {search.high}]")
        found = search.step()
        turns += 1
    return search.middle if found is None else found


@dataclass
class _Search:
    """An interval that holds a root, with what f is at its ends; ``left``: the last two ends that were left, the last
    first."""

    f: Callable[[float], float]
    low: float
    high: float
    at_low: float
    at_high: float
    xtol: float
    rtol: float
    left: tuple[tuple[float, float], ...] = ()

    @property
    def middle(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2.0

    @property
    def close(self) -> bool:
        """Whether the interval is as short as is asked for."""
        return abs(self.low - self.high) <= self.xtol + self.rtol * abs(self.high)

    def try_at(self, x: float) -> float | None:
        """Shorten the interval to the part beside ``x`` that holds a root; return ``x`` if it is one."""
        x = np.float64(x)  # whose powers overflow to infinity
        value = self.f(x)
        if not math.isfinite(value):
            raise ValueError(f"f({x}) = {value}: not a number")
        if value == 0:
            return x
        if (self.at_low > 0) == (value > 0):
            gone, self.low, self.at_low = (self.low, self.at_low), x, value
        else:
            gone, self.high, self.at_high = (self.high, self.at_high), x, value
        self.left = (gone, *self.left[:1])
        return None

    def step(self) -> float | None:
        """Interpolate, then step over the root from the nearer end, then halve if that did not do enough."""
        width = self.high - self.low
        found = self.try_at(self.interpolated())
        found = self.try_at(self.beyond()) if found is None else found
        if found is None and self.high - self.low > 0.5 * width:
            found = self.try_at(self.middle)
        return found

    def secant(self) -> float:
        """Return where the line through both ends crosses 0."""
        a, b, fa, fb = self.low, self.high, self.at_low, self.at_high
        one = abs(fb) > abs(fa)  # of two ways to write it, for its accuracy
        x = (-fa / fb * b + a) / (1 - fa / fb) if one else (-fb / fa * a + b) / (1 - fb / fa)
        return x if a < x < b else self.middle

    def interpolated(self) -> float:
        """Return where the inverse cubic through four points is, or else two steps of Newton on a parabola."""
        points = [(self.low, self.at_low), (self.high, self.at_high), *self.left]
        values = [value for _, value in points]
        apart = all(abs(one - other) > 32 * _EPS for one, other in itertools.combinations(values, 2))
        if len(points) == 4 and apart:
            x = _inverse_cubic([x for x, _ in points], values)
            if self.low < x < self.high:
                return x
        return self._newton(*self.left[0])

    def _newton(self, d: float, fd: float) -> float:
        """Step twice from an end towards the root of the parabola through both ends and the point left last."""
        a, b, fa, fb = self.low, self.high, self.at_low, self.at_high
        slope = (fb - fa) / (b - a)
        bend = ((fd - fb) / (d - b) - slope) / (d - a)
        if bend == 0:
            return a - fa / slope
        x = a if (bend > 0) == (fa > 0) else b
        for _ in range(2):
            steepness = slope + bend * (2 * x - a - b)
            value = (bend * (x - b) + slope) * (x - a) + fa
            following = x - value / steepness if steepness else math.inf
            if not a < following < b:
                return x if a < x < b else self.middle
            x = following
        return x

    def beyond(self) -> float:
        """Return a point twice as far from the nearer end as the line puts the root, so that it lies between."""
        nearer = abs(self.at_low) < abs(self.at_high)
        end, value = (self.low, self.at_low) if nearer else (self.high, self.at_high)
        far, at_far = (self.high, self.at_high) if nearer else (self.low, self.at_low)
        x = end - 2 * value / ((self.at_high - self.at_low) / (self.high - self.low))
        if abs(x - end) > 0.5 * (self.high - self.low):
            return self.middle
        if abs(x - end) <= _EPS * abs(end):  # it did not move
            if math.frexp(value)[1] < math.frexp(at_far)[1] - 50:
                x = (31 * end + far) / 32
            else:
                sign = 1 if nearer else -1
                x = end + (sign * abs(x) * self.rtol + sign * self.xtol)
            if not self.low < x < self.high:
                return self.middle
        return x


def _inverse_cubic(places: list[float], values: list[float]) -> float:
    """Return at 0 the cubic that takes the values to their places, by Neville's algorithm."""
    last: list[float] = []
    up, down = list(places), list(places)
    for k in range(1, 4):
        gaps = [down[i + 1] - up[i] for i in range(4 - k)]
        spans = [values[i] - values[i + k] for i in range(4 - k)]
        up = [values[i + k] / spans[i] * gaps[i] for i in range(4 - k)]
        down = [values[i] / spans[i] * gaps[i] for i in range(4 - k)]
        last.append(up[-1])
    return (last[0] + last[1]) + last[2] + places[-1]
