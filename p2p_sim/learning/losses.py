"""Losses for labels that were replaced by others with a known probability, and for labels known by bag alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LEAST = 1e-9  # probabilities of what was released are kept this far from 0


@dataclass(frozen=True)
class Bags:
    """Labels of users known together: ``bag`` (n,), each user's row in ``counts``, -1 for none; ``counts`` (b, k).

    Counts are of released labels by value, at least 0, and may be fractions.  A label whose user is known is a bag of
    one user.
    """

    bag: Array
    counts: Array


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


def forward(scores: Array, bags: Bags, law: Array) -> tuple[float, Array]:
    """Return the forward-corrected cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    The mean of the users' softmax predictions over each bag is sent through ``law`` (k, k), and compared with what was
    released: -sum counts log(law mean).  For bags of one this is the likelihood of randomized response, for bits
    P(released 1 | x) = (1 - 2 lie) sigma(score) + lie; without lies it is proportion matching.  Expected loss is least
    at the true probabilities; where nobody lies and bags are of one it is convex, otherwise not, but no label costs
    more than log(1 / least entry of law), so what noise made implausible does not pull the model after it.
    The unbiased ``backward`` loss is convex, and trains worse: see docs/experiments.md.

    *Source:* Patrini et al. 2017 (forward correction); Unified 2023, section 2 (PROPMATCH).
    *Assumes:* lies are uniform and independent; a label of a bag is that of a random user of it.
    """
    from scipy.special import softmax

    single = softmax(scores, axis=1)
    b, k = bags.counts.shape
    members = np.maximum(np.bincount(bags.bag, minlength=b), 1)[:, None]
    mean = np.stack([np.bincount(bags.bag, weights=single[:, y], minlength=b) for y in range(k)], axis=1)
    seen = np.maximum(mean / members @ law.T, _LEAST)
    loss = -float((bags.counts * np.log(seen)).sum())
    slope = (-(bags.counts / seen) @ law / members)[bags.bag]
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
