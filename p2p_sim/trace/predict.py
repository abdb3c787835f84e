"""How much a trace will hold, before a run: messages, bytes and seconds; see ``grown``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.faults import Faults
from p2p_sim.core.ledger import Count
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.population import Population
from p2p_sim.trace import manifest
from p2p_sim.trace.grown import Grown, Key, Pilots
from p2p_sim.trace.writer import Writer

FACTOR = 3
"""Bytes of a full trace are predicted within this factor, for a run at one site."""

_ROWS = 1 << 16


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
    """Return what each of some trace levels will keep of a run; takes about 0.2 s, more for slow protocols.

    Bytes of a full trace are right within a factor of 3 for a run at one site; what goes from shard to shard takes
    more.  Raises InputError for an unknown level, and what a run would raise.
    """
    wanted = [TraceLevel.parse(level) for level in levels]
    pilots, full, cost = Pilots(protocol, population, faults), dict[Key, Grown](), 0.0
    if any(level.keeps for level in wanted):
        full, cost = pilots.grown(), _seconds_a_cell()
    folder = _manifest(protocol, population, full)
    found = []
    for level, text in zip(wanted, levels, strict=True):
        kept: Iterable[Grown] = full.values() if level.keeps else ()
        if level.name == "sample":
            kept = _sampled(pilots, level.sample, full)
        nbytes = folder + sum(grown.rows * grown.width + grown.issue.fixed for grown in kept)
        cells = sum(grown.rows * grown.issue.cells for grown in kept)
        messages = round(sum(grown.rows for grown in kept))
        found.append(Prediction(text, messages, 0 if level.name == "none" else round(nbytes), cells * cost))
    return found


def _sampled(pilots: Pilots, sample: int, full: dict[Key, Grown]) -> list[Grown]:
    """Return what is kept of all messages: those that one of the chosen users sent or received."""
    others = 1 - min(1.0, sample / pilots.population.users)
    return [
        replace(grown, rows=full[key].rows * (1 - others**grown.issue.ends))
        for key, grown in pilots.grown(sample).items()
        if key in full
    ]


def _manifest(protocol: Any, population: Population, keys: Iterable[Key]) -> int:
    """Return the bytes of a manifest without files."""
    known = {kind for kind, _ in keys}
    silent = [(kind, 0) for kind in protocol.messages() if kind not in known]
    count = Count(population.users, population.users, population.users)
    begun = manifest.begun(protocol, "full", population.users, "")
    return len(manifest.text_of(manifest.ended(begun, dict.fromkeys([*keys, *silent], count), [])))


def _seconds_a_cell() -> float:
    """Measure what writing one value costs on this machine: half of them ids, half of them bits."""
    ids = (np.arange(_ROWS) * 40503 % 65521).astype(np.int32)
    spent = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name:
            writer, before = Writer(Path(name), 0), time.process_time()
            writer.take("label", 1, {"sender": range(_ROWS), "recipient": ids, "seq": 0}, {"y": ids % 2 == 0})
            writer.cut()
            spent.append(time.process_time() - before)
    return min(spent) / (2 * _ROWS)
