"""A corrected model of labels known by cluster, where labels may depend on the cluster beyond the features.

Labels of such a cluster say less than as many independent ones: they are overdispersed, and weigh less.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc

from p2p_sim.learning.training.losses import (
    LEAST,
    OF_LABELS,
    Bags,
    Regression,
    exact,
    match,
    scales,
    starting_shares,
)
from p2p_sim.privacy.registry import LabelNoise

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Fitted:
    """A corrected model.  ``correlation``: intraclass, of two labels of a cluster given their features, in [0, 1].

    ``overdispersed``: whether clusters differ by more than features and chance explain.  ``constant``: whether a
    constant stands in place of the model, as the features do not explain how clusters differ.
    """

    model: Regression
    correlation: float = 0.0
    overdispersed: bool = False
    constant: bool = False

    def notes(self, noise: LabelNoise) -> list[str]:
        """Return notes: what the model assumes, whether the labels contradict that, and whether it is constant."""
        notes = doubts(self.model)
        if noise.whose != "cluster":
            return notes
        notes.append(ASSUMED)
        if self.overdispersed:
            notes.append(
                f"here they do (correlation within a cluster {self.correlation:.2g}), so its labels weigh less"
            )
        return notes + ([FLAT] if self.constant else [])


ASSUMED = "matching by cluster assumes that, given the features, labels do not depend on the cluster"
TOO_LITTLE = (
    "what was released does not tell how labels go with features, so the corrected model is constant: more epsilon or "
    "more users may help"
)
FLAT = "the features do not tell how the clusters' labels differ, so the corrected model is constant"


def doubts(model: Regression) -> list[str]:
    """Return notes: that a corrected model did not converge, and that it is constant, where that is so."""
    notes = [] if model.converged else ["the corrected model did not converge"]
    return notes + ([TOO_LITTLE] if model.flat else [])


ROUNDS = 4
"""How often the correlation and the model are estimated in turn; they converge in two or three."""

OVERDISPERSION_LEVEL = 1e-3
"""Significance level of the chi-square test for overdispersion, which a note reports."""

F_TEST_LEVEL = 0.05
"""Significance level of the F test; a model that does not pass it is replaced by a constant."""

TEST_PENALTY = OF_LABELS.weights
"""The penalty of models that are tested: a stronger one holds back weights that the degrees of freedom count."""

RESAMPLING_VARIANCE = 2.0
"""Labels of random peers vary at most this many times as much as a cluster's own: users differ, and so do draws."""


class BagExamples(typing.Protocol):
    """Examples whose labels are known by bag, in memory or read in batches.

    ``counts`` (b, k): the labels of each bag; ``alone``: whether no bag has more than one user.
    """

    @property
    def counts(self) -> Array:
        """Return the counts."""

    @property
    def alone(self) -> bool:
        """Return whether all bags have one user."""

    def match(self, law: Array, weights: Array | None = None, penalty: float | None = None) -> Regression:
        """Return the model fitted to the labels, those of each bag with a weight (b,); see ``losses.match``."""

    def constant(self, law: Array, weights: Array) -> Regression:
        """Return the constant model of the released shares, noise undone."""

    def means(self, model: Regression) -> Array:
        """Return the mean (b, k) of the probabilities that a model gives to the users of each bag."""

    def rank(self) -> int:
        """Return the rank of the mean features, with a constant, of bags with labels: the weights they determine."""


@dataclass(frozen=True)
class InMemoryBags:
    """``BagExamples`` in memory: features x (n, d) of users, and labels by bag."""

    x: Array
    labels: Bags

    @property
    def counts(self) -> Array:
        """Return the labels of each bag."""
        return self.labels.counts

    @property
    def alone(self) -> bool:
        """Return whether all bags have one user."""
        return bool(np.bincount(self.labels.bag).max() == 1)

    def match(self, law: Array, weights: Array | None = None, penalty: float | None = None) -> Regression:
        """Return ``losses.match`` of them."""
        return match(self.x, self.labels, law, weights, penalty=penalty)

    def constant(self, law: Array, weights: Array) -> Regression:
        """Return the constant model of the released shares, noise undone."""
        shares = starting_shares(self.labels, law, weights)
        return Regression(self.counts.shape[1]).constant(self.x, shares)

    def means(self, model: Regression) -> Array:
        """Return the mean (b, k) of the probabilities that a model gives to the users of each bag."""
        return self.labels.mean(model.probabilities(self.x))

    def rank(self) -> int:
        """Return the rank of the mean features, with a constant, of bags with labels."""
        some: Array = self.counts.sum(axis=1) > 0
        scaled = (self.x - self.x.mean(axis=0)) / scales(self.x)
        means = self.labels.mean(np.concatenate([scaled, np.ones((len(self.x), 1))], axis=1))
        return int(np.linalg.matrix_rank(means[some]))


def fit_bags(examples: BagExamples, law: Array) -> Fitted:
    """Return the model of labels known by cluster; labels of overdispersed clusters weigh less.

    If two labels of a cluster have a correlation rho that features do not explain, the number of each value
    among its n labels has variance n p (1 - p) (1 + (n - 1) rho), and its labels weigh 1 / (1 + (n - 1) rho).  rho and
    the model are estimated in turn.  If the model then explains no more of how clusters differ than chance would
    (F test), it is replaced by a constant.  None of that is done where there are no more clusters than weights: such a
    model fits every cluster, so that nothing is left to test.  The models of the tests have the penalty
    ``TEST_PENALTY``; of noisy labels, the one that is returned is fitted again, with that of ``losses.penalty_of``.

    *Source:* Williams 1982 (the moment estimate of rho from Pearson's chi-square).
    *Assumes:* given the features, a label depends on the cluster only by an effect that goes with no feature.
    """
    if examples.alone:  # labels of known users
        return Fitted(examples.match(law))
    some, rank = examples.counts.sum(axis=1) > 0, examples.rank()
    freedom = int(some.sum()) - rank
    if freedom < 1:
        return Fitted(examples.match(law))
    first = examples.match(law, penalty=TEST_PENALTY)
    misfit = _misfit(examples.means(first), examples.counts, law)
    model, weights, rho = _reweighted(examples, law, first, misfit, freedom / some.sum())
    others = len(law) - 1
    p_value = chdtrc(others * freedom, others * misfit.sum() / RESAMPLING_VARIANCE)
    overdispersed = bool(p_value < OVERDISPERSION_LEVEL)
    constant = examples.constant(law, weights)
    residual, total = (
        weights @ _misfit(examples.means(each), examples.counts, law) for each in (model, constant)
    )
    ratio = max(total - residual, 0.0) / max(rank - 1, 1) / (residual / freedom) if residual else np.inf
    if rank > 1 and fdtrc(others * (rank - 1), others * freedom, ratio) > F_TEST_LEVEL:
        return Fitted(constant, rho, overdispersed, constant=True)
    return Fitted(model if exact(law) else examples.match(law, weights), rho, overdispersed)


def _reweighted(
    examples: BagExamples, law: Array, first: Regression, misfit: Array, freedom: float
) -> tuple[Regression, Array, float]:
    """Return a model, the weight of each cluster's labels, and their correlation, starting from the ``first`` model.

    ``misfit`` (b,): of that one; ``freedom``: degrees of freedom a cluster, which is its expected misfit.
    """
    size = examples.counts.sum(axis=1)
    further = np.maximum(size - 1, 0)
    model, weights, rho = first, np.ones(len(size)), 0.0
    for each in range(ROUNDS):
        expected = freedom * weights * (size > 0)
        spread = float(expected @ further)
        if each:
            misfit = _misfit(examples.means(model), examples.counts, law)
        excess = float(weights @ misfit - expected.sum())
        rho = min(max(excess / spread, 0.0), 1.0) if spread else 0.0
        if not rho:
            return first, np.ones(len(size)), 0.0
        weights = 1 / (1 + further * rho)
        model = examples.match(law, weights, penalty=TEST_PENALTY)
    return model, weights, rho


def _misfit(means: Array, counts: Array, law: Array) -> Array:
    """Return Pearson's chi-square of each cluster's labels (b,), divided by its degrees of freedom, k - 1.

    ``means`` (b, k): of the probabilities of its users' true labels.
    """
    size = counts.sum(axis=1)[:, None]
    expected = size * np.maximum(means @ law.T, LEAST)
    terms = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(expected), where=size > 0)
    return np.asarray(terms.sum(axis=1) / (len(law) - 1))
