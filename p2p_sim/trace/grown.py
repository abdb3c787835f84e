"""How the messages of few users grow to those of a whole population.

Three pilots are run: some clusters, the same with half of their users, and a quarter of the clusters.  What a kind's
messages, and the bytes of each column, gain from one to the other says what they gain up to all users.  Ids that do not
rise are weighed as large as they are among all.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.core.population import Population
from p2p_sim.trace import pilot
from p2p_sim.trace.pilot import Issue

_FEW, _FEW_TOGETHER = 1024, 64
_MORE, _MORE_TOGETHER = 8192, 2048
_QUIET = 16  # messages a user up to which more users are run
_SAMPLE = 2048  # messages that a sample should hold
_LEAST, _BIT = 0.02, 1 / 8  # bytes: what an id takes more where there are twice as many: one bit at most
_BLOCK = 1 << 17  # octets that are compressed together

Key = tuple[str, int]


@dataclass(frozen=True)
class Grown:
    """Messages of one kind and round among all users; ``width``: bytes of each."""

    issue: Issue
    rows: float
    width: float


@dataclass(frozen=True)
class Pilots:
    """Runs of few users of a population."""

    protocol: Any
    population: Population
    faults: Faults | None
    _known: dict[tuple[int, int, int | None], dict[Key, Issue]] = field(default_factory=dict)

    def grown(self, sample: int | None = None) -> dict[Key, Grown]:
        """Return what there will be of each kind and round; ``sample``: widths of what is kept of that many users.

        Raises what a run would raise.
        """
        clusters, size = self.plan
        half = (size + 1) // 2
        smaller, fewer = self._less(clusters, half, sample), self._less(clusters // 4, size, sample)
        found = {}
        for key, issue in self._weigh(clusters, size, sample).items():
            power = 1.0
            if key in smaller:
                power = math.log(issue.rows / smaller[key].rows) / math.log(size / half)
            rows = issue.rows / clusters * float(((self.population.sizes / size) ** power).sum())
            found[key] = Grown(issue, rows, self._width(key, issue, smaller, fewer))
        return found

    @cached_property
    def talk(self) -> float:
        """Messages a user, among few."""
        clusters, size = self._clusters(_FEW, _FEW_TOGETHER)
        return sum(issue.rows for issue in self._weigh(clusters, size, None).values()) / (clusters * size)

    @cached_property
    def plan(self) -> tuple[int, int]:
        """How many clusters are run, and how many users of each: more where users send few messages."""
        if self.talk > _QUIET:
            return self._clusters(_FEW, _FEW_TOGETHER)
        return self._clusters(_MORE, _MORE_TOGETHER if len(self.population.sizes) > 1 else _MORE)

    def _clusters(self, users: int, together: int) -> tuple[int, int]:
        sizes = self.population.sizes
        size = min(together, int(np.median(sizes)))
        return max(1, min(users // size, int(np.count_nonzero(sizes >= size)))), size

    def _weigh(self, clusters: int, size: int, sample: int | None) -> dict[Key, Issue]:
        if sample is not None:
            users = clusters * size
            enough = math.ceil(_SAMPLE / max(1.0, self.talk))
            sample = min(users, max(enough, users * sample // self.population.users))
        key = clusters, size, sample
        if key not in self._known:
            self._known[key] = pilot.weigh(self.protocol, self.population, *key, self.faults)
        return self._known[key]

    def _less(self, clusters: int, size: int, sample: int | None) -> dict[Key, Issue]:
        """Weigh what fewer users write; nothing where they are not fewer, or clusters must have some size."""
        if (clusters, size) != self.plan and clusters:
            with contextlib.suppress(InputError, ProtocolError):
                return self._weigh(clusters, size, sample)
        return {}

    def _width(self, key: Key, issue: Issue, *less: Mapping[Key, Issue]) -> float:
        """Return what a message takes among all users."""
        clusters, size = self.plan
        sizes, known = self.population.sizes.astype(np.float64), self.population.clusters
        together = float((sizes**2).sum() / sizes.sum())  # of the cluster of a user
        apart = float(len(sizes))
        if known is not None and known.order is None:  # ids of few clusters lie together
            apart = min(apart, max(clusters, _BLOCK * clusters / issue.rows))
        times = math.log2(max(1.0, together / size)), math.log2(apart / clusters)
        width = 0.0
        for name, octets in issue.widths.items():
            before = [pilot[key].widths.get(name, octets) if key in pilot else octets for pilot in less]
            gains = [(octets - few) / doublings for few, doublings in zip(before, (1, 2), strict=True)]
            steps = [min(_BIT, gain) if gain >= _LEAST else 0.0 for gain in gains]
            steps[0] *= name not in issue.spread  # larger clusters have no larger ids than these
            width += octets + sum(step * doublings for step, doublings in zip(steps, times, strict=True))
        return width
