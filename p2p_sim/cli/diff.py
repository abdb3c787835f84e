"""``p2p-sim diff``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import Format, Json, wants_json
from p2p_sim.cli.protocol_option import Programs, with_programs
from p2p_sim.report import terminal


@app.command("diff", cls=UniqueOptionsCommand, epilog="Example: p2p-sim diff runs/first runs/second")
@dataclass(frozen=True)
class DiffCommand:
    """Compare two runs: settings, labels, counts, outputs and single messages.  Exit status 1: they differ.

    Prints the first message that differs, in causal order, and its parties.
    """

    first: Annotated[str, typer.Argument(metavar="RUN_A", help="A run directory.")]
    second: Annotated[str, typer.Argument(metavar="RUN_B", help="Another.")]
    json: Json = False
    format: Format = "text"
    protocol: Programs = None

    @with_programs("first", "second")
    def execute(self, _command: Command) -> int:
        """Compare and tell."""
        from p2p_sim.progress import Progress
        from p2p_sim.report import message_text
        from p2p_sim.trace.diff import compare

        as_json = wants_json(self.json, self.format)
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("comparing", 0, 0)
            found = compare(Path(self.first), Path(self.second))
            document: dict[str, Any] = {"first_run": self.first, "second_run": self.second}
            document |= message_text.diff_document(found)
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(message_text.diff_text(document))
        )
        return 0 if found.equal else 1
