"""Whether a model learned more than always guessing the same: by test rows, which are few, and by seeds, which are too.

Two errors count.  Other test rows would give another utility: all seeds of a data set share theirs, so their spread
does not show it.  And other randomness of the protocol would: that is what the spread of seeds shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from p2p_sim.sweep.summary import CONFIDENCE, interval

ONE_SIDED = 2 * CONFIDENCE - 1
"""Confidence of a two-sided interval whose lower end holds at 95 %."""


@dataclass(frozen=True)
class TestRows:
    """The test rows of one run: how many, and, of classes of which one is rare, how many are of it.

    ``same``: whether all seeds have the same ones, as of data.
    """

    count: int
    rare: float
    same: bool

    __test__ = False  # for pytest, which takes the name for a test's


@dataclass(frozen=True)
class Gain:
    """How much more than guessing was learned, in the metric's unit, and the ``lower`` end that holds at 95 %."""

    value: float
    lower: float

    @property
    def shown(self) -> bool:
        """Whether it is more than nothing."""
        return self.lower > 0


def of_protocol(
    metric: str, utilities: Sequence[float], constants: Sequence[float], rows: TestRows, tries: int
) -> Gain:
    """Return the gain of a protocol's model over seeds: that of one seed has no error, and so no lower end.

    ``utilities``, ``constants``: of the model and of the constant guess, seed by seed.  ``tries``: of how many models
    the best ones are looked at; the lower ends of all hold together.

    *Source:* Student's t over seeds; the test rows by ``half_of_rows``, their squares added (the spread of seeds with
    test rows of their own knows of these); Bonferroni over ``tries``.
    """
    confidence = 1 - (1 - ONE_SIDED) / max(1, tries)
    mean, spread = interval(_gains(metric, utilities, constants), confidence)
    if math.isnan(spread):
        return Gain(mean, -math.inf)
    half = half_of_rows(metric, utilities, constants, rows, confidence)
    return Gain(mean, mean - (math.hypot(spread, half) if rows.same else max(spread, half)))


def of_true_labels(
    metric: str, utilities: Sequence[float], constants: Sequence[float], rows: TestRows
) -> Gain:
    """Return the gain of the model of true labels.

    Where labels have nothing to do with features no model gains, whatever it was trained on: so the test rows' error is
    all there is, of one seed too.
    """
    mean, _ = interval(_gains(metric, utilities, constants))
    return Gain(mean, mean - half_of_rows(metric, utilities, constants, rows, ONE_SIDED))


def half_of_rows(
    metric: str, utilities: Sequence[float], constants: Sequence[float], rows: TestRows, confidence: float
) -> float:
    """Return how much more than guessing a model that learned nothing may seem to learn on such test rows.

    Accuracy: by the rows on which one of both is right, of which there are at most d = min(1 - c, a) + min(1 - a, c),
    as a share.  Area under the ROC curve: by the rows of each class.  R²: that of a model is at most its squared
    correlation with the labels, and that of any constant at most 0.  Infinity where rows are too few to tell.

    *Source:* McNemar's test with Edwards' correction; the variance of the Mann-Whitney statistic without a difference
    (Hanley and McNeil 1982), (P + N + 1) / (12 P N); that of a permuted correlation, 1 / (m - 1).
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    count = rows.count if rows.same else rows.count * len(utilities)
    if metric == "r2":
        return z * z / (count - 1) if count > 1 else math.inf
    if metric == "auc":
        return z * auc_error(count, rows.rare * count / rows.count if rows.count else 0.0)
    a, c = _mean(utilities), _mean(constants)
    differ = min(1.0, min(1 - c, a) + min(1 - a, c))
    return z * math.sqrt(differ / count) + 1 / count if count else math.inf


def auc_error(count: int, rare: float) -> float:
    """Return the standard error of the area under the ROC curve of a model that tells nothing."""
    often = count - rare
    return math.sqrt((count + 1) / (12 * rare * often)) if rare > 0 and often > 0 else math.inf


def _gains(metric: str, utilities: Sequence[float], constants: Sequence[float]) -> list[float]:
    if (
        metric == "r2"
    ):  # a constant's is below 0 where it is not the test rows' mean, which is no gain of a model
        return list(utilities)
    return [one - other for one, other in zip(utilities, constants, strict=True)]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
