"""A report as Markdown: the tables and words of the page, without its figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from p2p_sim.report.pages.blocks import Block, Code, Figure, Section, Table
from p2p_sim.report.pages.words import cell


def markdown(title: str, opening: Sequence[Block], sections: Sequence[Section]) -> str:
    """Return the page."""
    parts = [f"# {_text(title)}", *map(_block, _told(opening))]
    for section in sections:
        parts += [
            f"## {section.title}",
            *map(_block, _told(section.blocks)),
        ]
    return "\n\n".join(parts) + "\n"


def _told(blocks: Sequence[Block]) -> list[Block]:
    """Return what can be told without figures."""
    return [block for block in blocks if not isinstance(block, Figure)]


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    assert not isinstance(block, Figure)
    if isinstance(block, Code):
        code = "".join(c if c.isprintable() or c == "\n" else "�" for c in block.text)
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", code))])
        return f"{fence}\n{code}\n{fence}"
    return f"**{_text(block.text)}**" if block.warning else _text(block.text)


def _table(table: Table) -> str:
    lines = [_line(table.head), _line(["---"] * len(table.head), plain=True)]
    lines += [_line(row) for row in table.rows]
    above = [f"**{_text(table.caption)}**", ""] if table.caption else []
    notes = ["", *(f"{i}. {_text(note)}" for i, note in enumerate(table.notes, 1))] if table.notes else []
    return "\n".join([*above, *lines, *notes])


def _line(cells: Sequence[Any], plain: bool = False) -> str:
    shown = [each if plain else _inline(cell(each)) for each in cells]
    return f"| {' | '.join(shown)} |"


def _text(text: str) -> str:
    """Return text on one line, without anything that Markdown or HTML gives a meaning."""
    return re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", _inline(text))


def _inline(text: str) -> str:
    """Return such text where no line starts with it."""
    words = " ".join(text.split())
    safe = "".join(c if c.isprintable() else "�" for c in words).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|~#>$])", r"\\\1", safe)
