"""The floor: Algorithm 2 of Clustering 2022 in plain chunked numpy, one process, nothing else.

What a competent numpy programmer would write for this one mechanism: no messages, rounds, checks or counts.
Its draws are keyed as the engine's are, so its result is the engine's, bit for bit; ``check`` asserts that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.population import Population
from p2p_sim.core.random_words import stream

Array = npt.NDArray[Any]

CHUNK = 32_768
_WORD = float(1 << 64)


def floor(
    population: Population, *, seed: int, alpha: float, theta: float, chunk: int = CHUNK
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Run Algorithm 2 on bit labels; return the reports: senders (ascending) and the labels they hand over.

    ``alpha``, ``theta``: below 1.  ``chunk``: users at a time, a multiple of 4.
    """
    members = population.clusters
    if members is None:
        raise ValueError("the floor needs a population in clusters")
    users, y, codes, order = population.users, population.y, members.codes, members.order
    first, sizes = members.starts[:-1], np.diff(members.starts).astype(np.uint64)
    flip, peer = generator(seed, "flip", 0), generator(seed, "peer", 0)
    subsample = generator(seed, "subsample", 2)
    flips, reports = np.uint64(int(alpha * _WORD)), np.uint64(int(theta * _WORD))
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)

    noisy = np.empty(users, np.bool_)
    for low in range(0, users, chunk):
        high = min(low + chunk, users)
        noisy[low:high] = y[low:high] ^ (flip.random_raw(high - low) < flips)

    senders, labels = [], []
    for low in range(0, users, chunk):
        high = min(low + chunk, users)
        code, word = codes[low:high], peer.random_raw(high - low)
        size = sizes[code]
        place = ((word >> half) * size + (((word & low_half) * size) >> half)) >> half
        row = place.astype(np.int64) + first[code]
        label = noisy[row if order is None else order[row]]
        kept = np.flatnonzero(subsample.random_raw(high - low) < reports)
        senders.append(kept + low)
        labels.append(label[kept])
    return np.concatenate(senders), np.concatenate(labels)


def check(population: Population, output: dict[str, Array], *, seed: int, alpha: float, theta: float) -> None:
    """Assert that the engine's learner received exactly what the floor computes."""
    senders, labels = floor(population, seed=seed, alpha=alpha, theta=theta)
    if not (np.array_equal(senders, output["sender"]) and np.array_equal(labels, output["y"])):
        raise AssertionError(f"floor and engine differ for {population.users:,} users: one of them is wrong")


def generator(seed: int, name: str, step: int) -> np.random.Philox:
    """Make the generator of one of the engine's streams of role ``user``."""
    key = np.array([seed, stream("user", name, step)], np.uint64)
    return np.random.Philox(key=key, counter=np.zeros(4, np.uint64))
