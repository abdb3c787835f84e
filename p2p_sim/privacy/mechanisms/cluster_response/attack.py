"""What the learner receives of a cluster, q~ and labels that may be drawn from it, and what that says of each label.

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.laws.category_counts import category_likelihoods, listed
from p2p_sim.privacy.laws.poisson_binomial import bit_likelihoods
from p2p_sim.privacy.mechanism_parts.label_groups import Ints, clusters_of, of_rows
from p2p_sim.privacy.mechanism_parts.label_reports import (
    Columns,
    by_matrix,
    check_nothing_missing,
    check_prior_rows,
    members,
    readable,
    rows_of,
)
from p2p_sim.privacy.mechanisms.cluster_response.view_pmf import outcomes, views
from protocols import ClusterResponse

MOST_OUTCOMES = 4_000_000
"""Combinations of noisy shares of a cluster that are listed at most."""

SOURCE = (
    "Clustering 2022, Algorithm 1: q~ of the cluster given its labels, and each label drawn from it or not"
)


def attack(protocol: ClusterResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what a view knows of labels: all, if it reads what the curator receives; else what the learner knows.

    Given q~, released labels are independent; and q~ depends on the numbers of labels in the cluster.  "lower" in
    clusters with too many values of q~ to list them, and where labels are missing: what q~ says by itself of the labels
    is left out there.  Raises InputError where phi is estimated: the learner is not told lambda.
    """
    check_prior_rows(view, eta, protocol.labels)
    if not np.isin(readable(view, "report")["sender"], members(view)).all():
        return by_matrix(view, np.eye(protocol.labels), "the label itself is read")
    released, distributions = readable(view, "released", "user"), readable(view, "distribution", "cluster")
    if not len(released["user"]):
        return LabelLikelihoods.silent(protocol.labels, "the view reads neither labels nor distributions")
    check_nothing_missing(view)
    if protocol.phi_share:
        raise InputError(
            f"view = {view.name!r}: lacks lambda, which follows from an estimate that nobody is told "
            f"(phi_share = {protocol.phi_share!r}); give phi"
        )
    return _of_released(protocol, view, eta, released, distributions)


def _of_released(
    protocol: ClusterResponse, view: View, eta: Floats, released: Columns, distributions: Columns
) -> LabelLikelihoods:
    people, rows = clusters_of(view), rows_of(view, released["user"])
    known = np.isin(people.codes[rows], distributions["cluster"])  # a message may be lost
    rows, said = rows[known], released["y"][known].astype(np.int64)
    place = np.searchsorted(distributions["cluster"], people.codes[rows])
    weights, lam = distributions["weights"], float(protocol.settings().lam)
    shares = weights / weights.sum(axis=1, keepdims=True)
    chances = lam * np.repeat(shares[place, said][:, None], protocol.labels, axis=1)
    chances[np.arange(len(said)), said] += 1 - lam
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    basis: Literal["exact", "lower"] = "exact" if known.all() else "lower"
    for cluster in np.unique(place).tolist():
        users = np.flatnonzero(place == cluster)
        belief = eta[rows[users]] * chances[users]
        belief /= belief.sum(axis=1, keepdims=True)
        # where labels are missing nobody knows whether the curator had them
        all_here = len(users) == people.size[rows[users[0]]] or _uniform(protocol)
        counted = _of_distribution(protocol, weights[cluster], belief) if all_here else None
        if counted is None:
            basis = "lower"
        else:
            logs[users] += counted
    return of_rows(view, rows, logs, SOURCE, basis)


def _uniform(protocol: ClusterResponse) -> bool:
    """Whether q~ is uniform, whatever the labels."""
    tau, sigma, _, _ = protocol.settings()
    return sigma is None or tau * protocol.labels == 1


def _of_distribution(protocol: ClusterResponse, weights: Ints, belief: Floats) -> Floats | None:
    """Return ln P(q~ | label of each user), (n, k), up to constants; ``belief`` (n, k): given the released labels.

    None if there are too many values of q~.
    """
    users, k = belief.shape
    if _uniform(protocol):
        return np.zeros(belief.shape)
    if outcomes(protocol, users) > MOST_OUTCOMES or not listed(users, [users] * k):
        return None
    found = views(protocol, users)
    value = int(np.flatnonzero((found.weights == weights).all(axis=1))[0])
    cut = np.unravel_index(np.flatnonzero(found.of == value), (found.noise.shape[1],) * k)
    number = np.indices((users + 1,) * (k - 1))
    counts = [users - number.sum(axis=0), *number]
    chance = np.ones((*counts[0].shape, len(cut[0])))
    for count, shares in zip(counts, cut, strict=True):
        chance *= found.noise[np.maximum(count, 0)[..., None], shares]
    with np.errstate(divide="ignore"):
        log_weights = np.where(counts[0] >= 0, np.log(chance.sum(axis=-1)), -np.inf)
    if k == 2:
        return bit_likelihoods(belief[:, 1], np.array([users]), log_weights)
    return category_likelihoods(belief, log_weights)
