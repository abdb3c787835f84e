"""Plots of a report, reproducible to the byte: utility, traffic, epsilon of views, privacy against both."""

from __future__ import annotations

import functools
import io
import json
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from p2p_sim.render import text_labels
from p2p_sim.report import document, matplotlib_settings
from p2p_sim.report.curves import COLOURS
from p2p_sim.report.figure_text import epsilon, size

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
    """Make a function draw in the style of reports, and without warnings of missing glyphs."""

    @functools.wraps(draw)
    def drawn(runs: Sequence[Document]) -> str:
        with matplotlib_settings.shipped(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have it, or nobody's
            return draw(runs)

    return drawn


def short(text: str, longest: int = _LONGEST) -> str:
    """Return text that fits beside an axis: long text is cut in the middle, since paths differ at their ends."""
    whole = text_labels.clean(text, len(text))
    start = longest // 3
    return whole if len(whole) <= longest else f"{whole[:start]}…{whole[start + 1 - longest :]}"


def panels(rows: int, columns: int, height: float, **shared: Any) -> tuple[Any, Any]:
    """Return a figure, and its axes: an array of shape (rows, columns)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
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


def label_point(axes: Any, text: str, x: float, y: float, right: float = 8) -> None:
    """Write text beside a point; ``right``: the distance in points."""
    axes.annotate(text, (x, y), (right, 0), textcoords="offset points", va="center", fontsize=8, color=INK)


def label_line_end(axes: Any, text: str, y: float) -> None:
    """Write text at the end of a line."""
    axes.annotate(
        text, (1, y), (-2, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points", ha="right",
        va="center", fontsize=8, color=INK,
    )  # fmt: skip


def name_points(axes: Any, points: Sequence[tuple[float, float, str]]) -> None:
    """Write a name beside each point (x, y, name); points that are close share one line of names."""
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


def svg(figure: Any, name: str, description: str) -> str:
    """Return a figure as an SVG element that can stand in a page beside others: its names begin with ``picture-``.

    ``description``: text for readers who cannot see it.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>picture-{name}-", text)
    text = text.replace("*{", f"#picture-{name} *{{")
    safe = escape("".join(c if c.isprintable() else "�" for c in description))
    return text.replace("<svg ", f'<svg id="picture-{name}" role="img" aria-label="{safe}" ', 1)


ACCURACY = {
    "accuracy_private": "on what was released",
    "accuracy_corrected": "the same, corrected for lies",
    "accuracy_true": "on the true labels",
    "baseline": "always the majority",
}
"""What models are trained on, by the key of their accuracy."""

MAX_BARS = 40
"""Up to so many rounds (of all runs), each has a bar and a line of a table."""

_MARKS = ("o", "s", "D", "x")
_LINE, _WIDE_LINE = 0.26, 0.36  # inches of one mark and of several
_APART = 0.17  # of a line


@styled
def utility(runs: Sequence[Document]) -> str:
    """Draw test accuracies with their intervals: one line a run, or, for a single run, one line a model."""
    groups = [key for key in ACCURACY if any(run["accuracy"].get(key) is not None for run in runs)]
    alone = len(runs) == 1
    figure, grid = panels(1, 1, 0.9 + (_LINE * len(groups) if alone else _WIDE_LINE * len(runs)))
    axes = grid[0, 0]
    for k, key in enumerate(groups):
        label = ACCURACY[key]  # of the first run that has such a model
        for y, run in enumerate(runs):
            if run["accuracy"].get(key) is not None:
                place = k if alone else y + _APART * (k - (len(groups) - 1) / 2)
                _accuracy(axes, run, key, place, label)
                label = ""
    name_lines(axes, [ACCURACY[key] for key in groups] if alone else [run["run"] for run in runs])
    axes.set_xlabel("test accuracy, %")
    axes.set_xlim(right=min(axes.get_xlim()[1], 100.5))
    if alone:
        for k, key in enumerate(groups):
            label_line_end(axes, f"{100 * runs[0]['accuracy'][key]:.2f}", k)
        axes.set_xlim(right=axes.get_xlim()[1] + 5)
    else:
        legend(figure)
    if not alone:
        return svg(figure, "utility", "Test accuracy of every run")
    values = "; ".join(f"{ACCURACY[key]} {100 * runs[0]['accuracy'][key]:.2f} %" for key in groups)
    return svg(figure, "utility", f"Test accuracy: {values}")


def _accuracy(axes: Any, run: Document, key: str, y: float, label: str) -> None:
    """Draw one accuracy with its interval, if it has one."""
    value, kind = 100 * run["accuracy"][key], list(ACCURACY).index(key)
    ends = run["intervals"].get(key)
    reach = None if ends is None else [[max(value - 100 * ends[0], 0)], [max(100 * ends[1] - value, 0)]]
    axes.errorbar(
        [value], [y], xerr=reach, fmt=_MARKS[kind], color=COLOURS[kind], label=label or None, capsize=2, ms=5, lw=1,
    )  # fmt: skip


def by_round(run: Document) -> bool:
    """Whether a run has few enough rounds to draw each."""
    return len({row["round"] for row in run["messages"]}) <= MAX_BARS


@styled
def traffic(runs: Sequence[Document]) -> str:
    """Draw bytes by message kind: for one run one bar a round (unless there are too many), otherwise one bar a run."""
    from matplotlib.ticker import FuncFormatter

    kinds = list(dict.fromkeys(row["kind"] for run in runs for row in run["messages"]))
    bars = [(run["run"], run["messages"]) for run in runs]
    rounds = sorted({row["round"] for row in runs[0]["messages"]})
    if len(runs) == 1 and by_round(runs[0]):
        every = runs[0]["messages"]
        bars = [(f"round {number}", [row for row in every if row["round"] == number]) for number in rounds]
    elif len(runs) == 1:
        bars = [(f"{len(rounds)} rounds", runs[0]["messages"])]
    figure, grid = panels(1, 1, 1.1 + 0.26 * len(bars))
    axes, left = grid[0, 0], [0] * len(bars)
    for k, kind in enumerate(kinds):
        widths = [sum(row["bytes"] for row in rows if row["kind"] == kind) for _, rows in bars]
        axes.barh(range(len(bars)), widths, 0.7, left, label=short(kind), **filling(k))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for y, total in enumerate(left):
        label_point(axes, size(total), total, y, 4)
    name_lines(axes, [name for name, _ in bars])
    axes.set_xlim(0, 1.12 * max([*left, 1]))
    axes.set_xlabel("bytes on the wire")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(max(value, 0))))
    if kinds:
        legend(figure)
    values = "; ".join(f"{name} {size(total)}" for (name, _), total in zip(bars, left, strict=True))
    return svg(figure, "traffic", f"Bytes on the wire: {values}")


MARKS = {
    "exact": ("o", COLOURS[0], "exact"),
    "upper": ("<", COLOURS[1], "upper: at most"),
    "lower": (">", COLOURS[2], "lower: at least"),
}
"""Mark, colour and text of a basis."""

_OTHER = ("s", COLOURS[3])
_ACROSS = 3  # panels beside each other
_EPSILON_LINE, _AROUND = 0.22, 0.75  # inches of a run, and around a panel


def mark(basis: str) -> tuple[str, str, str]:
    """Return the mark, colour and text of a basis."""
    return MARKS.get(basis, (*_OTHER, basis))


def views(runs: Sequence[Document], least: int) -> list[str]:
    """Return the views that have a figure in at least ``least`` runs."""
    rows = [row["view"] for run in runs for row in run["privacy"]["views"] if row["exact"]]
    return [view for view in dict.fromkeys(rows) if rows.count(view) >= least]


def drawn(runs: Sequence[Document]) -> list[str]:
    """Return the views to draw: those that can be compared, or all if none can."""
    return views(runs, min(2, len(runs))) or views(runs, 1)


def audit_of(run: Document, view: str) -> Mapping[str, Any] | None:
    """Return the saved audit of a view, for the channels of the privacy table; None if there is none."""
    for row in run["attacks"]:
        if row["view"] == view and row["channels"] == run["privacy"]["channels"]:
            found: Mapping[str, Any] = row
            return found
    return None


def viewer_name(view: str) -> str:
    """Return a short name of the view for a heading."""
    return view.removeprefix("user: ")


@styled
def privacy(runs: Sequence[Document]) -> str:
    """Draw the epsilon of every view that has one: for one run one line a view, otherwise one panel a view."""
    shown = drawn(runs)
    edge = 1.1 * max([0.0, *_finite(runs)]) or 1.0
    if len(runs) == 1:
        figure, grid = panels(1, 1, _AROUND + 0.3 * len(shown))
        axes = grid[0, 0]
        rows = {row["view"]: row for row in runs[0]["privacy"]["views"]}
        for y, view in enumerate(shown):
            _point(axes, runs[0], rows[view], y, edge)
        name_lines(axes, [viewer_name(view) for view in shown])
        axes.set(xlabel="ε (nats)", xlim=(-0.03 * edge, 1.15 * edge))
    else:
        figure = _panels(runs, shown, edge)
    legend(figure, _key(runs))
    return svg(figure, "privacy", f"ε by view, with its basis: {_values(runs)}")


def _panels(runs: Sequence[Document], shown: Sequence[str], edge: float) -> Any:
    """Draw one panel a view, with one line a run."""
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)
    height = down * (_AROUND + _EPSILON_LINE * len(runs)) + 0.3
    figure, grid = panels(down, across, height, sharex=True, sharey=True)
    for view, axes in zip(shown, grid.flat, strict=False):
        for y, run in enumerate(runs):
            for row in run["privacy"]["views"]:
                if row["view"] == view and row["exact"]:
                    _point(axes, run, row, y, edge)
        name_lines(axes, [run["run"] for run in runs])
        axes.set_title(short(viewer_name(view)), fontsize=9)
        axes.set_xlim(-0.06 * edge, 1.45 * edge)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("ε (nats)")
    return figure


def _point(axes: Any, run: Document, row: Mapping[str, Any], y: int, edge: float) -> None:
    """Draw the epsilon of one view of one run, with the theorems' epsilons and the measured bound."""
    exact = row["exact"]
    low, value, high = (min(float(exact[name]), edge) for name in ("lower", "epsilon", "upper"))
    shape, colour, _ = mark(exact["basis"])
    ends = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
    axes.errorbar([value], [y], xerr=ends, fmt=shape, color=colour, capsize=3, ms=6)
    for bound in _promised(row):
        axes.plot([bound], [y], "D", mfc="none", mec=INK, ms=10)
    measured = _measured(run, row["view"])
    if measured is not None:
        axes.plot([min(measured, edge)], [y], "x", color=COLOURS[3], ms=7, mew=2)
    label_line_end(axes, epsilon(exact), y)


def _promised(row: Mapping[str, Any]) -> list[float]:
    """Return the finite epsilons of the theorems that apply."""
    epsilons = [float(found["epsilon"]) for found in row["theorems"] if found["holds"]]
    return [bound for bound in epsilons if math.isfinite(bound)]


def _measured(run: Document, view: str) -> float | None:
    """Return the measured bound if it holds at the table's delta: a bound also holds at every smaller delta."""
    row = audit_of(run, view)
    if row is None or row["kind"] != "delta" or row["at"] < run["privacy"]["delta"]:
        return None
    return float(row["lower"])


def _finite(runs: Sequence[Document]) -> list[float]:
    """Return every finite epsilon that is drawn."""
    rows = [row for run in runs for row in run["privacy"]["views"] if row["exact"]]
    ends = [float(row["exact"]["upper"]) for row in rows]
    return [end for end in ends if math.isfinite(end)] + [bound for row in rows for bound in _promised(row)]


def _key(runs: Sequence[Document]) -> list[Any]:
    """Return the handles of the legend: each basis that is drawn, theorems and measured bounds."""
    from matplotlib.lines import Line2D

    rows = [row for run in runs for row in run["privacy"]["views"] if row["exact"]]
    kinds = [mark(basis) for basis in dict.fromkeys(row["exact"]["basis"] for row in rows)]
    handles = [Line2D([], [], ls="", marker=shape, color=colour, label=text) for shape, colour, text in kinds]
    if any(found["holds"] for row in rows for found in row["theorems"]):
        handles.append(
            Line2D([], [], ls="", marker="D", mfc="none", mec=INK, ms=8, label="promised by a theorem")
        )
    if any(_measured(run, row["view"]) is not None for run in runs for row in run["privacy"]["views"]):
        label = "measured: at least"
        handles.append(Line2D([], [], ls="", marker="x", color=COLOURS[3], ms=7, mew=2, label=label))
    return handles


def _values(runs: Sequence[Document]) -> str:
    if len(runs) > 1:
        return f"{len(runs)} runs; the tables below have the numbers"
    rows = [row for row in runs[0]["privacy"]["views"] if row["exact"]]
    return "; ".join(f"{row['view']} {epsilon(row['exact'])} {row['exact']['basis']}" for row in rows)


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


@styled
def tradeoff(runs: Sequence[Document]) -> str:
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
    marked = []
    for column, name in enumerate(names):
        if trained:
            some = [run for run in runs if run["accuracy"]]
            marked.append((grid[0, column], _panel(grid[0, column], runs, some, name, _accuracies)))
            for truth in {run["accuracy"]["accuracy_true"] for run in some}:
                grid[0, column].axhline(100 * truth, color=INK, ls=_TRUTH, lw=1, zorder=1)
        if costly:
            marked.append((grid[-1, column], _panel(grid[-1, column], runs, runs, name, _bytes)))
        title = next(row["view"] for row in (row_of(run, name) for run in runs) if row)
        grid[0, column].set_title(viewer_name(title), fontsize=9)
        grid[-1, column].set_xlabel("ε (nats)")
    if trained:
        grid[0, 0].set_ylabel("test accuracy, %")
    if costly:
        _bytes_axis(grid[-1, 0], min(each), max(each))
    for axes, points in marked:
        name_points(axes, points)
    legend(figure, _tradeoff_key(runs, names))
    what = [text for text, drawn in (("accuracy", trained), ("bytes a user", costly)) if drawn]
    description = f"ε against {' and '.join(what)} of {len(runs)} runs; the table above has the numbers"
    return svg(figure, "tradeoff", description)


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
    """Draw the marks of every setting that has a figure; settings of one protocol and data are joined by epsilon.

    Runs of one setting that differ by seed are one point, at their means, with bars from the least to the greatest.
    Returns the points with the numbers of their runs.
    """
    rows = {run["run"]: row for run in some if (row := row_of(run, name)) is not None}
    values = {run: float(row["exact"]["epsilon"]) for run, row in rows.items()}
    edge = 1.15 * max([0.0, *filter(math.isfinite, values.values())]) or 1.0
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    joined: dict[tuple[int, str | None], list[tuple[float, float]]] = {}
    marks: Points = []
    for numbers in _settings(runs, rows):
        members = [runs[number - 1] for number in numbers]
        i, xs = protocols.index(members[0]["protocol"]), [min(values[run["run"]], edge) for run in members]
        infinite = math.isinf(values[members[0]["run"]])
        shape, _, _ = mark(rows[members[0]["run"]]["exact"]["basis"])
        x, y = _setting(axes, xs, [heights(run) for run in members], COLOURS[i % 7], shape)
        marks.append((x, y, f"{_numbered(numbers)} (∞)" if infinite else _numbered(numbers)))
        if not infinite:
            joined.setdefault((i, document.data(members[0])), []).append((x, y))
    for (i, _), points in joined.items():
        if len(points) > 1:
            axes.plot(
                *zip(*sorted(points), strict=True), color=COLOURS[i % 7], ls=_DASHES[i % 7], lw=1, zorder=1
            )
    axes.grid(True, alpha=0.35)
    axes.margins(x=0.14, y=0.18)
    return marks


def _settings(runs: Sequence[Document], rows: Mapping[str, Mapping[str, Any]]) -> list[list[int]]:
    """Return the numbers of the runs that have a row, those together that differ by their seeds alone."""
    found: dict[str, list[int]] = {}
    for number, run in enumerate(runs, 1):
        if run["run"] in rows:
            exact = rows[run["run"]]["exact"]
            names = ("protocol", "parameters", "data", "users", "graph", "crypto", "faults")
            key = [*(run[name] for name in names), exact["basis"], math.isinf(float(exact["epsilon"]))]
            found.setdefault(json.dumps(key, sort_keys=True, default=str), []).append(number)
    return list(found.values())


def _setting(
    axes: Any, xs: Sequence[float], heights: Sequence[Heights], color: str, shape: str
) -> tuple[float, float]:
    """Draw the marks of the runs of one setting; return where the first mark is."""
    x, several = sum(xs) / len(xs), len(xs) > 1
    centres = []
    for filled in reversed(dict.fromkeys(filled for _, filled in heights[0])):  # the first one lies on top
        ys = [height for each in heights for height, other in each if other == filled]
        y = sum(ys) / len(ys)
        centres.append(y)
        if several:
            axes.errorbar(
                [x], [y], [[y - min(ys)], [max(ys) - y]], [[x - min(xs)], [max(xs) - x]],
                fmt="none", ecolor=color, elinewidth=1, zorder=2,
            )  # fmt: skip
        axes.plot([x], [y], shape, color=color, mfc=color if filled else "white", ms=6)
    axes.vlines(x, min(centres), max(centres), color, lw=0.8, zorder=1)
    return x, centres[-1]


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
