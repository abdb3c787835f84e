"""What reports that walked over a graph say of each label.

*Source:* ``docs/laws.md``, "Likelihoods by mechanism".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from p2p_sim.core.groups import Members
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.label_matrices import channel
from p2p_sim.privacy.laws.category_counts import category_likelihoods
from p2p_sim.privacy.mechanism_parts.label_groups import Ints, of_rows
from p2p_sim.privacy.mechanism_parts.label_reports import (
    check_nothing_missing,
    check_prior_rows,
    readable,
    rows_of,
    through,
)
from p2p_sim.privacy.mechanism_parts.noisy_crowds import (
    Crowds,
    handed_in,
    histograms,
    known_labels,
    learner_alone,
    of_crowds,
)
from p2p_sim.privacy.setting import LEARNER
from protocols import NetworkShuffle

MOST_ENDS = 60_000
"""Pairs of a user and where her report may have ended, up to which the holders of reports are looked at."""


def attack(protocol: NetworkShuffle, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what noisy labels say of all users: how many there are of each, or what one holder handed in.

    On a complete graph, unless the wire is read, only the counts matter: after one step every user is equally likely
    to hold any report.  Colluders know who began those that they received in the first step.  On other graphs the
    basis is "lower".  Where few steps are made, the learner looks, for each user, at the reports of the one holder
    that tell most of her; otherwise, and in other views, at the numbers in all.
    """
    check_nothing_missing(view)
    check_prior_rows(view, eta, protocol.labels)
    known, reports = known_labels(view, _begun(protocol, view)), view.messages["report"]
    holder, said = (reports[name][reports["readable"]] for name in ("sender", "y"))
    matrix = channel(protocol.labels, float(protocol.randomizer.lying()))
    numbers_are_all = _numbers_are_all(protocol, view, known)
    if not numbers_are_all and learner_alone(view) and len(said) == len(eta):
        ends = _ends(view.graph, int(protocol.steps))
        if ends is not None:
            handed = histograms(rows_of(view, holder), said, len(eta), protocol.labels)
            return _by_holders(view, eta, matrix, ends, handed)
    seen = histograms(np.zeros(len(said), np.int64), said, 1, protocol.labels)
    crowd = Crowds(np.zeros(len(eta), np.int64), known, seen, handed_in)
    source = "Unified 2023, proof of Lemma A.1, of the noisy labels of all users"
    return of_crowds(view, eta, matrix, crowd, source, "exact" if numbers_are_all else "lower")


def _begun(protocol: NetworkShuffle, view: View) -> tuple[Ints, Ints]:
    """Return users by id, and what they said, of those whose own report the view read before it walked on."""
    if not protocol.steps:
        reports = readable(view, "report")
        return reports["sender"], reports["y"]
    hops, rounds = readable(view, "hop"), view.messages["hop"]["round"]
    first = hops["round"] == (rounds.min() if len(rounds) else 0)
    return hops["sender"][first], hops["y"][first]


def _numbers_are_all(protocol: NetworkShuffle, view: View, known: Ints) -> bool:
    """Whether a view shows nothing of labels but who said what, as far as it is known, and the numbers of the rest."""
    if bool((known >= 0).all()) or LEARNER not in view.coalition.servers or not protocol.steps:
        return True
    return view.graph is not None and view.graph.complete and not view.coalition.wire


def _ends(graph: Members | None, steps: int) -> Any:
    """Return P(a report of user i ends at j) as a sparse matrix (n, n) by columns; None if it has too many entries."""
    from scipy.sparse import csr_array, eye_array

    if graph is None or graph.complete or graph.order is None or len(graph.order) > MOST_ENDS:
        return None
    users = len(graph.codes)
    chances = np.repeat(1 / graph.size, graph.size)
    step = csr_array((chances, graph.order, graph.starts), shape=(users, users))
    ends = eye_array(users, format="csr")
    for _ in range(steps):
        ends = ends @ step
        if ends.nnz > MOST_ENDS:
            return None
    return ends.tocsc()


def _by_holders(view: View, eta: Floats, matrix: Floats, ends: Any, handed: Ints) -> LabelLikelihoods:
    """Return what the reports of one holder say of each user: ``handed`` (n, k), how many of each label each one has.

    Each user's report is elsewhere, or there with one of the labels: the histogram of that over all users was seen.
    """
    users, k = eta.shape
    said, out = eta @ matrix, np.zeros((users, k))
    holder = np.repeat(np.arange(users), np.diff(ends.indptr))
    expected = np.bincount(holder, ends.data, minlength=users)
    # the chance that hers is there, times its share of what is there
    order = np.lexsort((-ends.data * ends.data / expected[holder], ends.indices))
    best = order[np.unique(ends.indices[order], return_index=True)[1]]
    chosen = holder[best]
    for at in np.unique(chosen).tolist():
        near = slice(ends.indptr[at], ends.indptr[at + 1])
        people, there = ends.indices[near], ends.data[near]
        chances = np.column_stack([1 - there, there[:, None] * said[people]])
        counts = np.full(handed[at] + 1, -np.inf)
        counts[(-1,) * k] = 0.0
        logs = category_likelihoods(chances, counts)
        mine = chosen[people] == at
        with np.errstate(divide="ignore"):
            each, away = (
                np.log(there[mine, None]) + logs[mine, 1:],
                np.log1p(-there[mine, None]) + logs[mine, :1],
            )
        out[people[mine]] = np.logaddexp(each, away)
    source = "Liew et al. 2022: where each report's walk may have ended"
    return of_rows(view, np.arange(users), through(out, matrix), source, "lower")
