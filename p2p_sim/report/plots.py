"""Plots of a report: one style, reproducible to the byte, names that do not cover each other, and the numbers shown."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

from p2p_sim.render import text_labels
from p2p_sim.report import matplotlib_settings
from p2p_sim.report.curves import COLOURS

Document = Mapping[str, Any]
Points = list[tuple[float, float, str]]
"""Points of a panel (x, y), and their names."""

INK = "#1b1b1b"
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
_WIDTH = 7.6  # inches
DOTS = 200
"""Of a PNG, per inch."""

_STYLE = {
    "svg.hashsalt": "p2p-sim", "svg.fonttype": "none", "text.parse_math": False, "font.size": 9,
    "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.edgecolor": INK, "hatch.linewidth": 0.8, "axes.formatter.useoffset": False,
}  # fmt: skip
_LONGEST = 28  # letters of a name beside an axis


@dataclass(frozen=True, eq=False)
class Plot:
    """A plot with what it shows as a table.

    ``name``: of its files, and in a page; ``drawn``: the figure, perhaps not laid out; ``description``: text for
    readers who cannot see it; ``columns``: names of the table's columns, with their units; ``rows``: unrounded.
    """

    name: str
    drawn: Any
    description: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @functools.cached_property
    def figure(self) -> Any:
        """The figure, laid out when it is first asked for: Markdown shows the table alone."""
        with style():
            settle(self.drawn)
        return self.drawn

    def svg(self) -> str:
        """Return an SVG element that can stand in a page beside others: its names begin with ``picture-``."""
        out, figure = io.StringIO(), self.figure
        with style():
            figure.savefig(out, format="svg", metadata={"Date": None})
        text = out.getvalue()
        text = text[text.index("<svg") :]
        text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>picture-{self.name}-", text)
        text = text.replace("*{", f"#picture-{self.name} *{{")
        safe = escape("".join(c if c.isprintable() else "�" for c in self.description))
        start = f'<svg id="picture-{self.name}" role="img" aria-label="{safe}" '
        return text.replace("<svg ", start, 1)

    def png(self) -> bytes:
        """Return the plot as a PNG file."""
        out, figure = io.BytesIO(), self.figure
        with style():
            figure.savefig(out, format="png", dpi=DOTS, metadata={"Software": None})
        return out.getvalue()


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Draw in the style of reports, and without warnings of missing glyphs."""
    with matplotlib_settings.shipped(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have it, or nobody's
        yield


def styled(draw: Callable[[Sequence[Document]], Plot]) -> Callable[[Sequence[Document]], Plot]:
    """Make a function draw in the style of reports."""

    @functools.wraps(draw)
    def drawn(runs: Sequence[Document]) -> Plot:
        with style():
            return draw(runs)

    return drawn


def short(text: str, longest: int = _LONGEST) -> str:
    """Return text that fits beside an axis: long text is cut in the middle, since paths differ at their ends."""
    whole = text_labels.clean(text, len(text))
    start = longest // 3
    return whole if len(whole) <= longest else f"{whole[:start]}…{whole[start + 1 - longest :]}"


def panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Any, Any]:
    """Return a figure, and its axes: an array of shape (rows, columns)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)  # which measures texts
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def name_lines(axes: Any, names: Sequence[str]) -> None:
    """Give an axis one line for each name, the first on top."""
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(True, axis="x", alpha=0.35)


def filling(i: int) -> dict[str, Any]:
    """Return colour and hatch of the i-th of several areas; 49 are different."""
    return {
        "color": COLOURS[i % 7], "hatch": _HATCHES[(i + i // 7) % 7], "edgecolor": "white", "linewidth": 0,
    }  # fmt: skip


def label_point(axes: Any, text: str, x: float, y: float, right: float = 8) -> Any:
    """Write text beside a point, and return it; ``right``: the distance in points."""
    return axes.annotate(
        text, (x, y), (right, 0), textcoords="offset points", va="center", fontsize=8, color=INK
    )


def label_line_end(axes: Any, text: str, y: float) -> Any:
    """Write text at the end of a line, and return it."""
    return axes.annotate(
        text, (1, y), (-2, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right",
        va="center", fontsize=8, color=INK,
    )  # fmt: skip


_GAP = 10  # points between marks and what is written at the end of their line
_MOST_ROOM = 0.7  # of a panel's width that such texts get


def make_room(figure: Any, axes: Any, labels: Sequence[Any]) -> None:
    """Move the right end of an axis out, so that labels at the end of its lines, or beside it, have a place there."""
    figure.draw_without_rendering()
    gap = _GAP * figure.dpi / 72
    share = max([0.0, *((label.get_window_extent().width + gap) / axes.bbox.width for label in labels)])
    left, right = axes.get_xlim()
    axes.set_xlim(left, left + (right - left) / (1 - min(share, _MOST_ROOM)))


_COLUMNS = 4
_FULL = 0.94  # of a figure's width that a legend may take: the reader's letters may be wider


def legend(figure: Any, handles: Sequence[Any] | None = None) -> None:
    """Put a legend below a figure, in as many columns as fit."""
    given = {} if handles is None else {"handles": handles}
    for columns in range(_COLUMNS, 0, -1):
        made = figure.legend(loc="outside lower center", ncols=columns, fontsize=8, frameon=False, **given)
        if columns == 1 or made.get_window_extent().width <= _FULL * figure.bbox.width:
            return
        made.remove()


_TRIES = 12
_WIDER = 0.12  # by which letters of the reader's fonts may be wider than those that are measured here


def settle(figure: Any) -> None:
    """Lay a figure out for good: titles as wide as their panels, and so few ticks that their labels stand apart."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        return
    figure.draw_without_rendering()
    if sum(_fitted(axes) for axes in figure.axes):
        figure.draw_without_rendering()
    for _ in range(_TRIES):
        thinned = [_thinned(axis) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
        if not any(thinned):
            break
        figure.draw_without_rendering()
    figure.set_layout_engine("none")


def _fitted(axes: Any) -> bool:
    """Break a title that is wider than its panel into lines; return whether it was."""
    text, width = axes.get_title(), axes.title.get_window_extent().width * (1 + _WIDER)
    if text and width > axes.bbox.width:
        letters = max(8, int(len(text) * axes.bbox.width / width))
        axes.set_title("\n".join(textwrap.wrap(text, letters)), fontsize=axes.title.get_fontsize())
        return True
    return False


def _thinned(axis: Any) -> bool:
    """Take a tick away if labels of the axis touch each other; return whether there were such."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if not isinstance(locator, MaxNLocator) or not axis.axes.get_visible():
        return False
    low, high = sorted(axis.get_view_interval())
    ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = [_wider(tick.label1.get_window_extent()) for tick in ticks if tick.label1.get_visible()]
    if not any(one.overlaps(other) for one, other in pairwise(boxes)):
        return False
    axis.set_major_locator(MaxNLocator(max(1, len(ticks) - 2), steps=[1, 2, 2.5, 5, 10], min_n_ticks=1))
    return True


def _wider(box: Any) -> Any:
    return box.expanded(1 + _WIDER, 1)


_NEAR = 0.07  # of a panel, within which points share one name
_DISTANCES = (6, 16, 28)  # points from a point to its name
_BY_LINE = 10  # from here on, a line leads to the name
_WAYS = ((1, -1), (1, 1), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))
_LINE_LETTERS = 24
_EDGE = 1.0  # points that names keep from the edge of their panel


def name_points(figure: Any, panels: Sequence[tuple[Any, Points]]) -> None:
    """Write a name beside each point of some panels, in a figure that is otherwise drawn.

    Points that are close share a name, and so do those whose names find no place that is free of other names.
    """
    settle(figure)
    for axes, points in panels:
        crowds = _crowds(axes, points)
        while (places := _places(axes, [_crowd(points, each) for each in crowds])) is None:
            crowds = _merged(axes, points, crowds)
        for place in places:
            place.write(axes)


def _shares(axes: Any, points: Points) -> list[Any]:
    """Return points as shares of a panel's width and height."""
    shares = axes.transData + axes.transAxes.inverted()
    return [shares.transform((x, y)) for x, y, _ in points]


def _crowds(axes: Any, points: Points) -> list[list[int]]:
    """Return the places of points in a list, those together that are close to each other."""
    crowds: list[list[int]] = []
    places = _shares(axes, points)
    for i in range(len(points)):
        near = [crowd for crowd in crowds if all(abs(places[i] - places[j]).max() < _NEAR for j in crowd)]
        if near:
            near[0].append(i)
        else:
            crowds.append([i])
    return crowds


def _crowd(points: Points, crowd: Sequence[int]) -> tuple[float, float, str]:
    """Return where the name of a crowd belongs, and the name."""
    x, y, _ = max(points[i] for i in crowd)
    return x, y, textwrap.fill(", ".join(points[i][2] for i in crowd), _LINE_LETTERS)


def _merged(axes: Any, points: Points, crowds: Sequence[list[int]]) -> list[list[int]]:
    """Make one crowd of the two that are closest to each other."""
    places = _shares(axes, points)
    middles = [sum(places[i] for i in crowd) / len(crowd) for crowd in crowds]
    pairs = [(i, j) for j in range(len(crowds)) for i in range(j)]
    one, other = min(pairs, key=lambda pair: float(abs(middles[pair[0]] - middles[pair[1]]).max()))
    both = sorted([*crowds[one], *crowds[other]])
    return [both if i == one else crowd for i, crowd in enumerate(crowds) if i != other]


@dataclass(frozen=True)
class _Place:
    """A name, its point, and where it stands from there, in points; ``way``: to the right and up."""

    text: str
    point: tuple[float, float]
    way: tuple[int, int]
    distance: float

    def write(self, axes: Any, line: bool = True) -> Any:
        """Write the name, with a line to it if it is far away; ``line``: whether it may have one."""
        sides = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
        way = {"arrowstyle": "-", "lw": 0.5, "color": "#767676", "shrinkA": 0, "shrinkB": 3}
        return axes.annotate(
            self.text, self.point, (self.way[0] * self.distance, self.way[1] * self.distance),
            textcoords="offset points", ha=sides[self.way[0]][0], va=sides[self.way[1]][1], fontsize=8, color=INK,
            arrowprops=way if line and self.distance > _BY_LINE else None, annotation_clip=False,
        )  # fmt: skip


def _places(axes: Any, names: Sequence[tuple[float, float, str]]) -> list[_Place] | None:
    """Return a place for each name, free of other names and of marks as far as can be; None if one finds none."""
    marks = _marks(axes)
    inside = axes.bbox.padded(-_EDGE)
    taken: list[Any] = []
    found: list[_Place] = []
    for x, y, text in names:
        free = [
            (sum(box.contains(*mark) for mark in marks), number, place, box)
            for number, (place, box) in enumerate(_tried(axes, x, y, text))
            if inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
            and not any(box.overlaps(other) for other in taken)
        ]  # fmt: skip
        if free:
            _, _, place, box = min(free, key=lambda one: one[:2])
        elif len(names) == 1:  # of so many points that they are only in the table
            return []
        else:
            return None
        taken.append(box)
        found.append(place)
    return found


def _tried(axes: Any, x: float, y: float, text: str) -> Iterator[tuple[_Place, Any]]:
    """Yield places for a name, the best first, with the box that it takes there."""
    for distance in _DISTANCES:
        for way in _WAYS:
            place = _Place(text, (x, y), way, distance)
            written = place.write(axes, line=False)  # only the text takes room
            yield place, _wider(written.get_window_extent())
            written.remove()


def _marks(axes: Any) -> list[Any]:
    """Return where marks of a panel are, in pixels."""
    lines = [line for line in axes.lines if line.get_marker() not in ("", " ", "None", None)]
    return [mark for line in lines for mark in line.get_transform().transform(line.get_xydata())]
