"""A model corrected for the label noise: it knows how often users lie, and whose label a released one may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.learning.training import label_assignment
from p2p_sim.learning.training.evaluation import Comparison
from p2p_sim.learning.training.losses import Bags, Released, match
from p2p_sim.network.walks import stepping
from p2p_sim.privacy.registry import LabelNoise, label_noise
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


def beside(found: Comparison, run: RunRecord, people: Population, x_test: Array, y_test: Array) -> Comparison:
    """Add the test accuracy of the corrected model to a comparison, if the run's protocol has one.

    It has none if it does not declare its label noise, or if senders are known and never lie.  ``note`` says if the
    correction is impossible, or if users lied in ways that it does not know.
    """
    noise = None if run.source is None else label_noise(run.source)
    if noise is None or (noise.whose == "sender" and not noise.lie):
        return found
    labels, accuracy, notes = released(label_assignment.returned(run), people, noise), None, [found.note]
    if labels is None:
        long_walks = "walks this long are not followed back: no model is corrected for them"
        anyone = "a label may be anybody's: no model is corrected for that"
        notes.append(long_walks if noise.whose == "walk" else anyone)
    elif noise.lie * noise.labels >= noise.labels - 1:
        notes.append("the released labels say nothing of the true ones: no model is corrected for that")
    elif labels.counts.any():
        assert people.x is not None
        model = match(people.x, labels, noise.lie)
        accuracy = float(np.mean(model.predict(x_test) == y_test))
        notes += [] if model.converged else ["the corrected model did not converge"]
        notes += ["the corrected model is a logistic regression"] * (found.model != "logistic-regression")
        unknown = "the correction does not know of users who lie beyond the protocol"
        notes += [unknown] * bool(len(run.faulty.get("lied", ())))
    made_up = KNOWLEDGE.get(noise.whose, []) + [CORRECTED_FOR_LIES] * bool(noise.lie)
    note = "; ".join(filter(None, notes))
    return replace(found, accuracy_corrected=accuracy, correction=", ".join(made_up), note=note)
