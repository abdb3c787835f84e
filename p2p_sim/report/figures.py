"""What a report draws of its runs: utility, traffic, and epsilon of views; each with its numbers as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import report_content
from p2p_sim.report.curves import COLOURS
from p2p_sim.report.figure_text import epsilon, size
from p2p_sim.report.plots import (
    INK,
    Document,
    Plot,
    filling,
    label_line_end,
    label_point,
    legend,
    make_room,
    name_lines,
    panels,
    short,
    styled,
)

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
def utility(runs: Sequence[Document]) -> Plot:
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
    description = "Test accuracy of every run"
    if alone:
        shares = {key: 100 * runs[0]["accuracy"][key] for key in groups}
        ends = [label_line_end(axes, f"{share:.2f}", k) for k, share in enumerate(shares.values())]
        make_room(figure, axes, ends)
        values = "; ".join(f"{ACCURACY[key]} {share:.2f} %" for key, share in shares.items())
        description = f"Test accuracy: {values}"
    else:
        legend(figure)
    return Plot("utility", figure, description, _ACCURACY_COLUMNS, _accuracy_rows(runs, groups))


_ACCURACY_COLUMNS = (
    "run", "trained", "test_accuracy_percent", "lower_percent", "upper_percent", "confidence_percent", "test_rows",
)  # fmt: skip


def _accuracy_rows(runs: Sequence[Document], groups: Sequence[str]) -> list[list[Any]]:
    rows = []
    for run in runs:
        for key in groups:
            if run["accuracy"].get(key) is not None:
                ends = run["intervals"].get(key)
                interval = (
                    [None] * 3
                    if ends is None
                    else [*(100 * end for end in ends), 100 * report_content.CONFIDENCE]
                )
                share = 100 * run["accuracy"][key]
                rows.append([run["run"], ACCURACY[key], share, *interval, run["accuracy"]["test_rows"]])
    return rows


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
def traffic(runs: Sequence[Document]) -> Plot:
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
    ends = [label_point(axes, size(total), total, y, 4) for y, total in enumerate(left)]
    name_lines(axes, [name for name, _ in bars])
    axes.set_xlim(0, max([*left, 1]))
    axes.set_xlabel("bytes on the wire")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(max(value, 0))))
    if kinds:
        legend(figure)
    make_room(figure, axes, ends)
    values = "; ".join(f"{name} {size(total)}" for (name, _), total in zip(bars, left, strict=True))
    return Plot("traffic", figure, f"Bytes on the wire: {values}", TRAFFIC_COLUMNS, _traffic_rows(runs, bars))


TRAFFIC_COLUMNS = ("run", "round", "kind", "delivered_messages", "travelled_messages", "wire_bytes")


def _traffic_rows(
    runs: Sequence[Document], bars: Sequence[tuple[str, Sequence[Mapping[str, Any]]]]
) -> list[list[Any]]:
    """Return a row for each piece of each bar; without a round, all rounds are added up."""
    if len(runs) == 1 and by_round(runs[0]):
        return message_rows(runs[0])
    named = zip([run["run"] for run in runs], [rows for _, rows in bars], strict=True)
    return [
        [name, None, kind, *(sum(row[what] for row in rows if row["kind"] == kind) for what in _COUNTED)]
        for name, rows in named
        for kind in dict.fromkeys(row["kind"] for row in rows)
    ]


_COUNTED = ("messages", "travelled", "bytes")


def message_rows(run: Document) -> list[list[Any]]:
    """Return what travelled in each round, by kind: a row of ``TRAFFIC_COLUMNS`` each."""
    return [
        [run["run"], row["round"], row["kind"], *(row[what] for what in _COUNTED)] for row in run["messages"]
    ]


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
def privacy(runs: Sequence[Document]) -> Plot:
    """Draw the epsilon of every view that has one: for one run one line a view, otherwise one panel a view."""
    shown = drawn(runs)
    edge = 1.1 * max([0.0, *_finite(runs)]) or 1.0
    if len(runs) == 1:
        figure, grid = panels(1, 1, _AROUND + 0.3 * len(shown))
        axes = grid[0, 0]
        rows = {row["view"]: row for row in runs[0]["privacy"]["views"]}
        ends = [_point(axes, runs[0], rows[view], y, edge) for y, view in enumerate(shown)]
        name_lines(axes, [viewer_name(view) for view in shown])
        axes.set_xlabel("ε (nats)")
    else:
        figure, axes, ends = _panels(runs, shown, edge)
    axes.set_xlim(-0.05 * edge, 1.03 * edge)
    legend(figure, _key(runs))
    make_room(figure, axes, ends)
    table = [
        line
        for run in runs
        for row in run["privacy"]["views"]
        if row["view"] in shown and row["exact"]
        for line in _lines(run, row)
    ]
    return Plot("privacy", figure, f"ε by view, with its basis: {_values(runs)}", _PRIVACY_COLUMNS, table)


def _panels(runs: Sequence[Document], shown: Sequence[str], edge: float) -> tuple[Any, Any, list[Any]]:
    """Draw one panel a view, with one line a run; return the figure, one of its axes, and the texts at line ends."""
    across = min(_ACROSS, len(shown))
    down = -(-len(shown) // across)
    height = down * (_AROUND + _EPSILON_LINE * len(runs)) + 0.3
    figure, grid = panels(down, across, height, sharex=True, sharey=True)
    ends = []
    for view, axes in zip(shown, grid.flat, strict=False):
        for y, run in enumerate(runs):
            for row in run["privacy"]["views"]:
                if row["view"] == view and row["exact"]:
                    ends.append(_point(axes, run, row, y, edge))
        name_lines(axes, [run["run"] for run in runs])
        axes.set_title(viewer_name(view), fontsize=9)
    for axes in grid.flat[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("ε (nats)")
    return figure, grid[0, 0], ends


def _point(axes: Any, run: Document, row: Mapping[str, Any], y: int, edge: float) -> Any:
    """Draw the epsilon of one view of one run, with the theorems' epsilons and the measured bound; return its text."""
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
    return label_line_end(axes, epsilon(exact), y)


_PRIVACY_COLUMNS = (
    "run", "view", "what", "epsilon_nats", "lower_nats", "upper_nats", "basis", "delta", "confidence_percent",
    "channels", "source",
)  # fmt: skip


def _lines(run: Document, row: Mapping[str, Any]) -> list[list[Any]]:
    """Return the marks of one view of one run as lines of a table: the figure, theorems, and what was measured."""
    exact, about = row["exact"], run["privacy"]
    channels, lead = about["channels"], [run["run"], row["view"]]
    ends = [exact[name] for name in ("epsilon", "lower", "upper")]
    found = [[*lead, "figure", *ends, exact["basis"], about["delta"], None, channels, exact["source"]]]
    found += [
        [*lead, f"theorem: {each['name']}", each["epsilon"], None, None, each["basis"], about["delta"], None, channels,
         each["source"]]
        for each in row["theorems"]
        if each["holds"] and math.isfinite(float(each["epsilon"]))
    ]  # fmt: skip
    bound, audit = _measured(run, row["view"]), audit_of(run, row["view"])
    if bound is not None and audit is not None:
        found.append(
            [*lead, "measured", bound, bound, None, "measured", audit["at"], 100 * audit["confidence"], channels, None]
        )  # fmt: skip
    return found


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
