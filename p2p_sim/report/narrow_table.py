"""A text table for a narrow terminal: cells are wrapped; if that is not enough, columns move below the others."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_GAP = "  "
_HANGING = "  "
"""The indent of the further lines of a first cell, so that one sees where a row begins."""

Lines = Sequence[Sequence[str]]


def lines(every: Lines, right: Sequence[bool], room: int) -> list[str]:
    """Return a table as lines of at most ``room`` letters.

    ``every``: its rows, the head first; ``right``: which columns are aligned right.
    """
    first, *others = (_longest_word(column) for column in zip(*every, strict=True))
    first = min(first + len(_HANGING), max(len(line[0]) for line in every))
    first = min(first, max(3 * room // 5, 1)) if others else min(first, room)
    least = [first, *(min(each, room - first - len(_GAP)) for each in others)]
    found: list[str] = []
    for columns in _parts(least, room):
        widths = _widths([[line[i] for line in every] for i in columns], [least[i] for i in columns], room)
        found += [""] if found else []
        for line in every:
            found += _row([line[i] for i in columns], widths, [right[i] for i in columns])
    return found


def _longest_word(column: Sequence[str]) -> int:
    return max([1, *(len(word) for text in column for word in text.split())])


def _parts(least: Sequence[int], room: int) -> list[list[int]]:
    """Return the columns of each part of the table; the first column begins every part."""
    parts, used = [[0]], least[0]
    for i in range(1, len(least)):
        wanted = len(_GAP) + least[i]
        if used + wanted > room and parts[-1] != [0]:
            parts.append([0])
            used = least[0]
        parts[-1].append(i)
        used += wanted
    return parts


def _widths(columns: Lines, least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns: spare room goes, letter by letter, to the column that is narrowed most."""
    natural = [max(map(len, column)) for column in columns]
    widths = list(least)
    left = room - sum(widths) - len(_GAP) * (len(widths) - 1)
    while left > 0:
        tight = max(range(len(widths)), key=lambda i: natural[i] / widths[i])
        if natural[tight] <= widths[tight]:
            break
        widths[tight] += 1
        left -= 1
    return widths


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Return one row, over as many lines as its cells need."""
    wrapped = [
        textwrap.wrap(
            text,
            width,
            break_on_hyphens=False,
            subsequent_indent=_HANGING if place == 0 and width > 2 * len(_HANGING) else "",
        )
        for place, (text, width) in enumerate(zip(cells, widths, strict=True))
    ]
    found = []
    for number in range(max([1, *map(len, wrapped)])):
        parts = [each[number] if number < len(each) else "" for each in wrapped]
        padded = [
            part.rjust(w) if r else part.ljust(w) for part, w, r in zip(parts, widths, right, strict=True)
        ]
        found.append(_GAP.join(padded).rstrip())
    return found
