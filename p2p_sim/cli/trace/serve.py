"""``p2p-sim trace serve``."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.show import LOOK
from p2p_sim.core.errors import InputError
from p2p_sim.report import files, terminal
from p2p_sim.report.options import HOW, KEPT, count, flag, text


@trace.command("serve", epilog="Example: p2p-sim trace serve runs/latest")
@dataclass(frozen=True)
class Serve:
    """Look at a run in a browser: rounds, roles, the messages of a cluster, and what each party can read of them.

    The page is served to this machine alone, under an address with a token, and cannot write; Ctrl-C ends it.
    """

    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or a folder of some.")]
    port: Annotated[int, count(HOW, "Default any free one.")] = 0
    browser: Annotated[bool, flag(HOW, "Open it in a browser, too.", "--browser")] = False
    export: Annotated[
        str | None, text(KEPT, "Instead: one file that holds the page and what it shows.", "FILE")
    ] = None
    user: Annotated[int | None, count(LOOK, "For --export: a user in focus.")] = None
    cluster: Annotated[int | None, count(LOOK, "For --export: a cluster; default the first.")] = None

    def work(self, _command: Command) -> int:
        """Serve until Ctrl-C, or write a file."""
        if self.export is None:
            for name in ("user", "cluster"):
                if getattr(self, name) is not None:
                    raise InputError(f"--{name} goes with --export, which is not there: choose on the page")
            return self._serve()
        if self.user is not None and self.cluster is not None:
            raise InputError("--user and --cluster are both there: a page shows one of them")
        return self._export(self.export)

    def _serve(self) -> int:
        from p2p_sim.report.learnt import learnt
        from p2p_sim.run import load
        from p2p_sim.trace.web.answers import Answers
        from p2p_sim.trace.web.server import serving

        with serving(Answers(Path(self.run), load, learnt), self.port) as server:
            print(f"{server.url}", flush=True)
            print("Ctrl-C ends it.", file=sys.stderr)
            if self.browser:
                webbrowser.open(server.url)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
        return 0

    def _export(self, out: str) -> int:
        from p2p_sim.report.learnt import learnt
        from p2p_sim.report.progress import Progress
        from p2p_sim.run import load
        from p2p_sim.trace.web.export import export
        from p2p_sim.trace.web.lanes import Asked

        place = files.check(out)
        with Progress() as progress, terminal.stdout_kept():
            progress("reading the run", 0, 0)
            run: Any = load(Path(self.run))
            if run.source is None:
                raise InputError(f"{run.protocol} is not a shipped protocol: its messages are not known here")
            progress("drawing", 0, 0)
            page = export(
                run, Path(self.run).resolve().name, run.source, learnt, Asked(self.cluster, self.user)
            )
        files.write(place, page)
        print(out)
        return 0
