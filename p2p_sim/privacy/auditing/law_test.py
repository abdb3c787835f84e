"""Goodness-of-fit test of audited worlds against the law that their scores come from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import stream, uniform, words
from p2p_sim.privacy.auditing.statistic import Array, Statistic, WorldCounts

_REST = "the view tells more of the label than the law: a classifier finds it beside what the law speaks of"

LEAST_WORLDS = 100
"""Worlds of each label below which nothing is tested."""

EXPECTED = 100
"""Least number of worlds a cell, where there are more than two.

By exact calculation chi-square's tail is then too small by a factor of at most 1.1 at 1e-5 and 1.6 at 1e-9.
"""

CELLS = 64
"""Most cells of a test: more would see finer faults and fewer of the coarse ones."""

_COARSE = 8


@dataclass(frozen=True)
class Frequencies:
    """One test of frequencies: positions of one or two coordinates, counted in cells.

    ``label``: the victim's.  ``coordinate``: its name, or two joined by " x ".  ``statistic``: chi-square, with
    ``freedom`` degrees.  ``expected``: worlds in the least likely cell.  With two cells ``p_value`` is exact.
    """

    label: int
    coordinate: str
    cells: int
    expected: float
    statistic: float
    freedom: int
    p_value: float


@dataclass(frozen=True)
class LawTest:
    """Whether the sampled worlds follow the exact law.

    ``p_value``: the smallest of the tests, times their number, at most 1.  ``why``: what speaks against the law, or
    why nothing could be tested (then ``tests`` is empty and ``rejected`` false).  ``rest``: the p-value of whether the
    view shows nothing of the label beside the statistic, None where no classifier looked.
    """

    p_value: float
    rejected: bool
    tests: tuple[Frequencies, ...]
    why: str
    false_alarm: float
    rest: float | None = None

    @property
    def tested(self) -> bool:
        """Whether anything was tested."""
        return bool(self.tests) or self.rejected or self.rest is not None

    def with_rest(self, rest: float) -> LawTest:
        """Return this test and that of the rest of the view as one, of which each has half of the false alarms."""
        both = min(1.0, 2 * min(self.p_value, rest))
        rejected = both <= self.false_alarm
        why = "" if self.rejected and not rejected else self.why
        why = _REST if rejected and rest < self.p_value else why
        return replace(self, p_value=both, rejected=rejected, why=why, rest=rest)


def law_test(
    statistic: Statistic, columns_by_label: Mapping[int, WorldCounts], seed: int, false_alarm: float
) -> LawTest:
    """Test sampled columns, by the victim's label, against the statistic's exact law.

    ``seed``: of the coins that spread equal values.  ``false_alarm``: the chance to reject a true law, in (0, 1), all
    tests together.  Raises InputError for these two out of range.

    *Source:* Pearson's chi-square, and the binomial law where there are two cells; Bonferroni's inequality.
    """
    check_seed(seed)
    if isinstance(false_alarm, bool) or not 0 < false_alarm < 1:
        raise InputError(f"false_alarm = {false_alarm!r}: must be a number in (0, 1)")
    few = _too_few(statistic, columns_by_label)
    if few:
        return LawTest(1.0, False, (), few, false_alarm)
    tests: list[Frequencies] = []
    for label, columns in sorted(columns_by_label.items()):
        places = statistic.positions(columns, label, _coins(seed, label, _worlds(columns), statistic.draws))
        never = np.flatnonzero(np.isnan(places).any(0))
        if len(never):
            count = int(np.isnan(places[:, never[0]]).sum())
            name = statistic.coordinates[never[0]]
            why = f"label {label}: {count:,} worlds have a value of {name!r} that the law gives no chance"
            return LawTest(0.0, True, tuple(tests), why, false_alarm)
        tests += _tests(places, columns, label, statistic)
    if not tests:
        return LawTest(
            1.0, False, (), "the law leaves nothing to chance, and no world departs from it", false_alarm
        )
    worst = min(tests, key=lambda test: test.p_value)
    p_value = min(1.0, worst.p_value * len(tests))
    return LawTest(
        p_value, p_value <= false_alarm, tuple(tests), _verdict_text(worst, p_value, false_alarm), false_alarm
    )


def _too_few(statistic: Statistic, columns_by_label: Mapping[int, WorldCounts]) -> str:
    """Return why nothing can be tested, or an empty text."""
    if not statistic.draws:
        return "this view can read nothing that depends on a label: there is no law to test"
    if not columns_by_label:
        return "no worlds: nothing was tested"
    label = min(columns_by_label, key=lambda each: _worlds(columns_by_label[each]))
    worlds = _worlds(columns_by_label[label])
    if worlds >= LEAST_WORLDS:
        return ""
    return f"label {label} has {worlds} worlds: the law is tested with {LEAST_WORLDS} or more of each label"


def _verdict_text(worst: Frequencies, p_value: float, false_alarm: float) -> str:
    if p_value > false_alarm:
        return ""
    return (
        f"label {worst.label}: {worst.coordinate!r} does not follow the law "
        f"(chi-square {worst.statistic:.1f} with {worst.freedom} degrees of freedom)"
    )


def _worlds(columns: WorldCounts) -> int:
    return len(next(iter(columns.values())))


def _coins(seed: int, label: int, worlds: int, draws: int) -> Array:
    """Return uniforms in [0, 1), (worlds, draws), that no protocol draws."""
    columns = [words(seed, stream("audit", f"coin {i}", label), 0, worlds) for i in range(draws)]
    return uniform(np.stack(columns, 1))


def _tests(places: Array, columns: WorldCounts, label: int, statistic: Statistic) -> Iterator[Frequencies]:
    """Yield the tests of one label: each coordinate in fine and coarse cells, and each with the next on a grid.

    Few values are counted as they are, one by one.
    """
    (worlds, draws), names = places.shape, statistic.coordinates
    fine = max(2, min(CELLS, worlds // EXPECTED))
    side = math.isqrt(fine)
    few = statistic.few(label)
    for i in range(draws):
        if i == 0 and few is not None:
            yield from _values(columns[names[0]], few, label, names[0], statistic.lowest)
        else:
            for cells in sorted({fine, min(fine, _COARSE)}):
                yield _frequencies(_cell(places[:, i], cells), cells, label, names[i])
        if side > 1 and i + 1 < draws:
            both = _cell(places[:, i], side) * side + _cell(places[:, i + 1], side)
            yield _frequencies(both, side * side, label, f"{names[i]} x {names[i + 1]}")


def _values(values: Array, law: Array, label: int, name: str, lowest: int) -> Iterator[Frequencies]:
    for value, chance in enumerate(law.tolist(), lowest):
        if 0 < chance < 1:
            seen = int((values == value).sum())
            yield _one_cell(seen, len(values), chance, label, f"{name} = {value}")


def _cell(places: Array, cells: int) -> Array:
    return np.minimum((places * cells).astype(np.int64), cells - 1)


def _frequencies(cell: Array, cells: int, label: int, name: str) -> Frequencies:
    from scipy.special import chdtrc

    if cells == 2:
        return _one_cell(int(cell.sum()), len(cell), 0.5, label, name)
    expected = len(cell) / cells
    counts: Any = np.bincount(cell, minlength=cells)
    value = float(((counts - expected) ** 2).sum() / expected)
    return Frequencies(label, name, cells, expected, value, cells - 1, float(chdtrc(cells - 1, value)))


def _one_cell(seen: int, worlds: int, chance: float, label: int, name: str) -> Frequencies:
    """Test one cell against all others by the binomial law itself, in both directions."""
    from scipy.special import bdtr, bdtrc

    upper = float(bdtrc(seen - 1, worlds, chance)) if seen else 1.0
    p_value = min(1.0, 2 * min(upper, float(bdtr(seen, worlds, chance))))
    expected = worlds * chance
    value = (seen - expected) ** 2 / (expected * (1 - chance))
    return Frequencies(label, name, 2, min(expected, worlds - expected), value, 1, p_value)
