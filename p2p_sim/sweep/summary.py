"""What a sweep found, setting by setting: means over seeds with intervals, and the worst epsilon; as JSON and text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p2p_sim.report import terminal
from p2p_sim.result_summary import counted
from p2p_sim.sweep.settings import LISTS, SCALARS, SEEDS
from p2p_sim.sweep.table import FAILED, MADE

if TYPE_CHECKING:
    from p2p_sim.sweep.sweeping import Swept

CONFIDENCE = 0.95
"""Of an interval of a mean over seeds, by Student's t."""

RELEASED, CORRECTED, TRUE = "accuracy[released]", "accuracy[corrected]", "accuracy[true]"
RMSE, RMSE_TRUE = "rmse[released]", "rmse[true]"
"""Of numbers, in the label's unit, in the place of accuracies."""

_MEANS = (RELEASED, CORRECTED, TRUE)
_ERRORS = (RMSE, RMSE_TRUE)
_EPSILON = "epsilon_nats["
_FIRST = ("protocol", "data")
_MOST_VIEWS, _MOST_SETTINGS, _MOST_ERRORS = 4, 60, 10


def names_of_settings(table: Any) -> list[str]:
    """Return the columns that say what was run, except for seeds, and that differ between runs."""
    every = [*_FIRST, *SCALARS, *LISTS]
    named = [
        name
        for name in table
        if name not in SEEDS
        and (name in every or name.startswith(("parameter[", "promise[")))
        and not name.startswith(("promise[achieved", "promise[basis", "promise[vary"))
    ]
    found = [name for name in named if table[name].nunique() > 1]
    decided = {f"parameter[{name}]" for name in _cells(table, "promise[vary]")}
    return [name for name in found if name not in decided]


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the mean of trials, and the half width of its interval; that of one trial is not a number.

    *Assumes:* trials with independent seeds, and means that are close to normal.
    """
    n = len(values)
    mean = sum(values) / n if n else math.nan
    if n < 2:
        return mean, math.nan
    from scipy.special import stdtrit

    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return mean, float(stdtrit(n - 1, (1 + confidence) / 2)) * deviation / math.sqrt(n)


def by_setting(table: Any) -> list[dict[str, Any]]:
    """Return a row for each setting: what differs, trials, the worst epsilon of each view, mean accuracies, errors."""
    names = names_of_settings(table)
    views = [name for name in table if name.startswith(_EPSILON)]
    rows = []
    for number, runs in table.groupby("setting", sort=True):
        made = runs[runs["status"] == MADE]
        row: dict[str, Any] = {"setting": int(number)}
        row |= {name: _plain(runs[name].iloc[0]) for name in dict.fromkeys(("protocol", *names))}
        row |= {"runs": len(runs), "failed": int((runs["status"] == FAILED).sum())}
        for decided in dict.fromkeys(_cells(runs, "promise[vary]")):
            row[f"parameter[{decided}]"] = float(made[f"parameter[{decided}]"].mean()) if len(made) else None
        for name in views:
            known = made[name].dropna()
            row[name] = float(known.max()) if len(known) and len(known) == len(made) else None
        for name in (*_MEANS, *(name for name in _ERRORS if name in table)):
            known = [float(value) for value in made[name].dropna()] if name in made else []
            mean, half = interval(known)
            row |= {name: None if math.isnan(mean) else mean, f"±{name}": None if math.isnan(half) else half}
        rows.append(row)
    return rows


def document(swept: Swept, plot: str | None) -> dict[str, Any]:
    """Return a sweep as JSON values, except for the rows of its table, which are in its files."""
    failed = swept.table[swept.table["status"] == FAILED]
    return {
        "path": str(swept.path), "runs": swept.count, "made_before": swept.before, "failed": swept.failed,
        "confidence": CONFIDENCE, "settings": by_setting(swept.table),
        "errors": [
            {"run": int(run), "error": error} for run, error in zip(failed["run"], failed["error"], strict=True)
        ],
        "table": [str(swept.path / name) for name in swept.files], "plot": plot,
    }  # fmt: skip


def as_text(document: Mapping[str, Any]) -> str:
    """Return a sweep as text; ``document``: as above."""
    rows, failed = document["settings"], document["failed"]
    there = f"; {document['made_before']:,} were there already" if document["made_before"] else ""
    runs = f"{counted(document['runs'], 'run')} of {counted(len(rows), 'setting')}"
    lines = [f"{terminal.visible(document['path'])}: {runs}, {failed:,} failed{there}", "", _table(rows)]
    if len(rows) > _MOST_SETTINGS:
        lines.append(f"and {len(rows) - _MOST_SETTINGS:,} more settings, see the table")
    lines += [
        "",
        "ε: of one label, in nats, the largest of the runs of a setting.  ±: 95 % interval of a mean over seeds",
    ]
    lines += [
        f"run {each['run']} failed: {terminal.visible(each['error'])}"
        for each in document["errors"][:_MOST_ERRORS]
    ]
    if failed > _MOST_ERRORS:
        lines.append(f"and {failed - _MOST_ERRORS:,} more failed, see column error of the table")
    lines.append("Table written to " + " and ".join(map(terminal.visible, document["table"])))
    if document["plot"]:
        lines.append(f"Plot written to {terminal.visible(document['plot'])}")
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    skipped = ("setting", TRUE, RMSE_TRUE, *(f"±{name}" for name in (*_MEANS, *_ERRORS)))
    views = [
        name for name in rows[0] if name.startswith(_EPSILON) and any(row[name] is not None for row in rows)
    ]
    names = [
        name for name in dict.fromkeys(name for row in rows for name in row)
        if name not in skipped and (not name.startswith(_EPSILON) or name in views[:_MOST_VIEWS])
    ]  # fmt: skip
    names = [name for name in names if name != "failed" or any(row["failed"] for row in rows)]
    names = [
        name
        for name in names
        if name not in (RELEASED, CORRECTED, RMSE) or any(row[name] is not None for row in rows)
    ]
    cells = [[_cell(row, name) for name in names] for row in rows[:_MOST_SETTINGS]]
    return terminal.table([head(name) for name in names], cells)


def head(name: str) -> str:
    """Return what a column is called for readers."""
    if name.startswith(_EPSILON):
        return f"ε {name.removeprefix(_EPSILON)[:-1]}"
    if name == "promise[epsilon_nats]":
        return "promised ε"
    if name.startswith("promise["):
        return f"promised {name[8:-1]}"
    return name.removeprefix("parameter[").removesuffix("]") if name.startswith("parameter[") else name


def _cell(row: Mapping[str, Any], name: str) -> Any:
    if name not in (RELEASED, CORRECTED, RMSE) or row[name] is None:
        return row.get(name)
    half = row[f"±{name}"]
    if name == RMSE:
        return f"{row[name]:.4g}" + ("" if half is None else f" ± {half:.2g}")
    return f"{100 * row[name]:.2f}" + ("" if half is None else f" ± {100 * half:.2f}") + " %"


def _cells(table: Any, name: str) -> list[str]:
    return [] if name not in table else [str(value) for value in table[name].dropna().unique()]


def _plain(value: Any) -> Any:
    import pandas

    return None if pandas.isna(value) else value.item() if hasattr(value, "item") else value
