"""What reports of single users say of their labels: what the entry ``attack`` of many rooms is made of.

*Source:* ``docs/laws.md``, "What a view says of single labels".
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.observed_view import View
from p2p_sim.privacy.label_likelihoods import Floats, LabelLikelihoods

Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]


def check_prior_rows(view: View, eta: Floats, labels: int) -> None:
    """Check that ``eta`` has a row of label probabilities for each user of a view; raises InputError."""
    users = len(view.public["user"])
    if eta.shape != (users, labels):
        raise InputError(
            f"eta: has shape {eta.shape}; give the probabilities of the {labels} labels of each of the {users:,} users "
            f"of the view, ({users}, {labels})"
        )


def rows_of(view: View, users: npt.NDArray[Any]) -> Ints:
    """Return the rows, in the population's order, of users of a view, given by id."""
    return np.asarray(np.searchsorted(view.public["user"], users), np.int64)


def members(view: View) -> Ints:
    """Return the ids of the view's own users, ascending."""
    return np.array(sorted(view.coalition.users), np.int64)


def readable(view: View, kind: str, end: str = "sender") -> Columns:
    """Return the readable messages of a kind, the first of each ``end``, ascending: whatever came twice counts once."""
    columns = view.messages[kind]
    rows = np.flatnonzero(columns["readable"])
    first = rows[np.unique(columns[end][rows], return_index=True)[1]]
    return {name: column[first] for name, column in columns.items()}


def by_matrix(
    view: View, matrix: npt.NDArray[Any], source: str, kind: str = "report", field: str = "y"
) -> LabelLikelihoods:
    """Return what the readable reports of a kind say of their senders; ``matrix``: P(field | label), row by label."""
    reports = readable(view, kind)
    with np.errstate(divide="ignore"):
        logs = np.log(matrix.T[reports[field].astype(np.int64)])
    return of_senders(view, reports["sender"], logs, source)


def of_senders(
    view: View,
    senders: npt.NDArray[Any],
    logs: Floats,
    source: str,
    basis: Literal["exact", "lower"] = "exact",
) -> LabelLikelihoods:
    """Return log-likelihoods (m, k) of users, given by id, ascending, without those of the view's own users.

    Of a trace that was sampled the basis is "lower".  A view that reads no report says nothing, exactly.
    """
    others = ~np.isin(senders, members(view))
    if not others.any() and basis == "exact" and view.missing is None:
        return LabelLikelihoods.silent(logs.shape[1], "the view reads no report of others")
    partly: Literal["exact", "lower"] = basis if view.missing is None else "lower"
    return LabelLikelihoods(np.asarray(senders[others], np.int64), logs[others], partly, source)


def check_nothing_missing(view: View) -> None:
    """Check that nothing of a view is missing: a count of labels says nothing if some reports are not there.

    Raises InputError.
    """
    if view.missing is not None:
        raise InputError(
            f"view = {view.name!r}: {view.missing}; an attack on counts needs all: run with --trace full"
        )


def through(said: Floats, matrix: Floats) -> Floats:
    """Return ln P(what was seen | label), (m, k), from ln P(what was seen | what was said), (m, outputs).

    ``matrix``: P(said | label), (k, outputs), row by label.
    """
    most = said.max(axis=1, keepdims=True)
    most = np.where(most > -np.inf, most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(most + np.log(np.exp(said - most) @ matrix.T))
