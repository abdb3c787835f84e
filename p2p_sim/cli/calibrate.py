"""``p2p-sim calibrate``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from p2p_sim import catalogue
from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.options import (
    ASKED,
    HOW,
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
    Words,
    check_data,
    count,
    faults_of,
    ratio,
    text,
    wants_json,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.cli.users import Joined, synthetic, users_of_data
from p2p_sim.core.errors import InputError
from p2p_sim.core.population import Population, check_seed
from p2p_sim.report import terminal


@app.command(
    "calibrate",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim calibrate peer-to-peer --vary alpha --view learner --cluster-size 1000 --epsilon 1",
)
@dataclass(frozen=True)
class Calibrate(TableOptions):
    """Find the parameter at which a view is (ε, δ)-private, and say what every other view gets there."""

    words: Words = None
    vary: Annotated[str, text(ASKED, "The parameter to find, or cluster-size; default alpha.")] = "alpha"
    view: Annotated[str, text(ASKED, "Who looks, such as learner+3*user; default learner.")] = "learner"
    epsilon: Annotated[float | None, ratio(ASKED, "What the view may learn, in nats.")] = None
    delta: Delta = 1e-6
    channels: Channels = "plain"
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in the victim's cluster.")] = None
    data: Data = None
    label: Label = None
    positive: Positive = None
    cluster_column: ClusterColumn = None
    clusters: Clusters = None
    test: Test = None
    fault: Fault = None
    graph: Graph = None
    seed: Annotated[int, count(HOW, "Decides the test rows, k-means and the graph; default 0.")] = 0
    json: Json = False
    format: Format = "text"

    def work(self, _command: Command) -> int:
        """Solve and tell."""
        from p2p_sim.cli import parameters
        from p2p_sim.cli.progress import Progress

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.own(self.words or [], catalogue.everything())
        kind, named, values = parameters.given(words, offered, "calibrate")
        vary = self.vary.removeprefix("--").replace("-", "_")
        fixed = {p.name: p.default for p in named.values() if p.name != vary} | values
        self._check(kind, fixed)
        with Progress() as progress, terminal.stdout_kept():
            told = self._told(kind, vary, fixed, progress)
        told["defaults"] = [name for name in fixed if name not in values]
        sys.stdout.write(terminal.as_json(told) if as_json else _as_text(told))
        return 0

    def _told(self, kind: Any, vary: str, fixed: dict[str, Any], progress: Any) -> dict[str, Any]:
        from p2p_sim import privacy

        assert self.epsilon is not None
        people, graph = self._people(kind, vary, fixed, progress)
        size = None if graph is not None else self.cluster_size
        progress(f"solving for {vary}", 0, 0)
        found = privacy.calibrate(
            kind, vary=vary, view=self.view, cluster_size=size, population=people,
            epsilon=self.epsilon, delta=self.delta, channels=self.channels, faults=self.fault, **fixed,
        )  # fmt: skip
        progress("accounting for the other views", 0, 0)
        others = self._others(found, people, progress)
        return {
            "protocol": kind.command_name(), "fixed": fixed, "vary": vary, "value": found.value,
            "cluster_size": found.cluster_size, "clusters": _clusters(people), "view": self.view,
            "epsilon_target": self.epsilon, "delta": self.delta, "channels": self.channels,
            "faults": list(self.fault or ()), "graph": graph,
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

    def _people(
        self, kind: Any, vary: str, fixed: dict[str, Any], progress: Any
    ) -> Joined | tuple[None, None]:
        """Return the users of ``--data``, or of one cluster that a graph joins, and the numbers of the graph."""
        from p2p_sim.learning import experiment

        if self.data is None and self.graph is None:
            return None, None
        protocol = kind(**(fixed | {name: 0.25 for name in kind.__dataclass_fields__ if name == vary}))
        experiment.check(protocol, self.graph)
        if self.data is not None:
            return users_of_data(self, protocol, progress)
        if self.cluster_size is None:
            raise InputError("--graph joins users: give --cluster-size N, or --data NAME_OR_FILE")
        return synthetic(self, protocol, self.cluster_size, None, progress)

    def _others(self, found: Any, people: Population | None, progress: Any) -> dict[str, Any]:
        """Return the figures of the other views; with many clusters as a table of ``p2p-sim account`` has them."""
        from p2p_sim.privacy.calibrate import others
        from p2p_sim.report import privacy_table
        from p2p_sim.report.privacy_table import Question

        views = {view.key: view for view in others(found.protocol, self.view) if view.key in found.views}
        if people is None:
            told = {key: _figure(found.views[key], self.delta) for key in views}
        else:
            wrong = faults_of(self.fault, found.protocol)
            question = Question(found.protocol, self.delta, None, people, self.channels, faults=wrong)
            table = privacy_table.table_of(question, _none, None, progress)["views"]
            rows = {(row["name"], row["users"]): row for row in table}
            each = {key: rows[view.name, view.users] for key, view in views.items()}
            told = {
                key: row["exact"] or {"refused": row["refused"], "basis": "refused"}
                for key, row in each.items()
            }
        return {key: {"view": view.title} | told[key] for key, view in views.items()}


def _figure(profile: Any, delta: float) -> dict[str, Any]:
    from p2p_sim.report import figure_text

    refused = {"refused": profile.why, "basis": "refused"}
    return refused if profile.law is None else figure_text.figure(profile, delta)


def _none(*_: Any) -> list[Any]:
    return []


def _hidden(delta: float, size: int | None, people: Population | None) -> str:
    from p2p_sim.report import privacy_table

    largest = size if people is None else int(people.sizes.max())
    return "" if largest is None else privacy_table.little(delta, largest)


def _clusters(people: Population | None) -> dict[str, int] | None:
    if people is None:
        return None
    sizes = people.sizes
    return {"count": len(sizes), "smallest": int(sizes.min()), "largest": int(sizes.max())}


def _as_text(told: Mapping[str, Any]) -> str:
    from p2p_sim.report.figure_text import bracket_text

    fixed = (
        terminal.parameters({"parameters": told["fixed"], "defaults": told["defaults"]})
        if told["fixed"]
        else ""
    )
    size, many = f"; cluster of {told['cluster_size']:,}" if told["cluster_size"] else "", told["clusters"]
    if many:
        size = f"; each of {many['count']:,} clusters of {many['smallest']:,} to {many['largest']:,}"
    value = told["value"]
    exact = f"{int(value):,}" if told["vary"] == "cluster_size" else f"{value:.10g}"
    wrong = f"; faults: {', '.join(told['faults'])}" if told["faults"] else ""
    reached = told["achieved"]
    lines = [
        f"{told['protocol']}: {fixed or 'nothing fixed'}{size}{wrong}",
        f"{told['vary']} = {exact} keeps {told['view']} at ε <= {told['epsilon_target']:g}, δ = {told['delta']:g}",
        f"achieved ε {bracket_text(reached)} ({reached['basis']}), {told['slack']:.3g} below the target",
    ]
    rows = [
        [found["view"], "refused", found["refused"]]
        if "refused" in found
        else [found["view"], bracket_text(found), found["basis"]]
        for found in told["views"].values()
    ]
    head = ["What other views get", "ε (nats)", "basis"]
    remarks = [f"note: {told['hidden']}"] if told["hidden"] else []
    return "\n".join([*lines, "", terminal.table(head, rows), *remarks]) + "\n"
