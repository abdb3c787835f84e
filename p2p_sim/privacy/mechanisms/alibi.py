"""ALIBI: the law of a one-hot label with Laplace noise, of which two entries depend on a label.

*Source:* ``docs/laws.md``, "A one-hot label with noise".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.population import Population
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.common_statistics import said_by_victim
from p2p_sim.privacy.auditing.seen import Seen, SeenMessages
from p2p_sim.privacy.auditing.statistic import Blind, Statistic, WorldCounts, in_table
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import Evidence
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.mechanism_parts.entry_difference import differences
from p2p_sim.privacy.mechanism_parts.label_reports import check_prior_rows, of_senders, readable
from p2p_sim.privacy.mechanism_parts.one_report import read_by, reads, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, LabelNoise, register
from p2p_sim.privacy.setting import Setting
from protocols import Alibi

Array = npt.NDArray[np.float64]

SOURCE = "Esmaeili et al. 2021 with discrete noise; its losses, listed"

_DIGITS = Context(prec=50)


def law(protocol: Alibi, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: of two noisy numbers, one that the label raises and one that it does not."""
    table = differences(float(protocol.epsilon), int(protocol.grid))
    law = Atoms(table[None], table[None, ::-1])
    return read_by(setting, law, SOURCE, "noise whose tails are not cut")


@dataclass(frozen=True)
class Difference(Statistic):
    """The victim's entry of the second label less that of the first, both cut to 0 .. grid; far off without a report.

    ``pair``: the two labels of the victim that are compared.
    """

    epsilon: float
    grid: int
    labels: int
    pair: tuple[int, int] = (0, 1)
    coordinates = ("difference",)

    @property
    def lowest(self) -> int:  # type: ignore[override]
        """Return the least difference."""
        return -self.grid

    def read(self, seen: Seen) -> WorldCounts:
        """Look up the victim's report; ``NONE`` if there is none, and ``SEVERAL`` if there are several."""

        def difference(reports: SeenMessages, rows: Array) -> Array:
            cut = np.clip(reports.fields["scores"][rows], 0, self.grid)
            return np.asarray(cut[:, self.pair[1]] - cut[:, self.pair[0]])

        return {"difference": said_by_victim(seen, "report", "scores", difference, NONE, SEVERAL)}

    def between(self, labels: tuple[int, int]) -> Statistic | None:
        """Return the statistic of two other labels; None for one that the law lacks."""
        return replace(self, pair=labels) if max(labels) < self.labels else None

    def row_ratios(self, rows: WorldCounts) -> Array:
        """Return the log ratio, epsilon / grid a step at most; 0 where there is no report."""
        difference = rows["difference"]
        there = np.abs(difference) <= self.grid
        return np.where(there, difference * (self.epsilon / self.grid), 0.0)

    def few(self, label: int) -> Array:
        """Return the law of the difference, from ``lowest`` on."""
        table = differences(self.epsilon, self.grid)
        return table if label == self.pair[1] else table[::-1]

    def row_law(self, rows: WorldCounts, label: int) -> tuple[Array, Array]:
        """Return the law of the difference."""
        below, mass = in_table(self.few(label), rows["difference"] + self.grid)
        return below[:, None], mass[:, None]


NONE, SEVERAL = -(10**6), -(10**6) - 1
"""Stand for no report of the victim, and for more than one, which tells more; beyond any grid."""


def statistic(
    protocol: Alibi, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return what the victim's report says of two labels, for a view that reads it."""
    if not reads(coalition, channels):
        return Blind()
    return Difference(float(protocol.epsilon), int(protocol.grid), protocol.labels)


def local_epsilon(protocol: Alibi) -> float:
    """Return the budget."""
    return float(protocol.epsilon)


def noise(protocol: Alibi) -> LabelNoise:
    """Return what the noisy scores say of each label; the denoised label says less."""
    return LabelNoise(
        Fraction(0), protocol.labels, reports=lambda columns, people: evidence(protocol, columns, people)
    )


def evidence(protocol: Alibi, columns: Mapping[str, npt.NDArray[Any]], _people: Population) -> Evidence:
    """Return what the noisy scores say.

    Of label c the likelihood is exp(epsilon / grid cut(score of c)), up to a factor of the report; cut: to 0 .. grid.
    """
    scores, rate = columns["scores"], float(protocol.epsilon) / protocol.grid
    cut = np.clip(scores, 0, protocol.grid).astype(np.float64)
    likelihood = np.exp(rate * (cut - cut.max(axis=1, keepdims=True)))
    return Evidence(columns["sender"].astype(np.int64), likelihood, lambda: unbiased(protocol, scores))


def unbiased(protocol: Alibi, scores: npt.NDArray[Any]) -> Array:
    """Return weights (n, k) from scores (n, k) in steps, which sum to 1, and whose mean is the one-hot label.

    A score less its noise is one-hot, so scores / grid would do.  Cut to 0 .. grid, as all beyond tells nothing, they
    vary less: a score of another label then has the mean b = sum_j P(noise >= j), j = 1 .. grid, one's own grid - b.
    What the sum is short of 1 is given to all labels alike.
    """
    grid = int(protocol.grid)
    with localcontext(_DIGITS):
        q = (-Decimal(float(protocol.epsilon)) / (2 * grid)).exp()
        tails = q * (1 - q**grid) / ((1 - q) * (1 + q))
        apart = float(grid - 2 * tails)
    weights = (np.clip(scores, 0, grid) - float(tails)) / apart
    return np.asarray(weights + (1 - weights.sum(axis=1, keepdims=True)) / protocol.labels)


def attack(protocol: Alibi, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what the noisy scores that the view reads say of their senders' labels."""
    check_prior_rows(view, eta, protocol.labels)
    reports = readable(view, "report")
    scores = reports["scores"].reshape(-1, protocol.labels)
    rate = float(protocol.epsilon) / protocol.grid
    return of_senders(view, reports["sender"], rate * np.clip(scores, 0, protocol.grid), SOURCE)


register(
    Alibi,
    Accounting(
        labels=(BINARY, CLASSES),
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        noise=noise,
        attack=attack,
        others_matter=False,
    ),
)
