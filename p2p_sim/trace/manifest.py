"""What a trace says of its message kinds, as JSON values."""

from __future__ import annotations

from typing import Any

from p2p_sim.core.message import field_dtype, field_shape


def kinds_of(protocol: Any) -> dict[str, dict[str, Any]]:
    """Return, by kind, its sender and recipient role, text, sealed_for, layers, bytes on the wire, and fields.

    A field is its ``dtype`` and the ``length`` of a vector, None for a single value.
    """
    sizes = protocol.vector_lengths()
    return {
        kind: {
            "sender": message.sender,
            "recipient": message.recipient,
            "text": message.text,
            "sealed_for": message.sealed_for,
            "layers": list(message.layers),
            "nbytes": message.nbytes(sizes),
            "fields": {
                name: {
                    "dtype": field_dtype(field).name,
                    "length": next(iter(field_shape(field, sizes)), None),
                }
                for name, field in message.fields.items()
            },
        }
        for kind, message in protocol.messages().items()
    }
