"""The summary of a run on one screen: what was learnt, what it cost, who knows what; ``run_summary`` has all of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import privacy_table, run_summary
from p2p_sim.report.figure_text import bound_text, bracket_text, right_of_100
from p2p_sim.report.terminal import WIDTH, folded, nbytes, table

_INDENT = 12
_SHOWN = ("balanced_accuracy", "auc", "log_loss")
_PROVEN = ("exact", "upper")
_GUESSES = (
    "right of 100: of 100 labels that are one of two, each as likely, whoever has this view guesses at most so many "
    "right, δ aside; without it, 50"
)


def as_text(result: Mapping[str, Any]) -> str:
    """Return a run's document as a screen of text."""
    entry = run_summary.entry
    blocks = [
        [
            f"{result['protocol']}; {run_summary.how_text(result)}",
            entry("Parameters", _parameters(result)),
            *run_summary.setting_lines(result),
            *run_summary.faults_lines(result),
        ],
        _learnt(result),
        _cost(result),
        _privacy(result["privacy"]),
        _guessed(result),
        [
            *run_summary.kept_lines(result),
            entry("More", f"with --verbose, or in one page: p2p-sim report {result['directory']}"),
        ],
    ]
    lines = [[part for each in block for part in _narrow(each)] for block in blocks if block]
    return "\n\n".join("\n".join(block) for block in lines) + "\n"


def _narrow(text: str) -> list[str]:
    return [part for line in text.split("\n") for part in folded(line, _INDENT) or [""]]


def _parameters(result: Mapping[str, Any]) -> str:
    """Return the parameters that were given, then those that were not."""
    given, unsaid = list[str](), list[str]()
    for name, value in result["parameters"].items():
        place = unsaid if name in result["defaults"] else given
        place.append(f"{name} = {'none' if value == '' else value}")
    parts = [", ".join(given), f"by default {', '.join(unsaid)}" if unsaid else ""]
    return "; ".join(part for part in parts if part) or "none"


def _learnt(result: Mapping[str, Any]) -> list[str]:
    accuracy, rare = result["accuracy"], (result["data"] or {}).get("utility") == "auc"
    if result.get("regression"):
        return run_summary.errors_lines(result["regression"])
    if accuracy is None:
        return run_summary.released_text(result["released"])
    metrics = {name: run_summary.METRICS[name] for name in _SHOWN}
    if rare:
        metrics = {name: text for name, text in metrics.items() if name != "log_loss"} | run_summary.WEIGHTED
    head = [f"What was learnt, by {accuracy['model']}", "test accuracy", *metrics.values()]
    note = (
        [f"note: {accuracy['note']}"] if accuracy.get("accuracy_private") is None and accuracy["note"] else []
    )
    return [table(head, run_summary.accuracy_rows(accuracy, metrics), WIDTH), *note]


def _cost(result: Mapping[str, Any]) -> list[str]:
    costs, kinds = result["costs"], result["messages"]
    names = ("messages_up", "messages_down", "bytes_up", "bytes_down")
    rows = [
        [role["role"], role["parties"], *(_each(role, name) for name in names), role["compute_seconds_each"]]
        for role in costs["roles"]
    ]
    head = ["What it cost each", "parties", "sent", "received", "bytes up", "bytes down", "CPU s"]
    travelled, size = (sum(kind[name] for kind in kinds) for name in ("travelled", "bytes"))
    links = f"{costs['channel']} (servers {costs['server_channel']})"
    spent, peak = sum(result["seconds"].values()), result["peak_memory"]["bytes"]
    memory = "" if peak is None else f", {nbytes(peak)} of memory"
    return [
        table(head, rows, WIDTH),
        run_summary.entry(
            "In all",
            f"{travelled:,} messages, {size:,} bytes, {costs['simulated_seconds']:.4g} s simulated at {links}",
        ),
        run_summary.entry("Here", f"{spent:.2f} s{memory}"),
    ]


def _each(role: Mapping[str, Any], name: str) -> int | float:
    """Return the mean over the parties of a role."""
    mean = role[name] / role["parties"] if role["parties"] else 0
    return int(mean) if mean == int(mean) else mean


def _privacy(shown: Mapping[str, Any]) -> list[str]:
    """Return what each view learns of one label: ε, its basis, and how many labels it guesses at most."""
    caution = [f"note: {shown['hidden']}"] if shown.get("hidden") else []
    head = ["Who knows what of one label", f"ε in nats, δ = {shown['delta']:g}", "basis", "right of 100"]
    if why := privacy_table.common_refusal(shown["views"]):
        return [f"{head[0]}: refused for every view: {why}", *caution]
    rows = [_view(row) for row in shown["views"]]
    return [
        table(head, rows, WIDTH),
        _GUESSES,
        *_bases(shown["views"], rows),
        *_reasons(shown["views"]),
        *caution,
    ]


def _reasons(views: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why views have no figure, a line a reason."""
    without = dict[str, list[str]]()
    for row in views:
        if row["exact"] is None and _proven(row) is None and row["refused"]:
            without.setdefault(row["refused"], []).append(row["view"])
    return [f"{'; '.join(named)}: {reason}" for reason, named in without.items()]


def _bases(views: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return what the bases mean that are in the table, but exact ones."""
    bases = {line[2] for line in rows}
    means = dict(privacy_table.BASES)
    if all(privacy_table.pinned(row) for row in views if row["exact"] and row["exact"]["basis"] == "lower"):
        means["lower"] = "at least this, and nothing above it is possible, to the digits shown"
    return [f"{basis}: {text}" for basis, text in means.items() if basis in bases]


def _view(row: Mapping[str, Any]) -> list[str]:
    """Return the line of one view; where its own figure is missing, the least that a theorem proves, if one does."""
    exact, least = row["exact"], _proven(row)
    if exact is None and least is None:
        return [row["view"], "refused" if privacy_table.is_refusal(row) else "-", "-", "-"]
    if exact is None:
        assert least is not None
        return [row["view"], bound_text(least, "upper"), "upper", right_of_100(least)]
    ends = [] if least is None else [least]
    ends += [float(exact["upper"])] if exact["basis"] in _PROVEN or math.isinf(float(exact["lower"])) else []
    return [row["view"], bracket_text(exact), exact["basis"], right_of_100(min(ends)) if ends else "-"]


def _proven(row: Mapping[str, Any]) -> float | None:
    """Return the least ε that a theorem proves of a view; None if none does."""
    holding = (each for each in row["theorems"] if each["holds"] and each["basis"] in _PROVEN)
    return min((float(each["epsilon"]) for each in holding), default=None)


def _guessed(result: Mapping[str, Any]) -> list[str]:
    """Return in sentences what attackers guess, where an attack was asked for."""
    if "label_inference" not in result:
        return []
    from p2p_sim.report import attack_table

    lines: list[Sequence[str]] = [attack_table.view_sentences(each) for each in result["label_inference"]]
    return [line for each in lines for line in each]
