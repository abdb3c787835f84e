"""The worst composition, by branch and bound: every composition is computed or lies in a block with a bound."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

_ROOM = 0.01  # of all values, times the part by which an end is below the best: how long blocks are there at least


class Maximum(NamedTuple):
    """The largest value found, where, and an upper bound of all values."""

    value: float
    at: int
    upper: float


def blocks(size: int, growth: float, extra: tuple[float, float] = (0.0, 0.0)) -> list[tuple[int, int]]:
    """Return 0..size - 1 as blocks (first, last), inclusive, from both ends to the middle.

    A block is ``growth`` times as long as its distance from the end, and ``extra`` of that end longer, and at least 1.
    """
    first = list(_half((size + 1) // 2, growth, extra[0]))
    second = list(_half(size // 2, growth, extra[1]))
    return first + [(size - 1 - last, size - 1 - low) for low, last in second]


def _half(size: int, growth: float, extra: float) -> Iterator[tuple[int, int]]:
    low = 0
    while low < size:
        step = min(max(1, int(growth * low + extra)), size - low)
        yield low, low + step - 1
        low += step


def search(
    size: int,
    single: Callable[[int], float],
    bound: Callable[[int, int], float],
    *,
    growth: float = 0.5,
    floor: float = 0.0,
    slack: float = 0.0,
    budget: int | None = None,
) -> Maximum:
    """Return the largest ``single(i)``, i in 0..size - 1, where it exceeds ``floor``.

    ``bound(low, high)`` is at least every single of the block.  A block is opened only while its bound is above all
    found so far, by more than the part ``slack``.  ``growth``: of the first blocks, which are longer where an end is
    well below the best.  ``budget``: evaluations after which the search stops; there are then fewer first blocks than
    half of it (or four), as a block without a bound allows anything.  ``upper`` is what blocks that were not opened
    allow.
    """
    ends = [(single(0), 0), (single(size - 1), size - 1)]
    best, at = max([(floor, -1), *ends], key=itemgetter(0))
    spent, closed = 2, best
    extra = [_ROOM * size * (1 - value / best) if best > 0 else 0.0 for value, _ in ends]
    inner = blocks(max(0, size - 2), growth, (extra[0], extra[1]))
    while budget is not None and len(inner) > max(4, budget // 2):
        growth *= 2
        inner = blocks(max(0, size - 2), growth, (extra[0], extra[1]))
    heap = [(-float("inf"), low + 1, high + 1) for low, high in inner]
    heapq.heapify(heap)
    while heap and -heap[0][0] > best * (1 + slack) and (budget is None or spent < budget):
        above, low, high = heapq.heappop(heap)
        if high - low < 2:
            for i in range(low, high + 1):
                value, spent = single(i), spent + 1
                if value > best:
                    best, at = value, i
            continue
        for first, last in [(low, high)] if above == -float("inf") else _thirds(low, high):
            if last - first < 2:
                heapq.heappush(heap, (-min(-above, 1e300), first, last))
                continue
            value, spent = bound(first, last), spent + 1
            if value > best * (1 + slack):
                heapq.heappush(heap, (-value, first, last))
            else:
                closed = max(closed, value)
    return Maximum(best, at, max(best, closed, -heap[0][0] if heap else best))


def _thirds(low: int, high: int) -> list[tuple[int, int]]:
    width = max(1, (high - low + 1) // 3)
    return [(i, min(high, i + width - 1)) for i in range(low, high + 1, width)]


def climb(last: int, single: Callable[[int], float], floor: float, near: int = 1 << 62) -> tuple[float, int]:
    """Return the largest of ``single`` found in 0..last by a documented search, and where; -1 if not above ``floor``.

    Both ends and distances from them that grow by half (up to ``near``) are tried, then the neighbourhood of the
    best is halved.
    """
    reach = min(near, last // 2)
    steps = sorted({0, *(int(1.5**j) for j in range(200) if int(1.5**j) <= reach), reach})
    tried = {i: single(i) for step in steps for i in (step, last - step)}
    at = max(tried, key=lambda i: tried[i])
    width = max(1, min(at, last - at) // 2)
    while width >= 1:
        for i in (at - width, at + width):
            if 0 <= i <= last and i not in tried:
                tried[i] = single(i)
        at = max(tried, key=lambda i: tried[i])
        width //= 2
    return (tried[at], at) if tried[at] > floor else (floor, -1)
