"""Losses for randomized labels and for label proportions of bags, and the logistic regression fitted with them.

The losses come first, as functions of scores; then ``Regression``, its penalty and start; then the fits ``match`` and
``match_reports``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.learning.training.metrics import Predicted
from p2p_sim.learning.training.models import one_thread
from p2p_sim.privacy.label_matrices import MOST_WEIGHT, Evidence, channel, inverse
from p2p_sim.privacy.registry import LabelNoise

Array = npt.NDArray[Any]

LEAST = 1e-9  # probabilities of what was released are kept this far from 0


class Released(Protocol):
    """Released labels in groups, such as bags; for each group it is known whose labels they may be.

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
        inside = self.bag >= 0
        return inside, replace(self, bag=self.bag[inside])

    @property
    def _members(self) -> Array:
        return np.maximum(np.bincount(self.bag, minlength=len(self.counts)), 1)[:, None]


def law_of(noise: LabelNoise) -> Array:
    """Return the law (k, k) of label noise that is the same for all: entry [j, y] is P(released j | label y)."""
    return channel(noise.labels, float(noise.lie)) if noise.matrix is None else noise.matrix.dense().T


def _uniform(law: Array) -> bool:
    """Return whether a law is the true label, or with one probability a uniform one of the others."""
    expected = np.full_like(law, law[0, 1])
    np.fill_diagonal(expected, law[0, 0])
    return np.array_equal(law, expected)


def undo(law: Array, shares: Array) -> Array:
    """Return the unbiased estimate (..., k) of true label shares from released ``shares``; may lie outside [0, 1].

    ``law``: (k, k) as ``channel`` makes it; of a uniform one the inverse has a closed form.  Raises InputError for one
    that is singular, or nearly so.
    """
    if _uniform(law) and abs(law[0, 0] - law[0, 1]) * MOST_WEIGHT >= 1:
        return _closed(law, shares)
    return np.asarray(shares @ inverse(law.T))


def _closed(law: Array, shares: Array) -> Array:
    """Return what ``undo`` does, of a uniform law."""
    return np.asarray((shares - law[0, 1]) / (law[0, 0] - law[0, 1]))


def forward(scores: Array, released: Released, law: Array) -> tuple[float, Array]:
    """Return the forward-corrected cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    The softmax predictions are averaged over the users whose label it may be, multiplied by ``law`` (k, k), and
    compared with the released labels: -sum counts log(law mean).  For bags of one user this is the likelihood of
    randomized response: for binary labels P(released 1 | x) = (1 - 2 lie) sigma(score) + lie.  Without lies it is
    proportion matching.  The expected loss is minimal at the true probabilities.  It is convex if there are no lies and
    all bags have one user, otherwise not; but no label costs more than log(1 / least entry of law), so labels that
    noise made implausible do not dominate.  The unbiased ``backward`` loss is convex, and trains worse: see
    docs/experiments.md.

    *Source:* Patrini et al. 2017 (forward correction); Unified 2023, section 2 (PROPMATCH).
    *Assumes:* lies are uniform and independent; a label is that of a random one of whose it may be.
    """
    probabilities = softmax(scores)
    predicted = np.maximum(released.mean(probabilities) @ law.T, LEAST)
    loss = -float((released.counts * np.log(predicted)).sum())
    slope = released.back(-(released.counts / predicted) @ law)
    return loss, through_softmax(probabilities, slope)


def from_likelihoods(scores: Array, likelihood: Array) -> tuple[float, Array]:
    """Return the forward-corrected cross-entropy of single reports and its gradient (n, k), as ``forward`` does.

    -sum log sum_y softmax(scores)[y] likelihood[y], with the ``likelihood`` (n, k) of each report for each true label,
    up to a factor of the report's own.  It needs no inverse: labels that reports do not tell apart do no harm.

    *Source:* Patrini et al. 2017 (forward correction), with a randomization matrix of each user's own.
    """
    return _from_scaled(scores, _scaled(likelihood))


def _scaled(likelihood: Array) -> Array:
    """Return likelihoods (m, k), each report's divided by its largest."""
    return np.asarray(likelihood / likelihood.max(axis=1, keepdims=True))


def _from_scaled(scores: Array, likelihood: Array) -> tuple[float, Array]:
    probabilities = softmax(scores)
    joint = probabilities * likelihood
    total = np.maximum(joint.sum(axis=1, keepdims=True), LEAST)
    return -float(np.log(total).sum()), probabilities - joint / total


def softmax(scores: Array) -> Array:
    """Return probabilities (n, k) with the bits of scipy's, which takes four times as long for two columns."""
    if scores.shape[1] != 2:
        from scipy.special import softmax as of_rows

        return np.asarray(of_rows(scores, axis=1))
    exponents = np.exp(scores - np.maximum(scores[:, 0], scores[:, 1])[:, None])
    return np.asarray(exponents / (exponents[:, 0] + exponents[:, 1])[:, None])


def through_softmax(probabilities: Array, slope: Array) -> Array:
    """Return the gradient (n, k) by scores from that by their probabilities, both (n, k)."""
    along = probabilities * slope
    total = along[:, 0] + along[:, 1] if along.shape[1] == 2 else along.sum(axis=1)
    return np.asarray(probabilities * (slope - total[:, None]))


def backward(scores: Array, released: Array, law: Array) -> tuple[float, Array]:
    """Return the unbiased cross-entropy and its gradient (n, k) with respect to ``scores`` (n, k).

    Each released label (n,) is replaced by the unbiased shares of ``undo``, which lie outside [0, 1], so that the
    expected loss equals that of the true labels for all scores.  Convex in the scores, but unbounded below.

    *Source:* Natarajan et al. 2013; Clustering 2022, Algorithm 1; Release 2023, appendix G.
    """
    return weighted(scores, undo(law, np.eye(len(law)))[released])


def weighted(scores: Array, weights: Array) -> tuple[float, Array]:
    """Return the sum over rows of sum_k weights[k] crossentropy(scores, k), and its gradient (n, k).

    ``weights`` (n, k): may be negative; convex in the scores if no row's sum is negative.  Those whose mean is the
    one-hot true label give an unbiased loss.
    """
    from scipy.special import logsumexp

    total, sums = logsumexp(scores, axis=1), weights.sum(axis=1)
    value = float(sums @ total - (weights * scores).sum())
    return value, np.exp(scores - total[:, None]) * sums[:, None] - weights


@dataclass(frozen=True)
class WeightSummary:
    """How far weights of a loss are from those of true labels.

    ``least``, ``most``: the smallest and the largest weight.  ``inflation``: the mean over examples of the sum of
    squared weights, 1 for true labels.  If the losses of an example's labels were independent and alike, a mean loss of
    the same variance would take so many times more examples.
    """

    least: float
    most: float
    inflation: float


def summary(weights: Array) -> WeightSummary:
    """Return the summary of weights (n, k), n at least 1."""
    return WeightSummary(
        float(weights.min()),
        float(weights.max()),
        float(np.einsum("ik,ik->", weights, weights) / len(weights)),
    )


def easy_llp(bags: Bags, prior: Array) -> Array:
    """Return unbiased loss weights (n, k) of users known by bag: m alpha - (m - 1) prior, for a bag of m users.

    alpha: the shares of the labels received, ``bags.counts`` by their sum, which is below m where some were lost.
    ``prior`` (k,): the shares of labels among all users.  Users of no bag, and of a bag without labels, get zeros.  The
    sum of squared weights grows with m.

    Raises InputError for a prior that is no distribution over the labels.
    *Source:* Busa-Fekete et al. 2023, "Easy learning from label proportions" (EasyLLP).
    *Assumes:* the users of a bag are drawn independently, whose labels have the prior: bags tell nothing of features;
    whether a label is received depends on none.
    """
    prior = np.asarray(prior, float)
    labels = bags.counts.shape[1]
    if prior.shape != (labels,) or not (prior >= 0).all() or abs(prior.sum() - 1) > 1e-6:
        raise InputError(
            f"prior = {prior.tolist()}: give {labels} probabilities that sum to 1, the shares of the labels among all"
        )
    inside, by_user = bags.bag >= 0, np.zeros((len(bags.bag), labels))
    members = np.bincount(bags.bag[inside], minlength=len(bags.counts))[:, None]
    received = np.asarray(bags.counts, float).sum(axis=1, keepdims=True)
    weights = members / np.maximum(received, 1) * bags.counts - (members - 1) * prior
    by_user[inside] = np.where(received > 0, weights, 0.0)[bags.bag[inside]]
    return by_user


Loss = Callable[[Array], tuple[float, Array]]
"""From scores (n, k) to the loss and its gradient (n, k)."""

FINE = 64 * np.finfo(float).eps
"""L-BFGS stops where the loss falls by a smaller share: so small that the gradient ends it, as in scikit-learn."""


@dataclass(frozen=True)
class Penalty:
    """What is added to a loss: so many times half the squared ``weights``, and half the squared ``constant``s.

    A penalty is the inverse of a variance: it is the prior N(0, 1 / penalty) of each weight, or constant.
    """

    weights: float = 1.0
    constant: float = 0.0


OF_LABELS = Penalty()
"""Where nobody lies, as in scikit-learn's logistic regression with C = 1."""

SCORE_VARIANCE = 8.0
"""The prior variance of a score without its constant, where labels are noisy; see ``of_noisy``."""

CONSTANT_VARIANCE = 1.0
"""The prior variance of the constant in a score, where labels are noisy; see ``of_noisy``."""

TOLERANCE = 1e-4
"""Stops when no entry of the gradient, divided by the number of rows, is larger; as in scikit-learn."""

REDUCTION = 1e-2
"""The gradient must also fall to this share of its largest entry at the start (without the intercept's).

The less a release says, the smaller the gradient everywhere: at a small epsilon it is below ``TOLERANCE`` at the start.
"""

LEAST_TOLERANCE = 1e-6
"""Least share of the tolerance, for labels that do not depend on features: their gradient is rounding alone."""

CONSTANT = 1e-4
"""A model whose probabilities vary by less from row to row is called constant."""


class Regression:
    """A logistic regression of ``labels`` classes: one column of weights for two classes, otherwise one a class.

    Minimizes, by L-BFGS, a loss plus a penalty.  Fitted: ``weights``, the constant last; ``converged``; ``flat``,
    whether all rows that the loss is of have the same probabilities, to ``CONSTANT``.
    """

    def __init__(self, labels: int = 2, penalty: Penalty = OF_LABELS, max_iterations: int = 500):
        self.labels, self.penalty, self.max_iterations = labels, penalty, max_iterations
        self.weights: Array
        self.converged, self.flat = True, False

    def fit(
        self, x: Array, loss: Loss, start: Array, rows: Array | None = None, weight: float = 1.0
    ) -> Regression:
        """Fit to features (n, d), starting from the constant model with probabilities ``start`` (k,); see ``descend``.

        ``rows``: a mask (n,) of the rows that ``loss`` takes scores of; all rows are used to standardize.  ``weight``:
        the mean weight of a label in ``loss``; the tolerance is as much smaller as the loss is.
        """
        begin = self.constant(x, start).weights
        features = self.features(x if rows is None else x[rows])
        return self.descend(lambda _: [(features, loss)], begin, TOLERANCE * weight * len(features))

    def descend(
        self,
        parts: Callable[[Array], Iterable[tuple[Array, Loss]]],
        begin: Array,
        tolerance: float,
    ) -> Regression:
        """Minimize the sum of the losses of parts of the rows, from the weights ``begin`` on.

        ``parts``: is called for every evaluation, with the weights there, and returns ``features`` of rows with the
        loss of their scores, a part after the other.  ``tolerance``: stops when no entry of the gradient is larger,
        and ``REDUCTION`` holds.
        """
        from scipy.optimize import minimize

        shape = begin.shape

        def objective(flat: Array) -> tuple[float, Array]:
            weights = flat.reshape(shape)
            value, gradient = 0.0, np.zeros(shape)
            for features, loss in parts(weights):
                part, slope = loss(self.scores(features, weights))
                value += part
                gradient += features.T @ slope[:, -shape[1] :]
            free, constant = weights.copy(), weights[-1]
            free[-1] = 0.0
            gradient = gradient + self.penalty.weights * free
            gradient[-1] += self.penalty.constant * constant
            value += self.penalty.weights / 2 * float((free**2).sum())
            return value + self.penalty.constant / 2 * float((constant**2).sum()), gradient.ravel()

        with one_thread():
            first = [objective(begin.ravel())]  # what L-BFGS asks for first
            small = REDUCTION * float(np.abs(first[0][1].reshape(shape)[:-1]).max(initial=0.0))
            tolerance = min(tolerance, max(small, LEAST_TOLERANCE * tolerance))
            found = minimize(
                lambda flat: first.pop() if first else objective(flat), begin.ravel(), jac=True, method="L-BFGS-B",
                options={"maxiter": self.max_iterations, "gtol": tolerance, "ftol": FINE},
            )  # fmt: skip
            self.weights, self.converged = found.x.reshape(shape), bool(found.success)
            self.flat = self._flat(features for features, _ in parts(self.weights))
        return self

    def _flat(self, parts: Iterable[Array]) -> bool:
        """Return whether the probabilities of all rows, in parts of features, are the same, to ``CONSTANT``."""
        low, high = np.full(self.labels, np.inf), np.full(self.labels, -np.inf)
        for features in parts:
            if not len(features):
                continue
            rows = softmax(self.scores(features, self.weights))
            low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
            if (high - low >= CONSTANT).any():
                return False
        return True

    def constant(self, x: Array, probabilities: Array) -> Regression:
        """Become the constant model with ``probabilities`` (k,), of features such as x (n, d)."""
        return self.scaled(x.mean(axis=0), scales(x), probabilities)

    def scaled(self, mean: Array, scale: Array, probabilities: Array) -> Regression:
        """Become the constant model of features that have a ``mean`` (d,) and are divided by a ``scale`` (d,)."""
        self._mean, self._scale = mean, scale
        first = np.zeros((len(mean) + 1, self.labels))
        first[-1] = np.log(probabilities)
        self.weights = first[:, 1:] - first[:, :1] if self.labels == 2 else first
        return self

    def predict(self, x: Array) -> npt.NDArray[np.int64]:
        """Return for each row the class with the largest score; ties go to the first."""
        return np.asarray(self.scores(self.features(x), self.weights).argmax(axis=1))

    def probabilities(self, x: Array) -> Array:
        """Return the probability of each class, (n, k)."""
        return softmax(self.scores(self.features(x), self.weights))

    def predicted(self, x: Array) -> Predicted:
        """Return the classes and the probabilities."""
        scores = self.scores(self.features(x), self.weights)
        return Predicted(np.asarray(scores.argmax(axis=1)), softmax(scores))

    def features(self, x: Array) -> Array:
        """Return standardized features with a column of ones, (n, d + 1)."""
        return np.concatenate([(x - self._mean) / self._scale, np.ones((len(x), 1))], axis=1)

    def scores(self, features: Array, weights: Array) -> Array:
        """Return the scores (n, k) that ``weights`` give to what ``features`` returned."""
        scores = np.zeros((len(features), self.labels))
        scores[:, -weights.shape[1] :] = features @ weights
        return scores


def starting_shares(released: Released, law: Array, weights: Array | None = None) -> Array:
    """Return the probabilities (k,) of the constant model: the released shares, noise undone, none below about 0.01.

    ``weights`` (b,): of the labels of each group; None: 1.
    """
    counts = released.counts if weights is None else released.counts * weights[:, None]
    found = counts.sum(axis=0) / counts.sum()
    if _uniform(law):
        return _inside(_closed(law, found))
    return likeliest_shares(law, found)


def start_of(released: Released, law: Array, weights: Array | None = None) -> Array:
    """Return the probabilities (k,) of the constant model that a fit to released labels starts from.

    Equal ones where labels are noisy: the likelihood's slope is proportional to p (1 - p), so that it is flat near the
    shares of rare labels; and where a debiased share is below 0, as by chance, it falls from there towards the constant
    model without that label.  From equal ones the first step is that of least squares on debiased labels.  Without
    noise ``starting_shares``.
    """
    if exact(law):
        return starting_shares(released, law, weights)
    return np.full(len(law), 1 / len(law))


def exact(law: Array) -> bool:
    """Return whether labels are released as they are."""
    return np.array_equal(law, np.eye(len(law)))


def varying(x: Array) -> npt.NDArray[np.bool_]:
    """Return which features (d,) of rows x (n, d) are not the same in all of them."""
    return np.asarray(x.min(axis=0) < x.max(axis=0))


def scales(x: Array) -> Array:
    """Return by what features (d,) of rows x (n, d) are divided: deviations, 1 where one is 0, or too small a float."""
    spread = x.std(axis=0)
    return np.where(varying(x) & (spread > 0), spread, 1.0)


def penalty_of(law: Array, features: int) -> Penalty:
    """Return the penalty of a fit to labels that were released by a ``law`` (k, k): ``of_noisy``, if anybody lies.

    ``features``: how many vary.  Where nobody lies it is ``OF_LABELS``, also of bags: none is better there on all data.
    """
    return OF_LABELS if exact(law) else of_noisy(features)


def of_noisy(features: int) -> Penalty:
    """Return the penalty of a fit to noisy labels; ``features``: how many vary.

    Features are standardized, so under a penalty L the scores of d features have a prior variance of d / L, on average
    over rows.  L = 1 lets those of 100 features spread by 10, and noise is learnt.  d / 8 gives all the same variance;
    it is not below 1, which is better where features are few.  The constant has a prior, too: a label whose debiased
    share is below 0, as by chance, would otherwise have the probability 0.  What was measured is in docs/learning.md.
    """
    return Penalty(max(features / SCORE_VARIANCE, OF_LABELS.weights), 1 / CONSTANT_VARIANCE)


def likeliest_shares(likelihood: Array, weights: Array) -> Array:
    """Return label shares (k,), none below about 0.01, that make reports likely: 100 steps of EM from equal shares.

    ``likelihood`` (m, k): of kinds of reports, which were got ``weights`` (m,) times.
    """
    shares = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(100):
        each = likelihood * shares
        shares = weights @ (each / np.maximum(each.sum(axis=1, keepdims=True), LEAST))
        shares = shares / shares.sum()
    return _inside(shares)


def _inside(shares: Array) -> Array:
    bounded = np.clip(shares, 0.01, 0.99)
    return np.asarray(bounded / bounded.sum())


def match(
    x: Array,
    released: Released,
    noise: Any = 0.0,
    weights: Array | None = None,
    *,
    penalty: float | None = None,
) -> Regression:
    """Return the logistic regression fitted to released labels, randomized by ``noise``.

    x (n, d); the loss is ``forward``.  ``noise``: the probability of a lie, uniform among the others; or the law
    (k, k), as ``channel`` makes it.  ``weights`` (b,): of the labels of each group, in (0, 1]; None: 1.
    ``penalty``: of half the squared weights, at least 0, with free constants; None: ``penalty_of``.  Raises InputError
    for another penalty, if no label was released, and if a released label says nothing about the true one: a lie with
    probability (k - 1) / k or more, or a law whose columns are all the same.
    """
    labels = released.counts.shape[1]
    if penalty is not None and not 0 <= penalty < np.inf:
        raise InputError(
            f"penalty = {penalty!r}: give a number of at least 0, or None for that of noisy labels"
        )
    if not released.counts.sum() > 0:
        raise InputError("no label was released, so there is nothing to learn from")
    if np.ndim(noise) == 0 and not 0 <= noise * labels < labels - 1:
        raise InputError(
            f"lie = {float(noise):.6g} of {labels} labels: a released label says nothing about the true one; "
            f"give a probability below {labels - 1}/{labels}"
        )
    law = channel(labels, float(noise)) if np.ndim(noise) == 0 else np.asarray(noise, float)
    if uninformative(law):
        raise InputError(
            "the law of released labels is the same for all true labels: nothing can be learnt; give more epsilon"
        )
    rows, inside = released.inside() if isinstance(released, Bags) else (None, released)
    weight = 1.0
    if weights is not None:
        inside = replace(inside, counts=released.counts * weights[:, None])  # type: ignore[type-var]
        weight = float(inside.counts.sum() / released.counts.sum())
    begin = start_of(released, law, weights)
    chosen = penalty_of(law, int(varying(x).sum())) if penalty is None else Penalty(penalty)
    return Regression(labels, chosen).fit(x, lambda scores: forward(scores, inside, law), begin, rows, weight)


def uninformative(law: Array) -> bool:
    """Return whether all columns of a law (k, k) are the same, to rounding."""
    return bool(np.allclose(law, law[:, :1], rtol=0, atol=1e-12))


def match_reports(x: Array, evidence: Evidence) -> Regression:
    """Return the logistic regression fitted to single reports, by the loss ``from_likelihoods``.

    x (n, d): features of all users.  The penalty is ``of_noisy``, unless each report says what the label is.  Raises
    InputError if there is no report, and if none says anything.
    """
    likelihood = _checked(evidence)
    labels = likelihood.shape[1]
    begin = np.full(labels, 1 / labels)  # as in start_of
    rows = evidence.rows(x)
    certain = np.count_nonzero(likelihood) == len(likelihood)
    penalty = OF_LABELS if certain else of_noisy(int(varying(rows).sum()))
    return Regression(labels, penalty).fit(rows, lambda scores: _from_scaled(scores, likelihood), begin)


def likelihoods_and_shares(evidence: Evidence) -> tuple[Array, Array]:
    """Return likelihoods (m, k), of which the largest of each report is 1, and label shares (k,) that make them likely.

    No share is below about 0.01.  Raises InputError if there is no report, and if none says anything.
    """
    likelihood = _checked(evidence)
    return likelihood, likeliest_shares(likelihood, np.full(len(likelihood), 1 / len(likelihood)))


def _checked(evidence: Evidence) -> Array:
    """Return likelihoods (m, k), of which the largest of each report is 1; raises InputError as ``match_reports``."""
    if not len(evidence.users):
        raise InputError("no label was released, so there is nothing to learn from")
    if evidence.uninformative:
        raise InputError("no report says anything about the true label, so there is nothing to learn from")
    return _scaled(evidence.likelihood)
