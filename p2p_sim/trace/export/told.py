"""What an export tells of one message's fields: what is sealed, or cannot be read, is named and not shown."""

from __future__ import annotations

from p2p_sim.trace.diagram import labels
from p2p_sim.trace.slices import Event, Slice


def fields(part: Slice, event: Event) -> dict[str, str]:
    """Return the fields of a message as text, by name."""
    sealed = part.sealed[event.kind]
    names = map(labels.clean, part.fields(event.kind))
    viewed = "readable" in part.kinds[event.kind]
    if event.fields is None or (sealed and not viewed):
        return dict.fromkeys(names, f"sealed for {labels.clean(sealed)}" if sealed else "not readable")
    return dict(zip(names, map(labels.value, event.fields.values()), strict=True))
