"""``LabelInference``: attackers of one view side by side, beside the baseline and what bounds allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.privacy.bounds.bound import Figure
from p2p_sim.result_picture import Bar, bars
from p2p_sim.result_summary import Rows, Summary

Floats = npt.NDArray[np.float64]

REFUSED = "refused"
_ADVANTAGE = "attack advantage"
_PROVEN = ("exact", "upper")


class Interval(NamedTuple):
    """An estimate between two ends of a confidence interval; all three are equal where the value is exact."""

    lower: float
    value: float
    upper: float


class Least(NamedTuple):
    """Lower ends of a row's utility and advantage at ``advantage.SURE`` instead of the table's confidence."""

    utility: float
    advantage: float


@dataclass(frozen=True)
class ImpliedEpsilon:
    """The least epsilon (nats) at ``delta``, for one label that is replaced, that guesses of coins imply.

    ``value``: at the table's confidence.  ``sure``: at ``advantage.SURE`` and a smaller delta, ``sure_delta``, because
    a delta as large as such a small error would hide whatever is guessed.  ``coins``: how many there were, ``right``:
    how many were guessed right when all were guessed.
    """

    value: float
    delta: float
    sure: float
    sure_delta: float
    coins: int
    right: int
    source: str


@dataclass(frozen=True)
class AttackRow:
    """One attacker, held against the best guess from public data alone, by her P(y | x).

    ``utility``: expected attack utility, the share of labels that it guesses right where utility is 0/1.
    ``baseline``: the same of the best guess without the messages (L-EAU).  ``advantage``: utility - baseline;
    ``ratio``: utility / baseline.  ``basis``: "exact" by a law or an enumeration, "measured" on messages, with the
    confidence of the table; "lower" where the attack leaves out part of what the view shows; "refused" with ``why``,
    and then the numbers are NaN.  ``source``: paper and theorem.
    ``least``: what bounds are compared with; None: the lower ends themselves, as for exact rows.  ``epsilon``: what
    guesses of coins imply; None where no coins are guessed.
    """

    name: str
    utility: Interval
    baseline: Interval
    advantage: Interval
    ratio: Interval
    basis: Literal["exact", "measured", "lower", "refused"]
    source: str
    why: str = ""
    least: Least | None = None
    epsilon: ImpliedEpsilon | None = None


@dataclass(frozen=True, eq=False)
class PerUser:
    """What the optimal attacker knows of each user: columns of equal length.

    ``user``: id.  ``prior`` and ``posterior``: the probability of the most likely label before and after the messages.
    ``right``: whether the guess after them is true.
    """

    user: npt.NDArray[np.int64]
    prior: Floats
    posterior: Floats
    right: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LabelInference(Summary):
    """What attackers with one view guess, beside what guarantees allow.

    ``eta_from``: where the attacker's P(y | x) comes from, in words.  ``utility``: "0/1", "weighted" (1 / (2 p_y)
    for a right guess) or "given", a matrix.  ``confidence`` of all intervals.  ``groups``: how many groups of victims
    do not depend on each other; where all are independent, how many victims.  ``largest``: the largest utility of a
    guess.  ``bounds``: of the advantage, each with its basis.
    ``per_user``: None where the optimal attack was not made.
    """

    view: str
    users: int
    labels: int
    eta_from: str
    utility: str
    confidence: float
    groups: int
    rows: tuple[AttackRow, ...]
    bounds: tuple[Figure, ...]
    per_user: PerUser | None = None

    def __repr__(self) -> str:
        return f"<LabelInference of {self.view}: {len(self._made())} attackers, {self.users:,} users>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing it and notebooks show: each attacker's right guesses, those without the messages."""
        rows = [
            (
                "labels",
                f"of {self.users:,} users; utility {self.utility}; P(label | features): {self.eta_from}",
            )
        ]
        for row in self.rows:
            what = (
                f"refused: {row.why}"
                if row.basis == REFUSED
                else f"{_interval(row.utility)} with the messages, {_interval(row.baseline)} without; "
                f"advantage {_interval(row.advantage)}; {row.basis}"
            )
            rows.append((row.name, what))
        proven = [
            bound
            for bound in self.bounds
            if bound.holds and bound.basis in _PROVEN and bound.quantity == _ADVANTAGE
        ]
        if proven:
            least = min(proven, key=lambda bound: bound.value)
            rows.append(("advantage at most", f"{least.value:.4g}: {least.source}"))
        return f"Labels guessed by view {self.view}, intervals at {100 * self.confidence:g} %", rows

    def picture(self) -> str:
        """Return bars of each attacker's right guesses, and as an outline those without the messages."""
        rows = []
        for row in self._made():
            rows.append(Bar(row.name, max(row.utility.value, 0), f"{row.utility.value:.4g}"))
            without = f"{row.baseline.value:.4g} without the messages"
            rows.append(Bar("", max(row.baseline.value, 0), without, marked=True))
        return bars(f"Labels guessed right by view {self.view}, with and without the messages", rows)

    def _made(self) -> list[AttackRow]:
        return [row for row in self.rows if row.basis != REFUSED]


def _interval(found: Interval) -> str:
    if found.lower == found.value == found.upper:
        return f"{found.value:.4g}"
    return f"{found.value:.4g} ({found.lower:.4g} to {found.upper:.4g})"
