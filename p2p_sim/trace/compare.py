"""Two runs compared: settings, population, counts, outputs, and message by message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core.errors import InputError
from p2p_sim.core.groups import Members
from p2p_sim.core.ledger import Count
from p2p_sim.core.level import TraceLevel
from p2p_sim.core.message import USER
from p2p_sim.trace import query
from p2p_sim.trace.apart import Apart, apart
from p2p_sim.trace.declared import declared
from p2p_sim.trace.opened import opened
from p2p_sim.trace.reader import Source
from p2p_sim.trace.slices import party

Array = npt.NDArray[Any]

_HOW = ("backend", "trace", "crypto")
"""Settings that change nothing of what comes out."""


@dataclass(frozen=True)
class Unlike:
    """Something that differs: its value in either run, how many values do, and the party of the first."""

    what: str
    first: Any
    second: Any
    differ: int = 1
    party: str | None = None


@dataclass(frozen=True)
class Comparison:
    """How two runs differ.

    ``settings``: protocol, parameters, seed, faults; ``population``, ``counts``, ``outputs``, ``digest``: likewise;
    ``messages``: by kind and round in causal order, None if they were not compared; ``compared``: how many messages
    were, of either run; ``notes``: what was not compared, and how.
    """

    settings: tuple[Unlike, ...]
    population: tuple[Unlike, ...]
    counts: tuple[Unlike, ...]
    messages: tuple[Apart, ...] | None
    outputs: tuple[Unlike, ...]
    digest: tuple[Unlike, ...]
    compared: tuple[int, int]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs of all that was compared."""
        return not (
            self.settings or self.population or self.counts or self.messages or self.outputs or self.digest
        )


def compare(first: Any, second: Any, *, protocol: Any = None) -> Comparison:
    """Compare two runs, each a ``Run`` or the path of a run directory, in bounded memory.

    Messages are compared where both runs kept all of them, or those of the same sample; where they did not and the
    digests differ or are missing, both are recomputed, up to 1,000,000 users; else counts, outputs and digests must do,
    and ``notes`` says so.  Backend, trace level and kind of cryptography are not compared: they change nothing.
    Of a run that was cut off only its messages are known: those that it lacks differ, the rest is not compared.
    ``protocol``: for runs of one that is not shipped.  Raises InputError for a folder that is no run.
    """
    runs = [opened(run) for run in (first, second)]
    digest = [run.digest for run in runs]
    known = None not in digest
    messages, compared, notes = _messages(runs, protocol, known and digest[0] == digest[1])
    notes = [*_notes(runs), *notes]
    return Comparison(
        _settings(runs),
        _population(runs),
        _counts(runs),
        messages,
        _outputs(runs),
        (Unlike("digest", *digest),) if known and digest[0] != digest[1] else (),
        compared,
        tuple(notes),
    )


def _messages(
    runs: list[Any], protocol: Any, alike: bool
) -> tuple[tuple[Apart, ...] | None, tuple[int, int], list[str]]:
    """Compare messages where that can be done.  ``alike``: whether the digests say that they are equal."""
    programs = [run.source if protocol is None else protocol for run in runs]
    levels = [TraceLevel.parse(run.trace) for run in runs]
    if levels[0].keeps and levels[0] == levels[1] and runs[0].users == runs[1].users:
        traces = [query.kept_of(run, program)[0] for run, program in zip(runs, programs, strict=True)]
        notes = [trace.missing for trace in traces if trace.missing is not None]
    else:
        try:
            traces, notes = _whole(runs, programs, alike)
        except InputError as error:
            return None, (0, 0), [f"messages were not compared, only counts, outputs and digests: {error}"]
    if traces[0].manifest["kinds"] != traces[1].manifest["kinds"]:
        return None, (0, 0), ["messages were not compared: the runs declare different kinds of them"]
    held = traces[0].kept, traces[1].kept
    kinds = declared(traces[0].manifest["kinds"])
    return tuple(apart(traces[0], traces[1], kinds)), held, list(dict.fromkeys(notes))


def _whole(runs: list[Any], programs: list[Any], alike: bool) -> tuple[list[Source], list[str]]:
    """Return all messages of two runs, recomputed where they were not kept, and what is to be said of them."""
    if alike and any(run.trace != "full" for run in runs):
        raise InputError("the digests are equal, so nothing was recomputed")
    traces: list[Source] = []
    notes: list[str] = []
    for run, program in zip(runs, programs, strict=True):
        trace, _, told = query.trace_of(run, program)
        if trace.missing is not None:
            raise InputError(trace.missing)
        traces.append(trace)
        notes += told
    return traces, notes


def _settings(runs: list[Any]) -> tuple[Unlike, ...]:
    values = [
        {"protocol": run.protocol} | {f"parameter {name}": value for name, value in run.parameters.items()}
        | {"seed": run.seed, "faults": [] if run.faults is None else run.faults.texts()}
        for run in runs
    ]  # fmt: skip
    if any(map(query.cut_off, runs)):
        values = [{"protocol": run.protocol} for run in runs]
    elif None in (runs[0].seed, runs[1].seed):  # saved without
        for told in values:
            del told["seed"]
    names = dict.fromkeys([*values[0], *values[1]])
    pairs = [(name, values[0].get(name), values[1].get(name)) for name in names]
    return tuple(Unlike(name, one, other) for name, one, other in pairs if one != other)


def _population(runs: list[Any]) -> tuple[Unlike, ...]:
    users = [run.users for run in runs]
    if users[0] != users[1]:
        return (Unlike("users", *users),)
    one, other = (run.population for run in runs)
    if one is None or other is None:
        return ()
    found = [_columns("label", one.y, other.y, None, USER)]
    clusters = [np.zeros(0) if p.clusters is None else p.clusters.label for p in (one, other)]
    found.append(_columns("cluster", clusters[0], clusters[1], None, USER))
    if not _same_graph(one.graph, other.graph):
        graphs = ["none" if p.graph is None else "edges" for p in (one, other)]
        found.append(Unlike("graph", graphs[0], graphs[1]))
    return tuple(unlike for unlike in found if unlike is not None)


def _same_graph(one: Members | None, other: Members | None) -> bool:
    if one is None or other is None:
        return one is other
    if one.order is None or other.order is None:  # complete: nothing but sizes
        return one.order is other.order and np.array_equal(one.starts, other.starts)
    return np.array_equal(one.starts, other.starts) and np.array_equal(one.order, other.order)


def _counts(runs: list[Any]) -> tuple[Unlike, ...]:
    if any(map(query.cut_off, runs)):
        return ()
    keys = sorted({key for run in runs for key in run.counts}, key=lambda key: (key[1], key[0]))
    found = []
    for kind, round in keys:
        one, other = (run.counts.get((kind, round), Count()).messages for run in runs)
        if one != other:
            found.append(Unlike(f"{kind}, round {round}", one, other, abs(one - other)))
    return tuple(found)


def _outputs(runs: list[Any]) -> tuple[Unlike, ...]:
    if any(map(query.cut_off, runs)):
        return ()
    found: list[Unlike | None] = []
    one, other = (run.outputs for run in runs)
    for role in dict.fromkeys([*one, *other]):
        sides = [outputs.get(role, {}) for outputs in (one, other)]
        for name in dict.fromkeys([*sides[0], *sides[1]]):
            if name in sides[0] and name in sides[1]:
                gone = runs[0].faulty.get("dropped") if role == USER else None
                found.append(_columns(f"{role}/{name}", sides[0][name], sides[1][name], gone, role))
            else:
                found.append(Unlike(f"{role}/{name}", name in sides[0], name in sides[1], party=role))
    return tuple(unlike for unlike in found if unlike is not None)


def _columns(what: str, one: Array, other: Array, gone: Array | None, role: str) -> Unlike | None:
    """Compare two columns; ``gone``: users who have no value in a column of users."""
    if one.shape != other.shape:
        return Unlike(what, f"{len(one):,} values", f"{len(other):,} values", party=role)
    floats = one.dtype.kind == other.dtype.kind == "f"
    same = (one == other) | (np.isnan(one) & np.isnan(other)) if floats else one == other
    places = np.flatnonzero(~same if same.ndim == 1 else ~same.all(axis=1))
    if not len(places):
        return None
    place = int(places[0])
    who = role
    if role == USER:
        here = np.setdiff1d(np.arange(len(one) + len(gone)), gone) if gone is not None else None
        who = party(USER, place if here is None else int(here[place]))
    return Unlike(what, one[place].tolist(), other[place].tolist(), len(places), who)


def _notes(runs: list[Any]) -> list[str]:
    """Say how the runs were made, where that differs, and what cannot be compared."""
    cut = [which for run, which in zip(runs, ("first", "second"), strict=True) if query.cut_off(run)]
    if cut:
        rest = "parameters, seed, labels, counts and outputs are not known: only messages were compared"
        return [f"the {which} run was cut off, and its {rest}" for which in cut]
    notes = []
    for name in _HOW:
        values = [getattr(run, name) for run in runs]
        if values[0] != values[1]:
            what = (
                "which only keys, and what is made of keys, depend on"
                if name == "crypto"
                else "which is no difference"
            )
            notes.append(f"{name}: {values[0]} and {values[1]}, {what}")
    for name in dict.fromkeys([*runs[0].versions, *runs[1].versions]):
        found = [run.versions.get(name, "unknown") for run in runs]
        if found[0] != found[1] and all(run.versions for run in runs):
            notes.append(f"computed by different versions: {name} {found[0]} and {found[1]}")
    if any(run.population is None for run in runs):
        notes.append("a run was saved without its population: labels, clusters and seeds were not compared")
    if any(run.digest is None for run in runs):
        notes.append("a run has no digest")
    return notes
