"""Randomized response: everybody tells the truth or, with a known probability, a uniform lie."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import (
    InputError,
    Message,
    Party,
    Protocol,
    Rounds,
    check_labels,
    check_range,
    exp,
)
from p2p_sim.core.exact import WORD


def lying(epsilon: float, labels: int) -> Fraction:
    """Return the probability of a lie among ``labels``: e^epsilon to 60 digits, the same on every machine.

    ``epsilon``: at least 0, in nats; beyond ``NEVER`` nobody lies.
    """
    odds = Fraction(0) if epsilon > NEVER else (labels - 1) * exp(-epsilon)
    return odds / (1 + odds)


NEVER = 1000.0
"""Epsilon beyond which a lie is less likely than one random word in 2^64, many times over: nobody lies."""


def never_drawn(lie: Fraction) -> bool:
    """Whether a lie is less likely than one random word in 2^64."""
    return lie * WORD < 1


def check_lie(epsilon: float, lie: Fraction) -> None:
    """Check, in a program, that a lie can be drawn: of a finite epsilon it needs one random word in 2^64 at least.

    A rarer one would be left out, and show everything, which the law of that epsilon does not say.  Raises InputError.
    """
    if never_drawn(lie) and not math.isinf(epsilon):
        raise InputError(
            f"epsilon = {epsilon!r}: a lie would be less likely than one random word in 2^64, and never be drawn; give "
            "a smaller epsilon, at most 40 is safe, or infinity"
        )


@dataclass(frozen=True)
class RandomizedResponse(Protocol):
    """Users report their label, or with probability (k - 1) / (k - 1 + e^epsilon) one of the k - 1 others.

    ``epsilon``: at least 0, in nats; infinity never lies; beyond about 44 a lie is too rare to be drawn, and a run is
    refused.  ``labels``: k, from 2 to 256.  The learner returns columns
    ``sender`` and ``y`` (uint8).  Raises InputError for parameters out of range.

    *Source:* Warner 1965; Clustering 2022, section 7 and Corollary 1 (UniformRR).
    *Assumes:* users follow the protocol; nobody else need be trusted.
    """

    epsilon: float
    labels: int = 2
    lie: Fraction | None = field(default=None, repr=False)
    """Probability of a lie, set by ``flipping``; None: from epsilon."""

    report = Message("user", "learner", "hands the learner a randomized label", y=np.uint8)

    def __post_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0, math.inf)
        check_labels("labels", self.labels)
        if self.lie is not None and not math.isclose(
            float(self.lie), float(self._from_epsilon()), abs_tol=1e-12
        ):
            raise InputError(
                f"lie = {self.lie}: contradicts epsilon = {self.epsilon!r}; use RandomizedResponse.flipping(p)"
            )

    @classmethod
    def flipping(cls, p: float) -> RandomizedResponse:
        """Return binary randomized response that flips with probability exactly p, in [0, 1/2]."""
        check_range("p", p, 0, 0.5)
        return cls(math.log((1 - p) / p) if p else math.inf, 2, Fraction(p))

    def lying(self) -> Fraction:
        """Return the probability of a lie: e^epsilon to 60 digits, the same on every machine."""
        return self._from_epsilon() if self.lie is None else self.lie

    def _from_epsilon(self) -> Fraction:
        return lying(self.epsilon, self.labels)

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def noisy(self, me: Party) -> npt.NDArray[Any]:
        """Draw what each user says her label is."""
        check_lie(self.epsilon, self.lying())
        lies = me.draw.bernoulli("lie", self.lying())
        if self.labels == 2:
            return np.asarray((me.y ^ lies).view(np.uint8))
        other = 1 + me.draw.below("other", self.labels - 1)
        return np.asarray((me.y + lies * other) % self.labels)

    def user(self, me: Party) -> Rounds:
        """Report the label or a lie."""
        yield self.report(y=self.noisy(me))

    def learner(self, me: Party) -> Rounds:
        """Receive the randomized labels."""
        reports = yield self.report.receive()
        return reports.columns()
