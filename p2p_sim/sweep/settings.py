"""What a sweep can say of its runs: settings as ``p2p-sim run`` and ``p2p_sim.evaluate`` have them, by type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.argument_checks import check_range, check_whole
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.number_texts import float_of
from p2p_sim.core.population import MAX_FEATURES, check_seed
from p2p_sim.core.sealing import CRYPTO
from p2p_sim.learning.data.reading_options import Reading
from p2p_sim.report.delta import check_delta

PROTOCOL, PROMISE, GRID = "protocol", "promise", "grid"
"""Keys of a sweep that are no setting of a run."""

DATA: dict[str, type] = {
    "data": str, "label": str, "cluster_column": str, "clusters": int, "test": float, "split_seed": int,
    "missing": str, "decimal": str, "separator": str, "encoding": str, "header": bool,
    "sample": int, "hashed": int,
}  # fmt: skip
"""Settings of runs on real data; those from the second line on say how a file is read."""

DATA_LISTS: dict[str, type] = {
    "positive": str,
    "classes": str,
    "drop": str,
    "numeric": str,
    "categorical": str,
}

USERS: dict[str, type] = {"users": int, "cluster_size": int, "share": float, "features": int}
"""Settings of runs among synthetic users."""

USERS_LISTS: dict[str, type] = {"shares": float}

SCALARS = DATA | USERS | {
    "model": str, "graph": str, "crypto": str, "delta": float, "seed": int, "attack": str, "eta": str,
    "attack_confidence": float, "attack_utility": str, "costs": bool,
}  # fmt: skip
LISTS = DATA_LISTS | USERS_LISTS | {"faults": str, "views": str}
"""Settings whose value is a list: to try several of them, give a list of lists."""

ETA = ("knn", "model", "prior", "true")
"""Where the attackers of ``attack`` take P(y | x) from."""

UTILITIES = ("0/1", "weighted")
"""What a right guess is worth to the attackers: alike, or 1 / (2 p_y), so that rare labels count as much as others."""

MOST_RUNS = 1_000_000
"""Runs of the largest sweep: they take hours, and what is known of each is held in memory."""

SEEDS = ("seed", "split_seed")
"""Runs that differ in these alone are trials of one setting."""

PROMISED: dict[str, type] = {"epsilon": float, "delta": float, "view": str, "vary": str}
BETWEEN = "between"

_KINDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}


def trains(given: Mapping[str, Any]) -> bool:
    """Return whether a run with these settings trains a model: on the features of its users."""
    from p2p_sim.learning.training import models

    return ("data" in given or bool(given.get("features"))) and given.get("model") != models.NO_MODEL


def refuse_unknown(name: str, known: Iterable[str], where: str) -> None:
    """Raise InputError for a key that a sweep cannot have, naming the nearest one and all."""
    every = sorted(set(known))
    if name not in every:
        raise InputError(f"{where}: unknown key {name!r}{near(name, every)}; known are {', '.join(every)}")


def values_of(name: str, given: Any, where: str) -> list[Any]:
    """Return the values that a setting takes in turn, each checked; raises InputError."""
    if name in SCALARS:
        return [checked(name, value, SCALARS[name], where) for value in several(name, given, where)]
    return [_list(name, value, where) for value in (given if _is_nested(given) else [given])]


def several(name: str, given: Any, where: str) -> list[Any]:
    """Return the values that are given as a list, or the single one; raises InputError for none."""
    if isinstance(given, range) and given[MOST_RUNS:]:
        raise InputError(f"{where}: {name} = {given!r}: has more values than a sweep has runs, {MOST_RUNS:,}")
    listed = list(given) if isinstance(given, (list, tuple, range, np.ndarray)) else [given]
    if not listed:
        raise InputError(f"{where}: {name} = []: there is nothing to run; give at least one value")
    return listed


def checked(name: str, value: Any, kind: type, where: str) -> Any:
    """Return a value as its type; raises InputError for one of another type, or beyond its range."""
    value = value.item() if isinstance(value, np.generic) else value
    value = str(value) if kind is str and isinstance(value, Path) else value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float_of(value)
        except ValueError as error:
            raise InputError(f"{where}: {name} = {value!r:.60}: {error}") from None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{where}: {name} = {value!r}: must be {_KINDS[kind]}")
    try:
        _RANGES.get(name, _any)(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return value


def reading_of(run: Mapping[str, Any]) -> Reading:
    """Return how a run's file is to be read; raises InputError."""
    said: dict[str, Any] = {}
    for name in (each.name for each in fields(Reading)):
        if name in run:
            said[name] = tuple(run[name]) if name in DATA_LISTS else run[name]
    return Reading(**said)


def _list(name: str, value: Any, where: str) -> list[Any]:
    found = [
        checked(name, each, LISTS[name], where)
        for each in (value if isinstance(value, (list, tuple)) else [value])
    ]
    if name == "faults":
        try:
            Faults.of(found)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return found


def _is_nested(given: Any) -> bool:
    """Whether a list holds lists: values of a setting whose value is a list."""
    return (
        isinstance(given, (list, tuple))
        and bool(given)
        and all(isinstance(value, (list, tuple)) for value in given)
    )


def _any(_value: Any) -> None:
    """Check nothing."""


def _check_model(name: str) -> None:

    from p2p_sim.learning.training import models

    if name != models.NO_MODEL:
        models.check(name)


def _check_crypto(name: str) -> None:
    if name not in CRYPTO:
        raise InputError(f"crypto = {name!r}: allowed are {', '.join(CRYPTO)}{near(str(name), CRYPTO)}")


def _check_eta(name: str) -> None:
    if name not in ETA:
        raise InputError(f"eta = {name!r}: allowed are {', '.join(ETA)}{near(name, ETA)}")


def _check_utility(name: str) -> None:
    if name not in UTILITIES:
        raise InputError(f"attack_utility = {name!r}: allowed are {', '.join(UTILITIES)}")


def _check_count(name: str) -> Callable[[int], None]:
    return partial(check_whole, name)


_RANGES: dict[str, Callable[[Any], object]] = {
    "seed": check_seed, "split_seed": lambda seed: check_seed(seed, "split_seed"), "delta": check_delta,
    "model": _check_model, "crypto": _check_crypto, "eta": _check_eta,
    "attack_utility": _check_utility, "users": _check_count("users"), "cluster_size": _check_count("cluster_size"),
    "clusters": _check_count("clusters"),
    "features": lambda features: check_whole("features", features, 0, MAX_FEATURES),
    "share": lambda share: check_range("share", share, 0, 1),
    "attack_confidence": lambda given: check_range("attack_confidence", given, 0.5, 1, open_high=True),
    "test": lambda test: check_range("test", test, 0, 1, open_low=True, open_high=True),
}  # fmt: skip
"""What checks a value of the right type; what is not here is checked by the run."""
