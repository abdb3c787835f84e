"""How figures of a report are drawn: SVG elements whose names are their own, the same bytes whenever they are drawn."""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from p2p_sim.report.plots import COLOURS
from p2p_sim.trace.diagram import labels

Document = Mapping[str, Any]

INK = "#1b1b1b"
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
_WIDTH = 7.6  # inches
_STYLE = {
    "svg.hashsalt": "p2p-sim", "svg.fonttype": "none", "text.parse_math": False, "font.size": 9,
    "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.edgecolor": INK, "hatch.linewidth": 0.8,
}  # fmt: skip
_NEAR = 0.07  # of the picture, within which points share a line of names
_LONGEST = 28  # letters of a name beside an axis


def styled(draw: Callable[[Sequence[Document]], str]) -> Callable[[Sequence[Document]], str]:
    """Let a function draw in the style of reports, whatever letters names have."""

    @functools.wraps(draw)
    def drawn(runs: Sequence[Document]) -> str:
        from matplotlib import rc_context

        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have it, or nobody's
            return draw(runs)

    return drawn


def short(text: str, longest: int = _LONGEST) -> str:
    """Return text that fits beside an axis: of a longer one its start and its end, by which paths differ."""
    whole = labels.clean(text, len(text))
    start = longest // 3
    return whole if len(whole) <= longest else f"{whole[:start]}…{whole[start + 1 - longest :]}"


def panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Any, Any]:
    """Return a figure, and its axes: an array of shape (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def lines(axes: Any, names: Sequence[str]) -> None:
    """Let an axis have a line for each name, the first on top."""
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(True, axis="x", alpha=0.35)


def filling(i: int) -> dict[str, Any]:
    """Return how the i-th of several areas is told from the others: 49 are different."""
    return {
        "color": COLOURS[i % 7], "hatch": _HATCHES[(i + i // 7) % 7], "edgecolor": "white", "linewidth": 0,
    }  # fmt: skip


def say(axes: Any, text: str, x: float, y: float, right: float = 8) -> None:
    """Write text beside a point, ``right``: points from it."""
    axes.annotate(text, (x, y), (right, 0), textcoords="offset points", va="center", fontsize=8, color=INK)


def say_last(axes: Any, text: str, y: float) -> None:
    """Write text at the end of a line."""
    axes.annotate(
        text, (1, y), (-2, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right",
        va="center", fontsize=8, color=INK,
    )  # fmt: skip


def name_points(axes: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Write a name beside each point (x, y, name); points that lie together share a line of names."""
    axes.autoscale_view()
    shares = axes.transData + axes.transAxes.inverted()  # of the axes' width and height
    crowds: list[list[int]] = []
    places = [shares.transform((x, y)) for x, y, _ in points]
    for i in range(len(points)):
        near = [crowd for crowd in crowds if all(abs(places[i] - places[j]).max() < _NEAR for j in crowd)]
        if near:
            near[0].append(i)
        else:
            crowds.append([i])
    for crowd in crowds:
        x, y, _ = max(points[i] for i in crowd)
        text = ", ".join(points[i][2] for i in crowd)
        axes.annotate(text, (x, y), (5, -10), textcoords="offset points", fontsize=8, color=INK)


def legend(figure: Any, handles: Sequence[Any] | None = None) -> None:
    """Put a legend below a figure."""
    given = {} if handles is None else {"handles": handles}
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False, **given)


def svg(figure: Any, name: str, told: str) -> str:
    """Return a figure as an SVG element that can stand in a page beside others: its names begin with ``picture-``.

    ``told``: what it shows, for who does not see it.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>picture-{name}-", text)
    text = text.replace("*{", f"#picture-{name} *{{")
    safe = escape("".join(c if c.isprintable() else "�" for c in told))
    return text.replace("<svg ", f'<svg id="picture-{name}" role="img" aria-label="{safe}" ', 1)
