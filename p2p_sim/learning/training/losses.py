"""Losses for randomized labels and for label proportions of bags, and logistic regression with these losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.metrics import Predicted
from p2p_sim.learning.training.models import one_thread

Array = npt.NDArray[Any]

LEAST = 1e-9  # probabilities of what was released are kept this far from 0


class Released(Protocol):
    """Released labels in groups; for each group it is known whose labels they may be.

    ``counts`` (b, k): labels of each group by value, at least 0; may be fractions.
    """

    @property
    def counts(self) -> Array:
        """Return the counts."""

    def mean(self, single: Array) -> Array:
        """Return the mean (b, k) of values (n, k) of users, over the users whose label one of the group may be."""

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``: (n, k) from (b, k)."""


@dataclass(frozen=True)
class Bags:
    """Labels known by bag: ``bag`` (n,): each user's row in ``counts``, -1 for none; ``counts`` (b, k).

    Each label is equally likely to be that of any user of its bag.  A label whose user is known is a bag of one user.
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
        """Return a mask of the users who are in a bag, and the bags over these users only."""
        some = self.bag >= 0
        return some, replace(self, bag=self.bag[some])

    @property
    def _members(self) -> Array:
        return np.maximum(np.bincount(self.bag, minlength=len(self.counts)), 1)[:, None]


def channel(labels: int, lie: float) -> Array:
    """Return the law of randomized response (k, k): entry [j, y] is the probability that label y is released as j.

    ``lie``: the probability, in [0, 1], that the label is replaced by one of the others, uniformly.
    """
    law = np.full((labels, labels), lie / (labels - 1))
    np.fill_diagonal(law, 1 - lie)
    return law


def undo(law: Array, shares: Array) -> Array:
    """Return the unbiased estimate (..., k) of true label shares from released ``shares``; may lie outside [0, 1].

    ``law``: a ``channel``, which is a mixture of the truth and a uniform label.
    """
    return np.asarray((shares - law[0, 1]) / (law[0, 0] - law[0, 1]))


def forward(scores: Array, released: Released, law: Array) -> tuple[float, Array]:
    """Return the forward-corrected cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    The softmax predictions, averaged over the users whose label it may be, are multiplied by ``law`` (k, k) and
    compared with the released labels: -sum counts log(law mean).  For bags of one user this is the likelihood of
    randomized response: for binary labels P(released 1 | x) = (1 - 2 lie) sigma(score) + lie.  Without lies it is
    proportion matching.  The expected loss is minimal at the true probabilities.  It is convex if there are no lies and
    all bags have one user, otherwise not; but no label costs more than log(1 / least entry of law), so labels that
    noise made implausible do not dominate.  The unbiased ``backward`` loss is convex, and trains worse: see
    docs/experiments.md.

    *Source:* Patrini et al. 2017 (forward correction); Unified 2023, section 2 (PROPMATCH).
    *Assumes:* lies are uniform and independent; a label is that of a random one of whose it may be.
    """
    from scipy.special import softmax

    probabilities = softmax(scores, axis=1)
    predicted = np.maximum(released.mean(probabilities) @ law.T, LEAST)
    loss = -float((released.counts * np.log(predicted)).sum())
    slope = released.back(-(released.counts / predicted) @ law)
    return loss, probabilities * (slope - (probabilities * slope).sum(axis=1, keepdims=True))


def backward(scores: Array, released: Array, law: Array) -> tuple[float, Array]:
    """Return the unbiased cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    Each released label (n,) is replaced by the unbiased shares of ``undo``, which lie outside [0, 1], so that the
    expected loss equals that of the true labels for all scores.  Convex in the scores, but unbounded below.

    *Source:* Natarajan et al. 2013; Clustering 2022, Algorithm 1; Release 2023, appendix G.
    """
    from scipy.special import logsumexp

    shares = undo(law, np.eye(len(law))[released])
    total = logsumexp(scores, axis=1)
    return float(total.sum() - (shares * scores).sum()), np.exp(scores - total[:, None]) - shares


Loss = Callable[[Array], tuple[float, Array]]
"""From scores (n, k) to the loss and its gradient (n, k)."""

PENALTY = 1.0
"""Weight of half the squared weights, as in scikit-learn's logistic regression with C = 1."""

TOLERANCE = 1e-4
"""Stops when no entry of the gradient, divided by the number of rows, is larger; as in scikit-learn."""


class Regression:
    """A logistic regression of ``labels`` classes: one column of weights for two classes, otherwise one a class.

    Minimizes, by L-BFGS, a loss plus half the squared weights without the intercept.
    """

    def __init__(self, labels: int = 2, penalty: float = PENALTY, max_iterations: int = 500):
        self.labels, self.penalty, self.max_iterations = labels, penalty, max_iterations
        self.weights: Array
        self.converged = True

    def fit(
        self, x: Array, loss: Loss, start: Array, rows: Array | None = None, weight: float = 1.0
    ) -> Regression:
        """Fit to features (n, d), starting from the constant model with probabilities ``start`` (k,).

        ``rows``: a mask (n,) of the rows that ``loss`` takes scores of; all rows are used to standardize.  ``weight``:
        the mean weight of a label in ``loss``; the tolerance is as much smaller as the loss is.
        """
        from scipy.optimize import minimize

        begin = self.constant(x, start).weights
        features = self._features(x if rows is None else x[rows])
        shape = begin.shape

        def objective(flat: Array) -> tuple[float, Array]:
            weights = flat.reshape(shape)
            value, slope = loss(self._scores(features, weights))
            free = weights.copy()
            free[-1] = 0.0  # the constant is not penalized
            gradient = features.T @ slope[:, -shape[1] :] + self.penalty * free
            return value + self.penalty / 2 * float((free**2).sum()), gradient.ravel()

        with one_thread():
            found = minimize(
                objective, begin.ravel(), jac=True, method="L-BFGS-B",
                options={"maxiter": self.max_iterations, "gtol": TOLERANCE * weight * len(features)},
            )  # fmt: skip
        self.weights, self.converged = found.x.reshape(shape), bool(found.success)
        return self

    def constant(self, x: Array, probabilities: Array) -> Regression:
        """Become the constant model with ``probabilities`` (k,), of features such as x (n, d)."""
        self._mean = x.mean(axis=0)
        spread = x.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        first = np.zeros((x.shape[1] + 1, self.labels))
        first[-1] = np.log(probabilities)
        self.weights = first[:, 1:] - first[:, :1] if self.labels == 2 else first
        return self

    def predict(self, x: Array) -> npt.NDArray[np.int64]:
        """Return for each row the class with the largest score; ties go to the first."""
        return np.asarray(self._scores(self._features(x), self.weights).argmax(axis=1))

    def probabilities(self, x: Array) -> Array:
        """Return the probability of each class, (n, k)."""
        from scipy.special import softmax

        return np.asarray(softmax(self._scores(self._features(x), self.weights), axis=1))

    def predicted(self, x: Array) -> Predicted:
        """Return the classes and the probabilities."""
        return Predicted(self.predict(x), self.probabilities(x))

    def _features(self, x: Array) -> Array:
        return np.concatenate([(x - self._mean) / self._scale, np.ones((len(x), 1))], axis=1)

    def _scores(self, features: Array, weights: Array) -> Array:
        scores = np.zeros((len(features), self.labels))
        scores[:, -weights.shape[1] :] = features @ weights
        return scores


def starting_shares(released: Released, lie: float, weights: Array | None = None) -> Array:
    """Return the probabilities (k,) of the constant model: the released shares, noise undone, none below about 0.01.

    ``weights`` (b,): of the labels of each group; None: 1.
    """
    counts = released.counts if weights is None else released.counts * weights[:, None]
    shares = np.clip(undo(channel(counts.shape[1], lie), counts.sum(axis=0) / counts.sum()), 0.01, 0.99)
    return np.asarray(shares / shares.sum())


def match(x: Array, released: Released, lie: Any = 0.0, weights: Array | None = None) -> Regression:
    """Return the logistic regression fitted to released labels, which are lies with probability ``lie``.

    x (n, d); the loss is ``forward``.  ``weights`` (b,): of the labels of each group, in (0, 1]; None: 1.  Raises
    InputError if no label was released, and if a released label says nothing about the true one: ``lie`` not below
    (k - 1) / k.
    """
    labels = released.counts.shape[1]
    if not released.counts.sum() > 0:
        raise InputError("no label was released, so there is nothing to learn from")
    if not 0 <= lie * labels < labels - 1:
        raise InputError(
            f"lie = {float(lie):.6g} of {labels} labels: a released label says nothing about the true one; "
            f"give a probability below {labels - 1}/{labels}"
        )
    law = channel(labels, float(lie))
    rows, inside = released.inside() if isinstance(released, Bags) else (None, released)
    weight = 1.0
    if weights is not None:
        inside = replace(inside, counts=released.counts * weights[:, None])  # type: ignore[type-var]
        weight = float(inside.counts.sum() / released.counts.sum())
    begin = starting_shares(released, float(lie), weights)
    return Regression(labels).fit(x, lambda scores: forward(scores, inside, law), begin, rows, weight)
