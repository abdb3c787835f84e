"""Which two labels of the victim are compared: all pairs where they are few, else those that a pilot chooses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim import backends
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing import classifier
from p2p_sim.privacy.auditing.evidence import Evidence, Progress
from p2p_sim.privacy.auditing.measure import PILOT_CONFIDENCE, measured, pilot_worlds
from p2p_sim.privacy.auditing.worlds import LABELS, Situation, batches, seed_of

Array = npt.NDArray[Any]
Pair = tuple[int, int]

MOST_PAIRS = 3
"""Pairs of labels that are measured; of more, a pilot chooses."""


@dataclass(frozen=True)
class Pairs:
    """The pairs that are measured.  ``of``: how many there are.  ``pilot``: worlds a label that chose, 0 for none."""

    looked_at: tuple[Pair, ...]
    of: int
    pilot: int = 0


def given_pair(pair: Any, labels: int) -> str | Pair | None:
    """Return None, "all" or two labels, the smaller first; raises InputError for anything else."""
    if pair is None or (isinstance(pair, str) and pair == "all"):
        return pair
    fits = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
    whole = fits and all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) for x in pair)
    if not whole or not 0 <= min(pair) < max(pair) < labels:
        raise InputError(
            f"pair = {pair!r}: must be two different labels from 0 to {labels - 1}, such as (0, {labels - 1}), or 'all'"
        )
    return int(min(pair)), int(max(pair))


def pair_seed(seed: int, pair: Pair) -> int:
    """Return the seed of the worlds of a pair; of 0 and 1 that of the audit."""
    return seed if pair == LABELS else seed_of(seed, f"labels {pair[0]} and {pair[1]}")


def choose(
    wanted: str | Pair | None,
    situation: Situation,
    point: tuple[str, float],
    trials: int,
    seed: int,
    settings: backends.Settings,
    progress: Progress,
) -> Pairs:
    """Return the pairs to measure; a pilot has worlds of its own, so that its choice costs no confidence."""
    pairs = list(itertools.combinations(range(max(2, situation.protocol.label_count())), 2))
    if isinstance(wanted, tuple):
        return Pairs((wanted,), len(pairs))
    if wanted == "all" or len(pairs) <= MOST_PAIRS:
        return Pairs(tuple(pairs), len(pairs))
    worlds = pilot_worlds(trials)
    shown = _pilot(situation, pairs, point, worlds, seed_of(seed, "pilot of labels"), settings, progress)
    best = sorted(pairs, key=lambda pair: -shown[pair])[:MOST_PAIRS]
    return Pairs(tuple(sorted(best)), len(pairs), worlds)


def _pilot(
    situation: Situation,
    pairs: list[Pair],
    point: tuple[str, float],
    worlds: int,
    seed: int,
    settings: backends.Settings,
    progress: Progress,
) -> dict[Pair, float]:
    """Return roughly how much each pair shows: each label is learned against all others, on half of the worlds."""
    count = situation.protocol.label_count()
    tables: list[list[tuple[Array, list[str]]]] = [[] for _ in range(count)]
    everybody = replace(situation, labels=tuple(range(count)))
    for seen in batches(everybody, worlds, seed, settings, draws=True):
        table, names = classifier.features(seen)
        for label in range(count):
            tables[label].append((table[seen.which == label], names))
        progress("a pilot of all labels", min(len(part[0]) for part in tables[0]), worlds)
    joined, _ = classifier.common([part for of_label in tables for part in of_label])
    each = len(joined) // count
    rows = [np.concatenate(joined[label * each : (label + 1) * each]) for label in range(count)]
    half = max(1, worlds // 2)
    scores = [[np.zeros(0)] * count for _ in range(count)]  # by label of the world, and label that is scored
    for label in range(count):
        others = [rows[other][: -(-half // (count - 1))] for other in range(count) if other != label]
        scorer = classifier.fit(np.concatenate(others), rows[label][:half], quick=True)
        for of_label in range(count):
            scores[of_label][label] = scorer.scores(rows[of_label])
    return {pair: _shown(scores, pair, half, point) for pair in pairs}


def _shown(scores: list[list[Array]], pair: Pair, half: int, point: tuple[str, float]) -> float:
    first, second = (scores[label][pair[1]] - scores[label][pair[0]] for label in pair)
    above, below = classifier.thresholds(first[:half], second[:half])
    evidence = Evidence((first[half:], second[half:]), "", {}, above, below)
    return measured(*point, evidence, PILOT_CONFIDENCE, None).lower
