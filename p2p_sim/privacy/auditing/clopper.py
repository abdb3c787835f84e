"""Bounds on one probability from whole numbers of hits, and the two privacy figures of a pair of probabilities.

Source: Clopper & Pearson 1934.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing._checks import counted, probability

Array = npt.NDArray[Any]

HAIR = 1e-12
"""Bounds are rounded outward by this share; scipy's inverse is good to about 1e-15."""


def lower(hits: Any, trials: int, error: float) -> Array:
    """Return the lower Clopper-Pearson bound of a probability, which is too high in a share of at most ``error``.

    ``hits``: whole numbers from 0 to ``trials``, any shape.  ``error`` in (0, 1).  Raises InputError otherwise.
    Source: Clopper & Pearson 1934.
    """
    found = counted("hits", hits, trials).astype(np.float64)
    return lower_real(found, trials, probability("error", error))


def upper(hits: Any, trials: int, error: float) -> Array:
    """Return the upper Clopper-Pearson bound of a probability, which is too low in a share of at most ``error``.

    Arguments as in ``lower``.  Source: Clopper & Pearson 1934.
    """
    found = counted("hits", hits, trials).astype(np.float64)
    return upper_real(found, trials, probability("error", error))


def share(thresholds: float, confidence: float) -> float:
    """Return the error left for one bound: the budget over 2 directions, ``thresholds`` each, and 2 worlds.

    ``thresholds`` is half the number of events, where the directions have different numbers of them.
    """
    if isinstance(thresholds, bool) or not thresholds >= 0.5 or not (2 * thresholds) % 1 == 0:
        raise InputError(
            f"thresholds = {thresholds!r}: must be a whole number, at least 1, or half the events"
        )
    return (1 - probability("confidence", confidence)) / (4 * thresholds)


def lower_real(hits: Array, trials: Any, error: float) -> Array:
    """Return the bound for hits that need not be whole, as planning has them."""
    from scipy.special import betaincinv

    # Without hits the first parameter would be 0; the bound is then 0 whatever it is.
    inner: Array = betaincinv(np.maximum(hits, 1e-9), trials - hits + 1, error) * (1 - HAIR)
    return np.where(hits > 0, inner, 0.0)


def upper_real(hits: Array, trials: Any, error: float) -> Array:
    """Return the bound for hits that need not be whole; 1 where every trial hit."""
    from scipy.special import betainccinv

    # The complement takes a tiny error as it is: 1 - 1e-20 would be 1.
    inner: Array = betainccinv(hits + 1, np.maximum(trials - hits, 1e-9), error) * (1 + HAIR)
    return np.where(hits < trials, np.minimum(inner, 1.0), 1.0)


def ratio(p: Any, q: Any, delta: float) -> Array:
    """Return ln((p - delta)/q), minus infinity where delta alone explains p."""
    over = np.asarray(p) - delta
    return np.asarray(np.where(over > 0, np.log(np.maximum(over, 1e-320)), -np.inf) - np.log(q))


def excess(p: Any, q: Any, epsilon: float) -> Array:
    """Return p - e^epsilon q, or about -1 where that is far below 0; finite for any epsilon."""
    return np.asarray(p - np.exp(np.minimum(epsilon + np.log(q), 1.0)))
