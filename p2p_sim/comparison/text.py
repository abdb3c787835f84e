"""A comparison as text: the table, the front, the recommendation with its reasons and doubts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
    lines = [f"{found.question.name}: {found.users:,} users; asked for: ε of {promises.told()}", ""]
    if fit:
        lines += [terminal.table(heads(found), [cells(found, row) for row in fit]), ""]
        lines += [*_folded(foot(found, fit)), ""]
    others = _folded(f"{', '.join(names)}: {status}: {why}" for names, status, why in left_out(rows))
    return "\n".join([*lines, *others, *([""] if others else []), *_folded(advice(found))]) + "\n"


def left_out(rows: Sequence[Mapping[str, Any]]) -> list[tuple[list[str], str, str]]:
    """Return which protocols are not in the table of what fits, those of one reason together: names, status, why."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["status"] not in _MARKS:
            groups.setdefault((row["status"], row["why"]), []).append(row["protocol"])
    return [(names, status, why) for (status, why), names in groups.items()]


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
    """Return the recommendation: what to take, and in further lines the reasons and the doubts."""
    chosen, promises = found.recommendation, found.question.promises
    if chosen.protocol is None:
        lines = [f"Nothing is recommended: {each}" for each in chosen.reasons]
        lines += [f"  to fit, {each.told(promises)}" for each in chosen.relax]
    else:
        lines = [taken(found)]
        lines += [f"  because {each}" for each in chosen.reasons]
        if chosen.seeds > 1:
            lines.append(
                f"  stable: {chosen.agreeing} of {chosen.seeds} seeds, each by itself, recommend the same"
            )
        lines += [f"  or {chosen.alternative}"] if chosen.alternative else []
    return lines + [f"  doubt: {each}" for each in chosen.doubts]


def taken(found: Comparison) -> str:
    """Return what is recommended, and at which setting: to six digits, and in full where these are not all."""
    chosen = found.recommendation
    if chosen.value is None or not chosen.parameter:
        return f"Take {chosen.protocol}."
    short = f"{chosen.value:.6g}"
    full = "" if float(short) == chosen.value else f" (in full {chosen.value!r})"
    return f"Take {chosen.protocol} with {chosen.parameter} = {short}{full}."


def _folded(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in terminal.folded(line, 4, _WIDTH)]


def _beside(row: Mapping[str, Any]) -> str:
    """Return the utility of true labels, and of guessing, in words."""
    found = ""
    for key, said in (("utility[true]", "on true labels"), ("utility[constant]", "by guessing")):
        if row.get(key) is not None:
            found += f"; {said} {shown(row[key], None, row['metric'])}"
    return found


def _shown(found: Comparison) -> int:
    return max(len(found.question.promises.every), _SHOWN_VIEWS)


def foot(found: Comparison, fit: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the columns of the table mean, a sentence each."""
    row, promise = fit[0], found.question.promises.target
    tests = f"{row['test_rows']:,.0f} " if row.get("test_rows") else ""
    which = "the same for all seeds" if "data" in found.question.people else "others for each seed"
    coins = ", of the protocols' coins alone" if "data" in found.question.people else ""
    said = [
        "*: on the front: no other is at least as good in utility, proven ε of every promise and of the worst party, "
        "bytes and seconds, and better in one",
        f"utility: {METRICS[row.get('metric') or 'accuracy']} on {tests}test rows, {which}: the mean over seeds ± "
        f"a 95 % interval{coins}{_beside(row)}",
        "ε: nats, exact unless marked; less is better for users.  worst party: the server or peer who learns most by "
        "herself",
        f"ε = {promise.epsilon:g}: of 100 labels that are one of two, each as likely, who has the view guesses "
        f"{figure_text.right_of_100(promise.epsilon)} right at most, δ aside; without it, 50",
        f"attack: how many labels more, in points, the best attacker of {promise.view.key} "
        "guesses than the baseline, who has no messages, and that attacker's name",
        "messages, bytes: of a user, sent and received.  seconds: simulated, links of 20 ms and 10 Mbit",
    ]
    if any(each["status"] == FITS for each in fit):
        said.append("utility -: no model was trained on what it released, so it is not recommended")
    return said
