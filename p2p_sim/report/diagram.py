"""Who sent what to whom, round by round: the sequence diagram of a report."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import Message
from p2p_sim.render import svg as scene_svg
from p2p_sim.render.scene import READ, Scene, overview
from p2p_sim.report.plots import DOTS, INK, style

_COLUMNS = (
    "run", "round", "kind", "sender", "recipient", "sealed_for", "delivered_messages", "travelled_messages",
    "wire_bytes",
)  # fmt: skip
_NAMES = ("round", "kind", "sender", "recipient", "sealed_for", "messages", "travelled", "bytes")


@dataclass(frozen=True, eq=False)
class Diagram:
    """A sequence diagram with what it shows as a table; names as of ``plots.Plot``."""

    name: str
    scene: Scene
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def svg(self) -> str:
        """Return an SVG element that can stand in a page beside others."""
        return scene_svg.svg(self.scene, dark=False)

    def png(self) -> bytes:
        """Return the diagram as a PNG file."""
        out = io.BytesIO()
        with style():
            _figure(self.scene).savefig(out, format="png", dpi=DOTS, metadata={"Software": None})
        return out.getvalue()


def sequence(run: Mapping[str, Any], name: str) -> Diagram:
    """Return the diagram of a run's counts, one lane a role."""
    kinds = {}
    for row in run["messages"]:
        message = Message(row["sender"], row["recipient"], row["text"], sealed_for=row["sealed_for"])
        message.kind = row["kind"]
        kinds[row["kind"]] = message
    counts = {
        (row["kind"], row["round"]): Count(row["messages"], row["travelled"], row["bytes"])
        for row in run["messages"]
    }
    drawn = overview(kinds, counts, run["users"], f"{run['run']}: {run['protocol']}")
    rows = [[run["run"], *(row[what] for what in _NAMES)] for row in run["messages"]]
    return Diagram(name, drawn, _COLUMNS, rows)


_PIXELS = 96  # of an SVG, per inch
_HEAD, _ROW, _LINE = 44.0, 32.0, 18.0
_LETTERS = 84


def _figure(scene: Scene) -> Any:
    """Draw a scene with matplotlib, in the units and colours of its SVG."""
    from matplotlib.figure import Figure

    places = scene_svg.lane_places(scene)
    beyond = max((places[drawn.recipient] + 46 + scene_svg.breadth(drawn) for drawn in scene.arrows
                  if drawn.sender == drawn.recipient), default=0.0)  # fmt: skip
    left, right = -75.0, max([places[-1] + 75.0 if places else 75.0, beyond, _LETTERS * 7.3 - 60])
    title = textwrap.wrap(scene.title, _LETTERS)
    words = [
        (kind if not i else "", line)
        for kind, sentence in scene.kinds.items()
        for i, line in enumerate(textwrap.wrap(f"{kind}  {sentence}", _LETTERS))
    ]
    rounds = [
        (number, list(arrows)) for number, arrows in groupby(scene.arrows, key=lambda drawn: drawn.round)
    ]
    top = _LINE * len(title) + 8
    bottom = top + _HEAD + sum(30 + _ROW * len(arrows) for _, arrows in rounds)
    figure = Figure(figsize=((right - left) / _PIXELS, (bottom + 12 + _LINE * len(words) + 12) / _PIXELS))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(bottom + 12 + _LINE * len(words) + 12, 0))
    axes.set_axis_off()
    axes.vlines(places, top + _HEAD - 4, bottom, "#999999", lw=0.8, zorder=1)
    _write(axes, left + 12, top - 10, "\n".join(title), weight="bold", va="bottom", fontsize=10)
    for x, lane in zip(places, scene.lanes, strict=True):
        many = f"\n{lane.parties:,} users" if lane.parties > 1 else ""
        box = {"boxstyle": "square" if lane.server else "round", "fc": "white", "ec": INK, "lw": 0.8}
        _write(axes, x, top + _HEAD / 2, lane.name + many, ha="center", va="center", bbox=box)
    y = top + _HEAD
    for i, (number, arrows) in enumerate(rounds):
        high = 30 + _ROW * len(arrows)
        if i % 2 == 0:
            axes.axhspan(y, y + high, color=INK, alpha=0.06, lw=0, zorder=0)
        _write(axes, left + 12, y + 14, f"round {number}", weight="bold", va="center")
        for row, drawn in enumerate(arrows):
            _arrow(axes, scene, drawn, places, y + 30 + _ROW * row + 18)
        y += high
    for i, (kind, line) in enumerate(words):
        at = bottom + 12 + _LINE * (i + 0.5)
        if kind:
            axes.plot([left + 12, left + 36], [at, at], color=_colour(scene, kind), lw=1.2)
        _write(axes, left + 44, at, line, va="center")
    return figure


def _arrow(axes: Any, scene: Scene, drawn: Any, places: Sequence[float], y: float) -> None:
    """Draw an arrow with its text above it or, from a lane to itself, beside it."""
    start, end = places[drawn.sender], places[drawn.recipient]
    text = " ".join(part for part in (drawn.kind, drawn.hidden, drawn.detail) if part)
    tip = {
        "arrowstyle": "-|>", "color": _colour(scene, drawn.kind), "lw": 1.2, "shrinkA": 0, "shrinkB": 0,
        "ls": "-" if drawn.sight == READ else (0, (2, 2)),
    }  # fmt: skip
    if start == end:
        axes.plot(
            [start, start + 30, start + 30], [y - 8, y - 8, y + 6], color=tip["color"], lw=1.2, ls=tip["ls"]
        )
        axes.annotate("", (start, y + 6), (start + 30, y + 6), arrowprops=tip)
        _write(axes, start + 38, y, text, va="center")
        return
    axes.annotate("", (end, y + 6), (start, y + 6), arrowprops=tip)
    box = {"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.7}
    _write(axes, (start + end) / 2, y + 2, text, ha="center", va="bottom", bbox=box)


def _write(axes: Any, x: float, y: float, text: str, **how: Any) -> None:
    axes.text(x, y, text, **{"fontsize": 8, "color": INK, "family": "monospace", **how})


def _colour(scene: Scene, kind: str) -> str:
    """Return the colour of a kind, as in the SVG on light paper."""
    return scene_svg.COLOURS[list(scene.kinds).index(kind) % len(scene_svg.COLOURS)][0]
