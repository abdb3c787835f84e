"""What pages are made of, whatever their format: sections of tables, figures, words and code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under a head.  Numbers are laid out by ``layout.cell``; ``notes``: numbered from 1, below the table."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A picture: a whole SVG element, and what it shows in words."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Words:
    """A paragraph; ``warning``: whether it must not be overlooked."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Code:
    """Lines to run as they stand."""

    text: str


Block = Table | Figure | Words | Code


@dataclass(frozen=True)
class Section:
    """A title and what is below it."""

    title: str
    blocks: Sequence[Block]


def beside(names: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], caption: str = "") -> Table:
    """Return a table with a column a run; a row that says nothing of any run is left out."""
    kept = [[title, *values] for title, values in rows if any(value not in (None, "") for value in values)]
    return Table(["", *names], kept, caption)


def whose(run: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    """Return whose table it is, where there are several runs."""
    return f"{run['run']}: " if len(runs) > 1 else ""
