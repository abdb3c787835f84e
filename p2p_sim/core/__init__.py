"""The engine: populations, messages, keyed draws and rounds.  Imports numpy and nothing heavier.

These are the names a protocol needs.
"""

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
