"""``p2p-sim audit``: of a protocol or, with ``--run``, of a saved run."""

from __future__ import annotations

import shlex
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.check import quickly, warn_unchecked
from p2p_sim.cli.options import (
    EXECUTION,
    REQUEST,
    Address,
    Channels,
    Fault,
    Format,
    Graph,
    Json,
    Words,
    address_of,
    composition_of,
    count,
    faults_of,
    flag,
    option,
    ratio,
    text,
    texts,
    wants_json,
)
from p2p_sim.cli.saved_run import contradicts, program_of
from p2p_sim.core.errors import InputError
from p2p_sim.core.faults import Faults
from p2p_sim.core.sealing import MODELLED
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.cli.parameters import Chosen
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.privacy.auditing.own_attack import AttackStatistic
    from p2p_sim.run import Run
    from p2p_sim.rundir.run_record import RunRecord


_MANY_USERS = 10**10
"""Users of all worlds together; above this, a warning says that the audit takes long."""


def audit_run(command: Any, kind: str, at: float, progress: Any) -> tuple[dict[str, Any], Run]:
    """Audit the run ``command.run``; return the results and the run.  ``command``: the command with its options.

    Raises InputError for options that contradict the run, and for a file of audits that cannot be extended.
    """
    from p2p_sim.cli.parameters import Chosen
    from p2p_sim.privacy.auditing.worlds_of_run import world_of
    from p2p_sim.report.kept_file import AUDITS
    from p2p_sim.run import load
    from p2p_sim.rundir import code_versions

    progress(f"reading {command.run}", 0, 0)
    path = Path(command.run)
    run = load(path)
    AUDITS.check(path, run)
    program = program_of(command.words, command.run, run, "audit")
    _check(command, run)
    world = world_of(run, _views(command, program), command.cluster_size, protocol=program)
    other = code_versions.other_code(run, program)
    if other:
        warnings.warn(f"audited by other code than the run's: {'; '.join(other)}", stacklevel=2)
    users = 2 * command.trials * world.cluster_size
    if users > _MANY_USERS:
        warnings.warn(
            f"worlds of {world.cluster_size:,} users ({world.description}): {users:,} users in all, which takes long; "
            "fewer --trials are faster and give a weaker bound",
            stacklevel=2,
        )
    texts = None if world.faults is None else world.faults.texts()
    changed = replace(
        command, cluster_size=world.cluster_size, fault=texts, graph=world.graph, crypto=world.crypto
    )
    chosen = Chosen(world.protocol, tuple(run.notes.get("defaults", ())))
    found = changed.audit_views(chosen, kind, at, progress, world.public)
    again = command.repeat_command(world.protocol, {}, kind, at)
    found |= {"run": command.run, "world": world.description, "graph": _graph(run), "command": again}
    return found, run


def _check(command: Any, run: RunRecord) -> None:
    """Raise InputError for options that contradict the run's own settings."""
    faults = Faults.of(command.fault)
    if command.fault and faults != run.faults:
        own = "none" if run.faults is None else ", ".join(run.faults.texts())
        raise contradicts(f"--fault {', '.join(command.fault)}", command.run, own)
    for name, kept in {"graph": _graph(run) or "none", "crypto": run.crypto}.items():
        value = getattr(command, name)
        if value is not None and value != kept:
            raise contradicts(f"{option(name)} {value}", command.run, kept)


def _graph(run: RunRecord) -> str | None:
    """Return the source of a run's graph; None if it has none."""
    about = run.notes.get("graph")
    if about is not None:
        return str(about["source"])
    return None if run.population is None or run.population.graph is None else "given from Python"


def _pair(given: str | None) -> tuple[int, ...] | str | None:
    """Return two labels, as they are given after ``--pair``; anything else as it is, for the audit to check."""
    try:
        return given if given is None else tuple(int(part) for part in given.split(","))
    except ValueError:
        return given


def _views(command: Any, program: Protocol) -> list[str]:
    """Return the names of the requested views."""
    from p2p_sim.privacy.table_rows import rows

    if command.all_views:
        return [view.name for view in rows(program)]
    return command.view or ["learner"]


EXPECTED_TRIALS = 100
"""The default δ is this number divided by the trials: an event of probability δ is expected so many times."""

REPEATED_OPTIONS = (
    "cluster_size",
    "claim",
    "composition",
    "channels",
    "statistic",
    "pair",
    "graph",
    "crypto",
    "backend",
    "shards",
    "address",
)
"""Options that the command to repeat an audit names if they are not the default."""


@app.command(
    "audit",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim audit peer-to-peer --alpha 0.1 --view learner --cluster-size 100 --delta 1e-3",
)
@dataclass(frozen=True)
class AuditCommand:
    """Run many small worlds and measure what a view learns about one label.  Exit status 1: a claim is violated."""

    words: Words = None
    run: Annotated[
        str | None,
        text(REQUEST, "Audit this run directory, and save the result in it.", "RUN"),
    ] = None
    view: Annotated[
        list[str] | None, texts(REQUEST, "The view to audit; default learner.  May be repeated.")
    ] = None
    all_views: Annotated[
        bool, flag(REQUEST, "All views of account whose users follow the protocol.", "--all-views")
    ] = False
    cluster_size: Annotated[
        int | None, count(REQUEST, "Users of one world, which is the victim's cluster.")
    ] = None
    delta: Annotated[
        float | None,
        ratio(REQUEST, f"Measure ε at this δ, in [0, 1); default {EXPECTED_TRIALS} / trials."),
    ] = None
    at_epsilon: Annotated[float | None, ratio(REQUEST, "Measure δ at this ε (in nats) instead.")] = None
    claim: Annotated[float | None, ratio(REQUEST, "Check a claim of your own: ε at δ, or δ at ε.")] = None
    composition: Annotated[str, text(REQUEST, "Labels of the other users; default worst.", "worst|ONES")] = (
        "worst"
    )
    pair: Annotated[
        str | None,
        text(
            REQUEST,
            "The labels of the victim that are compared; by default all pairs, or of many those that show most in a "
            "pilot.",
            "A,B|all",
        ),
    ] = None
    channels: Channels = "plain"
    trials: Annotated[int, count(EXECUTION, "Worlds for each label of the victim; default 100000.")] = 100_000
    confidence: Annotated[
        float, ratio(EXECUTION, "Confidence of all lower bounds together; default 0.95.")
    ] = 0.95
    statistic: Annotated[
        str,
        text(
            EXECUTION,
            "The test statistic; default auto.  An attack of your own is a function in a module.",
            "auto|exact|classifier|MODULE:FUNCTION",
        ),
    ] = "auto"
    fault: Fault = None
    graph: Graph = None
    seed: Annotated[int, count(EXECUTION, "Seed of all draws; default 0.")] = 0
    backend: Annotated[
        str, text(EXECUTION, "Where the worlds run; default local.", "local|shards|actors")
    ] = "local"
    shards: Annotated[int | None, count(EXECUTION, "Number of Ray actors.")] = None
    address: Address = None
    crypto: Annotated[
        str | None,
        text(
            EXECUTION,
            "Whether cryptography is only modelled, or carried out; default modelled.",
            "modelled|real",
        ),
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Audit and print; returns 1 if a claim is violated or the worlds do not follow their law."""
        from p2p_sim.learning import user_graph
        from p2p_sim.progress import Progress
        from p2p_sim.report import audit_table
        from p2p_sim.report.kept_file import AUDITS

        as_json, run = wants_json(self.json, self.format), None
        kind, at = self.point()
        with Progress() as progress, terminal.stdout_to_stderr():
            if self.run is None:
                chosen = self._chosen()
                user_graph.check(chosen.protocol, self.graph)
                unchecked = quickly(chosen.protocol)
                document = self.audit_views(chosen, kind, at, progress)
                warn_unchecked(unchecked)
                document["command"] = self.repeat_command(chosen.protocol, document["parameters"], kind, at)
            else:
                document, run = audit_run(self, kind, at, progress)
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(audit_table.as_text(document))
        )
        if self.run is not None and run is not None:
            place = AUDITS.add(Path(self.run), run, document)
            sys.stdout.write("" if as_json else f"Kept in {terminal.visible(str(place))}\n")
        return int(any(row.get("failed") for row in document["views"]))

    def _chosen(self) -> Chosen:
        from p2p_sim.cli import parameters

        words, offered = parameters.resolve(self.words)
        try:
            return parameters.choose(words, offered, "audit")
        except InputError as error:
            if "unknown option '--epsilon'" not in str(error):
                raise
            raise InputError(
                "--epsilon is no parameter of this protocol; to measure δ at an ε: --at-epsilon"
            ) from error

    def audit_views(
        self, chosen: Chosen, kind: str, at: float, progress: Any, public: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Audit the views of a protocol and return a JSON document; ``public``: columns of a world's users."""
        from p2p_sim.privacy.auditing import arguments, pairs
        from p2p_sim.report import audit_table

        protocol = chosen.protocol
        arguments.check(self.trials, self.confidence, self.seed, self._statistic(), self.channels)
        pairs.given_pair(_pair(self.pair), protocol.label_count())
        views, misfits = self._views(protocol, at if kind == "delta" else 0.0)
        shared = 1 - (1 - self.confidence) / sum(not why for why in misfits)
        rows = []
        for view, why in zip(views, misfits, strict=True):
            start = time.perf_counter()
            found = None if why else self._audit(protocol, view, {kind: at}, shared, progress, public)
            rows.append(audit_table.row(view, found, why, time.perf_counter() - start))
        values = {name: value for name, value in protocol.parameters().items() if value is not None}
        return {
            "protocol": protocol.command_name(), "parameters": values, "defaults": list(chosen.defaults),
            "cluster_size": self.cluster_size or 1, "kind": kind, "at": at, "trials": self.trials,
            "confidence": self.confidence, "confidence_each": shared, "seed": self.seed, "backend": self.backend,
            "channels": self.channels, "composition": self.composition, "faults": list(self.fault or ()),
            "pair": self.pair,
            "graph": self.graph, "crypto": self.crypto or MODELLED, "statistic": self.statistic,
            "neighbours": "one label, replaced; epsilon in nats", "views": rows, "verdict": audit_table.verdict(rows),
        }  # fmt: skip

    def _views(self, protocol: Protocol, delta: float) -> tuple[list[Any], list[str]]:
        """Return the views, and for each why it is not audited (empty if it is); raises InputError."""
        from p2p_sim.learning import user_clusters
        from p2p_sim.privacy.auditing.arguments import coalition_of, why_unaudited
        from p2p_sim.report import audit_table
        from p2p_sim.report.privacy_table import AccountRequest

        if self.all_views and self.view:
            raise InputError("--all-views and --view are both given: give one of them")
        if self.cluster_size is None and (self.graph is not None or user_clusters.matter(protocol)):
            raise InputError("the size of a world is missing: give --cluster-size N, its number of users")
        if self.cluster_size is not None and self.cluster_size < 1:
            raise InputError(f"cluster_size = {self.cluster_size}: must be at least 1")
        only = () if self.all_views else tuple(self.view or ["learner"])
        request = AccountRequest(
            protocol, delta, self.cluster_size or 1, None, self.channels,
            only=only, composition=composition_of(self.composition, "worst"),
            faults=faults_of(self.fault, protocol),
        )  # fmt: skip
        views = [view for view in request.views() if self.all_views or view.users == "curious"]
        misfits = [
            request.why_impossible(view) or ("" if view.users == "curious" else audit_table.DEVIATING)
            for view in views
        ]
        for i, view in enumerate(views):
            if not misfits[i]:  # all are checked before the first is audited
                coalition = coalition_of(view.name, protocol, self.cluster_size or 1)
                misfits[i] = why_unaudited(protocol, coalition, self.channels)
        if all(misfits):
            raise InputError(f"no view can be audited: {views[0].title}: {misfits[0]}")
        return views, misfits

    def _audit(
        self, protocol: Protocol, view: Any, at: dict[str, float], confidence: float, progress: Any,
        public: Mapping[str, Any] | None,
    ) -> Any:  # fmt: skip
        from p2p_sim import privacy

        def report(label: str, done: int, total: int) -> None:
            progress(f"{view.title}: {label}", done, total)

        report("what is known exactly", 0, 0)
        return privacy.audit(
            protocol, view.name, cluster_size=self.cluster_size, delta=at.get("delta"), epsilon=at.get("epsilon"),
            trials=self.trials, confidence=confidence, seed=self.seed, backend=self.backend, shards=self.shards,
            address=address_of(self), statistic=self._statistic(),
            composition=composition_of(self.composition, "worst"),
            channels=self.channels, claims=None if self.claim is None else {"--claim": self.claim}, progress=report,
            faults=self.fault, graph=self.graph, crypto=self.crypto, public=public or None,
            pair=_pair(self.pair),
        )  # fmt: skip

    def _statistic(self) -> str | AttackStatistic:
        """Return the statistic: a name, or the function that is named; raises InputError if it cannot be imported."""
        from p2p_sim.privacy.auditing import own_attack

        if ":" not in self.statistic:
            return self.statistic
        with terminal.stdout_to_stderr():  # modules that are imported may print
            return own_attack.imported(self.statistic)

    def point(self) -> tuple[str, float]:
        """Return which of delta and epsilon is given, and its value."""
        if self.delta is not None and self.at_epsilon is not None:
            raise InputError("--delta and --at-epsilon are both given: give one, the other is measured")
        if self.at_epsilon is not None:
            return "epsilon", self.at_epsilon
        return "delta", min(0.1, EXPECTED_TRIALS / max(1, self.trials)) if self.delta is None else self.delta

    def repeat_command(self, protocol: Protocol, values: dict[str, Any], kind: str, at: float) -> str:
        """Return the command that repeats the audit, with the same figures."""
        from p2p_sim.cli import parameters

        own = parameters.custom_name(self.words or [])
        words = ["p2p-sim", "audit"]
        if self.run is None:
            words += [own or protocol.command_name()]
            for name in (each.name for each in parameters.parameters(type(protocol)).values()):
                words += [option(name), str(values[name])] if name in values else []
        else:
            words += [*([own] if own else []), "--run", self.run]
        for view in self.view or ([] if self.all_views else ["learner"]):
            words += ["--view", view]
        words += ["--all-views"] if self.all_views else []
        words += ["--delta" if kind == "delta" else "--at-epsilon", f"{at!r}"]
        for fault in self.fault or ():
            words += ["--fault", fault]
        for name in ("trials", "confidence", "seed"):
            words += [option(name), str(getattr(self, name))]
        for name in REPEATED_OPTIONS:
            default = MODELLED if name == "crypto" else type(self).__dataclass_fields__[name].default
            if getattr(self, name) not in (None, default):
                words += [option(name), str(getattr(self, name))]
        return shlex.join(words)
