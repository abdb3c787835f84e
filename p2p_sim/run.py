"""Runs: ``run`` executes a protocol on a population and returns a ``Run`` with the results."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from p2p_sim import backends, costing, result_picture
from p2p_sim.backends.speeds import Log
from p2p_sim.coalition import Coalition
from p2p_sim.core import seeds
from p2p_sim.core.argument_checks import check_flag
from p2p_sim.core.errors import InputError
from p2p_sim.core.fault_injection import faulty
from p2p_sim.core.faults import Faults
from p2p_sim.core.ledger import Count, Most
from p2p_sim.core.paths import path_of
from p2p_sim.core.population import Population
from p2p_sim.core.population_in_parts import PopulationInParts
from p2p_sim.core.protocol import Protocol, check_kept
from p2p_sim.core.sealing import MODELLED
from p2p_sim.core.trace_level import TraceLevel
from p2p_sim.costing import RunCosts, run_costs
from p2p_sim.observed_view import View, coalition_of, view_of
from p2p_sim.progress import Asked, reporter_of, showing
from p2p_sim.result_summary import Rows, Summary, counted
from p2p_sim.rundir import code_versions, run_directory, run_json
from p2p_sim.rundir.claim import claimed
from p2p_sim.rundir.outputs_folder import OUTPUTS, OutputsFolder, StoredOutputs, names_of, rows_of
from p2p_sim.rundir.population_file import PopulationAttribute
from p2p_sim.rundir.trace_reader import (
    OnDemand,
    Source,
    Stored,
    check_kind,
    check_number,
    kept_by,
    sorted_trace,
    source_of,
)
from p2p_sim.rundir.trace_writer import MESSAGES, Draft
from p2p_sim.trace import query
from p2p_sim.trace.recompute import rerun_users
from p2p_sim.trace.replay import NO_REPLAY, UserHistory, history_of

if TYPE_CHECKING:
    from p2p_sim.crypto.rates import Rates

Array = npt.NDArray[Any]


@dataclass(repr=False)
class Run(Summary):
    """The results of a run.

    ``digest``: 32 hexadecimal digits, equal whenever all delivered messages and all outputs are equal; None if not
    computed.  ``counts``: messages by (kind, round).  ``timings``: seconds by phase.  ``parameters``: of the protocol.
    ``faults``: the injected faults, None for none; ``faults_seen``: affected messages by (fault, kind, round);
    ``faulty``: ids of the users who "dropped" out and who "lied", ascending.
    ``compute``: CPU seconds of a role's programs by (role, round), each counted before what is sent in the round;
    ``work``: cryptographic operations by (role, round, name), the names of ``p2p_sim.crypto.rates.Rates``; ``most``: of
    each (kind, round), the most that one user sent and received, None if not asked for.
    ``crypto``: "real" or "modelled".  ``seed_source``: "fresh", "given", or None where that is not known.
    ``canaries``: users whose label a coin flipped or not before the run, as columns; see ``learning.planted_canaries``.
    ``notes``: what a caller wants kept in run.json, JSON values.  ``versions``: of the code that computed a loaded run.
    """

    protocol: str
    parameters: dict[str, Any]
    seed: int | None
    backend: str
    trace: str
    digest: str | None
    counts: dict[tuple[str, int], Count]
    outputs: Mapping[str, dict[str, Array]]
    timings: dict[str, float] = field(default_factory=dict)
    population: PopulationAttribute = PopulationAttribute()  # noqa: RUF009 (a descriptor)
    source: Protocol | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    faults: Faults | None = None
    faults_seen: dict[tuple[str, str, int], int] = field(default_factory=dict)
    faulty: dict[str, Array] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    crypto: str = MODELLED
    users: int | None = None
    compute: dict[tuple[str, int], float] = field(default_factory=dict)
    work: dict[tuple[str, int, str], int] = field(default_factory=dict)
    most: Most | None = None
    seed_source: str | None = seeds.GIVEN
    canaries: dict[str, Array] = field(default_factory=dict)
    _trace: Mapping[str, dict[str, Array]] = field(default_factory=dict, repr=False)
    _draft: Draft | None = field(default=None, repr=False, compare=False)
    _threads: int = field(default=1, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Run of {self._call()} on {self.backend}, digest {self.digest}>"

    def summary(self) -> tuple[str, Rows]:
        """Return what printing the run and notebooks show: the seed is not among it, as it undoes the noise."""
        kinds = self.by_kind()
        sent = [f"{count.messages:,} {kind}" for kind, count in kinds.items()]
        nbytes = sum(count.nbytes for count in kinds.values())
        returned = [
            f"{role}: {', '.join(columns)} ({counted(rows_of(self.outputs, role), 'row')})"
            for role, columns in names_of(self.outputs).items()
            if columns
        ]
        rows = [
            ("users", "not known" if self.users is None else f"{self.users:,}"),
            ("backend", f"{self.backend}, {self.crypto} cryptography"),
            ("faults", "" if self.faults is None else ", ".join(self.faults.texts())),
            ("messages", f"{', '.join(sent)}; {counted(nbytes, 'byte')} travelled" if sent else "none"),
            ("trace", self.trace),
            ("outputs", "; ".join(returned)),
            ("digest", str(self.digest)),
            ("seconds", f"{self.timings['total']:.3g}" if "total" in self.timings else ""),
        ]
        return f"Run of {self._call()}", [(name, text) for name, text in rows if text]

    def picture(self) -> str:
        """Return bars of the bytes that travelled, by message kind."""
        kinds = self.by_kind()
        return result_picture.bars(
            "Bytes that travelled, by message kind",
            [
                result_picture.Bar(kind, count.nbytes, counted(count.nbytes, "byte"))
                for kind, count in kinds.items()
            ],
        )

    def _call(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items() if value is not None)
        return f"{self.protocol.partition(':')[2]}({given})"

    def output(self, role: str) -> dict[str, Array]:
        """Return the output of a role: columns, concatenated over its blocks, read anew where they lie in a folder.

        Users who dropped out and a server that stopped have no output: a user column has one entry for each user who is
        not in ``faulty["dropped"]``, by ascending id.  Raises InputError for an unknown role.
        """
        if role not in self.outputs:
            raise InputError(f"no role {role!r} in this run; it has {list(self.outputs)}")
        return self.outputs[role]

    def messages(self, kind: str) -> dict[str, Array]:
        """Return the traced messages of one kind as columns: round, sender, recipient, seq, fields, nbytes.

        Order: (round, recipient, sender, seq).  From a run directory, all messages of the kind are read.  Raises
        InputError for an unknown kind, if the run kept no messages, and if a file was altered.
        """
        check_kind(kind, tuple({name for name, _ in self.counts}), self.trace)
        return dict(self._trace[kind])

    @property
    def kept_messages(self) -> Mapping[str, dict[str, Array]]:
        """The messages of the trace by kind: in memory, or read from a run directory on access."""
        return self._trace

    def messages_source(self, protocol: Protocol | None = None) -> Source:
        """Return the source of the messages, in memory or in a run directory.

        ``protocol``: the run's protocol, if it is not shipped.  Raises InputError if messages in memory need it.
        """
        return source_of(self, protocol)

    def kept(self) -> int | None:
        """Return how many messages the trace holds; None if the run was to keep none."""
        return kept_by(self)

    def by_kind(self) -> dict[str, Count]:
        """Return message counts by kind, over all rounds."""
        totals: dict[str, Count] = {}
        for (kind, _), count in sorted(self.counts.items(), key=lambda item: (item[0][1], item[0][0])):
            totals.setdefault(kind, Count()).add(count)
        return totals

    def replay(self, user: int, *, protocol: Protocol | None = None) -> UserHistory:
        """Return one user's whole history, recomputed from the seed by running her closed world again.

        Warns if other code computed the run.  Raises InputError for an unknown user, and for a run saved without its
        population.
        """
        program = self._program(protocol, "replay(user, protocol=...)")
        if self.seed is None or query.census(self) is None:
            raise InputError(NO_REPLAY)
        if user is None:
            raise InputError("user = None: give the id of a user, such as 17")
        check_number("user", user)
        code_versions.warn("replayed", code_versions.other_code(self, program))
        return history_of(program, rerun_users(self, program, np.array([user]), digest=False)[1], user)

    def view(self, name: str, *, channels: str = "plain", protocol: Protocol | None = None) -> View:
        """Return what a coalition saw: "learner", "user:17", "wire", "learner+3*user", parts joined by "+".

        ``channels``: what the wire can read, "plain" or "encrypted".  Unnamed users are the first ones not named.
        Messages that the trace does not hold are recomputed from the seed: for users only, their closed world;
        otherwise the whole run, up to 1,000,000 users.  Raises InputError for an unknown part or user, and if messages
        cannot be recomputed.
        """
        return view_of(self, name, channels, self._program(protocol, "view(name, protocol=...)"))

    def coalition(self, name: str, *, protocol: Protocol | None = None) -> Coalition:
        """Return the coalition that a view's name stands for in this run, with the ids of all its users.

        Raises InputError for an unknown part or user.
        """
        return coalition_of(self, name, self._program(protocol, "coalition(name, protocol=...)"))

    def costs(
        self,
        channel: str = costing.USERS,
        *,
        servers: str = costing.SERVERS,
        rates: Rates | None = None,
        protocol: Protocol | None = None,
    ) -> RunCosts:
        """Return what each role sent, received and computed, and the simulated seconds of the protocol.

        ``channel``: the link of each user, latency one way and bandwidth, such as "20ms,10Mbit" or "10-50ms,5-20Mbit",
        drawn from the run's seed; ``servers``: the link of each server; see ``p2p_sim.network.channels``.  ``rates``:
        seconds of each cryptographic operation; None measures them here, if the run had any.  Each user computes for
        her role's seconds divided by the number of users.  Raises InputError for a malformed channel, and for a run
        without ``costs=True``.
        """
        return run_costs(self, self._program(protocol, "costs(protocol=...)"), channel, servers, rates)

    def _program(self, given: Protocol | None, how: str) -> Protocol:
        """Return the run's protocol; raises InputError for a loaded run whose protocol is not shipped and not given."""
        program = given if given is not None else self.source
        if program is None:
            option = run_json.on_command_line(self)
            raise InputError(f"{self.protocol} is not a shipped protocol: give it, {how}{option}")
        return program

    def save(self, path: str | Path, *, force: bool = False, population: bool = True) -> Path:
        """Write the run directory (run.json, population.parquet, outputs/, messages/), completely or not at all.

        ``force``: replace an existing folder.  ``population=False``: leave out labels and seed, with which the noise
        could be undone; then nothing can be replayed.  Raises InputError if the folder exists, and if the seed is left
        out but below 2^62, so that it could be guessed.
        """
        folder = path_of("path", path)
        check_flag("force", force)
        check_flag("population", population)
        check_kept(self.parameters)
        sums = run_directory.save(self, folder, force, population, self._draft, self._threads)
        self._draft, saved = None, folder.resolve()  # the caller may go to another folder
        if isinstance(self.outputs, StoredOutputs):
            self.outputs = self.outputs.moved(saved / OUTPUTS, sums)
        if isinstance(self._trace, OnDemand):
            self._trace = OnDemand(Stored(saved / MESSAGES))
        return folder


def load(path: str | Path) -> Run:
    """Read a run directory; raises InputError if it does not exist or is damaged.

    A population of more than 1,000,000 users is read on access, and only the part that is needed.
    """
    folder = path_of("path", path)
    if os.path.lexists(folder / run_json.RUN):
        folder = folder.absolute()  # the caller may go to another folder
    return Run(**run_directory.load(folder))


@showing
def run(
    protocol: Protocol,
    population: Population,
    *,
    seed: int | None = None,
    backend: str = "local",
    blocks: int | None = None,
    shards: int | None = None,
    address: str | None = None,
    trace: str = "none",
    digest: bool = True,
    progress: Asked = None,
    faults: Faults | Sequence[str] | None = None,
    costs: bool = False,
    crypto: str = MODELLED,
    out: str | Path | Draft | None = None,
    threads: int | None = None,
    log: Log | None = None,
) -> Run:
    """Run a protocol on a population.

    ``seed``: decides every draw, 0 to 2^64 - 1; None: a fresh one from the system's entropy, see ``Run.seed``.
    ``backend``: "local" (this process), "shards" (Ray actors, each with a range of users) or "actors" (one Ray actor a
    user).  ``blocks``: number of blocks of users in a site; ``shards``: number of Ray actors; ``address``: host:port of
    a Ray cluster; None: a Ray that this process has joined, or that of RAY_ADDRESS, or one that is started here and
    stopped.  ``threads``: how many work on the blocks of a local run; None: one a core that this process may use, or
    one for fewer than 100,000 users.
    ``trace``: "none", "counts", "sample=N" or "full".
    ``faults``: ``Faults(...)`` or texts such as ["drop=0.05", "loss=0.01"]; see docs/faults.md.
    ``costs``: whether to count messages user by user, which ``Run.costs`` needs.
    ``crypto``: "modelled" counts the cost of sealing and keys; "real" carries it out, with keys from the seed: never
    for real data.  ``out``: a folder for the run directory; messages, and outputs of a local run, are written there
    during the run and not kept in memory: they are read when asked for.  ``progress``: True or False, whether a bar is
    shown while it runs; None: in a terminal and in a notebook; or a function of (label, done, total).  ``log``: a
    function of (event, details), called when a phase
    begins and a round ends.  Results depend on none of backend, blocks, shards, threads, progress, log.  Raises
    InputError for bad input or an existing folder, ProtocolError for a program that breaks the engine's rules.
    """
    if isinstance(protocol, type) or not isinstance(protocol, Protocol):
        raise InputError(f"protocol = {protocol!r}: give an object, such as PeerToPeer(alpha=0.1)")
    check_flag("digest", digest)
    check_flag("costs", costs)
    if not isinstance(population, Population):
        raise InputError(f"population = {population!r}: make one, such as Population.from_arrays(y=labels)")
    level = TraceLevel.parse(trace)
    if out is not None:
        protocol.check_declaration()
        check_kept(protocol.parameters())
    number = seeds.chosen(seed)
    injected = Faults.of(faults)
    settings = backends.Settings(
        backend,
        blocks,
        shards,
        address,
        level,
        digest,
        reporter_of(progress),
        injected,
        costs,
        crypto,
        threads,
        log=log,
    )
    if out is None or isinstance(out, Draft):
        return _run(protocol, population, number, settings, trace, out)
    run_directory.check_whole(population)
    folder = path_of("out", out)
    with claimed(folder, force=False), Draft(folder) as draft:
        done = _run(protocol, population, number, settings, trace, draft)
        done.save(out)
    return done


def _run(
    protocol: Protocol,
    population: Population,
    seed: int,
    settings: backends.Settings,
    trace: str,
    draft: Draft | None,
) -> Run:
    """Run; ``draft``: the directory that messages are written to, None to keep them in memory."""
    start = time.perf_counter()
    streams = draft is not None and settings.trace.keeps and settings.backend != "actors"
    if draft is not None:
        draft.announce(protocol, trace, population)
    if draft is not None and streams:
        target = draft.begin(protocol, trace, population, seeds.source(seed))
        settings = replace(settings, trace=replace(settings.trace, target=target))
    apart = settings.backend == "shards" and isinstance(population, PopulationInParts)
    if draft is not None and (apart or settings.backend == "local"):
        settings = replace(settings, outputs=OutputsFolder.begin(draft))
    finished, timings = backends.run(protocol, population, int(seed), settings)
    if isinstance(finished.outputs, StoredOutputs):
        finished.outputs.draft = draft
    unsent = protocol.messages().keys() - {kind for kind, _ in finished.totals.counts}
    counts = {(kind, 0): Count() for kind in unsent} | finished.totals.counts
    messages: Mapping[str, dict[str, Array]]
    if draft is not None and streams:
        messages = OnDemand(Stored(draft.end(counts, finished.totals.files)))
    else:
        messages = sorted_trace(protocol, finished.totals.trace, settings.trace)
    timings["total"] = time.perf_counter() - start
    return Run(
        protocol=f"{type(protocol).__module__}:{type(protocol).__name__}",
        parameters=protocol.parameters(),
        seed=int(seed),
        seed_source=seeds.source(seed),
        backend=settings.backend,
        trace=trace,
        digest=finished.totals.digest if settings.digest else None,
        counts=counts,
        outputs=finished.outputs,
        timings=timings,
        population=population,
        source=protocol,
        faults=settings.faults,
        faults_seen=dict(sorted(finished.totals.faults.items())),
        crypto=settings.crypto,
        faulty=faulty(settings.faults, finished.totals.dropped, population, int(seed)),
        users=population.users,
        compute=dict(sorted(finished.totals.compute.items(), key=lambda item: item[0][::-1])),
        work=dict(sorted(finished.totals.work.items())),
        most=dict(sorted(finished.totals.most.items())) if settings.costs else None,
        _trace=messages,
        _draft=draft,
        _threads=settings.threads_for(population.users),
    )
