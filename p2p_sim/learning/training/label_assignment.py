"""Assigns labels that came without senders to the users of their cluster, so that a model can be trained on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.message import USER
from p2p_sim.core.population import Population
from p2p_sim.rundir.run_record import RunRecord

Array = npt.NDArray[Any]

NOTE = "labels came without senders: each cluster's were given to its users in the order of arrival"
RELEASED = "features were released with the labels, and the model is trained on these"
OTHER_FEATURES = "the features released with the labels are not as many as those of the data: no model"
NO_FEATURES = (
    "labels came without the users who sent them or their clusters, so they go with no features: no model"
)


@dataclass(frozen=True)
class Pairs:
    """Labels ``y`` and the rows of the ``users`` they are assigned to, (m,) each; ``note``: how they were assigned.

    ``x`` (m, d): features that were released with the labels; None: they are those of the users.
    """

    users: Array
    y: Array
    note: str
    x: Array | None = None

    def fits(self, people: Population) -> bool:
        """Whether the features that were released, if any, are as many as those of the users."""
        return self.x is None or people.x is None or self.x.shape[1] == people.x.shape[1]


def returned(run: RunRecord) -> dict[str, Array]:
    """Return the learner's output of a run; ``sender``: the row of each sender among its users, who may be a part.

    Without ``sender`` if the senders are servers, whose ids are all 0.
    """
    columns: dict[str, Array] = run.outputs.get("learner", {})
    kinds = [] if run.source is None else run.source.messages().values()
    from_servers = kinds and not any((kind.sender, kind.recipient) == (USER, "learner") for kind in kinds)
    if from_servers and "sender" in columns and not columns["sender"].any():
        return {name: column for name, column in columns.items() if name != "sender"}
    if "sender" in columns and run.population is not None and run.population.ids is not None:
        return columns | {"sender": run.population.rows_of(columns["sender"])}
    return columns


def pairs(columns: dict[str, Array], people: Population) -> Pairs | None:
    """Return a learner's labels, by ``sender`` or otherwise by ``cluster``; None without labels or either of these.

    ``columns``: as ``returned`` gives them.
    """
    y, whose = columns.get("y"), columns.get("sender", columns.get("cluster"))
    if y is None or whose is None or not whose.ndim == y.ndim == 1 or len(whose) != len(y):
        return None
    if "sender" not in columns:
        return assign(people, whose, y)
    x = columns.get("x")
    released = x is not None and x.ndim == 2 and len(x) == len(y)
    return Pairs(whose, y, RELEASED, x) if released else Pairs(whose, y, "")


def codes(people: Population, cluster: Array) -> Array | None:
    """Return the group number of each cluster number; None if a number is no cluster of these users."""
    members = people.clusters
    if members is None or members.labels is None:
        names = np.arange(1 if members is None else len(members.starts) - 1)
    else:
        names = members.labels  # of a part of a population too: all clusters there were, ascending
    code = np.minimum(np.searchsorted(names, cluster), len(names) - 1)
    return code if np.array_equal(names[code], cluster) else None


def assign(people: Population, cluster: Array, y: Array) -> Pairs | None:
    """Assign labels that are known by cluster to users; None if a label is of no cluster of these users.

    The k-th label of a cluster goes to its k-th user.  Clusters are public; whose label it is, is not known.  Labels in
    excess of a cluster's users are left out.

    *Source:* Clustering 2022, section 5.1: labels permuted within clusters, instead of resampled.
    """
    code = codes(people, cluster)
    if code is None:
        return None
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    starts, sorted_rows = _sorted_rows(people)
    kept = rank < np.diff(starts)[ordered]
    place = (starts[ordered] + rank)[kept]
    users = place if sorted_rows is None else sorted_rows[place]
    return Pairs(users.astype(np.int64), y[order][kept], NOTE)


def _sorted_rows(people: Population) -> tuple[Array, Array | None]:
    """Return where each cluster begins among rows sorted by cluster, and these rows; None: they are sorted."""
    members = people.clusters
    if members is None:
        return np.array([0, people.users]), None
    if people.ids is None:
        return members.starts, members.order
    sorted_rows = np.argsort(members.codes, kind="stable")  # the clusters' table is of the whole population
    return np.searchsorted(members.codes[sorted_rows], np.arange(len(members.starts))), sorted_rows
