"""Logistic regression on rows whose loss is a weighted sum over all labels, with scikit-learn's conventions.

The loss of a row is sum_k W[i, k] crossentropy(x_i, k): one weight is 1 for a known label, and weights whose mean over
label noise is that make the loss unbiased (``privacy.Evidence.unbiased``, ``losses.easy_llp``); they may be negative.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.models import one_thread

Array = npt.NDArray[Any]

BLOCK = 2**18
"""Numbers of a block of rows: 2 MiB, which stays in the cache between its two products."""


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What a fitted model with ``classes_``, ``coef_`` and ``intercept_`` says of rows."""

    def decision_function(self, X: Any) -> Array:
        """Return scores (m, k), or (m,) of the second of two classes."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of each row with the largest score; ties go to the first."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (m, k)."""
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        return np.asarray(softmax(scores, axis=1))


class WeightedLossRegression(_Scores):
    """A multinomial logistic regression (two classes: binomial) with an L2 penalty, by L-BFGS in float64.

    ``C``: above 0, the inverse of the penalty, as in scikit-learn: half the squared weights without the intercept, plus
    C times the loss of all rows.  ``fit_intercept``; ``max_iter``: at least 1; ``tol``: of the largest entry of the
    gradient of the mean loss.

    ``fit`` takes labels, ``fit_losses`` weights.  Rows are read in blocks and not standardized.  Fitted:
    ``classes_``, ``coef_`` (k, d), or (1, d) for two classes, ``intercept_``, ``n_iter_``.  The objective is convex if
    no row's weights have a negative sum.  Warns (ConvergenceWarning) if ``max_iter`` was not enough.
    """

    def __init__(
        self, C: float = 1.0, *, fit_intercept: bool = True, max_iter: int = 1000, tol: float = 1e-4
    ):
        self.C, self.fit_intercept, self.max_iter, self.tol = C, fit_intercept, max_iter, tol

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels y (n,), of any two values or more; ``sample_weight`` (n,): at least 0.

        Raises InputError (a ValueError) for labels of a single class; scikit-learn's errors for numeric targets and
        rows that do not fit.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32))
        classes, code = _classes(y)
        each = None
        if sample_weight is not None:
            each = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = np.zeros((len(classes), X.shape[0]))
        weights[code, np.arange(X.shape[0])] = 1.0 if each is None else each
        return self._fitted(X, weights, classes)

    def fit_losses(self, X: Any, weights: Any, classes: Any = None) -> Self:
        """Fit to weights (n, k) of the losses of each row; ``classes`` (k,): their labels, ascending; None: 0 to k - 1.

        Raises InputError for weights of another shape or that are not finite, and for a class whose weights have a sum
        of 0 or less: a class without labels, or one that the noise hides; its intercept would fall without bound.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32))
        given, names = _checked(weights, X.shape[0], classes)
        return self._fitted(X, np.ascontiguousarray(given.T, dtype=np.float64), names)

    def _fitted(self, X: Any, weights: Array, classes: Array) -> Self:
        """Fit to weights (k, n)."""
        from scipy.optimize import minimize

        self._check(weights, classes)
        objective = _Objective(X, weights, self.C, self.fit_intercept)
        with one_thread():
            found = minimize(
                objective, np.zeros(objective.free), jac=True, method="L-BFGS-B",
                options={
                    "maxiter": self.max_iter, "maxls": 50, "gtol": self.tol, "ftol": 64 * np.finfo(float).eps,
                },
            )  # fmt: skip
        if found.nit >= self.max_iter and not found.success:
            warnings.warn(
                f"L-BFGS stopped after {found.nit} steps; give a larger max_iter, or standardize the features",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.classes_, self.n_iter_ = classes, np.array([found.nit], np.int32)
        self.coef_, self.intercept_ = objective.parts(found.x)
        return self

    def _check(self, weights: Array, classes: Array) -> None:
        for name, value in (("C", self.C), ("max_iter", self.max_iter), ("tol", self.tol)):
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not value > 0:
                raise InputError(f"{name} = {value!r}: must be a number above 0")
        sums = weights.sum(axis=1)
        if not np.isfinite(sums).all():
            raise InputError("weights have entries that are not finite; give finite numbers")
        if not (sums > 0).all():
            short = int(np.argmax(~(sums > 0)))
            raise InputError(
                f"the weights of class {classes[short]} have the sum {sums[short]:.6g}: there are no labels of it, or "
                "the noise hides them; leave the class out, or use the forward correction (losses.match_reports)"
            )


class _Objective:
    """The mean loss with its penalty, and its gradient, as a function of flat weights.

    Scores of a block of rows are (k, rows), so that sums over classes are of whole rows.
    """

    def __init__(self, X: Any, weights: Array, C: float, intercept: bool):
        self.x, self.weights, self.intercept = X, weights, intercept
        self.total = float(weights.sum())
        self.penalty = 1 / (C * self.total)
        self.columns = 1 if len(weights) == 2 else len(weights)
        self.shape = (self.columns, X.shape[1] + intercept)
        self.free = self.shape[0] * self.shape[1]
        self.rows = max(1, BLOCK // max(1, X.shape[1]))

    def parts(self, flat: Array) -> tuple[Array, Array]:
        """Return weights of features (columns, d), and intercepts (columns,)."""
        both = flat.reshape(self.shape)
        if not self.intercept:
            return both.copy(), np.zeros(self.columns)
        return both[:, :-1].copy(), both[:, -1].copy()

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """Return the value and its gradient."""
        coef, constant = self.parts(flat)
        value, slope, gradient = 0.0, np.zeros(self.columns), np.zeros_like(coef)
        for low in range(0, self.x.shape[0], self.rows):
            block = self.x[low : low + self.rows]
            block = block.astype(np.float64, copy=False)
            scores = coef @ block.T
            scores += constant[:, None]
            part, direction = cross_entropy(scores, self.weights[:, low : low + self.rows])
            value += part
            slope += direction.sum(axis=1)
            gradient += direction @ block
        value = value / self.total + self.penalty / 2 * float(np.einsum("kd,kd->", coef, coef))
        gradient = gradient / self.total + self.penalty * coef
        if not self.intercept:
            return value, gradient.ravel()
        return value, np.concatenate([gradient, slope[:, None] / self.total], axis=1).ravel()


def cross_entropy(scores: Array, weights: Array) -> tuple[float, Array]:
    """Return the loss of a block, and its gradient with respect to ``scores``: (k, rows), (1, rows) of two classes.

    ``weights`` (k, rows): of the loss of each class.  Scores of several classes are overwritten.
    """
    if len(scores) == 1:
        both = weights[0] + weights[1]
        # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|)
        small = np.exp(-np.abs(scores[0]))
        value = both @ (np.maximum(scores[0], 0) + np.log1p(small)) - weights[1] @ scores[0]
        chance = np.where(scores[0] >= 0, 1.0, small) / (1 + small)
        return float(value), (both * chance - weights[1])[None]
    scores -= scores.max(axis=0)
    value = -float(np.einsum("kn,kn->", weights, scores))
    np.exp(scores, out=scores)
    whole, sums = scores.sum(axis=0), weights.sum(axis=0)
    value += float(sums @ np.log(whole))
    scores *= sums / whole
    scores -= weights
    return value, scores


def _classes(y: Array) -> tuple[Array, Array]:
    """Return the classes of labels y (n,), and the number of each label's; raises InputError for a single one."""
    check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InputError(
            f"y has one class, {classes[0]}: a classifier needs two or more; give labels of both"
        )
    return classes, code


def _checked(weights: Any, rows: int, classes: Any) -> tuple[Array, Array]:
    """Return weights (rows, k) and their labels (k,); raises InputError for those that do not fit."""
    given = np.asarray(weights)
    if given.ndim != 2 or given.shape[0] != rows or given.shape[1] < 2 or given.dtype.kind not in "iuf":
        raise InputError(
            f"weights have shape {given.shape} and type {given.dtype}; give numbers of shape ({rows}, k), a weight for "
            "each of k labels, k at least 2"
        )
    if not np.isfinite(given).all():
        raise InputError("weights have entries that are not finite; give finite numbers")
    names = np.arange(given.shape[1]) if classes is None else np.asarray(classes)
    if names.shape != given.shape[1:] or not np.array_equal(np.unique(names), names):
        raise InputError(
            f"classes are {names.tolist()}; give {given.shape[1]} different labels, ascending, one a column of weights"
        )
    return given, names


class StreamedLossRegression(_Scores):
    """The same regression in one pass over blocks of rows, for more rows than memory holds: averaged AdaGrad.

    ``alpha``: at least 0, the weight of half the squared weights (without the intercept) beside the mean loss, which is
    1 / (C n) of ``WeightedLossRegression``.  ``step``: above 0, of AdaGrad.  ``batch``: rows a step, at least 1.

    Steps are of ``batch`` rows in the order given, however they are cut into blocks: rows that fill no batch wait for
    the next block, or for ``finish``, and count for nothing until then.  Give rows in random order, with features of
    about the same scale.  ``coef_`` and ``intercept_`` are averages over the steps, later ones weighing more.

    *Source:* Duchi, Hazan, Singer 2011 (AdaGrad); Shamir, Zhang 2013 (polynomial-decay averaging).
    """

    _rows: Array
    _weights: Array

    def __init__(self, alpha: float = 1e-6, *, step: float = 0.3, batch: int = 32):
        self.alpha, self.step, self.batch = alpha, step, batch

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learnt, and learn labels y (n,) in one pass."""
        for name in ("classes_", "coef_"):
            self.__dict__.pop(name, None)
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32))
        classes, code = _classes(y)
        return self._take(X, np.eye(len(classes))[code], classes).finish()

    def finish(self) -> Self:
        """Learn the rows that still wait for a whole batch, as one of fewer."""
        check_is_fitted(self)
        if len(self._rows):
            self._learn(self._rows, self._weights)
            self._rows, self._weights = self._rows[:0], self._weights[:0]
            self.coef_, self.intercept_ = self._mean[:, :-1].copy(), self._mean[:, -1].copy()
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn a block of labels y (n,); ``classes``: all labels there are, for the first block."""
        X, y = validate_data(self, X, y, dtype=(np.float64, np.float32), reset=not hasattr(self, "classes_"))
        names = np.unique(classes) if classes is not None else getattr(self, "classes_", None)
        if names is None:
            raise InputError("classes = None: give all labels there are to the first call of partial_fit")
        place = np.minimum(np.searchsorted(names, y), len(names) - 1)
        if not np.array_equal(names[place], y):
            raise InputError(
                f"y has labels {np.setdiff1d(y, names)[:10].tolist()} that are none of the classes; name all"
            )
        return self._take(X, np.eye(len(names))[place], names)

    def partial_fit_losses(self, X: Any, weights: Any, classes: Any = None) -> Self:
        """Learn a block of weights (n, k) of the losses of rows; ``classes`` (k,): ascending; None: 0 to k - 1.

        Raises InputError for weights of another shape, or not finite, or classes that are not those of earlier blocks.
        """
        X = validate_data(self, X, dtype=(np.float64, np.float32), reset=not hasattr(self, "classes_"))
        return self._take(X, weights, classes if classes is not None else getattr(self, "classes_", None))

    def _take(self, X: Array, weights: Any, classes: Any) -> Self:
        """Learn a block of rows that are checked, and keep those that fill no batch."""
        given, names = _checked(weights, len(X), classes)
        if not hasattr(self, "classes_"):
            self._begin(names, X.shape[1])
        elif not np.array_equal(names, self.classes_):
            raise InputError(
                f"classes are {names.tolist()}, and were {self.classes_.tolist()}; give the same"
            )
        x = np.concatenate([self._rows, X])
        w = np.concatenate([self._weights, given])
        whole = len(x) - len(x) % self.batch
        with one_thread():
            for low in range(0, whole, self.batch):
                self._learn(x[low : low + self.batch], w[low : low + self.batch])
        self._rows, self._weights = x[whole:].copy(), w[whole:].copy()
        self.coef_, self.intercept_ = self._mean[:, :-1].copy(), self._mean[:, -1].copy()
        return self

    def _begin(self, classes: Array, features: int) -> None:
        for name, value, least in (
            ("alpha", self.alpha, 0),
            ("step", self.step, 1e-12),
            ("batch", self.batch, 1),
        ):
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float, np.number))
                or not value >= least
            ):
                raise InputError(f"{name} = {value!r}: must be a number of at least {least:g}")
        self.classes_, self.n_steps_ = classes, 0
        shape = (1 if len(classes) == 2 else len(classes), features + 1)
        self._now, self._mean, self._squares = np.zeros(shape), np.zeros(shape), np.full(shape, 1e-12)
        self._rows, self._weights = np.zeros((0, features)), np.zeros((0, len(classes)))

    def _learn(self, x: Array, weights: Array) -> None:
        """Take a step, of a batch of rows."""
        coef = self._now[:, :-1]
        scores = coef @ x.T + self._now[:, -1:]
        _, direction = cross_entropy(scores, np.ascontiguousarray(weights.T, dtype=np.float64))
        along = np.concatenate([direction @ x, direction.sum(axis=1, keepdims=True)], axis=1) / len(x)
        along[:, :-1] += self.alpha * coef
        self._squares += along**2
        self._now -= self.step * along / np.sqrt(self._squares)
        self.n_steps_ += 1
        self._mean += (AVERAGING + 1) / (self.n_steps_ + AVERAGING) * (self._now - self._mean)


AVERAGING = 3
"""The weight of step t in the average of steps is about t^3."""
