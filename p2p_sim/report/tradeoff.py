"""Privacy against utility and cost: what a report of several runs draws first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from p2p_sim.report import cautions
from p2p_sim.report.curves import COLOURS
from p2p_sim.report.figure_text import size
from p2p_sim.report.figures import ACCURACY, mark, viewer_name
from p2p_sim.report.plots import INK, Document, Plot, Points, legend, name_points, panels, short, styled

Heights = list[tuple[float, bool, str]]
"""Of the marks of a run, whether they are filled, and what they are; the first is numbered, and joined with others."""

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


@styled
def tradeoff(runs: Sequence[Document]) -> Plot:
    """Draw a column a view; accuracy and bytes a user against epsilon.  Points are numbered as the runs are.

    Bytes that are the same for all are not drawn, unless there is nothing else.
    """
    names = shown(runs)
    each = [bytes_each(run) for run in runs]
    trained = any(run["accuracy"] for run in runs)
    costly = not trained or max(each) > _ALIKE * min(each)
    figure, grid = panels(
        trained + costly, len(names), 0.9 + 2.1 * (trained + costly), sharex="col", sharey="row"
    )
    marked: list[tuple[Any, Points]] = []
    table: list[list[Any]] = []
    for column, name in enumerate(names):
        if trained:
            some = [run for run in runs if run["accuracy"]]
            points, rows = _panel(grid[0, column], runs, some, name, _accuracies)
            marked.append((grid[0, column], points))
            table += [[*row, None, None, None] for row in rows]
            for truth in {run["accuracy"]["accuracy_true"] for run in some}:
                grid[0, column].axhline(100 * truth, color=INK, ls=_TRUTH, lw=1, zorder=1)
        if costly:
            points, rows = _panel(grid[-1, column], runs, runs, name, _bytes)
            marked.append((grid[-1, column], points))
            table += [[*row[:_LEADING], None, None, None, *row[_LEADING:]] for row in rows]
        title = next(row["view"] for row in (row_of(run, name) for run in runs) if row)
        grid[0, column].set_title(viewer_name(title), fontsize=9)
        grid[-1, column].set_xlabel("ε (nats)")
        _widen(grid[0, column])
    if trained:
        grid[0, 0].set_ylabel("test accuracy, %")
        table += _truths(runs)
    if costly:
        _bytes_axis(grid[-1, 0], min(each), max(each))
    legend(figure, _tradeoff_key(runs, names))
    name_points(figure, marked)
    what = [text for text, drawn in (("accuracy", trained), ("bytes a user", costly)) if drawn]
    description = f"ε against {' and '.join(what)} of {len(runs)} runs; the table above has the numbers"
    return Plot("tradeoff", figure, description, _COLUMNS, table)


_COLUMNS = (
    "numbers", "runs", "protocol", "view", "what", "basis", "delta", "epsilon_nats", "epsilon_least_nats",
    "epsilon_greatest_nats", "accuracy_percent", "accuracy_least_percent", "accuracy_greatest_percent",
    "bytes_per_user", "bytes_per_user_least", "bytes_per_user_greatest",
)  # fmt: skip
_LEADING = _COLUMNS.index("accuracy_percent")


_LEAST_SPAN = 0.02  # of the greatest ε: closer ones differ by less than anybody reads


def _widen(axes: Any) -> None:
    """Keep an axis from showing the last digits of figures that are the same to a reader."""
    low, high = axes.get_xlim()
    lacks = _LEAST_SPAN * max(abs(low), abs(high)) - (high - low)
    if lacks > 0:
        axes.set_xlim(low - lacks / 2, high + lacks / 2)


def _truths(runs: Sequence[Document]) -> list[list[Any]]:
    """Return the dotted lines, as rows of the table without a view."""
    found: dict[float, list[int]] = {}
    for number, run in enumerate(runs, 1):
        if run["accuracy"]:
            found.setdefault(100 * float(run["accuracy"]["accuracy_true"]), []).append(number)
    return [
        [*_named(runs, numbers), None, ACCURACY["accuracy_true"], *[None] * 5, *[truth] * 3, *[None] * 3]
        for truth, numbers in found.items()
    ]


def _named(runs: Sequence[Document], numbers: Sequence[int]) -> list[str]:
    """Return the numbers of some runs, their names, and their protocols."""
    some = [runs[number - 1] for number in numbers]
    protocols = dict.fromkeys(run["protocol"] for run in some)
    return [_numbered(numbers), ", ".join(run["run"] for run in some), ", ".join(protocols)]


_WHAT = {
    _CORRECTED: "accuracy on what was released, corrected for lies",
    "accuracy_private": "accuracy on what was released",
}


def _accuracies(run: Document) -> Heights:
    """Return the accuracy of the model that one would use, and of the one that takes noisy labels for true."""
    found = [(run["accuracy"].get(key), key) for key in (_CORRECTED, "accuracy_private")]
    return [(100 * float(value), key == _CORRECTED, _WHAT[key]) for value, key in found if value is not None]


def _bytes(run: Document) -> Heights:
    return [(bytes_each(run), True, "bytes a user")]


def _panel(
    axes: Any,
    runs: Sequence[Document],
    some: Sequence[Document],
    name: str,
    heights: Callable[[Document], Heights],
) -> tuple[Points, list[list[Any]]]:
    """Draw the marks of every setting that has a figure; settings of one protocol and data are joined by epsilon.

    Runs of one setting that differ by seed are one point, at their means, with bars from the least to the greatest.
    Returns the points with the numbers of their runs, and a row of the table for each mark.
    """
    rows = {run["run"]: row for run in some if (row := row_of(run, name)) is not None}
    values = {run: float(row["exact"]["epsilon"]) for run, row in rows.items()}
    edge = 1.15 * max([0.0, *filter(math.isfinite, values.values())]) or 1.0
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    joined: dict[tuple[int, str | None], list[tuple[float, float]]] = {}
    marks: Points = []
    table: list[list[Any]] = []
    for numbers in _settings(runs, rows):
        members = [runs[number - 1] for number in numbers]
        i, xs = protocols.index(members[0]["protocol"]), [min(values[run["run"]], edge) for run in members]
        infinite = math.isinf(values[members[0]["run"]])
        shape, _, _ = mark(rows[members[0]["run"]]["exact"]["basis"])
        drawn = [heights(run) for run in members]
        x, y = _setting(axes, xs, drawn, COLOURS[i % 7], shape)
        of_members = [values[run["run"]] for run in members]
        basis, deltas = (
            rows[members[0]["run"]]["exact"]["basis"],
            {run["privacy"]["delta"] for run in members},
        )
        lead = [*_named(runs, numbers), rows[members[0]["run"]]["view"]]
        epsilons = [basis, "; ".join(map(repr, sorted(deltas))), *_spread(of_members)]
        table += [[*lead, what, *epsilons, *_spread(ys)] for what, ys in _by_mark(drawn).items()]
        marks.append((x, y, f"{_numbered(numbers)} (∞)" if infinite else _numbered(numbers)))
        if not infinite:
            joined.setdefault((i, cautions.data_text(members[0])), []).append((x, y))
    for (i, _), points in joined.items():
        if len(points) > 1:
            axes.plot(
                *zip(*sorted(points), strict=True), color=COLOURS[i % 7], ls=_DASHES[i % 7], lw=1, zorder=1
            )
    axes.grid(True, alpha=0.35)
    axes.margins(x=0.14, y=0.18)
    return marks, table


def _spread(values: Sequence[float]) -> list[float]:
    """Return the mean, the least and the greatest."""
    return [sum(values) / len(values), min(values), max(values)]


def _by_mark(heights: Sequence[Heights]) -> dict[str, list[float]]:
    """Return the heights of several runs by what their marks are."""
    found: dict[str, list[float]] = {}
    for height, _, what in chain.from_iterable(heights):
        found.setdefault(what, []).append(height)
    return found


def _settings(runs: Sequence[Document], rows: Mapping[str, Mapping[str, Any]]) -> list[list[int]]:
    """Return the numbers of the runs that have a row, those together that differ by their seeds alone."""
    found: dict[str, list[int]] = {}
    for number, run in enumerate(runs, 1):
        if run["run"] in rows:
            exact = rows[run["run"]]["exact"]
            names = ("protocol", "parameters", "data", "users", "graph", "crypto", "faults")
            planted = (run.get("canaries") or {}).get("users")
            key = [
                *(run[name] for name in names),
                planted,
                exact["basis"],
                math.isinf(float(exact["epsilon"])),
            ]
            found.setdefault(json.dumps(key, sort_keys=True, default=str), []).append(number)
    return list(found.values())


def _setting(
    axes: Any, xs: Sequence[float], heights: Sequence[Heights], color: str, shape: str
) -> tuple[float, float]:
    """Draw the marks of the runs of one setting; return where the first mark is."""
    x, several = sum(xs) / len(xs), len(xs) > 1
    centres = []
    for filled in reversed(dict.fromkeys(filled for _, filled, _ in heights[0])):  # the first one lies on top
        ys = [height for each in heights for height, other, _ in each if other == filled]
        y = sum(ys) / len(ys)
        centres.append(y)
        if several:
            axes.errorbar(
                [x], [y], _reach(y, ys), _reach(x, xs),
                fmt="none", ecolor=color, elinewidth=1, zorder=2,
            )  # fmt: skip
        axes.plot([x], [y], shape, color=color, mfc=color if filled else "white", ms=6)
    axes.vlines(x, min(centres), max(centres), color, lw=0.8, zorder=1)
    return x, centres[-1]


def _reach(middle: float, values: Sequence[float]) -> list[list[float]]:
    """Return how far values go below and above their mean, which rounding may put beyond all of them."""
    return [[max(middle - min(values), 0.0)], [max(max(values) - middle, 0.0)]]


def _numbered(numbers: Sequence[int]) -> str:
    """Return the numbers of runs: ``1, 3-5``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


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


def _tradeoff_key(runs: Sequence[Document], names: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    handles = [
        Line2D([], [], color=COLOURS[i % 7], ls=_DASHES[i % 7], marker="o", ms=4, label=short(name))
        for i, name in enumerate(protocols)
    ]
    rows = [row_of(run, name) for run in runs for name in names]
    for basis in dict.fromkeys(row["exact"]["basis"] for row in rows if row):
        shape, _, text = mark(basis)
        handles.append(Line2D([], [], ls="", marker=shape, color=INK, label=text))
    trained = [run["accuracy"] for run in runs if run["accuracy"]]
    for key, filling in (("accuracy_private", "white"), (_CORRECTED, _GREY)):
        if any(accuracy.get(key) is not None for accuracy in trained):
            how: dict[str, Any] = {"marker": "o", "color": _GREY, "mfc": filling}
            handles.append(Line2D([], [], ls="", label=ACCURACY[key], **how))
    if trained:
        true = ACCURACY["accuracy_true"]
        handles.append(Line2D([], [], color=INK, ls=_TRUTH, lw=1, label=true))
    return handles
