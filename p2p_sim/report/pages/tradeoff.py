"""The figure that sets runs side by side: privacy against accuracy, and against bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report.pages import alike, drawing, epsilons, pictures
from p2p_sim.report.pages.words import size
from p2p_sim.report.plots import COLOURS

Document = Mapping[str, Any]
Points = list[tuple[float, float, str]]
Heights = list[tuple[float, bool]]
"""Of the marks of a run, and whether they are filled; the first is numbered and joined with those of other runs."""

VIEWS = ("learner", "user", "wire")
"""Names of the views that are set beside each other, users as they follow the protocol."""

_ALIKE, _FAR = 1.02, 20
"""Of the most bytes to the fewest: up to the first they count as the same, from the second the axis is in powers."""

_CORRECTED = "accuracy_corrected"
_GREY = "#767676"
_TRUTH = (0, (1, 2))
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def row_of(run: Document, name: str) -> Mapping[str, Any] | None:
    """Return the row of a view of a run, of users who follow the protocol; None if it has no figure."""
    for row in [] if isinstance(run["privacy"], str) else run["privacy"]["views"]:
        if row["name"] == name and row["users"] == "curious" and row["exact"]:
            found: Mapping[str, Any] = row
            return found
    return None


def bytes_each(run: Document) -> float:
    """Return the bytes on the wire for each user."""
    return float(sum(row["bytes"] for row in run["messages"]) / max(run["users"] or 1, 1))


def shown(runs: Sequence[Document]) -> list[str]:
    """Return the views of which two runs at least have a figure."""
    return [name for name in VIEWS if sum(row_of(run, name) is not None for run in runs) > 1]


@drawing.styled
def tradeoff(runs: Sequence[Document]) -> str:
    """Draw a column a view; accuracy and bytes a user against epsilon.  Points are numbered as the runs are.

    Bytes that are the same for all are not drawn, unless there is nothing else.
    """
    names = shown(runs)
    each = [bytes_each(run) for run in runs]
    trained = any(run["accuracy"] for run in runs)
    costly = not trained or max(each) > _ALIKE * min(each)
    figure, grid = drawing.panels(
        trained + costly, len(names), 0.9 + 2.1 * (trained + costly), sharex="col", sharey="row"
    )
    marked = []
    for column, name in enumerate(names):
        if trained:
            some = [run for run in runs if run["accuracy"]]
            marked.append((grid[0, column], _panel(grid[0, column], runs, some, name, _accuracies)))
            for truth in {run["accuracy"]["accuracy_true"] for run in some}:
                grid[0, column].axhline(100 * truth, color=drawing.INK, ls=_TRUTH, lw=1, zorder=1)
        if costly:
            marked.append((grid[-1, column], _panel(grid[-1, column], runs, runs, name, _bytes)))
        title = next(row["view"] for row in (row_of(run, name) for run in runs) if row)
        grid[0, column].set_title(epsilons.who(title), fontsize=9)
        grid[-1, column].set_xlabel("ε (nats)")
    if trained:
        grid[0, 0].set_ylabel("test accuracy, %")
    if costly:
        _bytes_axis(grid[-1, 0], min(each), max(each))
    for axes, points in marked:
        drawing.name_points(axes, points)
    drawing.legend(figure, _key(runs, names))
    what = [text for text, drawn in (("accuracy", trained), ("bytes a user", costly)) if drawn]
    told = f"ε against {' and '.join(what)} of {len(runs)} runs; the table above has the numbers"
    return drawing.svg(figure, "tradeoff", told)


def _accuracies(run: Document) -> Heights:
    """Return the accuracy of the model that one would use, and of the one that takes noisy labels for true."""
    found = [(run["accuracy"].get(key), key == _CORRECTED) for key in (_CORRECTED, "accuracy_private")]
    return [(100 * float(value), filled) for value, filled in found if value is not None]


def _bytes(run: Document) -> Heights:
    return [(bytes_each(run), True)]


def _panel(
    axes: Any,
    runs: Sequence[Document],
    some: Sequence[Document],
    name: str,
    heights: Callable[[Document], Heights],
) -> Points:
    """Draw the marks of every run that has a figure; runs of one protocol and data are joined in order of epsilon.

    Returns the points with their numbers.
    """
    rows = {run["run"]: row for run in some if (row := row_of(run, name)) is not None}
    values = {run: float(row["exact"]["epsilon"]) for run, row in rows.items()}
    edge = 1.15 * max([0.0, *filter(math.isfinite, values.values())]) or 1.0
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    lines: dict[tuple[int, str | None], list[tuple[float, float]]] = {}
    marks: Points = []
    for number, run in enumerate(runs, 1):
        if run["run"] in rows:
            i, x, places = protocols.index(run["protocol"]), min(values[run["run"]], edge), heights(run)
            y = places[0][0]
            infinite = math.isinf(values[run["run"]])
            shape, _, _ = epsilons.mark(rows[run["run"]]["exact"]["basis"])
            for place, filled in reversed(places):
                axes.plot(
                    [x], [place], shape, color=COLOURS[i % 7], mfc=COLOURS[i % 7] if filled else "white", ms=6
                )
            axes.vlines(x, min(places)[0], max(places)[0], COLOURS[i % 7], lw=0.8, zorder=1)
            marks.append((x, y, f"{number} (∞)" if infinite else str(number)))
            if not infinite:
                lines.setdefault((i, alike.data(run)), []).append((x, y))
    for (i, _), points in lines.items():
        if len(points) > 1:
            axes.plot(
                *zip(*sorted(points), strict=True), color=COLOURS[i % 7], ls=_DASHES[i % 7], lw=1, zorder=1
            )
    axes.grid(True, alpha=0.35)
    axes.margins(x=0.14, y=0.18)
    return marks


def _bytes_axis(axes: Any, least: float, most: float) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if 0 < least < most / _FAR:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator())
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel("bytes a user")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size(max(value, 0))))


def _key(runs: Sequence[Document], names: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    told = [
        Line2D([], [], color=COLOURS[i % 7], ls=_DASHES[i % 7], marker="o", ms=4, label=drawing.short(name))
        for i, name in enumerate(protocols)
    ]
    rows = [row_of(run, name) for run in runs for name in names]
    for basis in dict.fromkeys(row["exact"]["basis"] for row in rows if row):
        shape, _, text = epsilons.mark(basis)
        told.append(Line2D([], [], ls="", marker=shape, color=drawing.INK, label=text))
    trained = [run["accuracy"] for run in runs if run["accuracy"]]
    for key, filling in (("accuracy_private", "white"), (_CORRECTED, _GREY)):
        if any(accuracy.get(key) is not None for accuracy in trained):
            how: dict[str, Any] = {"marker": "o", "color": _GREY, "mfc": filling}
            told.append(Line2D([], [], ls="", label=pictures.ACCURACY[key], **how))
    if trained:
        true = pictures.ACCURACY["accuracy_true"]
        told.append(Line2D([], [], color=drawing.INK, ls=_TRUTH, lw=1, label=true))
    return told
