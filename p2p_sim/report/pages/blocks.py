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
Facts = Sequence[tuple[str, Sequence[Any]]]


@dataclass(frozen=True)
class Section:
    """A title and what is below it."""

    title: str
    blocks: Sequence[Block]


def facts(names: Sequence[str], told: Facts, caption: str = "") -> list[Table]:
    """Return facts of runs, a value a run each, as tables; a fact that says nothing of any run is left out.

    Of one run: a line a fact.  Of several: a line a fact that is the same in all, and a line a run for what differs.
    """
    kept = [(title, values) for title, values in told if any(value not in (None, "") for value in values)]
    if len(names) == 1:
        return [Table(["", names[0]], [[title, *values] for title, values in kept], caption)] if kept else []
    same = [[title, values[0]] for title, values in kept if all(value == values[0] for value in values)]
    other = [(title, values) for title, values in kept if any(value != values[0] for value in values)]
    start = f"{caption}, what" if caption else "What"
    tables = [Table(["", "in all runs"], same, f"{start} is the same")] if same else []
    return [*tables, by_run(names, other, f"{start} differs")] if other else tables


def by_run(names: Sequence[str], told: Facts, caption: str) -> Table:
    """Return facts of runs as a table with a line a run."""
    rows = [[name, *(values[i] for _, values in told)] for i, name in enumerate(names)]
    return Table(["run", *(title for title, _ in told)], rows, caption)


def together(
    runs: Sequence[Mapping[str, Any]], head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str
) -> Table:
    """Return rows that begin with their run's name; the name is left out where there is one run."""
    if len(runs) == 1:
        return Table(head, [row[1:] for row in rows], caption)
    return Table(["run", *head], rows, caption)


def whose(run: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    """Return whose table it is, where there are several runs."""
    return f"{run['run']}: " if len(runs) > 1 else ""
