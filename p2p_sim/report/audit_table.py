"""The table of audits: what was measured of each view, what is claimed, and the verdict; as rows and as text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from p2p_sim.privacy.auditing.audit import Audit
from p2p_sim.privacy.auditing.claims import CONSISTENT, EXACT, INCONCLUSIVE, VIOLATED
from p2p_sim.privacy.auditing.measure import MEASURABLE
from p2p_sim.privacy.auditing.power_analysis import POWER
from p2p_sim.privacy.table_rows import TableRow
from p2p_sim.report import terminal
from p2p_sim.report.figure_text import number_text

REJECTED = "law rejected"
_UNCLAIMED = "measured; nothing is claimed"

Row = Mapping[str, Any]


def title(row: Row) -> str:
    """Return the title of the view, with the channels if it includes the wire."""
    return f"{row['view']}, {row['channels']} channels" if "wire" in row["name"] else str(row["view"])


def bound(row: Row) -> str:
    """Return the lower bound and the point where it was measured: ``ε ≥ 1.2 at δ = 0.01``."""
    figure, at = ("ε", "δ") if row["kind"] == "delta" else ("δ", "ε")
    return f"{figure} ≥ {down(row['lower'])} at {at} = {number_text(row['at'])}"


def attack(row: Row) -> tuple[str, str]:
    """Return the attack's name, and how it was learned (empty if it was not)."""
    name, learned, how = row["statistic"].partition(", learned ")
    return name, f"learned {how}" if learned else ""


def confidence(row: Row) -> str:
    """Return the confidence of the bound."""
    return f"{100 * row['confidence']:.5g} %"


def limit(row: Row) -> str:
    """Return the claims that the bound must not exceed, with their bases: the exact figure and all violated claims.

    Without an exact figure, the first claim that applies.
    """
    holding = [claim for claim in row["claims"] if claim["holds"]]
    shown = [claim for claim in holding if claim["name"] == EXACT or claim["verdict"] == VIOLATED]
    figure = "epsilon" if row["kind"] == "delta" else "delta"
    figures = [f"{number_text(claim[figure])} ({_basis(claim)})" for claim in shown or holding[:1]]
    return "; ".join(figures) or "nothing is claimed"


def requirement(row: Row) -> str:
    """Return the claim that the bound is compared with, as a sentence: ``ε must not exceed 1.4 (exact)``."""
    figure = "ε" if row["kind"] == "delta" else "δ"
    return f"{figure} must not exceed {limit(row)}" if any(c["holds"] for c in row["claims"]) else limit(row)


def verdict_of(row: Row) -> str:
    """Return the verdict in words."""
    return _UNCLAIMED if _unclaimed(row) else str(row["verdict"])


def why(row: Row) -> str:
    """Return the reason of the verdict; if it is inconclusive, also how many trials would decide."""
    text = str((row["law"] or row)["why"] if row["verdict"] == REJECTED else row["why"])
    if _unclaimed(row):
        return "to check a figure of your own, give --claim"
    if row["verdict"] != INCONCLUSIVE:
        return text
    needed = row["needed"]
    more = (
        "how many would decide is not known" if needed is None else f"about {needed:,} a label would decide"
    )
    return f"{text}; {more}"


def smallest(row: Row) -> list[str]:
    """Return, in sentences, the smallest violation of each claim checked that the trials could have shown.

    Of the claims that hold and are not violated, these are the exact figure, or the first, and those that were given.
    """
    holding = [claim for claim in row["claims"] if claim["holds"] and claim["verdict"] != VIOLATED]
    main = [claim for claim in holding if claim["name"] == EXACT] or holding[:1]
    figure, key = ("ε", "epsilon") if row["kind"] == "delta" else ("δ", "delta")
    sentences = []
    for claim in main + [each for each in holding if each["basis"] == "claimed" and each not in main]:
        value, least = claim[key], claim.get("detectable")
        of = f"{claim['name']} ({figure} = {number_text(value)})"
        if least is not None:
            more = f", {100 * (least / value - 1):.2g} % above it" if value else ""
            sentences.append(
                f"a violation of {of} is shown with probability {100 * POWER:g} % from {figure} = "
                f"{number_text(least)} on{more}; a smaller one may be missed"
            )
        elif not isinstance(value, str) and math.isfinite(value):
            sentences.append(f"no violation of {of} could have been shown by so few trials")
    return sentences


def down(value: float) -> str:
    """Return a lower bound with four digits, rounded down."""
    text = number_text(value)
    return text if float(text) <= value else number_text(value - 10.0 ** (math.floor(math.log10(value)) - 3))


def _unclaimed(row: Row) -> bool:
    """Return whether no claim applies to the measurement."""
    return row["verdict"] == INCONCLUSIVE and not any(claim["holds"] for claim in row["claims"])


def _basis(claim: Row) -> str:
    basis, name = str(claim["basis"]), claim["name"]
    return basis if name in (basis, EXACT) else f"{basis}: {name}"


DEVIATING = (
    "not audited: an audit runs users who follow the protocol, and these do not; account has the figure"
)
"""Why views of deviating users are not audited."""
LOCAL = "local"
Document = Mapping[str, Any]


def row(view: TableRow, found: Audit | None, refused: str, seconds: float) -> dict[str, Any]:
    """Return the row of one view as JSON values; ``found``: its audit, None if ``refused`` says why there is none."""
    result: dict[str, Any] = {"view": view.title, "name": view.name, "refused": refused}
    if found is None:
        return result
    names = [
        "lower", "exact", "cap", "true_positive", "false_positive", "trials", "confidence", "statistic", "composition",
        "why", "needed", "assumes", "kind", "at", "not_varied",
    ]  # fmt: skip
    result |= {name: getattr(found, name) for name in names}
    rejected = found.law is not None and found.law.rejected
    return result | {
        "verdict": REJECTED if rejected and found.verdict != VIOLATED else found.verdict,
        "failed": found.failed,
        "claims": [asdict(claim) for claim in found.claims],
        "points": [asdict(point) for point in found.points],
        "looks": [asdict(look) for look in found.looks],
        "law": None if found.law is None else asdict(found.law) | {"tested": found.law.tested},
        "delta_too_small": found.kind == "delta" and 0 < found.at < MEASURABLE / found.trials,
        "seconds": seconds,
    }


def verdict(rows: Iterable[Document]) -> str:
    """Return the worst verdict of all views."""
    found = {row["verdict"] for row in rows if not row["refused"]}
    return next((each for each in (VIOLATED, REJECTED, INCONCLUSIVE) if each in found), CONSISTENT)


def as_text(document: Document) -> str:
    """Return the document of ``p2p-sim audit`` as text."""
    done = [each for each in document["views"] if not each["refused"]]
    blocks = [
        _head(document),
        _table(document),
        _how(document, done),
        *_looks(document, done),
        *_too_small(document, done),
        _sentences(document, done),
    ]
    return "\n\n".join(blocks) + "\n"


def _head(document: Document) -> str:
    given = terminal.parameters(document)
    point = f"δ = {document['at']:g}" if document["kind"] == "delta" else f"ε = {document['at']:g} nats"
    measured = f"{'ε in nats' if document['kind'] == 'delta' else 'δ'} of one label, measured at {point}"
    size = document["cluster_size"]
    users = "one user" if size == 1 else f"{size:,} users"
    lines = [
        f"{document['protocol']}: {given}",
        f"{measured}: worlds of {users}, {document['channels']} channels",
    ]
    lines += (
        [f"Worlds of run {terminal.visible(document['run'])}: {document['world']}"]
        if "run" in document
        else []
    )
    return "\n".join(lines)


def _figure(document: Document) -> str:
    return "ε" if document["kind"] == "delta" else "δ"


def _table(document: Document) -> str:
    notes: dict[str, int] = {}

    def note(text: str) -> str:
        return f" [{notes.setdefault(text, len(notes) + 1)}]"

    of, figure = "epsilon" if document["kind"] == "delta" else "delta", _figure(document)
    theorems = dict.fromkeys(_column(claim) for each in document["views"] for claim in each.get("claims", ()))
    names = [name for name in theorems if name not in (EXACT, LOCAL)]
    head = ["View", f"{figure} at least ({_percent(document['confidence'])})", f"exact {figure}", *names]
    head += [f"local {figure}", "law test", "verdict"]
    lines = []
    for each in document["views"]:
        if each["refused"]:
            said = "not audited" if each["refused"] == DEVIATING else "refused"
            lines.append([each["view"], said + note(each["refused"]), *["-"] * (len(head) - 2)])
            continue
        claims = {_column(claim): claim for claim in each["claims"]}
        cells = [_claim(claims.get(name), of, note) for name in (EXACT, *names, LOCAL)]
        lines.append([each["view"], down(each["lower"]), *cells, _law(each["law"], note), verdict_of(each)])
    foot = [f"[{number}] {text}" for text, number in notes.items()]
    return "\n".join([terminal.table(head, lines), *foot])


def _column(claim: Document) -> str:
    name = str(claim["name"])
    return LOCAL if name.startswith(LOCAL) else name


def _claim(claim: Document | None, figure: str, note: Callable[[str], str]) -> str:
    if claim is None:
        return "-"
    if not claim["holds"]:
        return "does not apply" + note(f"{claim['name']}: {_clearer(claim['why']) or 'infinite'}")
    basis = "" if claim["basis"] == EXACT else f" ({claim['basis']})"
    mark = f" {VIOLATED}" if claim["verdict"] == VIOLATED else ""
    return number_text(claim[figure]) + basis + mark


def _clearer(why: str) -> str:
    why = re.sub(
        r"^speaks of epsilon >= (\S+)$", r"promises something at ε = \1 and above, nothing below", why
    )
    return re.sub(
        r"^speaks of delta >= (\S+)$", r"promises something at δ = \1 and above, nothing below", why
    )


def _law(law: Document | None, note: Callable[[str], str]) -> str:
    if law is None:
        return "-"
    if not law["tested"]:
        return "none" + note(law["why"])
    text = f"p = {law['p_value']:.2g}"
    return f"{text}, rejected" + note(law["why"]) if law["rejected"] else text


def _how(document: Document, done: list[Document]) -> str:
    """Return a table of how each view was measured."""
    cap = f"{_figure(document)} it could show"
    head = [
        "View", "trials counted", cap, "true positives", "false positives", "others with label 1", "seconds",
        "statistic",
    ]  # fmt: skip
    names = ("trials", "cap", "true_positive", "false_positive", "composition", "seconds", "statistic")
    return terminal.table(head, [[each["view"], *(each[name] for name in names)] for each in done])


def _looks(document: Document, done: list[Document]) -> list[str]:
    """Return a table of what each statistic measured of each pair of labels, where there are several."""
    head = [
        "View",
        "labels",
        f"{_figure(document)} at least",
        "confidence",
        "trials counted",
        "looked at with",
    ]
    lines = [
        [
            each["view"], " and ".join(map(str, look["labels"])), down(look["lower"]), _percent(look["confidence"]),
            look["trials"], look["statistic"],
        ]
        for each in done
        if len(each["looks"]) > 1
        for look in each["looks"]
    ]  # fmt: skip
    return (
        [f"The largest bound of a view counts; all hold at once:\n\n{terminal.table(head, lines)}"]
        if lines
        else []
    )


def _too_small(document: Document, done: list[Document]) -> list[str]:
    """Return a text for views whose delta is too small to be measured, with delta at several epsilons instead."""
    found = [each for each in done if each["delta_too_small"]]
    if not found:
        return []
    trials = min(each["trials"] for each in found)
    lines = [
        f"δ = {document['at']:g} is too small to be measured: of {trials:,} trials it is "
        f"{document['at'] * trials:.2g}, and what is so rare is not seen.",
        "The bound on ε above is true but far below what ε may be.",
    ]
    none = [each["view"] for each in found if not each["points"]]
    if none:
        lines.append(f"Too few trials, or no law, to measure δ at any ε instead: {', '.join(none)}.")
    rows = [
        [each["view"], point["epsilon"], down(point["lower"]), point["exact"], point["verdict"]]
        for each in found
        for point in each["points"]
    ]
    if rows:
        lines += ["Instead, δ at several ε, beside the exact curve of the labels that ran:", ""]
        lines.append(terminal.table(["View", "at ε", "δ at least", "exact δ", "verdict"], rows))
    return ["\n".join(lines)]


def _sentences(document: Document, done: list[Document]) -> str:
    lines = [
        f"{each['view']}: {verdict_of(each)}: {why(each)}" for each in done if each["verdict"] != CONSISTENT
    ]
    views = len(done)
    if views > 1:
        each = _percent(document["confidence_each"])
        lines.append(
            f"With confidence {_percent(document['confidence'])} all bounds hold at once: "
            f"the error is shared over the views, {each} for each."
        )
    tested = [each["law"] for each in done if each["law"] is not None and each["law"]["tested"]]
    if tested:
        lines.append(
            f"A law test rejects a program that follows the exact law once in {1 / tested[0]['false_alarm']:,.0f}; "
            f"its p is the smallest p of its tests times their number, at most 1."
        )
    lines += [f"{each['view']}: {text}." for each in done for text in smallest(each)]
    kept = dict.fromkeys(text for each in done for text in each["not_varied"])
    lines += [f"Not varied: {text}." for text in kept]
    assumed = dict.fromkeys(text for each in done for text in each.get("assumes") or ())
    lines += [f"Assumes: {text}." for text in assumed]
    lines.append(f"Verdict: {document['verdict']}{_meaning(document['verdict'])}")
    lines.append(f"Again: {document['command']}")
    return "\n".join(lines)


def _meaning(verdict: str) -> str:
    if verdict == INCONCLUSIVE:
        return ": nothing is contradicted, and not everything could have been; exit status 0"
    return ": no lower bound is above a claim" if verdict == CONSISTENT else "; exit status 1"


def _percent(share: float) -> str:
    return f"{100 * share:.5g} %"
