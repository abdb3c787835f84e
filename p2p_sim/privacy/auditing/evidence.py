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
from p2p_sim.privacy.auditing import classifier, own_attack, rest_of_view
from p2p_sim.privacy.auditing.own_attack import AttackStatistic
from p2p_sim.privacy.auditing.statistic import Statistic, WorldCounts
from p2p_sim.privacy.auditing.worlds import Situation, batches

Array = npt.NDArray[Any]
Table = tuple[Array, list[str]]
Progress = Callable[[str, int, int], None]

_MOST = 200_000
"""Most worlds of a label that a classifier learns from."""

BESIDE = 10_000
"""Most further worlds of a label that a classifier looks at beside the exact statistic."""

_QUICK = 2_500
"""Most of them that it learns from."""


@dataclass
class Evidence:
    """What was counted: a score for each world, by the victim's label.

    ``columns``: the statistic of each world, for a test of its law; empty for a classifier.  ``above``, ``below``:
    thresholds that a classifier chose on the worlds it learned from.  ``how``: where the scores come from.
    ``ratios``: the exact log ratios of the same worlds, where a classifier stands beside a law; ``around``: the
    line around which its scores were, where it learned.  ``late``: a kind of message that came in several rounds, of
    which no law here speaks.
    """

    scores: tuple[Array, Array]
    how: str
    columns: dict[int, WorldCounts] = field(default_factory=dict)
    above: Array | None = None
    below: Array | None = None
    late: str | None = None
    ratios: tuple[Array, Array] | None = None
    around: tuple[float, float, float] = (1.0, 0.0, 1.0)

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
    progress: Progress,
) -> Evidence:
    """Score every world by its exact log likelihood ratio."""
    parts: tuple[list[WorldCounts], list[WorldCounts]] = ([], [])
    pace, rounds = _Pace(progress, trials), dict[str, set[int]]()
    for seen in batches(situation, trials, seed, settings):
        for kind, sent in seen.kinds.items():
            ends = [int(sent.round.min()), int(sent.round.max())] if len(sent.round) else []
            rounds.setdefault(kind, set()).update(ends)
        found, ones = statistic.read(seen), seen.ones
        assert ones is not None
        for part, mask in zip(parts, (~ones, ones), strict=True):
            part.append({name: column[mask] for name, column in found.items()})
        pace(seen.worlds // 2)
    columns = {label: _joined(part) for label, part in zip(situation.labels, parts, strict=True)}
    first, second = (statistic.ratios(columns[label]) for label in situation.labels)
    late = next((kind for kind, when in rounds.items() if len(when) > 1), None)
    return Evidence((first, second), "exact likelihood ratio", columns, late=late)


def by_learning(
    situation: Situation,
    trials: int,
    seed: int,
    settings: backends.Settings,
    progress: Progress,
    statistic: Statistic | None = None,
    *,
    quick: bool = False,
) -> Evidence:
    """Learn a score on the first half of the worlds of each label, and count the others.

    ``statistic``: that the classifier stands beside, whose ratios are noted.  ``quick``: from few worlds.
    """
    tables: tuple[list[Table], list[Table]] = ([], [])
    scores: tuple[list[Array], list[Array]] = ([], [])
    ratios: tuple[list[Array], list[Array]] = ([], [])
    pace, left = _Pace(progress, trials), min(trials // 2, _QUICK if quick else _MOST)
    around = (1.0, 0.0, 1.0)
    wanted, scorer, names, above, below = left, None, list[str](), np.empty(0), np.empty(0)
    for seen in batches(situation, trials, seed, settings, draws=True):
        table, columns = classifier.features(seen)
        assert seen.ones is not None
        halves = table[~seen.ones], table[seen.ones]
        use = min(len(halves[0]), left)
        if statistic is not None:
            known = statistic.ratios(statistic.read(seen))
            for part, mask in zip(ratios, (~seen.ones, seen.ones), strict=True):
                part.append(known[mask])
        left -= use
        if use:
            for kept, half in zip(tables, halves, strict=True):
                kept.append((half[:use], columns))
        pace(len(halves[0]))
        if not left and scorer is None:
            progress("learning to tell the worlds apart", 0, 0)
            first, second, names = _two(*tables)
            scorer = classifier.fit(first, second, quick=quick)
            above, below = classifier.thresholds(scorer.scores(first), scorer.scores(second))
            if statistic is not None:
                learned = np.concatenate([scorer.scores(first), scorer.scores(second)])
                around = rest_of_view.line(
                    learned, np.concatenate([np.concatenate(part)[:wanted] for part in ratios])
                )
            tables = ([], [])
        if scorer is not None and use < len(halves[0]):
            for part, half in zip(scores, halves, strict=True):
                part.append(scorer.scores(_fitted(half[use:], columns, names)))
    assert scorer is not None
    joined_scores = np.concatenate(scores[0]), np.concatenate(scores[1])
    how = f"classifier ({scorer.name}) of {len(names)} features, learned on {wanted:,} other worlds a label"
    found = Evidence(joined_scores, how, {}, above, below, around=around)
    if statistic is not None:
        found.ratios = np.concatenate(ratios[0])[wanted:], np.concatenate(ratios[1])[wanted:]
    return found


def by_attack(
    situation: Situation,
    attack: AttackStatistic,
    point: tuple[str, float],
    trials: int,
    seed: int,
    settings: backends.Settings,
    progress: Progress,
) -> Evidence:
    """Score every world by an attack of one's own; choose events on the first half of each label, count the others.

    ``point``: of a bound at which the chosen events are good.
    """
    parts: tuple[list[Array], list[Array]] = ([], [])
    pace = _Pace(progress, trials)
    for seen in batches(situation, trials, seed, settings, draws=True):
        found, ones = own_attack.values(attack, seen), seen.ones
        assert ones is not None
        for part, mask in zip(parts, (~ones, ones), strict=True):
            part.append(found[mask])
        pace(seen.worlds // 2)
    half = trials // 2
    first, second = (np.concatenate(part) for part in parts)
    read, above, below = own_attack.chosen(first[:half], second[:half], point)
    how = f"own attack {own_attack.named(attack)}, its events chosen on {half:,} other worlds a label"
    return Evidence((read(first[half:]), read(second[half:])), how, {}, above, below)


def _two(first: list[Table], second: list[Table]) -> tuple[Array, Array, list[str]]:
    """Return the features of both labels' worlds, with the same columns, and their names."""
    joined, names = classifier.common([*first, *second])
    return np.concatenate(joined[: len(first)]), np.concatenate(joined[len(first) :]), names


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


def _joined(parts: list[WorldCounts]) -> WorldCounts:
    if any(part.keys() != parts[0].keys() for part in parts):
        raise InputError("the view's columns differ between batches: a statistic must always give the same")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class _Pace:
    """Tells how many worlds a label are done, and how many a second."""

    def __init__(self, progress: Progress, trials: int):
        self._progress, self._trials, self._done, self._start = progress, trials, 0, time.perf_counter()

    def __call__(self, worlds: int) -> None:
        self._done += worlds
        speed = self._done / max(1e-9, time.perf_counter() - self._start)
        self._progress(f"auditing, {_rounded(speed)} trials a second", self._done, self._trials)


def _rounded(speed: float) -> str:
    return f"{float(f'{speed:.2g}'):,.0f}"
