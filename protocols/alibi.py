"""ALIBI: users report their one-hot label with Laplace noise, and the learner denoises it by Bayes' rule."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import Message, Party, Protocol, Rounds, check_labels, check_whole
from p2p_sim.core.exact import LAPLACE_LIMIT
from p2p_sim.core.message import Vector
from protocols.laplace_label_proportions import check_noise, check_tail, scale
from protocols.prior_response import UNIFORM, parsed_prior

_DIGITS = Context(prec=50)

FINEST = 256
"""Most steps of noise a label: the exact law multiplies so many probabilities by as many."""


@dataclass(frozen=True)
class Alibi(Protocol):
    """Users add Laplace(2 / epsilon) noise to each entry of their one-hot label; the learner takes the likeliest label.

    ``epsilon``: above 0, at most 700, in nats; in a run at most 48, for the tail that hides a label must be drawn.
    ``labels``: k, from 2 to 256.  ``grid``: steps of noise a label, from 1
    to 256: the noise is discrete, on multiples of 1 / grid, so that its law is exact; many steps come close to the
    continuous noise of the paper.  ``prior``: "uniform", or the k probabilities of the labels, such as 0.7,0.2,0.1, all
    above 0, which the learner believes in when she denoises.  It changes nothing that she sees.

    The learner returns columns ``sender``, ``scores``, (n, k), the noisy one-hot labels in steps, and ``y`` (uint8),
    the label with the largest probability given the scores; of equally likely labels the one with the larger score,
    then the smaller label.  Raises InputError for parameters out of range.

    *Source:* Esmaeili, Mironov, Prasad, Shilov, Tramer 2021, "Antipodes of Label Differential Privacy: PATE and ALIBI";
    Attacks 2023, section 2; Ghosh, Roughgarden, Sundararajan 2009 (discrete noise).
    *Assumes:* users follow the protocol; nobody else need be trusted.
    """

    epsilon: float
    labels: int = 2
    grid: int = 8
    prior: str = UNIFORM

    report = Message(
        "user", "learner", "hands the learner a noisy one-hot label", scores=Vector(np.int32, "labels")
    )

    def __post_init__(self) -> None:
        check_labels("labels", self.labels)
        check_whole("grid", self.grid, 1, FINEST)
        check_noise(self.epsilon, self.grid, LAPLACE_LIMIT // 2)  # twice the noise of one number
        self.log_prior()

    def label_count(self) -> int:
        """Return k."""
        return self.labels

    def log_prior(self) -> npt.NDArray[np.float64]:
        """Return the logarithms of the prior, shape (k,), the same on every machine."""
        prior = parsed_prior(self.prior, self.labels, f'{self.labels} probabilities or "{UNIFORM}"')
        return np.array([float(Decimal(float(chance)).ln(_DIGITS)) for chance in prior])

    def user(self, me: Party) -> Rounds:
        """Report the label, one-hot, with noise on every entry."""
        check_tail(self.epsilon, self.epsilon / 2)
        # one label replaced moves two entries by 1: L1 sensitivity 2
        noise = me.draw.laplace(
            "noise", 2 * scale(self.epsilon, self.grid), times=self.labels, dtype=np.int32
        )
        yield self.report(scores=self.raised(noise.data.reshape(me.size, self.labels), me.y))

    def raised(self, noise: npt.NDArray[np.int32], y: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return noise (n, k) with one label's steps more where the label of a row is."""
        scores = noise.copy()
        for low in range(0, len(noise), _AT_ONCE):
            few, labels = scores[low : low + _AT_ONCE], y[low : low + _AT_ONCE]
            if self.labels == 2:  # as below, in a fraction of its time
                few[:, 0] += np.int32(self.grid) * ~labels
                few[:, 1] += np.int32(self.grid) * labels
            else:
                few[np.arange(len(few)), labels] += self.grid
        scores.flags.writeable = False  # so that sending it needs no copy
        return scores

    def learner(self, me: Party) -> Rounds:
        """Receive the noisy labels, and denoise them."""
        reports = yield self.report.receive()
        columns = reports.columns()
        return columns | {"y": self.denoised(columns["scores"])}

    def denoised(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the labels (n,) with the largest posterior probability given ``scores``, shape (n, k), in steps.

        Of label c the log likelihood is (|score| - |score - grid|) epsilon / (2 grid), up to what is the same for all.
        It grows with the score from 0 to grid.
        """
        prior = self.log_prior()
        if (prior == prior[0]).all():  # then no label with a smaller score is as likely
            return _first_largest(scores)
        rate = float(self.epsilon) / (2 * self.grid)
        posterior = prior[:, None] + rate * (2 * np.arange(self.grid + 1) - self.grid)
        # the place of each probability among all of them stands above the score, which decides where it is the same
        ranks = np.unique(posterior, return_inverse=True)[1].reshape(-1).astype(np.int64) << 32
        first = np.arange(self.labels) * (self.grid + 1)
        found = np.empty(len(scores), np.uint8)
        for low in range(0, len(scores), _AT_ONCE):
            few = scores[low : low + _AT_ONCE]
            found[low : low + _AT_ONCE] = _first_largest(ranks[first + np.clip(few, 0, self.grid)] + few)
        return found


_AT_ONCE = 16_384
"""Reports denoised at a time: what lies between fits the cache."""


def _first_largest(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return where each row has its largest entry, the first of equal ones."""
    if rows.shape[1] == 2:  # as argmax does, in a fraction of its time
        return np.asarray(rows[:, 1] > rows[:, 0]).view(np.uint8)
    return np.asarray(rows.argmax(axis=1), np.uint8)
