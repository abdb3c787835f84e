"""``p2p-sim trace``: verbs that look at the messages of a run."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from p2p_sim.cli.app import Command, app
from p2p_sim.core.errors import InputError
from p2p_sim.core.message import HEADER_BYTES, USER
from p2p_sim.report import terminal
from p2p_sim.report.options import KEPT, Json, count, text
from p2p_sim.view import View, users_of

_LOOK = "What is shown"
_FORMATS = ("table", "json", "csv")
_ADDRESS = ("round", "sender", "recipient", "seq", "nbytes")
_LONGEST = 8

trace = typer.Typer(rich_markup_mode="rich", epilog="Example: p2p-sim trace show runs/latest --as learner")
app.add_typer(trace, name="trace")


@trace.callback(invoke_without_command=True)
def _no_verb(ctx: typer.Context) -> None:
    """Look at the messages of a run."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@trace.command("show", epilog="Example: p2p-sim trace show runs/latest --as learner+user:17 --kind report")
@dataclass(frozen=True)
class Show:
    """Show what somebody saw of a run: messages, with what can be read of them, own inputs, own draws.

    What the run did not keep is recomputed from its seed.
    """

    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, such as runs/latest.")]
    who: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="VIEW", rich_help_panel=_LOOK, show_default=False,
            help="Who looks: learner, user:17, wire, learner+3*user, parts joined by +.",
        ),
    ] = None  # fmt: skip
    kind: Annotated[str | None, text(_LOOK, "Only messages of one kind.")] = None
    user: Annotated[int | None, count(_LOOK, "Only what one user sent, received, held and drew.")] = None
    round: Annotated[int | None, count(_LOOK, "Only messages of one round.")] = None
    limit: Annotated[int, count(_LOOK, "Most rows of each table; default 50.")] = 50
    channels: Annotated[str, text(_LOOK, "What the wire reads; default plain.", "plain|encrypted")] = "plain"
    json: Json = False
    format: Annotated[str, text(KEPT, "What stdout holds; default table.", "table|json|csv")] = "table"

    def work(self, _command: Command) -> int:
        """Look and tell."""
        from p2p_sim.report import console
        from p2p_sim.report.progress import Progress

        if self.format not in _FORMATS:
            raise InputError(f"--format {self.format!r}: allowed are {', '.join(_FORMATS)}")
        if self.who is None:
            raise InputError("--as is missing: say who looks, such as learner, user:17, wire, learner+3*user")
        if self.limit < 1:
            raise InputError(f"--limit {self.limit}: must be at least 1")
        with Progress() as progress, terminal.stdout_kept():
            progress("looking", 0, 0)
            told = self._told(self.who)
        if self.json or self.format == "json":
            sys.stdout.write(console.as_json(told))
        elif self.format == "csv":
            sys.stdout.write(_as_csv(told))
            for line in _cuts(told):
                print(f"note: {line}", file=sys.stderr)
        else:
            sys.stdout.write(_as_text(told))
        return 0

    def _told(self, who: str) -> dict[str, Any]:
        from p2p_sim.run import load

        run = load(Path(self.run))
        view = run.view(who, channels=self.channels)
        self._check(run, view)
        told: dict[str, Any] = {
            "run": self.run, "protocol": run.protocol.partition(":")[2], "view": who,
            "coalition": str(view.coalition), "channels": self.channels, "missing": view.missing,
            "messages": [self._messages(view, kind) for kind in view.kinds if self.kind in (None, kind)],
        }  # fmt: skip
        if self.kind is None and self.round is None and (view.coalition.users or view.coalition.servers):
            try:
                told |= {"inputs": self._rows(self._of_user(view.inputs, "user")), "draws": self._draws(view)}
            except InputError as error:
                told["unknown"] = str(error)
        return told

    def _check(self, run: Any, view: View) -> None:
        """Check what is asked for against the run; raises InputError."""
        if self.kind not in (None, *view.kinds):
            raise InputError(f"--kind {self.kind!r}: this protocol's kinds are {', '.join(view.kinds)}")
        rounds = sorted({number for (_, number), found in run.counts.items() if found.messages})
        if self.round is not None and self.round not in rounds:
            raise InputError(f"--round {self.round}: this run has messages in rounds {rounds}")
        users = users_of(run, view.kinds)
        if self.user is not None and self.user not in users:
            span = f"{users.min()} to {users.max()}" if len(users) else "none"
            raise InputError(f"--user {self.user}: not in this run; its users are {span}")

    def _messages(self, view: View, kind: str) -> dict[str, Any]:
        message, columns = view.kinds[kind], view.messages[kind]
        mask = np.ones(len(columns["round"]), np.bool_)
        if self.round is not None:
            mask &= columns["round"] == self.round
        if self.user is not None:
            ends = (("sender", message.sender), ("recipient", message.recipient))
            mine = [columns[end] == self.user for end, role in ends if role == USER]
            mask &= np.logical_or.reduce(mine) if mine else False
        cut = self._rows({name: column[mask] for name, column in columns.items()})
        for row in cut["rows"]:
            fields = {name: row.pop(name) for name in message.fields}
            row["fields"] = fields if row["readable"] else None
        about = {"text": message.text, "sender": message.sender, "recipient": message.recipient}
        return {
            "kind": kind,
            **about,
            "sealed_for": message.sealed_for,
            "fields": list(message.fields),
            **cut,
        }

    def _draws(self, view: View) -> dict[str, Any]:
        """Return the draws as rows: stream, party, slot, value."""
        seen, rows = 0, []
        for stream, columns in view.draws.items():
            own = self._of_user(columns, "party") if stream.startswith(f"{USER}/") else columns
            cut = self._rows(own)
            seen += cut["seen"]
            rows += [{"stream": stream} | row for row in cut["rows"]]
        return _limited(seen, rows[: self.limit])

    def _of_user(self, columns: Mapping[str, Any], name: str) -> dict[str, Any]:
        mine = slice(None) if self.user is None else columns[name] == self.user
        return {key: column[mine] for key, column in columns.items()}

    def _rows(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the first rows of a table, and how many there are."""
        values = [column[: self.limit].tolist() for column in columns.values()]
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
        return _limited(len(next(iter(columns.values()))), rows)


def _limited(seen: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"seen": seen, "shown": len(rows), "left_out": seen - len(rows), "rows": rows}


def _cuts(told: Mapping[str, Any]) -> list[str]:
    """Return what is not shown, in words."""
    missing = [told["missing"]] if told["missing"] else []
    return missing + [
        f"{part['kind']}: {part['shown']:,} of {part['seen']:,} shown; --limit for more"
        for part in told["messages"]
        if part["left_out"]
    ]


def _as_csv(told: Mapping[str, Any]) -> str:
    """Lay out all messages as one table, with the fields of all kinds; what cannot be read is empty."""
    names = list(dict.fromkeys(name for part in told["messages"] for name in part["fields"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["kind", "sender_role", "recipient_role", *_ADDRESS, "readable", *names])
    for part in told["messages"]:
        for row in part["rows"]:
            fields = row["fields"] or {}
            head = [part["kind"], part["sender"], part["recipient"], *(row[name] for name in _ADDRESS)]
            writer.writerow([*head, row["readable"], *(fields.get(name, "") for name in names)])
    return out.getvalue()


def _as_text(told: Mapping[str, Any]) -> str:
    head = f"{told['run']} ({told['protocol']}) as {told['coalition']} saw it, channels {told['channels']}"
    blocks = [[head, *([f"missing: {told['missing']}"] if told["missing"] else [])]]
    for part in told["messages"]:
        route = f"{part['kind']}, {part['sender']} to {part['recipient']}: {part['text']}"
        rows = [_message_row(part, row) for row in part["rows"]]
        blocks.append([route, *_table([*_ADDRESS, *part["fields"]], rows, part)])
    for name, title in (("inputs", "Own inputs"), ("draws", "Own draws")):
        if name in told:
            cells = [[_cell(value) for value in row.values()] for row in told[name]["rows"]]
            names = list(told[name]["rows"][0]) if cells else []
            blocks.append([title, *_table(names, cells, told[name])])
    if "unknown" in told:
        blocks.append([f"Own inputs and draws are not shown: {told['unknown']}"])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _message_row(part: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    names = {end: part[end] for end in ("sender", "recipient") if part[end] != USER}
    cells = [str(names.get(name, row[name])) for name in _ADDRESS]
    if row["fields"] is not None:
        return cells + [_cell(value) for value in row["fields"].values()]
    sealed = f"sealed, {max(row['nbytes'] - HEADER_BYTES, 0)} bytes"
    return cells + [sealed if part["sealed_for"] else "not readable"] * len(part["fields"])


def _table(names: list[str], rows: list[list[str]], part: Mapping[str, Any]) -> list[str]:
    from p2p_sim.report import console

    if not rows:
        return ["none"]
    right = [all(row[i].lstrip("-").isdigit() for row in rows) for i in range(len(names))]
    widths = [max(len(row[i]) for row in rows) if right[i] else 0 for i in range(len(names))]
    padded = [[cell.rjust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    left = part["left_out"]
    said = f"{part['shown']:,} of {part['seen']:,} shown" + (
        f"; --limit shows the other {left:,}" if left else ""
    )
    return [console.table(names, padded), said]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        shown = ", ".join(map(_cell, value[:_LONGEST]))
        return f"[{shown}]" if len(value) <= _LONGEST else f"[{shown}, ... {len(value):,} values]"
    return str(value).lower() if isinstance(value, bool) else str(value)
