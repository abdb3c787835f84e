"""Measured time of each primitive on this machine, so that a modelled run can add the cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.crypto import shamir
from p2p_sim.crypto.agree import agree_all
from p2p_sim.crypto.keys import SimulationKeys
from p2p_sim.crypto.prg import masks
from p2p_sim.crypto.seal import context, open_all, seal_all

ROWS = 64
WORDS = 1 << 14
SHARES = (11, 21)
REPEATS = 5


@dataclass(frozen=True)
class Rates:
    """CPU seconds of one thread an operation.

    ``key``: a key pair; ``seal``, ``open``: one sealed message; ``agree``: one pair and one named key; ``mask``: one
    expansion, without its words; ``mask_word``: one word of it; ``share``: one coefficient of one share of one element;
    ``recover``: one pair of shares of one secret.
    """

    key: float
    seal: float
    open: float
    agree: float
    mask: float
    mask_word: float
    share: float
    recover: float

    def seconds(self, counts: Mapping[str, int]) -> float:
        """Return the seconds of so many operations by name; raises InputError for a name that is no rate."""
        table = asdict(self)
        unknown = sorted(counts.keys() - table.keys())
        if unknown:
            raise InputError(f"no rate for {', '.join(unknown)}; rates: {', '.join(table)}")
        return float(sum(table[name] * count for name, count in counts.items()))


@cache
def measure() -> Rates:
    """Measure every rate in this thread, the median of five short runs each: under half a second, once a process."""
    info, ids = context("rates", 0, "user"), np.arange(ROWS)
    server = SimulationKeys.from_seed(0, "learner")
    users = SimulationKeys.from_seed(0, "user", ids, workers=1)
    plain = np.zeros((ROWS, 16), np.uint8)
    sealed = seal_all(server.public, plain, info, workers=1)
    ring = np.stack([ids, (ids + 1) % ROWS], axis=1)
    pair = agree_all(users, ring, ["mask"], info, workers=1)["mask"]
    threshold, shares = SHARES
    words = np.ones((ROWS, threshold - 1, 5), np.uint64)
    parts = shamir.share(words[:, 0], threshold, shares, words)
    at = np.tile(np.arange(1, threshold + 1), (ROWS, 1))
    mask = _median(lambda: masks(pair, 1, workers=1)) / ROWS
    return Rates(
        key=_median(lambda: SimulationKeys.from_seed(1, "user", ids, workers=1)) / ROWS,
        seal=_median(lambda: seal_all(server.public, plain, info, workers=1)) / ROWS,
        open=_median(lambda: open_all(server.private, sealed, info, workers=1)) / ROWS,
        agree=_median(lambda: agree_all(users, ring, ["mask"], info, workers=1)) / ROWS,
        mask=mask,
        mask_word=_median(lambda: masks(pair[0], WORDS, workers=1)) / WORDS,
        share=_median(lambda: shamir.share(words[:, 0], threshold, shares, words)) / (words.size * shares),
        recover=_median(lambda: shamir.recover(parts[:, :threshold], at, threshold)) / (ROWS * threshold**2),
    )


def _median(run: Callable[[], object]) -> float:
    run()  # warm: keys are parsed, code is loaded
    times = []
    for _ in range(REPEATS):
        start = time.thread_time()  # CPU time: a busy machine must not change a protocol's cost
        run()
        times.append(time.thread_time() - start)
    return sorted(times)[REPEATS // 2]
