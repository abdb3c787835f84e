"""The probability mass function of the number of ones among noisy bits of few users, with a bound of its rounding.

For clusters so small that the probability of every outcome can be listed.

*Source:* convolution, user by user.  All terms are positive, so relative errors add up and nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

_U = 2.0**-53
_TINY = 600.0  # minus the natural logarithm of the rarest probability that is listed: floats end at 708


def no_underflow(alpha: float, users: int, further: float = 0.0) -> bool:
    """Return whether the probability of every number of ones among ``users`` is a normal float.

    ``alpha``: in (0, 1/2].  ``further``: minus the logarithm of what each probability is multiplied by, at least 0.
    """
    return -users * math.log(alpha) + further < _TINY


def bit_count_pmf(alpha: float, ones: int, zeros: int) -> Array:
    """Return the probability of every number of ones, (users + 1,), from users who flip with probability ``alpha``.

    ``ones``, ``zeros``: how many have label 1 and 0.  The relative error is at most ``bits_error``.
    """
    law = np.ones(1)
    for chance in (1 - alpha,) * ones + (alpha,) * zeros:
        law = np.append(law * (1 - chance if chance <= 0.5 else alpha), 0.0) + np.append(0.0, law * chance)
    return law


def compositions(others: int) -> range:
    """Return the numbers of label 1 among ``others`` users, without those that are mirror images of others."""
    return range(others // 2, others + 1)


def listed_pair(law_of: Callable[[int], Array], ones: int) -> tuple[list[float], list[float]]:
    """Return log probabilities of all outcomes: with ``ones`` users of label 1, and with the victim one more.

    ``law_of(ones)``: the probabilities.
    """
    first, second = (logs(law_of(ones + label)) for label in (0, 1))
    return first, second


def bits_error(users: int) -> float:
    """Return the relative error of ``bit_count_pmf``: a step of two products and a sum, and the flip and its rest.

    A flip that was computed from a budget is right to 6 units in the last place.
    """
    return (12 * users + 16) * _U


def logs(masses: Array) -> list[float]:
    """Return natural logarithms; of 0, -infinity."""
    with np.errstate(divide="ignore"):
        return [float(value) for value in np.log(masses)]
