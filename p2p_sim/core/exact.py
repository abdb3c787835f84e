"""Probabilities as exact fractions and integer thresholds, the same bits everywhere; checks of ranges and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError

WORD = 1 << 64
EXP_LIMIT = 1_000_000
LAPLACE_LIMIT = 20_000
"""Largest scale of a discrete Laplace draw, in grid steps: its thresholds are a table of about 90 entries a step."""

_CONTEXT = Context(prec=60)


def exp(x: float) -> Fraction:
    """Return e^x to 60 digits: the same on every machine, unlike the C library's.  x up to 1e6, in nats."""
    if not x <= EXP_LIMIT:
        raise InputError(f"e^{x!r} is too large to be computed: at most {EXP_LIMIT:,}")
    return Fraction(_CONTEXT.exp(Decimal(float(x))))


def as_fraction(name: str, value: Any) -> Fraction:
    """Return a probability as the exact fraction its float or Fraction is; raises InputError outside [0, 1]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Rational, np.floating, np.integer)):
        raise InputError(f"{name} = {value!r}: a probability is a number from 0 to 1")
    exact = isinstance(value, Fraction)
    if not exact and not (math.isfinite(value) and 0 <= float(value) <= 1):
        raise InputError(f"{name} = {value!r}: a probability lies from 0 to 1")
    fraction = Fraction(value) if isinstance(value, (Fraction, int)) else Fraction(float(value))
    if not 0 <= fraction <= 1:
        raise InputError(f"{name} = {value!r}: a probability lies from 0 to 1")
    return fraction


def threshold(name: str, probability: Any) -> int:
    """Return floor(p * 2^64): a word is below it with probability p (to 2^-64); p = 1 gives 2^64, always."""
    if type(probability) is float and 0 <= probability <= 1:
        return int(probability * 2.0**64)  # scaling by a power of two is exact, and needs no fractions
    return math.floor(as_fraction(name, probability) * WORD)


def thresholds(
    name: str, probabilities: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return floor(p * 2^64) for a column of floats, and where p = 1 (always true, whatever the threshold)."""
    if np.asarray(probabilities).dtype == object:  # Fractions and the like, one by one
        bounds = [threshold(name, p) for p in probabilities]
        whole = np.array([min(bound, WORD - 1) for bound in bounds], np.uint64)
        return whole, np.array([bound == WORD for bound in bounds], np.bool_)
    p = np.asarray(probabilities, np.float64)
    if not bool(((p >= 0) & (p <= 1)).all()):
        bad = p[~((p >= 0) & (p <= 1))][0]
        raise InputError(f"{name} = {bad}: a probability lies from 0 to 1")
    certain = p == 1
    return np.where(certain, 0.0, p * 2.0**64).astype(
        np.uint64
    ), certain  # scaling by a power of two is exact


def cumulative(name: str, weights: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """Return the thresholds of all but the last outcome of a categorical draw; weights are scaled to sum to 1.

    They are kept, for a program that draws from the same weights in every block.
    """
    given = tuple(weights)
    try:
        if not all(issubclass(each, _NUMBERS) for each in set(map(type, given))):
            raise ValueError(_FINITE)
        return _thresholds_of(given)
    except ValueError as error:
        raise InputError(f"{name}: weights {list(given)!r}; needed: {error}") from None


_NUMBERS = (int, float, Rational, np.floating, np.integer)
_FINITE = "finite numbers"


@lru_cache(maxsize=64)  # every block draws from the same weights
def _thresholds_of(weights: tuple[Any, ...]) -> npt.NDArray[np.uint64]:
    """Return the thresholds of numbers; raises ValueError, which says what is needed, if they are no law."""
    if not all(isinstance(w, Fraction) or math.isfinite(w) for w in weights):
        raise ValueError(_FINITE)
    shares = [_fraction(w) for w in weights]
    total = sum(shares, Fraction(0))
    if not shares or any(w < 0 for w in shares) or total <= 0:
        raise ValueError("at least one, none negative, not all 0")
    running, out = Fraction(0), []
    for share in shares[:-1]:
        running += share
        out.append(math.floor(running / total * WORD))
    table = np.array([bound for bound in out if bound < WORD], np.uint64)  # beyond 2^64 nothing is drawn
    table.setflags(write=False)
    return table


@lru_cache(maxsize=64)
def laplace_thresholds(scale: Fraction) -> tuple[npt.NDArray[np.uint64], int]:
    """Return (thresholds, least value) of P(k) = (1 - q)/(1 + q) q^|k|, q = e^(-1/scale), by fixed-point arithmetic.

    Outcome i + least is drawn when i thresholds are at most the word; both tails are cut where less than one
    word in 2^64 remains.  ``scale`` in grid steps, in (0, 20000]; raises InputError otherwise.
    """
    if not 0 < scale <= LAPLACE_LIMIT:
        raise InputError(
            f"Laplace scale {scale} steps: allowed are 0 < scale <= {LAPLACE_LIMIT}; use a coarser grid"
        )
    bits = 192
    exponent = _CONTEXT.divide(Decimal(-scale.denominator), Decimal(scale.numerator))
    q = math.floor(Fraction(_CONTEXT.exp(exponent)) * (1 << bits))
    one = 1 << bits
    tail = (q << bits) // (one + q)  # P(k >= 1) = q / (1 + q), then times q a step
    tails = []
    while tail >> (bits - 64):
        tails.append(tail >> (bits - 64))
        tail = (tail * q) >> bits
    below = tails[::-1]  # P(k <= -j) for j = len .. 1
    above = [WORD - t for t in tails]  # P(k <= j - 1)
    return np.array(below + above, np.uint64), -len(tails)


@lru_cache(maxsize=4)
def gaussian_thresholds(deviation: int) -> tuple[npt.NDArray[np.uint64], int]:
    """Return (thresholds, least value) of P(k) proportional to e^(-k^2 / (2 deviation^2)), by fixed-point arithmetic.

    Outcome i + least is drawn when i thresholds are at most the word.  ``deviation``: in grid steps, at least 1; what
    lies more than ten deviations away, and less than one word in 2^64, is cut.

    *Source:* the discrete Gaussian of Canonne, Kamath and Steinke 2020.
    """
    reach, twice = 10 * deviation, Decimal(2 * deviation * deviation)
    one = Decimal(1 << 192)
    exponents = (_CONTEXT.divide(Decimal(-k * k), twice) for k in range(reach + 1))
    half = [int(_CONTEXT.multiply(_CONTEXT.exp(exponent), one)) for exponent in exponents]
    weights = (*half[:0:-1], *half)
    total, running, least, bounds = sum(weights), 0, -reach, list[int]()
    for weight in weights[:-1]:
        running += weight
        bound = running * WORD // total
        least += bound == 0
        if 0 < bound < WORD:
            bounds.append(bound)
    return np.array(bounds, np.uint64), least


def as_scale(name: str, value: Any) -> Fraction:
    """Return the scale of a Laplace draw as an exact fraction; raises InputError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Rational, np.floating, np.integer)):
        raise InputError(f"{name} = {value!r}: a scale is a number of grid steps above 0")
    if not isinstance(value, Fraction) and not math.isfinite(value):
        raise InputError(f"{name} = {value!r}: a scale is finite, in grid steps")
    return _fraction(value)


def _fraction(value: Any) -> Fraction:
    """Return a finite number exactly; of Python's integers, for those of numpy overflow in a Fraction."""
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


def pick(table: npt.NDArray[np.uint64], words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return, for each word, how many thresholds are at most the word."""
    if len(words) < GUIDED:
        return np.searchsorted(table, words, side="right").astype(np.int64)
    shift, firsts = guide(table)
    stretch = (words >> shift).view(np.int64)
    found = firsts[stretch].astype(np.int64)
    unsure = np.flatnonzero(found != firsts[stretch + 1])
    found[unsure] = np.searchsorted(table, words[unsure], side="right")
    return found


GUIDED = 16_384
"""Words from which a search is guided: from which it repays making the guide."""


def guide(table: npt.NDArray[np.uint64]) -> tuple[np.uint64, npt.NDArray[np.int32]]:
    """Return by how many bits to shift a word for its stretch, and how many thresholds lie before each, and in all.

    The stretches are so many that most words are drawn in one without a threshold: eight or more a threshold, from
    4,096, which stay in the nearest cache, to 65,536.
    """
    return _guide_of(table.tobytes())


@lru_cache(maxsize=16)  # every block draws from the same table
def _guide_of(thresholds: bytes) -> tuple[np.uint64, npt.NDArray[np.int32]]:
    table = np.frombuffer(thresholds, np.uint64)
    bits = min(max(12, len(table).bit_length() + 3), 16)
    shift = np.uint64(64 - bits)
    firsts = np.zeros((1 << bits) + 1, np.int32)
    np.cumsum(np.bincount((table >> shift).view(np.int64), minlength=1 << bits), out=firsts[1:])
    firsts.setflags(write=False)
    return shift, firsts
