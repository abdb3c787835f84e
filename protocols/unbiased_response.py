"""Unbiased randomizers: users report numbers that are right on average, whatever theirs is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import InputError, Message, Party, Protocol, Rounds, check_labels, check_range
from p2p_sim.core.exact import WORD
from protocols._number_grid import check_ends, grid_numbers, nearest_labels, numbers_between
from protocols._unbiased_outputs import Randomizer, optimal
from protocols.prior_response import UNIFORM, parsed_prior

Array = npt.NDArray[Any]

LEAST, MOST = 0.01, 12.0
"""The budgets, in nats, for which a randomizer is made."""


@dataclass(frozen=True)
class UnbiasedResponse(Protocol):
    """Users who have a number each report a random one whose expected value is theirs, with little expected error.

    Label i of k stands for the number low + i (high - low) / (k - 1).  What is reported is one of finitely many
    outputs, some below ``low`` or above ``high``; the smaller epsilon, the further.  Up to 21 labels no unbiased
    randomizer with outputs on a grid has a smaller expected squared error for numbers that are distributed as
    ``prior`` says, nor has randomized response that is made unbiased.  Of more labels only some are optimised; users
    with another one report as if they had first rounded it at random, up or down.  That is not the least error, but
    none larger than that of unbiased randomized response of all labels, or every second, fourth and so on.  Solving
    takes seconds, once.

    ``epsilon``: from 0.01 to 12, in nats.  ``labels``: k, from 2 to 256.  ``low``, ``high``: the numbers of the first
    and the last label.  ``prior``: "uniform", or the k probabilities of the labels, such as 0.7,0.2,0.1, all above 0.

    The learner returns columns ``sender``, ``output`` (uint8), and ``value`` (float64), the number of that output.
    ``label_of`` turns numbers into labels.  Raises InputError for parameters out of range.

    *Source:* Badanidiyuru et al. 2023, "Optimal Unbiased Randomizers for Regression with Label Differential Privacy".
    *Assumes:* the prior is public and depends on no user's label; users follow the protocol; nobody need be trusted.
    """

    epsilon: float
    labels: int = 16
    low: float = 0.0
    high: float = 1.0
    prior: str = UNIFORM

    report = Message("user", "learner", "hands the learner an unbiased number", output=np.uint8)

    def __post_init__(self) -> None:
        check_labels("labels", self.labels)
        check_range("epsilon", self.epsilon, 0, MOST, open_low=True)
        if self.epsilon < LEAST:
            raise InputError(
                f"epsilon = {self.epsilon!r}: unbiased numbers would have to reach {1 / self.epsilon:,.3g} times as "
                f"far beyond low and high as these are apart; give at least {LEAST}, or take binned-response"
            )
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

    def randomizer(self) -> Randomizer:
        """Return the outputs in steps of labels, and how many of 2^64 random words make each label report each."""
        return _randomizer(self.epsilon, self.labels, self.prior)

    def values(self) -> npt.NDArray[np.float64]:
        """Return the number of each output, shape (outputs,), ascending."""
        return numbers_between(self.randomizer().outputs() / (self.labels - 1), self.low, self.high)

    def user(self, me: Party) -> Rounds:
        """Report what the label says where a random word falls, or rather between which words that change an output."""
        weights, outputs = _stretches(self.randomizer())
        stretch = me.draw.categorical("stretch", weights)
        place = me.y.view(np.uint8) * np.int64(len(weights)) + stretch
        yield self.report(output=outputs.take(place))

    def learner(self, me: Party) -> Rounds:
        """Receive the outputs, and look up their numbers."""
        reports = yield self.report.receive()
        columns = reports.columns()
        return columns | {"value": self.values()[columns["output"]]}

    def _chances(self) -> Array:
        return parsed_prior(self.prior, self.labels, f'{self.labels} probabilities or "{UNIFORM}"')


@lru_cache(maxsize=64)  # every block asks, maybe every user's
def _randomizer(epsilon: float, labels: int, prior: str) -> Randomizer:
    return optimal(parsed_prior(prior, labels, ""), epsilon)


@lru_cache(maxsize=64)
def _stretches(made: Randomizer) -> tuple[tuple[int, ...], Array]:
    """Return how many words each stretch has in which no label changes its output, and the outputs, label by label.

    So one draw, from the same weights for all, is enough, and every label's chances are those of its row.
    """
    ends = [list(accumulate(row)) for row in made.chances]
    cuts = sorted({0, *(end for row in ends for end in row)})
    starts = np.array(cuts[:-1], np.uint64)
    outputs = np.stack([np.searchsorted(np.array(row[:-1], np.uint64), starts, side="right") for row in ends])
    assert cuts[-1] == WORD
    table = np.ascontiguousarray(outputs.astype(np.uint8).reshape(-1))
    table.flags.writeable = False
    return tuple(b - a for a, b in pairwise(cuts)), table
