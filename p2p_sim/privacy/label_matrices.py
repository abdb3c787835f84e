"""Label randomization matrices, P(reported | true), and what reports say of true labels.

A matrix (k, k) has a row for each true label, and its rows sum to 1 (a noise transition matrix).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

Array = npt.NDArray[Any]

SUMS_TO = 1e-9
"""How far the sum of a row may be from 1."""

MOST_WEIGHT = 1e6
"""A weight of a loss may not be larger: labels are as good as lost, and rounding would show."""

SOLVED_TO = 1e-10
"""How far, relative to the largest weight, the mean of the weights may be from the true label."""

SHOWN = 10
"""As many labels are named in a message at most."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the reports that a learner got say of the true labels of their users.

    ``users`` (m,): whose label each report is about.  ``likelihood`` (m, k): the probability of the report for each
    true label, up to a factor of the report's own; at least 0 and not all 0.  ``unbiased``: returns weights (m, k),
    whose mean over the noise is the one-hot true label, or raises InputError where there are none.  ``note``: what to
    know of the reports, in words; "" for nothing.

    ``x`` (m, d): features that came with the reports, maybe randomized, too; None: they are the users' own.
    ``generated`` (s, d): features of further examples whose weights ``unbiased`` returns after those of the reports,
    (m + s, k): the weighted losses of all, with the features of ``weighted_rows``, have the sum of the m true losses as
    their mean.  None: there are none.
    """

    users: Array
    likelihood: Array
    unbiased: Callable[[], Array]
    note: str = ""
    x: Array | None = None
    generated: Array | None = None

    def rows(self, x: Array | None) -> Array:
        """Return the features (m, d) that ``likelihood`` goes with; ``x`` (n, d): those of all users.

        None where users have none; raises InputError if reports came without features, too.
        """
        if self.x is not None:
            return self.x
        if x is None:
            raise InputError(
                "x = None: users have no features, and none came with the reports; give x (n, d)"
            )
        return np.asarray(x[self.users])

    def weighted_rows(self, x: Array | None) -> Array:
        """Return the features that the weights of ``unbiased`` go with, (m, d) or (m + s, d)."""
        rows = self.rows(x)
        return rows if self.generated is None else np.concatenate([rows, self.generated])

    @cached_property
    def uninformative(self) -> bool:
        """Whether no report tells any two labels apart."""
        return bool(np.allclose(self.likelihood, self.likelihood[:, :1], rtol=1e-12, atol=0))


class LabelMatrices(ABC):
    """Label randomization matrices: one for all users, or one for each group of users.

    ``group`` (n,): the number of each user's matrix; None: all users have the first.
    """

    group: Array | None

    @property
    @abstractmethod
    def labels(self) -> int:
        """Return k."""

    @abstractmethod
    def dense(self, number: int = 0) -> Array:
        """Return a matrix (k, k), P(reported | true), a row for each true label."""

    def likelihood(self, users: Array, y: Array) -> Array:
        """Return the probability (m, k) of the reports ``y`` (m,) of ``users`` (m,) for each true label."""
        _, y, row = self._checked(users, y)
        return self._likelihood(y, row)

    def weights(self, users: Array, y: Array) -> Array:
        """Return weights (m, k) of reports ``y`` (m,) of ``users`` (m,), whose mean is the one-hot true label.

        They are rows of the inverse matrix, so they sum to 1.  Raises InputError for a matrix that is singular or
        nearly so, and names the labels that it does not tell apart.
        """
        _, y, row = self._checked(users, y)
        return self._weights(y, row)

    def evidence(self, users: Array, y: Array, note: str = "") -> Evidence:
        """Return what the reports ``y`` (m,) of ``users`` (m,) say."""
        users, y, row = self._checked(users, y)
        return Evidence(users, self._likelihood(y, row), lambda: self._weights(y, row), note)

    @abstractmethod
    def _likelihood(self, y: Array, row: Array) -> Array:
        """Return the likelihood of checked reports, each by the matrix number ``row``."""

    @abstractmethod
    def _weights(self, y: Array, row: Array) -> Array:
        """Return the weights of checked reports, each by the matrix number ``row``."""

    def _checked(self, users: Any, y: Any) -> tuple[Array, Array, Array]:
        """Return users, labels and the number of each user's matrix; raises InputError for reports that do not fit."""
        whose, reported = np.asarray(users), np.asarray(y)
        if whose.ndim != 1 or whose.shape != reported.shape:
            raise InputError(
                f"users have shape {whose.shape}, y has {reported.shape}; give one user and one label for each report"
            )
        known = np.iinfo(np.int64).max if self.group is None else len(self.group)
        for name, values, end in (("users", whose, known), ("y", reported, self.labels)):
            if values.dtype.kind not in "iub" or (
                len(values) and not 0 <= values.min() <= values.max() < end
            ):
                bad = values.tolist() if values.dtype.kind not in "iub" else [values.min(), values.max()]
                raise InputError(
                    f"{name}: has {values.dtype} values such as {bad[:2]}; give whole numbers from 0 to {end - 1}"
                )
        whose, reported = whose.astype(np.int64), reported.astype(np.int64)
        return whose, reported, np.zeros(len(whose), np.int64) if self.group is None else self.group[whose]


@dataclass(frozen=True, eq=False)
class ResamplingMatrices(LabelMatrices):
    """Labels that are kept, or with probability beta drawn from a distribution q: (1 - beta) I + beta 1 q^T.

    ``beta`` (g,) or a number, in [0, 1]; ``q`` (g, k) or (k,): rows of probabilities; ``group``: see ``LabelMatrices``.
    The inverse is (I - beta 1 q^T) / (1 - beta): a report y has the corrected loss (l(y) - beta q . l) / (1 - beta).

    Raises InputError for numbers out of range and shapes that do not match.
    *Source:* Clustering 2022, Algorithm 1 and Lemma 3.
    """

    beta: Any
    q: Any
    group: Array | None = None

    def __post_init__(self) -> None:
        beta, q = np.atleast_1d(np.asarray(self.beta, float)), np.atleast_2d(np.asarray(self.q, float))
        if beta.ndim != 1 or q.ndim != 2 or q.shape[1] < 2 or len(beta) not in (1, len(q)):
            raise InputError(
                f"beta has shape {beta.shape}, q {q.shape}; give (g,) and (g, k), one row for each group of users"
            )
        if not ((beta >= 0) & (beta <= 1)).all():
            raise InputError(f"beta = {beta.tolist()[:SHOWN]}: each must be from 0 to 1")
        _check_rows("q", q)
        _check_groups(self.group, len(q))
        object.__setattr__(self, "beta", np.broadcast_to(beta, len(q)))
        object.__setattr__(self, "q", q)

    @classmethod
    def uniform(cls, labels: int, lie: float) -> ResamplingMatrices:
        """Return k-ary randomized response: with probability ``lie`` one of the other labels, uniformly.

        ``lie``: in [0, (k - 1) / k], where beta = lie k / (k - 1).
        """
        if not 0 <= lie * labels <= (labels - 1) * (1 + SUMS_TO):
            raise InputError(f"lie = {lie!r} of {labels} labels: must be from 0 to {labels - 1}/{labels}")
        return cls(min(lie * labels / (labels - 1), 1.0), np.full(labels, 1 / labels))

    @property
    def labels(self) -> int:
        """Return k."""
        return int(self.q.shape[1])

    def dense(self, number: int = 0) -> Array:
        """Return a matrix (k, k)."""
        beta = self.beta[number]
        return np.asarray((1 - beta) * np.eye(self.labels) + beta * self.q[number])

    def _likelihood(self, y: Array, row: Array) -> Array:
        """Return the probability of each report, 1 - beta more for the label that it names."""
        beta = self.beta[row]
        found = np.repeat((beta * self.q[row, y])[:, None], self.labels, axis=1)
        found[np.arange(len(y)), y] += 1 - beta
        return found

    def _weights(self, y: Array, row: Array) -> Array:
        """Return rows of (I - beta 1 q^T) / (1 - beta)."""
        lost = np.flatnonzero((1 - self.beta) * MOST_WEIGHT < 1)
        if len(lost):
            raise InputError(
                f"beta = {float(self.beta[lost[0]])!r} of group {int(lost[0])}: a report says "
                f"{'nothing' if self.beta[lost[0]] == 1 else 'almost nothing'} of the true label, so none of the "
                f"{self.labels} labels can be told apart; give a smaller beta (a larger epsilon)"
            )
        beta = self.beta[row][:, None]
        found = -beta * self.q[row]
        found[np.arange(len(y)), y] += 1
        return np.asarray(found / (1 - beta))


@dataclass(frozen=True, eq=False)
class DenseMatrices(LabelMatrices):
    """Matrices of any form.  ``matrices`` (g, k, k) or (k, k), a row for each true label; ``group``: see above.

    Raises InputError for shapes that do not match, entries outside [0, 1], and rows that do not sum to 1.
    """

    matrices: Any
    group: Array | None = None

    def __post_init__(self) -> None:
        given = np.asarray(self.matrices, float)
        given = given[None] if given.ndim == 2 else given
        if given.ndim != 3 or given.shape[1] != given.shape[2] or given.shape[1] < 2 or not len(given):
            raise InputError(
                f"matrices have shape {np.shape(self.matrices)}; give (g, k, k), or (k, k) for all users, k at least 2"
            )
        _check_rows("matrix", given.reshape(-1, given.shape[2]), given.shape[1])
        _check_groups(self.group, len(given))
        object.__setattr__(self, "matrices", given)

    @property
    def labels(self) -> int:
        """Return k."""
        return int(self.matrices.shape[1])

    def dense(self, number: int = 0) -> Array:
        """Return a matrix (k, k)."""
        return np.asarray(self.matrices[number])

    def _likelihood(self, y: Array, row: Array) -> Array:
        """Return the columns of the reports."""
        return np.asarray(self.matrices[row, :, y])

    def _weights(self, y: Array, row: Array) -> Array:
        """Return rows of the inverse matrices, solved for and checked."""
        used, place = np.unique(row, return_inverse=True)
        inverses = np.stack([inverse(self.matrices[number]) for number in used]) if len(used) else None
        return np.zeros((0, self.labels)) if inverses is None else np.asarray(inverses[place, y])


def channel(labels: int, lie: float) -> Array:
    """Return the law of randomized response (k, k): P(said | label), and its own transpose.

    ``lie``: the probability, in [0, 1], that the label is replaced by one of the others, uniformly.
    """
    law = np.full((labels, labels), lie / (labels - 1))
    np.fill_diagonal(law, 1 - lie)
    return law


def inverse(matrix: Array) -> Array:
    """Return the inverse of a label randomization matrix (k, k): row j has the weights of the report j.

    Solved by LU with partial pivoting, and checked: the weights times the matrix are the identity to 1e-10 of the
    largest weight.  Raises InputError for a matrix that is singular, or so nearly that a weight is above 1e6; it names
    the labels that the reports do not tell apart.
    """
    labels = len(matrix)
    try:
        found = np.linalg.solve(matrix, np.eye(labels))
    except np.linalg.LinAlgError:
        found = np.full((labels, labels), np.inf)
    largest = float(np.abs(found).max())
    if not largest <= MOST_WEIGHT:
        raise InputError(
            f"the label randomization matrix has no usable inverse (a weight is {largest:.3g}, at most {MOST_WEIGHT:g} "
            f"is used): reports do not tell {confused(matrix)} apart; use the forward correction, which needs no "
            "inverse, make one class of these labels, or give more epsilon"
        )
    off = float(np.abs(matrix @ found - np.eye(labels)).max())
    if off > SOLVED_TO * max(largest, 1.0):
        raise InputError(
            f"the label randomization matrix was inverted only to {off:.3g}; use the forward correction, which needs "
            "no inverse"
        )
    return found


def confused(matrix: Array) -> str:
    """Return in words which labels a (nearly) singular matrix (k, k) does not tell apart.

    Labels whose rows are alike to 1e-6; otherwise those of the mixtures of labels that give the same reports: entries
    of the left singular vector of the smallest singular value.
    """
    for label, row in enumerate(matrix):
        alike = np.flatnonzero(np.abs(matrix - row).max(axis=1) <= 1 / MOST_WEIGHT)
        if len(alike) > 1:
            assert label == alike[0]
            return f"labels {_named(alike)}"
    least = np.linalg.svd(matrix)[0][:, -1]
    ahead, behind = (np.flatnonzero(sign * least > SOLVED_TO**0.5) for sign in (1, -1))
    return f"a mixture of labels {_named(ahead)} and one of labels {_named(behind)}"


def _named(labels: Array) -> str:
    text = ", ".join(str(label) for label in labels[:SHOWN].tolist())
    return text + (f" and {len(labels) - SHOWN} more" if len(labels) > SHOWN else "")


def _check_rows(name: str, rows: Array, each: int = 1) -> None:
    """Check rows of probabilities; ``each``: how many of them a matrix has."""
    bad = ~((rows >= 0).all(axis=1) & (np.abs(rows.sum(axis=1) - 1) <= SUMS_TO))
    if bad.any():
        row = int(np.argmax(bad))
        place = f"{row // each}, row {row % each}" if each > 1 else f"{row}"
        raise InputError(
            f"{name} {place} is {rows[row].tolist()[:SHOWN]}, whose sum is {float(rows[row].sum()):.12g}; give "
            "probabilities from 0 to 1 that sum to 1, a row for each true label: P(reported | true)"
        )


def _check_groups(group: Any, groups: int) -> None:
    if group is None:
        return
    if not isinstance(group, np.ndarray):
        raise InputError(f"group = {group!r}: give an array, for each user the number of her matrix")
    if (
        group.ndim != 1
        or group.dtype.kind not in "iu"
        or (len(group) and not 0 <= group.min() <= group.max() < groups)
    ):
        raise InputError(
            f"group has shape {group.shape} and type {group.dtype}; give for each user the number of her matrix, a "
            f"whole number from 0 to {groups - 1}"
        )
