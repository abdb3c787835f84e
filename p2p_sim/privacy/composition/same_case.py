"""Runs on the same labels of a law that is the worst of several cases: which cases there are, and which can be worst.

*Source:* ``docs/laws.md``, "The same case in every run".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_sim.privacy.composition.losses import Losses, Pair, losses_of
from p2p_sim.privacy.composition.pld_grid import grid_power
from p2p_sim.privacy.composition.privacy_loss import TYPES, types
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.mixtures import Worst

MOST_CASES = 100
"""Cases up to which runs are composed case by case where nobody asks for it."""

_GRIDS = (512, 4096)  # points of the grids on which cases are first looked at
_PROBES = tuple(10.0**-i for i in range(1, 13))  # deltas at which they are compared


@dataclass(frozen=True)
class Mirrored(Worst):
    """The worst of several laws and of their mirror images: both directions are as bad."""

    symmetric = True

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the larger direction twice."""
        return (self.delta(epsilon),) * 2


def cases_of(law: Law) -> list[tuple[Law, bool]]:
    """Return all cases of a law, and whether each stands for its mirror image too; the law itself if it has none."""
    cases = law.alternatives()
    if cases[0] is law:
        return [(law, False)]
    return [(case, mirrored or law.symmetric) for inner in cases for case, mirrored in cases_of(inner)]


def listed_cases(law: Law) -> bool:
    """Whether a law has several cases, at most ``MOST_CASES``, and each lists its outcomes: these compose quickly."""
    cases = cases_of(law)
    return 1 < len(cases) <= MOST_CASES and all(case.outcomes() is not None for case, _ in cases)


def hopeless(cases: list[Law], times: int) -> list[Law | None]:
    """Return, of cases that cannot be the worst of ``times`` runs, a law on a grid; None of the others.

    Cases that list no outcomes are not looked at, nor is any where all can be counted.  The upper end of a law on a
    grid holds at every epsilon; at some deltas it was seen to be below the lower end of another case.
    """
    pairs = [losses_of(case) for case in cases]
    known = [pair for pair in pairs if pair is not None]
    found: list[Law | None] = [None] * len(cases)
    if len(known) < 3 or sum(types(len(pair[0].losses), times) for pair in known) <= 4 * TYPES:
        return found
    left = {place: pair for place, pair in enumerate(pairs) if pair is not None}
    for points in _GRIDS:  # what a coarse grid cannot tell apart, a finer one may
        laws = {place: _on_grid(pair, times, points) for place, pair in left.items()}
        best = [max(_reached(law.lower, delta) for law in laws.values()) for delta in _PROBES]
        for place, law in laws.items():
            if all(_reached(law.upper, delta) <= low for delta, low in zip(_PROBES, best, strict=True)):
                found[place] = law
                del left[place]
    return found


def _on_grid(pair: Pair, times: int, size: int) -> Losses:
    upper, lower = (
        [grid_power(points, times, size, up, closely=False).points() for points in pair]
        for up in (True, False)
    )
    top = times * max(float(points.losses[-1]) if not points.infinite else math.inf for points in pair)
    return Losses((upper[0], upper[1]), (lower[0], lower[1]), top, exact=False)


def _reached(pair: Pair, delta: float) -> float:
    """Return at which epsilon the larger direction is down to ``delta``."""
    return max(points.inverse(delta) for points in pair)
