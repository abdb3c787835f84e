"""The table of attackers: how many labels each guesses, with and without the messages; as rows and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.leakage.advantage import CANARIES, exceeded_claims, violations
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.label_inference import Interval, LabelInference
from p2p_sim.privacy.table_rows import TableRow
from p2p_sim.report import terminal, users_at_risk
from p2p_sim.report.figure_text import number_text
from p2p_sim.run import Run

Progress = Callable[[str, int, int], None]
Document = Mapping[str, Any]

REFUSED = "refused"
WEIGHTED = "weighted"
OPTIMAL = "optimal"
LEARNER = "learner"
ETA = "knn"
"""Who looks, and what she thinks of labels before, unless others are asked for."""

ABOVE = (
    "an attack does better than the law of its view allows, or labels depend on their place or cluster beyond what is "
    "thought of them"
)
CLAIM = "an attack does better than a theorem claims that is not proven here"

ESTIMATED = (
    "That is of an attacker with this estimate of P(label | features); who has a better one may gain more by the "
    "messages, or less."
)

DEVIATING = (
    "the messages of a run are those of users who follow the protocol; what others can do is in p2p-sim account and "
    "audit"
)
"""Why a view of users who deviate is not attacked."""

BEFOREHAND = ", by what she thinks beforehand,"
"""Where the best guess without messages is by an estimate of P(label | features)."""

_NUMBERS = ("utility", "baseline", "advantage", "ratio")
_HAIR = 1e-6  # of a person
_PEOPLE = (100, 1_000, 10_000, 100_000, 1_000_000)


def row(
    view: TableRow, found: LabelInference | None, refused: str, channels: str = "plain"
) -> dict[str, Any]:
    """Return what attackers with one view guess, as JSON values; ``found``: None if ``refused`` says why there is none.

    ``per_user`` counts users; the distribution itself is too long for a document.
    """
    result: dict[str, Any] = {"view": view.title, "name": view.name, "refused": refused}
    if found is None:
        return result
    above = violations(found)
    made: dict[str, Any] = result | {
        "channels": channels, "users": found.users, "labels": found.labels, "eta_from": found.eta_from,
        "utility": found.utility, "confidence": found.confidence,
        "attackers": [
            {name: getattr(each, name) for name in ("name", "basis", "source", "why")}
            | {name: _ends(getattr(each, name)) for name in _NUMBERS}
            for each in found.rows
        ],
        "bounds": [
            {name: value for name, value in asdict(bound).items() if name != "parameters"}
            for bound in found.bounds
        ],
        "per_user": None if found.per_user is None else users_at_risk.counted(found.per_user),
        "above": [str(each) for each in above], "failed": bool(above),
        "exceeded_claims": [str(each) for each in exceeded_claims(found)],
    }  # fmt: skip
    plain: dict[str, Any] = terminal.plain(made | {"sentences": sentences(terminal.plain(made))})
    return plain


def rows_of(
    run: Run,
    views: Sequence[TableRow],
    progress: Progress,
    *,
    must: bool,
    channels: str = "plain",
    **how: Any,
) -> tuple[dict[str, LabelInference], list[dict[str, Any]]]:
    """Attack each view of a run; return what was found, by the view's title, and the rows of all.

    ``must``: whether a view that cannot be attacked raises InputError; otherwise its row says why.  The row of a view
    whose users deviate always does.  ``how``: as for ``leakage.attack``.
    """
    found: dict[str, LabelInference] = {}
    made = []
    for view in views:
        if view.users != "curious":
            made.append(row(view, None, DEVIATING))
            continue

        def tell(label: str, done: int, total: int, title: str = view.title) -> None:
            progress(f"{title}: {label}", done, total)

        why = ""
        try:
            found[view.title] = attack(run, view.name, channels=channels, progress=tell, **how)
        except InputError as error:
            if must:
                raise
            why = str(error)
        made.append(row(view, found.get(view.title), why, channels))
    return found, made


def _ends(found: Interval) -> dict[str, float | None]:
    return {name: None if math.isnan(end) else end for name, end in found._asdict().items()}


def best(attacked: Document) -> Document | None:
    """Return the attacker who guesses most, of users rather than of canaries; None if all are refused."""
    every = [each for each in attacked["attackers"] if each["basis"] != REFUSED]
    done = [each for each in every if each["name"] != CANARIES] or every
    return max(done, key=lambda each: (each["utility"]["value"], each["name"] == OPTIMAL), default=None)


def sentences(attacked: Document) -> list[str]:
    """Return in plain words what the table says: of the best attacker, and of whom she is sure."""
    one = best(attacked)
    if one is None:
        return ["No attack could be made with what this view contains."]
    said = [_guesses(attacked, one)]
    if one["basis"] != "exact":
        said.append(_between(attacked, one["advantage"]))
        if one["baseline"]["lower"] < one["baseline"]["upper"] and one["name"] != CANARIES:
            said.append(ESTIMATED)
    if attacked["per_user"] is not None:
        said.append(users_at_risk.sentence(attacked["per_user"]))
    return said


def _guesses(attacked: Document, one: Document) -> str:
    with_them, without = one["utility"]["value"], one["baseline"]["value"]
    if attacked["utility"] == WEIGHTED:
        with_them = max(with_them, without)  # she may leave the messages out
        return (
            "Where a right guess counts the more the rarer its label is, and blind guesses are worth 0.5, an attacker "
            f"with these messages gets {number_text(with_them)}; without them {number_text(without)}."
        )
    people = next(
        (people for people in _PEOPLE if abs(with_them - without) * people >= 1 - _HAIR), _PEOPLE[0]
    )
    right, blind = (round(share * people) for share in (with_them, without))
    whom = "flips of planted users' labels" if one["name"] == CANARIES else "people"
    who = f"Of {people:,} {whom}, an attacker with these messages guesses"
    if right <= blind:  # she may leave them out
        return f"{who} {blind:,} right, as many as without them."
    known = one["baseline"]["lower"] == one["baseline"]["upper"] or one["name"] == CANARIES
    return f"{who} {right:,} right; without them{'' if known else BEFOREHAND} {blind:,}."


def _between(attacked: Document, advantage: Document) -> str:
    """Return in words how sure it is what the messages add."""
    scale, unit = (1, "") if attacked["utility"] == WEIGHTED else (100, " right guesses of 100")
    low, high = (f"{scale * advantage[end]:.3g}" for end in ("lower", "upper"))
    said = f"With confidence {_percent(attacked['confidence'])}, the messages add"
    if unit and advantage["upper"] - advantage["lower"] >= 1 - _HAIR:
        return "Messages of so few crowds, in one run, do not tell how much they add."
    if advantage["upper"] <= 0:
        return f"{said} nothing to this."
    if advantage["lower"] <= 0:
        return f"{said} {high}{unit} at most, and perhaps nothing."
    return f"{said} between {low} and {high}{unit}."


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def interval(found: Document) -> str:
    """Return a figure with both ends, rounded outward; alone where it is exact."""
    value, low, high = (found[name] for name in ("value", "lower", "upper"))
    if value is None:
        return "-"
    if low == high:
        return number_text(value)
    return f"{number_text(value)} ({_outward(low, math.floor)} to {_outward(high, math.ceil)})"


def _outward(value: float | str | None, way: Any) -> str:
    if not isinstance(value, (int, float)):  # infinite
        return str(value)
    return f"{way(value * 1e4 - 1e-9 * (way is math.ceil) + 1e-9 * (way is math.floor)) / 1e4:.4g}"


def head(attacked: Document) -> list[str]:
    """Return the names of the columns of ``lines``."""
    counted = "guessed right" if attacked["utility"] != WEIGHTED else "weighted utility"
    sure = f"({_percent(attacked['confidence'])})"
    return ["attacker", f"{counted} {sure}", "without the messages", f"advantage {sure}", "ratio", "basis"]


def lines(attacked: Document) -> list[list[str]]:
    """Return a line for each attacker, the best first, those that are refused last."""
    order = sorted(attacked["attackers"], key=lambda each: -(each["utility"]["value"] or -math.inf))
    return [
        [each["name"], *(interval(each[name]) for name in _NUMBERS), each["basis"]]
        for each in sorted(order, key=lambda each: each["basis"] == REFUSED)
    ]


def notes(attacked: Document) -> list[str]:
    """Return where each attacker comes from, or why it is refused."""
    return [
        f"{each['name']}: {each['why'] if each['basis'] == REFUSED else each['source']}"
        for each in attacked["attackers"]
    ]


def bound_lines(attacked: Document) -> list[list[str]]:
    """Return a line for each bound: what of, at most, its basis, and its source or why it does not apply."""
    return [
        [
            bound["quantity"],
            number_text(bound["value"]) if bound["holds"] else "does not apply",
            bound["basis"],
            bound["source"] if bound["holds"] else f"{bound['source']}: {bound['why']}",
        ]
        for bound in attacked["bounds"]
    ]


BOUND_HEAD = ("bound of", "at most", "basis", "source")


def as_text(document: Document) -> str:
    """Return the document of ``p2p-sim attack`` as text."""
    given = terminal.parameters(document)
    top = f"{document['protocol']}: {given}; seed {document['seed']}"
    about = [f"Data  {document['data']}"] if document.get("data") else []
    about += [f"Run   {terminal.visible(document['run'])}"] if document.get("run") else []
    blocks = ["\n".join([top, *about]), *(view_text(each) for each in document["views"])]
    return "\n\n".join(blocks) + "\n"


def view_text(attacked: Document) -> str:
    """Return what attackers with one view guess, as text."""
    if attacked["refused"]:
        return f"View {attacked['view']}: not attacked: {attacked['refused']}"
    blocks = [
        f"View {title(attacked)}: labels of {attacked['users']:,} users; P(label | features) {attacked['eta_from']}",
        terminal.table(head(attacked), lines(attacked)),
    ]
    if attacked["bounds"]:
        blocks.append(terminal.table(BOUND_HEAD, bound_lines(attacked)))
    blocks.append("\n".join([*attacked["sentences"], *exceeded(attacked)]))
    blocks.append("\n".join(notes(attacked)))
    return "\n\n".join(block for block in blocks if block)


def exceeded(attacked: Document) -> list[str]:
    """Return a sentence for each bound, and each claim, that an attack does better than."""
    return [
        *(f"{ABOVE}: {text}" for text in attacked["above"]),
        *(f"{CLAIM}: {text}" for text in attacked["exceeded_claims"]),
    ]


def title(attacked: Document) -> str:
    """Return the title of the view, with the channels if it includes the wire."""
    wire = "wire" in attacked["name"]
    return f"{attacked['view']}, {attacked['channels']} channels" if wire else str(attacked["view"])


def failed(document: Document) -> bool:
    """Return whether an attack did better than a bound allows."""
    return any(each.get("failed") for each in document["views"])


def kept_counts(attacked: Sequence[Document]) -> dict[str, Document]:
    """Return, by view, how many users have each probability, of the views with such an attacker."""
    found: dict[str, Document] = {}
    for each in attacked:
        if not each.get("refused") and each["per_user"] is not None:
            more = "" if each["utility"] != WEIGHTED else ", weighted"
            name = f"{title(each)}{more}"
            found[name if name not in found else f"{name}, {each['eta_from']}"] = each["per_user"]
    return found
