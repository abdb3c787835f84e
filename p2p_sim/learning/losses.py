"""Losses for labels that were replaced by others with a known probability, and for labels known by bag alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LEAST = 1e-9  # probabilities of what was released are kept this far from 0


class Released(Protocol):
    """Released labels in rows, of each of which it is known whose they may be.

    ``counts`` (b, k): labels by value, at least 0, may be fractions.
    """

    @property
    def counts(self) -> Array:
        """Return the counts."""

    def mean(self, single: Array) -> Array:
        """Return for each row (b, k) the mean, over whose label one of it may be, of a value (n, k) of users."""

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``: (n, k) from (b, k)."""


@dataclass(frozen=True)
class Bags:
    """Labels of users known together: ``bag`` (n,), each user's row in ``counts``, -1 for none; ``counts`` (b, k).

    A label is as likely that of any user of its bag.  A label whose user is known is a bag of one user.
    """

    bag: Array
    counts: Array

    def mean(self, single: Array) -> Array:
        """Return the mean over the users of each bag."""
        b = len(self.counts)
        sums = [np.bincount(self.bag, weights=column, minlength=b) for column in single.T]
        return np.stack(sums, axis=1) / self._members

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``."""
        return np.asarray((rows / self._members)[self.bag])

    def inside(self) -> tuple[Array, Bags]:
        """Return a mask of the users who are in a bag, and the bags of those."""
        some = self.bag >= 0
        return some, replace(self, bag=self.bag[some])

    @property
    def _members(self) -> Array:
        return np.maximum(np.bincount(self.bag, minlength=len(self.counts)), 1)[:, None]


def channel(labels: int, lie: float) -> Array:
    """Return the law of randomized response (k, k): entry [j, y] is the probability that label y is released as j.

    ``lie``: in [0, 1], that it is replaced by one of the others, uniformly.
    """
    law = np.full((labels, labels), lie / (labels - 1))
    np.fill_diagonal(law, 1 - lie)
    return law


def undo(law: Array, shares: Array) -> Array:
    """Return the shares (..., k) of labels whose released shares would on average be ``shares``; may lie beyond 0 to 1.

    ``law``: a ``channel``, which is a mixture of the truth and a uniform label.
    """
    return np.asarray((shares - law[0, 1]) / (law[0, 0] - law[0, 1]))


def forward(scores: Array, told: Released, law: Array) -> tuple[float, Array]:
    """Return the forward-corrected cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    The mean of the softmax predictions over whose label it may be is sent through ``law`` (k, k), and compared with
    what was released: -sum counts log(law mean).  For bags of one this is the likelihood of randomized response, for
    bits P(released 1 | x) = (1 - 2 lie) sigma(score) + lie; without lies it is proportion matching.  Expected loss is
    least at the true probabilities; where nobody lies and bags are of one it is convex, otherwise not, but no label
    costs more than log(1 / least entry of law), so what noise made implausible does not pull the model after it.
    The unbiased ``backward`` loss is convex, and trains worse: see docs/experiments.md.

    *Source:* Patrini et al. 2017 (forward correction); Unified 2023, section 2 (PROPMATCH).
    *Assumes:* lies are uniform and independent; a label is that of a random one of whose it may be.
    """
    from scipy.special import softmax

    single = softmax(scores, axis=1)
    seen = np.maximum(told.mean(single) @ law.T, _LEAST)
    loss = -float((told.counts * np.log(seen)).sum())
    slope = told.back(-(told.counts / seen) @ law)
    return loss, single * (slope - (single * slope).sum(axis=1, keepdims=True))


def backward(scores: Array, released: Array, law: Array) -> tuple[float, Array]:
    """Return the unbiased cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    Each released label (n,) stands for the shares that undo the lies, beyond 0 to 1, so that the expected loss is that
    of the true labels whatever the scores.  Convex in the scores, but unbounded below.

    *Source:* Natarajan et al. 2013; Clustering 2022, Algorithm 1; Release 2023, appendix G.
    """
    from scipy.special import logsumexp

    shares = undo(law, np.eye(len(law))[released])
    total = logsumexp(scores, axis=1)
    return float(total.sum() - (shares * scores).sum()), np.exp(scores - total[:, None]) - shares
