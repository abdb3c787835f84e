"""``p2p-sim calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.options import (
    EXECUTION,
    REQUEST,
    SYNTHETIC,
    Channels,
    ClusterColumn,
    Clusters,
    Data,
    Delta,
    Fault,
    Format,
    Graph,
    Json,
    Label,
    Positive,
    Test,
    Times,
    Words,
    check_data,
    comma_list,
    count,
    faults_of,
    number,
    option,
    ratio,
    text,
    times_of,
    wants_json,
    whole,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.cli.users import synthetic, users_of_data
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population, check_seed
from p2p_sim.report import terminal
from p2p_sim.report.delta import DELTA, delta_warning

if TYPE_CHECKING:
    from p2p_sim.learning.users_of_run import Joined


@app.command(
    "calibrate",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim calibrate peer-to-peer --vary alpha --view learner --cluster-size 1000 --epsilon 1",
)
@dataclass(frozen=True)
class CalibrateCommand(TableOptions):
    """Find the parameter at which a view is (ε, δ)-private, and print what every other view learns there."""

    words: Words = None
    vary: Annotated[str, text(REQUEST, "The parameter to find, or cluster-size; default alpha.")] = "alpha"
    between: Annotated[
        str | None,
        text(
            REQUEST,
            "Where to look for one of another name: its most private value, its most useful one.",
            "A,B",
        ),
    ] = None
    view: Annotated[str, text(REQUEST, "Who looks, such as learner+3*user; default learner.")] = "learner"
    epsilon: Annotated[float | None, ratio(REQUEST, "What the view may learn, in nats.")] = None
    delta: Delta = DELTA
    channels: Channels = "plain"
    times: Times = None
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in the victim's cluster.")] = None
    data: Data = None
    label: Label = None
    positive: Positive = None
    cluster_column: ClusterColumn = None
    clusters: Clusters = None
    test: Test = None
    fault: Fault = None
    graph: Graph = None
    seed: Annotated[int, count(EXECUTION, "Seed of the test rows, k-means and the graph; default 0.")] = 0
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Solve and print."""
        from p2p_sim.cli import parameters
        from p2p_sim.progress import Progress

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.resolve(self.words)
        if self.times is not None and parameters.takes(words, offered, "--times"):  # not the verb's option
            words = [*(self.words or []), "--times", str(self.times)]
            return replace(self, words=words, times=None).execute(_command)
        kind, named, values = parameters.parse(words, offered, "calibrate")
        vary = self.vary.removeprefix("--").replace("-", "_")
        fixed = parameters.complete(kind, named, values, but=vary)
        ends = self._between(named, vary)
        self._check(kind, fixed)
        with Progress() as progress, terminal.stdout_to_stderr():
            document = self._document(kind, vary, fixed, ends, progress)
        document["defaults"] = [name for name in fixed if name not in values]
        sys.stdout.write(terminal.as_json(document) if as_json else terminal.fitted(_as_text(document)))
        return 0

    def _document(
        self, kind: Any, vary: str, fixed: dict[str, Any], ends: tuple[float, float] | None, progress: Any
    ) -> dict[str, Any]:
        from p2p_sim import privacy

        assert self.epsilon is not None
        people, graph = self._people(kind, fixed | {vary: 0.25 if ends is None else ends[0]}, progress)
        size = None if graph is not None else self.cluster_size
        progress(f"solving for {vary}", 0, 0)
        found = privacy.calibrate(
            kind, vary=vary, view=self.view, cluster_size=size, population=people,
            epsilon=self.epsilon, delta=self.delta, channels=self.channels, faults=self.fault,
            between=ends, progress=progress, **({"times": self.times} | fixed),
        )  # fmt: skip
        progress("accounting for the other views", 0, 0)
        others = self._others(found, people, progress)
        return {
            "protocol": kind.command_name(), "fixed": fixed, "vary": vary, "value": found.value,
            "cluster_size": found.cluster_size, "clusters": _clusters(people), "view": self.view,
            "epsilon_target": self.epsilon, "delta": self.delta, "channels": self.channels,
            "times": times_of(self.times), "faults": list(self.fault or ()), "graph": graph,
            "achieved": dict(zip(("lower", "epsilon", "upper"), found.achieved, strict=True))
            | {"basis": found.profile.basis},
            "slack": found.slack, "views": others, "hidden": _hidden(self.delta, found.cluster_size, people),
        }  # fmt: skip

    def _check(self, kind: Any, fixed: dict[str, Any]) -> None:
        if self.epsilon is None:
            raise InputError("--epsilon is missing: give the target, in nats")
        if "epsilon" in fixed:
            raise InputError(
                f"{kind.command_name()}: here --epsilon is the target; solve with --vary epsilon"
            )
        if self.data is not None and self.cluster_size is not None:
            raise InputError("--data has clusters of its own: leave --cluster-size out")
        check_seed(self.seed)
        check_data(self)

    def _between(self, named: Mapping[str, Any], vary: str) -> tuple[float, float] | None:
        """Read ``--between``, as whole numbers for a parameter that is one; raises InputError."""
        if self.between is None:
            return None
        found = named.get(option(vary))
        read = whole if found is not None and found.kind is int else number
        try:
            private, useful = (read(part) for part in comma_list(self.between))
        except (ValueError, OverflowError):
            kind = "whole numbers" if read is whole else "numbers"
            raise InputError(
                f"--between {self.between!r}: give two {kind}, the most private value first, such as 0.5,0.001"
            ) from None
        return private, useful

    def _people(self, kind: Any, values: dict[str, Any], progress: Any) -> Joined | tuple[None, None]:
        """Return the users of ``--data``, or of one cluster that a graph joins, and the numbers of the graph."""
        from p2p_sim.learning import user_graph

        if self.data is None and self.graph is None:
            return None, None
        protocol = kind(
            **{name: value for name, value in values.items() if name in kind.__dataclass_fields__}
        )
        user_graph.check(protocol, self.graph)
        if self.data is not None:
            return users_of_data(self, protocol, progress)
        if self.cluster_size is None:
            raise InputError("--graph joins users: give --cluster-size N, or --data NAME_OR_FILE")
        return synthetic(self, protocol, self.cluster_size, None, progress)

    def _others(self, found: Any, people: Population | None, progress: Any) -> dict[str, Any]:
        """Return the figures of the other views; with many clusters, as in the table of ``p2p-sim account``."""
        from p2p_sim.privacy.calibrate import others
        from p2p_sim.report import privacy_table
        from p2p_sim.report.privacy_table import AccountRequest

        views = {view.key: view for view in others(found.protocol, self.view) if view.key in found.views}
        if people is None:
            figures = {key: _figure(found.views[key], self.delta) for key in views}
        else:
            wrong = faults_of(self.fault, found.protocol)
            request = AccountRequest(
                found.protocol,
                self.delta,
                None,
                people,
                self.channels,
                faults=wrong,
                times=times_of(self.times),
            )
            table = privacy_table.table_of(request, _none, None, progress)["views"]
            rows = {(row["name"], row["users"]): row for row in table}
            each = {key: rows[view.name, view.users] for key, view in views.items()}
            figures = {
                key: row["exact"] or {"refused": row["refused"], "basis": "refused"}
                for key, row in each.items()
            }
        return {key: {"view": view.title} | figures[key] for key, view in views.items()}


def _figure(profile: Any, delta: float) -> dict[str, Any]:
    from p2p_sim.report import figure_text

    refused = {"refused": profile.why, "basis": "refused"}
    return refused if profile.law is None else figure_text.figure(profile, delta)


def _none(*_: Any) -> list[Any]:
    return []


def _hidden(delta: float, size: int | None, people: Population | None) -> str:
    largest = size if people is None else int(people.sizes.max())
    return "" if largest is None else delta_warning(delta, largest)


def _clusters(people: Population | None) -> dict[str, int] | None:
    if people is None:
        return None
    sizes = people.sizes
    return {"count": len(sizes), "smallest": int(sizes.min()), "largest": int(sizes.max())}


def _as_text(document: Mapping[str, Any]) -> str:
    from p2p_sim.report.figure_text import bracket_text

    fixed = (
        terminal.parameters({"parameters": document["fixed"], "defaults": document["defaults"]})
        if document["fixed"]
        else ""
    )
    size, many = (
        f"; cluster of {document['cluster_size']:,}" if document["cluster_size"] else "",
        document["clusters"],
    )
    if many:
        size = f"; each of {many['count']:,} clusters of {many['smallest']:,} to {many['largest']:,}"
    value = document["value"]
    exact = f"{int(value):,}" if document["vary"] == "cluster_size" else f"{value:.10g}"
    wrong = f"; faults: {', '.join(document['faults'])}" if document["faults"] else ""
    reached = document["achieved"]
    many = (
        f"; {document['times']:,} runs on the same labels, fresh coins, same clusters"
        if document["times"] > 1
        else ""
    )
    lines = [
        f"{document['protocol']}: {fixed or 'nothing fixed'}{size}{wrong}{many}",
        f"{document['vary']} = {exact} keeps {document['view']} at ε <= {document['epsilon_target']:g}, "
        f"δ = {document['delta']:g}",
        f"achieved ε {bracket_text(reached)} ({reached['basis']}), {document['slack']:.3g} below the target",
    ]
    rows = [
        [found["view"], "refused", found["refused"]]
        if "refused" in found
        else [found["view"], bracket_text(found), found["basis"]]
        for found in document["views"].values()
    ]
    head = ["What other views get", "ε (nats)", "basis"]
    remarks = [f"note: {document['hidden']}"] if document["hidden"] else []
    return "\n".join([*lines, "", terminal.table(head, rows), *remarks]) + "\n"
