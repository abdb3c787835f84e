"""Noisy labels that come from a crowd without their owners: what their numbers say of each label.

Two labels: exact at any size.  More: exact where all histograms of the crowd can be listed; otherwise only how often
each user's likeliest answer came is used, and the basis is "lower".

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods
from p2p_sim.privacy.laws.category_counts import category_likelihoods, listed
from p2p_sim.privacy.mechanism_parts.label_groups import Groups, Ints, of_rows
from p2p_sim.privacy.mechanism_parts.label_reports import rows_of, through
from p2p_sim.privacy.setting import LEARNER

UNKNOWN = -1

Term = Callable[[npt.NDArray[Any], npt.NDArray[Any]], Floats]
"""From how many of a crowd said a label and how often it was seen: a part of the log-likelihood, up to a constant."""


def handed_in(said: npt.NDArray[Any], seen: npt.NDArray[Any]) -> Floats:
    """Return the term where each answer is seen once, or some, any as likely, are missing: ln (said choose seen)."""
    from scipy.special import gammaln

    said, seen = np.broadcast_arrays(said, seen)
    out = np.where(said == seen, 0.0, -np.inf)
    some = said > seen
    n, m = said[some].astype(np.float64), seen[some].astype(np.float64)
    out[some] = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return out


def drawn(said: npt.NDArray[Any], seen: npt.NDArray[Any]) -> Floats:
    """Return the term where each answer seen is that of a random user of the crowd: seen ln said."""
    from scipy.special import xlogy

    return np.asarray(xlogy(seen, said / np.maximum(seen, 1)))


@dataclass(frozen=True, eq=False)
class Crowds:
    """What a view knows of noisy labels.

    ``of`` (n,): the number of each user's crowd, -1: in none.  ``known`` (n,): what she is known to have said,
    ``UNKNOWN`` if it is not.  ``seen`` (crowds, k): how often each label was seen without an owner.  ``term``: how
    that depends on what the crowd said.
    """

    of: Ints
    known: Ints
    seen: Ints
    term: Term


def of_crowds(
    view: View,
    eta: Floats,
    matrix: Floats,
    crowds: Crowds,
    source: str,
    basis: Literal["exact", "lower"] = "exact",
) -> LabelLikelihoods:
    """Return what noisy labels say of true ones; ``matrix``: P(said | label), (k, k), row by label.

    ``basis``: "lower" where the view shows more than ``crowds`` has.
    """
    known = np.flatnonzero(crowds.known != UNKNOWN)
    said = eta @ matrix
    said[known] = np.eye(len(matrix))[crowds.known[known]]
    hidden = np.where(crowds.known == UNKNOWN, crowds.of, -1)
    heard = crowds.seen.sum(axis=1) > 0 if len(crowds.seen) else np.zeros(0, np.bool_)
    worth = np.isin(crowds.of, np.unique(hidden[hidden >= 0])) & np.isin(crowds.of, np.flatnonzero(heard))
    groups = Groups(np.where(worth, crowds.of, -1))
    logs, full = _of_groups(groups, said, crowds)
    unknown = crowds.known[groups.rows] == UNKNOWN
    with np.errstate(divide="ignore"):
        direct = np.log(matrix.T[crowds.known[known]])
    rows = np.concatenate([known, groups.rows[unknown]])
    all_logs = np.concatenate([direct, through(logs[unknown], matrix)])
    return of_rows(view, rows, all_logs, source, basis if full else "lower")


def _of_groups(groups: Groups, said: Floats, crowds: Crowds) -> tuple[Floats, bool]:
    """Return ln P(what was seen | what she said), (m, k), of the users in ``groups.rows``, and whether all was used."""
    if said.shape[1] == 2:
        return _of_two(groups, said[:, 1], crowds.seen[groups.names], crowds.term), True
    out, full = np.zeros((len(groups.rows), said.shape[1])), True
    ends = np.cumsum(groups.sizes)
    for size, end, name in zip(groups.sizes.tolist(), ends.tolist(), groups.names.tolist(), strict=True):
        mine = slice(end - size, end)
        found = _histogram(said[groups.rows[mine]], crowds.seen[name], crowds.term)
        if found is None:
            found, full = _likeliest(said[groups.rows[mine]], crowds.seen[name], crowds.term), False
        out[mine] = found
    return out, full


def _of_two(groups: Groups, ones: Floats, seen: Ints, term: Term) -> Floats:
    """Return the same of two labels; ``seen`` (groups, 2)."""
    which, count = groups.counts
    log_weights = term(count, seen[which, 1]) + term(groups.sizes[which] - count, seen[which, 0])
    return groups.likelihoods(ones, log_weights)


def _histogram(said: Floats, seen: Ints, term: Term) -> Floats | None:
    """Return the same of one crowd by listing histograms; None if there are too many."""
    users, k = said.shape
    most = (
        [users] * k if term is drawn else [min(users, int(each) + users - int(seen.sum())) for each in seen]
    )
    if not listed(users, most):
        return None
    number = np.indices([each + 1 for each in most[1:]])
    rest = users - number.sum(axis=0)
    log_weights = sum((term(number[a - 1], seen[a]) for a in range(1, k)), term(np.maximum(rest, 0), seen[0]))
    return category_likelihoods(said, np.where(rest >= 0, log_weights, -np.inf))


def _likeliest(said: Floats, seen: Ints, term: Term) -> Floats:
    """Return ln P(how often her likeliest answer was seen | what she said), (m, k)."""
    out = np.zeros(said.shape)
    likeliest = said.argmax(axis=1)
    one_crowd = Groups(np.zeros(len(said), np.int64))
    for answer in np.unique(likeliest).tolist():
        two = np.array([[seen.sum() - seen[answer], seen[answer]]])
        logs = _of_two(one_crowd, said[:, answer], two, term)
        mine = likeliest == answer
        out[mine] = logs[mine, :1]
        out[mine, answer] = logs[mine, 1]
    return out


def histograms(crowd: npt.NDArray[Any], said: npt.NDArray[Any], crowds: int, labels: int) -> Ints:
    """Return how often each label was seen in each crowd, (crowds, k), from answers with the number of their crowd."""
    places = crowd.astype(np.int64) * labels + said.astype(np.int64)
    return np.asarray(np.bincount(places, minlength=crowds * labels).reshape(crowds, labels), np.int64)


def known_labels(view: View, *answers: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> Ints:
    """Return what each user is known to have said, (n,), from pairs of users by id and what they said."""
    known = np.full(len(view.public["user"]), UNKNOWN, np.int64)
    for users, said in answers:
        known[rows_of(view, users)] = said
    return known


def learner_alone(view: View) -> bool:
    """Whether a view is the learner's, without anybody else's."""
    looks = view.coalition
    return looks.servers == {LEARNER} and not looks.users and not looks.wire
