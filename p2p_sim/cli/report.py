"""``p2p-sim report``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, OnceCommand, app
from p2p_sim.cli.options import KEPT, Json, flag, text
from p2p_sim.cli.programs import Programs, with_programs
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal, whole_files


@app.command("report", cls=OnceCommand, epilog="Example: p2p-sim report runs/latest")
@dataclass(frozen=True)
class Report:
    """Write what there is to tell of one run, or of several side by side, on one page.

    The HTML page holds everything it shows and goes into the run's directory, or beside the first of several.
    """

    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run directories, such as runs/latest.")]
    no_seed: Annotated[
        bool, flag(KEPT, "Withhold seeds, with which the noise could be undone.", "--no-seed")
    ] = False
    format: Annotated[
        str, text(KEPT, "What is written; default html, the others to stdout.", "html|md|json")
    ] = "html"
    json: Json = False
    out: Annotated[str | None, text(KEPT, "A file that is written whole.", "FILE")] = None
    protocol: Programs = None

    @with_programs("runs")
    def work(self, _command: Command) -> int:
        """Gather and write."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.report import document, sections

        form = "json" if self.json else self.format
        if form not in sections.FORMATS:
            raise InputError(f"--format {self.format!r}: allowed are {', '.join(sections.FORMATS)}")
        out = None if self.out is None else whole_files.check(self.out)
        with Progress() as progress, terminal.stdout_kept():
            progress("writing the report", 0, 0)
            told = document.documents(self.runs, seed=not self.no_seed)
            page = sections.page(told, form)
        if out is None and form != "html":
            sys.stdout.write(page)
            return 0
        place = sections.default(self.runs) if out is None else out
        whole_files.write(place, page, private=sections.tells_seed(told))
        print(f"Report written to {terminal.visible(str(place))}")
        return 0
