"""``p2p-sim trace stats``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.show import RunArgument
from p2p_sim.report import terminal
from p2p_sim.report.options import Format, Json, wants_json


@trace.command("stats", cls=OnceCommand, epilog="Example: p2p-sim trace stats runs/latest --json")
@dataclass(frozen=True)
class Stats:
    """Count messages and bytes by round and role, and how many each user sends and receives."""

    run: RunArgument
    json: Json = False
    format: Format = "text"

    def work(self, _command: Command) -> int:
        """Count and tell."""
        from p2p_sim.report import console, stats
        from p2p_sim.report.progress import Progress
        from p2p_sim.trace.opened import Opened
        from p2p_sim.trace.stats import stats as statistics

        as_json = wants_json(self.json, self.format)
        with Progress() as progress, terminal.stdout_kept():
            progress("counting", 0, 0)
            run = Opened(Path(self.run))
            told: dict[str, Any] = {"run": self.run, "protocol": run.protocol.partition(":")[2]}
            told |= stats.document(statistics(run))
        sys.stdout.write(console.as_json(told) if as_json else stats.as_text(told))
        return 0
