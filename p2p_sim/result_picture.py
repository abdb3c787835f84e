"""Small pictures under the tables that notebooks show: inline SVG in the page's own colours, no scripts, no library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _NAME, _TEXT = 560, 170, 130  # pixels: all, names left of bars, and at least texts right of them
_LETTER = 6.5  # the widest of a text's usual letters
_ROW = 20
_HEIGHT, _LEFT, _FOOT = 190, 56, 34  # of a curve, and its margins
_LONGEST = 24  # letters of a name


class Bar(NamedTuple):
    """One bar: ``value`` of at least 0, drawn in full; ``text`` beside it; ``marked``: drawn as an outline."""

    name: str
    value: float
    text: str
    marked: bool = False


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return horizontal bars, the longest as wide as there is room; infinite ones end in an arrow; "" for no rows."""
    if not rows:
        return ""
    largest = max((row.value for row in rows if math.isfinite(row.value)), default=0.0) or 1.0
    room = _WIDTH - _NAME - max(_TEXT, min(_LETTER * max(len(row.text) + 4 for row in rows), _WIDTH / 2))
    parts = []
    for i, row in enumerate(rows):
        y = i * _ROW
        wide = room if math.isinf(row.value) else round(room * row.value / largest, 1)
        fill = (
            'fill="none" stroke="currentColor"' if row.marked else 'fill="currentColor" fill-opacity="0.55"'
        )
        end = " →" if math.isinf(row.value) else ""
        parts += [
            _words(_NAME - 6, y + 14, _short(row.name), "end"),
            f'<rect x="{_NAME}" y="{y + 4}" width="{wide}" height="{_ROW - 8}" {fill}/>',
            _words(_NAME + wide + 6, y + 14, f"{row.text}{end}"),
        ]
    return _picture(title, len(rows) * _ROW + 4, parts)


def curve(title: str, points: Sequence[tuple[float, float]], across: str, up: str) -> str:
    """Return a line through (x, y) with y, above 0, on a logarithmic axis; "" where there is nothing to draw.

    ``across``, ``up``: names of the axes.
    """
    shown = [(x, y) for x, y in points if y > 0]
    if len(shown) < 2 or shown[-1][0] <= shown[0][0]:
        return ""
    first, last = shown[0][0], shown[-1][0]
    low = math.floor(math.log10(min(y for _, y in shown)))
    high = max(math.ceil(math.log10(max(y for _, y in shown))), low + 1)
    right, bottom = _WIDTH - 12, _HEIGHT - _FOOT

    def place(x: float, y: float) -> str:
        along = (x - first) / (last - first)
        above = (math.log10(y) - low) / (high - low)
        return f"{_LEFT + along * (right - _LEFT):.1f},{bottom - above * (bottom - 10):.1f}"

    line = " ".join(place(x, y) for x, y in shown)
    parts = [
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.8"/>',
        f'<path d="M{_LEFT} 10V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>',
        _words(_LEFT - 4, 16, f"1e{high}", "end"),
        _words(_LEFT - 4, bottom, f"1e{low}", "end"),
        _words(_LEFT - 4, (10 + bottom) / 2, up, "end"),
        _words(_LEFT, bottom + 14, f"{first:.3g}"),
        _words(right, bottom + 14, f"{last:.3g}", "end"),
        _words((_LEFT + right) / 2, bottom + 28, across, "middle"),
    ]
    return _picture(title, _HEIGHT, parts)


def _picture(title: str, height: int, parts: Sequence[str]) -> str:
    label = escape(_visible(title), quote=True)
    return (
        f'<svg role="img" aria-label="{label}" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="11">'
        f"<title>{label}</title>{''.join(parts)}</svg>"
    )


def _words(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="currentColor">{escape(_visible(text))}</text>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)
