"""Marks of an SVG diagram: words and arrows, each of which makes room for itself."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from p2p_sim.trace.diagram.scene import READ, STRUCK, UNSEEN, Arrow

ROW = 30.0
"""Height of an arrow with its words."""

_LETTER = 7.3  # width of a letter of 12 px, at most; some of Asia's are twice as wide
_TITLE = 14 / 12  # how much larger the letters of a title are
_LOOP = 30.0  # how far a message to oneself goes to the right
_TIP = 8.0


@dataclass
class Page:
    """What is drawn so far, how far it reaches to either side, and where it goes on."""

    left: float
    right: float
    y: float = 0.0
    marks: list[str] = field(default_factory=list)

    def write(
        self, x: float, pieces: list[tuple[str, str]], classes: str = "pd-text", at: float = 0.5
    ) -> None:
        """Write pieces of one line at ``y``, each with a class; ``at``: which share of the line is left of ``x``."""
        shown = [(words, kind) for words, kind in pieces if words]
        wide = width(" ".join(words for words, _ in shown)) * (_TITLE if ("pd-title" in classes) else 1.0)
        start = x - at * wide
        self.left, self.right = min(self.left, start), max(self.right, start + wide)
        inner = " ".join(f'<tspan class="{kind}">{escape(words)}</tspan>' for words, kind in shown)
        anchor = ' text-anchor="middle"' if at else ""
        place = f'x="{number(x)}" y="{number(self.y)}"'
        self.marks.append(f'<text class="{classes}" {place}{anchor}>{inner}</text>')


def width(words: str) -> float:
    """Return how wide words are at most."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words) * _LETTER


def number(value: float) -> str:
    """Return a coordinate, short and the same everywhere."""
    return f"{value:.1f}".removesuffix(".0")


def pieces(arrow: Arrow) -> list[tuple[str, str]]:
    """Return the words of an arrow with their classes: what cannot be read is struck out."""
    if arrow.sight == UNSEEN:
        return [(arrow.kind, "pd-struck"), (arrow.detail, "pd-struck"), ("not seen", "")]
    struck = "pd-struck" if arrow.sight == STRUCK else ""
    return [(arrow.kind, "pd-kind"), (arrow.hidden, struck), (arrow.detail, "")]


def breadth(arrow: Arrow) -> float:
    """Return how wide an arrow's words are at most."""
    return width(" ".join(words for words, _ in pieces(arrow) if words))


def arrow(page: Page, drawn: Arrow, places: list[float], colour: str) -> None:
    """Draw an arrow below what is there, its words above it or, from a lane to itself, beside it.

    ``colour``: classes of its kind.
    """
    start, end = places[drawn.sender], places[drawn.recipient]
    classes = "pd-gone" if drawn.sight == UNSEEN else f"{colour}{'' if drawn.sight == READ else ' pd-shut'}"
    tip = "pd-gone-tip" if drawn.sight == UNSEEN else f"{colour}-tip"
    page.marks.append(f'<g class="arrow {drawn.sight}"><title>{escape(_hint(drawn))}</title>')
    if start == end:
        page.y += 16
        page.write(start + _LOOP + 8, pieces(drawn), at=0.0)
        low, high = page.y - 10, page.y + 6
        line = f"M{number(start)} {number(low)}h{number(_LOOP)}v{number(high - low)}H{number(start + 2)}"
        page.y, way = high, -1
        page.right = max(page.right, start + _LOOP)
    else:
        page.y += 18
        page.write((start + end) / 2, pieces(drawn))
        page.y += 7
        way = 1 if end > start else -1
        line = f"M{number(start)} {number(page.y)}H{number(end - 2 * way)}"
    tail = f"l{number(-_TIP * way)} -4v8z"
    page.marks.append(f'<path class="pd-line {classes}" d="{line}"/>')
    page.marks.append(f'<path class="{tip}" d="M{number(end)} {number(page.y)}{tail}"/></g>')
    page.y += ROW - 25


def _hint(drawn: Arrow) -> str:
    """Return what a pointer that rests on an arrow is told."""
    known = {UNSEEN: "; not seen", STRUCK: "; seen, not read"}.get(drawn.sight, "")
    return f"{drawn.id}; {drawn.nbytes:,} bytes{known}"
