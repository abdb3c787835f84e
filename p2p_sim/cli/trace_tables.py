"""``p2p-sim trace show``, ``stats`` and ``cone``: messages of a run as tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import (
    OUTPUT,
    SELECTION,
    Format,
    Json,
    Round,
    RunArgument,
    Shown,
    check_format,
    check_least,
    count,
    text,
    viewer,
    wants_json,
)
from p2p_sim.cli.protocol_option import Program, with_programs
from p2p_sim.coalition import CHANNELS
from p2p_sim.core.errors import InputError, near
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.rundir.run_record import RunRecord
    from p2p_sim.trace.slices import Array, Slice


trace = typer.Typer(rich_markup_mode="rich", epilog="Example: p2p-sim trace show runs/latest --user 17")
app.add_typer(trace, name="trace")


@trace.callback(invoke_without_command=True)
def _no_verb(ctx: typer.Context) -> None:
    """Look at the messages of a run."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


_FORMATS = ("table", "json", "csv", "parquet")


@trace.command(
    "show",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim trace show runs/latest --as learner+user:17 --kind report",
)
@dataclass(frozen=True)
class ShowCommand:
    """Show messages of a run: all of them, or those that a view sees, with its own inputs and draws.

    Messages that the run did not keep are recomputed from its seed.
    """

    run: RunArgument
    who: Annotated[
        str | None,
        viewer("Who looks: learner, user:17, wire, learner+3*user, parts joined by +; default all is shown."),
    ] = None
    kind: Annotated[str | None, text(SELECTION, "Only messages of one kind.")] = None
    user: Annotated[int | None, count(SELECTION, "Only what one user sent, received, held and drew.")] = None
    cluster: Annotated[
        int | None,
        count(SELECTION, "Only messages, inputs and draws of the users of one cluster."),
    ] = None
    round: Round = None
    limit: Annotated[int, count(SELECTION, "Most rows of each table; default 50.")] = 50
    offset: Annotated[int, count(SELECTION, "How many rows of each table come before; default 0.")] = 0
    channels: Shown = "plain"
    json: Json = False
    format: Annotated[str, text(OUTPUT, "What stdout holds; default table.", "table|json|csv|parquet")] = (
        "table"
    )
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Look and tell."""
        from p2p_sim.progress import Progress
        from p2p_sim.report import message_text

        self._check()
        form = "json" if self.json else self.format
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("looking", 0, 0)
            part, document = self._document()
            table = message_text.parquet(part) if form == "parquet" else b""
        if form == "parquet":
            sys.stdout.buffer.write(table)
        else:
            pieces = message_text.FORMATS[form](document)
            sys.stdout.writelines(map(terminal.fitted, pieces) if form == "table" else pieces)
        if form in ("csv", "parquet"):
            for line in message_text.cuts(document):
                print(f"note: {terminal.visible(line)}", file=sys.stderr)
        return 0

    def _check(self) -> None:
        check_format(self.format, _FORMATS)
        if self.channels not in CHANNELS:
            raise InputError(
                f"--channels {self.channels!r}: allowed are {', '.join(CHANNELS)}{near(self.channels, CHANNELS)}"
            )
        if self.user is not None and self.cluster is not None:
            raise InputError("--user and --cluster are both given: leave one of them out")
        check_least("limit", self.limit, 1)
        check_least("offset", self.offset, 0)
        if self.format == "parquet" and not self.json and sys.stdout.isatty():
            raise InputError("--format parquet is not for a terminal: redirect it, > messages.parquet")

    def _document(self) -> tuple[Slice, dict[str, Any]]:
        from p2p_sim.render import sequence
        from p2p_sim.report import message_text
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import LazyRun
        from p2p_sim.trace import neighbourhood, query

        lazy_run = LazyRun(Path(self.run))
        run = lazy_run if self.who is None or lazy_run.cut_off else load(Path(self.run))
        viewer = None if self.who is None else sequence.viewer_of(run, self.who)
        filters: dict[str, Any] = {
            "kind": self.kind, "round": self.round, "as_": viewer, "channels": self.channels,
        }  # fmt: skip
        users: Sequence[int] | Array | None = None if self.user is None else [self.user]
        if self.cluster is None:
            part = query.messages(run, user=self.user, limit=self.limit, offset=self.offset, **filters)
        else:
            users = neighbourhood.cluster(run, self.cluster)
            part = neighbourhood.page(neighbourhood.around(run, users, **filters), self.limit, self.offset)
        document: dict[str, Any] = {
            "run": self.run, "protocol": run.protocol.partition(":")[2], "view": self.who,
            "coalition": None if viewer is None else str(viewer), "channels": self.channels,
            "notes": list(part.notes), "messages": message_text.tables(part, self.offset),
        }  # fmt: skip
        if self.who is not None and viewer is not None and self.kind is None and self.round is None:
            document |= self._own(run, self.who, users) if viewer.users or viewer.servers else {}
        return part, document

    def _own(self, run: RunRecord, who: str, users: Sequence[int] | Array | None) -> dict[str, Any]:
        """Return the inputs and draws of the view's users who are among ``users``, or why they are not known."""
        from p2p_sim.report import message_text
        from p2p_sim.run import Run
        from p2p_sim.rundir.run_json import in_python

        if not isinstance(run, Run):
            return {"unknown": "the run was cut off, and nothing but messages is left of it"}
        if run.source is None:
            return {"unknown": in_python(run, self.run, f"view({who!r}")}
        try:
            view = run.view(who, channels=self.channels)
            inputs = message_text.of_users(view.inputs, "user", users)
            return {
                "inputs": message_text.limited(inputs, self.limit, self.offset),
                "draws": message_text.draws(view.draws, users, self.limit, self.offset),
            }
        except InputError as error:
            return {"unknown": str(error)}


def _looked(place: str, doing: str, document: Callable[[RunRecord], dict[str, Any]]) -> dict[str, Any]:
    """Return a document on a run, with its name in front; ``doing``: what progress says meanwhile."""
    from p2p_sim.progress import Progress
    from p2p_sim.rundir.run_directory import LazyRun

    with Progress() as progress, terminal.stdout_to_stderr():
        progress(doing, 0, 0)
        run = LazyRun(Path(place))
        return {"run": place, "protocol": run.protocol.partition(":")[2], **document(run)}


@trace.command("stats", cls=UniqueOptionsCommand, epilog="Example: p2p-sim trace stats runs/latest --json")
@dataclass(frozen=True)
class StatsCommand:
    """Count messages and bytes by round and role, and how many each user sends and receives."""

    run: RunArgument
    json: Json = False
    format: Format = "text"
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Count and tell."""
        from p2p_sim.report import message_text
        from p2p_sim.trace.stats import stats as statistics

        as_json = wants_json(self.json, self.format)
        document = _looked(self.run, "counting", lambda run: message_text.stats_document(statistics(run)))
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(message_text.stats_text(document))
        )
        return 0


@trace.command(
    "cone",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim trace cone runs/latest --message report:3:17:0:0",
)
@dataclass(frozen=True)
class ConeCommand:
    """Show the messages that may have influenced a message, and those that it may have influenced.

    Also prints what its recipient cannot see of its origin, and among how many users it hides.
    """

    run: RunArgument
    message: Annotated[
        str | None,
        text(SELECTION, "Its id, as trace show --json lists it.", "KIND:ROUND:SENDER:RECIPIENT:SEQ"),
    ] = None
    limit: Annotated[int, count(SELECTION, "At most so many rows in each table; default 10.")] = 10
    json: Json = False
    format: Format = "text"
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Follow and tell."""
        from p2p_sim.report import message_text
        from p2p_sim.trace.causality import cone as cone_of

        as_json = wants_json(self.json, self.format)
        if self.message is None:
            raise InputError("--message is missing: give the id of one, such as report:3:17:0:0")
        check_least("limit", self.limit, 1)
        message, limit = self.message, self.limit
        document = _looked(
            self.run,
            "following",
            lambda run: message_text.cone_document(cone_of(run, message, limit=limit)),
        )
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(message_text.cone_text(document))
        )
        return 0
