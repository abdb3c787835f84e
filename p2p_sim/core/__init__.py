"""The engine: populations, messages, keyed draws and rounds.  Imports numpy and nothing heavier.

These are the names a protocol needs; each is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
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

_MODULES = {
    "check_flip": "argument_checks",
    "check_labels": "argument_checks",
    "check_range": "argument_checks",
    "check_whole": "argument_checks",
    "Inbox": "columns",
    "beside": "columns",
    "InputError": "errors",
    "ProtocolError": "errors",
    "exp": "exact",
    "Faults": "faults",
    "FixedPoint": "fixed_point",
    "Bytes": "message",
    "Label": "message",
    "Message": "message",
    "Vector": "message",
    "Party": "party",
    "Population": "population",
    "BagSums": "protocol",
    "Protocol": "protocol",
    "Rounds": "protocol",
}


def __getattr__(name: str) -> Any:
    """Import a name from the file that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found
