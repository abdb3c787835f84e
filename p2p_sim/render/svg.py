"""A scene as one self-contained SVG file without scripts, for light and dark pages."""

from __future__ import annotations

import textwrap
import unicodedata
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from xml.sax.saxutils import escape

from p2p_sim.render import text_labels
from p2p_sim.render.lanes import Lane
from p2p_sim.render.scene import READ, SEALED, STRUCK, UNSEEN, Arrow, Scene

ROW = 30.0
"""Height of an arrow with its words."""

_LETTER = 7.3  # width of a letter of 12 px, at most; some of Asia's are twice as wide
_TITLE_SCALE = 14 / 12  # how much larger the letters of a title are
_LOOP = 30.0  # how far a message to oneself goes to the right
_TIP = 8.0


@dataclass
class Canvas:
    """The marks drawn so far, their extent to the left and right, and the current height ``y``."""

    left: float
    right: float
    y: float = 0.0
    marks: list[str] = field(default_factory=list)

    def write(
        self, x: float, pieces: list[tuple[str, str]], classes: str = "pd-text", at: float = 0.5
    ) -> None:
        """Write pieces of one line at ``y``, each with a class; ``at``: the share of the line that is left of ``x``."""
        shown = [(words, kind) for words, kind in pieces if words]
        wide = width(" ".join(words for words, _ in shown)) * (
            _TITLE_SCALE if ("pd-title" in classes) else 1.0
        )
        start = x - at * wide
        self.left, self.right = min(self.left, start), max(self.right, start + wide)
        inner = " ".join(f'<tspan class="{kind}">{escape(words)}</tspan>' for words, kind in shown)
        anchor = ' text-anchor="middle"' if at else ""
        place = f'x="{number(x)}" y="{number(self.y)}"'
        self.marks.append(f'<text class="{classes}" {place}{anchor}>{inner}</text>')


def width(words: str) -> float:
    """Return an upper bound of the width of a text."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in words) * _LETTER


def number(value: float) -> str:
    """Return a coordinate as short text, the same on every machine."""
    return f"{value:.1f}".removesuffix(".0")


def pieces(arrow: Arrow) -> list[tuple[str, str]]:
    """Return the text of an arrow with classes: what cannot be read is struck out."""
    if arrow.sight == UNSEEN:
        return [(arrow.kind, "pd-struck"), (arrow.detail, "pd-struck"), ("not seen", "")]
    struck = "pd-struck" if arrow.sight == STRUCK else ""
    return [(arrow.kind, "pd-kind"), (arrow.hidden, struck), (arrow.detail, "")]


def breadth(arrow: Arrow) -> float:
    """Return an upper bound of the width of an arrow's text."""
    return width(" ".join(words for words, _ in pieces(arrow) if words))


def arrow(page: Canvas, drawn: Arrow, places: list[float], colour: str) -> None:
    """Draw an arrow below the last one, with its text above it or, from a lane to itself, beside it.

    ``colour``: the class of its kind.
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
    """Return the tooltip of an arrow."""
    known = {UNSEEN: "; not seen", STRUCK: "; seen, not read"}.get(drawn.sight, "")
    return f"{drawn.id}; {drawn.nbytes:,} bytes{known}"


PAPER, INK = ("#ffffff", "#16181d"), ("#1b1b1b", "#ececec")
"""On light and on dark pages."""

COLOURS = (("#0072b2", "#56b4e9"), ("#b34e00", "#e69f00"), ("#007a59", "#2fc79b"), ("#9e4f7e", "#d993bd"))
"""Of kinds: after Okabe and Ito, darker or lighter until they stand out from the paper; kinds beyond them are dashed.
Names of kinds stand beside their arrows, so nobody needs the colours."""

_NARROW, _WIDE, _MARGIN = 110.0, 320.0, 20.0
_LINE, _BAND = 18.0, 26.0
_LONG = 20  # arrows from which lanes are named again, in every round and below
_LETTERS = 100  # of a line of notes
_TITLE = 84  # of a line of the title, which is larger

_TONES = """.pd-paper{{fill:{paper}}}.pd-band{{fill:{ink};fill-opacity:.06}}.pd-box{{fill:{paper};stroke:{ink}}}
.pd-life{{stroke:{ink};stroke-opacity:.4}}.pd-text{{fill:{ink};stroke:{paper}}}.pd-gone{{stroke:{ink};stroke-opacity:.6}}
.pd-gone-tip{{fill:{ink};fill-opacity:.6}}"""
_FIXED = """.pd-text{font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;paint-order:stroke;\
stroke-width:3px;stroke-linejoin:round}
.pd-title{font-weight:bold;font-size:14px}.pd-kind{font-weight:bold}.pd-struck{text-decoration:line-through;stroke:none}
.pd-line{fill:none;stroke-width:1.6}.pd-4,.pd-5,.pd-6,.pd-7{stroke-dasharray:9 3}.pd-shut{stroke-dasharray:2 3}
.pd-gone{stroke-dasharray:2 4}.pd-asked{stroke-width:2.5}
@media print{:root{max-width:100%;height:auto}}"""
_KEYS = {
    SEALED: "dotted: sealed, read by whoever has the key",
    STRUCK: "dotted, struck out: seen, not read",
    UNSEEN: "grey, struck out: not seen",
}


def svg(scene: Scene, dark: bool = True) -> str:
    """Return the scene as an SVG document; ``dark``: whether it has colours for dark pages, too."""
    places = lane_places(scene)
    page = Canvas(-_NARROW / 2, (places[-1] if places else 0.0) + _NARROW / 2)
    _above(page, scene)
    _heads(page, scene, places)
    top, bands, tall = page.y, list[tuple[float, float]](), len(scene.arrows) > _LONG
    for round, arrows in groupby(scene.arrows, key=lambda drawn: drawn.round):
        start, page.y = page.y, page.y + 17
        page.write(-_NARROW / 2, [(f"round {round}", "pd-kind")], at=0.0)
        if tall and bands:
            _names(page, scene, places)
        page.y += _BAND - 17
        for drawn in arrows:
            arrow(page, drawn, places, _colour(scene, drawn.kind))
        page.y += 8
        bands.append((start, page.y - start))
    bottom = page.y
    if tall:
        page.y += 8
        _heads(page, scene, places)
    _below(page, scene)
    return _document(page, scene, places, bands, (top, bottom), _style(dark))


def lane_places(scene: Scene) -> list[float]:
    """Return the x of each lane: heads fit, and so does most text between neighbouring lanes."""
    heads = [max(map(width, _named(lane))) + 30 for lane in scene.lanes]
    gaps = [max(_NARROW, (one + other) / 2) for one, other in pairwise(heads)]
    for drawn in scene.arrows:
        left, right = sorted((drawn.sender, drawn.recipient))
        if right == left + 1:
            gaps[left] = max(gaps[left], min(breadth(drawn) + 20, _WIDE))
    return list(accumulate(gaps, initial=0.0)) if scene.lanes else []


def _named(lane: Lane) -> list[str]:
    """Return the lines of a lane's head."""
    many = [text_labels.counted(lane.parties, "user")] if lane.parties > 1 else []
    return [lane.name, *many, *([lane.opens] if lane.opens else [])]


def _above(page: Canvas, scene: Scene) -> None:
    """Write the title, the view, and the notes."""
    left = -_NARROW / 2
    for i, line in enumerate(textwrap.wrap(scene.title, _TITLE)):
        page.y += _LINE if i else 0.0
        page.write(left, [(line, "")], "pd-text pd-title", at=0.0)
    view_note = [] if scene.viewpoint is None else [f"as {scene.viewpoint} saw it"]
    for line in (piece for note in [*view_note, *scene.notes] for piece in textwrap.wrap(note, _LETTERS)):
        page.y += _LINE
        page.write(left, [(line, "")], at=0.0)
    page.y += _LINE


def _heads(page: Canvas, scene: Scene, places: list[float]) -> None:
    """Draw the names of the lanes."""
    height = max((17.0 * len(_named(lane)) + 9 for lane in scene.lanes), default=0.0)
    top = page.y
    for lane, x in zip(scene.lanes, places, strict=True):
        wide = max(map(width, _named(lane))) + 18
        round = "" if lane.server else ' rx="12"'
        box = f'x="{number(x - wide / 2)}" y="{number(top)}" width="{number(wide)}" height="{number(height)}"'
        hint = f"<title>{escape(f'{scene.command} {lane.opens}')}</title>" if lane.opens else ""
        page.marks.append(
            f'<g class="lane">{hint}<rect class="pd-box{" pd-asked" if lane.requested else ""}" {box}{round}/>'
        )
        for i, words in enumerate(_named(lane)):
            page.y = top + height / 2 + 17 * i - 8.5 * len(_named(lane)) + 13.5
            page.write(x, [(words, "" if i else "pd-kind")])
        page.marks.append("</g>")
    page.y = top + height


def _names(page: Canvas, scene: Scene, places: list[float]) -> None:
    """Name the lanes again."""
    page.y += _LINE
    for lane, x in zip(scene.lanes, places, strict=True):
        page.write(x, [(lane.name, "")])


def _below(page: Canvas, scene: Scene) -> None:
    """Write the legend: the message kinds, and the lines that are not solid."""
    page.y += 8
    for kind, sentence in scene.kinds.items():
        page.y += _LINE
        y, left = number(page.y - 4), -_NARROW / 2
        line = f"M{number(left)} {y}h24"
        page.marks.append(f'<path class="pd-line {_colour(scene, kind)}" d="{line}"/>')
        for i, words in enumerate(textwrap.wrap(sentence, _LETTERS) or [""]):
            page.y += _LINE if i else 0.0
            page.write(left + 32, [("" if i else kind, "pd-kind"), (words, "")], at=0.0)
    sights = {drawn.sight for drawn in scene.arrows}
    for words in (words for sight, words in _KEYS.items() if sight in sights):
        page.y += _LINE
        page.write(-_NARROW / 2, [(words, "")], at=0.0)


def _colour(scene: Scene, kind: str) -> str:
    """Return the class of a kind's colour."""
    return f"pd-{list(scene.kinds).index(kind) % (2 * len(COLOURS))}"


def _document(
    page: Canvas,
    scene: Scene,
    places: list[float],
    bands: list[tuple[float, float]],
    ends: tuple[float, float],
    style: str,
) -> str:
    """Return the document: background, bands, lifelines, and what was drawn."""
    left, wide = page.left - _MARGIN, page.right - page.left + 2 * _MARGIN
    top, high = -_MARGIN - 14, page.y + 2 * _MARGIN + 14
    size = f'width="{number(wide)}" height="{number(high)}"'
    back = [f'<rect class="pd-paper" x="{number(left)}" y="{number(top)}" {size}/>']
    for i, (y, height) in enumerate(bands):
        if i % 2 == 0:
            box = f'x="{number(left)}" y="{number(y)}" width="{number(wide)}" height="{number(height)}"'
            back.append(f'<rect class="pd-band" {box}/>')
    for x in places:
        line = f'x1="{number(x)}" x2="{number(x)}" y1="{number(ends[0])}" y2="{number(ends[1])}"'
        back.append(f'<line class="pd-life" {line}/>')
    description = " ".join(
        [*scene.notes, *(f"{kind}: {sentence}." for kind, sentence in scene.kinds.items())]
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} '
        f'viewBox="{number(left)} {number(top)} {number(wide)} {number(high)}">\n'
        f"<title>{escape(scene.title)}</title>\n<desc>{escape(description)}</desc>\n<style>{style}</style>\n"
    )
    return head + "\n".join([*back, *page.marks]) + "\n</svg>\n"


def _style(dark: bool) -> str:
    """Return the style sheet."""
    more = f"\n@media screen and (prefers-color-scheme:dark){{{_tones(1)}}}" if dark else ""
    return f"{_FIXED}\n{_tones(0)}{more}"


def _tones(page: int) -> str:
    """Return the colours on light paper, 0, or dark, 1."""
    kinds = [
        f".pd-{i}{{stroke:{COLOURS[i % len(COLOURS)][page]}}}.pd-{i}-tip{{fill:{COLOURS[i % len(COLOURS)][page]}}}"
        for i in range(2 * len(COLOURS))
    ]
    return _TONES.format(paper=PAPER[page], ink=INK[page]) + "".join(kinds)
