"""The statistic of labels that are told without their owners: the ones among those of a crowd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2p_sim.privacy.auditing.base import CUT, Array, Columns, Statistic, anything, bit_ratio, in_table
from p2p_sim.privacy.laws.tails import noisy_ones


@dataclass(frozen=True)
class Crowd(Statistic):
    """``m`` labels of honest users, ``k`` ones among them; without colluders ``first``, the one at a fixed place.

    ``composition``: honest others with label 1.  ``first``: 0 if there is none, else 1 more than the bit.

    *Source:* claims.md section 3; in a uniformly random order every place holds a one with chance k / m.
    """

    flip: float
    size: int
    colluders: int
    composition: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coordinates", ("m", "k") if self.colluders else ("m", "k", "first"))

    @property
    def honest(self) -> int:
        """Honest users, the victim among them."""
        return self.size - self.colluders

    def _others(self) -> tuple[int, Array]:
        """Return the law of the ones among the honest others: the least number of them, and probabilities."""
        window = noisy_ones(self.flip, self.composition, self.honest - 1 - self.composition, 0, CUT)
        return window.low, window.mass

    def row_ratios(self, rows: Columns) -> Array:
        """Return those of the number of ones."""
        low, mass = self._others()
        with np.errstate(divide="ignore", invalid="ignore"):
            one, zero = (np.log(in_table(mass, rows["k"] - low - bit)[1]) for bit in (1, 0))
            ratio = np.where(np.isneginf(one) & np.isneginf(zero), 0.0, one - zero)
        return bit_ratio(ratio, self.flip)

    def row_law(self, rows: Columns, label: int) -> tuple[Array, Array]:
        """Return the law of all three."""
        low, mass = self._others()
        noise = np.array([self.flip, 1 - self.flip] if label else [1 - self.flip, self.flip])
        below, chance = anything(len(rows["m"]), self.draws)
        chance[:, 0] = rows["m"] == self.honest
        below[:, 1], chance[:, 1] = in_table(np.convolve(mass, noise), rows["k"] - low)
        if not self.colluders:
            share = np.clip(rows["k"] / self.honest, 0.0, 1.0)
            below[:, 2] = np.where(rows["first"] == 2, 1 - share, 0.0)
            chance[:, 2] = np.choose(np.clip(rows["first"], 0, 2), [0.0 * share, 1 - share, share])
        return below, chance


def counts(world: Array, y: Array, worlds: int) -> tuple[Array, Array]:
    """Return (labels, ones among them) of each world; ``world``: of each label."""
    return (
        np.bincount(world, minlength=worlds),
        np.bincount(world, y, minlength=worlds).astype(np.int64),
    )
