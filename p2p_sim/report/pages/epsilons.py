"""The figure of privacy: the epsilon of every view, its basis told by the mark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report.pages import drawing
from p2p_sim.report.pages.words import epsilon
from p2p_sim.report.plots import COLOURS

Document = Mapping[str, Any]

MARKS = {
    "exact": ("o", COLOURS[0], "exact"),
    "upper": ("<", COLOURS[1], "upper: at most"),
    "lower": (">", COLOURS[2], "lower: at least"),
}
"""Mark, colour and words of a basis."""

_OTHER = ("s", COLOURS[3])
_ACROSS = 3  # panels beside each other
_LINE, _AROUND = 0.22, 0.75  # inches of a run, and around a panel


def mark(basis: str) -> tuple[str, str, str]:
    """Return the mark, colour and words of a basis."""
    return MARKS.get(basis, (*_OTHER, basis))


def views(runs: Sequence[Document], least: int) -> list[str]:
    """Return the views that have a figure in so many runs at least."""
    rows = [row["view"] for run in runs for row in run["privacy"]["views"] if row["exact"]]
    return [view for view in dict.fromkeys(rows) if rows.count(view) >= least]


def drawn(runs: Sequence[Document]) -> list[str]:
    """Return the views that are drawn: those that can be compared, or all if none can."""
    return views(runs, min(2, len(runs))) or views(runs, 1)


def audit_of(run: Document, view: str) -> Mapping[str, Any] | None:
    """Return the audit of a view through the channels of the account, if the run keeps one."""
    for row in run["attacks"]:
        if row["view"] == view and row["channels"] == run["privacy"]["channels"]:
            found: Mapping[str, Any] = row
            return found
    return None


def who(view: str) -> str:
    """Return who looks, in as few words as a heading needs."""
    return view.removeprefix("user: ")


@drawing.styled
def privacy(runs: Sequence[Document]) -> str:
    """Draw the epsilon of every view that has one: of one run a line a view, of several a panel a view."""
    shown = drawn(runs)
    edge = 1.1 * max([0.0, *_finite(runs)]) or 1.0
    if len(runs) == 1:
        figure, grid = drawing.panels(1, 1, _AROUND + 0.3 * len(shown))
        axes = grid[0, 0]
        rows = {row["view"]: row for row in runs[0]["privacy"]["views"]}
        for y, view in enumerate(shown):
            _point(axes, runs[0], rows[view], y, edge)
        drawing.lines(axes, [who(view) for view in shown])
        axes.set(xlabel="ε (nats)", xlim=(-0.03 * edge, 1.15 * edge))
    else:
        figure = _panels(runs, shown, edge)
    drawing.legend(figure, _key(runs))
    return drawing.svg(figure, "privacy", f"ε by view, with its basis: {_told(runs)}")


def _panels(runs: Sequence[Document], shown: Sequence[str], edge: float) -> Any:
    """Draw a panel a view, a line a run."""
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)
    height = down * (_AROUND + _LINE * len(runs)) + 0.3
    figure, grid = drawing.panels(down, across, height, sharex=True, sharey=True)
    for view, axes in zip(shown, grid.flat, strict=False):
        for y, run in enumerate(runs):
            for row in run["privacy"]["views"]:
                if row["view"] == view and row["exact"]:
                    _point(axes, run, row, y, edge)
        drawing.lines(axes, [run["run"] for run in runs])
        axes.set_title(drawing.short(who(view)), fontsize=9)
        axes.set_xlim(-0.06 * edge, 1.45 * edge)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("ε (nats)")
    return figure


def _point(axes: Any, run: Document, row: Mapping[str, Any], y: int, edge: float) -> None:
    """Draw the figure of one view of one run, what theorems promise of it, and what was measured."""
    exact = row["exact"]
    low, value, high = (min(float(exact[name]), edge) for name in ("lower", "epsilon", "upper"))
    shape, colour, _ = mark(exact["basis"])
    ends = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
    axes.errorbar([value], [y], xerr=ends, fmt=shape, color=colour, capsize=3, ms=6)
    for bound in _promised(row):
        axes.plot([bound], [y], "D", mfc="none", mec=drawing.INK, ms=10)
    measured = _measured(run, row["view"])
    if measured is not None:
        axes.plot([min(measured, edge)], [y], "x", color=COLOURS[3], ms=7, mew=2)
    drawing.say_last(axes, epsilon(exact), y)


def _promised(row: Mapping[str, Any]) -> list[float]:
    """Return the epsilons of theorems that hold and say something."""
    told = [float(found["epsilon"]) for found in row["theorems"] if found["holds"]]
    return [bound for bound in told if math.isfinite(bound)]


def _measured(run: Document, view: str) -> float | None:
    """Return the bound that was measured, if it holds at the delta of the account: it does at every smaller delta."""
    row = audit_of(run, view)
    if row is None or row["kind"] != "delta" or row["at"] < run["privacy"]["delta"]:
        return None
    return float(row["lower"])


def _finite(runs: Sequence[Document]) -> list[float]:
    """Return every epsilon that has a place on an axis."""
    rows = [row for run in runs for row in run["privacy"]["views"] if row["exact"]]
    ends = [float(row["exact"]["upper"]) for row in rows]
    return [end for end in ends if math.isfinite(end)] + [bound for row in rows for bound in _promised(row)]


def _key(runs: Sequence[Document]) -> list[Any]:
    """Return what the legend shows: each basis that is drawn."""
    from matplotlib.lines import Line2D

    rows = [row for run in runs for row in run["privacy"]["views"] if row["exact"]]
    kinds = [mark(basis) for basis in dict.fromkeys(row["exact"]["basis"] for row in rows)]
    told = [Line2D([], [], ls="", marker=shape, color=colour, label=text) for shape, colour, text in kinds]
    if any(found["holds"] for row in rows for found in row["theorems"]):
        told.append(
            Line2D(
                [], [], ls="", marker="D", mfc="none", mec=drawing.INK, ms=8, label="promised by a theorem"
            )
        )
    if any(_measured(run, row["view"]) is not None for run in runs for row in run["privacy"]["views"]):
        label = "measured: at least"
        told.append(Line2D([], [], ls="", marker="x", color=COLOURS[3], ms=7, mew=2, label=label))
    return told


def _told(runs: Sequence[Document]) -> str:
    if len(runs) > 1:
        return f"{len(runs)} runs; the tables below have the numbers"
    rows = [row for row in runs[0]["privacy"]["views"] if row["exact"]]
    return "; ".join(f"{row['view']} {epsilon(row['exact'])} {row['exact']['basis']}" for row in rows)
