"""Figures of a report as SVG elements, in colours, marks and hatches that anybody can tell apart, also in print."""

from __future__ import annotations

import functools
import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report.plots import COLOURS
from p2p_sim.trace.diagram import labels

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

_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
_WIDTH = 7.6  # inches
_STYLE = {
    "svg.hashsalt": "p2p-sim", "svg.fonttype": "none", "text.parse_math": False, "font.size": 10,
    "font.family": "sans-serif",
}  # fmt: skip
_LONGEST = 34  # letters of a name beside an axis


def _styled(draw: Callable[[Sequence[Document]], str]) -> Callable[[Sequence[Document]], str]:
    """Let a function draw in the style of reports, whatever letters names have."""

    @functools.wraps(draw)
    def drawn(runs: Sequence[Document]) -> str:
        from matplotlib import rc_context

        with rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have it, or nobody's
            return draw(runs)

    return drawn


@_styled
def privacy(runs: Sequence[Document]) -> str:
    """Draw the epsilon of every view that has one: marks with their ends, theorems as hollow diamonds."""
    views = list(
        dict.fromkeys(row["view"] for run in runs for row in run["privacy"]["views"] if row["exact"])
    )
    place = {view: i for i, view in enumerate(views)}
    figure, axes = _axes(0.9 + (0.34 + 0.12 * (len(runs) - 1)) * len(views) + 0.12 * len(runs))
    top = max([_number(row["exact"]["upper"]) for row in _rows(runs)], default=0.0)
    edge = top * 1.1 or 1.0
    for j, run in enumerate(runs):
        shift = 0.0 if len(runs) == 1 else 0.5 * (j / (len(runs) - 1) - 0.5)
        for k, row in enumerate(row for row in run["privacy"]["views"] if row["exact"]):
            y, exact = place[row["view"]] + shift, row["exact"]
            low, value, high = (_number(exact[name], edge) for name in ("lower", "epsilon", "upper"))
            ends = [[max(value - low, 0.0)], [max(high - value, 0.0)]]
            label = _short(run["run"]) if k == 0 else None
            axes.errorbar(
                [value], [y], xerr=ends, fmt=_MARKS[j % 7], color=COLOURS[j % 7], capsize=3, label=label
            )
            axes.annotate(
                _said(exact), (value, y), (7, 0), textcoords="offset points", va="center", fontsize=8
            )
            for found in row["theorems"]:
                if found["holds"] and math.isfinite(float(found["epsilon"])):
                    axes.plot([float(found["epsilon"])], [y], "D", mfc="none", color=COLOURS[j % 7], ms=9)
    axes.set_yticks(range(len(views)), [_short(view) for view in views])
    axes.set(xlabel="ε (nats); hollow diamonds: theorems", ylim=(len(views) - 0.4, -0.6))
    axes.set_xlim(-0.02 * edge, 1.15 * edge)
    axes.grid(True, axis="x", alpha=0.3)
    if len(runs) > 1:
        _legend(figure)
    return _svg(figure, "privacy")


def _rows(runs: Sequence[Document]) -> list[Any]:
    return [
        row for run in runs for row in run["privacy"]["views"]
        if row["exact"] and math.isfinite(float(row["exact"]["upper"]))
    ]  # fmt: skip


def _said(exact: Mapping[str, Any]) -> str:
    value = float(exact["epsilon"])
    return f"{'∞' if math.isinf(value) else f'{value:.3g}'} {exact['basis']}"


def _number(value: Any, edge: float = math.inf) -> float:
    """Return a number, at most ``edge``: there, infinity is drawn."""
    return min(float(value), edge)


@_styled
def utility(runs: Sequence[Document]) -> str:
    """Draw test accuracies: a group of bars for what a model was trained on, a bar a run."""
    groups = [key for key in ACCURACY if any(run["accuracy"].get(key) is not None for run in runs)]
    step = len(runs) + 0.6
    figure, axes = _axes(1.0 + 0.26 * step * len(groups))
    for j, run in enumerate(runs):
        shares = [run["accuracy"].get(key) for key in groups]
        places = [(i * step + j, 100 * share) for i, share in enumerate(shares) if share is not None]
        ys, values = [y for y, _ in places], [value for _, value in places]
        axes.barh(
            ys, values, 0.8, color=COLOURS[j % 7], hatch=_HATCHES[j % 7], edgecolor="white", label=run["run"]
        )
        for y, value in places:
            axes.annotate(
                f"{value:.1f}", (value, y), (4, 0), textcoords="offset points", va="center", fontsize=9
            )
    middle = (len(runs) - 1) / 2
    axes.set_yticks([i * step + middle for i in range(len(groups))], [ACCURACY[key] for key in groups])
    axes.set(xlabel="test accuracy, %", xlim=(0, 109), ylim=(len(groups) * step - 1, -0.9))
    axes.grid(True, axis="x", alpha=0.3)
    if len(runs) > 1:
        _legend(figure)
    return _svg(figure, "utility")


@_styled
def traffic(runs: Sequence[Document]) -> str:
    """Draw bytes by message kind: a bar a run and round, or a bar a run if those are too many."""
    kinds = list(dict.fromkeys(row["kind"] for run in runs for row in run["messages"]))
    rounds = [sorted({row["round"] for row in run["messages"]}) for run in runs]
    bars = [
        (run, [number], f"round {number}") for run, own in zip(runs, rounds, strict=True) for number in own
    ]
    if len(bars) > MOST_BARS:
        bars = [(run, own, f"{len(own)} rounds") for run, own in zip(runs, rounds, strict=True)]
    figure, axes = _axes(1.2 + 0.3 * len(bars))
    left = [0] * len(bars)
    for k, kind in enumerate(kinds):
        widths = [_bytes(run, numbers, kind) for run, numbers, _ in bars]
        axes.barh(
            range(len(bars)), widths, 0.7, left, color=COLOURS[k % 7], hatch=_HATCHES[k % 7], edgecolor="white",
            label=_short(kind),
        )  # fmt: skip
        left = [start + width for start, width in zip(left, widths, strict=True)]
    names = [text if len(runs) == 1 else f"{_short(run['run'], 24)}, {text}" for run, _, text in bars]
    axes.set_yticks(range(len(bars)), names)
    axes.set(xlabel="bytes", ylim=(len(bars) - 0.4, -0.6))
    axes.grid(True, axis="x", alpha=0.3)
    if kinds:
        _legend(figure)
    return _svg(figure, "traffic")


def _bytes(run: Document, numbers: Sequence[int], kind: str) -> int:
    return sum(row["bytes"] for row in run["messages"] if row["round"] in numbers and row["kind"] == kind)


def _short(text: str, longest: int = _LONGEST) -> str:
    """Return text that fits beside an axis."""
    return labels.clean(text, longest)


def _axes(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.subplots()


def _legend(figure: Any) -> None:
    figure.legend(loc="outside lower center", ncols=3, fontsize="small", frameon=False)


def _svg(figure: Any, name: str) -> str:
    """Return a figure as an SVG element that can stand in a page beside others: its names begin with ``picture-``."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>picture-{name}-", text)
    return text.replace("*{", f"#picture-{name} *{{").replace(
        "<svg ", f'<svg id="picture-{name}" role="img" ', 1
    )
