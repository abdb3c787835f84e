"""``p2p-sim trace serve``."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.show import LOOK
from p2p_sim.core.errors import InputError
from p2p_sim.report import files, terminal
from p2p_sim.report.options import HOW, KEPT, count, flag, text


@trace.command("serve", cls=OnceCommand, epilog="Example: p2p-sim trace serve runs/latest")
@dataclass(frozen=True)
class Serve:
    """Look at a run in a browser: rounds, roles, the messages of a cluster, and what each party can read of them.

    The page is served to this machine alone, under an address with a token, and cannot write; Ctrl-C ends it.
    """

    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or a folder of some.")]
    port: Annotated[int, count(HOW, "Default any free one.")] = 0
    browser: Annotated[bool, flag(HOW, "Open it in a browser, too.", "--browser")] = False
    export: Annotated[
        str | None, text(KEPT, "Instead, one HTML file: the page with what it shows of some users.", "FILE")
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
        from p2p_sim.report.learnt import VIEWERS
        from p2p_sim.trace.web.answers import Answers
        from p2p_sim.trace.web.server import serving

        answers = Answers(Path(self.run), VIEWERS)
        answers.check()
        with serving(answers, self.port) as server:
            print(server.url, flush=True)
            print("Ctrl-C ends it.", file=sys.stderr)
            threading.Thread(target=answers.warm, name="warm", daemon=True).start()
            if self.browser:
                webbrowser.open(server.url)
            with suppress(KeyboardInterrupt):
                server.serve_forever()
        return 0

    def _export(self, out: str) -> int:
        from p2p_sim.report.learnt import VIEWERS
        from p2p_sim.report.progress import Progress
        from p2p_sim.trace.opened import Opened
        from p2p_sim.trace.web.export import export
        from p2p_sim.trace.web.gather import Place

        place = files.check(out, "--export")
        with Progress() as progress, terminal.stdout_kept():
            progress("looking through everybody's eyes", 0, 0)
            folder = Path(os.path.realpath(self.run))
            page = export(Opened(folder), folder.name, VIEWERS, Place(self.cluster, self.user))
        files.write(place, page)
        print(out)
        return 0
