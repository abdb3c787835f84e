"""Algorithm 2 with several labels: the statistics that audits count, the victim's noisy label or the reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from p2p_sim.privacy.auditing.common_statistics import UNSEEN, bit_of_victim
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import (
    CUT,
    Statistic,
    WorldCounts,
    below_binomial,
    in_table,
    log_binomial,
)
from p2p_sim.privacy.laws.randomized_response import local_epsilon

Array = npt.NDArray[Any]

LARGEST = 60
"""Users of a world up to which the law of its reports is computed: it sums over two numbers of noisy labels."""

_CELLS = 1_000_000  # size of the tables that are made at a time


@dataclass(frozen=True)
class VictimLabel(Statistic):
    """The victim's noisy label, if it is seen: with probability ``seen``, whatever her label.

    ``alpha``: the probability that she says another of the ``labels``.  ``through_reports``: whether the view knows who
    asks whom and reads reports.  ``pair``: the two labels of the victim that are compared.

    *Source:* ``docs/laws.md``, "One curious peer" and "Wire and traffic".
    """

    alpha: float
    labels: int
    seen: float
    through_reports: bool
    pair: tuple[int, int] = (0, 1)
    coordinates = ("said",)
    lowest = UNSEEN

    def read(self, seen: Seen) -> WorldCounts:
        """Return ``said``: -1 where it is not seen, ``labels`` where two different ones are."""
        return {"said": bit_of_victim(seen, through_reports=self.through_reports, labels=self.labels)}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels, which are treated alike."""
        return replace(self, pair=labels) if max(labels) < self.labels else None

    def few(self, label: int) -> Array:
        """Return the law of unseen and of each label."""
        table = np.full(self.labels + 1, self.seen * self.alpha / (self.labels - 1))
        table[0], table[1 + label] = 1 - self.seen, self.seen * (1 - self.alpha)
        return table

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return plus or minus the budget, 0 where neither label of the pair is seen."""
        epsilon, (first, second) = local_epsilon(self.alpha, self.labels), self.pair
        return np.where(rows["said"] == second, epsilon, np.where(rows["said"] == first, -epsilon, 0.0))

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the label."""
        below, mass = in_table(self.few(label), rows["said"] - UNSEEN)
        return below[:, None], mass[:, None]


@dataclass(frozen=True)
class ReportedLabels(Statistic):
    """What the learner sees of a victim among ``size`` users, all of whom have one of two labels, ``pair``.

    ``m`` reports, ``k`` of them the second label and ``j`` the first: which of the other labels the rest are does not
    depend on the victim's.  ``own``: her own report, 0 if there is none, 1 the first label, 2 the second, 3 another;
    it tells nothing, as who reports what is pure chance, but it shows up a program
    that gets this wrong.  ``composition``: others with the second label.

    *Source:* ``docs/laws.md``, "Several labels".
    """

    alpha: float
    theta: float
    labels: int
    size: int
    composition: int
    pair: tuple[int, int] = (0, 1)
    coordinates = ("m", "k", "j", "own")

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels, which are treated alike."""
        return replace(self, pair=labels) if max(labels) < self.labels else None

    def read(self, seen: Seen) -> WorldCounts:
        """Count, in each world."""
        reports, own = seen.kinds.get("report"), np.zeros(seen.worlds, np.int64)
        if reports is None:
            return dict.fromkeys(self.coordinates, own)
        world, y = reports.sender // seen.size, reports.fields["y"]
        said = np.where(y == self.pair[0], 1, np.where(y == self.pair[1], 2, 3))
        mine = np.flatnonzero(reports.sender % seen.size == 0)
        own[world[mine]] = said[mine]
        each = np.bincount(world * 4 + said, minlength=4 * seen.worlds).reshape(seen.worlds, 4)
        return {"m": each.sum(1), "k": each[:, 2], "j": each[:, 1], "own": own}

    def ratios(self, columns: WorldCounts) -> Array:
        """Return the log ratios, which do not depend on ``own``."""
        return super().ratios({name: column for name, column in columns.items() if name != "own"})

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return those of the numbers of reports with either label."""
        first, second, mass = self._urn()
        out = np.zeros(len(rows["m"]))
        for part in _parts(len(out), len(mass)):
            m, k, j = (rows[name][part][:, None] for name in ("m", "k", "j"))
            logs = []
            for one, two in ((1, 0), (0, 1), (0, 0)):  # her noisy label: the first, the second, another
                counts = (first + one, second + two, self.size - 1 - first - second + (1 - one - two))
                terms = (
                    xlogy(n, count / self.size) for n, count in zip((j, k, m - j - k), counts, strict=True)
                )
                logs.append(np.log(mass) + sum(terms))
            top = np.max([part_.max(1) for part_ in logs], axis=0)
            sums = [np.exp(part_ - np.where(np.isfinite(top), top, 0.0)[:, None]).sum(1) for part_ in logs]
            sides = [sum(w * s for w, s in zip(self._noise(0, label), sums, strict=True)) for label in (0, 1)]
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(sides[1]) - np.log(sides[0])
            out[part] = np.where(np.isfinite(top), ratio, 0.0)
        return np.nan_to_num(out, nan=0.0, posinf=math.inf, neginf=-math.inf)

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of each count, given those before it."""
        first, second, mass = self._urn(int(label == self.pair[1]))
        below, equal = np.zeros((2, len(rows["m"]), 4))
        fits = rows["m"] <= self.size  # more have no chance
        m = np.minimum(rows["m"], self.size)
        k, j = np.minimum(rows["k"], m), np.minimum(rows["j"], m - np.minimum(rows["k"], m))
        below[:, 0] = below_binomial(m, self.size, self.theta)
        equal[:, 0] = np.where(fits, np.exp(log_binomial(m, self.size, self.theta)), 0.0)
        share = second / self.size
        rest = first / np.maximum(1, self.size - second)  # of those without the second label
        for part in _parts(len(m), len(mass)):
            ms, ks, js = m[part, None], k[part, None], j[part, None]
            given = mass * np.exp(log_binomial(ks, ms, share))
            below[part, 1] = below_binomial(ks, ms, share) @ mass
            equal[part, 1] = given.sum(1)
            given /= np.maximum(given.sum(1), 1e-300)[:, None]
            below[part, 2] = (given * below_binomial(js, ms - ks, rest)).sum(1)
            equal[part, 2] = (given * np.exp(log_binomial(js, ms - ks, rest))).sum(1)
        cells = np.stack([self.size - m, j, k, m - j - k], axis=1) / self.size
        below[:, 3], equal[:, 3] = _of_cells(cells, rows["own"])
        return np.minimum(below, 1.0), equal

    def _noise(self, own: int, label: int) -> tuple[float, float, float]:
        """Return with which chance a user says the first label, the second, and another one."""
        lie = self.alpha / (self.labels - 1)
        said = (1 - self.alpha, lie) if label == own else (lie, 1 - self.alpha)
        return *said, lie * (self.labels - 2)

    def _urn(self, victim: int | None = None) -> tuple[Array, Array, Array]:
        """Return (noisy first labels, noisy second ones, chance) of the others; with ``victim``, of her, too.

        ``victim``: 0 where she has the first label, 1 where she has the second.
        """
        size = self.size - (victim is None)
        law = np.zeros((size + 1, size + 1))
        law[0, 0] = 1.0
        users = [0] * (self.size - 1 - self.composition) + [1] * self.composition
        for label in users if victim is None else [*users, victim]:
            first, second, other = self._noise(0, label)
            grown = other * law
            grown[1:] += first * law[:-1]
            grown[:, 1:] += second * law[:, :-1]
            law = grown
        found = np.nonzero(law > CUT)
        return found[0].astype(np.float64), found[1].astype(np.float64), law[found]


def _of_cells(cells: Array, value: Array) -> tuple[Array, Array]:
    """Return P(< value) and P(= value), a row a law."""
    at = value[:, None]
    below = np.take_along_axis(np.cumsum(cells, axis=1) - cells, at, axis=1)[:, 0]
    return np.maximum(below, 0.0), np.maximum(np.take_along_axis(cells, at, axis=1)[:, 0], 0.0)


def _parts(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _CELLS // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))
