"""``p2p-sim check``."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from p2p_sim import catalogue
from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.options import EXECUTION, SYNTHETIC, Format, Json, Words, count, wants_json
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol


@app.command(
    "check",
    cls=ProtocolCommand,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim check mine:MyProtocol --strength 0.1",
)
@dataclass(frozen=True)
class CheckCommand:
    """Check that a protocol of your own gives the same bits in any number of blocks, again and in other processes."""

    words: Words = None
    users: Annotated[
        int | None, count(SYNTHETIC, "Users of the small world; default 12, or more if needed.")
    ] = None
    seed: Annotated[int, count(EXECUTION, "Seed of the runs; default 0.")] = 0
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Run the small worlds, print what was found; 1 if runs differ."""
        from p2p_sim.check import check
        from p2p_sim.cli import parameters

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.resolve(self.words)
        chosen = parameters.choose(words, offered, "check")
        with terminal.stdout_to_stderr():
            found = check(chosen.protocol, seed=self.seed, users=self.users)
        document = {"passed": found.passed, **asdict(found)}
        sys.stdout.write(terminal.as_json(document) if as_json else terminal.fitted(f"{found}\n"))
        return 0 if found.passed else 1


def quickly(protocol: Protocol) -> str:
    """Check a protocol that is not shipped in a small world; raises ProtocolError for a result that differs.

    Returns why it could not be checked, to be said once the work has succeeded: if that fails too, it says why itself.
    """
    from p2p_sim.check import quick

    return "" if catalogue.shipped(type(protocol)) else quick(protocol)


def warn_unchecked(why: str) -> None:
    """Warn of a protocol that could not be checked; ``why``: as ``quickly`` returned it, empty if it was checked."""
    if why:
        warnings.warn(f"{why}; see p2p-sim check --users", stacklevel=2)
