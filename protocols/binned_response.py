"""Randomized response on bins: users report which range of numbers theirs is in, or another one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import Message, Party, Protocol, Rounds, check_labels, check_range
from protocols._number_grid import check_ends, grid_numbers, nearest_labels, numbers_between
from protocols.prior_response import UNIFORM, parsed_prior
from protocols.randomized_response import check_lie, lying, never_drawn

Array = npt.NDArray[Any]

ROUNDING = 1e-9
"""By how much, of the error, more bins must be better than fewer: what is less may be rounding."""


@dataclass(frozen=True)
class BinnedResponse(Protocol):
    """Users who have a number each report its bin, or with some probability another bin, by randomized response.

    Label i of k stands for the number low + i (high - low) / (k - 1).  Bins are runs of neighbouring labels, and each
    has a number that is reported for it.  Both, and how many bins there are, are chosen to make the expected squared
    error of what is reported as small as the budget allows, for numbers that are distributed as ``prior`` says.

    ``epsilon``: at least 0, in nats; infinity never lies.  ``labels``: k, from 2 to 256.  ``low``, ``high``: the
    numbers of the first and the last label.  ``prior``: "uniform", or the k probabilities of the labels, such as
    0.7,0.2,0.1, all above 0.

    The learner returns columns ``sender``, ``bin`` (uint8), and ``value`` (float64), the number of that bin.
    ``label_of`` turns numbers into labels.  Raises InputError for parameters out of range.

    *Source:* Ghazi et al. 2023, "Regression with Label Differential Privacy", Algorithms 1 and 2, with squared loss.
    *Assumes:* the prior is public and depends on no user's label; users follow the protocol; nobody need be trusted.
    """

    epsilon: float
    labels: int = 16
    low: float = 0.0
    high: float = 1.0
    prior: str = UNIFORM

    report = Message("user", "learner", "hands the learner a randomized bin", bin=np.uint8)

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        check_ends(self.labels, self.low, self.high)
        self._chances()

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return the numbers that the labels stand for, shape (k,), ascending."""
        return grid_numbers(self.labels, self.low, self.high)

    def label_of(self, numbers: Any) -> npt.NDArray[np.uint8]:
        """Return the nearest label of each number, shape (n,); raises InputError for numbers beyond low and high."""
        return nearest_labels(numbers, self.labels, self.low, self.high)

    def lying(self, bins: int) -> Fraction:
        """Return the probability of a lie among ``bins``: e^epsilon to 60 digits, the same on every machine."""
        return lying(self.epsilon, bins)

    def bins(self) -> tuple[Array, Array]:
        """Return the bin of each label, shape (k,), and the number reported for each bin, shape (bins,).

        Of partitions that are as good, one with the fewest bins.
        """
        return _bins(self)

    def _best_bins(self) -> tuple[Array, Array]:
        chance, number = self._chances(), np.arange(self.labels) / (self.labels - 1)  # on [0, 1]
        # Algorithm 2; gain = e^epsilon - 1: bin S costs the least of sum_y P(y) (1 + gain [y in S]) (v - y)^2 over v
        kept = float(self.lying(2))
        gain = (1 - kept) / kept - 1 if kept else math.inf
        if math.isinf(gain):
            bin_of, ends = np.arange(self.labels), list(range(self.labels + 1))
        else:
            ends = _best_ends(chance, number, gain)
            bin_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        values = np.array([_centre(chance, number, slice(*pair), gain) for pair in pairwise(ends)])
        return bin_of, numbers_between(values, self.low, self.high)

    def user(self, me: Party) -> Rounds:
        """Report the bin of the label or, as Algorithm 1 does, another one."""
        bin_of, values = self.bins()
        said = bin_of[me.y.view(np.uint8)]
        if len(values) > 1:
            check_lie(self.epsilon, self.lying(len(values)))
            lies = me.draw.bernoulli("lie", self.lying(len(values)))
            said = (said + lies * (1 + me.draw.below("other", len(values) - 1))) % len(values)
        yield self.report(bin=said.astype(np.uint8))

    def never_lies(self, bins: int) -> bool:
        """Whether a lie among ``bins`` is less likely than one random word in 2^64, so that it is never drawn."""
        return never_drawn(self.lying(bins))

    def learner(self, me: Party) -> Rounds:
        """Receive the randomized bins, and look up their numbers."""
        reports = yield self.report.receive()
        columns = reports.columns()
        return columns | {"value": self.bins()[1][columns["bin"]]}

    def _chances(self) -> Array:
        return parsed_prior(self.prior, self.labels, f'{self.labels} probabilities or "{UNIFORM}"')


@lru_cache(maxsize=64)  # every block asks, maybe every user's
def _bins(protocol: BinnedResponse) -> tuple[Array, Array]:
    bin_of, values = protocol._best_bins()
    bin_of.flags.writeable = values.flags.writeable = False
    return bin_of, values


def _centre(chance: Array, number: Array, part: slice, gain: float) -> float:
    """Return the number with the least expected squared error of those that are reported as a bin."""
    inside, within = math.fsum(chance[part]), math.fsum(chance[part] * number[part])
    if math.isinf(gain):
        return within / inside
    return (math.fsum(chance * number) + gain * within) / (math.fsum(chance) + gain * inside)


def _best_ends(chance: Array, number: Array, gain: float) -> list[int]:
    """Return where the best bins end, from 0 to k: bin j has labels ends[j] to ends[j + 1] - 1."""
    labels = len(chance)
    mass, first, second = (np.concatenate([[0.0], np.cumsum(chance * number**power)]) for power in (0, 1, 2))
    inside = [
        whole[None, :] - whole[:, None] for whole in (mass, first, second)
    ]  # of labels from row to column
    weight, moment, square = (
        whole[-1] + gain * part for whole, part in zip((mass, first, second), inside, strict=True)
    )
    begins = np.arange(labels + 1)
    cost = np.where(begins[:, None] < begins[None, :], square - moment * moment / weight, math.inf)
    totals, ends = cost[0], [np.zeros(labels + 1, np.intp)]
    chosen, least = 1, totals[labels] / (1 + gain)
    for bins in range(2, labels + 1):  # totals[i]: of the first i labels in so many bins
        each = totals[:, None] + cost
        ends.append(np.argmin(each, axis=0))
        totals = np.min(each, axis=0)
        error = totals[labels] / (bins + gain)
        if error < least * (1 - ROUNDING):
            chosen, least = bins, error
    found = [labels]
    for bins in range(chosen - 1, -1, -1):
        found.append(int(ends[bins][found[-1]]))
    return found[::-1]
