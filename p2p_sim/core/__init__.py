"""The engine: populations, messages, keyed draws and rounds.  Imports numpy and nothing heavier.

These are the names a protocol needs; each is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p2p_sim.core.argument_checks import check_flip, check_labels, check_range, check_whole
    from p2p_sim.core.columns import Inbox, beside
    from p2p_sim.core.errors import InputError, ProtocolError
    from p2p_sim.core.exact import exp
    from p2p_sim.core.faults import Faults
    from p2p_sim.core.fixed_point import FixedPoint
    from p2p_sim.core.message import Bytes, Label, Message, Vector
    from p2p_sim.core.party import Party
    from p2p_sim.core.population import Population
    from p2p_sim.core.protocol import BagSums, Protocol, Rounds

__all__ = [
    "BagSums", "Bytes", "Faults", "FixedPoint", "Inbox", "InputError", "Label", "Message", "Party", "Population",
    "Protocol", "ProtocolError", "Rounds", "Vector", "beside", "check_flip", "check_labels", "check_range",
    "check_whole", "exp",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name from the file that defines it."""
    match name:
        case "check_flip" | "check_labels" | "check_range" | "check_whole":
            global check_flip, check_labels, check_range, check_whole
            from p2p_sim.core.argument_checks import check_flip, check_labels, check_range, check_whole
        case "Inbox" | "beside":
            global Inbox, beside
            from p2p_sim.core.columns import Inbox, beside
        case "InputError" | "ProtocolError":
            global InputError, ProtocolError
            from p2p_sim.core.errors import InputError, ProtocolError
        case "exp":
            global exp
            from p2p_sim.core.exact import exp
        case "Faults":
            global Faults
            from p2p_sim.core.faults import Faults
        case "FixedPoint":
            global FixedPoint
            from p2p_sim.core.fixed_point import FixedPoint
        case "Bytes" | "Label" | "Message" | "Vector":
            global Bytes, Label, Message, Vector
            from p2p_sim.core.message import Bytes, Label, Message, Vector
        case "Party":
            global Party
            from p2p_sim.core.party import Party
        case "Population":
            global Population
            from p2p_sim.core.population import Population
        case "BagSums" | "Protocol" | "Rounds":
            global BagSums, Protocol, Rounds
            from p2p_sim.core.protocol import BagSums, Protocol, Rounds
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
