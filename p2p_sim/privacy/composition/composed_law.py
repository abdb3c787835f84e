"""The law of several independent runs: losses added up, exactly, on a grid, or of a dominating pair."""

from __future__ import annotations

import math
from dataclasses import dataclass

from p2p_sim.privacy.composition.dominating_pair import dominated, dominating, laplace
from p2p_sim.privacy.composition.losses import Losses, Pair, composed_before, losses_of
from p2p_sim.privacy.composition.noise_compositions import exact_law
from p2p_sim.privacy.composition.pld_grid import Grid, grid_power, lattice, on_grid, onto
from p2p_sim.privacy.composition.pld_grid import times as grid_times
from p2p_sim.privacy.composition.privacy_loss import NOTHING, TYPES, Points, power, product, types
from p2p_sim.privacy.composition.same_case import Mirrored, cases_of, hopeless
from p2p_sim.privacy.law import Bracket, Law
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Worst
from p2p_sim.privacy.laws.noise import Gaussian

GOAL = 1e-4
"""Relative width of the bracket of epsilon(1e-6) at which the grid is not refined any more."""

_SIZES = (2048, 4096, 8192, 16384)
_EXACT = 16384  # points of a lattice that is never rounded


def together(parts: list[tuple[Law, int]], method: str = "auto", same_case: bool = False) -> tuple[Law, bool]:
    """Return the law of runs (law, times) and whether it is exact; ``method``, ``same_case``: see ``compose``.

    Parts of equal laws are joined, and Gaussians, whose squares of sensitivity / sigma add up.  With ``same_case``
    a law that is the worst of several cases is composed case by case, if there is no other part.
    """
    found = joined(parts)
    if not found:
        return Nothing(), True
    if len(found) == 1 and found[0][1] == 1:
        return found[0][0], True
    if same_case and one_with_cases(parts):
        return _case_by_case(*found[0], method)
    return (Basic.of(found), False) if method == "basic" else _sum(found)


def joined(parts: list[tuple[Law, int]]) -> list[tuple[Law, int]]:
    """Return the parts that show something, those of equal laws and all Gaussians as one."""
    found: list[tuple[Law, int]] = []
    for law, count in parts:
        same = next((i for i, (other, _) in enumerate(found) if other is law or other == law), None)
        if same is None:
            found.append((law, count))
        else:
            found[same] = (law, found[same][1] + count)
    return _one_gaussian([(law, count) for law, count in found if law.pure() > 0])


def one_with_cases(parts: list[tuple[Law, int]]) -> bool:
    """Whether all that shows something is several runs of one law that is the worst of several cases."""
    found = joined(parts)
    return len(found) == 1 and found[0][1] > 1 and found[0][0].alternatives()[0] is not found[0][0]


def _case_by_case(law: Law, count: int, method: str) -> tuple[Law, bool]:
    """Return the worst of all cases, each composed by itself, and whether it is exact."""
    cases = cases_of(law)
    alone = [case for case, _ in cases]
    beaten: list[Law | None] = [None] * len(cases) if method == "basic" else hopeless(alone, count)
    laws: list[Law] = []
    all_exact = True
    for (case, mirrored), coarse in zip(cases, beaten, strict=True):
        found, exact = (coarse, False) if coarse is not None else together([(case, count)], method)
        laws.append(Mirrored((found,)) if mirrored else found)
        all_exact = all_exact and exact
    return Worst(tuple(laws)), all_exact


def _one_gaussian(parts: list[tuple[Law, int]]) -> list[tuple[Law, int]]:
    """Return the parts with all Gaussian noise as that of one run: the squares of its ratios add up."""
    squares, rest = [], []
    for law, count in parts:
        noise = law.noise()
        if noise is not None and noise.kind == "gaussian":
            squares.append(count * noise.ratio**2)
        else:
            rest.append((law, count))
    return [*rest, (Gaussian(1.0, math.sqrt(math.fsum(squares))), 1)] if squares else rest


def _sum(parts: list[tuple[Law, int]]) -> tuple[Law, bool]:
    """Return the law of independent runs, exact where the outcomes can be counted, and whether it is."""
    top = math.fsum(count * law.pure() for law, count in parts)
    listed: list[tuple[Pair, int]] = []  # outcomes: both ends
    ups: list[tuple[Pair, int]] = []  # upper ends of the rest
    downs: list[tuple[Pair, int]] = []  # their lower ends, where there are any
    single: list[Law] = []
    rest: list[tuple[Law, int]] = []
    for law, count in parts:
        known, noise = losses_of(law), law.noise()
        if known is not None:
            listed.append((known, count))
            continue
        rest.append((law, count))
        if (again := composed_before(law)) is not None:
            ups.append((again[0], count))
            downs.append((again[1], count))
            single += again[2]
        elif noise is not None and noise.kind == "laplace":
            ups.append(((laplace(noise.ratio, up=True),) * 2, count))
            downs.append(((laplace(noise.ratio, up=False),) * 2, count))
        else:
            ups.append((dominating(law), count))
            single.append(law)
            pair = law.one_pair()
            downs += [(dominated(pair), count)] if pair is not None and pair.pure() > 0 else []
    counted = _counted(listed)
    if counted is not None and not rest:
        return Losses(counted, counted, top, True), True
    if counted is not None and (found := exact_law(rest, counted, top)) is not None:
        return found, True
    return _gridded((listed + ups, listed + downs), top, tuple(single), exact=not ups)


def _gridded(
    ends: tuple[list[tuple[Pair, int]], list[tuple[Pair, int]]],
    top: float,
    single: tuple[Law, ...],
    exact: bool,
) -> tuple[Law, bool]:
    """Return the law on a grid, as fine as it takes; with a dominated law only the finest but one is tried."""
    for size in _SIZES[-2:-1] if single else _SIZES:
        grids = [
            [_on_grid([(pair[side], n) for pair, n in end], size, up) for side in range(2)]
            for end, up in zip(ends, (True, False), strict=True)
        ]
        exact = exact and not any(grid.rounded for end in grids for grid in end)
        upper, lower = ((end[0].points(), end[1].points()) for end in grids)
        law = Losses(upper, lower, top, exact, single)
        low, _, high = law.epsilon_bracket(1e-6)
        if exact or math.isinf(high) or high - low <= GOAL * high:
            break
    return law, exact


def _counted(parts: list[tuple[Pair, int]]) -> Pair | None:
    """Return the losses by counting types, or None where there are too many."""
    found = []
    for side in range(2):
        total = NOTHING
        for pair, count in parts:
            if types(len(pair[side].losses), count) > TYPES:
                return None
            one = power(pair[side], count)
            if total is not NOTHING and len(one.losses) * len(total.losses) > TYPES * 4:
                return None
            total = product(total, one) if total is not NOTHING else one
        found.append(total)
    return found[0], found[1]


def _on_grid(parts: list[tuple[Points, int]], size: int, up: bool) -> Grid:
    """Return the sum of all runs on a grid; what can be counted is counted first and put on the grid together."""
    if len(parts) == 1 and lattice(parts[0][0].losses) is not None:
        return grid_power(*parts[0], _EXACT, up)
    grids, counted = [], [NOTHING]
    for points, count in parts:
        if types(len(points.losses), count) <= TYPES:
            one = power(points, count)
            if len(one.losses) * len(counted[-1].losses) <= TYPES:
                counted[-1] = product(counted[-1], one)
            else:
                counted.append(one)
        else:
            grids.append(grid_power(points, count, size, up))
    grids += [on_grid(points, None, size, up) for points in counted if points is not NOTHING]
    total = grids[0] if grids else onto(NOTHING, 1.0, up)
    for grid in grids[1:]:
        total = grid_times(total, grid, size)
    return total


@dataclass(frozen=True, eq=False)
class Basic(Law):
    """Basic composition: epsilons and deltas of the runs add up; ``parts``: (law, times, share of epsilon a run)."""

    parts: tuple[tuple[Law, int, float], ...]

    @classmethod
    def of(cls, parts: list[tuple[Law, int]]) -> Basic:
        """Share epsilon among the parts in proportion to what each needs at delta = 1e-6 (any shares are valid)."""
        needs = [law.epsilon_bracket(1e-6).upper for law, _ in parts]
        if not all(0 < need < math.inf for need in needs):
            needs = [1.0] * len(parts)
        total = math.fsum(need * count for need, (_, count) in zip(needs, parts, strict=True))
        return cls(tuple((law, n, need / total) for need, (law, n) in zip(needs, parts, strict=True)))

    def directions(self, epsilon: float) -> tuple[Bracket, Bracket]:
        """Return the sum of each direction; the lower end is the largest of a single run."""
        sums, lows = [0.0, 0.0], [0.0, 0.0]
        for law, count, share in self.parts:
            at = epsilon * share * (1 - 1e-15)
            alone = law.directions(epsilon) if epsilon < law.pure() else None
            pair = law.directions(at) if at < law.pure() else None
            for side in range(2):
                sums[side] += count * pair[side].upper * (1 + 1e-15) if pair else 0.0
                lows[side] = max(lows[side], alone[side].lower) if alone else lows[side]
        first, second = (Bracket(low, min(1.0, s), min(1.0, s)) for low, s in zip(lows, sums, strict=True))
        return first, second

    def pure(self) -> float:
        """Return the sum of the pure epsilons."""
        return math.fsum(count * law.pure() for law, count, _ in self.parts)
