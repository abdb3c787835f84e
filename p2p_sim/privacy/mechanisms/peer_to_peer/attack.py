"""What reports of peers' noisy labels say of each label, to whoever knows how labels are made.

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.mechanism_parts.label_groups import Ints, clusters_of, of_rows
from p2p_sim.privacy.mechanism_parts.label_reports import (
    check_nothing_missing,
    check_prior_rows,
    members,
    readable,
    rows_of,
)
from p2p_sim.privacy.mechanism_parts.linked_reports import linked
from p2p_sim.privacy.mechanism_parts.noisy_crowds import (
    UNKNOWN,
    Crowds,
    drawn,
    histograms,
    known_labels,
    of_crowds,
)
from protocols import PeerToPeer

SOURCE = "Clustering 2022, Algorithm 2: each report is the noisy label of a random user of the cluster"


def attack(protocol: PeerToPeer, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what a view learns: whose noisy label it read, or can tell a report from, and of the rest their number.

    A report whose source the view cannot tell is the noisy label of a uniform user of the cluster, but of no colluder:
    these know who asked them.  So, given that K of the others said 1, their reports are independent with P(1) = K over
    the others.  More than two labels in large crowds: "lower", of each user only how often her likeliest answer came.

    Over neighbours in a graph that is not complete, of reports whose source is not known: "lower".

    *Assumes:* messages may be lost, but each like any other: nobody is silent throughout.
    """
    check_nothing_missing(view)
    check_prior_rows(view, eta, protocol.labels)
    labels, reports = readable(view, "label"), readable(view, "report")
    source = linked(view, "label", reports["sender"])
    whose = source >= 0
    known = known_labels(view, (labels["sender"], labels["y_hat"]), (source[whose], reports["y"][whose]))
    matrix = channel(protocol.labels, protocol.alpha)
    if protocol.over != "cluster" and not whose.all() and not _complete(view):
        hidden = (rows_of(view, reports["sender"][~whose]), reports["y"][~whose].astype(np.int64))
        return _over_neighbours(view, eta, matrix, known, *hidden)
    of = clusters_of(view).codes.astype(np.int64)
    crowd = of[rows_of(view, reports["sender"][~whose])]
    seen = histograms(crowd, reports["y"][~whose], int(of.max()) + 1, protocol.labels)
    of[rows_of(view, members(view))] = -1
    return of_crowds(view, eta, matrix, Crowds(of, known, seen, drawn), SOURCE)


def _complete(view: View) -> bool:
    if view.graph is None:
        raise InputError(
            f"view = {view.name!r}: has no graph, so that nobody can tell whose neighbours report"
        )
    return view.graph.complete


def _over_neighbours(
    view: View, eta: Floats, matrix: Floats, known: Ints, reporters: Ints, said: Ints
) -> LabelLikelihoods:
    """Return what a single report says of each user whose answer is not known: "lower", for others say something, too.

    Of her neighbours' reports that of the one who may have asked the fewest.  It is each of their answers with the same
    chance.  ``reporters`` (m,): rows, and what they ``said``, of those of whom the view cannot tell whom they asked.
    """
    graph = view.graph
    assert graph is not None
    answers = eta @ matrix
    answers[known != UNKNOWN] = np.eye(len(matrix))[known[known != UNKNOWN]]
    asked = graph.pick(reporters).everybody()
    report = np.repeat(np.arange(len(reporters)), np.diff(asked[1]))
    peer = asked[0].astype(np.int64)
    honest = ~np.isin(peer, rows_of(view, members(view)))
    report, peer = report[honest], peer[honest]
    many = np.bincount(report, minlength=len(reporters))
    alike = answers[peer, said[report]]  # how likely her answer is what was reported
    total = np.bincount(report, alike, minlength=len(reporters))
    order = np.lexsort((many[report], peer))
    users, first = np.unique(peer[order], return_index=True)
    best = order[first]
    others = (total[report[best]] - alike[best]) / many[report[best]]
    chances = np.repeat(others[:, None], len(matrix), axis=1)
    chances[np.arange(len(users)), said[report[best]]] += 1 / many[report[best]]
    direct = np.flatnonzero(known != UNKNOWN)
    hidden = known[users] == UNKNOWN
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([matrix.T[known[direct]], np.maximum(chances[hidden], 0.0) @ matrix.T]))
    source = "Clustering 2022, Algorithm 2: a report is the noisy label of a random neighbour"
    return of_rows(view, np.concatenate([direct, users[hidden]]), logs, source, "lower")
