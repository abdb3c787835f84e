"""Models that learn in batches: one batch of rows is in memory at a time, and a pass reads them all, in order.

Batches are cut by numbers of rows and borders of clusters alone, and come in the order of rows: so what is learnt
depends on nothing else.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.stored_examples import rows_at_once
from p2p_sim.learning.training import models
from p2p_sim.learning.training.losses import (
    LEAST,
    TOLERANCE,
    Bags,
    Loss,
    Penalty,
    Regression,
    forward,
    penalty_of,
    softmax,
    start_of,
    starting_shares,
    through_softmax,
)
from p2p_sim.learning.training.metrics import Predicted, of_classifier
from p2p_sim.learning.training.weighted_regression import cross_entropy

Array = npt.NDArray[Any]

BATCH = 1 << 16
"""Rows of a batch, at most: of wide ones fewer."""


class Examples(typing.Protocol):
    """Rows of features and labels that are read in batches."""

    @property
    def users(self) -> int:
        """How many rows there are."""

    @property
    def labels(self) -> int:
        """How many label values there can be."""

    @property
    def width(self) -> int:
        """How many features there are."""

    def batches(self, edges: list[int]) -> Iterator[tuple[Array, Array]]:
        """Return features (n, d) and labels (n,) of the rows between neighbouring edges, from 0 to all."""


Labelled = Callable[[], Iterator[tuple[Array, Array]]]
"""A pass: batches of features (n, d), with how many labels of each value every row has (n, k)."""


def edges(examples: Examples) -> list[int]:
    """Return where batches begin, and the end of the last."""
    return [*range(0, examples.users, _batch(examples)), examples.users]


def _batch(examples: Examples) -> int:
    return min(BATCH, rows_at_once(examples.width))


@dataclass
class Moments:
    """What is known of features after a pass: sum of weights, means, sums of squares around them, extreme values."""

    weight: float = 0.0
    mean: Array = field(default_factory=lambda: np.zeros(1))
    squares: Array = field(default_factory=lambda: np.zeros(1))
    least: Array | float = np.inf
    most: Array | float = -np.inf

    def add(self, x: Array, weights: Array | None = None) -> None:
        """Add rows x (n, d) with weights (n,) of at least 0; None: 1.

        *Source:* Chan, Golub, LeVeque 1979 (the pairwise update of means and sums of squares).
        """
        if weights is not None:
            x, weights = x[weights > 0], weights[weights > 0]
        if not len(x):
            return
        ones = np.ones(len(x)) if weights is None else weights
        here = float(ones.sum())
        mean = ones @ x / here
        away, total = mean - self.mean, self.weight + here
        self.squares = self.squares + ones @ (x - mean) ** 2 + away**2 * (self.weight * here / total)
        self.mean, self.weight = self.mean + away * (here / total), total
        self.least, self.most = np.minimum(self.least, x.min(axis=0)), np.maximum(self.most, x.max(axis=0))

    @property
    def scale(self) -> Array:
        """Standard deviations; 1 of a feature that never changes, or by so little that none is above 0."""
        spread = np.sqrt(self.squares / max(self.weight, 1.0))
        return np.where(self._varying & (spread > 0), spread, 1.0)

    @property
    def features(self) -> int:
        """How many features are not the same in all rows."""
        return int(self._varying.sum())

    @property
    def _varying(self) -> npt.NDArray[np.bool_]:
        return np.atleast_1d(np.less(self.least, self.most))


@dataclass(frozen=True)
class FirstPass:
    """What one pass finds: ``counts`` (k,), how many labels there are of each value, and moments of their features."""

    counts: Array
    moments: Moments

    @classmethod
    def over(cls, labelled: Labelled, labels: int) -> FirstPass:
        """Go through all batches."""
        counts, moments = np.zeros(labels, np.int64), Moments()
        for x, each in labelled():
            counts += each.sum(axis=0)
            moments.add(x, each.sum(axis=1).astype(np.float64))
        return cls(counts, moments)

    @property
    def present(self) -> Array:
        """The values that occur, ascending."""
        return np.flatnonzero(self.counts)


class Trained(typing.Protocol):
    """A trained model; ``converged``: whether it reached what it was to minimize."""

    @property
    def converged(self) -> bool:
        """Return whether it converged."""

    def predicted(self, x: Array) -> Predicted:
        """Return what it says of the rows x (m, d)."""


@dataclass(frozen=True)
class _Logistic:
    """A regression between the values that occurred, of ``classes`` in all."""

    regression: Regression
    present: Array
    classes: int

    @property
    def converged(self) -> bool:
        return self.regression.converged

    def predicted(self, x: Array) -> Predicted:
        predicted = self.regression.predicted(x)
        assert predicted.probabilities is not None
        probabilities = np.zeros((len(x), self.classes))
        probabilities[:, self.present] = predicted.probabilities
        return Predicted(self.present[predicted.y], probabilities)


@dataclass(frozen=True)
class _Classifier:
    """A scikit-learn classifier of scaled features."""

    classifier: Any
    moments: Moments
    classes: int
    converged: bool = True

    def predicted(self, x: Array) -> Predicted:
        return of_classifier(self.classifier, (x - self.moments.mean) / self.moments.scale, self.classes)


def learns_in_batches(model: str) -> bool:
    """Return whether a model learns in batches."""
    classifier = models.make(model)[-1]
    return _is_logistic(classifier) or hasattr(classifier, "partial_fit")


def check(model: str) -> None:
    """Raise InputError unless a model learns in batches."""
    if not learns_in_batches(model):
        raise InputError(
            f"model {model!r} needs all rows in memory, and users in Parquet files are read in batches: choose "
            "logistic-regression, or one with partial_fit, such as sgd, perceptron or gaussian-nb"
        )


def train(
    model: str, labelled: Labelled, first_pass: FirstPass, classes: int, tolerance: float = TOLERANCE
) -> Trained:
    """Train a model on labels of at least two values.

    The logistic regression is scikit-learn's: its minimum is found by L-BFGS, one pass an evaluation.  Other models
    learn by ``partial_fit``, a batch after the other, once.  Features are standardized by the rows with labels, as
    often as they have some.  ``tolerance``: of the mean gradient.
    Raises InputError for a model that does not learn in batches, or fails.
    """
    classifier = models.make(model)[-1]
    if _is_logistic(classifier):
        return _logistic(labelled, first_pass, classes, tolerance)
    check(model)
    try:
        with models.one_thread():
            for x, counts in labelled():
                rows, values = np.nonzero(counts)
                often = counts[rows, values]
                scaled = (x[np.repeat(rows, often)] - first_pass.moments.mean) / first_pass.moments.scale
                if len(scaled):
                    classifier.partial_fit(scaled, np.repeat(values, often), classes=first_pass.present)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"model {model!r} cannot learn from these labels in batches: {error}; choose another"
        ) from error
    return _Classifier(classifier, first_pass.moments, classes)


def _is_logistic(classifier: Any) -> bool:
    from sklearn.linear_model import LogisticRegression

    return type(classifier) is LogisticRegression


def _logistic(labelled: Labelled, first_pass: FirstPass, classes: int, tolerance: float) -> _Logistic:
    present = first_pass.present
    shares = first_pass.counts[present] / first_pass.counts.sum()
    model = Regression(len(present)).scaled(first_pass.moments.mean, first_pass.moments.scale, shares)

    def parts(_: Array) -> Iterator[tuple[Array, Loss]]:
        for x, counts in labelled():
            some = counts.any(axis=1)
            yield model.features(x[some]), partial(_of_counts, counts=counts[some][:, present])

    model.descend(parts, model.weights, tolerance * float(first_pass.counts.sum()))
    return _Logistic(model, present, classes)


def _of_counts(scores: Array, counts: Array) -> tuple[float, Array]:
    """Return the cross-entropy of labels (n, k) and its gradient by scores (n, k), of two classes (n, 1)."""
    by_class = scores.T[-1:] if scores.shape[1] == 2 else scores.T
    value, gradient = cross_entropy(by_class.copy(), counts.T.astype(np.float64))
    return value, gradient.T


def corrected(
    labelled: Labelled, law: Array, first_pass: FirstPass, everybody: Moments, tolerance: float = TOLERANCE
) -> Regression:
    """Return the regression corrected for the noise of labels of known users; see ``losses.match``.

    ``everybody``: moments of the features of all users, by which they are standardized; ``first_pass``: over labels.
    """
    counts = first_pass.counts[None].astype(np.float64)
    begin = start_of(Bags(np.zeros(1, np.int64), counts), law)
    penalty = penalty_of(law, everybody.features)
    model = Regression(len(law), penalty).scaled(everybody.mean, everybody.scale, begin)

    def parts(_: Array) -> Iterator[tuple[Array, Loss]]:
        for x, each in labelled():
            some = each.any(axis=1)
            bags = Bags(np.arange(int(some.sum())), each[some])
            yield model.features(x[some]), partial(forward, released=bags, law=law)

    return model.descend(parts, model.weights, tolerance * everybody.weight)


@dataclass(frozen=True)
class BagsInBatches:
    """Labels known by cluster, of users who are read in batches, cluster by cluster.

    ``starts`` (b + 1,): where each cluster begins; ``counts`` (b, k): its labels; ``moments``: of all features.
    Batches are of whole clusters; where one has more rows than a batch, an evaluation takes two passes.
    """

    examples: Examples
    starts: Array
    counts: Array
    moments: Moments
    tolerance: float = TOLERANCE

    @property
    def alone(self) -> bool:
        """Whether all clusters have one user."""
        return int(self._sizes.max()) == 1

    def match(self, law: Array, weights: Array | None = None, penalty: float | None = None) -> Regression:
        """Return the model fitted to the labels; ``weights`` (b,): of those of each cluster; see ``losses.match``."""
        begin = start_of(Bags(np.zeros(1, np.int64), self.counts), law, weights)
        chosen = penalty_of(law, self.moments.features) if penalty is None else Penalty(penalty)
        model = Regression(len(law), chosen).scaled(self.moments.mean, self.moments.scale, begin)
        counts = self.counts if weights is None else self.counts * weights[:, None]
        mean_weight = float(counts.sum() / self.counts.sum())
        whole = int(self._sizes.max()) <= _batch(self.examples)
        parts = partial(self._whole if whole else self._split, model, counts, law)
        return model.descend(parts, model.weights, self.tolerance * mean_weight * self.examples.users)

    def constant(self, law: Array, weights: Array | None = None) -> Regression:
        """Return the constant model of the released shares, noise undone."""
        shares = starting_shares(Bags(np.zeros(1, np.int64), self.counts), law, weights)
        return Regression(self.counts.shape[1]).scaled(self.moments.mean, self.moments.scale, shares)

    def means(self, model: Regression) -> Array:
        """Return the mean (b, k) of a model's probabilities in each cluster."""
        return self._means(model.probabilities, self.counts.shape[1])

    def rank(self) -> int:
        """Return how many weights of a class the mean features of clusters with labels can tell apart."""
        model = self.constant(np.eye(self.counts.shape[1]))
        means = self._means(model.features, len(self.moments.mean) + 1)
        return int(np.linalg.matrix_rank(means[self.counts.sum(axis=1) > 0]))

    @property
    def _sizes(self) -> Array:
        return np.diff(self.starts)

    def _edges(self) -> list[int]:
        """Return where batches begin: where clusters do, unless one is larger than a batch."""
        found, most = [0], _batch(self.examples)
        while found[-1] < self.examples.users:
            end = int(self.starts[np.searchsorted(self.starts, found[-1] + most, side="right") - 1])
            found.append(end if end > found[-1] else min(found[-1] + most, self.examples.users))
        return found

    def _batches(self) -> Iterator[tuple[Array, int, Array]]:
        """Return features, the number of the first cluster, and the cluster of each row, counted from that one."""
        cuts = self._edges()
        for low, high, (x, _) in zip(cuts, cuts[1:], self.examples.batches(cuts), strict=False):
            first = int(np.searchsorted(self.starts, low, side="right")) - 1
            end = int(np.searchsorted(self.starts, high, side="left"))
            rows = np.diff(np.clip(self.starts[first : end + 1], low, high))
            yield x, first, np.repeat(np.arange(end - first), rows)

    def _means(self, values: Callable[[Array], Array], width: int) -> Array:
        """Return the mean (b, width) of values of features in each cluster."""
        sums = np.zeros((len(self.counts), width))
        for x, first, cluster in self._batches():
            for column, each in enumerate(values(x).T):
                here = np.bincount(cluster, weights=each)
                sums[first : first + len(here), column] += here
        return sums / self._sizes[:, None]

    def _whole(self, model: Regression, counts: Array, law: Array, _: Array) -> Iterator[tuple[Array, Loss]]:
        """Return batches of whole clusters, and their losses."""
        for x, first, cluster in self._batches():
            bags = Bags(cluster, counts[first : first + int(cluster[-1]) + 1])
            yield model.features(x), partial(forward, released=bags, law=law)

    def _split(
        self, model: Regression, counts: Array, law: Array, weights: Array
    ) -> Iterable[tuple[Array, Loss]]:
        """Return batches that cut clusters, whose means are found by a pass of their own; see ``losses.forward``."""

        def probabilities(x: Array) -> Array:
            return softmax(model.scores(model.features(x), weights))

        predicted = np.maximum(self._means(probabilities, counts.shape[1]) @ law.T, LEAST)
        losses = -(counts * np.log(predicted)).sum(axis=1)
        slopes = -(counts / predicted) @ law / self._sizes[:, None]
        seen = 0
        for x, first, cluster in self._batches():
            end = first + int(cluster[-1]) + 1
            value, seen = float(losses[seen:end].sum()), end
            yield model.features(x), partial(_by_slopes, value=value, slopes=slopes[first + cluster])


def _by_slopes(scores: Array, value: float, slopes: Array) -> tuple[float, Array]:
    """Return a loss that is known, and its gradient (n, k) by that with respect to probabilities (n, k)."""
    return value, through_softmax(softmax(scores), slopes)
