"""``p2p-sim trace diagram``, ``export`` and ``serve``: messages of a run as pictures, files and a page."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import webbrowser
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.options import HOW, KEPT, count, flag, text, whole
from p2p_sim.cli.programs import Program, Programs, with_programs
from p2p_sim.cli.trace_tables import LOOK, Channels, Round, RunArgument, trace
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal, whole_files

Users = Annotated[
    list[int] | None,
    typer.Option(
        "--user", metavar="N", parser=whole, rich_help_panel=LOOK, show_default=False,
        help="Only what a user sent and received.  May be repeated.",
    ),
]  # fmt: skip
Cluster = Annotated[
    int | None, count(LOOK, "Only what the users of one cluster, and of every --user, sent and received.")
]
Who = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="VIEW", rich_help_panel=LOOK, show_default=False,
        help="Strike out what these cannot read: learner, user:17, wire, learner+3*user, parts joined by +.",
    ),
]  # fmt: skip
_PIXELS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")

Out = Annotated[str | None, text(KEPT, "A file that is written whole; default stdout.", "FILE")]


def check(form: str | None, forms: Collection[str | None], limit: int, out: str | None) -> None:
    """Check options before any work; raises InputError."""
    if form not in forms:
        was = "--format is missing" if form is None else f"--format {form!r}"
        raise InputError(f"{was}: allowed are {', '.join(map(str, forms))}")
    if limit < 1:
        raise InputError(f"--limit {limit}: must be at least 1")
    if out is not None and whole_files.check(out).suffix.lower() in _PIXELS:
        raise InputError(
            f"--out {out!r}: what is written is {form}, no such picture; name it {Path(out).stem}.{form}"
        )


def write(out: str | None, page: str) -> None:
    """Write a page to a file, or to stdout."""
    if out is None:
        sys.stdout.write(page)
    else:
        whole_files.write(whole_files.check(out), page)


def tell(notes: Iterable[str]) -> None:
    """Say on stderr what was put together, left out or recomputed."""
    for note in notes:
        print(f"note: {terminal.visible(note)}", file=sys.stderr)


_FORMS = ("svg", "mermaid", "json")


@trace.command(
    "diagram", cls=OnceCommand, epilog="Example: p2p-sim trace diagram runs/latest --user 17 --out user17.svg"
)
@dataclass(frozen=True)
class Diagram:
    """Draw who sent what to whom: one lane a party, one band a round.

    Many users are drawn together, by cluster or by role, as the picture says.  What the run did not keep is recomputed
    from its seed.
    """

    run: RunArgument
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Channels = "plain"
    limit: Annotated[
        int, count(LOOK, "Most arrows; users are drawn together if there are more; default 400.")
    ] = 400
    format: Annotated[str, text(KEPT, "What is written; default svg.", "svg|mermaid|json")] = "svg"
    json: Annotated[bool, flag(KEPT, "Short for --format json: lanes and arrows.", "--json")] = False
    out: Out = None
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Draw and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.render import sequence
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import whole_or_cut_off

        form = "json" if self.json else self.format
        check(form, _FORMS, self.limit, self.out)
        with Progress() as progress, terminal.stdout_kept():
            progress("drawing", 0, 0)
            drawn = sequence.draw(
                whole_or_cut_off(Path(self.run), load), self.user or [], cluster_number=self.cluster, round=self.round,
                view=self.who, channels=self.channels, limit=self.limit, name=self.run,
            )  # fmt: skip
            drawn, page = _form(form, drawn)
        write(self.out, page)
        tell(drawn.notes)
        return 0


def _form(form: str, drawn: Any) -> tuple[Any, str]:
    """Return a scene, as far as a format holds it, and its text."""
    from p2p_sim.render.mermaid import fitting, mermaid
    from p2p_sim.render.svg import svg

    if form == "json":
        return drawn, json.dumps(dataclasses.asdict(drawn), indent=2) + "\n"
    if form == "svg":
        return drawn, svg(drawn)
    fits = fitting(drawn)
    return fits, mermaid(fits)


@trace.command(
    "export",
    cls=OnceCommand,
    epilog="Example: p2p-sim trace export runs/latest --format perfetto --cluster 3 --out run.json",
)
@dataclass(frozen=True)
class Export:
    """Write messages for other programs: GraphML, Perfetto or Chrome (ui.perfetto.dev).

    What the run did not keep is recomputed from its seed.
    """

    run: RunArgument
    format: Annotated[str | None, text(KEPT, "What is written; must be given.", "graphml|perfetto")] = None
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Channels = "plain"
    limit: Annotated[int, count(LOOK, "Most messages, the first of all; default 10,000.")] = 10_000
    json: Annotated[bool, flag(KEPT, "Say on stdout as JSON what was written to --out.", "--json")] = False
    out: Out = None
    protocol: Program = None

    @with_programs("run")
    def work(self, _command: Command) -> int:
        """Write and tell."""
        from p2p_sim.cli.progress import Progress
        from p2p_sim.render import sequence
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import whole_or_cut_off
        from p2p_sim.trace.neighbourhood import around

        check(self.format, sequence.EXPORTS, self.limit, self.out)
        if self.json and self.out is None:
            raise InputError("--json says what was written to a file: give --out too, or leave --json out")
        with Progress() as progress, terminal.stdout_kept():
            progress("writing", 0, 0)
            run, asked = whole_or_cut_off(Path(self.run), load), self.user or []
            chosen = sequence.select(run, asked, self.cluster)
            eyes = None if self.who is None else sequence.eyes_of(run, self.who)
            view = None if eyes is None else str(eyes)
            part = around(run, chosen, round=self.round, as_=eyes, channels=self.channels, limit=self.limit)
            page = sequence.export(
                run, str(self.format), part, asked, self.cluster, self.round, self.run, view
            )
        write(self.out, page)
        notes = [*part.notes, *sequence.left_out(part, view)]
        tell(notes)
        if self.json:
            told = {"out": self.out, "format": self.format, "view": self.who, "messages": len(part)}
            sys.stdout.write(json.dumps(told | {"left_out": sum(part.cut.values()), "notes": notes}) + "\n")
        return 0


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
    protocol: Programs = None

    @with_programs("run")
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
        from p2p_sim.render.web.answers import Answers
        from p2p_sim.render.web.server import serving
        from p2p_sim.report.view_summary import VIEWERS

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
        from p2p_sim.cli.progress import Progress
        from p2p_sim.render.web.messages import Place
        from p2p_sim.render.web.page import export
        from p2p_sim.report.view_summary import VIEWERS
        from p2p_sim.rundir.run_directory import LazyRun

        place = whole_files.check(out, "--export")
        with Progress() as progress, terminal.stdout_kept():
            progress("looking through everybody's eyes", 0, 0)
            folder = Path(os.path.realpath(self.run))
            page = export(LazyRun(folder), folder.name, VIEWERS, Place(self.cluster, self.user))
        whole_files.write(place, page)
        print(out)
        return 0
