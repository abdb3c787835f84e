"""A lower bound on epsilon from one run: of many coins that went into it, how many are guessed right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SOURCE = "Steinke, Nasr, Jagielski 2023 (privacy auditing with one training run), Theorem 5.2"

SHARES = (1.0, 0.5, 0.25, 0.125)
"""Of the coins, the share that is guessed, the surest ones: the best of these counts, each with a part of the error."""

_PRECISE = 1e-6


def p_value(coins: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return the most that (epsilon, delta) allows the probability of so many right guesses to be.

    ``guesses`` of ``coins`` fair coins are made, ``right`` of them so; the others are left out.  ``epsilon`` >= 0 in
    nats; ``delta`` in [0, 1).

    *Source:* Steinke, Nasr, Jagielski 2023, Theorem 5.2; with delta = 0 its Theorem 5.1.
    *Assumes:* each coin decides one input of the mechanism, and replacing it is what (epsilon, delta) is of.  It takes
    no guesses to be independent.
    """
    from scipy.stats import binom

    share = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guesses, share))
    if not delta:
        return min(1.0, beta)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, share))  # P(right > W >= right - i)
    alpha = float((below / np.arange(1, right + 1)).max(initial=0.0))
    return min(1.0, beta + 2 * coins * delta * alpha)


def lower(coins: int, guesses: int, right: int, delta: float, error: float) -> float:
    """Return the least epsilon (nats) that is not ruled out: too high with a probability of at most ``error``.

    0 where chance explains the guesses.  *Source*, *Assumes:* as ``p_value``.
    """
    if p_value(coins, guesses, right, 0.0, delta) > error:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(coins, guesses, right, high, delta) <= error:
        low, high = high, 2 * high
    while high - low > _PRECISE:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if p_value(coins, guesses, right, middle, delta) <= error else (low, middle)
        )
    return low


def of_scores(
    scores: npt.NDArray[np.float64],
    flipped: npt.NDArray[np.bool_],
    delta: float,
    error: float,
    shares: Sequence[float] = SHARES,
) -> float:
    """Return the best lower bound (nats) of guesses by ``scores`` (m,): the lowest are flipped, the highest are not.

    Of each of ``shares`` as many are guessed at either end; the error is divided among them.

    *Source*, *Assumes:* as ``p_value``.
    """
    order, found = np.argsort(scores, kind="stable"), 0.0
    for share in shares:
        each = int(share * len(scores) / 2)  # rounded down: nobody is at both ends
        low, high = order[:each], order[len(order) - each :]
        right = int(flipped[low].sum() + (~flipped[high]).sum())
        found = max(found, lower(len(scores), 2 * each, right, delta, error / len(shares)) if each else 0.0)
    return found
