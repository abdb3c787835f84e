"""Evidence: the scores of many worlds, by the exact law of the view or by a classifier that is learned on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim import backends
from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing import classifier
from p2p_sim.privacy.auditing.base import Columns, Statistic
from p2p_sim.privacy.auditing.worlds import LABELS, Situation, batches

Array = npt.NDArray[Any]
Tell = Callable[[str, int, int], None]


@dataclass
class Evidence:
    """What was counted: a score for each world, by the victim's label.

    ``columns``: the statistic of each world, for a test of its law; empty for a classifier.  ``above``, ``below``:
    thresholds that a classifier chose on the worlds it learned from.  ``how``: where the scores come from.
    """

    scores: tuple[Array, Array]
    how: str
    columns: dict[int, Columns] = field(default_factory=dict)
    above: Array | None = None
    below: Array | None = None

    @property
    def trials(self) -> int:
        """Worlds of each label that are counted."""
        return len(self.scores[0])


def by_law(
    situation: Situation,
    statistic: Statistic,
    trials: int,
    seed: int,
    settings: backends.Settings,
    tell: Tell,
) -> Evidence:
    """Score every world by its exact log likelihood ratio."""
    parts: tuple[list[Columns], list[Columns]] = ([], [])
    pace = _Pace(tell, trials)
    for seen in batches(situation, trials, seed, settings):
        half = seen.worlds // 2
        found = statistic.read(seen)
        parts[0].append({name: column[:half] for name, column in found.items()})
        parts[1].append({name: column[half:] for name, column in found.items()})
        pace(half)
    columns = {label: _joined(part) for label, part in zip(LABELS, parts, strict=True)}
    first, second = (statistic.ratios(columns[label]) for label in LABELS)
    return Evidence((first, second), "exact likelihood ratio", columns)


def by_learning(
    situation: Situation, trials: int, seed: int, settings: backends.Settings, tell: Tell
) -> Evidence:
    """Learn a score on the first half of the worlds of each label, and count the others."""
    tables: list[tuple[Array, list[str]]] = []
    scores: tuple[list[Array], list[Array]] = ([], [])
    pace, learned, wanted = _Pace(tell, trials), 0, trials // 2
    scorer, names, above, below = None, list[str](), np.empty(0), np.empty(0)
    for seen in batches(situation, trials, seed, settings):
        half = seen.worlds // 2
        table, columns = classifier.features(seen)
        pace(half)
        use = min(half, wanted - learned)
        if use:
            tables.append((np.concatenate([table[:use], table[half : half + use]]), columns))
            learned += use
        if learned == wanted and scorer is None:
            joined, names = classifier.common(tables)
            learn = [np.concatenate([part[: len(part) // 2] for part in joined])]
            learn.append(np.concatenate([part[len(part) // 2 :] for part in joined]))
            tell("learning to tell the worlds apart", 0, 0)
            scorer = classifier.fit(*learn)
            above, below = classifier.thresholds(scorer.scores(learn[0]), scorer.scores(learn[1]))
            tables = []
        if scorer is not None and use < half:
            table = _fitted(table, columns, names)
            scores[0].append(scorer.scores(table[use:half]))
            scores[1].append(scorer.scores(table[half + use :]))
    assert scorer is not None
    joined_scores = np.concatenate(scores[0]), np.concatenate(scores[1])
    how = f"classifier ({scorer.name}) of {len(names)} features, learned on {learned:,} other worlds a label"
    return Evidence(joined_scores, how, {}, above, below)


def _fitted(table: Array, columns: list[str], names: list[str]) -> Array:
    """Return a later batch's features in the order of those learned from; what was never seen there is left out."""
    if columns == names:
        return table
    place = {name: i for i, name in enumerate(columns)}
    out = np.zeros((len(table), len(names)))
    for i, name in enumerate(names):
        if name in place:
            out[:, i] = table[:, place[name]]
    return out


def _joined(parts: list[Columns]) -> Columns:
    if any(part.keys() != parts[0].keys() for part in parts):
        raise InputError("the view's columns differ between batches: a statistic must always give the same")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class _Pace:
    """Tells how many worlds a label are done, and how many a second."""

    def __init__(self, tell: Tell, trials: int):
        self._tell, self._trials, self._done, self._start = tell, trials, 0, time.perf_counter()

    def __call__(self, worlds: int) -> None:
        self._done += worlds
        speed = self._done / max(1e-9, time.perf_counter() - self._start)
        self._tell(f"auditing, {_rounded(speed)} trials a second", self._done, self._trials)


def _rounded(speed: float) -> str:
    return f"{float(f'{speed:.2g}'):,.0f}"
