"""``p2p-sim trace show``, ``stats`` and ``cone``: messages of a run as tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.cli.app import Command, OnceCommand, app
from p2p_sim.cli.options import KEPT, Format, Json, count, text, wants_json
from p2p_sim.cli.programs import Program, with_programs
from p2p_sim.coalition import CHANNELS
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.rundir.run_record import RunRecord


trace = typer.Typer(rich_markup_mode="rich", epilog="Example: p2p-sim trace show runs/latest --user 17")
app.add_typer(trace, name="trace")


@trace.callback(invoke_without_command=True)
def _no_verb(ctx: typer.Context) -> None:
    """Look at the messages of a run."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


LOOK = "What is shown"
_FORMATS = ("table", "json", "csv", "parquet")

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
Round = Annotated[int | None, count(LOOK, "Only messages of one round.")]
Channels = Annotated[str, text(LOOK, "What the wire reads; default plain.", "plain|encrypted")]


@trace.command(
    "show",
    cls=OnceCommand,
    epilog="Example: p2p-sim trace show runs/latest --as learner+user:17 --kind report",
)
@dataclass(frozen=True)
class Show:
    """Show messages of a run: all of them, or what somebody saw of it, with her own inputs and draws.

    What the run did not keep is recomputed from its seed.
    """

    run: RunArgument
    who: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="VIEW", rich_help_panel=LOOK, show_default=False,
            help="Who looks: learner, user:17, wire, learner+3*user, parts joined by +; default all is shown.",
        ),
    ] = None  # fmt: skip
    kind: Annotated[str | None, text(LOOK, "Only messages of one kind.")] = None
    user: Annotated[int | None, count(LOOK, "Only what one user sent, received, held and drew.")] = None
    cluster: Annotated[
        int | None, count(LOOK, "Only what the users of one cluster sent, received, held and drew.")
    ] = None
    round: Round = None
    limit: Annotated[int, count(LOOK, "Most rows of each table; default 50.")] = 50
    offset: Annotated[int, count(LOOK, "How many rows of each table come before; default 0.")] = 0
    channels: Channels = "plain"
    json: Json = False
    format: Annotated[str, text(KEPT, "What stdout holds; default table.", "table|json|csv|parquet")] = (
        "table"
    )
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Look and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.report import message_text

        self._check()
        form = "json" if self.json else self.format
        with Progress() as progress, terminal.stdout_kept():
            progress("looking", 0, 0)
            part, told = self._told()
            table = message_text.parquet(part) if form == "parquet" else b""
        if form == "parquet":
            sys.stdout.buffer.write(table)
        else:
            sys.stdout.write(message_text.FORMATS[form](told))
        if form in ("csv", "parquet"):
            for line in message_text.cuts(told):
                print(f"note: {terminal.visible(line)}", file=sys.stderr)
        return 0

    def _check(self) -> None:
        if self.format not in _FORMATS:
            raise InputError(f"--format {self.format!r}: allowed are {', '.join(_FORMATS)}")
        if self.channels not in CHANNELS:
            raise InputError(f"--channels {self.channels!r}: allowed are {', '.join(CHANNELS)}")
        if self.user is not None and self.cluster is not None:
            raise InputError("--user and --cluster are both there: leave one of them out")
        for name, value, least in (("limit", self.limit, 1), ("offset", self.offset, 0)):
            if value < least:
                raise InputError(f"--{name} {value}: must be at least {least}")
        if self.format == "parquet" and not self.json and sys.stdout.isatty():
            raise InputError("--format parquet is not for a terminal: redirect it, > messages.parquet")

    def _told(self) -> tuple[Any, dict[str, Any]]:
        from p2p_sim.render import sequence
        from p2p_sim.report import message_text
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import LazyRun
        from p2p_sim.trace import neighbourhood, query

        left = LazyRun(Path(self.run))
        run = left if self.who is None or left.cut_off else load(Path(self.run))
        eyes = None if self.who is None else sequence.eyes_of(run, self.who)
        asked: dict[str, Any] = {
            "kind": self.kind,
            "round": self.round,
            "as_": eyes,
            "channels": self.channels,
        }
        users: Any = None if self.user is None else [self.user]
        if self.cluster is None:
            part = query.messages(run, user=self.user, limit=self.limit, offset=self.offset, **asked)
        else:
            users = neighbourhood.cluster(run, self.cluster)
            part = neighbourhood.page(neighbourhood.around(run, users, **asked), self.limit, self.offset)
        told: dict[str, Any] = {
            "run": self.run, "protocol": run.protocol.partition(":")[2], "view": self.who,
            "coalition": None if eyes is None else str(eyes), "channels": self.channels,
            "notes": list(part.notes), "messages": message_text.tables(part, self.offset),
        }  # fmt: skip
        if self.who is not None and eyes is not None and self.kind is None and self.round is None:
            told |= self._own(run, self.who, users) if eyes.users or eyes.servers else {}
        return part, told

    def _own(self, run: RunRecord, who: str, users: Any) -> dict[str, Any]:
        """Return what those who look, and are among some users, held and drew, as far as it is known."""
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


@trace.command("stats", cls=OnceCommand, epilog="Example: p2p-sim trace stats runs/latest --json")
@dataclass(frozen=True)
class Stats:
    """Count messages and bytes by round and role, and how many each user sends and receives."""

    run: RunArgument
    json: Json = False
    format: Format = "text"
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Count and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.report import message_text
        from p2p_sim.rundir.run_directory import LazyRun
        from p2p_sim.trace.stats import stats as statistics

        as_json = wants_json(self.json, self.format)
        with Progress() as progress, terminal.stdout_kept():
            progress("counting", 0, 0)
            run = LazyRun(Path(self.run))
            told: dict[str, Any] = {"run": self.run, "protocol": run.protocol.partition(":")[2]}
            told |= message_text.stats_document(statistics(run))
        sys.stdout.write(terminal.as_json(told) if as_json else message_text.stats_text(told))
        return 0


@trace.command(
    "cone", cls=OnceCommand, epilog="Example: p2p-sim trace cone runs/latest --message report:3:17:0:0"
)
@dataclass(frozen=True)
class Cone:
    """Follow a message back to all that may have influenced it, and on to all that it may have influenced.

    Says what of its origin its recipient cannot see, and the set in which it hides.
    """

    run: RunArgument
    message: Annotated[
        str | None, text(LOOK, "Its id, as trace show --json lists it.", "KIND:ROUND:SENDER:RECIPIENT:SEQ")
    ] = None
    limit: Annotated[int, count(LOOK, "Most rows of each table; default 10.")] = 10
    json: Json = False
    format: Format = "text"
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Follow and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.report import message_text
        from p2p_sim.rundir.run_directory import LazyRun
        from p2p_sim.trace.causality import cone as cone_of

        as_json = wants_json(self.json, self.format)
        if self.message is None:
            raise InputError("--message is missing: give the id of one, such as report:3:17:0:0")
        if self.limit < 1:
            raise InputError(f"--limit {self.limit}: must be at least 1")
        with Progress() as progress, terminal.stdout_kept():
            progress("following", 0, 0)
            run = LazyRun(Path(self.run))
            told: dict[str, Any] = {"run": self.run, "protocol": run.protocol.partition(":")[2]}
            told |= message_text.cone_document(cone_of(run, self.message, limit=self.limit))
        sys.stdout.write(terminal.as_json(told) if as_json else message_text.cone_text(told))
        return 0
