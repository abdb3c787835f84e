"""``p2p-sim sweep``."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import EXECUTION, OUTPUT, Format, Json, count, text, wants_json
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal
from p2p_sim.result_summary import counted


@app.command("sweep", cls=UniqueOptionsCommand, epilog="Example: p2p-sim sweep alphas.toml --plot alphas.svg")
@dataclass(frozen=True)
class SweepCommand:
    """Make every run of a grid once, over all processors, and write one table; given again, it goes on where it was."""

    file: Annotated[
        str, typer.Argument(metavar="FILE.toml", help="The grid: protocols, parameters, data, seeds.")
    ]
    out: Annotated[
        str | None, text(OUTPUT, "Folder of the sweep; default sweeps/NAME for a file NAME.toml.", "DIR")
    ] = None
    workers: Annotated[
        int | None, count(EXECUTION, "Processes that make runs at the same time; default all processors.")
    ] = None
    address: Annotated[
        str | None,
        text(
            EXECUTION,
            "A Ray cluster, whose processors make the runs; default RAY_ADDRESS, unless --workers is given.",
            "HOST:PORT",
        ),
    ] = None
    plot: Annotated[
        str | None,
        text(OUTPUT, "Draw accuracy against ε, with intervals over seeds; .svg or .png.", "FILE"),
    ] = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Make what is not there, and print; 1 if runs failed."""
        from p2p_sim.progress import Progress
        from p2p_sim.sweep import grids, plot, summary, sweeping

        as_json = wants_json(self.json, self.format)
        if self.plot is not None:
            plot.check(self.plot)
        with Progress() as progress, terminal.stdout_to_stderr():
            try:
                asked = grids.read(self.file)  # once: it may be a pipe
                if self.plot is not None:
                    plot.check_grids(asked)
                swept = sweeping.made(
                    asked,
                    out=self.out,
                    workers=self.workers,
                    address=self.address,
                    tell=progress,
                    say=_say,
                )
            except InputError as error:
                raise InputError(f"{error}{_as_keys(str(error))}") from error
            drawn, undrawn = self.plot, None
            if drawn is not None and swept.failed == swept.count:
                _say(f"all {counted(swept.count, 'run')} failed: nothing is drawn")
                drawn = None
            if drawn is not None:
                progress("drawing", 0, 0)
                try:
                    _say(plot.write(drawn, swept.table))
                except InputError as error:  # said below what the runs gave
                    drawn, undrawn = None, error
            document = summary.document(swept, drawn)
        sys.stdout.write(
            terminal.as_json(document) if as_json else terminal.fitted(summary.as_text(document))
        )
        if undrawn is not None:
            raise undrawn
        return 1 if swept.failed else 0


def _as_keys(text: str) -> str:
    """Say of options that an error advises that the file of a sweep has keys for them; empty if it advises none."""
    from p2p_sim.sweep.settings import LISTS, SCALARS

    advised = dict.fromkeys(name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", text))
    keys = [name for name in advised if name in SCALARS or name in LISTS]
    return (
        f"; in the file of a sweep {' and '.join(keys)} {'are keys' if len(keys) > 1 else 'is a key'}"
        if keys
        else ""
    )


def _say(line: str) -> None:
    if line:
        print(terminal.visible(line), file=sys.stderr, flush=True)
