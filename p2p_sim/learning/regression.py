"""Logistic regression under any loss of its scores: standardized features, a penalty, L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.losses import Bags, Released, channel, forward, undo
from p2p_sim.learning.threads import one_thread

Array = npt.NDArray[Any]
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
