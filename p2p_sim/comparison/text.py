"""A comparison as text: the table, the front, the recommendation with its reasons and doubts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from p2p_sim.comparison.recommendation import features_tell, is_useful, shown
from p2p_sim.comparison.table import DOMINATED, FITS, FRONT
from p2p_sim.leakage.attacker_names import OPTIMAL
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
_OTHER_VIEWS = 5


def as_text(found: Comparison) -> str:
    """Return a comparison as text."""
    rows, fit = _rows(found), _fit(found)
    promises = found.question.promises
    lines = [f"{found.question.name}: {found.users:,} users; asked for: ε of {promises.text()}", ""]
    if fit:
        for those in (columns(found), details(found)):
            lines += [terminal.table([each.head for each in those], cells(those, fit)), ""]
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


@dataclass(frozen=True)
class Column:
    """A column of a table: its ``head``, what that means, and the cell of a row."""

    head: str
    meaning: str
    cell: Callable[[Mapping[str, Any]], Any]


def columns(found: Comparison) -> list[Column]:
    """Return the columns of the table of what fits: what decides."""
    named = [each.view.key for each in found.question.promises.every]
    return [
        Column("protocol", "its name", lambda row: row["protocol"]),
        Column(
            "",
            "* on the front, o no better than guessing",
            partial(mark, informative=features_tell(_fit(found))),
        ),
        Column("setting", "what was calibrated, and to what", setting),
        Column("utility", "on the test rows, with a 95 % interval", utility),
        *(
            Column(f"ε {key}", f"what {key} learns of one label, in nats", partial(epsilon, key=key))
            for key in named
        ),
        Column(
            "ε most", "what the party learns who learns most by herself", partial(epsilon, key="worst party")
        ),
        Column(
            "attack", "labels the best attacker gets right beyond what she would without messages", attack
        ),
        Column("bytes", "that a user sends and receives", lambda row: row.get("bytes[a user]")),
    ]


def details(found: Comparison) -> list[Column]:
    """Return the columns of the second table of what fits: what the first leaves out."""
    named = {each.view.key for each in found.question.promises.every}
    others = [key for key in found.views if key not in named][:_OTHER_VIEWS]
    return [
        Column("protocol", "its name", lambda row: row["protocol"]),
        Column("who learns most", "the server or peer who learns most by herself", _most),
        Column("attacker", "the best one, and the basis of her figure", attacker),
        Column("baseline", "labels guessed right without messages", baseline),
        Column("messages", "that a user sends and receives", lambda row: row.get("messages[a user]")),
        Column("seconds", "simulated, over the network alone", lambda row: row.get("seconds[network]")),
        *(
            Column(f"ε {key}", f"what {key} learns of one label, in nats", partial(epsilon, key=key))
            for key in others
        ),
    ]


def mark(row: Mapping[str, Any], informative: bool) -> str:
    """Return what stands beside a protocol; ``informative``: whether true labels are better than guessing."""
    if row.get("utility") is not None and not (informative and is_useful(dict(row))):
        return "o"
    return _MARKS[row["status"]]


def _fit(found: Comparison) -> list[dict[str, Any]]:
    return [row for row in _rows(found) if row["status"] in _MARKS]


def _rows(found: Comparison) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        found.table.astype(object).where(found.table.notna(), None).to_dict("records")
    )
    return rows


def cells(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the cells of a table."""
    return [[column.cell(row) for column in columns] for row in rows]


def setting(row: Mapping[str, Any]) -> str:
    """Return what was calibrated."""
    return f"{row['parameter']} = {row['value']:.4g}" if row.get("parameter") else "-"


def attack(row: Mapping[str, Any]) -> str:
    """Return the advantage of the best attacker in points, with its interval."""
    if row.get("advantage") is None:
        return "-"
    value, lower, upper = (100 * row[name] for name in ("advantage", "advantage_lower", "advantage_upper"))
    return f"{value:+.1f}" + (f" [{lower:.1f}, {upper:.1f}]" if upper > lower else "")


def attacker(row: Mapping[str, Any]) -> str:
    """Return the best attacker, and on what her figure stands."""
    return f"{row['attacker']} ({row['attack_basis']})" if row.get("attacker") else "-"


def baseline(row: Mapping[str, Any]) -> str:
    """Return the share of labels that is guessed right without messages."""
    return "-" if row.get("attack_baseline") is None else f"{100 * row['attack_baseline']:.2f} %"


def _most(row: Mapping[str, Any]) -> str:
    return str(row.get("worst_party") or "-")


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
    chosen = found.recommendation
    if chosen.protocol is None:
        lines = [f"Nothing is recommended: {each}" for each in chosen.reasons]
        lines += [f"  {each}" for each in ways_out(found)]
    else:
        lines = [taken(found)]
        lines += [f"  because {each}" for each in chosen.reasons]
        if chosen.seeds > 1:
            lines.append(
                f"  stable: {chosen.agreeing} of {chosen.seeds} seeds, each by itself, recommend the same"
            )
        lines += [f"  or {chosen.alternative}"] if chosen.alternative else []
    return lines + [f"  doubt: {each}" for each in chosen.doubts]


def ways_out(found: Comparison) -> list[str]:
    """Return what would help where nothing is recommended, a sentence each."""
    chosen = found.recommendation
    relaxed = [f"what would do: {each.text(found.question.promises)}" for each in chosen.relax]
    return [*relaxed, *(f"what would do: {each}" for each in chosen.instead)]


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
    for key, baseline in (("utility[true]", "on true labels"), ("utility[constant]", "by guessing")):
        if row.get(key) is not None:
            found += f"; {baseline} {shown(row[key], None, row['metric'])}"
    return found


def foot(found: Comparison, fit: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the columns of the table mean, a sentence each."""
    row, promise = fit[0], found.question.promises.target
    tests = f"{row['test_rows']:,.0f} " if row.get("test_rows") else ""
    if "data" in found.question.people:
        which, covers = "the same for all seeds", ", which covers only the protocols' randomness"
    else:
        which, covers = "drawn anew for each seed", ""
    informative = features_tell([dict(each) for each in fit])
    front = (
        "*: on the front: no other is better in one of these and at least as good in all: utility, proven ε of every "
        "promise and of who learns most, bytes and seconds"
    )
    lines = [
        *([front] if any(mark(each, informative) == _MARKS[FRONT] for each in fit) else []),
        *_of_guessing(fit, informative),
        *_of_dominated(fit),
        f"utility: {METRICS[row.get('metric') or 'accuracy']} on {tests}test rows, {which}: the mean over seeds ± "
        f"a 95 % interval{covers}{_beside(row)}",
        "ε: nats, exact unless marked; less is better for users.  ε most: of the server or peer who learns most by "
        "herself",
        f"ε = {promise.epsilon:g}: of 100 labels that are one of two, equally likely, whoever has the view guesses "
        f"at most {figure_text.right_of_100(promise.epsilon)} right, δ aside; without it, 50",
        *_of_attacks(fit, promise.view.key),
        "messages, bytes: of a user, sent and received.  seconds: simulated, links of 20 ms and 10 Mbit",
        *_of_alike(fit),
    ]
    if any(each["status"] == FITS for each in fit):
        lines.append("utility -: no model was trained on what it released, so it is not recommended")
    return lines


def _of_guessing(fit: Sequence[Mapping[str, Any]], informative: bool) -> list[str]:
    """Return what the mark of those means that only guess."""
    if not any(mark(row, informative) == "o" for row in fit):
        return []
    why = "" if informative else ", as true labels are not either"
    return [f"o: not shown to be better than guessing, as far as test rows and seeds can show (95 %){why}"]


def _of_dominated(fit: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which protocols are dominated, by whom."""
    pairs = [f"{row['protocol']} by {row['dominated_by']}" for row in fit if row["status"] == DOMINATED]
    return [f"dominated, so without *: {', '.join(pairs)}"] if pairs else []


def _of_alike(fit: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return that two protocols are one, where a default makes them so."""
    names = {str(row["protocol"]) for row in fit}
    pair = {"randomized-response", "prior-response"}
    return [_ALIKE] if pair <= names else []


_ALIKE = (
    "prior-response is randomized-response where its prior has all labels as likely, as here: compare gives it no "
    "other"
)


def _of_attacks(fit: Sequence[Mapping[str, Any]], view: str) -> list[str]:
    """Return what the attack's figures mean, and why baselines differ where they do."""
    attacked = [row for row in fit if row.get("advantage") is not None]
    if not attacked:
        return []
    fewest, most = (which(int(row["attack_seeds"]) for row in attacked) for which in (min, max))
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    weighted = attacked[0].get("attack_utility") == "weighted"
    explained = (
        f"attack: {_OF_RARE if weighted else _OF_ALL} by the best attacker of {view}, beyond what she would get right "
        f"without messages: the mean over {seeds} {'seed' if most == 1 else 'seeds'}, and its 95 % interval, corrected "
        "for choosing the best"
    )
    coins = [str(row["protocol"]) for row in attacked if row["advantage_of"] == "coins"]
    if coins:
        explained += (
            f"; it covers only the protocols' randomness, as users' messages are mixed: {', '.join(coins)}"
        )
    worse = [str(row["protocol"]) for row in attacked if row["advantage"] <= 0]
    none = [f"no better with messages than without: the attack on {', '.join(worse)}"] if worse else []
    optimal = [_OPTIMAL] if any(str(row["attacker"]) == OPTIMAL for row in attacked) else []
    shares = [float(row["attack_baseline"]) for row in attacked]
    least, most_right = (f"{100 * share:.2f}" for share in (min(shares), max(shares)))
    right = least if least == most_right else f"{least} to {most_right}"
    worth = f"a balanced accuracy of {right} %" if weighted else f"right for {right} % of labels"
    why = "" if least == most_right else f"; {_WHY_BASELINES}"
    return [explained, *none, *optimal, f"baseline: the best guess without messages, {worth}{why}"]


_OF_ALL = "labels got right, in points,"
_OF_RARE = "points of balanced accuracy, as one class is rare,"

_OPTIMAL = (
    "optimal: the attacker who guesses by Bayes, from the messages and an estimate of P(label | features).  She is the "
    "best one only if the estimate is right; if it is not, she may do worse than the baseline"
)

_WHY_BASELINES = (
    "it differs where runs are among other users, and where users meet in clusters: everybody knows who is in which, "
    "and may guess by their shares of labels"
)
