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
from p2p_sim.privacy.auditing.seen import Seen
from p2p_sim.privacy.auditing.statistic import Statistic, WorldCounts
from p2p_sim.privacy.auditing.worlds import Situation, batch_seed, batches, seed_of

Array = npt.NDArray[Any]
Table = tuple[Array, list[str]]
Progress = Callable[[str, int, int], None]

_MOST = 200_000
"""Most worlds of a label that a classifier learns from."""

BESIDE = 10_000
"""Most further worlds of a label that a classifier looks at beside the exact statistic."""

_QUICK = 2_500
"""Most of them that it learns from."""

_CHOOSING = "worlds to choose by"
"""Those by which events are chosen share no run with those that are counted."""


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
    """Learn a score on half of the worlds, of runs of their own, and count the others.

    ``statistic``: that the classifier stands beside, whose ratios are noted.  ``quick``: from few worlds.
    """
    wanted = min(trials // 2, _QUICK if quick else _MOST)
    pace = _Pace(progress, trials)
    tables: tuple[list[Table], list[Table]] = ([], [])
    ratios: tuple[list[Array], list[Array]] = ([], [])
    for seen in batches(situation, wanted, seed_of(seed, _CHOOSING), settings, draws=True):
        table, columns = classifier.features(seen)
        for kept, part in zip(tables, _by_label(table, seen), strict=True):
            kept.append((part, columns))
        _note(ratios, statistic, seen)
        pace(seen.worlds // 2)
    progress("learning to tell the worlds apart", 0, 0)
    first, second, names = _two(*tables)
    scorer = classifier.fit(first, second, quick=quick)
    above, below = classifier.thresholds(scorer.scores(first), scorer.scores(second))
    around = (1.0, 0.0, 1.0)
    if statistic is not None:
        learned = np.concatenate([scorer.scores(first), scorer.scores(second)])
        around = rest_of_view.line(learned, np.concatenate([*ratios[0], *ratios[1]]))
    scores: tuple[list[Array], list[Array]] = ([], [])
    ratios = ([], [])
    for seen in batches(situation, trials - wanted, seed, settings, draws=True):
        table, columns = classifier.features(seen)
        for out, part in zip(scores, _by_label(table, seen), strict=True):
            out.append(scorer.scores(_fitted(part, columns, names)))
        _note(ratios, statistic, seen)
        pace(seen.worlds // 2)
    how = f"classifier ({scorer.name}) of {len(names)} features, learned on {wanted:,} other worlds a label"
    found = Evidence(_two_columns(scores), how, {}, above, below, around=around)
    if statistic is not None:
        found.ratios = _two_columns(ratios)
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
    """Score worlds by an attack of one's own; choose events on half of them, of runs of their own, count the others.

    ``point``: of a bound at which the chosen events are good.
    """
    half, pace = trials // 2, _Pace(progress, trials)

    def numbers(worlds: int, of: int) -> tuple[Array, Array]:
        parts: tuple[list[Array], list[Array]] = ([], [])
        for batch, seen in enumerate(batches(situation, worlds, of, settings, draws=True)):
            found = own_attack.values(attack, seen, batch_seed(of, batch))
            for part, mine in zip(parts, _by_label(found, seen), strict=True):
                part.append(mine)
            pace(seen.worlds // 2)
        return _two_columns(parts)

    read, above, below = own_attack.chosen(*numbers(half, seed_of(seed, _CHOOSING)), point)
    first, second = numbers(trials - half, seed)
    how = f"own attack {own_attack.named(attack)}, its events chosen on {half:,} other worlds a label"
    return Evidence((read(first), read(second)), how, {}, above, below)


def _by_label(values: Array, seen: Seen) -> tuple[Array, Array]:
    """Return what belongs to the worlds with the first label and with the second."""
    assert seen.ones is not None
    return values[~seen.ones], values[seen.ones]


def _note(ratios: tuple[list[Array], list[Array]], statistic: Statistic | None, seen: Seen) -> None:
    if statistic is not None:
        for part, mine in zip(ratios, _by_label(statistic.ratios(statistic.read(seen)), seen), strict=True):
            part.append(mine)


def _two_columns(parts: tuple[list[Array], list[Array]]) -> tuple[Array, Array]:
    return np.concatenate(parts[0]), np.concatenate(parts[1])


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
