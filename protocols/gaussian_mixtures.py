"""A mixture of Gaussians for each label as a generator of features: kernel density estimates, and fitted mixtures.

Only fixed numbers come here; what fits them to public examples: ``p2p_sim.learning.training.feature_generators``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError
from p2p_sim.core.exact import gaussian_thresholds
from protocols.generators import Generator, Prototypes

Array = npt.NDArray[Any]

UNITS = 1 << 16
"""Features are whole numbers of 2^-16, as they travel."""

STEPS = 32
"""Least steps of the noise's grid in a standard deviation, and one more than half the most."""

MOST = float(1 << 15)
"""Means and ten standard deviations around them stay within this."""

BITS = 62
"""Of a random number that chooses the noise on a feature."""

BLOCK = 1 << 22
"""Numbers that are compared at a time where likelihoods are computed."""


@dataclass(frozen=True, eq=False)
class GaussianMixtures(Generator):
    """For each label a mixture of Gaussians: a row of a table is drawn by its weight, then noise on each feature.

    A kernel density estimate is one, too: its rows are public examples, all with the same noise.

    ``means``: the table of rows.  ``deviations``: the standard deviation of the noise on each feature of each row, in
    the table's order, of shape (m, width); or what is repeated to that shape, such as one number.  0: none.

    The noise is discrete Gaussian, on multiples of a power of two, the largest of which 32 are in a standard deviation,
    but at least 2^-16.  Deviations are rounded to it, which changes them by 1.6% at most from 2^-11 on, and means too.
    Raises InputError for deviations that are negative, not finite, below 2^-17 and not 0, or of another shape, and for
    means that come within ten deviations of 32,768.

    *Source:* the discrete Gaussian of Canonne, Kamath and Steinke 2020.
    """

    means: Prototypes
    deviations: Any = field(repr=False)
    labels: int = field(init=False)
    width: int = field(init=False)
    _codes: Array = field(init=False, repr=False)
    _steps: Array = field(init=False, repr=False)
    _shifts: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = self.means.rows
        spread = self._spread(rows)
        # s = fraction 2^exponent with a fraction from 1/2: a grid of 2^(exponent - 6) has 32 to 63 steps in it
        _, exponents = np.frexp(spread * UNITS)
        shifts = np.where(spread > 0, np.maximum(exponents - 6, 0), 0)
        steps = np.rint(np.ldexp(spread * UNITS, -shifts))
        shifts = np.where(steps == 2 * STEPS, shifts + 1, shifts)
        steps = np.where(steps == 2 * STEPS, STEPS, steps)
        codes = np.ldexp(np.rint(np.ldexp(rows * UNITS, -shifts)), shifts)
        made = {
            "labels": self.means.labels, "width": self.means.width, "_codes": codes.astype(np.int64),
            "_steps": steps.astype(np.uint8), "_shifts": shifts.astype(np.uint8),
        }  # fmt: skip
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def _spread(self, rows: Array) -> Array:
        """Return the deviations, one a feature of each row, checked."""
        where = self.means.where
        try:
            spread = np.broadcast_to(np.asarray(self.deviations, np.float64), rows.shape)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{where}: deviations are no numbers of shape {rows.shape}, one a feature of each row, nor can they be "
                f"repeated to that ({error})"
            ) from None
        bad = ~(np.isfinite(spread) & ((spread == 0) | (spread * UNITS >= 0.5)))
        far = ~bad & (np.abs(rows) + 10 * np.where(bad, 0, spread) >= MOST)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"{where}: the deviation of feature {column} of row {row} is {float(spread[row, column])!r}; give 0, "
                "or a number of at least 2^-17"
            )
        if far.any():
            row, column = np.argwhere(far)[0]
            raise InputError(
                f"{where}: feature {column} of row {row} has mean {float(rows[row, column])!r} and deviation "
                f"{float(spread[row, column])!r}, and ten deviations around it must be within {MOST:,.0f}: scale that "
                "column first"
            )
        return spread

    def drawn(self, draw: Any, name: str, labels: Array) -> Array:
        """Return a row of its label with noise a party."""
        place = self.means.places(draw, name, labels)
        words = draw.below(f"{name}, noise", 1 << BITS, times=self.width).data.reshape(
            len(labels), self.width
        )
        steps, noise = self._steps[place], np.zeros(words.shape, np.int64)
        for size in np.unique(self._steps[self._steps > 0]).tolist():
            mine = steps == size
            bounds, least = _noise(size)
            noise[mine] = np.searchsorted(bounds, words[mine], side="right") + least
        return np.asarray((self._codes[place] + (noise << self._shifts[place])) / UNITS)

    def finite(self) -> tuple[Array, list[list[Any]]] | None:
        """Return the table where there is no noise; None otherwise: too many rows."""
        return None if self._steps.any() else self.means.finite()

    def likelihood(self, x: Array) -> Array:
        """Return the probabilities of the rows, as if noise had no end; 0 where none has them, off the noise's grid."""
        codes = np.rint(np.asarray(x, np.float64) * UNITS).astype(np.int64)
        count = max(1, BLOCK // self._codes.size)
        parts = [self._logs(codes[low : low + count]) for low in range(0, len(codes), count)]
        logs = np.concatenate([np.zeros((0, self.labels)), *parts])
        most = logs.max(axis=1, keepdims=True, initial=-np.inf)
        return np.asarray(np.exp(logs - np.where(np.isfinite(most), most, 0)))

    def _logs(self, codes: Array) -> Array:
        """Return the logarithm of each label's probability of some rows, (n, labels); -inf for none."""
        noisy, scale = self._steps > 0, np.maximum(self._steps, 1)
        apart = codes[:, None, :] - self._codes
        away = apart >> self._shifts
        there = (away << self._shifts == apart) & (noisy | (apart == 0))
        each = -((away / scale) ** 2) / 2 - np.where(noisy, np.log(_totals()[scale]), 0)
        rows = np.where(there, each, -np.inf).sum(axis=2)
        ends = np.cumsum([len(each) for each in self.means.shares])[:-1]
        with np.errstate(divide="ignore"):
            sides = zip(np.split(rows, ends, axis=1), map(np.log, self.means.shares), strict=True)
            return np.stack([np.logaddexp.reduce(side + weights, axis=1) for side, weights in sides], axis=1)


@lru_cache(maxsize=2 * STEPS)
def _noise(steps: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the thresholds of the noise for random numbers of ``BITS`` bits, and its least value."""
    bounds, least = gaussian_thresholds(steps)
    spare = np.uint64((1 << 64 - BITS) - 1)
    return ((bounds >> np.uint64(64 - BITS)) + ((bounds & spare) > 0)).astype(np.int64), least


@lru_cache(maxsize=1)
def _totals() -> npt.NDArray[np.float64]:
    """Return the sums of e^(-k^2 / (2 steps^2)) over all k, for steps from 0 up."""
    steps = np.maximum(np.arange(2 * STEPS), 1)[:, None]
    k = np.arange(-40 * 2 * STEPS, 40 * 2 * STEPS + 1)
    return np.asarray(np.exp(-(k**2) / (2.0 * steps**2)).sum(axis=1))
