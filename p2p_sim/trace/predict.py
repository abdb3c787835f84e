"""How much a trace will hold, before a run: messages, bytes and seconds.

Few users are run, in clusters of at most 64, of two sizes; how the messages of a kind grow from one to the other says
how they grow to the clusters that there are.  Ids take what their entropy says, everything else what it took.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.faults import Faults
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.population import Population
from p2p_sim.trace import pilot, tables
from p2p_sim.trace.pilot import Issue, id_bytes

FACTOR = 3
"""Bytes of a full trace are predicted within this factor, for a run at one site."""

_CLUSTER = 64
_MANIFEST, _FILE = 1000, 1250  # bytes of a manifest, and of a file and its entry beside the values
_CELLS = 1 << 16


@dataclass(frozen=True)
class Prediction:
    """What a trace level will keep: messages, bytes on disk, and how many seconds of computing it adds to the run."""

    level: str
    messages: int
    nbytes: int
    seconds: float


def predict(
    protocol: Any, population: Population, *levels: str, faults: Faults | None = None
) -> list[Prediction]:
    """Return what each of some trace levels will keep of a run; takes about 0.1 s, more for slow protocols.

    Bytes of a full trace are right within a factor of 3 for a run at one site; what goes from shard to shard takes
    more, and a sample depends on who is in it.  Raises InputError for an unknown level, and what a run would raise.
    """
    wanted = [TraceLevel.parse(level) for level in levels]
    if not any(level.keeps for level in wanted):
        return [
            _of_issues(level, text, [], population, 0.0) for level, text in zip(wanted, levels, strict=True)
        ]
    issues, cost = _issues(protocol, population, faults), _seconds_a_cell()
    return [
        _of_issues(level, text, issues, population, cost) for level, text in zip(wanted, levels, strict=True)
    ]


def _issues(protocol: Any, population: Population, faults: Faults | None) -> list[tuple[float, Issue]]:
    """Return how many messages of each kind and round there will be, and what the pilot wrote of them."""
    sizes = population.sizes.astype(np.float64)
    large = int(min(_CLUSTER, np.median(sizes)))
    small = (large + 1) // 2
    found = pilot.weigh(protocol, population, large, faults)
    before: Mapping[tuple[str, int], Issue] = {}
    with contextlib.suppress(InputError, ProtocolError):  # a protocol may need clusters of some size
        before = found if small == large else pilot.weigh(protocol, population, small, faults)
    scaled = []
    for key, issue in found.items():
        power = 1.0
        if key in before and small < large:
            power = math.log(issue.rows / before[key].rows) / math.log(large / small)
        scaled.append((issue.rows * float(((sizes / large) ** power).sum()), issue))
    return scaled


def _of_issues(
    level: TraceLevel, text: str, issues: list[tuple[float, Issue]], population: Population, cost: float
) -> Prediction:
    if not level.keeps:
        return Prediction(text, 0, _MANIFEST if level.name == "counts" else 0, 0.0)
    messages, nbytes, cells = 0.0, float(_MANIFEST), 0.0
    for whole, issue in issues:
        rows, ids, each = whole, issue.ids, issue.cells
        if level.name == "sample":
            others = 1 - min(level.sample, population.users) / population.users
            rows, each = whole * (1 - others**issue.ends), issue.cells + 2
            ids = {"sender": (False, 1.0), "recipient": (False, 1.0)}
        width = issue.width + sum(share * id_bytes(up, rows, population) for up, share in ids.values())
        messages += rows
        nbytes += rows * width + _FILE
        cells += rows * each
    return Prediction(text, round(messages), round(nbytes), cells * cost)


def _seconds_a_cell() -> float:
    """Measure what writing one value costs on this machine: half of them ids, half of them bits."""
    ids = (np.arange(_CELLS) * 40503 % 65521).astype(np.int32)
    columns = {"recipient": ids, "y": ids % 2 == 0}
    with tempfile.TemporaryDirectory() as name:
        spent = []
        for attempt in range(3):
            before = time.process_time()
            stream = tables.Stream(Path(name) / f"{attempt}.parquet", columns, ["recipient"], {})
            stream.write(columns)
            stream.close()
            spent.append(time.process_time() - before)
    return min(spent) / (2 * _CELLS)
