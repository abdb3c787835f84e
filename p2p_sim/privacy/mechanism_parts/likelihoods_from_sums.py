"""The released sums of bags, with or without noise, and what they say of each label.

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from p2p_sim.network.bags import bag_numbers
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.mechanism_parts.label_groups import Groups, clusters_of, of_rows
from p2p_sim.privacy.mechanism_parts.label_reports import (
    by_matrix,
    check_nothing_missing,
    check_prior_rows,
    members,
    readable,
)
from p2p_sim.privacy.setting import LEARNER

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ReadSums:
    """The sums that a view reads: the bags' numbers, ascending, how many labels arrived, and the sum in steps."""

    bag: Ints
    size: Ints
    total: Ints


LogNoise = Callable[[Ints, Ints], Floats]
"""From noise, in steps, and the places of bags among those read: ln P(noise)."""


def without_noise(rest: Ints, _which: Ints) -> Floats:
    """Return the logarithms of 1 at 0 and of 0 elsewhere."""
    return np.where(rest == 0, 0.0, -np.inf)


def of_sums(
    view: View, eta: Floats, bag_size: int, sums: ReadSums, log_noise: LogNoise, grid: int, source: str
) -> LabelLikelihoods:
    """Return what the sums of bags say of each label.

    ``eta`` (n, 2).  ``grid``: steps a label.  Of a bag of which fewer labels arrived than it has users, any of them
    may be missing, each as likely: who sees more than the learner may know who, which is left out.
    """
    number = bag_numbers(clusters_of(view), np.arange(len(eta)), bag_size).astype(np.int64)
    groups = Groups(np.where(np.isin(number, sums.bag), number, -1))
    place = np.searchsorted(sums.bag, groups.names)
    at, count = groups.counts
    which = place[at]
    log_weights = log_noise(sums.total[which] - grid * count, which)
    short = np.flatnonzero(sums.size[place] != groups.sizes)
    starts = np.cumsum(groups.sizes + 1) - (groups.sizes + 1)
    for group in short.tolist():
        end = starts[group] + groups.sizes[group] + 1
        row = place[group]
        arrived = np.arange(int(sums.size[row]) + 1)
        seen = log_noise(sums.total[row] - grid * arrived, np.full(len(arrived), row))
        log_weights[starts[group] : end] = _thinned(int(groups.sizes[group]), seen)
    logs = groups.likelihoods(eta[:, 1], log_weights)
    alone = view.coalition.servers == {LEARNER} and not view.coalition.users and not view.coalition.wire
    return of_rows(view, groups.rows, logs, source, "exact" if alone or not len(short) else "lower")


def _thinned(users: int, seen: Floats) -> Floats:
    """Return ln P(what was seen | ones among ``users``), (users + 1,), of a random part of them.

    ``seen``: ln P(what was seen | 0, 1, ... ones in that part).
    """
    from scipy.special import logsumexp
    from scipy.stats import hypergeom

    part = len(seen) - 1
    laws = hypergeom.logpmf(np.arange(part + 1), users, np.arange(users + 1)[:, None], part)
    return np.asarray(logsumexp(laws + seen, axis=1))


def discrete_laplace(rate: float) -> LogNoise:
    """Return ln of noise proportional to e^(-rate |j|), up to a constant; ``rate``: epsilon a step, in nats."""
    return lambda rest, _which: -rate * np.abs(rest).astype(np.float64)


def of_proportions(
    view: View, eta: Floats, bag_size: int, log_noise: LogNoise, grid: int, source: str
) -> LabelLikelihoods:
    """Return what a view knows of labels that a trusted aggregator counts, bag by bag.

    Whoever reads what users tell the aggregator knows the labels; whoever reads what she tells the learner, the sums.
    Kinds: ``report`` with ``y``, and ``proportion`` with ``bag``, ``size`` and ``total``.
    """
    check_prior_rows(view, eta, 2)
    if not np.isin(readable(view, "report")["sender"], members(view)).all():
        return by_matrix(view, np.eye(2), "the label itself is read")
    columns = readable(view, "proportion", "bag")
    if not len(columns["bag"]):
        return LabelLikelihoods.silent(2, "the view reads neither labels nor sums")
    check_nothing_missing(view)
    sums = ReadSums(*(columns[name].astype(np.int64) for name in ("bag", "size", "total")))
    return of_sums(view, eta, bag_size, sums, log_noise, grid, source)
