"""Which runs a sweep has: a file, or a mapping, of settings with the values that each takes in turn.

As in scikit-learn's ``ParameterGrid``, one grid is the product of its lists, and a sweep may have several grids.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim import catalogue
from p2p_sim.coalition import Coalition
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.faults import Faults
from p2p_sim.core.protocol import Protocol, check_kept
from p2p_sim.core.synthetic import shares_of
from p2p_sim.protocol_parameters import Parameter, complete, made, parameters
from p2p_sim.report.delta import DELTA
from p2p_sim.rundir.run_directory import to_json
from p2p_sim.sweep import settings
from p2p_sim.sweep.one_run import OneRun, examples_of, protocol_of
from p2p_sim.sweep.settings import GRID, MOST_RUNS, PROMISE, PROTOCOL, refuse_unknown, several

Axes = dict[str, list[Any]]
"""Settings with the values that each takes in turn; the last varies fastest."""

_SEED = 0


@dataclass(frozen=True)
class Grids:
    """The runs of a sweep, in order.  ``grids``: JSON values; ``source``: the file, empty for a mapping."""

    grids: list[Axes]
    source: str

    @property
    def count(self) -> int:
        """How many runs there are."""
        return sum(math.prod(len(values) for values in axes.values()) for axes in self.grids)

    def runs(self) -> Iterator[OneRun]:
        """Yield the runs; raises InputError for one whose protocol cannot be made."""
        decided = functools.lru_cache(1000)(_decided)  # parameters mostly vary more slowly than seeds
        for number, axes in enumerate(self.grids):
            where = self.name_of(number)
            for values in itertools.product(*axes.values()):
                yield _run_of(dict(zip(axes, values, strict=True)), where, decided)

    def name_of(self, number: int) -> str:
        """Return how a grid is called in messages."""
        return _where(self.source, number, len(self.grids))

    def changes(self, before: Sequence[Axes]) -> list[str]:
        """Return how an earlier sweep's differed from these; empty if it did not."""
        if len(before) != len(self.grids):
            return [f"{len(before)} grids then, {len(self.grids)} now"]
        found = []
        for number, (then, now) in enumerate(zip(before, self.grids, strict=True)):
            which = f"{self.name_of(number)}: " if len(before) > 1 else ""
            names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
            found += [
                f"{which}{name} = {_shown(then.get(name))} then, {_shown(now.get(name))} now"
                for name in names
            ]
            if not names and list(then) != list(now):
                found.append(f"{which}the order of keys, {', '.join(then)} then, {', '.join(now)} now")
        return found


def read(given: str | Path | Mapping[str, Any]) -> Grids:
    """Read a sweep from a TOML file, or from a mapping with the same keys; raises InputError."""
    if isinstance(given, Mapping):
        found = Grids(_grids(given, ""), "")
    elif isinstance(given, (str, Path)):
        found = Grids(_grids(_toml(Path(given)), Path(given).name), Path(given).name)
    else:
        raise InputError(f"grid = {given!r}: give the path of a TOML file, or a mapping of settings")
    if found.count > MOST_RUNS:
        raise InputError(
            f"{found.source or 'sweep'}: {found.count:,} runs: a sweep has at most {MOST_RUNS:,}; give fewer "
            "values, or several sweeps"
        )
    return found


def check(grids: Grids, tell: Callable[[str, int, int], None]) -> tuple[dict[str, OneRun], list[Protocol]]:
    """Look at every run before any is made; return a run for each set of examples, and a protocol of each class.

    Raises InputError for a protocol that refuses its parameters, its graph or its faults, for an unknown view, and for
    two runs that are the same.
    """
    from p2p_sim.learning import user_graph

    examples: dict[str, OneRun] = {}
    protocols: dict[type[Protocol], Protocol] = {}
    looked_at: set[bytes] = set()
    seen: dict[bytes, int] = {}
    for index, run in enumerate(grids.runs()):
        tell("checking run", index + 1, grids.count)
        whole = _digest(run)
        if whole in seen:
            raise InputError(
                f"runs {seen[whole]} and {index} are the same, and each run is made once: leave one of them out"
            )
        seen[whole] = index
        given = {name: value for name, value in run["settings"].items() if name not in settings.SEEDS}
        rest = _digest({**run, "settings": given})
        if rest in looked_at:
            continue
        looked_at.add(rest)
        protocol = protocol_of(run)
        try:
            user_graph.check(protocol, given.get("graph"))
            faults = Faults.of(given.get("faults"))
            if faults is not None:
                faults.check(protocol)
            promised = [run[PROMISE]["view"]] if PROMISE in run else []
            attacked = [given["attack"]] if "attack" in given else []
            for view in (*given.get("views", ()), *promised, *attacked):
                Coalition.parse(view, protocol.roles())
            if "users" in given:
                shares_of(protocol.label_count(), given.get("shares"), given.get("share"))
            key = examples_of(run, protocol)
        except InputError as error:
            raise InputError(f"run {index}, {protocol.command_name()}: {error}") from error
        protocols.setdefault(type(protocol), protocol)
        if key is not None:
            examples.setdefault(key, run)
    return examples, list(protocols.values())


def _digest(run: OneRun) -> bytes:
    return hashlib.blake2b(json.dumps(run, sort_keys=True).encode(), digest_size=16).digest()


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))  # some editors begin with a mark
    except FileNotFoundError:
        raise InputError(f"{str(file)!r}: there is no such file; give the TOML file of a sweep") from None
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"it is no UTF-8 ({error})"
        raise InputError(f"{str(file)!r} cannot be read: {why}; give the TOML file of a sweep") from error
    except RecursionError as error:
        raise InputError(
            f"{str(file)!r} has lists in lists too deep to be read: a sweep needs three levels"
        ) from error
    except ValueError as error:  # no TOML, or a number of thousands of digits
        raise InputError(f"{str(file)!r} is no TOML: {error}") from error


def _where(source: str, number: int, grids: int) -> str:
    name = source or "sweep"
    return name if grids == 1 else f"{name}, grid {number + 1}"


def _grids(given: Mapping[str, Any], source: str) -> list[Axes]:
    common = {_key(name): value for name, value in given.items() if name != GRID}
    blocks = given.get(GRID, [{}])
    if isinstance(blocks, Mapping):
        blocks = [blocks]
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(block, Mapping) for block in blocks):
        raise InputError(f"{source or 'sweep'}: {GRID} = {blocks!r}: give tables, each headed [[{GRID}]]")
    if not blocks:
        raise InputError(
            f"{source or 'sweep'}: {GRID} = []: there is nothing to run; give a grid, or leave it out"
        )
    every = [{**common, **{_key(name): value for name, value in block.items()}} for block in blocks]
    return [_axes(block, _where(source, number, len(every))) for number, block in enumerate(every)]


def _key(name: object) -> str:
    """Return a key as it is called here: ``cluster-size`` is ``cluster_size``."""
    return str(name).replace("-", "_")


def _axes(block: Mapping[str, Any], where: str) -> Axes:
    """Return a grid with all its values checked, each alone; raises InputError."""
    if PROTOCOL not in block:
        for name in block:  # it may be one of these, or in one of these
            if name not in (*settings.SCALARS, *settings.LISTS, PROMISE) and near(name, (PROTOCOL, GRID)):
                refuse_unknown(name, (PROTOCOL, GRID, PROMISE, *settings.SCALARS, *settings.LISTS), where)
        raise InputError(
            f"{where}: {PROTOCOL} is missing: name one, or a list; known are "
            f"{', '.join(kind.command_name() for kind in catalogue.everything())}"
        )
    named = [_protocol(value, where) for value in several(PROTOCOL, block[PROTOCOL], where)]
    offered = [{} if isinstance(value, dict) else _offered(value) for value in named]
    own = set().union(*offered) if offered else set()
    known = {PROTOCOL, PROMISE, *settings.SCALARS, *settings.LISTS, *own}
    axes: Axes = {}
    for name, value in block.items():
        refuse_unknown(name, known if name == GRID else {*known, GRID}, where)  # no grid in a grid
        if name == PROTOCOL:
            axes[name] = named
        elif name == PROMISE:
            axes[name] = _promises(value, where)
        elif name in own:
            axes[name] = [_parameter(name, each, offered, where) for each in several(name, value, where)]
            _check_for_all(name, named, offered, where)
        else:
            axes[name] = settings.values_of(name, value, where)
        _check_once(name, axes[name], where)
    axes.setdefault("seed", [_SEED])
    _check_together(axes, where)
    return axes


def _protocol(value: Any, where: str) -> Any:
    """Return a protocol's name; of an object, the name of its class with its parameters."""
    if isinstance(value, str):
        try:
            catalogue.named(value)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        return value
    if not isinstance(value, Protocol):
        raise InputError(
            f"{where}: {PROTOCOL} = {value!r}: give a name, module:Class, or from Python an object, such as "
            "PeerToPeer(alpha=0.1)"
        )
    kind = type(value)
    listed = kind in catalogue.everything()  # to look for a class of one's own takes seconds
    if not listed and not _importable(kind):
        raise InputError(
            f"{where}: {PROTOCOL} = {value!r}: other processes cannot import {kind.__name__}: put it into a module, a "
            "file of its own beside this one"
        )
    check_kept(value.parameters())
    name = kind.command_name() if listed else catalogue.class_name(kind)
    return {"name": name, "parameters": {key: to_json(each) for key, each in value.parameters().items()}}


def _importable(kind: type[Protocol]) -> bool:
    """Whether another process finds a class by its name."""
    if kind.__module__ == "__main__":
        return False
    try:
        return catalogue.named(catalogue.class_name(kind)) is kind
    except InputError:
        return False


def _offered(name: str) -> dict[str, Parameter]:
    return {each.name: each for each in parameters(catalogue.named(name)).values()}


def _parameter(name: str, value: Any, offered: Sequence[Mapping[str, Parameter]], where: str) -> Any:
    kinds = [each[name] for each in offered if name in each]
    value = value.item() if hasattr(value, "item") else value
    try:
        return kinds[0].checked(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _check_for_all(
    name: str, named: Sequence[Any], offered: Sequence[Mapping[str, Parameter]], where: str
) -> None:
    for which, each in zip(named, offered, strict=True):
        if name not in each:
            what = f"{which} has {', '.join(each) or 'no parameters'}"
            if isinstance(which, dict):
                what = "an object has its own already"
            raise InputError(
                f"{where}: {name} is not a parameter of every protocol here, {what}: give each protocol a [[{GRID}]] "
                "of its own"
            )


def _promises(given: Any, where: str) -> list[dict[str, Any]]:
    """Return the promises that are to be kept in turn."""
    place = f"{where}, {PROMISE}"
    if not isinstance(given, Mapping):
        raise InputError(f"{place} = {given!r}: give a table, such as {{epsilon = [0.5, 1], delta = 1e-6}}")
    axes: Axes = {}
    for name in given:  # a key that is missing may be one of these
        refuse_unknown(name, {*settings.PROMISED, settings.BETWEEN}, place)
    for name, value in {"epsilon": None, "delta": DELTA, "view": "learner", **given}.items():
        if value is None:
            raise InputError(f"{place}: epsilon is missing: give what the view may learn, in nats")
        if name == settings.BETWEEN:
            axes[name] = [_between(value, place)]
        else:
            axes[name] = [
                settings.checked(name, each, settings.PROMISED[name], place)
                for each in several(name, value, place)
            ]
        _check_once(name, axes[name], place)
    from p2p_sim.privacy.calibrate import check_target

    for epsilon, delta in itertools.product(axes["epsilon"], axes["delta"]):
        try:
            check_target(epsilon, delta)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def _between(value: Any, where: str) -> list[float]:
    numbers = value if isinstance(value, (list, tuple)) else ()
    if len(numbers) != 2 or not all(
        isinstance(each, (int, float)) and not isinstance(each, bool) for each in numbers
    ):
        raise InputError(
            f"{where}: between = {value!r}: give two numbers, the most private value first, such as [0.5, 0.001]"
        )
    return list(numbers)


def _check_once(name: str, values: Sequence[Any], where: str) -> None:
    seen: set[str] = set()
    for value in values:
        text = json.dumps(value)
        if text in seen:
            raise InputError(
                f"{where}: {name} has {_shown(value)} twice, and each run is made once: leave one out"
            )
        seen.add(text)


def _check_together(axes: Axes, where: str) -> None:
    """Check which settings go together; raises InputError."""
    if ("data" in axes) == ("users" in axes):
        what = "there are no users" if "data" not in axes else "data and users are both given"
        raise InputError(f'{where}: {what}: give data = "NAME_OR_FILE" (see p2p-sim data), or users = N')
    for needed, names in (
        ("data", settings.DATA | settings.DATA_LISTS),
        ("users", settings.USERS | settings.USERS_LISTS),
    ):
        for name in names if needed not in axes else ():
            if name in axes:
                raise InputError(f"{where}: {name} needs {needed}, which is missing: leave it out")
    if "model" in axes and "users" in axes and "features" not in axes:
        raise InputError(f"{where}: model needs data, or users with features: leave it out, or give these")
    if "cluster_column" in axes and "clusters" in axes:
        raise InputError(f"{where}: cluster_column and clusters are both given: give one of them")


def _run_of(chosen: Mapping[str, Any], where: str, decided: Callable[[str], dict[str, Any]]) -> OneRun:
    """Return a run of one value for each key; raises InputError if its protocol cannot be made."""
    which, promise = chosen[PROTOCOL], chosen.get(PROMISE)
    named = {name: chosen[name] for name in chosen if name in settings.SCALARS or name in settings.LISTS}
    own = {
        name: value for name, value in chosen.items() if name not in named and name not in (PROTOCOL, PROMISE)
    }
    if isinstance(which, dict):
        if promise is not None:
            raise InputError(
                f"{where}: a promise decides a parameter: name the protocol, and give its other ones"
            )
        return {PROTOCOL: which["name"], "parameters": which["parameters"], "settings": named}
    try:
        return {PROTOCOL: which, **decided(json.dumps([which, own, promise])), "settings": named}
    except InputError as error:
        shown = ", ".join(f"{name} = {value}" for name, value in own.items())
        raise InputError(f"{where}, {which}{f' with {shown}' if shown else ''}: {error}") from None


def _decided(chosen: str) -> dict[str, Any]:
    """Return all parameters of a protocol, but that which a promise decides, and the promise.

    ``chosen``: the protocol, the parameters that are given, and the promise, as JSON.
    """
    protocol, own, promise = json.loads(chosen)
    kind = catalogue.named(protocol)
    offered = parameters(kind)
    if promise is None:
        whole = made(kind, offered, own).protocol.parameters()
        check_kept(whole)
        return {"parameters": {name: to_json(value) for name, value in whole.items()}}
    names = [each.name for each in offered.values()]
    vary = (
        _key(promise["vary"])
        if "vary" in promise
        else next((n for n in ("alpha", "epsilon") if n in names), "")
    )
    if vary not in names:
        asked = f"vary = {vary!r}" if vary else "vary is missing"
        raise InputError(
            f"promise: {asked}: say which parameter it decides, of {', '.join(names) or 'none'}{near(vary, names)}"
        )
    if vary in own:
        raise InputError(f"promise: {vary} = {own[vary]!r} is fixed and to be found: leave it out")
    fixed = complete(kind, offered, own, but=vary)
    whole_promise = {**promise, "vary": vary}
    protocol_of({PROTOCOL: protocol, "parameters": fixed, PROMISE: whole_promise})  # raises InputError
    return {"parameters": fixed, PROMISE: whole_promise}


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
