"""Ring, small-world, scale-free and grid graphs as columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from p2p_sim.core.exact import WORD
from p2p_sim.core.kernels_numpy import below
from p2p_sim.network.blocks import Blocks, Draws, Ints, keys, within

_ROUNDS = 100
_TELL = 256  # places from one word on progress to the next


def ring(blocks: Blocks, degree: int) -> Ints:
    """Return the pairs of each place and the ``degree / 2`` next ones around its group, shape (m, 2).

    ``degree`` is even and below every size less one.
    """
    at = np.tile(np.arange(blocks.places), degree // 2)
    step = np.repeat(np.arange(1, degree // 2 + 1), blocks.places)
    group = blocks.group[at]
    turned = (blocks.rank[at] + step) % blocks.sizes[group]
    return np.stack([at, blocks.starts[:-1][group] + turned]).T


def small_world(blocks: Blocks, degree: int, threshold: int, draws: Draws) -> Ints:
    """Return a ring where the far end of an edge is moved to a uniform other place if its word is below a threshold.

    A moved edge never lands on another edge or on one of the ring, also where that was moved (networkx allows the
    latter: a share of degree / size); where 100 tries find no place, it stays.
    Source: Watts and Strogatz, Collective dynamics of small-world networks, 1998.
    """
    pairs, bits = ring(blocks, degree), blocks.bits
    existing = np.sort(keys(pairs[:, 0], pairs[:, 1], bits))
    moving, added = np.arange(len(pairs)), np.zeros(0, np.int64)
    if threshold < WORD:
        moving = np.flatnonzero(draws.words("moved", len(pairs)) < np.uint64(threshold))
    for number in range(_ROUNDS):
        if not len(moving):
            break
        at = pairs[moving, 0]
        group = blocks.group[at]
        to = below(draws.words(f"to {number}", len(moving)), (blocks.sizes[group] - 1).astype(np.uint64))
        to += to >= blocks.rank[at]  # one of the others
        to += blocks.starts[:-1][group]
        key = keys(at, to, bits)
        first = np.zeros(len(key), np.bool_)
        first[np.unique(key, return_index=True)[1]] = True
        fine = first & ~within(existing, key) & ~within(added, key)
        pairs[moving[fine], 1] = to[fine]
        added = np.sort(np.concatenate([added, key[fine]]))
        moving = moving[~fine]
    return pairs


def scale_free(
    blocks: Blocks, links: int, draws: Draws, tell: Callable[[int, int], None] | None = None
) -> Ints:
    """Return graphs grown place by place: each new one joins ``links`` earlier ones, chosen in proportion to degree.

    A group begins with its first place joined to the next ``links``.  Ends are drawn until enough differ.
    ``tell``: is called now and then with the places that have joined, and all.
    Source: Barabasi and Albert, Emergence of scaling in random networks, 1999; law as in networkx.
    """
    drawn, first, second = draws.each("joined"), list[int](), list[int]()
    for start, size in zip(blocks.starts[:-1].tolist(), blocks.sizes.tolist(), strict=True):
        held = [start] * links + list(range(start + 1, start + links + 1))  # every place once an end
        first += [start] * links
        second += held[links:]
        for place in range(start + links + 1, start + size):
            chosen: dict[int, None] = {}  # a set in the order of its draws
            count = len(held)
            while len(chosen) < links:
                chosen[held[(next(drawn) * count) >> 64]] = None
            if tell is not None and place % _TELL == 0:
                tell(place, blocks.places)
            first += chosen
            second += [place] * links
            held += chosen
            held += [place] * links
    return np.array([first, second], np.int64).T


def grid(blocks: Blocks) -> Ints:
    """Return grids with open borders, row by row as nearly square as can be; the last row may be shorter."""
    width = np.ceil(np.sqrt(blocks.sizes)).astype(np.int64)[blocks.group]
    place, size = np.arange(blocks.places), blocks.sizes[blocks.group]
    right = ((blocks.rank + 1) % width != 0) & (blocks.rank + 1 < size)
    down = blocks.rank + width < size
    return np.concatenate(
        [
            np.column_stack([place[right], place[right] + 1]),
            np.column_stack([place[down], place[down] + width[down]]),
        ]
    )
