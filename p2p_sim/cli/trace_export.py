"""``p2p-sim trace diagram`` and ``p2p-sim trace export``: a run as a picture, and for other programs."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command
from p2p_sim.cli.trace import trace
from p2p_sim.core.errors import InputError
from p2p_sim.report import files, terminal
from p2p_sim.report.options import KEPT, count, flag, text, whole
from p2p_sim.trace.diagram import labels

_LOOK = "What is shown"
_Run = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
_Users = Annotated[
    list[int] | None,
    typer.Option(
        "--user", metavar="N", parser=whole, rich_help_panel=_LOOK, show_default=False,
        help="Only what a user sent and received.  May be repeated.",
    ),
]  # fmt: skip
_Cluster = Annotated[int | None, count(_LOOK, "Only what the users of one cluster sent and received.")]
_Round = Annotated[int | None, count(_LOOK, "Only messages of one round.")]
_Out = Annotated[str | None, text(KEPT, "A file that is written whole; default stdout.", "FILE")]


@trace.command("diagram", epilog="Example: p2p-sim trace diagram runs/latest --user 17 --out user17.svg")
@dataclass(frozen=True)
class Diagram:
    """Draw who sent what to whom: one lane a party, one band a round.

    Many users are drawn together, by cluster or by role, as the picture says.  What the run did not keep is recomputed
    from its seed.
    """

    run: _Run
    user: _Users = None
    cluster: _Cluster = None
    round: _Round = None
    who: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="VIEW", rich_help_panel=_LOOK, show_default=False,
            help="Strike out what these cannot read: learner, user:17, wire, learner+3*user, parts joined by +.",
        ),
    ] = None  # fmt: skip
    channels: Annotated[str, text(_LOOK, "What the wire reads; default plain.", "plain|encrypted")] = "plain"
    limit: Annotated[
        int, count(_LOOK, "Most arrows; users are drawn together if there are more; default 400.")
    ] = 400
    format: Annotated[str, text(KEPT, "What is written; default svg.", "svg|mermaid|json")] = "svg"
    json: Annotated[bool, flag(KEPT, "Short for --format json: lanes and arrows.", "--json")] = False
    out: _Out = None

    def work(self, _command: Command) -> int:
        """Draw and tell."""
        from p2p_sim.report import sequence
        from p2p_sim.report.progress import Progress
        from p2p_sim.run import load

        form = "json" if self.json else self.format
        _check(form, _FORMS, self.limit, self.out)
        with Progress() as progress, terminal.stdout_kept():
            progress("drawing", 0, 0)
            drawn = sequence.draw(
                load(Path(self.run)), self.user or [], cluster_number=self.cluster, round=self.round,
                view=self.who, channels=self.channels, limit=self.limit, name=self.run,
            )  # fmt: skip
            page = _form(form, drawn)
        _write(self.out, page)
        _tell(drawn.notes)
        return 0


@trace.command(
    "export", epilog="Example: p2p-sim trace export runs/latest --format perfetto --cluster 3 --out run.json"
)
@dataclass(frozen=True)
class Export:
    """Write messages for other programs: GraphML, Perfetto or Chrome (ui.perfetto.dev), ShiViz.

    What the run did not keep is recomputed from its seed.
    """

    run: _Run
    format: Annotated[
        str | None, text(KEPT, "What is written; must be given.", "graphml|perfetto|shiviz")
    ] = None
    user: _Users = None
    cluster: _Cluster = None
    round: _Round = None
    limit: Annotated[int, count(_LOOK, "Most messages, the first of all; default 10,000.")] = 10_000
    json: Annotated[bool, flag(KEPT, "Say on stdout as JSON what was written to --out.", "--json")] = False
    out: _Out = None

    def work(self, _command: Command) -> int:
        """Write and tell."""
        from p2p_sim.report import sequence
        from p2p_sim.report.progress import Progress
        from p2p_sim.run import load
        from p2p_sim.trace.around import around

        _check(self.format, sequence.EXPORTS, self.limit, self.out)
        if self.json and self.out is None:
            raise InputError("--json says what was written to a file: give --out too, or leave --json out")
        with Progress() as progress, terminal.stdout_kept():
            progress("writing", 0, 0)
            run, asked = load(Path(self.run)), self.user or []
            chosen = sequence.select(run, asked, self.cluster)
            part = around(run, chosen, round=self.round, limit=self.limit)
            page = sequence.export(run, str(self.format), part, asked, self.cluster, self.round, self.run)
        _write(self.out, page)
        notes = [*part.notes, *sequence.left_out(part)]
        _tell(notes)
        if self.json:
            told = {"out": self.out, "format": self.format, "messages": len(part)}
            sys.stdout.write(json.dumps(told | {"left_out": sum(part.cut.values()), "notes": notes}) + "\n")
        return 0


_FORMS = ("svg", "mermaid", "json")


def _form(form: str, drawn: Any) -> str:
    """Return a scene as text of one format."""
    from p2p_sim.trace.diagram.mermaid import mermaid
    from p2p_sim.trace.diagram.svg import svg

    if form == "json":
        return json.dumps(dataclasses.asdict(drawn), indent=2) + "\n"
    return svg(drawn) if form == "svg" else mermaid(drawn)


def _check(form: str | None, forms: Collection[str | None], limit: int, out: str | None) -> None:
    """Check options before any work; raises InputError."""
    if form not in forms:
        was = "--format is missing" if form is None else f"--format {form!r}"
        raise InputError(f"{was}: allowed are {', '.join(map(str, forms))}")
    if limit < 1:
        raise InputError(f"--limit {limit}: must be at least 1")
    if out is not None:
        files.check(out)


def _write(out: str | None, page: str) -> None:
    if out is None:
        sys.stdout.write(page)
    else:
        files.write(files.check(out), page)


def _tell(notes: Iterable[str]) -> None:
    """Say on stderr what was put together, left out or recomputed."""
    for note in notes:
        print(f"note: {labels.clean(note, 400)}", file=sys.stderr)
