"""An attack of one's own as the statistic of an audit: any function of what is seen, which need not be good or fair.

If a value depends on nothing but its own world, the bound is valid, however bad the attack is: how values are read, and
the events, are chosen on one half of the worlds and counted on the other, of other runs.  Whether it does is tried out
by showing the attack some of the worlds once more, in another order.  *Source:* docs/laws.md#audits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import module_finder
from p2p_sim.core.errors import InputError, ProtocolError
from p2p_sim.core.random_words import stream, words
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.classifier import thresholds
from p2p_sim.privacy.auditing.rearranged import locked, rearranged
from p2p_sim.privacy.auditing.seen import Seen

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
_AGAIN = 3  # of so many worlds one is shown once more


def named(attack: AttackStatistic) -> str:
    """Return what to call an attack."""
    return str(getattr(attack, "__name__", type(attack).__name__))


def imported(name: str) -> AttackStatistic:
    """Import the attack that ``module:function`` names, from the current folder or the path.

    Its mistakes come with their place in its file, as ProtocolError.  Raises InputError for what is no function.
    """
    function = module_finder.imported(name, "statistic", "FUNCTION")
    if not callable(function):
        raise InputError(f"statistic {name!r} is {function!r}; needed is a function of privacy.Seen")

    def attack(seen: Seen) -> npt.ArrayLike:
        try:
            return np.asarray(function(seen))
        except (InputError, FrozenInstanceError):
            raise
        except Exception as error:  # whatever a stranger's function raises
            if _writes(error):
                raise
            raise ProtocolError(
                f"statistic {name}: it raises {module_finder.in_one_line(error)}: mend it"
            ) from error

    attack.__name__ = name
    return attack


def _writes(error: BaseException) -> bool:
    """Whether an error is of a function that writes into what it is shown."""
    return isinstance(error, FrozenInstanceError) or (
        isinstance(error, ValueError) and "read-only" in str(error)
    )


def values(attack: AttackStatistic, seen: Seen, seed: int = 0) -> Floats:
    """Return an attack's number of each world, shape (worlds,).

    The attack does not get to know the victim's label.  ``seed``: of which worlds it is shown again, in which order.
    Raises InputError for what are not numbers, or not one for each world, for an attack that writes into what it is
    shown, and where a world's number is another beside other worlds or in another place.
    """
    blind = replace(seen, ones=None, which=None)
    found = _numbers(attack, blind)
    drawn = words(seed, stream("audit", "look again", 0), 0, seen.worlds)
    order = np.argsort(drawn, kind="stable")[: max(1, seen.worlds // _AGAIN)]
    again = _numbers(attack, rearranged(blind, order))
    hair = _ROUNDING * float(np.abs(found[np.isfinite(found)]).max(initial=0.0))
    if (wrong := np.flatnonzero(~np.isclose(again, found[order], _ROUNDING, hair))).size:
        place = int(wrong[0])
        world = int(order[place])
        raise InputError(
            f"statistic {named(attack)}: it gives world {world} the number {found[world]:.17g} among {seen.worlds:,} "
            f"worlds and {again[place]:.17g} as world {place} among {len(order):,} of them in another order: a number "
            "must follow from its own world alone, without means or ranks over all of them, without their numbers or "
            "the ids of users (take the place in the world, id % seen.size), and be the same each time"
        )
    return found


def _numbers(attack: AttackStatistic, seen: Seen) -> Floats:
    name = f"statistic {named(attack)}"
    try:
        given = np.asarray(attack(locked(seen)))
    except (ValueError, FrozenInstanceError) as error:
        if not _writes(error):
            raise
        raise InputError(
            f"{name}: it writes into what it is shown ({error}); let it change a copy, such as seen.kinds['KIND']."
            "fields['NAME'].copy()"
        ) from error
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
