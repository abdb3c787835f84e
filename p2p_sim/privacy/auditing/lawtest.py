"""Does a sample follow the law that it is measured by?  Chi-square on the positions of worlds in that law."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.words import stream, words
from p2p_sim.privacy.auditing.base import Array, Columns, Statistic

LEAST_WORLDS = 100
"""Worlds of each label below which nothing is tested."""

EXPECTED = 50
"""Least number of worlds a cell, so that chi-square's tail is right; found by exact calculation."""

CELLS = 64
"""Most cells of a test: more would see finer faults and fewer of the coarse ones."""

_COARSE = 8


@dataclass(frozen=True)
class Frequencies:
    """One chi-square test: positions of one or two coordinates, counted in cells that are equally likely.

    ``label``: the victim's.  ``coordinate``: its name, or two joined by " x ".  ``statistic``: chi-square, with
    ``freedom`` degrees.  ``expected``: worlds a cell.
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
    why nothing could be tested (then ``tests`` is empty and ``rejected`` false).
    """

    p_value: float
    rejected: bool
    tests: tuple[Frequencies, ...]
    why: str
    false_alarm: float

    @property
    def tested(self) -> bool:
        """Whether anything was tested."""
        return bool(self.tests) or self.rejected


def law_test(
    statistic: Statistic, columns_by_label: Mapping[int, Columns], seed: int, false_alarm: float
) -> LawTest:
    """Test sampled columns, by the victim's label, against the statistic's exact law.

    ``seed``: of the coins that spread equal values.  ``false_alarm``: the chance to reject a true law, in (0, 1), all
    tests together.  Raises InputError for these two out of range.

    *Source:* Pearson's chi-square; Bonferroni's inequality over the tests.
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
        tests += _tests(places, label, statistic.coordinates)
    worst = min(tests, key=lambda test: test.p_value)
    p_value = min(1.0, worst.p_value * len(tests))
    return LawTest(
        p_value, p_value <= false_alarm, tuple(tests), _said(worst, p_value, false_alarm), false_alarm
    )


def _too_few(statistic: Statistic, columns_by_label: Mapping[int, Columns]) -> str:
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


def _said(worst: Frequencies, p_value: float, false_alarm: float) -> str:
    if p_value > false_alarm:
        return ""
    return (
        f"label {worst.label}: {worst.coordinate!r} does not follow the law "
        f"(chi-square {worst.statistic:.1f} with {worst.freedom} degrees of freedom)"
    )


def _worlds(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _coins(seed: int, label: int, worlds: int, draws: int) -> Array:
    """Return uniforms in [0, 1), (worlds, draws), that no protocol draws."""
    columns = [words(seed, stream("audit", f"coin {i}", label), 0, worlds) for i in range(draws)]
    return (np.stack(columns, 1) >> np.uint64(11)) * 2.0**-53


def _tests(places: Array, label: int, names: tuple[str, ...]) -> Iterator[Frequencies]:
    """Yield the tests of one label: each coordinate in fine and coarse cells, and each with the next on a grid."""
    worlds, draws = places.shape
    fine = max(2, min(CELLS, worlds // EXPECTED))
    side = max(2, math.isqrt(fine)) if fine >= 4 else 0
    for i in range(draws):
        for cells in sorted({fine, min(fine, _COARSE)}):
            yield _frequencies(_cell(places[:, i], cells), cells, label, names[i])
        if side and i + 1 < draws:
            both = _cell(places[:, i], side) * side + _cell(places[:, i + 1], side)
            yield _frequencies(both, side * side, label, f"{names[i]} x {names[i + 1]}")


def _cell(places: Array, cells: int) -> Array:
    return np.minimum((places * cells).astype(np.int64), cells - 1)


def _frequencies(cell: Array, cells: int, label: int, name: str) -> Frequencies:
    from scipy.special import chdtrc

    expected = len(cell) / cells
    counts: Any = np.bincount(cell, minlength=cells)
    value = float(((counts - expected) ** 2).sum() / expected)
    return Frequencies(label, name, cells, expected, value, cells - 1, float(chdtrc(cells - 1, value)))
