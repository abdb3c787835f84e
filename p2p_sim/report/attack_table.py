"""The table of attackers: how many labels each guesses, with and without the messages; as rows and as text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from p2p_sim.core.errors import InputError
from p2p_sim.leakage.advantage import (
    ADVANTAGE,
    CANARIES,
    EPSILON,
    PROVEN,
    exceeded_claims,
    of_canaries,
    violations,
)
from p2p_sim.leakage.attack import attack
from p2p_sim.leakage.attack_results import Interval, LabelInference
from p2p_sim.leakage.attacker_names import OPTIMAL, PRIOR
from p2p_sim.privacy.table_rows import TableRow
from p2p_sim.report import per_user_certainty, terminal
from p2p_sim.report.figure_text import number_text
from p2p_sim.run import Run

Progress = Callable[[str, int, int], None]
Document = Mapping[str, Any]

REFUSED = "refused"
WEIGHTED = "weighted"
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

NONE_RAN = (
    "No attacker who uses the messages was tried, or could be made: this says nothing of what they give away."
)

BEFOREHAND = ", by what she thinks beforehand,"
"""Where the best guess without messages is by an estimate of P(label | features)."""

_NUMBERS = ("utility", "baseline", "advantage", "ratio")
_HAIR = 1e-6  # of a share: no difference that four decimals show
_EMPTY = 1.0  # an interval of the advantage so wide says nothing of what messages add


def row(
    view: TableRow, found: LabelInference | None, refused: str, channels: str = "plain", seed: int = 0
) -> dict[str, Any]:
    """Return what attackers with one view guess, as JSON values; ``found``: None if ``refused`` says why there is none.

    ``seed``: of the estimates and canaries.

    ``per_user`` counts users; the distribution itself is too long for a document.
    """
    result: dict[str, Any] = {"view": view.title, "name": view.name, "refused": refused}
    if found is None:
        return result
    above = violations(found)
    made: dict[str, Any] = result | {
        "channels": channels, "seed": seed, "users": found.users, "labels": found.labels, "eta_from": found.eta_from,
        "utility": found.utility, "confidence": found.confidence,
        "attackers": [
            {name: getattr(each, name) for name in ("name", "basis", "source", "why")}
            | {name: _ends(getattr(each, name)) for name in _NUMBERS}
            | ({} if each.epsilon is None else {"epsilon": asdict(each.epsilon)})
            for each in found.rows
        ],
        "bounds": [
            {name: value for name, value in asdict(bound).items() if name != "parameters"}
            for bound in found.bounds
        ],
        "per_user": None if found.per_user is None else per_user_certainty.counted(found.per_user),
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
    seed: int = 0,
    **how: Any,
) -> tuple[dict[str, LabelInference], list[dict[str, Any]]]:
    """Attack each view of a run; return what was found, by the view's title, and the rows of all.

    ``must``: whether a view that cannot be attacked raises InputError; otherwise its row says why.
    ``how``: as for ``leakage.attack``.
    """
    found: dict[str, LabelInference] = {}
    made = []
    for view in views:

        def tell(label: str, done: int, total: int, title: str = view.title) -> None:
            progress(f"{title}: {label}", done, total)

        why = ""
        try:
            found[view.title] = attack(
                run, view.name, users=view.users, channels=channels, seed=seed, progress=tell, **how
            )
        except InputError as error:
            if must:
                raise
            why = str(error)
        made.append(row(view, found.get(view.title), why, channels, seed))
    return found, made


def _ends(found: Interval) -> dict[str, float | None]:
    return {name: None if math.isnan(end) else end for name, end in found._asdict().items()}


def best(attacked: Document) -> Document | None:
    """Return the best attacker who uses the messages: "optimal" where it could be made; None if there is none.

    Of the others the one who guesses most, of users rather than of canaries.
    """
    found = [each for each in attacked["attackers"] if each["basis"] != REFUSED and each["name"] != PRIOR]
    return max(found, key=lambda each: (_rank(each["name"]), each["utility"]["value"]), default=None)


def _rank(name: str) -> int:
    if name == OPTIMAL:
        return 3
    return 0 if of_canaries(name) else 2 if _is_optimal(name) else 1


def _is_optimal(name: str) -> bool:
    """Whether it is the optimal attack, on messages or by its law: with its P(label | features) none does better."""
    return name.partition(",")[0] == OPTIMAL


def sentences(attacked: Document) -> list[str]:
    """Return in plain words what the table says: of the best attacker who uses the messages, and of canaries."""
    implied = [each for each in attacked["attackers"] if each.get("epsilon") is not None]
    return [*_of_best(attacked), *(said for each in implied for said in _of_coins(attacked, each))]


def _of_coins(attacked: Document, one: Document) -> list[str]:
    """Return in words how many coins a model tells, and which epsilon that implies, beside what is promised."""
    found = one["epsilon"]
    model = "the corrected model" if one["name"] != CANARIES else "the released model"
    sure = f"at delta = {found['delta']:g}, with confidence {_percent(attacked['confidence'])}"
    promise = next((bound for bound in attacked["bounds"] if bound["quantity"] == EPSILON), None)
    beside = "" if promise is None or not promise["holds"] else (
        f"; the law of the view allows {number_text(promise['value'])} ({promise['basis']})"
    )  # fmt: skip
    least = _three_digits(found["value"], math.floor)
    implies = (
        f"So epsilon of a label is at least {least}" if found["value"] else "That implies no epsilon above 0"
    )
    return [
        f"Of {found['coins']:,} canaries, users whose label a coin flipped or not before the run, the confidences of "
        f"{model} tell {found['right']:,} coins right; guesses without it tell half of them.",
        f"{implies} {sure}{beside}.",
    ]


def _of_best(attacked: Document) -> list[str]:
    one = best(attacked)
    if one is None:
        return [NONE_RAN, _allowed(attacked)]
    if one["basis"] != "exact" and one["advantage"]["upper"] - one["advantage"]["lower"] >= _EMPTY:
        return [
            f"Labels of {_users(attacked)} are too few, or depend too much on each other, to tell what the messages "
            "add.",
            _allowed(attacked),
        ]
    said = [_guesses(attacked, one)]
    if one["basis"] != "exact":
        said.append(_between(attacked, one))
        nothing = one["advantage"]["lower"] == one["advantage"]["upper"] == 0
        if (
            one["baseline"]["lower"] < one["baseline"]["upper"]
            and not of_canaries(one["name"])
            and not nothing
        ):
            said.append(ESTIMATED)
        if _beatable(one) and not of_canaries(one["name"]) and not _unheld(attacked, one):
            said.append(_allowed(attacked))
    if attacked["per_user"] is not None and _is_optimal(one["name"]):
        said.append(per_user_certainty.sentence(attacked["per_user"]))
    return said


def _users(attacked: Document) -> str:
    return f"{attacked['users']:,} user{'s' if attacked['users'] != 1 else ''}"


def _beatable(one: Document) -> bool:
    """Whether who thinks the same of P(label | features), and sees the same, may do better than this attacker."""
    return one["basis"] == "lower" or not _is_optimal(one["name"])


def _unheld(attacked: Document, one: Document) -> bool:
    """Whether an attacker does better than the bounds and is held against none (``advantage.over_any_baseline``)."""
    most = _most(attacked)
    return not attacked["failed"] and most is not None and one["advantage"]["lower"] > most


def _most(attacked: Document) -> float | None:
    """Return the least of the proven bounds of the advantage; None where none holds."""
    found = [
        float(bound["value"])
        for bound in attacked["bounds"]
        if bound["holds"] and bound["basis"] in PROVEN and bound["quantity"] == ADVANTAGE
    ]
    return min(found, default=None)


def _allowed(attacked: Document) -> str:
    """Return in words what bounds allow at most."""
    most = _most(attacked)
    if most is None:
        return "No proven bound says how much the messages add at most."
    if most <= 0:
        return "The law of the view says that the messages add nothing."
    return f"Bounds allow the messages to add {_amount(attacked, most)} at most."


def _amount(attacked: Document, value: float) -> str:
    """Return an advantage in words, rounded upward."""
    scale, unit = _unit(attacked)
    return f"{_three_digits(scale * value, math.ceil)}{unit}"


def _unit(attacked: Document) -> tuple[int, str]:
    return (1, "") if attacked["utility"] == WEIGHTED else (100, " right guesses of 100")


def _three_digits(value: float, way: Callable[[float], int]) -> str:
    """Return a number with three digits, rounded outward; to 1e-9, so that 0.07 stays it."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    hair = -1e-9 if way is math.ceil else 1e-9
    return f"{way(value / unit + hair) * unit:.3g}"


def _guesses(attacked: Document, one: Document) -> str:
    with_them, without = one["utility"]["value"], one["baseline"]["value"]
    with_them = max(with_them, without)  # she may leave the messages out
    if attacked["utility"] == WEIGHTED:
        return (
            "Where a right guess counts the more the rarer its label is, and blind guesses are worth 0.5, an attacker "
            f"with these messages gets {number_text(with_them)}; without them {number_text(without)}."
        )
    whom = "flips of planted users' labels" if of_canaries(one["name"]) else "people"
    who = f"Of 100 {whom}, an attacker with these messages guesses"
    right, blind = _of_100(with_them, without)
    if right == blind or with_them - without < _HAIR:
        return f"{who} {blind} right, as many as without them."
    known = one["baseline"]["lower"] == one["baseline"]["upper"] or of_canaries(one["name"])
    return f"{who} {right} right; without them{'' if known else BEFOREHAND} {blind}."


def _of_100(one: float, other: float) -> list[str]:
    """Return two shares as numbers of 100 people, with one decimal, or as many as show the difference, 4 at most."""
    apart = 100 * abs(one - other) * (1 + 1e-9)
    digits = next((digits for digits in range(1, 5) if apart >= 10.0**-digits), 1)
    return [f"{100 * share:.{digits}f}".rstrip("0").rstrip(".") for share in (one, other)]


def _between(attacked: Document, one: Document) -> str:
    """Return in words how sure it is what the messages add; no more than a proven bound allows."""
    low, high = one["advantage"]["lower"], one["advantage"]["upper"]
    most = _most(attacked)
    if low == high == 0 and not _beatable(one):
        return "The messages add nothing to this: the view reads none that tells of a label."
    who = "this attack adds" if _beatable(one) else "the messages add"
    said = f"With confidence {_percent(attacked['confidence'])}, {who}"
    if not _beatable(one) and most is not None and low <= most:
        high = min(high, most)
    also = "; a better one may add more" if _beatable(one) else ""
    if high <= 0:
        return f"{said} nothing to this{also}."
    if low <= 0 and not also:
        return f"{said} {_amount(attacked, high)} at most, and perhaps nothing."
    least = _three_digits(_unit(attacked)[0] * max(low, 0.0), math.floor)
    return f"{said} between {least} and {_amount(attacked, high)}{also}."


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


SOURCES = "Where each attacker comes from, or why it is refused:"


def as_text(document: Document) -> str:
    """Return the document of ``p2p-sim attack`` as text."""
    given = terminal.parameters(document)
    top = f"{document['protocol']}: {given}; seed {document['seed']}"
    about = [f"Data  {document['data']}"] if document.get("data") else []
    about += [f"Run   {terminal.visible(document['run'])}"] if document.get("run") else []
    about += [f"note: {document['canaries']}; they are no victims below"] if document.get("canaries") else []
    blocks = [
        "\n".join([top, *about]),
        *(view_text(each) for each in document["views"]),
        _held_against_bounds(document),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _held_against_bounds(document: Document) -> str:
    """Return one table of what was measured against what is proven, a row a view; empty for one view."""
    found = [(each, best(each)) for each in document["views"] if not each["refused"]]
    attacked = [each for each, one in found if one is not None and not of_canaries(one["name"])]
    if len(attacked) < 2:
        return ""
    rows = []
    for name, each in zip(titles(attacked), attacked, strict=True):
        one, most = best(each), _most(each)
        assert one is not None
        held = "exceeded" if each["failed"] else "holds" if most is not None else "-"
        allowed = "-" if most is None else number_text(most)
        rows.append([name, one["name"], interval(one["advantage"]), allowed, held])
    sure = _percent(attacked[0]["confidence"])
    return terminal.table(["view", "attacker", f"advantage ({sure})", "proven at most", "bound"], rows)


def view_text(attacked: Document) -> str:
    """Return what attackers with one view guess, as text."""
    if attacked["refused"]:
        return "\n".join(view_sentences(attacked))
    blocks = [
        f"View {title(attacked)}: labels of {_users(attacked)}; P(label | features) {attacked['eta_from']}; "
        f"seed of the estimates {attacked['seed']}",
        terminal.table(head(attacked), lines(attacked)),
    ]
    if attacked["bounds"]:
        blocks.append(terminal.table(BOUND_HEAD, bound_lines(attacked)))
    blocks.append("\n".join([*attacked["sentences"], *exceeded(attacked)]))
    blocks.append("\n".join([SOURCES, *notes(attacked)]))
    return "\n\n".join(block for block in blocks if block)


def view_sentences(attacked: Document) -> list[str]:
    """Return what attackers with one view guess, in sentences."""
    if attacked["refused"]:
        return [f"View {attacked['view']}: not attacked: {attacked['refused']}"]
    return [f"View {title(attacked)}: {' '.join([*attacked['sentences'], *exceeded(attacked)])}"]


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


def titles(attacked: Sequence[Document]) -> list[str]:
    """Return the title of each attack; several of one view say in which way they differ."""
    found = [title(each) for each in attacked]
    for name in dict.fromkeys(found):
        alike = [i for i, each in enumerate(found) if each == name]
        for what, text in _DIFFERENCES.items():
            values = [str(attacked[i].get(what)) for i in alike]
            if len(set(values)) > 1:
                for i, value in zip(alike, values, strict=True):
                    found[i] += f"; {text} {value}"
    return found


_DIFFERENCES = {
    "utility": "utility",
    "eta_from": "P(label | features)",
    "confidence": "confidence",
    "seed": "seed of the estimates",
}


def kept_counts(attacked: Sequence[Document]) -> dict[str, Document]:
    """Return, by view, how many users have each probability, of the views with such an attacker."""
    some = [each for each in attacked if not each.get("refused") and each["per_user"] is not None]
    return {name: each["per_user"] for name, each in zip(titles(some), some, strict=True)}
