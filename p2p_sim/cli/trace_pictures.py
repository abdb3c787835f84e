"""``p2p-sim trace diagram``, ``export`` and ``serve``: messages of a run as a picture, a file or a web page."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import webbrowser
from collections.abc import Collection, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand
from p2p_sim.cli.options import (
    EXECUTION,
    OUTPUT,
    REQUEST,
    SELECTION,
    Round,
    RunArgument,
    Shown,
    check_format,
    check_least,
    count,
    flag,
    ratio,
    text,
    viewer,
    whole,
)
from p2p_sim.cli.protocol_option import Program, Programs, with_programs
from p2p_sim.cli.trace_tables import trace
from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, terminal
from p2p_sim.report.delta import check_delta

if TYPE_CHECKING:
    from p2p_sim.render.scene import Scene

Users = Annotated[
    list[int] | None,
    typer.Option(
        "--user", metavar="N", parser=whole, rich_help_panel=SELECTION, show_default=False,
        help="Only messages that this user sent or received.  May be repeated.",
    ),
]  # fmt: skip
Cluster = Annotated[
    int | None,
    count(SELECTION, "Only messages of the users of this cluster, and of every --user."),
]
Who = Annotated[
    str | None, viewer("Strike out what these cannot read: learner, user:17, wire, learner+3*user, parts joined by +.")
]  # fmt: skip
_ENDINGS = {
    "svg": (".svg",), "mermaid": (".mmd", ".mermaid", ".md", ".txt"), "json": (".json",),
    "graphml": (".graphml", ".xml"), "perfetto": (".json", ".trace"),
}  # fmt: skip
_PIXELS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")

Out = Annotated[
    str | None, text(OUTPUT, "Output file, written completely or not at all; default stdout.", "FILE")
]


def check(form: str | None, forms: Collection[str], limit: int, out: str | None) -> None:
    """Check options before any work; raises InputError."""
    if form is None:
        raise InputError(f"--format is missing: allowed are {', '.join(forms)}")
    check_format(form, forms)
    check_least("limit", limit, 1)
    if out is not None and output_files.check(out, endings=_ENDINGS[form]).suffix.lower() in _PIXELS:
        raise InputError(
            f"--out {out!r}: what is written is {form}, no such picture; name it {Path(out).stem}.{form}"
        )


def write(out: str | None, page: str | Iterable[str]) -> None:
    """Write a page, whole or in pieces, to a file, or to stdout."""
    if out is None:
        sys.stdout.writelines([page] if isinstance(page, str) else page)
    else:
        output_files.write(output_files.check(out), page)


def print_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr: what was merged, left out or recomputed."""
    for note in notes:
        print(f"note: {terminal.visible(note)}", file=sys.stderr)


_FORMS = ("svg", "mermaid", "json")


@trace.command(
    "diagram",
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim trace diagram runs/latest --user 17 --out user17.svg",
)
@dataclass(frozen=True)
class DiagramCommand:
    """Draw who sent what to whom, with one lane a party and one band a round.

    Many users share a lane, by cluster or by role; the picture says so.  Messages that the run did not keep are
    recomputed from its seed.
    """

    run: RunArgument
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Shown = "plain"
    limit: Annotated[
        int,
        count(SELECTION, "At most so many arrows; if there are more, users share lanes; default 400."),
    ] = 400
    format: Annotated[str, text(OUTPUT, "What is written; default svg.", "svg|mermaid|json")] = "svg"
    json: Annotated[bool, flag(OUTPUT, "Short for --format json: lanes and arrows.", "--json")] = False
    out: Out = None
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Draw and tell."""
        from p2p_sim.progress import Progress
        from p2p_sim.render import sequence
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import whole_or_cut_off

        form = "json" if self.json else self.format
        check(form, _FORMS, self.limit, self.out)
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("drawing", 0, 0)
            drawn = sequence.draw(
                whole_or_cut_off(Path(self.run), load), self.user or [], cluster_number=self.cluster, round=self.round,
                view=self.who, channels=self.channels, limit=self.limit, name=self.run,
            )  # fmt: skip
            drawn, page = _form(form, drawn)
        write(self.out, page)
        print_notes(drawn.notes)
        return 0


def _form(form: str, drawn: Scene) -> tuple[Scene, str]:
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
    cls=UniqueOptionsCommand,
    epilog="Example: p2p-sim trace export runs/latest --format perfetto --cluster 3 --out run.json",
)
@dataclass(frozen=True)
class ExportCommand:
    """Write messages for other programs: as GraphML, or as a trace for Perfetto (ui.perfetto.dev) and Chrome.

    Messages that the run did not keep are recomputed from its seed.
    """

    run: RunArgument
    format: Annotated[str | None, text(OUTPUT, "Output format; required.", "graphml|perfetto")] = None
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Shown = "plain"
    limit: Annotated[int, count(SELECTION, "Most messages, the first of all; default 10,000.")] = 10_000
    json: Annotated[bool, flag(OUTPUT, "Say on stdout as JSON what was written to --out.", "--json")] = False
    out: Out = None
    protocol: Program = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Write and tell."""
        from p2p_sim.progress import Progress
        from p2p_sim.render import sequence
        from p2p_sim.run import load
        from p2p_sim.rundir.run_directory import whole_or_cut_off
        from p2p_sim.trace.neighbourhood import MAX_MESSAGES, around

        check(self.format, sequence.EXPORTS, self.limit, self.out)
        if self.json and self.out is None:
            raise InputError("--json says what was written to a file: give --out too, or leave --json out")
        if self.json and self.out is not None and output_files.is_stdout(Path(self.out)):
            raise InputError(f"--json and --out {self.out!r} both write to stdout: leave one of them out")
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("reading", 0, 0)
            run, asked = whole_or_cut_off(Path(self.run), load), self.user or []
            chosen = sequence.select(run, asked, self.cluster)
            viewer = None if self.who is None else sequence.viewer_of(run, self.who)
            view = None if viewer is None else str(viewer)
            part = around(
                run,
                chosen,
                round=self.round,
                as_=viewer,
                channels=self.channels,
                limit=min(self.limit, MAX_MESSAGES),
            )
        if self.limit > MAX_MESSAGES and any(part.cut.values()):
            raise InputError(
                f"--limit {self.limit}: of {sum(part.total.values()):,} messages at most {MAX_MESSAGES:,} are written: "
                "choose some by --user, --cluster or --round"
            )
        page = sequence.export(run, str(self.format), part, asked, self.cluster, self.round, self.run, view)
        with (
            nullcontext() if self.out is None else Progress() as progress
        ):  # no bar between the lines of a page
            if progress is not None:
                progress("writing", 0, 0)
            write(self.out, page)
        notes = [*part.notes, *sequence.left_out(part, view)]
        print_notes(notes)
        if self.json:
            summary = {"out": self.out, "format": self.format, "view": self.who, "messages": len(part)}
            sys.stdout.write(
                json.dumps(summary | {"left_out": sum(part.cut.values()), "notes": notes}) + "\n"
            )
        return 0


@trace.command("serve", cls=UniqueOptionsCommand, epilog="Example: p2p-sim trace serve runs/latest")
@dataclass(frozen=True)
class ServeCommand:
    """Look at a run in a browser: rounds, roles, the messages of a cluster, and what each party can read of them.

    The page is read-only.  It is served on this machine only, under an address with a token; Ctrl-C ends it.
    """

    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run directory, or a folder of run directories.")
    ]
    port: Annotated[int, count(EXECUTION, "The port; default any free one.")] = 0
    browser: Annotated[bool, flag(EXECUTION, "Also open the page in a browser.", "--browser")] = False
    export: Annotated[
        str | None,
        text(OUTPUT, "Write one HTML file instead: the page with the messages of some users.", "FILE"),
    ] = None
    user: Annotated[int | None, count(SELECTION, "For --export: a user in focus.")] = None
    cluster: Annotated[int | None, count(SELECTION, "For --export: a cluster; default the first.")] = None
    delta: Annotated[
        float | None, ratio(REQUEST, "The δ of the privacy figures, in [0, 1); default that of the run.")
    ] = None
    protocol: Programs = None

    @with_programs("run")
    def execute(self, _command: Command) -> int:
        """Serve until Ctrl-C, or write a file."""
        if self.delta is not None:
            check_delta(self.delta)
        if self.export is None:
            for name in ("user", "cluster"):
                if getattr(self, name) is not None:
                    raise InputError(
                        f"--{name} needs --export, which is missing: leave it out, or choose on the page"
                    )
            return self._serve()
        if self.user is not None and self.cluster is not None:
            raise InputError(
                "--user and --cluster are both given: a page shows one of them, leave the other out"
            )
        return self._export(self.export)

    def _serve(self) -> int:
        from p2p_sim.render.web.answers import Answers
        from p2p_sim.render.web.server import serving
        from p2p_sim.report.view_summary import view_functions

        answers = Answers(Path(self.run), view_functions(self.delta))
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
        from p2p_sim.progress import Progress
        from p2p_sim.render.web.messages import Place
        from p2p_sim.render.web.page import export
        from p2p_sim.report.view_summary import view_functions
        from p2p_sim.rundir.run_directory import LazyRun

        place = output_files.check(out, "--export", (".html", ".htm"))
        with Progress() as progress, terminal.stdout_to_stderr():
            progress("computing all views", 0, 0)
            folder = Path(os.path.realpath(self.run))
            page = export(
                LazyRun(folder), folder.name, view_functions(self.delta), Place(self.cluster, self.user)
            )
        own_page = output_files.is_stdout(place)  # then the page is all that it holds
        output_files.write(place, page)
        print(out, file=sys.stderr if own_page else sys.stdout)
        return 0
