"""Metrics beside accuracy: balanced accuracy and recalls, area under the ROC curve, log loss, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

Metrics = dict[str, float | list[float | None] | None]
"""``balanced_accuracy``, ``rarest_recall``, ``recall`` (by class), ``auc``, ``average_precision``, ``log_loss`` (nats),
``calibration_error``; None where a metric is not defined."""

BINS = 15
"""How many bins of equal width the calibration error has."""


@dataclass(frozen=True)
class Predicted:
    """What a model says of m test rows: ``y`` (m,), the class of each.

    ``probabilities`` (m, k): of the classes 0 to k - 1; None for a model that gives none.  ``scores`` (m, k): what
    rows are ranked by for each class; None: the probabilities.
    """

    y: Array
    probabilities: Array | None
    scores: Array | None = None

    def parted(self, first: int) -> tuple[Predicted, Predicted]:
        """Return what is said of the first rows, and of the others."""
        ends = slice(first), slice(first, None)
        one, other = (
            Predicted(
                self.y[rows],
                *(None if each is None else each[rows] for each in (self.probabilities, self.scores)),
            )
            for rows in ends
        )
        return one, other

    def repeated(self, rows: int) -> Predicted:
        """Return the same of so many rows, of a predictor that says the same of all, with probabilities."""
        assert self.probabilities is not None
        return constant(self.y[0], self.probabilities[0], rows)


def constant(y: Any, shares: Array, rows: int) -> Predicted:
    """Return the class ``y`` and the class ``shares`` (k,) for each of so many rows."""
    return Predicted(np.full(rows, y), np.tile(shares, (rows, 1)))


def shares(y: Array, classes: int) -> Array:
    """Return the share of each of the labels 0 to ``classes`` - 1 among ``y`` (n,), n at least 1."""
    return np.bincount(y.astype(np.int64), minlength=classes) / len(y)


def of_classifier(classifier: Any, x: Array, classes: int) -> Predicted:
    """Return what a fitted scikit-learn classifier says of the rows x (m, d); classes that it has not seen get 0.

    A classifier without probabilities ranks rows by its decision function.
    """
    y, seen = classifier.predict(x), classifier.classes_.astype(np.int64)
    if hasattr(classifier, "predict_proba"):
        return Predicted(y, _in_columns(classifier.predict_proba(x), seen, classes, 0.0))
    if not hasattr(classifier, "decision_function"):
        return Predicted(y, None)
    scores = np.asarray(classifier.decision_function(x), np.float64)
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    return Predicted(
        y, None, _in_columns(scores, seen, classes, -np.inf) if scores.shape[1] == len(seen) else None
    )


def measure(y_test: Array, predicted: Predicted) -> Metrics:
    """Return the metrics of predictions on test rows with labels ``y_test`` (m,), m at least 1.

    Balanced accuracy is the mean over the classes of the test rows of the share of their rows that is right.  The area
    under the ROC curve is that of 1 for two classes, and otherwise the mean over the classes that only some test rows
    have of each against the rest.  Average precision is the same mean of the sum over thresholds of precision times
    what recall gains there; a guess at random has the share of the class.  Log loss is the mean of -ln p of the true
    class, p at least 2.2e-16.  Recall is the share of a class's test rows that is right; the rarest class is the one
    with the fewest test rows, of several the first.  The expected calibration error is the mean over rows of |share of
    right rows - mean probability| of the rows whose most likely class has a probability in the same of 15 bins.

    *Source:* Guo et al. 2017 (expected calibration error).
    """
    from sklearn.metrics import log_loss, recall_score

    y, found = y_test.astype(np.int64), np.asarray(predicted.y).astype(np.int64)
    values, counts = np.unique(y, return_counts=True)
    recalls = recall_score(y, found, labels=values, average=None, zero_division=0)
    each: list[float | None] = [None] * (1 + int(values[-1]))
    for value, recall in zip(values, recalls, strict=True):
        each[value] = float(recall)
    p, loss, off = predicted.probabilities, None, None
    if p is not None and np.isfinite(p).all() and p.any(axis=1).all():
        exact = p.astype(np.float64)  # those in float32 add up to almost 1
        exact = exact / exact.sum(axis=1, keepdims=True)
        loss = float(log_loss(y, exact, labels=np.arange(p.shape[1])))
        off = calibration_error(exact, y)
    return {
        "balanced_accuracy": float(recalls.mean()), "rarest_recall": float(recalls[counts.argmin()]), "recall": each,
        **_ranked(y, predicted), "log_loss": loss, "calibration_error": off,
    }  # fmt: skip


def calibration_error(probabilities: Array, y: Array) -> float:
    """Return the expected calibration error, in [0, 1], of probabilities (m, k) for the true classes y (m,)."""
    best = probabilities.argmax(axis=1)
    sure = probabilities[np.arange(len(y)), best]
    of = np.minimum((sure * BINS).astype(np.int64), BINS - 1)
    off = np.bincount(of, weights=(best == y) - sure, minlength=BINS)
    return float(np.abs(off).sum() / len(y))


def _ranked(y: Array, predicted: Predicted) -> dict[str, float | None]:
    """Return what the order of the rows is worth: area under the ROC curve, and average precision."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    scores = predicted.probabilities if predicted.scores is None else predicted.scores
    if scores is None or np.isnan(scores).any():
        return {"auc": None, "average_precision": None}
    lowest = np.finfo(
        np.float64
    ).min  # of a class that the model has not seen; scikit-learn takes no infinity
    bounded = np.maximum(scores, lowest)
    known = [c for c in np.unique(y) if not (y == c).all()]
    known = known[1:] if scores.shape[1] == 2 else known
    found: dict[str, float | None] = {}
    for name, score in (("auc", roc_auc_score), ("average_precision", average_precision_score)):
        each = [score(y == c, bounded[:, c]) for c in known]
        found[name] = float(np.mean(each)) if each else None
    return found


def _in_columns(values: Array, seen: Array, classes: int, other: float) -> Array:
    """Return values of the classes ``seen`` as columns of all classes."""
    every = np.full((len(values), classes), other)
    every[:, seen] = values
    return every
