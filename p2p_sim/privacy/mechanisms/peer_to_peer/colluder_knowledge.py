"""Which honest bits the colluders of a cluster received: cases with probabilities, one urn for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.laws.binomial_tails import binomial
from p2p_sim.privacy.mechanisms.peer_to_peer.report_counts import Reports, averages
from p2p_sim.privacy.mechanisms.peer_to_peer.urn import Urn

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST = 1e-14
"""Probability below which a case is left to a bound."""


@dataclass(frozen=True)
class Colluders:
    """``count`` users of a cluster of ``size`` who asked as they should, none of whom got the victim's bit.

    ``forgetful``: they drop some of what they know, so that there are few numbers of bits known.

    *Source:* ``docs/laws.md``, "Learner and colluders".  *Assumes:* each asks a uniform user of the cluster.
    """

    alpha: float
    size: int
    count: int
    forgetful: bool = False

    @property
    def others(self) -> int:
        """Honest users beside the victim."""
        return self.size - self.count - 1

    @property
    def known(self) -> int:
        """Most honest bits that they can know."""
        return min(self.count, self.others)

    def distinct(self) -> tuple[float, ...]:
        """Return the law of how many honest bits they know."""
        law = distinct_hits(self.count, self.others, self.size - 1)
        return _moved(law, up=False) if self.forgetful else law

    def at_most(self) -> list[tuple[float, int]]:
        """Return (probability, number of honest bits) so that they know at most as much."""
        law = _moved(distinct_hits(self.count, self.others, self.size - 1), up=True)
        return [(chance, known) for known, chance in enumerate(law) if chance]

    def urns(self) -> int:
        """Return how many urns all cases of all compositions have."""
        rest, known = self.others, self.known
        return (
            sum((rest - d + 1) * (d + 1) for d in range(known + 1)) if known <= 200 else rest * known**2 // 2
        )

    def likely(self, ones: int) -> int:
        """Return about how many cases of one composition are at least ``LEAST`` likely."""
        share = 1 / max(1, self.size - 1)
        spread = (
            7.0
            if self.forgetful
            else min(self.known + 1.0, 16 * math.sqrt(self.count * self.count * share) + 4)
        )
        picked = min(self.known, ones, self.others - ones) + 1
        seen = self.known + 1
        near = 16 * math.sqrt(self.known * max(self.alpha * (1 - self.alpha), 1e-12)) + 4
        return int(spread * min(picked, 8 * math.sqrt(self.known) + 4) * min(seen, near))


@dataclass(frozen=True, eq=False)
class KnowledgeCases:
    """KnowledgeCases of some compositions: ``weight`` of ``urns[index]``; composition i begins at ``starts[i]``.

    ``missing``: probability, a composition, of cases that were left out.
    """

    urns: tuple[Urn, ...]
    index: Ints
    weight: Array
    starts: Ints
    missing: Array

    def gains(self, seen: UrnDeltas) -> tuple[Array, Array]:
        """Return (delta from 0 to 1 a composition without the missing cases, a bound of its error)."""
        value, error = seen.of(self.urns)
        parts = (self.weight * side[self.index] for side in (value, error))
        total, slack = (np.add.reduceat(part, self.starts) for part in parts)
        return total, slack + 4e-16 * total + seen.lost


class UrnDeltas:
    """delta of urns at one epsilon, averaged over the numbers of reports; each urn is computed once."""

    def __init__(self, reports: Reports, epsilon: float, cut: float, *, mirrored: bool = False) -> None:
        self.window = reports.window(cut)
        self.most, self.lost = reports.most(epsilon), self.window.lost
        self.epsilon, self.cut, self.mirrored = epsilon, cut, mirrored
        self.found: dict[Urn, tuple[float, float]] = {}

    def of(self, urns: Sequence[Urn]) -> tuple[Array, Array]:
        """Return (delta, a bound of its error) of each urn."""
        new = [urn for urn in urns if urn not in self.found]
        draws = [(urn.mirrored() if self.mirrored else urn).draws(self.cut) for urn in new]
        value, error = averages(draws, [self.window] * len(new), self.epsilon)
        self.found |= dict(zip(new, zip(value.tolist(), error.tolist(), strict=True), strict=True))
        both = np.array([self.found[urn] for urn in urns])
        return both[:, 0], both[:, 1]


@lru_cache(maxsize=32)
def knowledge_cases(colluders: Colluders, first: int, last: int, least: float = LEAST) -> KnowledgeCases:
    """Return the cases of the compositions ``first`` to ``last`` that have a probability of at least ``least``."""
    keys, weights, starts, begun = [], [], [], 0
    base = colluders.count + 1
    for ones in range(first, last + 1):
        starts.append(begun)
        for known, left, law in _picked(colluders, ones, least):
            chosen = np.flatnonzero(law >= least)
            keys.append((known * (colluders.others + 1) + left) * base + chosen)
            weights.append(law[chosen])
            begun += len(chosen)
    distinct, index = np.unique(np.concatenate(keys), return_inverse=True)
    weight, begin = np.concatenate(weights), np.array(starts, np.int64)
    urns = []
    for key in distinct.tolist():
        rest, seen = divmod(key, base)
        known, left = divmod(rest, colluders.others + 1)
        urns.append(Urn(colluders.alpha, left, colluders.others - known - left, 0, seen, known - seen))
    missing = np.maximum(0.0, 1 - np.add.reduceat(weight, begin)) + 1e-15
    return KnowledgeCases(tuple(urns), np.asarray(index, np.int64).ravel(), weight, begin, missing)


def _picked(colluders: Colluders, ones: int, least: float) -> list[tuple[int, int, Array]]:
    """Return (honest bits known, ones among the labels of the rest, law of the ones among the bits known)."""
    out = []
    for known, chance in enumerate(colluders.distinct()):
        if chance < least:
            continue
        every = math.comb(colluders.others, known)
        for picked in range(max(0, known - colluders.others + ones), min(known, ones) + 1):
            ways = math.comb(ones, picked) * math.comb(colluders.others - ones, known - picked)
            share = chance * (ways / every)
            if share >= least:
                out.append(
                    (known, ones - picked, share * _ones_seen(colluders.alpha, picked, known - picked))
                )
    return out


@lru_cache(maxsize=64)
def distinct_hits(balls: int, wanted: int, cells: int) -> tuple[float, ...]:
    """Return the law of how many of ``wanted`` cells, among ``cells``, get a ball."""
    law = np.zeros(min(balls, wanted) + 1)
    law[0] = 1.0
    hit = np.arange(len(law), dtype=np.float64)
    for _ in range(balls):
        new = law * (1 - (wanted - hit) / max(1, cells))
        new[1:] += law[:-1] * (wanted - hit[:-1]) / max(1, cells)
        law = new
    return tuple(law.tolist())


@lru_cache(maxsize=64)
def _moved(law: tuple[float, ...], *, up: bool) -> tuple[float, ...]:
    """Return a law with its mass moved to few numbers, up or down."""
    ends = np.searchsorted(np.cumsum(law), [1e-6, 0.02, 0.2, 0.4, 0.6, 0.8, 0.98, 1 - 1e-6])
    ends = np.unique(np.clip(np.append(ends, len(law) - 1 if up else 0), 0, len(law) - 1))
    side = np.searchsorted(ends, np.arange(len(law)), "left" if up else "right") - (not up)
    out = np.zeros(len(law))
    np.add.at(out, ends[side], law)
    return tuple(out.tolist())


@lru_cache(maxsize=4096)
def _ones_seen(alpha: float, ones: int, zeros: int) -> Array:
    first, second = binomial(ones, 1 - alpha, alpha, 1e-300), binomial(zeros, alpha, 1 - alpha, 1e-300)
    law = np.zeros(ones + zeros + 1)
    low = first.low + second.low
    both = np.convolve(first.mass, second.mass)
    law[low : low + len(both)] = both
    return law
