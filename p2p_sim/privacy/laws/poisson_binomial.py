"""Numbers of ones among independent bits that differ: their laws, and what a count tells of each single bit.

Many groups of bits at once; all sums are of terms of one sign, so that no digits cancel.

*Source:* ``docs/laws.md``, "What counts say of single labels".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIRECT = 1024
"""Bits of a group up to which all partial sums are listed; larger groups are halved, with Fourier transforms."""

_BLOCK = 256  # bits of a group that is not halved any more
_ENTRIES = 1 << 24  # of all partial sums that are held at a time
_WASTE = 1.25  # how much longer the longest of groups that go together is than the shortest, at most
_FAR = 40.0  # beyond the largest log odds, in nats: how far these are shifted at most
_BISECTIONS = 48


def pmf(ones: Floats) -> Floats:
    """Return P(number of ones = 0 .. k) of each group, shape (groups, k + 1); ``ones`` (groups, k) in [0, 1]."""
    return _with(np.ones((len(ones), 1)), ones, 1 - ones)


def leave_one_out(ones: Floats) -> Floats:
    """Return the law of the number of ones without bit i of each group, shape (groups, i, 0 .. k - 1).

    ``ones`` (groups, k) in [0, 1].  By halving: nothing is divided out.
    """
    groups, k = ones.shape
    out = np.zeros((groups, k, k))

    def divide(first: int, last: int, law: Floats) -> None:
        if last - first == 1:
            out[:, first] = law
            return
        middle = (first + last) // 2
        for low, high, other in ((first, middle, slice(middle, last)), (middle, last, slice(first, middle))):
            divide(low, high, _with(law, ones[:, other], 1 - ones[:, other]))

    if k:
        divide(0, k, np.ones((groups, 1)))
    return out


def _with(law: Floats, ones: Floats, zeros: Floats) -> Floats:
    """Return the laws (groups, s) of sums with further bits (groups, k) added, (groups, s + k)."""
    groups, size = law.shape
    grown = np.zeros((groups, size + ones.shape[1]))
    grown[:, :size] = law
    for i in range(ones.shape[1]):
        p, q, end = ones[:, i, None], zeros[:, i, None], size + i
        grown[:, 1 : end + 1] = grown[:, 1 : end + 1] * q + grown[:, :end] * p
        grown[:, :1] *= q
    return grown


def bit_likelihoods(ones: Floats, sizes: Ints, log_weights: Floats) -> Floats:
    """Return ln E[w(number of ones of its group) | bit i = c] for c = 0, 1, shape (n, 2), each row up to a constant.

    ``ones`` (n,): P(bit i = 1), in [0, 1], group after group; ``sizes`` (groups,): bits of each group, at least 1;
    ``log_weights``: ln w(0 .. k) of each group, one after the other, (n + groups,): -infinity everywhere but at the
    count that was seen, or how likely what was seen is given the count.  A group may have one value for all entries
    but -infinity.

    A row is -infinity where neither value of the bit allows what was seen.
    """
    out = np.empty((len(ones), 2))
    starts = np.cumsum(sizes) - sizes
    for groups in _alike(sizes):
        width = int(sizes[groups].max())
        for few in _at_once(groups, width):
            inside = np.arange(width) < sizes[few, None]
            at = np.where(inside, starts[few, None] + np.arange(width), 0)
            p = np.where(inside, ones[at], 0.0)  # a bit that is surely 0 changes nothing
            reach = np.arange(width + 1) <= sizes[few, None]
            entry = np.where(reach, (starts + np.arange(len(sizes)))[few, None] + np.arange(width + 1), 0)
            weights = np.where(reach, log_weights[entry], -np.inf)
            out[at[inside]] = _likelihoods(p, weights)[inside]
    return out


def _alike(sizes: Ints) -> Iterator[Ints]:
    """Yield the positions of groups of about one size."""
    order = np.argsort(sizes, kind="stable")
    ascending, first = sizes[order], 0
    while first < len(order):
        last = int(np.searchsorted(ascending, ascending[first] * _WASTE, side="right"))
        yield order[first:last]
        first = last


def _at_once(groups: Ints, width: int) -> Iterator[Ints]:
    many = max(1, _ENTRIES // (width * width)) if width <= DIRECT else 1
    for first in range(0, len(groups), many):
        yield groups[first : first + many]


def _likelihoods(ones: Floats, log_weights: Floats) -> Floats:
    """Return the same of groups of one size: ``ones`` (groups, k), ``log_weights`` (groups, k + 1); (groups, k, 2)."""
    from scipy.special import expit

    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(ones) - np.log1p(-ones)
        shift = _shift(odds, log_weights)
        weights = log_weights - shift[:, None] * np.arange(log_weights.shape[1])
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        odds = odds + shift[:, None]
        p, q = expit(odds), expit(-odds)
        found = (_listed if ones.shape[1] <= DIRECT else _halved)(p, q, np.nan_to_num(weights))
        logs = np.asarray(np.log(found))
    logs[:, :, 1] += shift[:, None]
    return logs


def _shift(odds: Floats, log_weights: Floats) -> Floats:
    """Return by how much log odds are shifted, (groups,), so that about as many ones are expected as were seen.

    Where the law of the sum times the weights is largest: there ln w rises by the shift from one count to the next.
    Any shift gives the same result except for rounding: without it what matters may be too small for a float.
    """
    from scipy.special import expit

    possible = log_weights > -np.inf
    low, high = possible.argmax(axis=1), possible.shape[1] - 1 - possible[:, ::-1].argmax(axis=1)
    count = np.arange(odds.shape[1])
    rise = np.nan_to_num(np.diff(log_weights, axis=1), nan=0.0, posinf=np.inf, neginf=-np.inf)
    rise = np.where(count < low[:, None], np.inf, np.where(count >= high[:, None], -np.inf, rise))
    sure, still = (odds == np.inf).sum(axis=1), np.isfinite(odds)
    free = still.sum(axis=1)
    most = np.where(still, np.abs(odds), 0.0).max(axis=1, initial=0.0) + _FAR
    least = -most
    inner = np.where(still, odds, -np.inf)
    for _ in range(_BISECTIONS):
        middle = (least + most) / 2
        mean = expit(inner + middle[:, None]).sum(axis=1)
        # away from the ends, where no odds would do
        place = sure + mean * (free + 1) / np.maximum(free, 1) - 0.5
        at = np.clip(np.floor(place).astype(np.int64), 0, odds.shape[1] - 1)
        wanted = np.where(place < low, np.inf, rise[np.arange(len(odds)), at])
        up = middle < wanted
        least, most = np.where(up, middle, least), np.where(up, most, middle)
    return np.asarray((least + most) / 2)


def _listed(p: Floats, q: Floats, weights: Floats) -> Floats:
    """Return E[w | bit i = c], (groups, k, 2): the sums of the bits before i, times what the bits after i expect."""
    groups, k = p.shape
    out = np.empty((groups, k, 2))
    p, q, after = (np.ascontiguousarray(each.T) for each in (p, q, weights))  # the groups last
    before = [np.ones((1, groups))]
    for i in range(k - 1):
        grown = np.zeros((i + 2, groups))
        np.multiply(before[i], q[i], out=grown[:-1])
        grown[1:] += before[i] * p[i]
        before.append(grown)
    for i in range(k - 1, -1, -1):
        law, rest = before.pop(), after[: i + 2]
        out[:, i, 0] = np.einsum("jg,jg->g", law, rest[:-1])
        out[:, i, 1] = np.einsum("jg,jg->g", law, rest[1:])
        after = rest[:-1] * q[i] + rest[1:] * p[i]
    return out


def _halved(p: Floats, q: Floats, weights: Floats) -> Floats:
    """Return the same of large groups: what each half expects of the sum is the weights, averaged over the other half.

    Errors are about 1e-16 of the largest entry of each step, and what matters is near the largest.
    """
    from scipy.signal import fftconvolve

    groups, k = p.shape
    blocks = 1 << max(0, int(np.ceil(np.log2(k / _BLOCK))))
    width = -(-k // blocks)
    padding = ((0, 0), (0, blocks * width - k))
    p, q = np.pad(p, padding), np.pad(q, padding, constant_values=1.0)
    inner = [each.reshape(groups * blocks, width) for each in (p, q)]
    laws = [_with(np.ones((groups * blocks, 1)), *inner)]
    while len(laws[-1]) > groups:
        laws.append(np.maximum(fftconvolve(laws[-1][::2], laws[-1][1::2], axes=1), 0.0))
    after = np.pad(weights, padding)
    for law in laws[-2::-1]:
        halves = [
            fftconvolve(after, law[other::2, ::-1], mode="valid", axes=1) for other in (1, 0)
        ]  # of each half, averaged over the other one
        after = np.maximum(np.stack(halves, axis=1).reshape(len(law), -1), 0.0)
    found = np.concatenate(
        [_listed(*(each[few] for each in (*inner, after))) for few in _at_once(np.arange(len(after)), width)]
    )
    return found.reshape(groups, blocks * width, 2)[:, :k]
