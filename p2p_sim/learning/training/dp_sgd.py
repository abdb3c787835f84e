"""DP-SGD for multinomial logistic regression: a baseline beside the label-private protocols, trained by a curator.

Beside protocols that hide labels from whoever trains, this is another promise: the trainer sees everything, and the
model that she releases hides each row, features and label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from p2p_sim.core import exact, seeds
from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import check_seed
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning.training import dp_sgd_accounting as accounting
from p2p_sim.learning.training import keyed_noise
from p2p_sim.learning.training.class_codes import numbered
from p2p_sim.learning.training.models import one_thread

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

LIPSCHITZ = 2.0
"""No gradient is longer: sqrt(2), the distance of predictions from a label, times sqrt(2), the length of a row."""

SMOOTHNESS = 1.0
"""No curvature is larger: 1/2, that of the softmax, times 2, the squared length of a scaled row."""

POISSON, PASSES = "poisson", "passes"


class DPSGDClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Multinomial logistic regression by DP-SGD, with the conventions of scikit-learn.

    ``noise_multiplier``: at least 0; noise of ``noise_multiplier * clip`` is added to each entry of a batch's sum of
    gradients.  ``clip``: above 0; longer gradients of rows are shortened to it.  ``bound``: above 0; longer rows are
    shortened to it, all are divided by it, and a constant 1 is joined to them, so that no gradient is longer than 2.
    ``rate``: in (0, 1]; the probability that a row is in a batch.  ``steps``: how many batches, at least 1.
    ``learning_rate``: above 0; a step is that times the noisy sum, divided by ``rate`` times the number of rows.
    ``average``: in [0, 1); the model is the mean of that share of the iterates, the last ones; 0: of the last alone.
    Averaging is free where epsilon is that of all iterates; by iteration it must be 0.  ``batches``: "poisson": rows
    are in a batch independently; "passes": 1 / ``rate`` batches of adjacent rows, gone through in order.
    ``classes``: all that a label can be, sorted; None: those that occur.  ``seed``: of batches and noise, below 2^64;
    None: a fresh one in every fit, from the system's entropy, which is not kept.

    A ``seed`` that is given must be random, such as ``secrets.randbits(64)``: whoever guesses it undoes the noise.  And
    it is for one fit: two with the same seed have the same noise.  ``clone``, ``GridSearchCV`` and ``cross_val_score``
    keep it.  Each of their fits also costs its own epsilon.

    After ``fit``: ``classes_``, ``coef_`` (k, d) and ``intercept_`` (k,), of rows that were shortened but not divided;
    ``n_rows_``; ``fitted_``, the arguments that the model and its epsilon are of.  Raises InputError for arguments out
    of range.

    *Source:* Abadi et al. 2016, Algorithm 1, with Poisson batches; the step is divided by the expected batch.
    *Assumes:* these are public, and chosen without looking at the data: all arguments, ``classes`` too, which None
    takes from the labels, so that a rare one shows by its presence; the number of features; the number of rows, which
    says how long a step is; in "passes" the order of the rows.  Nothing is fitted to the features: no scaler, no mean.
    The noise is rounded to floating-point numbers, which a real adversary can exploit (Mironov 2012): it is good for a
    baseline in a simulation, not for a release.
    """

    def __init__(
        self,
        noise_multiplier: float = 1.0,
        *,
        clip: float = 1.0,
        bound: float = 1.0,
        rate: float = 0.05,
        steps: int = 200,
        learning_rate: float = 1.0,
        average: float = 0.5,
        batches: str = POISSON,
        classes: Sequence[Any] | None = None,
        seed: int | None = None,
    ):
        self.noise_multiplier = noise_multiplier
        self.clip = clip
        self.bound = bound
        self.rate = rate
        self.steps = steps
        self.learning_rate = learning_rate
        self.average = average
        self.batches = batches
        self.classes = classes
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        """Train on features (n, d) and labels (n,)."""
        self._check()
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        classes, codes = numbered(y, self.classes)
        given, seed = self._plain(), seeds.chosen(self.seed)
        steps, clip, bound = given["steps"], given["clip"], given["bound"]
        size = given["rate"] * len(x)
        weights = np.zeros((x.shape[1] + 1, len(classes)))
        total, kept = np.zeros_like(weights), math.ceil(given["average"] * steps) or 1
        with one_thread():  # another number of threads would sum in another order
            for step in range(steps):
                rows = self._batch(seed, step, len(x))
                slope = clipped_sum(scaled(x[rows], bound), codes[rows], weights, clip)
                slope += given["noise_multiplier"] * clip * noise(seed, step, weights.shape)
                weights -= given["learning_rate"] / size * slope
                if step >= steps - kept:
                    total += weights
        mean = total / kept
        self.coef_, self.intercept_ = mean[:-1].T / bound, mean[-1]
        self.classes_, self.n_rows_, self.fitted_ = classes, len(x), given
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return scores: (m, k), or for two classes how much higher the second's is, (m,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, (m, k)."""
        from scipy.special import softmax

        return np.asarray(softmax(self._scores(X), axis=1))

    def predict(self, X: Any) -> Array:
        """Return the class with the largest score of each row, (m,); ties go to the first."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def epsilon(self, delta: float, neighbours: str = accounting.ADD_OR_REMOVE) -> float:
        """Return epsilon, in nats, of the fit, for Poisson batches; before it, of one with these arguments.

        See ``dp_sgd_accounting.epsilon_poisson``, and the class for what it assumes of ``seed`` and ``classes``.
        Infinite without noise.  Raises InputError for batches in passes.
        """
        given = self._accounted()
        if given["batches"] != POISSON:
            raise InputError(
                f"batches = {given['batches']!r}: batches in order are not Poisson-sampled; ask for "
                "epsilon_by_iteration(), or choose batches='poisson'"
            )
        noise = given["noise_multiplier"]
        if not noise:
            return math.inf
        return accounting.epsilon_poisson(noise, given["rate"], given["steps"], delta, neighbours)

    def epsilon_by_iteration(self, delta: float, share: float = 1.0) -> float:
        """Return epsilon, in nats, of the fitted model for the first ``share`` of the rows: see ``dp_sgd_accounting``.

        Raises InputError where the theorem does not apply: it needs batches in passes, whole passes, average = 0,
        clip >= 2, so that nothing is clipped, and steps of at most 2 / smoothness; and before ``fit``, for the number
        of rows decides that.
        """
        check_is_fitted(self, "n_rows_")
        given = self._accounted()
        batches, average, clip, steps = (given[name] for name in ("batches", "average", "clip", "steps"))
        count, pace = _count(given["rate"]), given["learning_rate"]
        longest = 2 / SMOOTHNESS * self.n_rows_ * given["rate"] / math.ceil(self.n_rows_ / count)
        for wrong, what in (
            (batches != PASSES, f"batches = {batches!r}: must be {PASSES!r}"),
            (average > 0, f"average = {average!r}: must be 0, for only the last iterate is private"),
            (clip < LIPSCHITZ, f"clip = {clip!r}: must be at least 2, so that nothing is clipped"),
            (pace > longest, f"learning_rate = {pace!r}: at most {longest:.6g}"),
            (steps % count != 0, f"steps = {steps!r}: must be a multiple of the {count} batches"),
        ):
            if wrong:
                raise InputError(f"{what}; without that nothing is known of privacy by iteration")
        if not given["noise_multiplier"]:
            return math.inf
        ratio = given["noise_multiplier"] * clip / LIPSCHITZ
        return accounting.epsilon_by_iteration(ratio, count, steps // count, delta, share)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.seed is None
        return tags

    def _accounted(self) -> dict[str, Any]:
        """Return the arguments of the fit; before it, the present ones."""
        given: dict[str, Any] | None = getattr(self, "fitted_", None)
        if given is None:
            self._check()
            return self._plain()
        return given

    def _plain(self) -> dict[str, Any]:
        """Return the arguments as Python's numbers: products of numpy's small ones overflow."""
        names = ("noise_multiplier", "clip", "bound", "rate", "learning_rate", "average")
        numbers = {name: float(getattr(self, name)) for name in names}
        return {**numbers, "steps": int(self.steps), "batches": self.batches}

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        x = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        bound = self.fitted_["bound"]
        weights = np.vstack([self.coef_.T * bound, self.intercept_])
        with one_thread():
            return np.asarray(scaled(x, bound) @ weights)

    def _batch(self, seed: int, step: int, n: int) -> Array:
        """Return the rows of a batch: a mask, or their numbers."""
        if self.batches == PASSES:
            count = _count(float(self.rate))
            return np.array_split(np.arange(n), count)[step % count]
        bound = exact.threshold("rate", float(self.rate))
        drawn = words(seed, stream(ROLE, "batch", step), 0, n)
        return np.ones(n, np.bool_) if bound == exact.WORD else drawn < np.uint64(bound)

    def _check(self) -> None:
        check_range("noise_multiplier", self.noise_multiplier, 0, 1e9)
        check_range("average", self.average, 0, 1, open_high=True)
        check_whole("steps", self.steps)
        if self.seed is not None:
            check_seed(self.seed)
        check_range("rate", self.rate, 0, 1, open_low=True)
        for name in ("clip", "bound", "learning_rate"):
            check_range(name, getattr(self, name), 0, 1e9, open_low=True)
        if self.batches not in (POISSON, PASSES):
            raise InputError(f"batches = {self.batches!r}: must be {POISSON!r} or {PASSES!r}")
        if self.batches == PASSES and not math.isclose(
            _count(float(self.rate)) * float(self.rate), 1, rel_tol=1e-9
        ):
            raise InputError(f"rate = {self.rate!r}: for batches in passes 1 / rate must be a whole number")


ROLE = "dp-sgd"
"""Under this name batches and noise are drawn; it cannot be the name of a protocol's role."""


def scaled(x: Array, bound: float) -> Floats:
    """Return the rows (n, d), divided by ``bound`` and shortened to length 1 where longer, and a column of 1."""
    rows = np.asarray(x, np.float64) / bound
    largest = np.maximum(np.abs(rows).max(axis=1, initial=0.0, keepdims=True), 1.0)
    small = rows / largest  # squares of huge entries would overflow
    length = np.sqrt((small**2).sum(axis=1, keepdims=True)) * largest
    return np.concatenate([rows / np.maximum(length, 1.0), np.ones((len(rows), 1))], axis=1)


def clipped_sum(rows: Floats, codes: Array, weights: Floats, clip: float) -> Floats:
    """Return the sum over the rows (n, d) of the loss's gradients (d, k), each shortened to length ``clip``.

    A row's gradient is the product of the row and (p - onehot), so its length is that of the one times the other's, and
    no gradient need be written out.  Another row moves the sum by at most 2 ``clip``, one less or one more by at most
    ``clip``; another label alone by at most the smaller of 2 ``clip`` and sqrt(2) times the length of the row.
    """
    from scipy.special import softmax

    away = softmax(rows @ weights, axis=1)
    away[np.arange(len(rows)), codes] -= 1
    length = np.sqrt((rows**2).sum(axis=1) * (away**2).sum(axis=1))
    return np.asarray(rows.T @ (away * (clip / np.maximum(length, clip))[:, None]))


def noise(seed: int, step: int, shape: tuple[int, ...]) -> Floats:
    """Return the standard Gaussian noise of a step, see ``keyed_noise``."""
    return keyed_noise.gaussian(seed, stream(ROLE, "noise", step), shape)


def _count(rate: float) -> int:
    """Return the number of batches of a pass."""
    return round(1 / rate)
