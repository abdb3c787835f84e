"""An attack of one's own as the statistic of an audit: any function of what is seen, which need not be good or fair.

Whatever it is, the bound is valid: how its values are read, and the events, are chosen on one half of the worlds and
counted on the other.  A value must depend on nothing but its own world, which is tried out by showing it fewer worlds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.classifier import thresholds
from p2p_sim.privacy.auditing.worlds import Seen, SeenMessages

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

AttackStatistic = Callable[[Seen], npt.ArrayLike]
"""An attack: from what a coalition saw of some worlds to a number for each, (worlds,); larger means the second label.

The numbers are bool, integers or floats, infinite ones too, and not NaN.  Whole numbers of which few are different may
also just name cases, in any order.  A world's number must follow from that world alone.
"""

Reading = Callable[[Floats], Floats]
"""From an attack's numbers to scores that are larger where the second label is likelier."""

CASES = 64
"""So many different whole numbers name cases; more of them, and other numbers, are taken as larger and smaller."""

_PRIOR = 0.5  # imagined worlds of each label in every case
_ONLY_COMPARED = 0.5  # confidence of bounds that promise nothing
_ROUNDING = 1e-9  # sums of another number of rows may be rounded otherwise
_AGAIN = 3  # a batch is looked at once more without the worlds from this part of it on


def named(attack: AttackStatistic) -> str:
    """Return what to call an attack."""
    return str(getattr(attack, "__name__", type(attack).__name__))


def values(attack: AttackStatistic, seen: Seen) -> Floats:
    """Return an attack's number of each world, shape (worlds,).

    The attack does not get to know the victim's label.  Raises InputError for what are not numbers, or not one for each
    world, and where fewer worlds are seen and a world's number changes.
    """
    blind = replace(seen, ones=None, which=None)
    found = _numbers(attack, blind)
    part = max(1, seen.worlds // _AGAIN)
    alone = _numbers(attack, _first(blind, part))
    if (wrong := np.flatnonzero(~np.isclose(alone, found[:part], _ROUNDING, _ROUNDING))).size:
        world = int(wrong[0])
        raise InputError(
            f"statistic {named(attack)}: it gives world {world} the number {found[world]:.17g} among {seen.worlds:,} "
            f"worlds and {alone[world]:.17g} among the first {part:,}: a number must follow from its own world alone, "
            "without means or ranks over all of them, and be the same each time"
        )
    return found


def _numbers(attack: AttackStatistic, seen: Seen) -> Floats:
    name = f"statistic {named(attack)}"
    given = np.asarray(attack(seen))
    if given.shape != (seen.worlds,):
        raise InputError(
            f"{name}: it returns an array of shape {given.shape}; needed: one number for each of the {seen.worlds:,} "
            f"worlds, shape ({seen.worlds},)"
        )
    if given.dtype.kind not in "biuf":
        raise InputError(f"{name}: it returns values of type {given.dtype}; needed: bool, integers or floats")
    found = given.astype(np.float64)
    if np.isnan(found).any():
        raise InputError(
            f"{name}: it gives world {int(np.isnan(found).argmax())} no number (NaN); give any, such as 0"
        )
    return found


def _first(seen: Seen, worlds: int) -> Seen:
    """Return what is seen of the first worlds alone."""
    kinds = {kind: _kept(messages, seen.world_of(messages) < worlds) for kind, messages in seen.kinds.items()}
    draws = {
        name: {part: column[drawn["party"] // seen.size < worlds] for part, column in drawn.items()}
        for name, drawn in seen.draws.items()
    }
    return replace(seen, worlds=worlds, kinds=kinds, draws=draws)


def _kept(messages: SeenMessages, rows: Array) -> SeenMessages:
    def part(column: Array | None) -> Array | None:
        return None if column is None else column[rows]

    return replace(
        messages,
        round=messages.round[rows],
        sender=messages.sender[rows],
        recipient=messages.recipient[rows],
        fields={name: column[rows] for name, column in messages.fields.items()},
        readable=part(messages.readable),
        cluster=part(messages.cluster),
    )


def chosen(first: Floats, second: Floats, point: tuple[str, float]) -> tuple[Reading, Array, Array]:
    """Return how to read an attack's numbers, and thresholds of "score >= t" and "score <= t", which make the events.

    ``first``, ``second``: numbers of worlds with each label, which are not counted.  ``point``: "delta" or "epsilon",
    and the value at which the bound should be large.
    """
    bound = confidence_bounds.epsilon_lower if point[0] == "delta" else confidence_bounds.delta_lower

    def worth(read: Reading) -> float:
        scores = read(first), read(second)
        return bound(confidence_bounds.count(*scores, *thresholds(*scores)), point[1], _ONLY_COMPARED).value

    best = max(_readings(first, second), key=worth)  # of equal ones the first
    return best, *thresholds(best(first), best(second))


def _readings(first: Floats, second: Floats) -> list[Reading]:
    """Return ways to read numbers as scores that are larger where the second label is likelier."""
    known = np.unique(np.concatenate([first, second]))
    if len(known) > CASES or (known != np.rint(known)).any():
        return [np.positive, np.negative]
    in_first, in_second = (
        np.bincount(np.searchsorted(known, part), minlength=len(known)) + _PRIOR for part in (first, second)
    )
    odds = np.log(in_second / in_first)

    def of_cases(numbers: Floats) -> Floats:
        place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.where(known[place] == numbers, odds[place], 0.0)

    return [of_cases]
