"""A comparison as text: the table, the front, the recommendation with its reasons and doubts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison.recommendation import shown
from p2p_sim.comparison.table import DOMINATED, FITS, FRONT
from p2p_sim.report import figure_text, terminal

if TYPE_CHECKING:
    from p2p_sim.comparison.result import Comparison

METRICS = {
    "accuracy": "accuracy",
    "auc": "area under the ROC curve, as one class is rare,",
    "r2": "R², the share of the numbers' variance that is predicted,",
}
"""What utility is, in words."""

_MARKS = {FRONT: "*", DOMINATED: "", FITS: ""}
_WIDTH = 118
_SHOWN_VIEWS = 4


def as_text(found: Comparison) -> str:
    """Return a comparison as text."""
    rows = found.table.astype(object).where(found.table.notna(), None).to_dict("records")
    fit = [row for row in rows if row["status"] in _MARKS]
    promises = found.question.promises
    lines = [f"{found.question.name}: {found.users:,} users; {promises.told()}", ""]
    if fit:
        lines += [terminal.table(heads(found), [cells(found, row) for row in fit]), ""]
        lines += _foot(found, fit)
    lines += [
        f"{row['protocol']}: {row['status']}: {row['why']}" for row in rows if row["status"] not in _MARKS
    ]
    return "\n".join([*lines, "", *advice(found)]) + "\n"


def heads(found: Comparison) -> list[str]:
    """Return the heads of the table."""
    views = [f"ε {key}" for key in found.views[: _shown(found)]]
    return [
        "protocol", "", "setting", "utility", *views, "worst party", "attack", "baseline", "messages", "bytes",
        "seconds",
    ]  # fmt: skip


def cells(found: Comparison, row: Mapping[str, Any]) -> list[Any]:
    """Return a row of the table."""
    setting = f"{row['parameter']} = {row['value']:.4g}" if row.get("parameter") else "-"
    worst = "-" if not row.get("worst_party") else (f"{epsilon(row, 'worst party')} ({row['worst_party']})")
    attack = "-" if row.get("advantage") is None else f"{100 * row['advantage']:+.2f} {row['attacker']}"
    baseline = "-" if row.get("attack_baseline") is None else f"{100 * row['attack_baseline']:.2f} %"
    return [
        row["protocol"], _MARKS[row["status"]], setting, utility(row),
        *(epsilon(row, key) for key in found.views[: _shown(found)]),
        worst, attack, baseline, row.get("messages[a user]"), row.get("bytes[a user]"), row.get("seconds[network]"),
    ]  # fmt: skip


def utility(row: Mapping[str, Any]) -> str:
    """Return a utility with its error bar."""
    if row.get("utility") is None:
        return "-"
    return shown(row["utility"], row.get("utility_error"), row["metric"])


def epsilon(row: Mapping[str, Any], key: str) -> str:
    """Return what a view learns, with a mark for a basis that is not exact."""
    value, basis = row.get(f"epsilon_nats[{key}]"), row.get(f"basis[{key}]")
    if basis is None:
        return "-"
    if value is None or math.isnan(value):
        return str(basis)
    upper = row.get(f"epsilon_upper[{key}]")
    shown = upper if basis == "upper" and upper is not None else value
    return figure_text.number_text(shown) + ("" if basis == "exact" else f" {basis}")


def advice(found: Comparison) -> list[str]:
    """Return the recommendation in lines."""
    chosen, promises = found.recommendation, found.question.promises
    if chosen.protocol is None:
        lines = [f"Nothing is recommended: {each}" for each in chosen.reasons]
        lines += [f"  to fit, {each.told(promises)}" for each in chosen.relax]
    else:
        setting = f" with {chosen.parameter} = {chosen.value!r}" if chosen.parameter else ""
        lines = [f"Take {chosen.protocol}{setting}."]
        lines += [f"  because {each}" for each in chosen.reasons]
        if chosen.seeds > 1:
            lines.append(
                f"  stable: {chosen.agreeing} of {chosen.seeds} seeds, each by itself, recommend the same"
            )
        lines += [f"  or {chosen.alternative}"] if chosen.alternative else []
    lines += [f"  doubt: {each}" for each in chosen.doubts]
    return [part for line in lines for part in textwrap.wrap(line, _WIDTH, subsequent_indent="    ")]


def _beside(row: Mapping[str, Any]) -> str:
    """Return the utility of true labels, and of guessing, in words."""
    found = ""
    for key, said in (("utility[true]", "on true labels"), ("utility[constant]", "by guessing")):
        if row.get(key) is not None:
            found += f"; {said} {shown(row[key], None, row['metric'])}"
    return found


def _shown(found: Comparison) -> int:
    return max(len(found.question.promises.every), _SHOWN_VIEWS)


def _foot(found: Comparison, fit: list[dict[str, Any]]) -> list[str]:
    row = fit[0]
    said = [
        "*: on the front: no other is at least as good in utility, proven ε of every promise and of the worst party, "
        "bytes and seconds, and better in one",
        f"utility: {METRICS[row.get('metric') or 'accuracy']} on the test rows, mean over seeds ± 95 % interval"
        + _beside(row),
        "ε: nats, exact unless marked.  worst party: the server or peer who learns most by herself",
        f"attack: how many labels more, in points, the best attacker of {found.question.promises.target.view.key} "
        "guesses than the baseline, which has no messages",
        "messages, bytes: of a user, sent and received.  seconds: simulated, links of 20 ms and 10 Mbit",
    ]
    return [part for line in said for part in textwrap.wrap(line, _WIDTH, subsequent_indent="    ")] + [""]
