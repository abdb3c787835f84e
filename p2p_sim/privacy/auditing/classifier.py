"""An attack on views without a law: a score learned on one half of the worlds, counted on the other.

Several ways to learn a score stand by, since none finds everything: a logistic regression over what differs beyond
doubt (faint shifts; products of two columns), the same over all columns, a table of distinct rows, of the columns
with few values (any dependence), boosted trees (the rest).  A quarter of the training half, held back, decides; the
simpler one if in doubt.  Whatever is learned, the count on the other half is valid.
Source: Jagielski et al. 2020, Auditing differentially private machine learning; Nasr et al. 2021.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import random_words
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing.features import common, features

__all__ = ["Scorer", "common", "features", "fit", "thresholds"]

Array = npt.NDArray[Any]
Model = Callable[[Array], Array]
Learner = Callable[[Array, Array], Model]

_ROWS = 1024  # distinct rows of a table, at most
_PEEK = 8192  # rows, at most, in which distinct ones are counted
_PRIORS = (0.5, 10.0, 100.0)  # imagined rows of each world in every cell of the table
_PAIRS = 16  # products of columns
_PAIRED = 256  # columns that products are made of: the first ones
_BETTER = 2.0  # standard errors by which a way of learning must be better than a simpler one
_FAR = 6.0  # standard deviations beyond which a value is cut
_MOST = 200_000  # rows a world that learning looks at
_LEAST_HITS = 20
THRESHOLDS = 8
"""Events of each direction that are counted, at most."""
_NO = np.zeros(0, np.int64)
_LARGE = 2.0**62  # whole numbers up to here are hashed as they are


@dataclass(frozen=True)
class Scorer:
    """A learned score, larger where world b is likelier: a log likelihood ratio as far as it was learned.

    ``columns``: of the features, those it looks at.  ``name``: how it was learned.
    """

    name: str
    columns: Array
    width: int
    model: Model

    def scores(self, features: Array) -> npt.NDArray[np.float64]:
        """Return a score for each row; raises InputError for another number of columns than learned from."""
        if features.ndim != 2 or features.shape[1] != self.width:
            raise InputError(f"features of shape {features.shape}; learned from {self.width} columns")
        with _one_thread():
            return np.asarray(self.model(np.asarray(features, np.float64)[:, self.columns]), np.float64)


def fit(train_a: Array, train_b: Array, *, quick: bool = False) -> Scorer:
    """Learn to tell world b from world a; the same result for the same tables, however many threads there are.

    ``train_a``, ``train_b``: float tables (worlds, f).  ``quick``: without trees, which take longest.

    Raises InputError for unequal columns or no worlds.
    """
    if train_a.ndim != 2 or train_b.ndim != 2 or train_a.shape[1] != train_b.shape[1]:
        raise InputError(f"tables of shapes {train_a.shape} and {train_b.shape}; needed: the same columns")
    if not len(train_a) or not len(train_b):
        raise InputError(
            f"worlds to learn from: {len(train_a)} and {len(train_b)}; at least 1 is needed of each"
        )
    a, b = np.asarray(train_a[:_MOST], np.float64), np.asarray(train_b[:_MOST], np.float64)
    columns = _informative_columns(np.concatenate([a, b]))
    a, b = a[:, columns], b[:, columns]
    if not len(columns) or min(len(a), len(b)) < 8:
        return Scorer("constant", columns, train_a.shape[1], _nothing)
    with _one_thread():
        name, learner = _best(a, b, quick)
        return Scorer(name, columns, train_a.shape[1], learner(a, b))


def thresholds(scores_a: Array, scores_b: Array, count: int = THRESHOLDS) -> tuple[Array, Array]:
    """Return thresholds of "score >= t" and of "score <= t" from the training half's scores, ``count`` each or fewer.

    One where the worlds differ most, the others from a score that few rows reach, some 20, to one that half
    of them do.
    """
    return _cuts(scores_b, scores_a, count), -_cuts(-scores_a, -scores_b, count)


def _cuts(scores: Array, other: Array, count: int) -> Array:
    falling = np.sort(scores)[::-1]
    few = min(_LEAST_HITS, len(falling))
    reached = np.geomspace(few, max(few, len(falling) / 2), max(0, count - 1)).astype(np.int64)
    values = np.unique(falling)
    gap = np.searchsorted(np.sort(other), values, "left") / len(other) - np.searchsorted(
        falling[::-1], values, "left"
    ) / len(falling)
    return np.unique(np.append(falling[reached - 1], values[np.argmax(gap)]))


def _one_thread() -> Any:
    # Sums over several threads are rounded differently with each number of them.
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    """Return what limits the threads of the libraries that learning uses; to find them takes longer than to score."""
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401  # both are loaded first, or their threads would not be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _informative_columns(rows: Array) -> Array:
    """Return the columns that are neither constant nor a copy of an earlier one."""
    seen, columns = set[bytes](), []
    for i in np.flatnonzero(rows.min(axis=0) < rows.max(axis=0)).tolist():
        content = rows[:, i].tobytes()
        if content not in seen:
            seen.add(content)
            columns.append(i)
    return np.array(columns, np.int64)


def _best(a: Array, b: Array, quick: bool) -> tuple[str, Learner]:
    """Return the first way of learning, unless a later one suits the rows held back better, beyond doubt."""
    held_a, held_b = np.arange(len(a)) % 4 == 3, np.arange(len(b)) % 4 == 3
    best, least = None, np.zeros(0)
    for way in _learners(a, b, quick):
        loss = _losses(way[1](a[~held_a], b[~held_b]), a[held_a], b[held_b])
        gain = least - loss if best else loss
        if best is None or gain.mean() > _BETTER * gain.std() / math.sqrt(len(gain)):
            best, least = way, loss
    assert best is not None
    return best


def _losses(model: Model, a: Array, b: Array) -> Array:
    """Return the log loss of each row, as if both worlds were equally likely."""
    return np.concatenate([np.logaddexp(0, model(a)), np.logaddexp(0, -model(b))])


def _learners(a: Array, b: Array, quick: bool = False) -> list[tuple[str, Learner]]:
    rows = np.concatenate([a, b])
    tabled = _tabled(rows[:: 1 + len(rows) // _PEEK])
    tables = (
        [(f"table, {prior:g} imagined", _table(tabled, prior)) for prior in _PRIORS] if len(tabled) else []
    )
    linear = [("logistic, sparse", _logistic(sparse=True)), ("logistic", _logistic(sparse=False))]
    # A table of all columns leaves trees nothing to find.
    return [*linear, *tables, *([] if quick or len(tabled) == rows.shape[1] else [("trees", _trees)])]


def _tabled(rows: Array) -> Array:
    """Return the columns of a table: those of few values first, as long as there are few distinct rows."""
    order = np.argsort([len(np.unique(column)) for column in rows.T], kind="stable")
    used = 0
    while used < len(order) and len(np.unique(_keys(rows[:, order[: used + 1]]))) <= _ROWS:
        used += 1
    return np.sort(order[:used])


def _keys(rows: Array) -> Array:
    """Return a number for each row, other ones for other rows of whole numbers, except with a chance of 2^-50 or so."""
    factors = random_words.words(0, random_words.stream("audit", "row", 0), 0, rows.shape[1]) | np.uint64(1)
    whole = np.clip(np.rint(rows), -_LARGE, _LARGE).astype(np.int64).astype(np.uint64)
    return np.asarray((whole * factors).sum(axis=1, dtype=np.uint64))


def _table(columns: Array, prior: float) -> Learner:
    def learn(a: Array, b: Array) -> Model:
        of_a, of_b = _keys(a[:, columns]), _keys(b[:, columns])
        known = np.unique(np.concatenate([of_a, of_b]))
        in_a, in_b = (np.bincount(np.searchsorted(known, x), minlength=len(known)) for x in (of_a, of_b))
        odds = np.log((in_b + prior) / (in_a * len(b) / len(a) + prior))

        def model(rows: Array) -> Array:
            keys = _keys(rows[:, columns])
            place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
            return np.where(known[place] == keys, odds[place], 0.0)

        return model

    return learn


@dataclass(frozen=True)
class _Scale:
    """Columns scaled to the training half, and products of pairs of them; ``kept``: which of all these."""

    centre: Array
    spread: Array
    pairs: tuple[Array, Array]
    kept: Array

    @classmethod
    def learned(cls, a: Array, b: Array, *, sparse: bool) -> _Scale:
        """Keep the products that differ beyond doubt, and all columns, or if ``sparse`` those that do."""
        rows = np.concatenate([a, b])
        spread = rows.std(axis=0)
        plain = cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0), (_NO, _NO), np.arange(a.shape[1]))
        x, y = plain(a), plain(b)
        change = x.mean(axis=0) - y.mean(axis=0)
        strength = np.abs(change) / np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y) + 1e-12)
        pairs = _pairs(x[:, :_PAIRED], y[:, :_PAIRED])
        columns = np.flatnonzero(strength > _doubt(len(strength))) if sparse else plain.kept
        kept = np.concatenate([columns, len(strength) + np.arange(len(pairs[0]))])
        return cls(plain.centre, plain.spread, pairs, kept)

    def __call__(self, values: Array) -> Array:
        columns = np.clip((values - self.centre) / self.spread, -_FAR, _FAR)
        first, second = self.pairs
        return np.concatenate([columns, columns[:, first] * columns[:, second]], axis=1)[:, self.kept]


def _pairs(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the pairs of columns, equal ones included, whose mean products differ most between the worlds."""
    change = a.T @ a / len(a) - b.T @ b / len(b)
    squares = (a * a).T @ (a * a) / len(a) ** 2 + (b * b).T @ (b * b) / len(b) ** 2
    first, second = np.triu_indices(len(change))
    strength = np.abs(change[first, second]) / np.sqrt(squares[first, second] + 1e-12)
    best = np.argsort(-strength, kind="stable")[:_PAIRS]
    best = best[strength[best] > _doubt(len(strength))]
    return first[best], second[best]


def _doubt(tests: int) -> float:
    """Return how many standard errors none of so many differences exceeds by chance, in 99 of 100 cases."""
    from scipy.special import ndtri

    return float(-ndtri(0.005 / max(1, tests)))


def _labelled(a: Array, b: Array) -> tuple[Array, Array]:
    return np.concatenate([a, b]), np.repeat(np.array([0, 1]), [len(a), len(b)])


def _logistic(sparse: bool) -> Learner:
    def learn(a: Array, b: Array) -> Model:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        scale = _Scale.learned(a, b, sparse=sparse)
        if not len(scale.kept):
            return _nothing
        model = LogisticRegression(max_iter=1000, class_weight="balanced")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # a score that is not the best is still a score
            model.fit(*_labelled(scale(a), scale(b)))
        return lambda rows: model.decision_function(scale(rows))

    return learn


def _trees(a: Array, b: Array) -> Model:
    from sklearn.ensemble import HistGradientBoostingClassifier

    scale = _Scale.learned(a, b, sparse=False)
    model = HistGradientBoostingClassifier(
        max_iter=60, max_depth=4, min_samples_leaf=40, l2_regularization=1.0, early_stopping=False,
        class_weight="balanced", random_state=0,
    )  # fmt: skip
    model.fit(*_labelled(scale(a), scale(b)))
    return lambda rows: model.decision_function(scale(rows))


def _nothing(rows: Array) -> Array:
    return np.zeros(len(rows))
