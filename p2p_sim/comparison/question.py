"""``Question``: what a comparison is asked, checked: the people, the promises, the protocols, the seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison.candidates import Labels
from p2p_sim.comparison.promises import Promises
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.learning import experiment
from p2p_sim.sweep import settings as sweep_settings
from p2p_sim.sweep.settings import reading_of

if TYPE_CHECKING:
    from p2p_sim.learning.data.datasets import Dataset

MOST_USERS = 100_000
"""Users of the runs: among more, they are a sample.  What views learn is always of all."""

SEEDS = 5
PEOPLE = sweep_settings.DATA | sweep_settings.DATA_LISTS | sweep_settings.USERS | {"model": str}
"""What can be said of the people, by the names of a sweep."""

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h)?")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Question:
    """What is asked.

    ``people``: settings of a sweep that say who the users are.  ``protocols``: names; None: all that are known.
    ``picture``: whether protocols are also run at other epsilons of the target's view.
    """

    people: Mapping[str, Any]
    promises: Promises
    protocols: tuple[str, ...] | None
    seeds: tuple[int, ...]
    picture: bool

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "people": dict(self.people),
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
    """Who there is: their ``labels``, how many ``users`` there are, and settings of the runs ``among`` them.

    ``sampled``: whether the runs are among some of them only.
    """

    labels: Labels
    users: int
    among: Mapping[str, Any]
    sampled: bool


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


def people_of(asked: Mapping[str, Any]) -> People:
    """Look at the people: read their data once.  Raises InputError for data that cannot be read."""
    if "users" in asked:
        return _synthetic(asked)
    data = _read(asked)
    labels = Labels(len(data.classes), len(data.features))
    own_test = data.test is not None and "test" not in asked
    users = (
        len(data.y) - int(data.test.sum())
        if own_test and data.test is not None
        else round(len(data.y) * (1 - asked.get("test", experiment.TEST_SHARE)))
    )
    if users <= MOST_USERS:
        return People(labels, users, {}, False)
    among: dict[str, Any] = {"test": 1 - MOST_USERS / len(data.y)}
    if data.cluster is None:
        clusters = asked.get("clusters", experiment.default_clusters(users))
        among["clusters"] = max(1, round(clusters * MOST_USERS / users))  # as large as they are among all
    return People(labels, users, among, True)


def _synthetic(asked: Mapping[str, Any]) -> People:
    shares: Sequence[float] | None = asked.get("shares")
    labels = Labels(2 if shares is None else len(shares), asked.get("features", 0))
    users = asked["users"]
    among = {"users": MOST_USERS} if users > MOST_USERS else {}
    return People(labels, users, among, bool(among))


def _read(asked: Mapping[str, Any]) -> Dataset:
    from p2p_sim.learning.data import datasets

    return datasets.load(
        str(asked["data"]), label=asked.get("label"), positive=asked.get("positive"),
        cluster=asked.get("cluster_column"), multiclass="positive" not in asked, numbers=False,
        classes=asked.get("classes"), reading=reading_of(asked),
    )  # fmt: skip
