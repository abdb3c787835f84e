"""The figures of Theorem 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments._plots import BLACK, BLUE, GREEN, ORANGE, RED, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]

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


def bounds(rows: Rows) -> Figure:
    """Draw ε at δ = 1/s² against s: above what is promised, exact and measured, below the α it takes."""
    thetas = sorted({float(row["theta"]) for row in rows}, reverse=True)
    figure, grid = panels(2, len(thetas), (4.0 * max(2, len(thetas)), 7.0))
    for column, theta in enumerate(thetas):
        here = [row for row in rows if float(row["theta"]) == theta]
        _epsilons(grid[0][column], here, theta)
        _alphas(grid[1][column], here)
    grid[0][0].set_ylabel("ε at δ = 1/s² (nats)")
    grid[1][0].set_ylabel("α, probability that a user flips her label")
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize="small")
    return figure


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


def utility(rows: Rows) -> Figure:
    """Draw each method's test accuracy with error bars, and below what every view gets there."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, grid = panels(2, len(names), (7.0 * len(names), 9.5))
    for column, name in enumerate(names):
        here = [row for row in rows if row["data"] == name]
        _accuracies(grid[0][column], here, name)
        _views(grid[1][column], [row for row in here if row["alpha"] not in ("", "0")])
    return figure


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


def beyond(rows: Rows) -> Figure:
    """Draw what the accountant finds beyond the theorem, a panel a kind, beside what follows from less."""
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    lines = (len(kinds) + 1) // 2
    figure, grid = panels(lines, 2, (11.0, 3.7 * lines))
    for empty in grid.ravel()[len(kinds) :]:
        empty.set_visible(False)
    for axes, kind in zip(grid.ravel(), kinds, strict=False):
        here = [row for row in rows if row["what"] == kind]
        values = list(dict.fromkeys(str(row["value"]) for row in here))
        for rule, colour, marker in (("fixed", GREEN, "D"), ("Theorem 3", BLUE, "o")):
            line = [row for row in here if row["rule"] == rule]
            if not line:
                continue
            at = [values.index(str(row["value"])) for row in line]
            name = "α = 0.1" if rule == "fixed" else "Theorem 3's α"
            for column, dashes, label in (("epsilon", "-", "accountant"), ("local", ":", "own label alone")):
                y = [max(FLOOR, float(row[column])) for row in line]
                axes.plot(at, y, color=colour, marker=marker, linestyle=dashes, label=f"{label}, {name}")
            if rule == "Theorem 3":
                y = [float(row["theorem3"]) for row in line]
                axes.plot(at, y, color=RED, marker="s", label="from Theorem 3")
        names = [value.replace(" and ", "\nand ") for value in values]
        axes.set_xticks(
            range(len(values)), names, fontsize="small", rotation=25 if kind in ("graph", "then") else 0
        )
        axes.set(yscale="log", xlabel=kind, ylabel="ε of the learner (nats)")
        axes.grid(True, alpha=0.3)
    drawn = [axes.get_legend_handles_labels() for axes in grid.ravel()]
    known = {name: handle for handles, names in drawn for name, handle in zip(names, handles, strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=3, fontsize="small")
    return figure
