"""The exchange that every system carries out.  Python's own library alone: all systems' environments import this.

Every user randomizes her label, a bit, and sends it to a random member of her cluster, herself included; everybody
counts what she receives.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import tree_cpu

CLUSTER = 1_000
ALPHA = 0.1
"""Probability of a flip."""

Outcome = tuple[Sequence[int], Sequence[int]]
"""How many messages each user received, and how many of them said 1; both below 256.

Where users have only a server: one entry each, how many it received from all, and how many of these said 1.
"""

Exchange = Callable[[Callable[[], None]], Outcome | Callable[[], Outcome]]
"""Takes what to call when all is started and the exchange begins.

It may return a function that reads the outcome from where the exchange has put it: this is no longer measured.
"""


def label(user: int) -> int:
    """Return a user's label: seven of ten say 1 in odd clusters, three in even ones."""
    return int(user % 10 < (7 if user // CLUSTER % 2 else 3))


def perform(prepare: Callable[[int, int], Exchange]) -> None:
    """Run a program: ``PROGRAM USERS SEED FOLDER``; leave its outcome and its measures in the folder.

    ``prepare``: takes users and seed, and builds what the system needs before the exchange.
    """
    users, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    exchange = prepare(users, seed)
    begun: list[float] = []

    def begin() -> None:
        begun.extend((_others_cpu(), time.process_time(), time.perf_counter()))

    outcome = exchange(begin)
    own, end = time.process_time(), time.perf_counter()
    others = _others_cpu()  # last, as looking at all processes takes milliseconds
    start_cpu, wall = begun[0] + begun[1], end - begun[2]
    cpu = own - begun[1] + others - begun[0]
    got, ones = outcome() if callable(outcome) else outcome
    for name, column in (("got", got), ("ones", ones)):
        (folder / name).write_bytes(_bytes(column, len(got) == 1))
    measures = {"wall": wall, "cpu": cpu, "start_cpu": start_cpu, "peers": len(got) > 1}
    (folder / "measures.json").write_text(json.dumps(measures))


def _others_cpu() -> float:
    """Return the CPU seconds of the processes that this one has started, with those that have ended."""
    return tree_cpu() - time.process_time()


def _bytes(column: Any, total: bool) -> bytes:
    if hasattr(column, "astype"):  # numpy's; not every environment has it
        return bytes(column.astype("u1").tobytes())
    return array("Q" if total else "B", column).tobytes()
