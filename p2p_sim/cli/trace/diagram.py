"""``p2p-sim trace diagram``."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from p2p_sim.cli.app import Command, OnceCommand
from p2p_sim.cli.trace.group import trace
from p2p_sim.cli.trace.pages import Cluster, Out, Users, Who, check, tell, write
from p2p_sim.cli.trace.show import LOOK, Channels, Round, RunArgument
from p2p_sim.report import terminal
from p2p_sim.report.options import KEPT, count, flag, text

_FORMS = ("svg", "mermaid", "json")


@trace.command(
    "diagram", cls=OnceCommand, epilog="Example: p2p-sim trace diagram runs/latest --user 17 --out user17.svg"
)
@dataclass(frozen=True)
class Diagram:
    """Draw who sent what to whom: one lane a party, one band a round.

    Many users are drawn together, by cluster or by role, as the picture says.  What the run did not keep is recomputed
    from its seed.
    """

    run: RunArgument
    user: Users = None
    cluster: Cluster = None
    round: Round = None
    who: Who = None
    channels: Channels = "plain"
    limit: Annotated[
        int, count(LOOK, "Most arrows; users are drawn together if there are more; default 400.")
    ] = 400
    format: Annotated[str, text(KEPT, "What is written; default svg.", "svg|mermaid|json")] = "svg"
    json: Annotated[bool, flag(KEPT, "Short for --format json: lanes and arrows.", "--json")] = False
    out: Out = None

    def work(self, _command: Command) -> int:
        """Draw and tell."""
        from p2p_sim.report import sequence
        from p2p_sim.report.progress import Progress
        from p2p_sim.run import load
        from p2p_sim.trace.opened import whole_or_cut_off

        form = "json" if self.json else self.format
        check(form, _FORMS, self.limit, self.out)
        with Progress() as progress, terminal.stdout_kept():
            progress("drawing", 0, 0)
            drawn = sequence.draw(
                whole_or_cut_off(Path(self.run), load), self.user or [], cluster_number=self.cluster, round=self.round,
                view=self.who, channels=self.channels, limit=self.limit, name=self.run,
            )  # fmt: skip
            drawn, page = _form(form, drawn)
        write(self.out, page)
        tell(drawn.notes)
        return 0


def _form(form: str, drawn: Any) -> tuple[Any, str]:
    """Return a scene, as far as a format holds it, and its text."""
    from p2p_sim.trace.diagram.mermaid import fitting, mermaid
    from p2p_sim.trace.diagram.svg import svg

    if form == "json":
        return drawn, json.dumps(dataclasses.asdict(drawn), indent=2) + "\n"
    if form == "svg":
        return drawn, svg(drawn)
    fits = fitting(drawn)
    return fits, mermaid(fits)
