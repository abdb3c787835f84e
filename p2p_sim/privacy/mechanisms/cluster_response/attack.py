"""What the learner is told of a cluster, q~ and labels that may be drawn from it, and what that says of each label.

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
    by_matrix,
    check_prior_rows,
    members,
    readable,
    rows_of,
    whole,
)
from p2p_sim.privacy.mechanisms.cluster_response.listed_views import outcomes, views
from protocols import ClusterResponse

MOST_OUTCOMES = 4_000_000
"""Combinations of noisy shares of a cluster that are listed at most."""

SOURCE = (
    "Clustering 2022, Algorithm 1: q~ of the cluster given its labels, and each label drawn from it or not"
)


def attack(protocol: ClusterResponse, view: View, eta: Floats) -> LabelLikelihoods:
    """Return what a view knows of labels: all, if it reads what the curator is told; otherwise what the learner is.

    Given q~, released labels are independent; and q~ depends on the numbers of labels in the cluster.  "lower" in
    clusters with too many values of q~ to list them: what q~ says by itself of the labels is left out there.
    Raises InputError where phi is estimated: the learner is not told lambda.

    *Assumes:* each label that the curator has is released to the learner: no message of hers is lost.
    """
    check_prior_rows(view, eta, protocol.labels)
    if not np.isin(readable(view, "report")["sender"], members(view)).all():
        return by_matrix(view, np.eye(protocol.labels), "the label itself is read")
    released, told = readable(view, "released", "user"), readable(view, "distribution", "cluster")
    if not len(released["user"]):
        return LabelLikelihoods.silent(protocol.labels, "the view reads neither labels nor distributions")
    whole(view)
    if protocol.phi_share:
        raise InputError(
            f"view = {view.name!r}: lacks lambda, which follows from an estimate that nobody is told "
            f"(phi_share = {protocol.phi_share!r}); give phi"
        )
    rows = rows_of(view, released["user"])
    code = clusters_of(view).codes[rows].astype(np.int64)
    shares = told["weights"] / told["weights"].sum(axis=1, keepdims=True)
    said, mine = released["y"].astype(np.int64), np.searchsorted(told["cluster"], code)
    lam = float(protocol.settings().lam)
    chances = lam * np.repeat(shares[mine, said][:, None], protocol.labels, axis=1)
    chances[np.arange(len(said)), said] += 1 - lam
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    full = True
    for place in np.unique(mine).tolist():
        users = np.flatnonzero(mine == place)
        belief = eta[rows[users]] * chances[users]
        belief /= belief.sum(axis=1, keepdims=True)
        counted = _of_distribution(protocol, told["weights"][place], belief)
        full &= counted is not None
        logs[users] += 0.0 if counted is None else counted
    basis: Literal["exact", "lower"] = "exact" if full else "lower"
    return of_rows(view, rows, logs, SOURCE, basis)


def _of_distribution(protocol: ClusterResponse, weights: Ints, belief: Floats) -> Floats | None:
    """Return ln P(q~ | label of each user), (n, k), up to constants; ``belief`` (n, k): given the released labels.

    None if there are too many values of q~.
    """
    users, k = belief.shape
    tau, sigma, _, _ = protocol.settings()
    if sigma is None or tau * k == 1:  # uniform, whatever the labels
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
