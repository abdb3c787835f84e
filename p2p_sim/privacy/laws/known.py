"""What colluders of a cluster know: which honest bits they got, as cases with probabilities, each an urn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.laws.reports import Reports
from p2p_sim.privacy.laws.tails import binomial
from p2p_sim.privacy.laws.urn import Draws, Urn
from p2p_sim.privacy.laws.walk import averages

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 1e-14
"""Probability below which a case is left to a bound."""


@dataclass(frozen=True)
class Colluders:
    """``count`` users of a cluster of ``size`` who asked as they should, none of whom got the victim's bit.

    *Source:* ``claims.md`` section 1.  *Assumes:* each asks a uniform user of the cluster.
    """

    flip: float
    size: int
    count: int

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.count - 1

    @property
    def known(self) -> int:
        """Most honest bits that they can know."""
        return min(self.count, self.others)

    def distinct(self) -> tuple[float, ...]:
        """Return the law of how many honest users they asked."""
        return _distinct(self.count, self.others, self.size - 1)

    def urns(self) -> int:
        """Return how many urns all cases of all compositions have."""
        rest, known = self.others, self.known
        return (
            sum((rest - d + 1) * (d + 1) for d in range(known + 1)) if known <= 200 else rest * known**2 // 2
        )

    def likely(self, ones: int) -> int:
        """Return about how many cases of one composition are at least ``LEAST`` likely."""
        share = 1 / max(1, self.size - 1)
        spread = min(self.known + 1.0, 16 * math.sqrt(self.count * self.count * share) + 4)
        picked = min(self.known, ones, self.others - ones) + 1
        seen = self.known + 1
        near = 16 * math.sqrt(self.known * max(self.flip * (1 - self.flip), 1e-12)) + 4
        return int(spread * min(picked, 8 * math.sqrt(self.known) + 4) * min(seen, near))


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases of some compositions: ``weight`` of ``urns[index]``; composition i begins at ``starts[i]``.

    ``missing``: probability, a composition, of cases that were left out.
    """

    urns: tuple[Urn, ...]
    index: Ints
    weight: Array
    starts: Ints
    missing: Array

    def gains(
        self, trials: int, chance: float, epsilon: float, cut: float, *, mirrored: bool
    ) -> tuple[Array, Array]:
        """Return (delta from 0 to 1 a composition without the missing cases, a bound of its error)."""
        draws = _ready(self, cut, mirrored)
        window = Reports(self.urns[0], trials, chance).window(cut)
        value, error = averages(draws, [window] * len(draws), epsilon)
        parts = (self.weight * side[self.index] for side in (value, error))
        total, slack = (np.add.reduceat(part, self.starts) for part in parts)
        return total, slack + 4e-16 * total + window.lost


@lru_cache(maxsize=8)
def _ready(cases: Cases, cut: float, mirrored: bool) -> list[Draws]:
    return [(urn.mirrored() if mirrored else urn).draws(cut) for urn in cases.urns]


@lru_cache(maxsize=32)
def cases_of(who: Colluders, first: int, last: int, least: float = LEAST) -> Cases:
    """Return the cases of the compositions ``first`` to ``last`` that have a probability of at least ``least``."""
    keys, weights, starts, begun = [], [], [], 0
    base = who.count + 1
    for ones in range(first, last + 1):
        starts.append(begun)
        for known, left, law in _picked(who, ones, least):
            chosen = np.flatnonzero(law >= least)
            keys.append((known * (who.others + 1) + left) * base + chosen)
            weights.append(law[chosen])
            begun += len(chosen)
    distinct, index = np.unique(np.concatenate(keys), return_inverse=True)
    weight, begin = np.concatenate(weights), np.array(starts, np.int64)
    urns = []
    for key in distinct.tolist():
        rest, seen = divmod(key, base)
        known, left = divmod(rest, who.others + 1)
        urns.append(Urn(who.flip, left, who.others - known - left, 0, seen, known - seen))
    missing = np.maximum(0.0, 1 - np.add.reduceat(weight, begin)) + 1e-15
    return Cases(tuple(urns), np.asarray(index, np.int64).ravel(), weight, begin, missing)


def _picked(who: Colluders, ones: int, least: float) -> list[tuple[int, int, Array]]:
    """Return (honest bits known, ones among the labels of the rest, law of the ones among the bits known)."""
    out = []
    for known, chance in enumerate(who.distinct()):
        if chance < least:
            continue
        every = math.comb(who.others, known)
        for picked in range(max(0, known - who.others + ones), min(known, ones) + 1):
            ways = math.comb(ones, picked) * math.comb(who.others - ones, known - picked)
            share = chance * (ways / every)
            if share >= least:
                out.append((known, ones - picked, share * _ones_seen(who.flip, picked, known - picked)))
    return out


@lru_cache(maxsize=64)
def _distinct(balls: int, wanted: int, cells: int) -> tuple[float, ...]:
    """Return the law of how many of ``wanted`` cells, among ``cells``, get a ball."""
    law = np.zeros(min(balls, wanted) + 1)
    law[0] = 1.0
    hit = np.arange(len(law), dtype=np.float64)
    for _ in range(balls):
        new = law * (1 - (wanted - hit) / max(1, cells))
        new[1:] += law[:-1] * (wanted - hit[:-1]) / max(1, cells)
        law = new
    return tuple(law.tolist())


@lru_cache(maxsize=4096)
def _ones_seen(flip: float, ones: int, zeros: int) -> Array:
    first, second = binomial(ones, 1 - flip, flip, 1e-300), binomial(zeros, flip, 1 - flip, 1e-300)
    law = np.zeros(ones + zeros + 1)
    low = first.low + second.low
    both = np.convolve(first.mass, second.mass)
    law[low : low + len(both)] = both
    return law
