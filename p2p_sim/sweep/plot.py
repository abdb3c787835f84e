"""The plot of a sweep: accuracy or error against epsilon, with intervals over seeds; a line for each series."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.report import output_files, plots, terminal
from p2p_sim.report.curves import COLOURS
from p2p_sim.report.plots import Plot, legend, panels, settle, style
from p2p_sim.result_summary import counted
from p2p_sim.sweep.grids import Grids
from p2p_sim.sweep.settings import trains
from p2p_sim.sweep.summary import RELEASED, RMSE, RMSE_TRUE, TRUE, by_setting, head, names_of_settings

ENDINGS = (".svg", ".png")
_MARKS = "osD^vP*X"
_ACROSS = 3  # panels in a row

Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Utility:
    """What is drawn: the columns of released and of true labels, what one unit is shown as, and words."""

    released: str
    true: str
    shown: float
    label: str
    title: str


_ACCURACY = _Utility(RELEASED, TRUE, 100.0, "test accuracy (%), released labels", "Test accuracy")
_ERROR = _Utility(RMSE, RMSE_TRUE, 1.0, "test RMSE, released numbers", "Test error")


def check(path: str) -> None:
    """Check, before any work, that a plot can be written; raises InputError."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InputError(f"--plot {path!r}: the name must end in .svg or .png")
    output_files.check(path, "--plot", ENDINGS)


def check_grids(grids: Grids) -> None:
    """Check, before any run is made, that one of them trains a model; raises InputError."""
    some = ("data", "features", "model")
    choices = (itertools.product(*(axes.get(name, [None]) for name in some)) for axes in grids.grids)
    for values in itertools.chain.from_iterable(choices):
        given = zip(some, values, strict=True)
        if trains({name: value for name, value in given if value is not None}):
            return
    raise InputError(
        "--plot draws accuracy against ε, and no run of this sweep trains a model: give data, or users with features, "
        'and no model = "none"; or leave --plot out'
    )


def write(path: str, table: Any) -> str:
    """Draw a sweep's table into a file; return what was left out, empty if nothing.  Raises InputError."""
    made = drawn(table)
    output_files.write(Path(path), made.png() if path.lower().endswith(".png") else made.svg())
    left_out = len(by_setting(table)) - len(made.rows)
    what = "an error" if RMSE in made.columns else "an accuracy"
    return f"{counted(left_out, 'setting')} without a finite ε or {what}: not drawn" if left_out else ""


def drawn(table: Any) -> Plot:
    """Return the plot: a panel for each data set.  Raises InputError where no setting has both figures."""
    view = _view(table)
    x = f"epsilon_nats[{view}]"
    every = by_setting(table)
    numbers = all(row[RELEASED] is None for row in every) and any(row.get(RMSE) for row in every)
    of = _ERROR if numbers else _ACCURACY
    rows = [
        row for row in every
        if row.get(x) is not None and math.isfinite(row[x]) and row[of.released] is not None
    ]  # fmt: skip
    if not rows:
        raise InputError(
            f"--plot: no setting has both an ε of view {view!r} and an accuracy: train a model, or leave --plot out"
        )
    names = names_of_settings(table)
    sets = list(dict.fromkeys(row.get("data") for row in rows))
    labels = _labels(rows, names)
    series = list(dict.fromkeys(labels))
    across = min(_ACROSS, len(sets))
    down = math.ceil(len(sets) / across)
    with style():
        figure, grid = panels(down, across, 0.8 + 2.8 * down, sharey=True)
        for axes in grid.ravel()[len(sets) :]:
            axes.set_visible(False)
        for number, data in enumerate(sets):
            axes = grid[number // across, number % across]
            for place, label in enumerate(series):
                pairs = zip(rows, labels, strict=True)
                _line(
                    axes,
                    [row for row, its in pairs if its == label and row.get("data") == data],
                    label,
                    place,
                    x,
                    of,
                )
            _truth(axes, [row for row in rows if row.get("data") == data], of)
            axes.set(xlabel=f"ε of {view} (nats)", title="" if data is None else str(data))
        for axes in grid[:, 0]:
            axes.set_ylabel(of.label)
        marks = [
            pair for axes in grid.ravel() for pair in zip(*axes.get_legend_handles_labels(), strict=True)
        ]
        legend(figure, list({text: mark for mark, text in marks}.values()))
        settle(figure)
    columns = ["setting", x, of.released, "half_width", "runs"]
    return Plot(
        "sweep", figure, f"{of.title} against ε of {view}, with 95 % intervals over seeds", columns,
        [[row["setting"], row[x], row[of.released], row[f"±{of.released}"], row["runs"]] for row in rows],
    )  # fmt: skip


def _line(axes: Any, rows: Sequence[Row], label: str, place: int, x: str, of: _Utility) -> None:
    """Draw a series in one panel: means, joined in the order of epsilon, and their intervals."""
    own = sorted(rows, key=lambda row: float(row[x]))
    half = [0.0 if row[f"±{of.released}"] is None else of.shown * row[f"±{of.released}"] for row in own]
    if own:
        axes.errorbar(
            [row[x] for row in own], [of.shown * row[of.released] for row in own], yerr=half, capsize=3, lw=1.2, ms=4,
            color=COLOURS[place % len(COLOURS)], marker=_MARKS[place % len(_MARKS)], label=label,
        )  # fmt: skip


def _truth(axes: Any, rows: Sequence[Row], of: _Utility) -> None:
    """Draw the mean accuracy, or error, of what was trained on true labels."""
    truth = [of.shown * row[of.true] for row in rows if row[of.true] is not None]
    if truth:
        axes.axhline(sum(truth) / len(truth), color=plots.INK, ls=(0, (1, 2)), lw=1, label="true labels")
    axes.grid(True, alpha=0.3)


def _view(table: Any) -> str:
    """Return whose epsilon is drawn: that of the promise, or the learner's, or of the first view that there is."""
    views = [name.removeprefix("epsilon_nats[")[:-1] for name in table if name.startswith("epsilon_nats[")]
    promised = [] if "promise[view]" not in table else list(table["promise[view]"].dropna().unique())
    first = [view for view in (*promised, "learner") if view in views] or views
    if not first:
        raise InputError("--plot: there is no ε of any view: name views, or leave --plot out")
    return str(first[0])


def _labels(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return the series of each row: its protocol, and all that varies there but data and one parameter.

    Along that parameter a line is drawn: the promised epsilon, or the number that has the most values.
    """
    varied: dict[str, list[str]] = {}
    for protocol in {row["protocol"] for row in rows}:
        own = [row for row in rows if row["protocol"] == protocol]
        values = {name: {row.get(name) for row in own} for name in names if name not in ("protocol", "data")}
        several = [name for name, found in values.items() if len(found) > 1]
        numbers = [name for name in several if all(isinstance(value, (int, float)) for value in values[name])]
        promised = [name for name in numbers if name == "promise[epsilon_nats]"]
        along = promised or sorted(numbers, key=lambda name: -len(values[name]))
        varied[protocol] = [name for name in several if name not in along[:1]]
    found = []
    for row in rows:
        parts = [f"{head(name)} = {terminal.cell(row.get(name))}" for name in varied[row["protocol"]]]
        found.append(", ".join([row["protocol"], *parts]))
    return found
