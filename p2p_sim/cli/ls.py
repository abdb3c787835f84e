"""``p2p-sim ls``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import Format, Json, wants_json
from p2p_sim.report import terminal

_HEAD = ("path", "kind", "state", "what", "changed", "size")


@app.command("ls", cls=UniqueOptionsCommand, epilog="Example: p2p-sim ls runs")
@dataclass(frozen=True)
class LsCommand:
    """List the runs, sweeps and comparisons in a folder, and in its folders of these names."""

    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where to look; default here.")] = "."
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Look and print."""
        from p2p_sim.cli import kept_folders

        as_json = wants_json(self.json, self.format)
        rows = [
            {
                "path": str(each.path), "kind": each.kind, "state": each.state, "what": each.what,
                "changed": each.changed, "size": each.size if as_json else terminal.nbytes(each.size),
            }
            for each in kept_folders.inside(Path(self.folder))
        ]  # fmt: skip
        if as_json:
            sys.stdout.write(terminal.as_json(rows))
        else:
            sys.stdout.write(
                _as_text(rows)
                if rows
                else f"no runs, sweeps or comparisons in {terminal.visible(self.folder)}\n"
            )
        return 0


def _as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each folder; in a narrow terminal its path, which can be copied, and below it the rest."""
    room = terminal.columns()
    table = terminal.whole_table(_HEAD, [[row[name] for name in _HEAD] for row in rows])
    if room is None or max(map(len, table.splitlines())) <= room:
        return f"{table}\n"
    lines = []
    for row in rows:
        cells = ", ".join(terminal.cell(row[name]) for name in _HEAD[1:])
        lines += [terminal.visible(row["path"]), *terminal.folded(f"  {cells}", 4)]
    return "\n".join(lines) + "\n"
