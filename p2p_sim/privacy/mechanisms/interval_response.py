"""Randomized response in an interval: every observer of the report sees a number, near the victim's or not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from p2p_sim.coalition import Coalition
from p2p_sim.core.exact import WORD
from p2p_sim.core.label_kinds import NUMERIC
from p2p_sim.observed_view import View
from p2p_sim.privacy.auditing.statistic import Statistic
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.law import Law
from p2p_sim.privacy.laws.finite import Atoms, Nothing
from p2p_sim.privacy.mechanism_parts.label_reports import by_matrix, check_prior_rows
from p2p_sim.privacy.mechanism_parts.one_report import answer, read_by, under_faults
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.privacy.registry import Accounting, register
from p2p_sim.privacy.setting import Setting
from protocols import IntervalResponse

SOURCE = "Liu and Huang 2026, RPWithPrior on a grid; two labels as far apart as they can be, see docs/laws.md"
LIKELIHOOD = "Liu and Huang 2026, RPWithPrior on a grid: P(output | label), from the integers that are drawn"
GIVEN = "the prior is public and depends on no user's label"


def law(protocol: IntervalResponse, setting: Setting) -> PrivacyProfile:
    """Return what a view learns: which output came of those that are near only one of two labels."""
    return read_by(setting, worst(protocol), SOURCE, GIVEN)


def worst(protocol: IntervalResponse) -> Law:
    """Return the law of two labels with the fewest outputs near both, from the integers that are drawn."""
    first, last = protocol.interval()
    near, far, _ = protocol.words()
    if first == last or near == far:
        return Nothing()
    alone = min(last - first, 2 * protocol.window + 1)
    often, seldom = Fraction(alone * near, WORD), Fraction(alone * far, WORD)
    rest = 1 - often - seldom
    return Atoms.of([often, seldom, rest], [seldom, often, rest])


def matrix(protocol: IntervalResponse) -> npt.NDArray[np.float64]:
    """Return P(output | label), row by label, of the outputs in ascending order."""
    return np.array([[float(Fraction(count, WORD)) for count in row] for row in counts(protocol)])


def counts(protocol: IntervalResponse) -> list[list[int]]:
    """Return for how many of 2^64 random words each label reports each output, row by label."""
    first, last = protocol.interval()
    near, far, left = protocol.words()
    width = 2 * protocol.window + 1
    rows = []
    for label in range(protocol.labels):
        place = min(max(label, first), last) - first
        row = [far] * place + [near] * width + [far] * (last - first - place)
        row[len(row) // 2] += left
        rows.append(row)
    return rows


def statistic(
    protocol: IntervalResponse, coalition: Coalition, _size: int, _composition: int, channels: str
) -> Statistic:
    """Return the output that the victim reported, for a view that reads it."""
    return answer(coalition, channels, matrix(protocol), "output")


def local_epsilon(protocol: IntervalResponse) -> float:
    """Return the log ratio of the integers drawn, the budget or just below; 0 where all labels report alike."""
    return worst(protocol).pure()


def attack(protocol: IntervalResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what each output that the view reads says of its sender's label."""
    check_prior_rows(view, eta, protocol.labels)
    return by_matrix(view, matrix(protocol), LIKELIHOOD, field="output")


register(
    IntervalResponse,
    Accounting(
        labels=(NUMERIC,),
        law=law,
        under_faults=under_faults,
        statistic=statistic,
        local_epsilon=local_epsilon,
        attack=attack,
        others_matter=False,
    ),
)
