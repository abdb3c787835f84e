"""``p2p-sim trace cone``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.show import LOOK, RunArgument
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal
from p2p_sim.report.options import Format, Json, count, text, wants_json


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

    def work(self, _command: Command) -> int:
        """Follow and tell."""
        from p2p_sim.report import cone, console
        from p2p_sim.report.progress import Progress
        from p2p_sim.trace.cone import cone as cone_of
        from p2p_sim.trace.opened import Opened

        as_json = wants_json(self.json, self.format)
        if self.message is None:
            raise InputError("--message is missing: give the id of one, such as report:3:17:0:0")
        if self.limit < 1:
            raise InputError(f"--limit {self.limit}: must be at least 1")
        with Progress() as progress, terminal.stdout_kept():
            progress("following", 0, 0)
            run = Opened(Path(self.run))
            told: dict[str, Any] = {"run": self.run, "protocol": run.protocol.partition(":")[2]}
            told |= cone.document(cone_of(run, self.message, limit=self.limit))
        sys.stdout.write(console.as_json(told) if as_json else cone.as_text(told))
        return 0
