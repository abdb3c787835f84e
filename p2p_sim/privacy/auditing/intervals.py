"""Confidence: from whole numbers of hits in two worlds to lower bounds on epsilon and delta, and what trials can show.

An attack scores every trial; a large score speaks for world b.  For each threshold there is an event in each
direction: "score >= t", which b should have more often, and "score <= t", which a should.  One error budget,
1 - confidence, is shared equally by two bounds, one on each probability, of every event; so all of them hold at
once, and a maximum over events, or over any number of epsilons and deltas, costs nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing._checks import counted, number, probability
from p2p_sim.privacy.auditing.clopper import HAIR, excess, lower, lower_real, ratio, upper, upper_real
from p2p_sim.privacy.auditing.power import (
    cap_delta,
    cap_epsilon,
    expected_delta,
    expected_epsilon,
    trials_for_delta,
    trials_for_epsilon,
    trials_to_measure,
    trials_to_measure_delta,
)

__all__ = [
    "ABOVE",
    "BELOW",
    "Found",
    "Hits",
    "cap_delta",
    "cap_epsilon",
    "count",
    "delta_lower",
    "epsilon_lower",
    "expected_delta",
    "expected_epsilon",
    "lower",
    "trials_for_delta",
    "trials_for_epsilon",
    "trials_to_measure",
    "trials_to_measure_delta",
    "upper",
]

Array = npt.NDArray[Any]

ABOVE, BELOW = "above", "below"


@dataclass(frozen=True)
class Hits:
    """How often each event happened in each world; ``above``: "score >= t", ``below``: "score <= t".

    Each column has a number for each threshold of its direction.  Raises InputError for hits that are no whole
    numbers from 0 to the trials, unequal columns, or no threshold at all.
    """

    above_a: Array
    above_b: Array
    below_a: Array
    below_b: Array
    trials_a: int
    trials_b: int

    def __post_init__(self) -> None:
        for name in ("above_a", "above_b", "below_a", "below_b"):
            trials = self.trials_a if name.endswith("a") else self.trials_b
            object.__setattr__(self, name, np.atleast_1d(counted(name, getattr(self, name), trials)))
        if (
            len(self.above_a) != len(self.above_b)
            or len(self.below_a) != len(self.below_b)
            or not self.events
        ):
            lengths = [len(x) for x in (self.above_a, self.above_b, self.below_a, self.below_b)]
            raise InputError(
                f"hits of {lengths} thresholds; needed: as many in both worlds, at least one in all"
            )

    @property
    def events(self) -> int:
        """How many events are counted, over both directions: the budget is shared by two bounds of each."""
        return len(self.above_a) + len(self.below_a)

    def swapped(self) -> Hits:
        """Return what one counts if the worlds trade names and scores change sign."""
        return Hits(self.below_b, self.below_a, self.above_b, self.above_a, self.trials_b, self.trials_a)

    def __add__(self, other: Hits) -> Hits:
        """Return the hits of two batches at the same thresholds."""
        if len(self.above_a) != len(other.above_a) or len(self.below_a) != len(other.below_a):
            raise InputError("hits can be added only if they were counted at the same thresholds")
        return replace(
            self,
            above_a=self.above_a + other.above_a,
            above_b=self.above_b + other.above_b,
            below_a=self.below_a + other.below_a,
            below_b=self.below_b + other.below_b,
            trials_a=self.trials_a + other.trials_a,
            trials_b=self.trials_b + other.trials_b,
        )


def count(scores_a: Any, scores_b: Any, above: Any, below: Any = None) -> Hits:
    """Count both directions' events; the thresholds must not depend on these scores.

    ``above``, ``below``: thresholds of each direction (``below`` None: the same); all may be infinite.
    Raises InputError for NaN and for a world without scores.
    """
    a, b = np.sort(_scores("scores_a", scores_a)), np.sort(_scores("scores_b", scores_b))
    over = np.atleast_1d(_scores("above", above))
    under = over if below is None else np.atleast_1d(_scores("below", below))
    return Hits(
        above_a=len(a) - np.searchsorted(a, over, "left"),
        above_b=len(b) - np.searchsorted(b, over, "left"),
        below_a=np.searchsorted(a, under, "right"),
        below_b=np.searchsorted(b, under, "right"),
        trials_a=len(a),
        trials_b=len(b),
    )


class Found(NamedTuple):
    """A lower bound with the event that gave it: ``direction`` "above" or "below", and its threshold's index.

    ``hits`` of the event in the world that should have it more often, ``against`` in the other.  A bound of 0
    comes with the event that came closest.
    """

    value: float
    direction: str
    threshold: int
    hits: int
    against: int


def epsilon_lower(counts: Hits, delta: float, confidence: float) -> Found:
    """Return a lower bound on epsilon at ``delta`` in [0, 1), in nats, at least 0 and always finite.

    With probability ``confidence`` in (0, 1) or more, the protocol is not (value, delta)-private.
    Raises InputError for arguments out of range.  Source: Jagielski et al. 2020; Nasr et al. 2021.
    """
    shift = number("delta", delta, 0.0, 1.0)
    return _best(counts, confidence, lambda p, q: ratio(p, q, shift) * (1 - HAIR))


def delta_lower(counts: Hits, epsilon: float, confidence: float) -> Found:
    """Return a lower bound on delta at ``epsilon`` >= 0 nats, at least 0.

    With probability ``confidence`` in (0, 1) or more, it holds at all epsilons at once.
    Raises InputError for arguments out of range.  Source: as ``epsilon_lower``.
    """
    at = number("epsilon", epsilon, 0.0, math.inf)
    return _best(counts, confidence, lambda p, q: excess(p, q, at) - HAIR * p)


def _best(counts: Hits, confidence: float, figure: Callable[[Array, Array], Array]) -> Found:
    error = (1 - probability("confidence", confidence)) / (2 * counts.events)
    hits = np.concatenate([counts.above_b, counts.below_a])
    against = np.concatenate([counts.above_a, counts.below_b])
    first, split = np.arange(counts.events), len(counts.above_a)
    of, other = (
        np.where(first < split, x, y)
        for x, y in ((counts.trials_b, counts.trials_a), (counts.trials_a, counts.trials_b))
    )
    values = figure(
        lower_real(hits.astype(float), of, error), upper_real(against.astype(float), other, error)
    )
    best = int(np.argmax(values))
    place = (ABOVE, best) if best < split else (BELOW, best - split)
    return Found(max(0.0, float(values[best])), *place, int(hits[best]), int(against[best]))


def _scores(name: str, values: Any) -> Array:
    found = np.asarray(values, np.float64)
    if np.isnan(found).any() or not found.size:
        raise InputError(
            f"{name}: {'NaN among' if found.size else 'no'} scores; needed: numbers, infinities allowed"
        )
    return found
