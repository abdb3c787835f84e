"""Shares of discrete Laplace noise: many of them add up to it."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from p2p_sim.core import exp

BITS = 256
_TAIL = 72
"""What is left out of a table is less than 2^-72 of it: no word of 64 bits would draw it."""


@lru_cache(maxsize=16)
def polya_weights(scale: Fraction, shares: int) -> tuple[int, ...]:
    """Return weights of 0, 1, ..., proportional to Polya(1/shares, q), q = e^(-1/scale), in 256-bit integers.

    The difference of two such variables is a share: ``shares`` of them, added up, are discrete Laplace noise of that
    scale, P(j) proportional to e^(-|j| / scale).  ``scale`` in steps, above 0.

    *Source:* Goryczka and Xiong 2017: the geometric distribution is infinitely divisible.
    """
    ratio = int(exp(-1 / float(scale)) * (1 << BITS))
    weights, weight, total = [], 1 << BITS, 0
    while True:
        weights.append(weight)
        total += weight
        j = len(weights)
        weight = weight * ratio * (1 + (j - 1) * shares) // (shares * j << BITS)
        if weight << (_TAIL + BITS) < total * ((1 << BITS) - ratio):
            return tuple(weights)
