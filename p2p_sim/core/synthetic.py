"""Columns of synthetic users: labels with given shares, and features that carry the label, drawn by the bit contract.

Every entry is a pure function of seed and user, so a larger population begins with the same users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import exact
from p2p_sim.core.errors import InputError
from p2p_sim.core.random_words import Words, stream, words

Array = npt.NDArray[Any]

STEPS = 256
"""Grid steps in a standard deviation of the features' noise."""

_CHUNK = 1 << 20


def shares_of(labels: int, shares: Sequence[Any] | None, positive: Any) -> list[Fraction]:
    """Return the probability of each label.

    ``shares``: one a label; None: uniform.  ``positive``: that of label 1 of two labels, instead of ``shares``.
    Raises InputError for another number of shares, shares outside [0, 1] or that do not sum to 1, and ``positive``
    beside ``shares`` or for more than two labels.
    """
    if positive is not None:
        if shares is not None or labels != 2:
            raise InputError(
                f"positive = {positive!r}: the share of label 1 of two labels; here are {labels} labels"
                f"{' and shares' if shares is not None else ''}: leave it out, and give shares, one a label"
            )
        share = exact.as_fraction("positive", positive)
        return [1 - share, share]
    if shares is None:
        return [Fraction(1, labels)] * labels
    listed = isinstance(shares, (Sequence, np.ndarray)) and not isinstance(shares, (str, bytes))
    if not listed or len(shares) != labels:
        raise InputError(f"shares = {shares!r}: must be a list of {labels} probabilities, one a label")
    found = [exact.as_fraction(f"share of label {i}", share) for i, share in enumerate(shares)]
    total = sum(found, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise InputError(f"shares = {shares!r}: sum to {float(total):g}, must sum to 1")
    return found


def draw_labels(users: int, shares: Sequence[Fraction], seed: int, first: int = 0) -> Array:
    """Return a label a user (users,) from user ``first`` on: bool for two labels, otherwise uint8."""
    key = stream("synthetic", "label", 0)
    if len(shares) == 2:
        bound = exact.threshold("positive", shares[1])
        y = np.ones(users, np.bool_)
        return (
            y if bound == exact.WORD else _filled(y, seed, key, lambda drawn: drawn < np.uint64(bound), first)
        )
    table = exact.cumulative("shares", shares)
    return _filled(np.empty(users, np.uint8), seed, key, lambda drawn: exact.pick(table, drawn), first)


def centres(labels: int, features: int) -> npt.NDArray[np.float64]:
    """Return the mean of each feature for each label (labels, features).

    Labels are written in the least base, at least 2, in which ``features`` digits are enough.  Each feature stands for
    one digit, all digits in turn.  Its means for adjacent digits are 2 apart, and symmetric around 0.
    """
    base = 2
    while base**features < labels:
        base += 1
    digits = 1
    while base**digits < labels:
        digits += 1
    powers = base ** (np.arange(features) % digits)
    digit = np.arange(labels)[:, None] // powers % base
    return np.asarray(2 * digit - (base - 1), np.float64)


def placeholders(users: int, features: int) -> npt.NDArray[np.float64]:
    """Return features (users, features) in [0, 1) that depend on row and column alone, for runs that need only some."""
    return (np.arange(users * features) * 7 % 11 / 11).reshape(users, features)


def draw_features(y: Array, labels: int, features: int, seed: int, first: int = 0) -> npt.NDArray[np.float64]:
    """Return features (users, features): the centres of the labels plus discrete Gaussian noise of variance 1.

    ``y`` (users,): the labels of users from ``first`` on.  The noise is a multiple of 1/256, so that features have the
    same bits on every machine.
    """
    x = centres(labels, features)[y.astype(np.intp)]
    table, least = exact.gaussian_thresholds(STEPS)
    for feature in range(features):
        key, column = stream("synthetic", "feature", feature), np.empty(len(y), np.int64)
        _filled(column, seed, key, lambda drawn: exact.pick(table, drawn), first)
        x[:, feature] += (column + least) / STEPS
    return x


def _filled(column: Array, seed: int, key: int, value_of: Callable[[Words], Array], first: int = 0) -> Array:
    """Return a column, filled in parts with ``value_of`` each user's word of a stream, for users from ``first`` on."""
    for low in range(0, len(column), _CHUNK):
        part = column[low : low + _CHUNK]
        part[:] = value_of(words(seed, key, first + low, len(part)))
    return column
