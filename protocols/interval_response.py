"""Randomized response in an interval: users report a number near theirs, or another one that an interval allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import Message, Party, Protocol, Rounds, check_labels, check_range, check_whole, exp
from p2p_sim.core.exact import WORD
from protocols._number_grid import check_ends, grid_numbers, nearest_labels, numbers_between
from protocols.prior_response import UNIFORM, parsed_prior

MOST = 30.0
"""The largest budget, in nats: beyond it the words of a draw are too coarse for the chance of a report far off."""


@dataclass(frozen=True)
class IntervalResponse(Protocol):
    """Users who have a number each report one near theirs, more likely by e^epsilon than any number further off.

    Label i of k stands for the number low + i (high - low) / (k - 1).  A label outside an interval of labels counts as
    the interval's nearest one.  Outputs are the labels of the interval and, on both sides, ``window`` more steps; near
    are those at most ``window`` steps away.  The interval is the one that maximises the chance that the label is in it
    and the report near the label, for numbers that are distributed as ``prior`` says.

    ``epsilon``: from 0 to 30, in nats.  ``labels``: k, from 2 to 256.  ``low``, ``high``: the numbers of the first and
    the last label.  ``window``: steps, from 0 to 255.  ``prior``: "uniform", or the k probabilities of the labels, such
    as 0.7,0.2,0.1, all above 0.

    The learner returns columns ``sender``, ``output`` (uint16), in steps from the least one, and ``value`` (float64),
    its number.  ``label_of`` turns numbers into labels.  Raises InputError for parameters out of range.

    *Source:* Liu and Huang 2026, "RPWithPrior: Label Differential Privacy in Regression", on a grid of numbers.
    *Assumes:* the prior is public and depends on no user's label; users follow the protocol; nobody need be trusted.
    """

    epsilon: float
    labels: int = 16
    low: float = 0.0
    high: float = 1.0
    window: int = 1
    prior: str = UNIFORM

    report = Message("user", "learner", "hands the learner a number that may be far off", output=np.uint16)

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, MOST)
        check_labels("labels", self.labels)
        check_ends(self.labels, self.low, self.high)
        check_whole("window", self.window, 0, 255)
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

    def interval(self) -> tuple[int, int]:
        """Return the first and the last label of the interval; of equally good ones the shortest, then the first."""
        return _interval(self)

    def words(self) -> tuple[int, int, int]:
        """Return how many of 2^64 random words lead to each near output, each other one, and the one in the middle.

        The last are fewer than there are outputs: what is left over, whatever the label.  The ratio of the first two is
        at most e^epsilon, and at least 1; e^epsilon to 60 digits, the same on every machine.
        """
        first, last = self.interval()
        near, far = 2 * self.window + 1, last - first
        each_far = math.ceil(WORD / (near * exp(self.epsilon) + far))
        each_near = (WORD - far * each_far) // near
        if each_near < each_far:  # rounded below a ratio of 1
            each_near = each_far = WORD // (near + far)
        return each_near, each_far, WORD - near * each_near - far * each_far

    def user(self, me: Party) -> Rounds:
        """Report an output near the label, or any other one; all of either kind are equally likely."""
        first, last = self.interval()
        near, far = 2 * self.window + 1, last - first
        each_near, each_far, rest = self.words()
        place = me.y.view(np.uint8) * np.int64(near + far + 1)
        place += me.draw.categorical("output", [each_near] * near + [each_far] * far + [rest])
        yield self.report(output=_said(self).take(place))

    def learner(self, me: Party) -> Rounds:
        """Receive the outputs, and look up their numbers."""
        reports = yield self.report.receive()
        columns = reports.columns()
        first, last = self.interval()
        outputs = np.arange(first - self.window, last + self.window + 1)
        numbers = numbers_between(outputs / (self.labels - 1), self.low, self.high)
        return columns | {"value": numbers.take(columns["output"])}

    def _chances(self) -> npt.NDArray[Any]:
        return parsed_prior(self.prior, self.labels, f'{self.labels} probabilities or "{UNIFORM}"')


@lru_cache(maxsize=64)  # every block asks
def _said(protocol: IntervalResponse) -> npt.NDArray[np.uint16]:
    """Return the output of every label for each outcome of the draw, one label after the other."""
    first, last = protocol.interval()
    near, far = 2 * protocol.window + 1, last - first
    least = np.clip(np.arange(protocol.labels), first, last)[:, None] - first  # of the outputs near the label
    drawn = np.arange(near + far + 1)
    other = drawn - near  # of the outputs below those near, and above
    said = np.where(drawn < near, least + drawn, other + near * (other >= least))
    table = np.where(drawn == near + far, (near + far) // 2, said).astype(np.uint16).reshape(-1)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=64)  # every block asks
def _interval(protocol: IntervalResponse) -> tuple[int, int]:
    """Maximise P(the label is in the interval) / (2 window + 1 + e^-epsilon (its length - 1)), in exact fractions."""
    sums = [Fraction(0)]
    for chance in protocol._chances().tolist():
        sums.append(sums[-1] + Fraction(chance))
    share, best = Fraction(-1), (0, 0)
    for longer in range(protocol.labels):
        inside, first = max((sums[i + longer + 1] - sums[i], -i) for i in range(protocol.labels - longer))
        found = inside / (2 * protocol.window + 1 + exp(-protocol.epsilon) * longer)
        if found > share:
            share, best = found, (-first, -first + longer)
    return best
