"""``p2p-sim data``."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from p2p_sim.cli.app import Command, OnceCommand, app
from p2p_sim.cli.options import Format, Json, wants_json


@app.command("data", cls=OnceCommand, epilog="Example: p2p-sim data --json")
@dataclass(frozen=True)
class DataCommand:
    """List the data sets that have a name here, and where each would be loaded from.  Nothing is loaded."""

    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """List them."""
        from p2p_sim.learning.data import datasets
        from p2p_sim.report import terminal

        as_json = wants_json(self.json, self.format)
        rows = [vars(info) for info in datasets.available()]
        head = ("name", "rows", "features", "label", "positive", "where")
        sys.stdout.write(terminal.as_json(rows) if as_json else terminal.table_of(head, rows))
        return 0
