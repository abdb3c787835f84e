"""``Statistic``: what an audit counts in each world, and the exact law of the counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from p2p_sim.privacy.auditing.seen import Seen

Array = npt.NDArray[Any]
WorldCounts = dict[str, Array]
"""WorldCounts by name, one value a world."""

NEVER = -1e200
"""Stands for the logarithm of no chance."""

CUT = 1e-30
"""Chance of a number of noisy ones among some users below which it is left out."""


class Statistic(ABC):
    """A sufficient statistic of what a coalition sees of one world, with its law under both labels of the victim.

    ``coordinates``: names of the counts in the order in which the law draws them, each given those before it.
    ``lowest``: value of the first that ``few`` begins with.
    """

    coordinates: tuple[str, ...] = ()
    lowest = 0

    @property
    def draws(self) -> int:
        """How many independent uniforms ``positions`` returns for a world."""
        return len(self.coordinates)

    @abstractmethod
    def read(self, seen: Seen) -> WorldCounts:
        """Return the statistic of each world: small integers, each column of shape (worlds,)."""

    @abstractmethod
    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return ``ratios`` of distinct rows; where a row has no chance under either label, 0."""

    @abstractmethod
    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return P(coordinate < value | earlier ones) and P(= value | earlier ones), each (rows, draws)."""

    def ratios(self, columns: WorldCounts) -> Array:
        """Return log P(columns | victim has label 1) / P(columns | label 0) of each world, in nats, maybe infinite.

        Never NaN, also where a row has no chance under either label.
        """
        rows, back = _distinct(columns)
        return np.asarray(self.row_ratios(rows)[back], np.float64)

    def few(self, label: int) -> Array | None:  # noqa: ARG002
        """Return the law of the first coordinate's values, from ``lowest`` on; None where there are many."""
        return None

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic whose ratio is of the second label over the first; None where no law tells it."""
        return self if labels == (0, 1) else None

    def positions(self, columns: WorldCounts, label: int, coins: Array) -> Array:
        """Return where each world stands in the law with the victim's ``label``: uniforms, (worlds, draws).

        ``coins``: independent uniforms in [0, 1), (worlds, draws), that spread each value over its probability.  NaN
        where the law gives a value no chance.

        *Source:* the Rosenblatt transform, randomised: under the law all positions are independent uniforms.
        """
        if not self.draws:
            return np.empty_like(coins)
        rows, back = _distinct(columns)
        below, mass = self.row_law(rows, label)
        spread = below[back] + coins * mass[back]
        return np.where(mass[back] > 0, np.minimum(spread, 1.0), np.nan)


@dataclass(frozen=True)
class Blind(Statistic):
    """A view that can read nothing that depends on a label."""

    def read(self, seen: Seen) -> WorldCounts:
        """Return a constant."""
        return {"nothing": np.zeros(seen.worlds, np.int8)}

    def between(self, labels: tuple[int, int]) -> Statistic:  # noqa: ARG002
        """Return the same: no two labels are told apart."""
        return self

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return that nothing is learned."""
        return np.zeros(len(rows["nothing"]))

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:  # noqa: ARG002
        """Return that anything may be."""
        return anything(len(rows["nothing"]), 0)


def anything(rows: int, draws: int) -> tuple[Array, Array]:
    """Return the law of coordinates of which nothing is said: their position is the coin."""
    return np.zeros((rows, draws)), np.ones((rows, draws))


def in_table(table: Array, values: Array) -> tuple[Array, Array]:
    """Return P(< value) and P(= value) for a law on 0, 1, ..., given as a table; no chance outside of it."""
    before = np.concatenate([[0.0], np.cumsum(table)])
    inside = (values >= 0) & (values < len(table))
    at = np.where(inside, values, 0)
    return before[at], np.where(inside, table[at], 0.0)


def bit_ratio(ratio: Array, alpha: float) -> Array:
    """Return the log ratio of the victim's two labels where that of her noisy bit is ``ratio``, maybe infinite."""
    if alpha == 0:
        return ratio
    less = np.exp(-np.abs(ratio))
    gain: Array = np.sign(ratio) * np.log1p(
        (1 - 2 * alpha) * -np.expm1(-np.abs(ratio)) / (alpha + (1 - alpha) * less)
    )
    return gain


def below_binomial(values: Array, trials: Array | int, chance: Array | float) -> Array:
    """Return P(Bin(trials, chance) < value); arguments broadcast, 0 <= values <= trials."""
    from scipy.special import betaincc

    tail = betaincc(np.maximum(values, 1), trials - values + 1, chance)
    return np.where(values <= 0, 0.0, tail)


def log_binomial(values: Array, trials: Array | int, chance: Array | float) -> Array:
    """Return log P(Bin(trials, chance) = value), at most ``NEVER`` where it is 0; 0 <= values <= trials."""
    from scipy.special import gammaln

    rest = np.subtract(trials, values)
    ways = gammaln(np.add(trials, 1)) - gammaln(np.add(values, 1)) - gammaln(rest + 1)
    with np.errstate(divide="ignore"):  # a finite stand-in for log 0, since 0 times it must be 0
        one, zero = (
            np.maximum(np.log(chance), 2 * NEVER),
            np.maximum(np.log1p(np.negative(chance)), 2 * NEVER),
        )
    return np.asarray(ways + values * one + rest * zero)


def groups(columns: list[Array]) -> tuple[Array, Array]:
    """Return (index of one row of each kind, kind of every row): rows of a kind are equal in all columns."""
    code, kinds = np.zeros(len(columns[0]), np.int64), 1
    for column in columns if len(code) else []:
        values = column.astype(np.int64)
        low, high = int(values.min()), int(values.max())
        if kinds * (high - low + 1) >= 2**62:  # codes must fit 64 bits: number those that occur
            code = np.unique(code, return_inverse=True)[1]
            kinds = int(code.max()) + 1
        code = code * (high - low + 1) + (values - low)
        kinds *= high - low + 1
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind


def _distinct(columns: WorldCounts) -> tuple[WorldCounts, Array]:
    """Return the rows that occur, once each, and which of them every world has: worlds share most of their rows."""
    first, kind = groups(list(columns.values()))
    return {name: column[first].astype(np.int64) for name, column in columns.items()}, kind
