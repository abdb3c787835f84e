"""What one looks for first: a few lines above everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report.pages import epsilons, privacy, sections, tradeoff
from p2p_sim.report.pages.blocks import Block, Figure, Table, Words, by_run, facts
from p2p_sim.report.pages.words import number, percent, size

Document = Mapping[str, Any]


def opening(runs: Sequence[Document], cautions: Sequence[str]) -> list[Block]:
    """Return the table, and of several runs why they may not compare, and the figure that compares them."""
    if len(runs) == 1:
        told = [*_views(runs), *_figures(runs), *_rest(runs), ("digest", [runs[0]["digest"]])]
        return list(facts([runs[0]["run"]], told, "At a glance"))
    same = [(title, values[0]) for title, values in _rest(runs) if len(set(values)) == 1]
    rest = [(title, values) for title, values in _rest(runs) if len(set(values)) > 1]
    told = [("run", [run["run"] for run in runs]), *_choices(runs), *_views(runs), *rest]
    kept = [(title, values) for title, values in told if any(value is not None for value in values)]
    table = by_run([str(i) for i in range(1, len(runs) + 1)], kept, "")
    delta, missing = ([*dict.fromkeys(values)] for _, values in _figures(runs))
    at = f", at δ = {delta[0]}" if len(delta) == 1 and delta[0] else ""
    blocks: list[Block] = [
        Table(["", *table.head[1:]], table.rows, f"At a glance; ε in nats{at}, with its basis"),
        *(Words(text, True) for text in cautions),
    ]
    if alike := [f"{title} {_text(value)}" for title, value in same if value is not None]:
        blocks.insert(1, Words(f"The same in all runs: {', '.join(alike)}."))
    if any(missing):
        each = (
            [missing[0]]
            if len(missing) == 1
            else [f"{run['run']}: {_missing(run)}" for run in runs if _missing(run)]
        )
        blocks.insert(1, Words(f"Views without a figure: {'; '.join(map(str, each))}."))
    if tradeoff.shown(runs):
        text = (
            "Privacy against utility and cost: to the left is more private. Points are numbered as the runs above; "
            "runs of one protocol and data are joined in the order of their ε."
        )
        if any(run["accuracy"] for run in runs):
            text += (
                " Filled marks are models that are corrected for lies, below or above them unfilled ones the same "
                "without that; the dotted line is what true labels give."
            )
        blocks.append(Figure(tradeoff.tradeoff(runs), text))
    return blocks


def _choices(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return what runs were given to be compared by: protocols, or of one protocol the parameters that differ."""
    protocols = [run["protocol"] for run in runs]
    every = [("protocol", protocols)] if len(set(protocols)) > 1 else sections.parameters(runs)
    return [(title, values) for title, values in every if len(set(values)) > 1]


def _views(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    known = [run for run in runs if not isinstance(run["privacy"], str)]
    views = list(dict.fromkeys(
        row["view"] for run in known for row in run["privacy"]["views"] if row["name"] in tradeoff.VIEWS
    ))  # fmt: skip
    return [(f"ε: {epsilons.who(view)}", [privacy.epsilon(run, view) for run in runs]) for view in views]


def _figures(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return at which delta figures are, and which are missing."""
    delta = [None if isinstance(run["privacy"], str) else number(run["privacy"]["delta"]) for run in runs]
    return [("δ", delta), ("views without a figure", [_missing(run) for run in runs])]


def _missing(run: Document) -> str | None:
    """Return the views of which no figure is given, and why; all of them where nothing is accounted."""
    if isinstance(run["privacy"], str):
        return "all"
    found: dict[str, list[str]] = {}
    for row in run["privacy"]["views"]:
        if not row["exact"]:
            found.setdefault(privacy.none(row), []).append(row["view"])
    every = len(run["privacy"]["views"])
    told = [f"{'all' if len(names) == every else ', '.join(names)} ({why})" for why, names in found.items()]
    return ", ".join(told) or None


def _rest(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    sums = [sum(row["bytes"] for row in run["messages"]) for run in runs]
    return [
        ("test accuracy", [_accuracy(run, "accuracy_private") for run in runs]),
        ("corrected for lies", [_accuracy(run, "accuracy_corrected") for run in runs]),
        ("with true labels", [_accuracy(run, "accuracy_true") for run in runs]),
        ("messages", [sum(row["messages"] for row in run["messages"]) for run in runs]),
        ("bytes on the wire", [size(nbytes) for nbytes in sums] if len(runs) == 1 else [None] * len(runs)),
        ("bytes a user", [size(tradeoff.bytes_each(run)) for run in runs]),
    ]


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _accuracy(run: Document, key: str) -> str | None:
    value = None if run["accuracy"] is None else run["accuracy"].get(key)
    return None if value is None else percent(value)
