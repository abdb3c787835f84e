"""Follow every way through a program once in a file of tests, for all the views that look at them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from p2p_sim.core.groups import Members
from p2p_sim.core.population import Population
from p2p_sim.privacy.enumeration.enumerate import Way
from protocols import peer_permutation

MOST_KEPT = 30_000
"""Ways that are kept in all, of the worlds looked at last; some kilobytes each."""


def remembered(follow: Callable[..., Iterable[Way]]) -> Callable[..., Iterator[Way]]:
    """Return ``enumerate._ways`` with a memory: the law of each view is still computed from the ways themselves."""
    kept: OrderedDict[Any, list[Way]] = OrderedDict()

    def ways(protocol: Any, population: Population, faults: Any) -> Iterator[Way]:
        key = (protocol, repr(protocol), _content(population), repr(faults), _patched())
        if key not in kept:
            found: list[Way] = []
            for way in follow(protocol, population, faults):
                found.append(way)
                yield way
            kept[key] = found  # only what was followed to its end
            while sum(map(len, kept.values())) > MOST_KEPT:
                kept.popitem(last=False)
            return
        kept.move_to_end(key)
        yield from kept[key]

    return ways


def _patched() -> tuple[Any, ...]:
    """Return what tests replace in a program so that it has few enough ways."""
    return peer_permutation.SHARES, peer_permutation.agreed_order


def _content(value: Any) -> Any:
    """Return what tells populations apart, whatever they have looked up before."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Population):
        return tuple(
            _content(getattr(value, name))
            for name in ("y", "clusters", "x", "public", "secret", "graph", "ids")
        )
    if isinstance(value, Members):
        return tuple(_content(getattr(value, name)) for name in ("codes", "starts", "order", "labels"))
    if isinstance(value, dict):
        return tuple((name, _content(column)) for name, column in value.items())
    assert value is None
    return None
