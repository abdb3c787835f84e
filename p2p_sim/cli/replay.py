"""``p2p-sim replay``."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_sim.cli.app import Command, OnceCommand, app
from p2p_sim.cli.options import ASKED, KEPT, Json, count, text, whole
from p2p_sim.cli.programs import Program, with_programs
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.rundir.run_record import RunRecord
    from p2p_sim.trace.replay import Life


_FORMATS = ("table", "json", "csv")


@app.command("replay", cls=OnceCommand, epilog="Example: p2p-sim replay runs/latest --user 17")
@dataclass(frozen=True)
class Replay:
    """Recompute what a user sent, received and drew from the seed of a run, traced or not.

    Where the run kept her messages, they are compared with the replay: exit status 1 if they differ.
    """

    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
    user: Annotated[
        list[int] | None,
        typer.Option(
            help="Whose history.  May be repeated.", metavar="N", parser=whole, rich_help_panel=ASKED,
            show_default=False,
        ),
    ] = None  # fmt: skip
    limit: Annotated[int, count(KEPT, "Most rows of each table; default 50.")] = 50
    json: Json = False
    format: Annotated[str, text(KEPT, "What stdout holds; default table.", "table|json|csv")] = "table"
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Replay and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.report import message_text
        from p2p_sim.rundir import code_versions

        if self.format not in _FORMATS:
            raise InputError(f"--format {self.format!r}: allowed are {', '.join(_FORMATS)}")
        if not self.user:
            raise InputError("--user is missing: say whose history, such as --user 17")
        if self.limit < 1:
            raise InputError(f"--limit {self.limit}: must be at least 1")
        users, lives = list(dict.fromkeys(self.user)), []
        with Progress() as progress, terminal.stdout_kept():
            for done, user in enumerate(users):
                progress("replaying", done, len(users))
                lives.append(self._told(user))
        code_versions.warn("replayed", lives[0]["code"])
        form = "json" if self.json else self.format
        sys.stdout.write(message_text.REPLAY_FORMATS[form](lives))
        for told in lives if form == "csv" else ():
            whose = f"user {told['user']}: " if len(lives) > 1 else ""
            for line in message_text.notes(told):
                print(f"note: {terminal.visible(whose + line)}", file=sys.stderr)
        return 1 if any(told["compared"] and told["compared"]["different"] for told in lives) else 0

    def _told(self, user: int) -> dict[str, Any]:
        from p2p_sim.report import message_text
        from p2p_sim.rundir import code_versions
        from p2p_sim.trace.recompute import history

        run, people, found = history(Path(self.run), user)
        assert run.source is not None  # a history needs it
        told = message_text.replay_document(run, people, found, self.limit)
        return {
            "run": self.run, "protocol": run.protocol.partition(":")[2], "user": user, "seed": run.seed,
            "code": code_versions.other_code(run, run.source), **told,
            "compared": _compared(run, told["users"], found),
        }  # fmt: skip


def _compared(run: RunRecord, users: int, life: Life) -> dict[str, Any] | None:
    """Return how a life compares with what the run, of so many users, kept; None if it kept no messages."""
    from p2p_sim.core.trace_level import TraceLevel
    from p2p_sim.rundir import run_directory
    from p2p_sim.trace import diff

    level = TraceLevel.parse(run.trace)
    if not level.keeps:
        return None
    assert run.source is not None  # which recomputed the life
    trace = run_directory.source(run)
    sampled = level.watched(users)
    whole = trace.complete and (sampled is None or life.user in sampled)
    return {"trace": run.trace, **asdict(diff.compared(life, trace, run.source.messages(), whole))}
