"""Random regular graphs as columns: half-edges are paired at random, and pairs that cannot stay are switched.

The law is uniform over regular graphs only in the limit of many users: at degree d about (d^2 - 1) / 4 pairs are loops
or doubles, whatever the size, and each is switched with a random edge, which leaves a bias of the order of their share.
Source: Bollobas, A probabilistic proof of an asymptotic formula for the number of labelled regular graphs, 1980
(pairing); McKay and Wormald, Uniform generation of random regular graphs of moderate degree, 1990 (switching).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from p2p_sim.core.kernels_numpy import below
from p2p_sim.network.blocks import Blocks, Draws, Ints, all_pairs, copies, keys, within

_ROUNDS = 200  # of switching; what is left then is drawn anew


def regular(blocks: Blocks, degree: int, draws: Draws) -> Ints:
    """Return the pairs of a random simple graph on each group, every place in ``degree`` of them, shape (m, 2).

    Sizes times degree are even and sizes above the degree.  A group where switching failed gets no pair at all.
    """
    dense = 2 * degree > blocks.sizes - 1  # then its complement is drawn: sparse graphs are easy to repair
    pairs, failed = _paired(blocks, np.where(dense, blocks.sizes - 1 - degree, degree), draws)
    group = blocks.group[pairs[:, 0]]
    pairs = pairs[~failed[group]] if failed.any() else pairs
    if not dense.any():
        return pairs
    group = blocks.group[pairs[:, 0]]
    turned = dense & ~failed
    return np.concatenate([pairs[~dense[group]], _complement(blocks, turned, pairs[turned[group]])])


def _complement(blocks: Blocks, chosen: npt.NDArray[np.bool_], pairs: Ints) -> Ints:
    """Return all other pairs of the chosen groups."""
    places = np.flatnonzero(chosen[blocks.group])
    every = places[all_pairs(Blocks(blocks.sizes[chosen]))]
    taken = np.sort(keys(pairs[:, 0], pairs[:, 1], blocks.bits))
    return every[~within(taken, keys(every[:, 0], every[:, 1], blocks.bits))]


def _paired(blocks: Blocks, degrees: Ints, draws: Draws) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return (pairs, the groups that are not simple graphs) where places of group g have ``degrees[g]``."""
    ends_ = _shuffled(blocks, degrees, draws)
    first, second, bits = ends_[0::2].copy(), ends_[1::2].copy(), blocks.bits
    del ends_
    key = keys(first, second, bits)
    existing = np.sort(key)
    wrong = first == second
    wrong[copies(key, existing)] = True
    bad = np.flatnonzero(wrong)
    edges = blocks.sizes * degrees // 2
    starts, added = np.cumsum(edges) - edges, np.zeros(0, np.int64)
    for number in range(_ROUNDS):
        if not len(bad):
            break
        drawn = draws.words(f"switch {number}", 2 * len(bad)).reshape(2, -1)
        group = blocks.group[first[bad]]
        other = starts[group] + below(drawn[0], edges[group].astype(np.uint64))
        turn = drawn[1] >> np.uint64(63) == 1
        a = np.where(turn, second[other], first[other])
        b = np.where(turn, first[other], second[other])
        one, two = keys(first[bad], a, bits), keys(second[bad], b, bits)
        fine = ~wrong[other] & (first[bad] != a) & (second[bad] != b) & _once(other)
        for new in (one, two):  # edges that were taken away stay forbidden: known is not sorted again
            fine &= ~within(existing, new) & ~within(added, new)
        both = np.stack([one, two])[:, fine]
        fine[fine] = _once(both.ravel()).reshape(2, -1).all(0)
        moved, partner = bad[fine], other[fine]
        first[partner], second[partner] = second[moved], b[fine]
        second[moved] = a[fine]
        wrong[moved] = False
        added = np.sort(np.concatenate([added, one[fine], two[fine]]))
        bad = bad[~fine]
    failed = np.zeros(len(blocks.sizes), np.bool_)
    failed[blocks.group[first[bad]]] = True
    return np.stack([first, second]).T, failed


def _once(values: Ints) -> npt.NDArray[np.bool_]:
    """Return which values occur once."""
    order = np.argsort(values, kind="stable")
    same = np.diff(values[order]) == 0
    out = np.ones(len(values), np.bool_)
    out[order[1:][same]] = False
    out[order[:-1][same]] = False
    return out


def _shuffled(blocks: Blocks, degrees: Ints, draws: Draws) -> Ints:
    """Return every place once a half-edge, groups in their order, each in the order of words, ties by place.

    The word's lowest bits give way to the place and its highest to the group, so that one plain sort does it: at a
    million users 44 of 64 bits decide, and about one pair of half-edges in 2^44 is a tie.
    """
    half = degrees[blocks.group]
    stubs = int(half.sum())
    low, high = np.uint64(int(blocks.sizes.max()).bit_length()), (len(blocks.sizes) - 1).bit_length()
    packed = draws.words("half-edges", stubs)
    if high:
        packed >>= np.uint64(high)
        packed |= np.repeat(blocks.group.astype(np.uint64) << np.uint64(64 - high), half)
    packed >>= low
    packed <<= low
    packed |= np.repeat(blocks.rank.astype(np.uint64), half)
    packed.sort()
    packed &= (np.uint64(1) << low) - np.uint64(1)
    place = packed.view(np.int64)
    if high:
        place += np.repeat(blocks.starts[:-1], blocks.sizes * degrees)
    return place
