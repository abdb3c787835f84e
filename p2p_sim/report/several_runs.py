"""What several runs on the same people show together: their coins, and the composed figure of each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2p_sim import privacy
from p2p_sim.core.errors import InputError
from p2p_sim.learning import planted_canaries
from p2p_sim.privacy.composition.same_case import listed_cases
from p2p_sim.privacy.profile import PrivacyProfile
from p2p_sim.report.figure_text import figure
from p2p_sim.run import Run

VIEWS = ("learner", "wire")
"""Views that are the same party in every run, whatever the protocols."""

_MOST_SIZES, _MOST_RUNS, _LARGEST = 8, 12, 2000
UNKNOWN = (
    "It is not known whether these runs are of the same people: not every run was saved with its population. If they "
    "are, every further run shows more of their labels."
)


def together(runs: Sequence[Run], delta: float) -> dict[str, Any] | None:
    """Return what runs of the same people show together, as JSON values; None for one run, or for other people.

    ``delta``: in [0, 1).  Runs of one seed share their coins, others do not: see ``privacy.compose``.  A view is
    refused, with the reason, where a run has no law or where shared coins have none that is known.
    """
    if len(runs) < 2:
        return None
    given = [planted_canaries.as_given(run) for run in runs]
    people = [None if each is None else each.hash for each in given]
    known = {each for each in people if each is not None}
    if len(known) > 1:
        return None
    if None in people:
        return {"coins": "unknown", "delta": delta, "views": [], "note": UNKNOWN}
    seeds = [run.seed for run in runs]
    distinct = len(set(seeds))
    coins = "independent" if distinct == len(seeds) else "shared" if distinct == 1 else "some shared"
    return {
        "coins": coins,
        "delta": delta,
        "views": [_row(runs, view, delta) for view in VIEWS if _is_in_all(runs, view)],
        "note": _NOTES[coins],
    }


_NOTES = {
    "independent": "These runs are of the same people, each with coins of its own: what they show adds up.",
    "shared": (
        "These runs are of the same people and of one seed: all draw the same coins, so that answers which differ can "
        "give a label away. Runs without --seed draw coins of their own."
    ),
    "some shared": (
        "These runs are of the same people, and some of one seed: those draw the same coins, so that answers which "
        "differ can give a label away. Runs without --seed draw coins of their own."
    ),
}


def _is_in_all(runs: Sequence[Run], view: str) -> bool:
    return view == "wire" or all(run.source is None or view in run.source.roles() for run in runs)


def _row(runs: Sequence[Run], view: str, delta: float) -> dict[str, Any]:
    """Return the composed figure of a view, or why there is none."""
    row: dict[str, Any] = {"view": view, "exact": None, "refused": ""}
    try:
        _check_quick(runs)
        profile = _composed(runs, view)
    except InputError as error:
        return row | {"refused": str(error)}
    if profile.law is None:
        return row | {"refused": profile.why}
    return row | {"exact": figure(profile, delta)}


def _check_quick(runs: Sequence[Run]) -> None:
    """Raise InputError, with what to do, where composing takes long."""
    people = runs[0].population
    sizes = set() if people is None else set(people.sizes.tolist())
    if len(sizes) > _MOST_SIZES or max(sizes, default=0) > _LARGEST or len(runs) > _MOST_RUNS:
        raise InputError(
            f"not computed here: more than {_MOST_SIZES} cluster sizes, {_LARGEST:,} users of a cluster or "
            f"{_MOST_RUNS} runs take long; in Python: privacy.profile of each, and privacy.compose"
        )


def _composed(runs: Sequence[Run], view: str) -> PrivacyProfile:
    """Compose runs of one seed by their shared coins, and then those of different seeds."""
    by_seed: dict[int | None, list[PrivacyProfile]] = {}
    looked_at: list[tuple[Any, ...]] = []
    for run in runs:
        if run.source is None:
            raise InputError(f"{run.protocol} is not a protocol that is known here")
        if (run.seed, run.source, run.faults) in looked_at:
            continue  # the same messages, once more
        looked_at.append((run.seed, run.source, run.faults))
        profile = privacy.profile(run.source, view, population=run.population, faults=run.faults)
        by_seed.setdefault(run.seed, []).append(profile)
    groups = [
        profiles[0] if len(profiles) == 1 else privacy.compose(profiles, view=view, coins="shared")
        for profiles in by_seed.values()
    ]
    refused = next((profile for profile in groups if profile.law is None), None)
    if refused is not None:
        return refused
    if len(groups) == 1:
        return groups[0]
    alike = all(
        run.source == runs[0].source for run in runs
    )  # then the victim's crowd is the same in all of them
    laws = [profile.law for profile in groups if profile.law is not None]
    return privacy.compose(groups, view=view, same_case=alike and all(map(listed_cases, laws)))
