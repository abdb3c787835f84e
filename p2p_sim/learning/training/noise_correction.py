"""A model corrected for the label noise: it knows how often users lie, and whose label a released one may be.

The loss is ``losses.forward``; where labels are known by cluster, ``cluster_effects`` also fits their correlation.

The noise is what the mechanism registers as ``privacy.LabelNoise``: the probability of a uniform ``lie``; or a
``matrix``, the label randomization matrix of all users; or ``reports``, a function of the learner's output and the
users that returns ``Evidence``, the likelihood of each report for each label.  Matrices of each user or cluster make
such evidence.  For (1 - beta) I + beta 1 q^T with a q of each cluster it is
``ResamplingMatrices(beta, q, group=cluster_of_each_user).evidence(columns["sender"], columns["y"])``.
Its ``likelihood`` is what the forward loss needs; its ``unbiased()`` gives the weights of the backward loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population
from p2p_sim.learning.training import cluster_effects, evaluation, label_assignment, label_origins
from p2p_sim.learning.training.cluster_effects import Fitted, InMemoryBags
from p2p_sim.learning.training.evaluation import Comparison, QueryRows
from p2p_sim.learning.training.losses import (
    Bags,
    Regression,
    Released,
    law_of,
    match,
    match_reports,
    uninformative,
)
from p2p_sim.learning.training.metrics import Metrics, measure
from p2p_sim.privacy.registered import label_noise
from p2p_sim.privacy.registry import LabelNoise
from p2p_sim.rundir.run_record import RunRecord

Array = npt.NDArray[Any]

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
        return label_origins.of_neighbours(graph, counts)
    if not label_origins.short(graph, noise.steps):
        return None
    return label_origins.of_walks(graph, noise.steps, counts)


def fit(x: Array, labels: Released, noise: LabelNoise) -> Fitted:
    """Return the model corrected for lies, of features x (n, d); of clusters, see ``cluster_effects.fit_bags``."""
    if noise.whose != "cluster" or not isinstance(labels, Bags):
        return Fitted(match(x, labels, law_of(noise)))
    return cluster_effects.fit_bags(InMemoryBags(x, labels), law_of(noise))


@dataclass(frozen=True)
class _Corrected:
    """A corrected model, None if there is none, and notes on it."""

    model: Regression | None
    notes: list[str]


def add_corrected(
    comparison: Comparison,
    run: RunRecord,
    people: Population,
    x_test: Array,
    y_test: Array,
    queries: QueryRows | None = None,
) -> Comparison:
    """Return a comparison with the test accuracy of the corrected model, if the run's protocol has one.

    It has none if it does not declare its label noise, or if senders are known and never lie.  A note says if the
    correction is impossible, or if users lied in ways that it does not know.  ``queries``: further rows, of which the
    model's predictions are added to ``queries.predicted``.
    """
    noise = None if run.source is None else label_noise(run.source)
    if noise is None or (noise.whose == "sender" and not noise.randomizes):
        return comparison
    columns = label_assignment.returned(run)
    made = (
        _by_counts(columns, people, noise) if noise.reports is None else _by_reports(columns, people, noise)
    )
    if queries is not None and made.model is not None:
        queries.predicted["accuracy_corrected"] = made.model.predicted(queries.x)
    lied = len(run.faulty.get("lied", ()))
    return with_corrected(comparison, noise, made.model, x_test, y_test, made.notes, lied)


def with_corrected(
    comparison: Comparison,
    noise: LabelNoise,
    model: Regression | None,
    x_test: Array,
    y_test: Array,
    notes: list[str],
    lied: int,
) -> Comparison:
    """Return a comparison with a corrected model, or with the notes on why there is none.

    ``lied``: how many users lied beyond the protocol.
    """
    accuracy, metrics = None, dict[str, Metrics]()
    if model is not None:
        predicted = model.predicted(x_test)
        accuracy = evaluation.accuracy(y_test, predicted)
        metrics["accuracy_corrected"] = measure(y_test, predicted)
        notes = notes + ["the corrected model is a logistic regression"] * (
            comparison.model != "logistic-regression"
        )
        unknown = "the correction does not know of users who lie beyond the protocol"
        notes += [unknown] * bool(lied)
    correction = KNOWLEDGE.get(noise.whose, []) + [CORRECTED_FOR_LIES] * noise.randomizes
    corrected = replace(
        comparison,
        accuracy_corrected=accuracy,
        correction=", ".join(correction),
        metrics=comparison.metrics | metrics,
    )
    return corrected.with_notes(*notes)


OWNERS_UNKNOWN = "a label may be anybody's: no model is corrected for that"
UNINFORMATIVE = "the released labels say nothing of the true ones: no model is corrected for that"


def _by_counts(columns: dict[str, Array], people: Population, noise: LabelNoise) -> _Corrected:
    """Return the model of labels whose noise is the same for all."""
    labels = released(columns, people, noise)
    if labels is None:
        long_walks = "walks this long are not followed back: no model is corrected for them"
        return _Corrected(None, [long_walks if noise.whose == "walk" else OWNERS_UNKNOWN])
    if noise.lie * noise.labels >= noise.labels - 1 or uninformative(law_of(noise)):
        return _Corrected(None, [UNINFORMATIVE])
    if not labels.counts.any():
        return _Corrected(None, [])
    assert people.x is not None
    fitted = fit(people.x, labels, noise)
    return _Corrected(fitted.model, fitted.notes(noise))


def _by_reports(columns: dict[str, Array], people: Population, noise: LabelNoise) -> _Corrected:
    """Return the model of reports of which each has a noise of its own."""
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
    if evidence.uninformative:
        return _Corrected(None, [UNINFORMATIVE])
    assert people.x is not None
    model = match_reports(people.x, evidence)
    return _Corrected(model, [*cluster_effects.doubts(model), evidence.note])
