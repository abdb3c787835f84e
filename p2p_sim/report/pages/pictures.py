"""Figures of a report: utility, and bytes on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report.pages import drawing
from p2p_sim.report.pages.words import size
from p2p_sim.report.plots import COLOURS

Document = Mapping[str, Any]

ACCURACY = {
    "accuracy_private": "on what was released",
    "accuracy_corrected": "the same, corrected for lies",
    "accuracy_true": "on the true labels",
    "baseline": "always the majority",
}
"""What models are trained on."""

MOST_BARS = 40
"""Rounds, of all runs, up to which each has a bar and a line of a table."""

_MARKS = ("o", "s", "D", "x")
_LINE, _WIDE_LINE = 0.26, 0.36  # inches of one mark and of several
_APART = 0.17  # of a line


@drawing.styled
def utility(runs: Sequence[Document]) -> str:
    """Draw test accuracies with their intervals: a line a run; of one run, a line for what models were trained on."""
    groups = [key for key in ACCURACY if any(run["accuracy"].get(key) is not None for run in runs)]
    alone = len(runs) == 1
    figure, grid = drawing.panels(1, 1, 0.9 + (_LINE * len(groups) if alone else _WIDE_LINE * len(runs)))
    axes = grid[0, 0]
    for k, key in enumerate(groups):
        for y, run in enumerate(runs):
            if run["accuracy"].get(key) is not None:
                place = k if alone else y + _APART * (k - (len(groups) - 1) / 2)
                _accuracy(axes, run, key, place, ACCURACY[key] if y == 0 else "")
    drawing.lines(axes, [ACCURACY[key] for key in groups] if alone else [run["run"] for run in runs])
    axes.set_xlabel("test accuracy, %")
    axes.set_xlim(right=min(axes.get_xlim()[1], 100.5))
    if alone:
        for k, key in enumerate(groups):
            drawing.say_last(axes, f"{100 * runs[0]['accuracy'][key]:.2f}", k)
        axes.set_xlim(right=axes.get_xlim()[1] + 5)
    else:
        drawing.legend(figure)
    told = "; ".join(f"{ACCURACY[key]} {100 * runs[0]['accuracy'].get(key, 0):.2f} %" for key in groups)
    return drawing.svg(figure, "utility", f"Test accuracy: {told}" if alone else "Test accuracy of every run")


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
    return len({row["round"] for row in run["messages"]}) <= MOST_BARS


@drawing.styled
def traffic(runs: Sequence[Document]) -> str:
    """Draw bytes by message kind: of one run a bar a round, unless those are too many; of several a bar a run."""
    from matplotlib.ticker import FuncFormatter

    kinds = list(dict.fromkeys(row["kind"] for run in runs for row in run["messages"]))
    bars = [(run["run"], run["messages"]) for run in runs]
    rounds = sorted({row["round"] for row in runs[0]["messages"]})
    if len(runs) == 1 and by_round(runs[0]):
        every = runs[0]["messages"]
        bars = [(f"round {number}", [row for row in every if row["round"] == number]) for number in rounds]
    elif len(runs) == 1:
        bars = [(f"{len(rounds)} rounds", runs[0]["messages"])]
    figure, grid = drawing.panels(1, 1, 1.1 + 0.26 * len(bars))
    axes, left = grid[0, 0], [0] * len(bars)
    for k, kind in enumerate(kinds):
        widths = [sum(row["bytes"] for row in rows if row["kind"] == kind) for _, rows in bars]
        axes.barh(range(len(bars)), widths, 0.7, left, label=drawing.short(kind), **drawing.filling(k))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for y, total in enumerate(left):
        drawing.say(axes, size(total), total, y, 4)
    drawing.lines(axes, [name for name, _ in bars])
    axes.set_xlim(0, 1.12 * max([*left, 1]))
    axes.set_xlabel("bytes on the wire")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(max(value, 0))))
    if kinds:
        drawing.legend(figure)
    told = "; ".join(f"{name} {size(total)}" for (name, _), total in zip(bars, left, strict=True))
    return drawing.svg(figure, "traffic", f"Bytes on the wire: {told}")
