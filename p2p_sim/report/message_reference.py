"""The page of all shipped protocols and their messages, written from what their classes declare.

``python -m p2p_sim.report.message_reference docs/api/messages.md`` writes it again.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path

from p2p_sim import catalogue
from p2p_sim.core.message import Bytes, FieldType, Message, Vector, field_dtype, fixed_point
from p2p_sim.core.protocol import Protocol
from p2p_sim.report import mechanism_list, output_files

_HEAD = """# Protocols and their messages

Every protocol that is shipped, and every message that it declares. What each one does in detail:
[writing a protocol](../protocols.md); parameters and errors: [the classes](protocols.md). What each protects from whom:
`p2p-sim mechanisms`, for a protocol of your own `p2p-sim mechanisms module:Class`.

A message that is *sealed* can be read by the named party alone; whoever carries it sees sender, recipient and size.
*Layers*: it is sealed once more for each server on the way, outermost first. A `label` is one bit where the protocol
handles two labels, otherwise one byte. Which of the messages a run has may depend on the parameters.

This page is written from the declarations by `python -m p2p_sim.report.message_reference docs/api/messages.md`.
"""


def shipped() -> list[type[Protocol]]:
    """Return the shipped protocols, in the order in which lists name them."""
    return [kind for kind in catalogue.everything() if catalogue.shipped(kind)]


def page(kinds: Sequence[type[Protocol]]) -> str:
    """Return the page in Markdown: a section for each protocol class, in the order given."""
    return _HEAD + "".join(f"\n{_section(kind)}" for kind in kinds)


def _section(kind: type[Protocol]) -> str:
    paragraphs = inspect.cleandoc(kind.__doc__ or "").split("\n\n")
    lines = [
        f"## {kind.command_name()}",
        "",
        f"`{kind.__module__}.{kind.__name__}`. {_one_line(paragraphs[0])}",
        "",
    ]
    for word in ("Assumes", "Source"):
        if text := mechanism_list.docstring_part(kind, word):
            lines += [f"*{word}:* {_escaped(text)}.", ""]
    lines += ["| message | from and to | says | carries |", "|---|---|---|---|"]
    lines += [_row(message) for message in kind.messages().values()]
    return "\n".join(lines) + "\n"


def _row(message: Message) -> str:
    fields = ", ".join(f"`{name}`: {_type(message, name)}" for name in message.fields) or "nothing"
    sealed = f"; sealed for {message.sealed_for}" if message.sealed_for else ""
    if message.layers:
        sealed += f", in layers for {', '.join(message.layers)}"
    ways = f"{message.sender} to {message.recipient}"
    return f"| {' | '.join([f'`{message.kind}`', ways, _escaped(message.text), fields + sealed])} |"


def _type(message: Message, name: str) -> str:
    if name in message.label_fields:
        return "label"
    field: FieldType = message.fields[name]
    if isinstance(field, Bytes):
        return f"{field.length} bytes"
    fixed = fixed_point(field)
    one = (
        field_dtype(field).name
        if fixed is None
        else f"numbers from {fixed.low:g} to {fixed.high:g} in steps of {fixed.resolution:g}"
    )
    if isinstance(field, Vector):
        length = f"`{field.length}`" if isinstance(field.length, str) else str(field.length)
        return f"{length} × {one}"
    return one


def _one_line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _escaped(text: str) -> str:
    """Keep what Markdown would take for markup: bars of tables, brackets of links, double quotes of code."""
    return text.replace("``", "`").replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")


def main(arguments: Sequence[str]) -> int:
    """Write the page into the file that is named; returns the exit status."""
    (place,) = arguments
    output_files.write(Path(place), page(shipped()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
