"""``p2p-sim data``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import ClusterColumn, Format, Json, Label, option, wants_json
from p2p_sim.cli.table_options import TableOptions
from p2p_sim.core.errors import InputError

_LISTED = ("name", "rows", "features", "label", "positive", "where")


@app.command(
    "data", cls=UniqueOptionsCommand, epilog="Example: p2p-sim data patients.csv --label ill --drop id"
)
@dataclass(frozen=True)
class DataCommand(TableOptions):
    """List the data sets that are known by name; or say what is understood of every column of a file, or of one set."""

    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="A file of your own, or the name of a data set.")
    ] = None
    label: Label = None
    cluster_column: ClusterColumn = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """List, or describe."""
        from p2p_sim.learning.data import datasets
        from p2p_sim.report import terminal

        as_json = wants_json(self.json, self.format)
        if self.file is not None:
            described = self._described(self.file)
            sys.stdout.write(terminal.as_json(described) if as_json else terminal.fitted(_as_text(described)))
            return 0
        given = [name for name in ("label", "cluster_column") if getattr(self, name) is not None]
        given += self.given_of_tables()
        if given:
            raise InputError(f"{option(given[0])} goes with a file: name one")
        rows = [vars(info) for info in datasets.available()]
        sys.stdout.write(terminal.as_json(rows) if as_json else terminal.table_of(_LISTED, rows))
        return 0

    def _described(self, file: str) -> dict[str, Any]:
        from p2p_sim.learning.data import datasets

        return datasets.describe(
            file,
            label=self.label,
            cluster=self.cluster_column,
            classes=self.declared(),
            reading=self.reading(),
        )


def _as_text(described: dict[str, Any]) -> str:
    from p2p_sim.report import terminal

    columns = described["columns"]
    warned = [f"warning: column {row['column']}: {row['warning']}" for row in columns if row["warning"]]
    head = ("column", "kind", "range", "missing", "distinct", "becomes")
    lines = [f"{described['source']}: {described['rows']:,} rows", *described["read_as"]]
    return (
        "; ".join(lines)
        + "\n\n"
        + terminal.table_of(head, columns)
        + "".join(
            f"{terminal.visible(line)}\n"
            for line in ([""] if warned or described["notes"] else []) + warned + described["notes"]
        )
    )
