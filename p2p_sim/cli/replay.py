"""``p2p-sim replay``."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import OUTPUT, REQUEST, Json, check_format, check_least, count, text, whole
from p2p_sim.cli.protocol_option import Program, with_programs
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.rundir.run_record import RunRecord
    from p2p_sim.trace.replay import UserHistory


_FORMATS = ("table", "json", "csv")


@app.command("replay", cls=UniqueOptionsCommand, epilog="Example: p2p-sim replay runs/latest --user 17")
@dataclass(frozen=True)
class ReplayCommand:
    """Recompute from a run's seed what a user sent, received and drew, whether the run kept messages or not.

    Messages that the run kept are compared with the replay: exit status 1 if they differ.
    """

    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
    user: Annotated[
        list[int] | None,
        typer.Option(
            help="Whose history.  May be repeated.", metavar="N", parser=whole, rich_help_panel=REQUEST,
            show_default=False,
        ),
    ] = None  # fmt: skip
    limit: Annotated[int, count(OUTPUT, "At most so many rows in each table; default 50.")] = 50
    json: Json = False
    format: Annotated[str, text(OUTPUT, "What stdout holds; default table.", "table|json|csv")] = "table"
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Replay and tell."""
        from p2p_sim.progress import Progress
        from p2p_sim.report import message_text
        from p2p_sim.rundir import code_versions

        check_format(self.format, _FORMATS)
        if not self.user:
            raise InputError("--user is missing: give the user to replay, such as --user 17")
        check_least("limit", self.limit, 1)
        users, histories = list(dict.fromkeys(self.user)), []
        with Progress() as progress, terminal.stdout_to_stderr():
            for done, user in enumerate(users):
                progress("replaying", done, len(users))
                histories.append(self._document(user))
        code_versions.warn("replayed", histories[0]["code"])
        form = "json" if self.json else self.format
        output = message_text.REPLAY_FORMATS[form](histories)
        sys.stdout.write(terminal.fitted(output) if form == "table" else output)
        for document in histories if form == "csv" else ():
            whose = f"user {document['user']}: " if len(histories) > 1 else ""
            for line in message_text.notes(document):
                print(f"note: {terminal.visible(whose + line)}", file=sys.stderr)
        return (
            1
            if any(document["compared"] and document["compared"]["different"] for document in histories)
            else 0
        )

    def _document(self, user: int) -> dict[str, Any]:
        from p2p_sim.report import message_text
        from p2p_sim.rundir import code_versions
        from p2p_sim.trace.recompute import history

        run, people, found = history(Path(self.run), user)
        assert run.source is not None  # a history needs it
        document = message_text.replay_document(run, people, found, self.limit)
        return {
            "run": self.run, "protocol": run.protocol.partition(":")[2], "user": user, "seed": run.seed,
            "code": code_versions.other_code(run, run.source), **document,
            "compared": _compared(run, document["users"], found),
        }  # fmt: skip


def _compared(run: RunRecord, users: int, history: UserHistory) -> dict[str, Any] | None:
    """Return how a history compares with the run's trace; None if the run kept no messages."""
    from p2p_sim.core.trace_level import TraceLevel
    from p2p_sim.rundir import run_directory
    from p2p_sim.trace import diff

    level = TraceLevel.parse(run.trace)
    if not level.keeps:
        return None
    assert run.source is not None  # which recomputed the life
    trace = run_directory.source(run)
    sampled = level.watched(users)
    whole = trace.complete and (sampled is None or history.user in sampled)
    return {"trace": run.trace, **asdict(diff.compared(history, trace, run.source.messages(), whole))}
