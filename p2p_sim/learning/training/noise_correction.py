"""A model corrected for the label noise: it knows how often users lie, and whose label a released one may be.

The loss itself is ``losses.forward``.  How labels came about a mechanism registers as ``privacy.LabelNoise``: by
``lie`` (uniform), by ``matrix``, a label randomization matrix for all users, or by ``reports``, a function of the
learner's output and the users that returns ``Evidence``: what each report says of each label.  Matrices per user or
cluster make one, for example (1 - beta) I + beta 1 q^T with a q of each cluster:
``ResamplingMatrices(beta, q, group=cluster_of_each_user).evidence(columns["sender"], columns["y"])``.  Its
``likelihood`` is what the forward loss needs, and its ``unbiased()`` gives the weights of the backward one.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.learning.training import evaluation, label_assignment
from p2p_sim.learning.training.evaluation import Comparison, QueryRows
from p2p_sim.learning.training.losses import (
    LEAST,
    OF_LABELS,
    Bags,
    Regression,
    Released,
    exact,
    law_of,
    match,
    match_reports,
    says_nothing,
    scales,
    starting_shares,
)
from p2p_sim.learning.training.metrics import Metrics, measure
from p2p_sim.network.walks import stepping
from p2p_sim.privacy.registered import label_noise
from p2p_sim.privacy.registry import LabelNoise
from p2p_sim.rundir.run_record import RunRecord

Array = npt.NDArray[Any]

MAX_WALK_STEPS = 30_000_000
"""Walks are not traced back beyond this many steps times neighbours of all users: about 0.1 s an evaluation."""


@dataclass(frozen=True)
class Origins:
    """Labels by reporter, ``counts`` (n, k); ``mean`` and ``back`` as in ``losses.Released``.

    ``origins``: two functions: the mean of users' values over the users whose label a reporter's may be, and its
    transpose.
    """

    counts: Array
    origins: tuple[Callable[[Array], Array], Callable[[Array], Array]]

    def mean(self, single: Array) -> Array:
        """Return for each reporter the mean over the users whose label hers may be."""
        return self.origins[0](single)

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``."""
        return self.origins[1](rows)


def short(graph: Members, steps: int) -> bool:
    """Return whether walks are short enough to be traced back."""
    pairs = len(graph.codes) if graph.complete else int(graph.starts[-1])
    return steps * pairs <= MAX_WALK_STEPS


def of_neighbours(graph: Members, counts: Array) -> Origins:
    """Return labels that are each the label of a random neighbour of their reporter."""
    ahead, back = stepping(graph, 1)
    return Origins(counts, (back, ahead))


def of_walks(graph: Members, steps: int, counts: Array) -> Origins:
    """Return labels that walked: one started at each user and ended at its reporter after ``steps`` steps.

    A label that ended at v is u's with probability P_t(u, v) / sum over all w of P_t(w, v).
    """
    ahead, back = stepping(graph, steps)
    ended = ahead(np.ones(len(counts)))[:, None]  # labels that end at each user, on average
    return Origins(counts, (lambda single: ahead(single) / ended, lambda rows: back(rows / ended)))


@dataclass(frozen=True)
class Fitted:
    """A corrected model.  ``correlation``: of two labels of a cluster beyond what features explain, in [0, 1].

    ``astray``: whether clusters differ by more than features and chance explain.  ``constant``: whether features tell
    nothing of how clusters differ, so that the model is constant.
    """

    model: Regression
    correlation: float = 0.0
    astray: bool = False
    constant: bool = False

    def notes(self, noise: LabelNoise) -> list[str]:
        """Return what the model assumes, whether that is in doubt, and whether it is of use, in words."""
        notes = doubts(self.model)
        if noise.whose != "cluster":
            return notes
        notes.append(ASSUMED)
        if self.astray:
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
    """Return that a corrected model did not converge, and that it is constant, if so, in words."""
    notes = [] if model.converged else ["the corrected model did not converge"]
    return notes + ([TOO_LITTLE] if model.flat else [])


ROUNDS = 4
"""How often the correlation and the model are estimated in turn; they settle in two or three."""

ASTRAY = 1e-3
"""The probability that chance makes clusters differ so much from the model that a note says so."""

TELLING = 0.05
"""The probability that features seem to explain how clusters differ, where they do not."""

FREE = OF_LABELS.weights
"""The penalty of models whose misfit is tested: a stronger one holds back weights that degrees of freedom count."""

RESAMPLED = 2.0
"""Labels of random peers vary at most twice as much as labels of their own: as users differ, and by the draw."""


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
        """Return how many weights of a class, with the constant, the mean features of bags with labels can tell."""


@dataclass(frozen=True)
class _InMemory:
    """Features x (n, d) and labels of bags."""

    x: Array
    labels: Bags

    @property
    def counts(self) -> Array:
        return self.labels.counts

    @property
    def alone(self) -> bool:
        return bool(np.bincount(self.labels.bag).max() == 1)

    def match(self, law: Array, weights: Array | None = None, penalty: float | None = None) -> Regression:
        return match(self.x, self.labels, law, weights, penalty=penalty)

    def constant(self, law: Array, weights: Array) -> Regression:
        shares = starting_shares(self.labels, law, weights)
        return Regression(self.counts.shape[1]).constant(self.x, shares)

    def means(self, model: Regression) -> Array:
        return self.labels.mean(model.probabilities(self.x))

    def rank(self) -> int:
        some: Array = self.counts.sum(axis=1) > 0
        scaled = (self.x - self.x.mean(axis=0)) / scales(self.x)
        means = self.labels.mean(np.concatenate([scaled, np.ones((len(self.x), 1))], axis=1))
        return int(np.linalg.matrix_rank(means[some]))


def fit(x: Array, labels: Released, noise: LabelNoise) -> Fitted:
    """Return the model corrected for lies, of features x (n, d); of clusters, see ``fit_bags``."""
    if noise.whose != "cluster" or not isinstance(labels, Bags):
        return Fitted(match(x, labels, law_of(noise)))
    return fit_bags(_InMemory(x, labels), law_of(noise))


def fit_bags(examples: BagExamples, law: Array) -> Fitted:
    """Return the model of labels known by cluster; where clusters differ beyond what features explain, they weigh less.

    If two labels of a cluster have a correlation rho that features do not explain, the number of each value
    among its n labels has variance n p (1 - p) (1 + (n - 1) rho), and its labels weigh 1 / (1 + (n - 1) rho).  rho is
    estimated from the misfit of the model, in turn with the model.  Then, if the model does not explain more of how
    clusters differ than chance would (F test), it is replaced by a constant.  None of that is done unless clusters
    outnumber the weights that they can tell: a model that fits every cluster shows no misfit.  The models of these
    tests have the penalty ``FREE``; of noisy labels the one that is returned then has that of ``losses.penalty_of``.

    *Source:* Williams 1982 (the moment estimate of rho from Pearson's chi-square).
    *Assumes:* given the features, a label depends on the cluster only by an effect that goes with no feature.
    """
    if examples.alone:  # labels of known users
        return Fitted(examples.match(law))
    some, rank = examples.counts.sum(axis=1) > 0, examples.rank()
    free = int(some.sum()) - rank
    if free < 1:
        return Fitted(examples.match(law))
    first = examples.match(law, penalty=FREE)
    off = _misfit(examples.means(first), examples.counts, law)
    model, weights, rho = _weighed(examples, law, first, off, free / some.sum())
    others = len(law) - 1
    astray = bool(chdtrc(others * free, others * off.sum() / RESAMPLED) < ASTRAY)
    flat = examples.constant(law, weights)
    left, whole = (weights @ _misfit(examples.means(each), examples.counts, law) for each in (model, flat))
    ratio = max(whole - left, 0.0) / max(rank - 1, 1) / (left / free) if left else np.inf
    if rank > 1 and fdtrc(others * (rank - 1), others * free, ratio) > TELLING:
        return Fitted(flat, rho, astray, constant=True)
    return Fitted(model if exact(law) else examples.match(law, weights), rho, astray)


def _weighed(
    examples: BagExamples, law: Array, first: Regression, off: Array, free: float
) -> tuple[Regression, Array, float]:
    """Return a model, the weight of each cluster's labels, and their correlation, starting from the ``first`` model.

    ``off`` (b,): the misfit of that one; ``free``: the share of clusters' misfit that fitting leaves on average.
    """
    size = examples.counts.sum(axis=1)
    further = np.maximum(size - 1, 0)
    model, weights, rho = first, np.ones(len(size)), 0.0
    for each in range(ROUNDS):
        left = free * weights * (size > 0)
        spread = float(left @ further)
        off = off if not each else _misfit(examples.means(model), examples.counts, law)
        excess = float(weights @ off - left.sum())
        rho = min(max(excess / spread, 0.0), 1.0) if spread else 0.0
        if not rho:
            return first, np.ones(len(size)), 0.0
        weights = 1 / (1 + further * rho)
        model = examples.match(law, weights, penalty=FREE)
    return model, weights, rho


def _misfit(means: Array, counts: Array, law: Array) -> Array:
    """Return Pearson's chi-square of each cluster's labels (b,), divided by its degrees of freedom, k - 1.

    ``means`` (b, k): of the probabilities of its users' true labels.
    """
    size = counts.sum(axis=1)[:, None]
    expected = size * np.maximum(means @ law.T, LEAST)
    off = np.divide((counts - expected) ** 2, expected, out=np.zeros_like(expected), where=size > 0)
    return np.asarray(off.sum(axis=1) / (len(law) - 1))


CORRECTED_FOR_LIES = "corrected for lies"
KNOWLEDGE = {
    "cluster": ["matched by cluster"],
    "neighbours": ["matched by neighbours"],
    "walk": ["followed back"],
}
"""What a corrected model knows about whose label a released one may be."""


def released(columns: dict[str, Array], people: Population, noise: LabelNoise) -> Released | None:
    """Return a learner's labels with whose they may be; None if they may be anybody's, or if walks are too long.

    ``columns``: y, and sender or cluster.  A cluster's label is spread over all users of the cluster: assigned to one
    user, it would mostly have the wrong features.  A label that may be anybody's says nothing about features.
    """
    y, sender, graph = columns["y"].astype(np.int64), columns.get("sender"), people.graph
    users: Array | None = sender
    bag: Array = np.arange(people.users)
    if noise.whose == "cluster":
        bag = np.zeros(people.users, np.int64) if people.clusters is None else people.clusters.codes
        users = label_assignment.codes(people, columns["cluster"]) if sender is None else bag[sender]
    over_graph = noise.whose in ("neighbours", "walk")
    if users is None or noise.whose == "everybody" or (over_graph and graph is None):
        return None
    counts = np.zeros((int(bag.max()) + 1, noise.labels))
    np.add.at(counts, (users, y), 1.0)
    if graph is None or not over_graph:
        return Bags(bag, counts)
    if noise.whose == "neighbours":
        return of_neighbours(graph, counts)
    return of_walks(graph, noise.steps, counts) if short(graph, noise.steps) else None


@dataclass(frozen=True)
class _Corrected:
    """A corrected model, None if there is none, and what to know of it."""

    model: Regression | None
    notes: list[str]


def beside(
    found: Comparison,
    run: RunRecord,
    people: Population,
    x_test: Array,
    y_test: Array,
    queries: QueryRows | None = None,
) -> Comparison:
    """Add the test accuracy of the corrected model to a comparison, if the run's protocol has one.

    ``queries``: what else it predicts.

    It has none if it does not declare its label noise, or if senders are known and never lie.  ``note`` says if the
    correction is impossible, or if users lied in ways that it does not know.
    """
    noise = None if run.source is None else label_noise(run.source)
    if noise is None or (noise.whose == "sender" and not noise.randomizes):
        return found
    columns = label_assignment.returned(run)
    made = (
        _by_counts(columns, people, noise) if noise.reports is None else _by_reports(columns, people, noise)
    )
    if queries is not None and made.model is not None:
        queries.predicted["accuracy_corrected"] = made.model.predicted(queries.x)
    lied = len(run.faulty.get("lied", ()))
    return with_corrected(found, noise, made.model, x_test, y_test, made.notes, lied)


def with_corrected(
    found: Comparison,
    noise: LabelNoise,
    model: Regression | None,
    x_test: Array,
    y_test: Array,
    notes: list[str],
    lied: int,
) -> Comparison:
    """Add a corrected model to a comparison, or why there is none; ``lied``: users who lied beyond the protocol."""
    accuracy, metrics = None, dict[str, Metrics]()
    if model is not None:
        predicted = model.predicted(x_test)
        accuracy = evaluation.accuracy(y_test, predicted)
        metrics["accuracy_corrected"] = measure(y_test, predicted)
        notes = notes + ["the corrected model is a logistic regression"] * (
            found.model != "logistic-regression"
        )
        unknown = "the correction does not know of users who lie beyond the protocol"
        notes += [unknown] * bool(lied)
    made_up = KNOWLEDGE.get(noise.whose, []) + [CORRECTED_FOR_LIES] * noise.randomizes
    corrected = replace(
        found, accuracy_corrected=accuracy, correction=", ".join(made_up), metrics=found.metrics | metrics
    )
    return corrected.with_notes(*notes)


ANYBODY = "a label may be anybody's: no model is corrected for that"
NOTHING_SAID = "the released labels say nothing of the true ones: no model is corrected for that"


def _by_counts(columns: dict[str, Array], people: Population, noise: LabelNoise) -> _Corrected:
    """Return the model of labels whose noise is the same for all."""
    labels = released(columns, people, noise)
    if labels is None:
        long_walks = "walks this long are not followed back: no model is corrected for them"
        return _Corrected(None, [long_walks if noise.whose == "walk" else ANYBODY])
    if noise.lie * noise.labels >= noise.labels - 1 or says_nothing(law_of(noise)):
        return _Corrected(None, [NOTHING_SAID])
    if not labels.counts.any():
        return _Corrected(None, [])
    assert people.x is not None
    fitted = fit(people.x, labels, noise)
    return _Corrected(fitted.model, fitted.notes(noise))


def _by_reports(columns: dict[str, Array], people: Population, noise: LabelNoise) -> _Corrected:
    """Return the model of reports of which each says something of its own."""
    assert noise.reports is not None
    if "sender" not in columns:
        return _Corrected(
            None, ["reports came without the users who sent them: no model is corrected for noise"]
        )
    if not len(columns["sender"]):
        return _Corrected(None, [])
    try:
        evidence = noise.reports(columns, people)
    except InputError as error:
        return _Corrected(None, [f"no model is corrected for noise: {error}"])
    if evidence.says_nothing:
        return _Corrected(None, [NOTHING_SAID])
    assert people.x is not None
    model = match_reports(people.x, evidence)
    return _Corrected(model, [*doubts(model), evidence.note])
