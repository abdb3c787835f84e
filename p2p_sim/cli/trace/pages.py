"""Options of the verbs that draw and export, how they are checked, and where pages go."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

import typer

from p2p_sim.cli.trace.show import LOOK
from p2p_sim.core.errors import InputError
from p2p_sim.report import files, terminal
from p2p_sim.report.options import KEPT, count, text, whole

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
    if out is not None and files.check(out).suffix.lower() in _PIXELS:
        raise InputError(
            f"--out {out!r}: what is written is {form}, no such picture; name it {Path(out).stem}.{form}"
        )


def write(out: str | None, page: str) -> None:
    """Write a page to a file, or to stdout."""
    if out is None:
        sys.stdout.write(page)
    else:
        files.write(files.check(out), page)


def tell(notes: Iterable[str]) -> None:
    """Say on stderr what was put together, left out or recomputed."""
    for note in notes:
        print(f"note: {terminal.visible(note)}", file=sys.stderr)
