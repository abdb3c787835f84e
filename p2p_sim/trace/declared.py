"""Message kinds read back from a manifest: what a protocol declared, where the protocol itself is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from p2p_sim.core.message import Message, Vector


def declared(kinds: Mapping[str, Any]) -> dict[str, Message]:
    """Return the message kinds that ``manifest["kinds"]`` describes, in its order."""
    found = {}
    for kind, told in kinds.items():
        fields = {name: _field(field) for name, field in told["fields"].items()}
        message = Message(
            told["sender"], told["recipient"], told["text"], sealed_for=told["sealed_for"],
            layers=tuple(told.get("layers", ())), **fields,
        )  # fmt: skip
        message.kind = kind
        found[kind] = message
    return found


def _field(told: Mapping[str, Any]) -> Any:
    dtype = np.dtype(told["dtype"])
    return dtype if told["length"] is None else Vector(dtype, told["length"])
