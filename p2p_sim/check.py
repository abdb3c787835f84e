"""``check``: whether a protocol's results depend on anything but seed and population, found out in a small world."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.backends import local
from p2p_sim.core import module_finder
from p2p_sim.core.argument_checks import check_whole
from p2p_sim.core.errors import InputError, MissingColumnError, ProtocolError, TooFewMembersError
from p2p_sim.core.message import Message
from p2p_sim.core.population import Population, check_seed
from p2p_sim.core.protocol import Protocol
from p2p_sim.core.synthetic import placeholders
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.network import topologies
from p2p_sim.rundir.trace_reader import sorted_trace
from p2p_sim.trace.diff import as_value, differing, first_of

Array = npt.NDArray[Any]

USERS = (12, 60, 400)
"""Sizes of the small world that are tried, in order; the first with which the protocol runs is used."""

_HASH_SEEDS = ("1", "2")
_FULL = TraceLevel("full")
_SUSPECTS = frozenset(
    {
        "random",
        "default_rng",
        "rand",
        "randn",
        "randint",
        "secrets",
        "urandom",
        "uuid4",
        "time",
        "perf_counter",
    }
    | {"now", "today", "environ", "getpid", "hash", "set", "frozenset"}
)
"""Names in a program's code that bring in chance, time, the environment or an order by hash."""

_REPEATED = (
    "the program takes chance, time or state from elsewhere: draw by me.draw alone, and keep nothing between runs "
    "in the class, its module or a file"
)
_BLOCKS = (
    "the program looks at its block as a whole: compute each entry from the same party's entries alone, without sums, "
    "sorting or counts over a column, put conditions on data into when=, never around a yield, "
    "and write matrix products (@, dot) as numpy.einsum, which rounds a row alike in blocks of all sizes"
)
_PROCESSES = (
    "the program depends on its process: the order of a set or of hashes (sort it), an environment variable, a file or "
    "the time"
)


@dataclass(frozen=True)
class Checked:
    """What a check found.

    ``users``: of the small world, ``columns``: those that were made up for it.  ``runs``: how many were compared.
    ``digest``: of the first.  ``difference``: the first one between two runs, ``cause``: its likely cause; empty if
    there is none.  ``left_out``: what could not be checked, and why.
    """

    protocol: str
    users: int
    columns: tuple[str, ...]
    runs: int
    digest: str | None
    difference: str = ""
    cause: str = ""
    left_out: str = ""

    @property
    def passed(self) -> bool:
        """Whether all runs agreed."""
        return not self.difference

    def __str__(self) -> str:
        """Return it in words."""
        made_up = f", with made-up {', '.join(self.columns)}" if self.columns else ""
        head = f"{self.protocol}: {self.runs} runs of {self.users} users{made_up}"
        found = (
            f": the same bits, digest {self.digest}" if self.passed else f"\n{self.difference}\n{self.cause}"
        )
        return head + found + (f"\nnot checked: {self.left_out}" if self.left_out else "")


@dataclass(frozen=True)
class _World:
    protocol: Protocol
    population: Population
    seed: int


@dataclass(frozen=True)
class _Outcome:
    """A run by name: its error, or its messages by kind, outputs by role and digest."""

    name: str
    again: bool
    error: str
    messages: Mapping[str, dict[str, Array]]
    outputs: Mapping[str, dict[str, Array]]
    digest: str | None


def check(
    protocol: Protocol, population: Population | None = None, *, seed: int = 0, users: int | None = None
) -> Checked:
    """Run a protocol in a small world in 1, 2 and n blocks, twice, here and in two more processes; compare all bits.

    The processes have different hash seeds.  ``population``: the small world; in one of the runs every user is a block
    of her own; by default ``users`` made-up users (12, or more if the protocol needs more) in two clusters, with what
    columns the program reads.  A result that differs is found for these users and this seed, not in general.
    Raises InputError for other arguments, and ProtocolError if the protocol does not run at all.
    """
    _check_arguments(protocol, population, users)
    check_seed(seed)
    world, columns = _world_of(protocol, population, seed, users)
    first = list(_runs(world, "here", 2))
    found, left_out = _first_difference(world, first), ""
    runs = len(first)
    if found is None:
        left_out = _stays_here(type(protocol))
        for hash_seed in () if left_out else _HASH_SEEDS:
            there = _elsewhere(world, hash_seed)
            runs += len(there)
            found = _first_difference(world, [first[0], *there], _PROCESSES)
            if found is not None:
                break
    difference, cause = found or ("", "")
    name = f"{type(protocol).__module__}:{type(protocol).__name__}"
    return Checked(name, world.population.users, columns, runs, first[0].digest, difference, cause, left_out)


def small_world(protocol: Protocol, seed: int = 0, users: int | None = None) -> Population:
    """Return the made-up users of ``check``, with what columns the program reads; raises InputError, ProtocolError."""
    _check_arguments(protocol, None, users)
    check_seed(seed)
    return _world_of(protocol, None, seed, users)[0].population


def quick(protocol: Protocol) -> str:
    """Check a protocol in this process alone, in 1, 2 and n blocks; return why that could not be done, empty if it was.

    Raises ProtocolError for a result that differs.
    """
    try:
        world, _ = _world_of(protocol, None, 0, None)
    except (InputError, ProtocolError) as error:
        return f"{type(protocol).__name__} was not checked in a small world, where it does not run: {error}"
    found = _first_difference(world, [*_runs(world, "here", 1), _outcome(world, 1, "here", again=True)])
    if found is not None:
        raise ProtocolError(
            f"{type(protocol).__name__}, in a small world of {world.population.users} users: {found[0]}; {found[1]}"
        )
    return ""


def _check_arguments(protocol: Protocol, population: Population | None, users: int | None) -> None:
    if isinstance(protocol, type) or not isinstance(protocol, Protocol):
        raise InputError(f"protocol = {protocol!r}: give an object, such as PeerToPeer(alpha=0.1)")
    if population is not None and not isinstance(population, Population):
        raise InputError(f"population = {population!r}: make one, such as Population.from_arrays(y=labels)")
    if users is not None:
        if population is not None:
            raise InputError(f"users = {users!r} and population are both given: give one of them")
        check_whole("users", users, 2, 10_000)


def _world_of(
    protocol: Protocol, given: Population | None, seed: int, users: int | None
) -> tuple[_World, tuple[str, ...]]:
    """Return the small world, in which the protocol ran once, and the names of the columns that were made up."""
    protocol.check()
    if given is not None:
        world = _World(protocol, given, seed)
        _run(world, 1)
        return world, ()
    sizes = USERS if users is None else (users,)
    for size in sizes:
        try:
            return _made_up(protocol, size, seed)
        except (InputError, ProtocolError) as error:
            few = isinstance(error, TooFewMembersError)  # a larger world may do
            if size == sizes[-1] or (isinstance(error, ProtocolError) and not few):
                raise
    raise AssertionError("the last size returns or raises")


def _made_up(protocol: Protocol, users: int, seed: int) -> tuple[_World, tuple[str, ...]]:
    """Return a world of so many users, with what columns the program turns out to read."""
    columns: dict[tuple[str, str], Array] = {}
    made: list[str] = []
    graph = protocol.graph_over() is not None
    needed = protocol.feature_count()
    if needed is not None:
        columns["x", "x"] = placeholders(users, needed)
        made.append("me.x")
    while True:
        world = _World(protocol, _population(protocol, users, seed, columns, graph), seed)
        try:
            _run(world, 1)
        except MissingColumnError as error:
            if (error.part, error.name) in columns or (error.part == "neighbours" and graph):
                raise
            if error.part == "neighbours":
                graph = True
            elif error.part == "x":
                columns["x", "x"] = placeholders(users, 3)
            else:
                columns[error.part, error.name] = np.arange(users) % 2
            made.append(error.what)
        else:
            return world, tuple(made)


def _population(
    protocol: Protocol, users: int, seed: int, columns: Mapping[tuple[str, str], Array], graph: bool
) -> Population:
    """Return users in two clusters, each with users of both halves; in the first half everybody has label 0."""
    labels = protocol.label_count()
    y = np.where(np.arange(users) < users // 2, 0, np.arange(users) % labels).astype(np.uint8)
    y[-1] = labels - 1
    people = Population.from_arrays(
        y=y.astype(np.bool_) if labels == 2 else y,
        cluster=np.arange(users) % 2,
        x=columns.get(("x", "x")),
        public={name: column for (part, name), column in columns.items() if part == "public"},
        secret={name: column for (part, name), column in columns.items() if part == "secret"},
    )
    within = protocol.graph_over() == "cluster"
    return topologies.join(people, "ring:2", seed, within_clusters=within) if graph else people


def _run(world: _World, blocks: int) -> Any:
    return local.run(world.protocol, world.population, world.seed, blocks=blocks, trace=_FULL)


def _runs(world: _World, where: str, times: int) -> Iterator[_Outcome]:
    """Run in 1, 2 and n blocks, and all of that so many times."""
    for number in range(times):
        for blocks in dict.fromkeys((1, min(2, world.population.users), world.population.users)):
            count = f"{blocks} block{'s' if blocks > 1 else ''}"
            yield _outcome(world, blocks, f"{count}, {where}", again=number > 0)


def _outcome(world: _World, blocks: int, where: str, *, again: bool) -> _Outcome:
    name = f"{where}, again" if again else where
    try:
        finished = _run(world, blocks)
    except (InputError, ProtocolError) as error:
        return _Outcome(name, again, str(error), {}, {}, None)
    messages = sorted_trace(world.protocol, finished.totals.trace, _FULL)
    return _Outcome(name, again, "", dict(messages), finished.outputs, finished.totals.digest)


def _first_difference(
    world: _World, outcomes: list[_Outcome], cause: str | None = None
) -> tuple[str, str] | None:
    """Return the first difference from the first run and its likely cause (``cause``, or by the run); None if none."""
    one = outcomes[0]
    repeated = [other for other in outcomes[1:] if other.again]
    for other in [*repeated[:1], *outcomes[1:]]:
        found = f"{other.name}: {other.error}" if other.error else _difference(world.protocol, one, other)
        if found:
            by_run = cause or (_REPEATED if other in repeated else _BLOCKS)
            names = "" if by_run == _BLOCKS else _suspects(type(world.protocol))
            return found, f"likely cause: {by_run}{names}"
    return None


def _difference(protocol: Protocol, one: _Outcome, other: _Outcome) -> str:
    """Return the first difference of two runs in words; empty if there is none."""
    kinds: dict[str, Message] = protocol.messages()
    found = {
        kind: differing(one.messages[kind], other.messages[kind], list(message.fields))
        for kind, message in kinds.items()
        if kind in one.messages and kind in other.messages
    }
    first = first_of(found)
    names = f"({one.name}) and ({other.name})"
    if first is not None:
        kind, row = first
        roles = (kinds[kind].sender, kinds[kind].recipient)
        value = as_value(kind, roles, found[kind], row, list(kinds[kind].fields))
        parts = ["not sent" if value[end] is None else _fields(value[end]) for end in ("first", "second")]
        return f"{names} differ first at message {value['id']}: {parts[0]}, and {parts[1]}"
    for role, columns in one.outputs.items():
        for name in dict.fromkeys([*columns, *other.outputs[role]]):
            pair = (columns.get(name), other.outputs[role].get(name))
            unequal = _unequal(*pair)
            if unequal:
                return f"{names} differ first at output {name!r} of {role!r}: {unequal}"
    return "" if one.digest == other.digest else f"{names} have different digests"


def _fields(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "sent"


def _unequal(one: Array | None, other: Array | None) -> str:
    """Return how two columns differ in words; empty if they are equal, also in their type."""
    if one is None or other is None:
        return "one of them lacks it"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{one.dtype} of shape {one.shape}, and {other.dtype} of shape {other.shape}"
    same = (one == other) | ((one != one) & (other != other))  # NaN is equal to itself here
    if bool(same.all()):
        return ""
    row = int(np.argwhere(~same)[0][0])
    return f"row {row} is {one[row]}, and {other[row]}"


def _suspects(kind: type[Protocol]) -> str:
    """Return which suspicious names the code of a protocol uses, as an end of a sentence."""
    found: set[str] = set()
    for owner in kind.__mro__:
        if issubclass(owner, Protocol) and owner is not Protocol:
            codes = [
                value.__code__
                for name, value in vars(owner).items()
                if name[:2] != "__" and hasattr(value, "__code__")
            ]
            for code in codes:
                found |= _names(code) & _SUSPECTS
    return f"; its code uses {', '.join(sorted(found))}" if found else ""


def _names(code: CodeType) -> set[str]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner)) if inner else set(code.co_names)


def _stays_here(kind: type[Protocol]) -> str:
    """Return why another process cannot find a class; empty if it can."""
    if kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__:
        return ""
    return "whether the process matters, as another one cannot import the class: put it into a module, at its top level"


def _elsewhere(world: _World, hash_seed: str) -> list[_Outcome]:
    """Run everything in a fresh process whose texts hash by another seed."""
    code = "from p2p_sim.check import _answer; _answer()"
    job = pickle.dumps((world, f"a process with PYTHONHASHSEED={hash_seed}"))
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(module_finder.folders()),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=pickle.dumps((module_finder.opened(), job)),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ProtocolError(
            f"{type(world.protocol).__name__} does not run in a fresh process ({last}): its module must be importable "
            "there, and its parameters picklable"
        )
    outcomes: list[_Outcome] = pickle.loads(done.stdout)
    return outcomes


def _answer() -> None:
    """Do the work of a fresh process: read a job, write what its runs gave."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a program prints must not get in between
    finders, job = pickle.load(sys.stdin.buffer)
    for finder in finders:
        finder.open()
    world, where = pickle.loads(job)
    with out:
        out.write(pickle.dumps(list(_runs(world, where, 2))))
