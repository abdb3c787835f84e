"""``Question``: what a comparison is asked, checked: the people, the promises, the protocols, the seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison.promises import Promises
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.label_kinds import BINARY, CLASSES
from p2p_sim.core.synthetic import shares_of
from p2p_sim.learning import data_split, number_labels, user_clusters
from p2p_sim.learning.applicability import LabelKind, label_kind
from p2p_sim.learning.data.label_columns import RARE
from p2p_sim.learning.data.tables import number_text
from p2p_sim.sweep import settings as sweep_settings
from p2p_sim.sweep.settings import reading_of

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

SEEDS = 5
_OF_USERS = sweep_settings.USERS | sweep_settings.USERS_LISTS
PEOPLE = sweep_settings.DATA | sweep_settings.DATA_LISTS | _OF_USERS | {"model": str}
"""What can be said of the people, by the names of a sweep."""

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h)?")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Question:
    """What is asked.

    ``people``: settings of a sweep that say who the users are.  ``range``: of labels that are numbers, the public least
    and greatest one.  ``protocols``: names; None: all that are known.
    ``picture``: whether protocols are also run at other epsilons of the target's view.
    """

    people: Mapping[str, Any]
    range: tuple[float, float] | None
    promises: Promises
    protocols: tuple[str, ...] | None
    seeds: tuple[int, ...]
    picture: bool

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "people": dict(self.people),
            "range": None if self.range is None else list(self.range),
            "promises": [[each.view.text, each.view.users, each.epsilon] for each in self.promises.every],
            "delta": self.promises.delta,
            "protocols": None if self.protocols is None else list(self.protocols),
            "seeds": list(self.seeds),
            "picture": self.picture,
        }

    @property
    def name(self) -> str:
        """What the people are called."""
        return Path(str(self.people.get("data", "synthetic"))).stem


@dataclass(frozen=True)
class People:
    """Who there is: their ``labels``, ``features`` and number of ``users``.

    ``asked``: the settings that say who they are.  ``data``: their examples; None of synthetic users.  ``rare``:
    whether one of two classes is rare.
    """

    labels: LabelKind
    features: int
    users: int
    asked: Mapping[str, Any]
    data: Dataset | None = None
    rare: bool = False

    def among(self, most: int) -> dict[str, Any]:
        """Return the settings of runs among all of them, or among a sample of ``most`` where they are more."""
        found = dict(self.asked)
        if self.users <= most:
            return found
        if self.data is None:
            return found | {"users": most}
        found["test"] = 1 - most / len(self.data.y)
        if self.data.cluster is None:
            clusters = self.asked.get("clusters", user_clusters.default_count(self.users))
            found["clusters"] = max(1, round(clusters * most / self.users))  # as large as they are among all
        return found


def check_people(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of people, checked.

    Raises InputError for unknown ones, for wrong types, and where there are neither data nor users, or both.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in PEOPLE:
            raise InputError(f"{name} = {value!r}: no argument of compare{near(name, PEOPLE)}")
        if value is not None:
            values = sweep_settings.values_of(
                name, list(value) if isinstance(value, tuple) else value, "compare"
            )
            if len(values) != 1:
                raise InputError(f"{name} = {value!r}: a comparison is of one data set; give one value")
            found[name] = values[0]
    if ("data" in found) == ("users" in found):
        both = "data and users are both given" if "data" in found else "there are no people"
        raise InputError(
            f"{both}: give data, the name of a data set or a file, or users, a number of synthetic ones"
        )
    needed, names = (
        ("users", {*sweep_settings.USERS, *sweep_settings.USERS_LISTS})
        if "data" in found
        else ("data", {*sweep_settings.DATA, *sweep_settings.DATA_LISTS})
    )
    for name in names & found.keys() - {"split_seed"}:
        raise InputError(f"{name} needs {needed}, which is missing: leave it out")
    return found


def seeds_of(given: Any) -> tuple[int, ...]:
    """Return the seeds: so many, from 0 on, or those of a list; raises InputError."""
    if isinstance(given, int) and not isinstance(given, bool):
        check_whole("seeds", given, 1, 10_000)
        return tuple(range(given))
    found = tuple(sweep_settings.values_of("seed", list(given), "compare"))
    if len(set(found)) < len(found):
        raise InputError(f"seeds = {list(given)}: each may be named once")
    return found


def seconds_of(given: Any) -> float | None:
    """Return a time budget in seconds, of text such as 90s, 10m or 1h, or of a number; raises InputError."""
    if given is None:
        return None
    found = _TIME.fullmatch(str(given).strip()) if not isinstance(given, bool) else None
    seconds = 0.0 if found is None else float(found[1]) * _UNITS[found[2] or ""]
    if not seconds:
        raise InputError(f"budget = {given!r}: give a time such as 90s, 10m or 1h")
    return seconds


def range_of(given: Any) -> tuple[float, float] | None:
    """Return the public least and greatest number that a label can be; raises InputError."""
    if given is None:
        return None
    ends = tuple(given) if isinstance(given, (list, tuple)) else ()
    if len(ends) != 2 or not all(isinstance(end, (int, float)) for end in ends) or not ends[0] < ends[1]:
        raise InputError(f"range = {given!r}: give the least and the greatest number that a label can be")
    return float(ends[0]), float(ends[1])


def people_of(asked: Mapping[str, Any], range: tuple[float, float] | None) -> People:
    """Look at the people: read their data once.  Raises InputError for data that cannot be read."""
    if "users" in asked:
        if range is not None:
            raise InputError("range is of labels in data, and the users are synthetic: leave it out")
        return _synthetic(asked)
    data = _read(asked, range)
    labels, features = label_kind(data), len(data.features)
    own_test = data.test is not None and "test" not in asked
    users = (
        len(data.y) - int(data.test.sum())
        if own_test and data.test is not None
        else round(len(data.y) * (1 - asked.get("test", data_split.TEST_SHARE)))
    )
    rare = labels.name == BINARY and 2 * min(data.y.mean(), 1 - data.y.mean()) < RARE
    return People(labels, features, users, asked, data, bool(rare))


def _synthetic(asked: Mapping[str, Any]) -> People:
    shares: Sequence[float] | None = asked.get("shares")
    count = 2 if shares is None else len(shares)
    shares_of(max(count, 2), shares, asked.get("share"))  # refused before anything is calibrated
    labels = LabelKind(BINARY if count == 2 else CLASSES, "y", count)
    return People(labels, asked.get("features", 0), asked["users"], asked)


def _read(asked: Mapping[str, Any], range: tuple[float, float] | None) -> Dataset:
    from p2p_sim.learning.data import datasets

    names = {"label": "label", "positive": "positive", "cluster_column": "cluster", "classes": "classes"}
    arguments = {argument: asked[name] for name, argument in names.items() if name in asked}
    found = datasets.load_by_kind(str(asked["data"]), range=range, reading=reading_of(asked), **arguments)
    values = found.values()
    if range is not None and values is not None:
        of = " to ".join(map(number_text, range))
        number_labels.clipped_to(*range, values, found.label, of, "--range")  # before any protocol says so
    return found
