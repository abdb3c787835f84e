"""The figures of Theorem 3, PNG and SVG, drawn from rows in colours, markers and dashes that all can tell apart."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.report import matplotlib_settings, output_files

Rows = Sequence[Mapping[str, Any]]

BLUE, RED, GREEN, PINK, ORANGE, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000"
"""Okabe and Ito."""
_STYLE = {"svg.hashsalt": "p2p-sim", "svg.fonttype": "none"}
FLOOR = 3e-5  # where a figure of 0 is drawn on a logarithmic axis

LINES = (  # rule, column, name, colour, marker, dashes
    ("Theorem 3", "theorem3", "Theorem 3, at its own α", RED, "s", "-"),
    ("Theorem 3", "exact", "exact, at Theorem 3's α", BLUE, "o", "-"),
    ("fixed", "lemma9", "Lemma 9, at α = 0.1", ORANGE, "^", "--"),
    ("fixed", "exact", "exact, at α = 0.1", GREEN, "D", "--"),
)
MEASURED = (
    ("fixed", "measured, at α = 0.1", GREEN, "P"),
    ("Theorem 3", "measured, at Theorem 3's α", BLUE, "X"),
    ("exact", "measured, at the α that is exact for Theorem 3's promise", BLACK, "*"),
)
VIEWS = {
    "learner": "learner",
    "user": "a peer",
    "learner+1*user": "learner\n+ 1 peer",
    "learner+3*user": "learner\n+ 3 peers",
    "wire": "wire",
}
MARKERS = {
    "resampling alone": ("o", BLACK),
    "Theorem 3": ("s", RED),
    "Lemma 9": ("^", ORANGE),
    "exact accountant": ("D", BLUE),
    "randomized response": ("P", GREEN),
}


@matplotlib_settings.shipped(_STYLE)
def bounds(rows: Rows, path: Path) -> None:
    """Draw ε at δ = 1/s² against s: above what is promised, exact and measured, below the α it takes."""
    thetas = sorted({float(row["theta"]) for row in rows}, reverse=True)
    figure, grid = _panels(2, len(thetas), (4.0 * max(2, len(thetas)), 7.0))
    for column, theta in enumerate(thetas):
        here = [row for row in rows if float(row["theta"]) == theta]
        _epsilons(grid[0][column], here, theta)
        _alphas(grid[1][column], here)
    grid[0][0].set_ylabel("ε at δ = 1/s² (nats)")
    grid[1][0].set_ylabel("α, probability that a user flips her label")
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize="small")
    _save(figure, path)


def _epsilons(axes: Any, rows: Rows, theta: float) -> None:
    for rule, column, name, colour, marker, dashes in LINES:
        x, y = _pairs(rows, rule, column)
        axes.plot(x, y, color=colour, marker=marker, linestyle=dashes, markerfacecolor="none", label=name)
    for rule, name, colour, marker in MEASURED:
        x, y = _pairs(rows, rule, "measured")
        axes.plot(x, y, color=colour, marker=marker, linestyle="", markersize=8, label=name)
    axes.set(xscale="log", yscale="log", ylim=(FLOOR / 1.5, 20), xlim=_wide(rows), title=f"θ = {theta:g}")
    axes.axhline(FLOOR * 1.6, color="grey", linewidth=0.6)
    axes.text(min(_wide(rows)) * 1.1, FLOOR * 2, "below the line: nothing measured", fontsize="x-small")
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)


def _alphas(axes: Any, rows: Rows) -> None:
    for rule, name, colour, marker in (("Theorem 3", "Theorem 3", RED, "s"), ("exact", "exact", BLUE, "D")):
        x, y = _pairs(rows, rule, "alpha")
        axes.plot(x, y, color=colour, marker=marker, linestyle="-" if marker == "s" else "--", label=name)
    axes.set(xscale="log", yscale="log", ylim=(1e-6, 1), xlim=_wide(rows), xlabel="s, users in a cluster")
    axes.legend(title="α asked for Theorem 3's promise", loc="lower left", fontsize="small")
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)


def _wide(rows: Rows) -> tuple[float, float]:
    sizes = [float(row["cluster_size"]) for row in rows]
    return min(sizes) / 1.6, max(sizes) * 1.6


def _pairs(rows: Rows, rule: str, column: str) -> tuple[list[float], list[float]]:
    found = [
        (
            float(row["cluster_size"]),
            max(FLOOR, float(row[column])) if column != "alpha" else float(row[column]),
        )
        for row in rows
        if row["rule"] == rule and row[column] != ""
    ]
    return [x for x, _ in found], [y for _, y in found]


@matplotlib_settings.shipped(_STYLE)
def utility(rows: Rows, path: Path) -> None:
    """Draw each method's test accuracy with error bars, and below what every view gets there."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, grid = _panels(2, len(names), (7.0 * len(names), 9.5))
    for column, name in enumerate(names):
        here = [row for row in rows if row["data"] == name]
        _accuracies(grid[0][column], here, name)
        _views(grid[1][column], [row for row in here if row["alpha"] not in ("", "0")])
    _save(figure, path)


def _accuracies(axes: Any, rows: Rows, name: str) -> None:
    first = rows[0]
    true, majority = (100 * float(first[column]) for column in ("accuracy_true", "majority"))
    axes.axvline(true, color=BLACK, linestyle="--", label=f"true labels ({true:.1f} %)")
    axes.axvline(majority, color="grey", linestyle=":", label=f"always the majority ({majority:.1f} %)")
    for place, row in enumerate(rows):
        marker, colour = MARKERS[row["method"]]
        if row["accuracy"] == "":
            axes.text(majority, place, " does not apply", va="center", fontsize="small", color=colour)
            continue
        x, error = 100 * float(row["accuracy"]), 100 * float(row["accuracy_sd"] or 0)
        style = {"markerfacecolor": "none"} if _small(row) else {}
        axes.errorbar(x, place, xerr=error, color=colour, marker=marker, capsize=4, markersize=7, **style)
    axes.set_yticks(range(len(rows)), [_called(row, ",\n") for row in rows], fontsize="small")
    axes.set_ylim(len(rows) + 0.9, -0.6)  # room for the legend
    promise = f"ε = {float(first['epsilon']):.3g} at δ = {float(first['delta']):.1g}"
    axes.set(
        title=f"{name}, {promise} promised of the learner", xlabel="test accuracy (%), mean and s.d. of seeds"
    )
    axes.legend(loc="lower left", fontsize="small")
    axes.grid(True, axis="x", alpha=0.3)


def _views(axes: Any, rows: Rows) -> None:
    for number, row in enumerate(rows):
        marker, colour = MARKERS[row["method"]]
        values = [float(row[f"epsilon_{view}"]) for view in VIEWS]
        places = [place + 0.13 * (number - (len(rows) - 1) / 2) for place in range(len(VIEWS))]
        style = {"markerfacecolor": "none"} if _small(row) else {}
        axes.plot(places, values, color=colour, marker=marker, linestyle="", label=_called(row), **style)
    axes.set_xticks(range(len(VIEWS)), list(VIEWS.values()))
    axes.set(ylim=(-0.4, 16), ylabel="ε at the same δ (nats)")
    axes.legend(fontsize="small", title="at the α of", loc="upper center")
    axes.grid(True, axis="y", alpha=0.3)


def _small(row: Mapping[str, Any]) -> bool:
    return row["clusters"] != "none" and int(row["clusters"]) > 10


def _called(row: Mapping[str, Any], before: str = ", ") -> str:
    about = [] if row["clusters"] == "none" else [f"{row['clusters']} clusters"]
    about += [] if row["alpha"] == "" else [f"α = {float(row['alpha']):.3g}"]
    return before.join([row["method"], ", ".join(about)])


def _panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _save(figure: Any, path: Path) -> None:
    """Write path.png and path.svg, whole or not at all, the same bytes for the same rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for kind, about in (("png", {"Software": None}), ("svg", {"Date": None})):
        place = path.with_suffix(f".{kind}")
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, dpi=110, metadata=about)
        output_files.write(place, drawn.getvalue())
