"""Train on what the learner received, and compare with the same model trained on the true labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.held_out_rows import HeldOutRows
from p2p_sim.learning.training.metrics import (
    Metrics,
    Predicted,
    constant,
    measure,
    of_classifier,
    shares,
)
from p2p_sim.learning.training.models import fitting, make
from p2p_sim.result_picture import Bar, bars
from p2p_sim.result_summary import Rows, Summary, counted

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Comparison(Summary):
    """Test accuracies (0 to 1) of a model trained on released labels, of one on true labels, of the majority class."""

    accuracy_private: float
    accuracy_true: float
    baseline: float  # always the majority class of the true training labels
    trained_on: int  # labels released, or what else
    of: int  # training users
    test_rows: int
    model: str
    note: str = ""  # what to know before reading the figures: a constant classifier, no convergence
    what: str = "labels"  # what was released
    accuracy_corrected: float | None = None  # of a model that knows how the labels came about
    correction: str = ""  # what it makes up for
    metrics: dict[str, Metrics] = field(
        default_factory=dict
    )  # further ones, by the field that has the accuracy

    def __repr__(self) -> str:
        return (
            f"<Comparison of {self.model}: {self.accuracy_private:.4f} on {self.what} released, "
            f"{self.accuracy_true:.4f} on true labels>"
        )

    def summary(self) -> tuple[str, Rows]:
        """Return what printing it and notebooks show: test accuracies of the models side by side."""
        rows = [(name, f"{100 * share:.2f} %") for name, share in self._shares()]
        size = [("trained on", f"{self.trained_on:,} {self.what} of {self.of:,} users")] if self.what else []
        note = [("note", self.note)] if self.note else []
        return f"Test accuracy of {self.model} on {counted(self.test_rows, 'row')}", [*rows, *size, *note]

    def picture(self) -> str:
        """Return a bar for each model."""
        return bars(
            "Test accuracy", [Bar(name, share, f"{100 * share:.2f} %") for name, share in self._shares()]
        )

    def _shares(self) -> list[tuple[str, float]]:
        found = [
            ("what was released", self.accuracy_private),
            ("the same, corrected", self.accuracy_corrected),
            ("true labels", self.accuracy_true),
            ("always the majority", self.baseline),
        ]
        return [(name, share) for name, share in found if share is not None and not math.isnan(share)]

    def with_notes(self, *notes: str) -> Comparison:
        """Return the comparison with further notes; empty ones are left out."""
        return replace(self, note="; ".join(filter(None, [self.note, *notes])))


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Further rows ``x`` (m, d) whose labels models predict, such as those of canaries.

    ``predicted``: by the models that are trained on what was released, by the field that has the accuracy.
    """

    x: Array
    predicted: dict[str, Predicted] = field(default_factory=dict)


def accuracy(y_test: Array, predicted: Predicted) -> float:
    """Return the share of test rows (m,) whose class is predicted."""
    return _share(predicted.y == y_test)


NAMES = {
    "accuracy_private": "the model trained on what was released",
    "accuracy_corrected": "the corrected model",
    "accuracy_true": "the model trained on the true labels",
}


def warned(found: Comparison) -> Comparison:
    """Add a note that names the models that are right on fewer test rows than the constant predictor."""
    worse = [
        f"{name} ({100 * share:.2f} %)"
        for key, name in NAMES.items()
        if (share := getattr(found, key)) is not None and share < found.baseline
    ]
    if not worse:
        return found
    constant_is_right = (
        f"always guessing the most frequent label is right more often ({100 * found.baseline:.2f} %) than"
    )
    return found.with_notes(f"{constant_is_right} {_listed(worse)}")


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def split(n: int, seed: int, test: float = 0.2) -> npt.NDArray[np.bool_]:
    """Return a mask (n,) of round(n * test) test rows, drawn by ``seed``.

    ``test``: share in (0, 1); ``seed``: below 2^64.  The test rows are those with the smallest random words of the
    engine (ties by index).  Raises InputError for a value out of range, and if either part would be empty.
    """
    return HeldOutRows(n, test, seed).mask(0, n)


def compare(
    x_train: Array,
    y_train: Array,
    x_test: Array,
    y_test: Array,
    sender: Array,
    y_released: Array,
    model: str = "logistic-regression",
    x_released: Array | None = None,
    queries: QueryRows | None = None,
) -> Comparison:
    """Train ``model`` on the released labels, and on the true labels of all users; measure both on test rows.

    ``x_*`` (n, d) and ``y_*`` (n,): features and labels of both parts.  ``sender`` (m,): rows of x_train;
    ``y_released`` (m,): the labels received from them; ``x_released`` (m, d): the features received with them, None:
    those of the senders.  ``queries``: what else the model of released labels predicts.  Labels of one class, or none,
    give a constant classifier; ``note`` says so, and if a model did not converge.  Raises InputError for shapes that do
    not match, a sender out of range, or a model that cannot be trained.
    """
    _check(x_train, y_train, x_test, y_test, sender, y_released)
    if x_released is not None and x_released.shape != (len(sender), x_train.shape[1]):
        raise InputError(
            f"x_released has shape {x_released.shape}; give {(len(sender), x_train.shape[1])}, one row a released label"
        )
    classes = 1 + max(1, *(int(y.max()) for y in (y_train, y_test, y_released) if len(y)))
    majority = constant(_majority(y_train), shares(y_train, classes), len(y_test))
    notes = list[str]()
    shown = x_train[sender] if x_released is None else x_released
    released = _predicted_with_queries(queries, shown, y_released, x_test, model, majority, notes)
    true = _fit_predict(x_train, y_train, x_test, model, majority, "true", notes)
    predicted = {"accuracy_private": released, "accuracy_true": true, "baseline": majority}
    return Comparison(
        accuracy_private=accuracy(y_test, released),
        accuracy_true=accuracy(y_test, true),
        baseline=accuracy(y_test, majority),
        metrics={name: measure(y_test, each) for name, each in predicted.items()},
        trained_on=len(sender),
        of=len(y_train),
        test_rows=len(y_test),
        model=model,
        note="; ".join(notes),
    )


def _predicted_with_queries(
    queries: QueryRows | None,
    x: Array,
    y: Array,
    x_test: Array,
    model: str,
    majority: Predicted,
    notes: list[str],
) -> Predicted:
    """Train on released labels and predict the test rows, and the queries."""
    if queries is None:
        return _fit_predict(x, y, x_test, model, majority, "released", notes)
    rows = np.concatenate([x_test, queries.x])
    found = _fit_predict(x, y, rows, model, majority.repeated(len(rows)), "released", notes)
    found, queries.predicted["accuracy_private"] = found.parted(len(x_test))
    return found


def _fit_predict(
    x: Array, y: Array, x_test: Array, model: str, majority: Predicted, which: str, notes: list[str]
) -> Predicted:
    """Train and predict the test rows; a failure to converge becomes a note, other warnings go to the caller.

    ``majority``: what to predict without labels.
    """
    classifier = make(model)
    if len(np.unique(y)) < 2:
        counts = np.bincount(y.astype(np.int64), minlength=_classes(majority))
        note, predicted = of_one_class(counts, majority.repeated(len(x_test)), which)
        notes.append(note)
        return predicted
    with fitting(model, f"the {which} labels", notes):
        return of_classifier(classifier.fit(x, y), x_test, _classes(majority))


def of_one_class(counts: Array, majority: Predicted, which: str) -> tuple[str, Predicted]:
    """Return what labels predict that are all alike, or none, and a note of it.

    ``counts`` (k,): how many labels of each value; ``majority``: what is predicted without labels.
    """
    total = int(counts.sum())
    only = majority.y.dtype.type(counts.argmax()) if total else majority.y[0]
    text = f"{'one class' if total else 'no label'} among the {which} labels: a constant classifier, {only}"
    if not total:
        return f"{text}, the majority of the true ones", majority
    return text, constant(only, counts / total, len(majority.y))


def _classes(predicted: Predicted) -> int:
    assert predicted.probabilities is not None
    return int(predicted.probabilities.shape[1])


def _check(
    x_train: Array, y_train: Array, x_test: Array, y_test: Array, sender: Array, y_released: Array
) -> None:
    for name, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if x.ndim != 2 or y.shape != x.shape[:1] or not len(y):
            raise InputError(
                f"x_{name} has shape {x.shape}, y_{name} {y.shape}; give (n, d) and (n,) with n at least 1"
            )
    if x_train.shape[1] != x_test.shape[1]:
        raise InputError(
            f"x_train has {x_train.shape[1]} features, x_test {x_test.shape[1]}; they must be the same"
        )
    if sender.ndim != 1 or sender.shape != y_released.shape:
        raise InputError(
            f"sender has shape {sender.shape}, y_released {y_released.shape}; give one label a sender"
        )
    if len(sender) and (sender.dtype.kind not in "iu" or sender.min() < 0 or sender.max() >= len(y_train)):
        raise InputError(
            f"sender is {sender.dtype} from {sender.min()} to {sender.max()}; give rows of x_train, whole "
            f"numbers from 0 to {len(y_train) - 1}"
        )


def _majority(y: Array) -> Any:
    values, counts = np.unique(y, return_counts=True)
    return values[int(np.argmax(counts))]


def _share(hits: Array) -> float:
    return float(np.count_nonzero(hits) / hits.size)
