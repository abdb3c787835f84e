"""``p2p-sim report``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import OUTPUT, REQUEST, Json, check_format, flag, ratio, text
from p2p_sim.cli.protocol_option import Programs, with_programs
from p2p_sim.report import output_files, terminal
from p2p_sim.report.delta import check_delta


@app.command("report", cls=UniqueOptionsCommand, epilog="Example: p2p-sim report runs/latest")
@dataclass(frozen=True)
class ReportCommand:
    """Write a report on one run, or on several side by side, as one page.

    The HTML page is self-contained.  It is written into the run's directory, or beside the first of several runs.
    """

    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Run directories, such as runs/latest.")]
    no_seed: Annotated[
        bool, flag(OUTPUT, "Leave out seeds, with which the noise could be undone.", "--no-seed")
    ] = False
    format: Annotated[
        str, text(OUTPUT, "Output format; default html; md and json go to stdout.", "html|md|json")
    ] = "html"
    delta: Annotated[
        float | None, ratio(REQUEST, "Account again, at this δ in [0, 1); default as in each run.")
    ] = None
    json: Json = False
    out: Annotated[str | None, text(OUTPUT, "A file that is written whole.", "FILE")] = None
    figures: Annotated[
        str | None, text(OUTPUT, "A new or empty folder for the figures: SVG, PNG and CSV.", "DIR")
    ] = None
    protocol: Programs = None

    @with_programs("runs")
    def execute(self, _command: Command) -> int:
        """Gather and write."""
        from p2p_sim.progress import Progress
        from p2p_sim.report import figure_files, report_content, report_page

        form = "json" if self.json else self.format
        check_format(form, report_page.FORMATS)
        delta = None if self.delta is None else check_delta(self.delta)
        out = None if self.out is None else output_files.check(self.out, endings=report_page.ENDINGS[form])
        folder = None if self.figures is None else figure_files.check(self.figures)
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("writing the report", 0, 0)
            reports = report_content.documents(self.runs, seed=not self.no_seed, delta=delta)
            made = None if form == "json" and folder is None else report_page.laid_out(reports)
            page = report_page.page(reports, form, made)
            if folder is not None and made is not None:
                figure_files.write(folder, made.drawings(), progress)
        if folder is not None:
            print(f"Figures written to {terminal.visible(str(folder))}", file=sys.stderr)
        if out is None and form != "html":
            sys.stdout.write(page)
            return 0
        place = report_page.default(self.runs) if out is None else out
        own_page = output_files.is_stdout(place)  # then the page is all that it holds
        output_files.write(place, page, private=report_page.tells_seed(reports))
        print(
            f"Report written to {terminal.visible(str(place))}", file=sys.stderr if own_page else sys.stdout
        )
        return 0
