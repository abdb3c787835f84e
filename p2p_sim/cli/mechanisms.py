"""``p2p-sim mechanisms``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from p2p_sim.cli.app import Command, ProtocolCommand, app
from p2p_sim.cli.options import Format, Json, Words, wants_json
from p2p_sim.core.errors import InputError
from p2p_sim.report import terminal

if TYPE_CHECKING:
    from p2p_sim.core.protocol import Protocol


class _Listing(ProtocolCommand):
    def collect_usage_pieces(self, _ctx: Any) -> list[str]:
        """Return the usage of the command."""
        return ["[PROTOCOL]", "[OPTIONS]"]


@app.command(
    "mechanisms",
    cls=_Listing,
    context_settings={"ignore_unknown_options": True},
    epilog="Example: p2p-sim mechanisms prior-response --epsilon 2 --json",
)
@dataclass(frozen=True)
class MechanismsCommand:
    """List the protocols that are known, or describe one: labels, whom to trust, which views have a law."""

    words: Words = None
    json: Json = False
    format: Format = "text"

    def execute(self, _command: Command) -> int:
        """Describe all protocols at their defaults, or the one that is named at its parameters; print."""
        from p2p_sim.cli import parameters
        from p2p_sim.report import mechanism_list

        as_json = wants_json(self.json, self.format)
        words, offered = parameters.resolve(self.words)
        with terminal.stdout_to_stderr():  # programs that are run to find their law may print
            if words:
                chosen = parameters.choose(words, offered, "mechanisms").protocol
                found = [mechanism_list.described(type(chosen), chosen)]
            else:
                found = [mechanism_list.described(kind, *_made(kind)) for kind in offered]
        sys.stdout.write(
            terminal.as_json(found) if as_json else terminal.fitted(mechanism_list.as_text(found))
        )
        return 0


def _made(kind: type[Protocol]) -> tuple[Protocol | None, str]:
    """Return a protocol with the defaults of its parameters; None, and why, if one of them has none."""
    from p2p_sim.cli import parameters

    name = kind.command_name()
    try:
        return parameters.choose([name], [kind], "mechanisms").protocol, ""
    except InputError as error:
        return None, f"{error}; name it with its parameters, p2p-sim mechanisms {name} ..."
