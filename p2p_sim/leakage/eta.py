"""``Eta``: what an attacker thinks of labels before she sees a message, P(y_i = c | x_i), known or estimated.

Estimates are made from the TRUE labels of the users of a run: they stand for an attacker who has the population's
P(y | x), from public data of the same kind.  The advantage of messages is over what that estimate allows; who has a
better one may have a higher baseline and gain less, or know better what to make of messages and gain more.  Labels of
users with whose messages a user's are mixed are left out of hers, as her own is, as long as there are others: whoever
reads a sum of labels would count them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import synthetic as drawn
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import Population
from p2p_sim.core.random_words import order, stream, words
from p2p_sim.leakage.attack_results import Floats
from p2p_sim.leakage.intervals import Groups
from p2p_sim.leakage.nearest_neighbours import largest_group, scaled
from p2p_sim.leakage.neighbour_search import among_each_other, shares_of, smoothed
from p2p_sim.learning.data.tables import listing
from p2p_sim.learning.training.losses import softmax
from p2p_sim.privacy.bounds.bound import laws
from p2p_sim.progress import Asked

KINDS = ("knn", "model", "prior", "true")
"""What ``attack`` takes by name."""

MODEL = "logistic-regression"
"""The model of "model"."""

FOLDS = 5

SHRINKAGE = 10
"""How many users the class shares of all count as, among those of a cluster: a small one tells little by itself."""

_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Eta:
    """P(y_i = c | x_i), one row a user in the population's order, one column a label.

    ``source``: where it comes from, in words.  ``exact``: whether labels were really drawn by it, so that expectations
    over labels can be computed instead of measured.  ``from_half``: the same estimate made from half of the users,
    which tells how much is still to be had from a better one; None where nothing was estimated.  ``alike``: whether
    nothing but class shares is in it, so that it tells no two users apart.

    Raises InputError for entries outside [0, 1] and rows that do not sum to 1 within 1e-6.
    """

    rows: Floats
    source: str
    exact: bool = False
    from_half: Floats | None = None
    alike: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", checked(self.rows))
        if self.from_half is not None:
            object.__setattr__(self, "from_half", checked(self.from_half))

    def tossing(self, users: npt.NDArray[np.int64], label: npt.NDArray[Any], other: npt.NDArray[Any]) -> Eta:
        """Return the same where a fair coin chose between two labels of some users (rows), and is not known."""
        one, two = (np.eye(self.rows.shape[1])[np.asarray(each, np.int64)] for each in (label, other))
        rows = self.rows.copy()
        rows[users] = (one + two) / 2
        return replace(self, rows=rows)

    def knowing(self, users: npt.NDArray[np.int64], y: npt.NDArray[Any]) -> Eta:
        """Return the same where the labels ``y`` of some users (rows) are known for sure."""
        if not len(users):
            return self
        certain = np.eye(self.rows.shape[1])[np.asarray(y, np.int64)]
        rows = self.rows.copy()
        rows[users] = certain
        return replace(self, rows=rows)


def checked(rows: Any, users: int | None = None, labels: int | None = None) -> Floats:
    """Return rows (users, labels) of probabilities, each summing to 1.

    ``users``, ``labels``: what the shape must be; None: any.  Raises InputError that names the first wrong row.
    """
    try:
        found = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"eta of type {type(rows).__name__}: give numbers, one row a user, one column a label"
        ) from None
    shape = found.shape
    if found.ndim != 2 or users not in (None, shape[0]) or labels not in (None, shape[1]) or shape[1] < 2:
        wanted = f"({users if users is not None else 'users'}, {labels if labels is not None else 'labels'})"
        raise InputError(
            f"eta has shape {shape}; give {wanted}: one row a user, one column a label, 2 at least"
        )
    found = laws("eta", found, _SLACK)
    return np.asarray(found / found.sum(axis=1, keepdims=True), np.float64)


def _whole(clusters: npt.NDArray[Any], groups: Groups | None) -> bool:
    """Return whether each cluster lies in one of several groups, so that nothing of it is left beside the group."""
    if groups is None or not several(groups):
        return False
    pairs = np.unique(np.stack([np.asarray(clusters, np.int64), groups]), axis=1).shape[1]
    return bool(pairs == len(np.unique(clusters)))


def alike(eta: Eta, victims: npt.NDArray[np.int64]) -> bool:
    """Return whether an estimate tells no two of the ``victims`` (rows) apart: by its making, or by equal rows."""
    rows = eta.rows[victims]
    return eta.alike or bool((rows == rows[0]).all())


def several(groups: Groups | None) -> bool:
    """Return whether there are groups, and more than one."""
    return groups is not None and bool((groups != groups[0]).any())


def from_shares(y: npt.NDArray[Any], labels: int, groups: Groups | None = None, seed: int = 0) -> Eta:
    """Return the class shares of ``y`` (n,), of an attacker who knows no features: one row for everybody.

    A user's own label is among them: without it, her share would betray it, as each label makes itself rarer.
    Of a single user all labels are alike.  With several ``groups`` (n,) these are cut into 5 folds by ``seed``, and the
    shares are those of the four others: the attacker knows no label of the group whose messages she reads.
    """
    source = "class shares alone, no features"
    if not several(groups):
        shares = np.full(labels, 1 / labels) if len(y) == 1 else shares_of(y, labels)
        return Eta(np.tile(shares, (len(y), 1)), source, alike=True)
    rows = _left_out(y, labels, np.zeros(len(y), np.int64), _folds(len(y), groups, seed))
    return Eta(rows, f"{source}, of others than those with whose messages hers are mixed", alike=True)


def from_cluster_shares(
    y: npt.NDArray[Any], labels: int, cluster: npt.NDArray[Any], seed: int = 0, groups: Groups | None = None
) -> Eta:
    """Return the class shares of each user's cluster, of an attacker who knows clusters and no features.

    ``y`` and ``cluster`` (n,): labels, and whole numbers from 0.  Users are cut into 5 folds by ``seed``, several
    ``groups`` (n,) as a whole; the shares are those of the four others, so that neither anybody's own label is among
    them nor those of her group; those of all clusters count as ``SHRINKAGE`` users more: with 10, a cluster of 10 users
    counts half.

    *Source:* the mean of a Dirichlet posterior, whose prior has the shares of all and that weight.
    *Assumes:* the weight is chosen, not estimated; the baseline is the better of this and one label for everybody.
    """
    fold = _folds(len(y), groups if several(groups) else None, seed)
    rows = _left_out(y, labels, np.asarray(cluster, np.int64), fold)
    return Eta(rows, "class shares of clusters, no features")


def _folds(n: int, groups: Groups | None, seed: int) -> Groups:
    """Return the fold of each user: users, or whole groups, are dealt out to 5 of them."""
    unit = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    units = int(unit.max()) + 1
    fold = np.empty(units, np.int64)
    fold[order(words(seed, stream("attack", "fold", 0), 0, units))] = np.arange(units) % min(FOLDS, units)
    return np.asarray(fold[unit], np.int64)


def _left_out(y: npt.NDArray[Any], labels: int, cluster: Groups, fold: Groups) -> Floats:
    """Return the label shares of each user's cluster without her fold; those of all count as ``SHRINKAGE`` more."""
    codes = cluster * labels + np.asarray(y, np.int64)
    size = (int(cluster.max()) + 1) * labels
    counts, rows = np.bincount(codes, minlength=size), np.empty((len(y), labels))
    for each in range(int(fold.max()) + 1):
        mine = fold == each
        others = (counts - np.bincount(codes[mine], minlength=size)).reshape(-1, labels)
        total = others.sum(axis=0)
        shares = total / total.sum() if total.any() else np.full(labels, 1 / labels)
        rows[mine] = others[cluster[mine]] + SHRINKAGE * shares
    return np.asarray(rows / rows.sum(axis=1, keepdims=True), np.float64)


def synthetic(x: npt.NDArray[Any] | None, shares: Sequence[float], users: int) -> Eta:
    """Return P(y | x) of the users of ``Population.synthetic``, exactly.

    ``x`` (n, d): their features, None for those without; ``shares`` (k,): the probability of each label, as given to
    ``Population.synthetic``; ``users``: n.  Raises InputError for shares that do not sum to 1.

    *Source:* ``of_gaussians``; that the noise is on a grid changes nothing.
    """
    exact = [float(share) for share in drawn.shares_of(len(shares), list(shares), None)]
    source = "the law by which synthetic labels were drawn"
    if x is None:
        return Eta(np.tile(exact, (users, 1)), source, exact=True)
    return replace(of_gaussians(x, drawn.centres(len(exact), x.shape[1]), 1.0, exact), source=source)


def of_gaussians(x: npt.NDArray[Any], centres: Floats, variance: float, shares: Sequence[float]) -> Eta:
    """Return P(y | x) where features are Gaussian around a centre for each label, with one variance.

    ``x`` (n, d), ``centres`` (k, d), ``variance`` above 0 of each feature, ``shares`` (k,) that sum to 1.  Raises
    InputError for others.

    *Source:* Bayes; Attacks 2023, section 5.1 has centres e_i and equal shares.
    """
    given = np.asarray(shares, np.float64)
    if x.ndim != 2 or centres.shape != (len(given), x.shape[1]) or not variance > 0:
        raise InputError(
            f"x {x.shape}, centres {centres.shape}, {len(given)} shares, variance = {variance!r}: give (n, d), "
            "(k, d), k and a number above 0"
        )
    with np.errstate(divide="ignore"):
        scores = np.log(given) + (x @ centres.T - (centres**2).sum(axis=1) / 2) / variance
    return Eta(softmax(scores), "Gaussian features around a centre for each label", exact=True)


def nearest(
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    labels: int,
    neighbours: int | None = None,
    seed: int = 0,
    progress: Asked = False,
    groups: Groups | None = None,
) -> Eta:
    """Return the label shares among each user's nearest others, herself left out, and all of her group.

    ``x`` (n, d), ``y`` (n,), ``labels`` k; ``neighbours``: how many, None: the square root of n, 10 at least where
    there are so many.  Distances as in ``nearest_neighbours``.  Neighbours are found exactly, by scikit-learn's tree
    in up to 8 columns; in more, and above 100,000 users, approximately by pynndescent where that is installed, then
    60 of them at most; ``source`` says so.  The class shares count as one more neighbour, so that no label is ruled
    out.  ``from_half``: users are cut into two halves, and half as many neighbours are sought in each.  ``seed``: of
    the halves, and of the approximate search.  ``groups`` (n,): None or a single one: only she herself is left out.
    Large groups are searched exactly.  Raises InputError for fewer than 4 users, and for ``neighbours`` above n - 1.

    *Source:* Pitfalls 2021, section 3.
    """
    n = _enough(x, y)
    k = min(n - 1, max(10, round(n**0.5))) if neighbours is None else neighbours
    check_whole("neighbours", k, 1)
    if k > n - 1:
        raise InputError(f"neighbours = {k:,}: {n:,} users have {n - 1:,} others each; give at most so many")
    apart = np.asarray(groups, np.int64) if groups is not None and several(groups) else np.arange(n)
    shares_among, how, most = among_each_other(n, x.shape[1], largest_group(apart), seed, progress)
    table, codes = scaled(x), np.asarray(y, np.int64)
    shares = from_shares(y, labels, groups, seed).rows

    def estimate(who: Groups, wanted: int) -> Floats:
        count = min(wanted, most, len(who) - largest_group(apart[who]))
        if count < 1:
            return shares[who]
        found = shares_among(table[who], codes[who], apart[who], count, labels)
        return smoothed(found, count, shares[who])

    coarse = np.empty((n, labels))
    for half in halves(n, seed):
        coarse[half] = estimate(half, max(1, min(k, most) // 2))
    rows, k = estimate(np.arange(n), k), min(k, most, n - largest_group(apart))
    return Eta(rows, f"{k:,} nearest others of each user, {how}", from_half=coarse)


def modelled(
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    labels: int,
    model: str = MODEL,
    seed: int = 0,
    groups: Groups | None = None,
) -> Eta:
    """Return probabilities of a calibrated classifier that was never trained on the user whom it judges.

    ``x`` (n, d), ``y`` (n,), ``labels`` k, ``model``: as ``training.models.make`` takes it.  Users are cut into 5
    folds by label; those of one are judged by a model of the four others, calibrated by Platt's sigmoid within them;
    for ``from_half`` into 2.  Several ``groups`` (n,) are cut as a whole.  1/n of the class shares is mixed in, so
    that no label is ruled out.  Raises InputError for fewer than 4 users of a label that occurs, and for an unknown
    model.

    *Source:* Platt 1999; scikit-learn's CalibratedClassifierCV.
    """
    _enough(x, y)
    counts = np.bincount(np.asarray(y, np.int64))
    rarest = int(counts[counts > 0].min())
    if rarest < 4 or np.count_nonzero(counts) < 2:
        one = np.count_nonzero(counts) < 2
        alike = f"all {len(y):,} users have one label" if one else f"the rarest label has {rarest} users"
        raise InputError(
            f"eta = 'model': a model is trained on some users and judges others, so it needs two labels of at least 4 "
            f"users each; here {alike}: give knn or prior"
        )
    rows, coarse = (
        _cross_fitted(x, y, labels, model, folds, seed, groups if several(groups) else None)
        for folds in (min(FOLDS, rarest // 2), 2)
    )
    return Eta(rows, f"{model}, calibrated, never trained on the user herself", from_half=coarse)


def note_on_ids(names: Sequence[str]) -> str:
    """Return a note on features that look like ids, by which people are compared."""
    are = "look like ids" if len(names) > 1 else "looks like an id"
    return f"among the features {listing(tuple(names), 6)} {are}, which tells nothing of others: leave it out by --drop"


def of_population(
    kind: str,
    people: Population,
    labels: int,
    seed: int = 0,
    shares: Sequence[float] | None = None,
    progress: Asked = False,
    groups: Groups | None = None,
) -> Eta:
    """Return the estimate of a kind of ``KINDS`` for the users of a run, from their true labels.

    ``labels``: how many the protocol handles; ``shares``: of labels, as synthetic users were drawn, None: they were
    not.  ``groups`` (users,): the labels of a user's group are left out of what is estimated of her, as her own is,
    where there are several: whoever reads a message about all of them would count them twice.  Without features "knn"
    and "model" are the class shares, and ``source`` says so.  Raises InputError for another kind, and for "true" of
    users who are not synthetic.
    """
    if kind not in KINDS:
        raise InputError(
            f"eta = {kind!r}: must be one of {', '.join(KINDS)}{near(str(kind), KINDS)}, or an array (users, labels)"
        )
    if kind == "true":
        if shares is None:
            raise InputError(
                "eta = 'true': nobody knows by which P(y | x) these labels were drawn; give knn, model or prior, or "
                "take synthetic users (--users, in Python leakage.eta.synthetic)"
            )
        return synthetic(people.x, shares, people.users)
    if kind == "prior" or people.x is None:
        clusters = people.clusters
        if clusters is None or len(people.sizes) < 2 or _whole(clusters.codes, groups):
            found = from_shares(people.y, labels, groups, seed)
        else:
            found = from_cluster_shares(people.y, labels, clusters.codes, seed, groups)
        return found if kind == "prior" else replace(found, source=f"{found.source}, as there are none")
    if kind == "knn":
        return nearest(people.x, people.y, labels, seed=seed, progress=progress, groups=groups)
    return modelled(people.x, people.y, labels, seed=seed, groups=groups)


def _enough(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> int:
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise InputError(f"x has shape {x.shape}, y {y.shape}; give (n, d) and (n,)")
    if len(y) < 4:
        raise InputError(
            f"{len(y)} users: an estimate of P(y | x) needs 4 at least; give prior (--eta prior)"
        )
    return len(y)


def halves(n: int, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of two halves of the users, drawn by ``seed``, each ascending."""
    drawn_order = order(words(seed, stream("attack", "half", 0), 0, n))
    return np.sort(drawn_order[: n // 2]), np.sort(drawn_order[n // 2 :])


def calibrated(
    x: npt.NDArray[Any], y: npt.NDArray[Any], at: npt.NDArray[Any], labels: int, model: str = MODEL
) -> Floats:
    """Return probabilities (m, labels) at rows ``at`` (m, d) of a calibrated classifier of ``x`` (n, d), ``y`` (n,).

    1/n of the class shares is mixed in, so that no label is ruled out; where two labels have not two rows each, they
    are all there is.
    """
    codes = np.asarray(y, np.int64)
    rows = _calibrated(x, codes, at, labels, model)
    mixed = (1 - 1 / len(y)) * rows + shares_of(codes, labels) / len(y)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True), np.float64)


def _calibrated(
    x: npt.NDArray[Any], codes: npt.NDArray[np.int64], at: npt.NDArray[Any], labels: int, model: str
) -> Floats:
    import warnings

    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.exceptions import ConvergenceWarning

    from p2p_sim.learning.training.models import make, one_thread

    counts, rows = np.bincount(codes, minlength=labels), np.zeros((len(at), labels))
    least = int(counts[counts > 0].min())
    if np.count_nonzero(counts) < 2 or least < 2:  # too few for a model
        rows[:] = shares_of(codes, labels)
        return rows
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # calibration makes up for it
        fitted = CalibratedClassifierCV(make(model), cv=max(2, min(3, least))).fit(x, codes)
        rows[:, fitted.classes_] = fitted.predict_proba(at)
    return rows


def _cross_fitted(
    x: npt.NDArray[Any],
    y: npt.NDArray[Any],
    labels: int,
    model: str,
    folds: int,
    seed: int,
    groups: Groups | None,
) -> Floats:
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    codes, rows = np.asarray(y, np.int64), np.zeros((len(y), labels))
    folds = max(2, folds if groups is None else min(folds, len(np.unique(groups))))
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    parts = kind(folds, shuffle=True, random_state=seed % 2**32)
    for train, test in parts.split(x, codes, groups):
        if len(test):
            rows[test] = _calibrated(x[train], codes[train], x[test], labels, model)
    mixed = (1 - 1 / len(y)) * rows + shares_of(y, labels) / len(y)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True), np.float64)
