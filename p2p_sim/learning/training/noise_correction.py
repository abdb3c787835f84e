"""A model that knows how the released labels came about: who lied how often, and whose label it may be."""

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

LONGEST = 30_000_000
"""Steps times neighbours of all users, beyond which labels are not followed back: a tenth of a second, each time."""


@dataclass(frozen=True)
class Origins:
    """Labels by who reported them, ``counts`` (n, k); ``mean`` and ``back`` as in ``losses.Released``.

    ``origins``: the map from values of users to their means over whose label each one's report may be, and its
    transpose.
    """

    counts: Array
    origins: tuple[Callable[[Array], Array], Callable[[Array], Array]]

    def mean(self, single: Array) -> Array:
        """Return for each reporter the mean over whose label hers may be."""
        return self.origins[0](single)

    def back(self, rows: Array) -> Array:
        """Return the transpose of ``mean``."""
        return self.origins[1](rows)


def short(graph: Members, steps: int) -> bool:
    """Whether walks are short enough to be followed back."""
    pairs = len(graph.codes) if graph.complete else int(graph.starts[-1])
    return steps * pairs <= LONGEST


def of_neighbours(graph: Members, counts: Array) -> Origins:
    """Return labels each of which is that of a random neighbour of its reporter."""
    ahead, back = stepping(graph, 1)
    return Origins(counts, (back, ahead))


def of_walks(graph: Members, steps: int, counts: Array) -> Origins:
    """Return labels of which one began at every user, and ended at its reporter after so many steps.

    A label that ended at v is u's with probability P_t(u, v) / sum over all w of P_t(w, v).
    """
    ahead, back = stepping(graph, steps)
    ended = ahead(np.ones(len(counts)))[:, None]  # labels that end at each user, on average
    return Origins(counts, (lambda single: ahead(single) / ended, lambda rows: back(rows / ended)))


LIES = "corrected for lies"
KNOWN = {
    "cluster": ["matched by cluster"],
    "neighbours": ["matched by neighbours"],
    "walk": ["followed back"],
}
"""What a corrected model knows of whose labels may be."""


def released(columns: dict[str, Array], people: Population, noise: LabelNoise) -> Released | None:
    """Return the labels that a learner has, with whose they may be; None where labels are everybody's.

    ``columns``: y, and sender or cluster.  A label of a cluster says as much of each of its users: dealing it to one of
    them, to whom it most likely does not belong, blurs what sets users of a cluster apart.  None also where a walk is
    too long to be followed back; labels that may be everybody's say nothing of anybody's features.
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
    """Return a comparison with the test accuracy of the corrected model, where the run's protocol has one.

    There is none for a protocol that does not say how its labels came about, or whose senders never lie.  Where the
    correction is impossible, or users lied whom it does not know of, ``note`` says so.
    """
    noise = None if run.source is None else label_noise(run.source)
    if noise is None or (noise.whose == "sender" and not noise.lie):
        return found
    told, accuracy, notes = released(label_assignment.returned(run), people, noise), None, [found.note]
    if told is None:
        walked = "walks this long are not followed back: no model is corrected for them"
        anybody = "a label may be anybody's: no model is corrected for that"
        notes.append(walked if noise.whose == "walk" else anybody)
    elif noise.lie * noise.labels >= noise.labels - 1:
        notes.append("the released labels say nothing of the true ones: no model is corrected for that")
    elif told.counts.any():
        assert people.x is not None
        model = match(people.x, told, noise.lie)
        accuracy = float(np.mean(model.predict(x_test) == y_test))
        notes += [] if model.converged else ["the corrected model did not converge"]
        notes += ["the corrected model is a logistic regression"] * (found.model != "logistic-regression")
        unknown = "the correction does not know of users who lie beyond the protocol"
        notes += [unknown] * bool(len(run.faulty.get("lied", ())))
    made_up = KNOWN.get(noise.whose, []) + [LIES] * bool(noise.lie)
    note = "; ".join(filter(None, notes))
    return replace(found, accuracy_corrected=accuracy, correction=", ".join(made_up), note=note)
