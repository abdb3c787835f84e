"""How results show themselves: ``repr`` in one line, print and IPython in a few, a notebook in a table."""

from __future__ import annotations

import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from typing import Any

Rows = Sequence[tuple[str, str]]

_WIDTH = 100
_LEFT = "text-align: left"  # notebooks align tables right; no colour, so that light and dark themes both do


class Summary(ABC):
    """A result that tells what it is in a few rows; ``repr`` is its own, one line that computes nothing."""

    def __init_subclass__(cls) -> None:
        """Give each class the method itself: to an inherited one IPython prefers the class's own ``repr``."""
        super().__init_subclass__()
        cls._repr_pretty_ = Summary._repr_pretty_  # type: ignore[method-assign]

    @abstractmethod
    def summary(self) -> tuple[str, Rows]:
        """Return a title, and about ten rows at most of (name, text); texts are whole, and may be computed."""

    def picture(self) -> str:
        """Return an SVG element to show below the table in a notebook, see ``result_picture``; "" for none."""
        return ""

    def __str__(self) -> str:
        title, rows = self.summary()
        wide = max((len(name) for name, _ in rows), default=0)
        return "\n".join(
            [visible(title), *(_line(visible(name), visible(text), wide) for name, text in rows)]
        )

    def _repr_html_(self) -> str:
        title, rows = self.summary()
        lines = "".join(
            f'<tr><th scope="row" style="{_LEFT}; vertical-align: top; white-space: nowrap">{_safe(name)}</th>'
            f'<td style="{_LEFT}">{_safe(text)}</td></tr>'
            for name, text in rows
        )
        return (
            f"<div><strong>{_safe(title)}</strong><table><tbody>{lines}</tbody></table>{self.picture()}</div>"
        )

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Print the lines at IPython's prompt."""
        printer.text(str(self))


def visible(text: str) -> str:
    """Escape what a terminal would interpret: control characters, changes of direction, line ends."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, what: str) -> str:
    """Return a number with the plural of what is counted: ``1 user``, ``2,000 users``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def down(value: float) -> str:
    """Return a lower end with four digits, rounded down, so that it holds as printed."""
    return _rounded(value, ROUND_FLOOR)


def up(value: float) -> str:
    """Return an upper end with four digits, rounded up, so that it holds as printed."""
    return _rounded(value, ROUND_CEILING)


def settled(value: float) -> Decimal:
    """Return a finite number to 13 digits: what is left beyond is the rounding of floats, not part of a figure.

    So 1 + 3e-15, computed for 1, is not rounded up to 1.001; an end that is printed holds to 5e-13 of itself.
    """
    return Context(prec=13).create_decimal(repr(float(value)))


def _rounded(value: float, way: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    return f"{float(Context(prec=4, rounding=way).create_decimal(settled(value))):.4g}"


def _safe(text: str) -> str:
    return escape(visible(text))


def _line(name: str, text: str, wide: int) -> str:
    head = f"  {name.ljust(wide)}  "
    # Words are never broken: a digest, or a name, can be copied.
    return "\n".join(
        textwrap.wrap(
            text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head),
            break_long_words=False, break_on_hyphens=False,
        )
    ) or head.rstrip()  # fmt: skip
