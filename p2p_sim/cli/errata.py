"""``p2p-sim errata``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

from p2p_sim.cli.app import Command, UniqueOptionsCommand, app
from p2p_sim.cli.options import REQUEST, Format, Json, texts, wants_json
from p2p_sim.report import terminal


@app.command("errata", cls=UniqueOptionsCommand, epilog="Example: p2p-sim errata --only clustering-theorem-1")
@dataclass(frozen=True)
class ErrataCommand:
    """Show each correction of the papers by numbers: printed, exact, corrected.  Exit status 1: one no longer shows."""

    only: Annotated[list[str] | None, texts(REQUEST, "Show this one alone, by its id.  May be repeated.")] = (
        None
    )
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Compute and print; name on stderr what no longer shows."""
        from p2p_sim import errata
        from p2p_sim.report import errata_table

        as_json = wants_json(self.json, self.format)
        chosen = [errata.named(id) for id in dict.fromkeys(self.only)] if self.only else errata.ERRATA
        rows = errata_table.found(chosen)
        if as_json:
            sys.stdout.write(terminal.as_json([errata_table.document(each) for each in rows]))
        else:
            sys.stdout.write(errata_table.as_text(rows))
        gone = [each.erratum.id for each in rows if not each.shows]
        for id in gone:
            print(f"p2p-sim errata: {id} no longer shows", file=sys.stderr)
        return 1 if gone else 0
