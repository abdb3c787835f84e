"""``p2p-sim account``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.options import (
    EXECUTION,
    OUTPUT,
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
    Users,
    Words,
    check_data,
    composition_of,
    count,
    faults_of,
    text,
    texts,
    times_of,
    wants_json,
)
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.cli.users import synthetic, users_of_data
from p2p_sim.coalition import CHANNELS
from p2p_sim.core.errors import InputError, near
from p2p_sim.core.population import check_seed
from p2p_sim.report import terminal
from p2p_sim.report.delta import DELTA, check_delta

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol
    from p2p_sim.learning.users_of_run import Joined


@app.command(
    "account",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim account peer-to-peer --alpha 0.1 --theta 0.5 --cluster-size 1000 --delta 1e-6",
)
@dataclass(frozen=True)
class AccountCommand(TableOptions):
    """Print what each party learns about one label: the exact ε at δ, and the theorems.  Nothing is run."""

    words: Words = None
    view: Annotated[
        list[str] | None,
        texts(REQUEST, "Show only this view, such as learner+3*user.  May be repeated."),
    ] = None
    delta: Delta = DELTA
    composition: Annotated[
        str, text(REQUEST, "Labels of the other users; default worst.", "worst|ONES|population")
    ] = "worst"
    channels: Channels = "plain"
    times: Times = None
    group: Annotated[
        int, count(REQUEST, "How many labels change together, as in a household; default 1.")
    ] = 1
    cluster_size: Annotated[int | None, count(SYNTHETIC, "Users in the victim's cluster.")] = None
    users: Users = None
    data: Data = None
    label: Label = None
    positive: Positive = None
    cluster_column: ClusterColumn = None
    clusters: Clusters = None
    test: Test = None
    fault: Fault = None
    graph: Graph = None
    seed: Annotated[int, count(EXECUTION, "Seed of the test rows, k-means and the graph; default 0.")] = 0
    plot: Annotated[
        str | None,
        text(
            OUTPUT, "Draw δ(ε) of all views into a file, or write it as a table.", "FILE.svg|png|csv|parquet"
        ),
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Compute the table, draw the curves, print."""
        from p2p_sim.cli import parameters
        from p2p_sim.learning import user_graph
        from p2p_sim.progress import Progress

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.resolve(self.words)
        if self.times is not None and parameters.takes(words, offered, "--times"):  # not the verb's option
            words = [*(self.words or []), "--times", str(self.times)]
            return replace(self, words=words, times=None).execute(_command)
        chosen = parameters.choose(words, offered, "account")
        self._check()
        user_graph.check(chosen.protocol, self.graph)
        with Progress() as progress, terminal.stdout_to_stderr():
            document = self._document(chosen, progress)
        from p2p_sim.report import privacy_table

        head = f"{document['protocol']}: {terminal.parameters(document)}"
        shown = "\n\n".join([head, privacy_table.as_text(document), *privacy_table.drawn(document)]) + "\n"
        sys.stdout.write(terminal.as_json(document) if as_json else terminal.fitted(shown))
        return 0

    def _document(self, chosen: Any, progress: Any) -> dict[str, Any]:
        from p2p_sim.privacy import accountant
        from p2p_sim.report import curves, privacy_table
        from p2p_sim.report.privacy_table import AccountRequest

        protocol = chosen.protocol
        people, graph = self._population(protocol, progress)
        size = self.cluster_size if people is None else None
        request = AccountRequest(
            protocol, self.delta, size, people, self.channels,
            only=tuple(self.view or ()), composition=composition_of(self.composition, "worst", "population"),
            faults=faults_of(self.fault, protocol), times=times_of(self.times), group=self.group,
        )  # fmt: skip
        table = privacy_table.table_of(request, accountant.of, accountant.local_epsilon(protocol), progress)
        values = {name: value for name, value in protocol.parameters().items() if value is not None}
        head = {"protocol": protocol.command_name(), "parameters": values, "defaults": list(chosen.defaults)}
        document = head | table | {"times": times_of(self.times), "plot": self.plot, "graph": graph}
        if self.plot is not None:
            title = privacy_table.title(document)
            curves.curves(privacy_table.profiles(request, table), title, self.plot, self.delta, progress)
        return document

    def _population(self, protocol: Protocol, progress: Any) -> Joined | tuple[None, None]:
        """Return the users (None if the cluster size is enough) and the figures of their graph."""
        from p2p_sim.learning import user_clusters

        if self.users is not None:
            return synthetic(self, protocol, self.users, self.cluster_size, progress)
        if self.data is None:
            if self.cluster_size is None and (self.graph is not None or user_clusters.matter(protocol)):
                raise InputError(
                    "there are no users to account for: give --cluster-size N, or --data NAME_OR_FILE"
                )
            one = self.cluster_size if self.graph is not None else None  # a cluster, and its graph
            return (None, None) if one is None else synthetic(self, protocol, one, None, progress)
        return users_of_data(self, protocol, progress)

    def _check(self) -> None:
        from p2p_sim.privacy.composition.grouped import check_group
        from p2p_sim.report import curves

        check_delta(self.delta)
        check_group(self.group)
        if self.channels not in CHANNELS:
            raise InputError(
                f"channels = {self.channels!r}: must be {' or '.join(CHANNELS)}{near(self.channels, CHANNELS)}"
            )
        if self.cluster_size is not None and self.cluster_size < 1:
            raise InputError(f"cluster_size = {self.cluster_size}: must be at least 1")
        check_seed(self.seed)
        if self.data is not None and (self.users is not None or self.cluster_size is not None):
            raise InputError("--data has clusters of its own: leave --users and --cluster-size out")
        check_data(self)
        composition_of(self.composition, "worst", "population")
        if self.plot is not None:
            curves.kind_of(self.plot)
