"""Losses for labels replaced with a known probability, or known by bag alone, and logistic regression under them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.models import one_thread

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


Loss = Callable[[Array], tuple[float, Array]]
"""From scores (n, k) to the loss and its gradient (n, k)."""

PENALTY = 1.0
"""Of half the squared weights, as in scikit-learn's logistic regression with C = 1."""

TOLERANCE = 1e-4
"""No entry of the gradient, over the number of rows, is larger in the end: scikit-learn's rule, too."""


class Regression:
    """A logistic regression of ``labels`` classes: one column of weights for two, else one a class.

    Minimizes a loss and half the squared weights but those of the constant, by L-BFGS.
    """

    def __init__(self, labels: int = 2, penalty: float = PENALTY, most: int = 500):
        self.labels, self.penalty, self.most = labels, penalty, most
        self.converged = True

    def fit(self, x: Array, loss: Loss, start: Array, rows: Array | None = None) -> Regression:
        """Learn from features (n, d), from the constant model whose probabilities are ``start`` (k,).

        ``rows``: a mask (n,) of those that ``loss`` wants scores of; all are used to standardize.
        """
        from scipy.optimize import minimize

        self._mean = x.mean(axis=0)
        spread = x.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        features = self._features(x if rows is None else x[rows])
        first = np.zeros((features.shape[1], self.labels))
        first[-1] = np.log(start)
        shape = (features.shape[1], 1 if self.labels == 2 else self.labels)

        def objective(flat: Array) -> tuple[float, Array]:
            weights = flat.reshape(shape)
            value, slope = loss(self._scores(features, weights))
            free = weights.copy()
            free[-1] = 0.0  # the constant is not penalized
            gradient = features.T @ slope[:, -shape[1] :] + self.penalty * free
            return value + self.penalty / 2 * float((free**2).sum()), gradient.ravel()

        with one_thread():
            begin = first[:, 1:] - first[:, :1] if self.labels == 2 else first
            found = minimize(
                objective, begin.ravel(), jac=True, method="L-BFGS-B",
                options={"maxiter": self.most, "gtol": TOLERANCE * len(features)},
            )  # fmt: skip
        self.weights, self.converged = found.x.reshape(shape), bool(found.success)
        return self

    def predict(self, x: Array) -> npt.NDArray[np.int64]:
        """Return for each row the class of the largest score, of equal ones the first."""
        return np.asarray(self._scores(self._features(x), self.weights).argmax(axis=1))

    def probabilities(self, x: Array) -> Array:
        """Return the probability of each class, (n, k)."""
        from scipy.special import softmax

        return np.asarray(softmax(self._scores(self._features(x), self.weights), axis=1))

    def _features(self, x: Array) -> Array:
        return np.concatenate([(x - self._mean) / self._scale, np.ones((len(x), 1))], axis=1)

    def _scores(self, features: Array, weights: Array) -> Array:
        scores = np.zeros((len(features), self.labels))
        scores[:, -weights.shape[1] :] = features @ weights
        return scores


def match(x: Array, told: Released, lie: Any = 0.0) -> Regression:
    """Return the logistic regression that matches labels, as ``Bags``, that are lies with probability ``lie``.

    x (n, d); the loss is ``forward``.  Raises InputError where nothing was released, and where a released label says
    nothing of the true one: ``lie`` not below (k - 1) / k.
    """
    labels = told.counts.shape[1]
    if not told.counts.sum() > 0:
        raise InputError("no label was released: there is nothing to learn from")
    if not 0 <= lie * labels < labels - 1:
        raise InputError(
            f"lie = {float(lie):.6g} of {labels} labels: what is released says nothing of the true label; "
            f"give a probability below {labels - 1}/{labels}"
        )
    law = channel(labels, float(lie))
    rows, kept = told.inside() if isinstance(told, Bags) else (None, told)
    shares = np.clip(undo(law, told.counts.sum(axis=0) / told.counts.sum()), 0.01, 0.99)
    return Regression(labels).fit(x, lambda scores: forward(scores, kept, law), shares / shares.sum(), rows)
