"""``p2p-sim trace export``."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.pages import Cluster, Out, Users, Who, check, tell, write
from p2p_sim.cli.trace.show import LOOK, Channels, Round, RunArgument
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal
from p2p_sim.report.options import KEPT, count, flag, text


@trace.command(
    "export",
    cls=OnceCommand,
    epilog="Example: p2p-sim trace export runs/latest --format perfetto --cluster 3 --out run.json",
)
@dataclass(frozen=True)
class Export:
    """Write messages for other programs: GraphML, Perfetto or Chrome (ui.perfetto.dev), ShiViz.

    What the run did not keep is recomputed from its seed.
    """

    run: RunArgument
    format: Annotated[
        str | None, text(KEPT, "What is written; must be given.", "graphml|perfetto|shiviz")
    ] = None
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Channels = "plain"
    limit: Annotated[int, count(LOOK, "Most messages, the first of all; default 10,000.")] = 10_000
    json: Annotated[bool, flag(KEPT, "Say on stdout as JSON what was written to --out.", "--json")] = False
    out: Out = None

    def work(self, _command: Command) -> int:
        """Write and tell."""
        from p2p_sim.report import sequence
        from p2p_sim.report.progress import Progress
        from p2p_sim.run import load
        from p2p_sim.trace.around import around
        from p2p_sim.trace.opened import whole_or_cut_off

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
