"""A whole report: its opening, which compares the runs, and its page in each format; its sections are ``sections``'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p2p_sim.report import attack_section, figure_text, figures, privacy_section, sections, terminal, tradeoff
from p2p_sim.report.figure_text import number, percent, size
from p2p_sim.report.page_layout import (
    Block,
    Drawing,
    Paragraph,
    Picture,
    Section,
    Table,
    by_run,
    facts,
    html,
    markdown,
)
from p2p_sim.report.report_content import WITHHELD
from p2p_sim.report.sections import Document


def opening(
    runs: Sequence[Document], cautions: Sequence[str], together: Document | None = None
) -> list[Block]:
    """Return the first table; for several runs also the cautions, and the plot that compares them."""
    if len(runs) == 1:
        entries = [*_views(runs), *_figures(runs), *_rest(runs), ("digest", [runs[0]["digest"]])]
        return list(facts([runs[0]["run"]], entries, "At a glance"))
    same = [(title, values[0]) for title, values in _rest(runs) if len(set(values)) == 1]
    rest = [(title, values) for title, values in _rest(runs) if len(set(values)) > 1]
    entries = [("run", [run["run"] for run in runs]), *_choices(runs), *_views(runs), *rest]
    kept = [(title, values) for title, values in entries if any(value is not None for value in values)]
    table = by_run([str(i) for i in range(1, len(runs) + 1)], kept, "")
    delta, missing = ([*dict.fromkeys(values)] for _, values in _figures(runs))
    at = f", at δ = {delta[0]}" if len(delta) == 1 and delta[0] else ""
    blocks: list[Block] = [
        Table(["", *table.head[1:]], table.rows, f"At a glance; ε in nats{at}, with its basis"),
        *(Paragraph(text, True) for text in cautions),
        *_together(together),
    ]
    if alike := [f"{title} {_text(value)}" for title, value in same if value is not None]:
        blocks.insert(1, Paragraph(f"The same in all runs: {', '.join(alike)}."))
    if any(missing):
        each = (
            [missing[0]]
            if len(missing) == 1
            else [f"{run['run']}: {_missing(run)}" for run in runs if _missing(run)]
        )
        blocks.insert(1, Paragraph(f"Views without a figure: {'; '.join(map(str, each))}."))
    if tradeoff.shown(runs):
        text = (
            "Privacy against utility and cost: to the left is more private. Points are numbered as the runs above; "
            "runs that differ by their seeds alone are one point at their means, with bars from the least to the "
            "greatest; settings of one protocol and data are joined in the order of their ε."
        )
        if any(run["accuracy"] for run in runs):
            text += (
                " Filled marks are models that are corrected for lies, below or above them unfilled ones the same "
                "without that; the dotted line is what true labels give."
            )
        blocks.append(Picture(tradeoff.tradeoff(runs), text))
    return blocks


def _together(found: Document | None) -> list[Block]:
    """Return what runs of the same people show together, or whether that is not known."""
    if found is None:
        return []
    note = Paragraph(found["note"], found["coins"] != "independent")
    rows = [
        [row["view"], figure_text.epsilon(row["exact"]), row["exact"]["basis"], row["exact"]["source"]]
        if row["exact"]
        else [row["view"], None, "refused", row["refused"]]
        for row in found["views"]
    ]
    if not rows:
        return [note]
    about = f"All runs together: ε in nats at δ = {number(found['delta'])}"
    return [note, Table(["View", "ε", "basis", "why"], rows, about)]


def _choices(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return what the user varied between runs: the protocols, or the parameters of one protocol that differ."""
    protocols = [run["protocol"] for run in runs]
    every = [("protocol", protocols)] if len(set(protocols)) > 1 else sections.parameters(runs)
    return [(title, values) for title, values in every if len(set(values)) > 1]


def _views(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    known = [run for run in runs if not isinstance(run["privacy"], str)]
    views = list(dict.fromkeys(
        row["view"] for run in known for row in run["privacy"]["views"] if row["name"] in tradeoff.VIEWS
    ))  # fmt: skip
    return [
        (f"ε: {figures.viewer_name(view)}", [privacy_section.epsilon(run, view) for run in runs])
        for view in views
    ]


def _figures(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return the delta of the figures, and which views have none."""
    delta = [None if isinstance(run["privacy"], str) else number(run["privacy"]["delta"]) for run in runs]
    return [("δ", delta), ("views without a figure", [_missing(run) for run in runs])]


def _missing(run: Document) -> str | None:
    """Return the views without a figure, and why; "all" if there is no privacy table."""
    if isinstance(run["privacy"], str):
        return "all"
    found: dict[str, list[str]] = {}
    for row in run["privacy"]["views"]:
        if not row["exact"]:
            found.setdefault(privacy_section.none(row), []).append(row["view"])
    every = len(run["privacy"]["views"])
    texts = [f"{'all' if len(names) == every else ', '.join(names)} ({why})" for why, names in found.items()]
    return ", ".join(texts) or None


def _rest(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    sums = [sum(row["bytes"] for row in run["messages"]) for run in runs]
    return [
        ("test accuracy", [_accuracy(run, "accuracy_private") for run in runs]),
        ("corrected for lies", [_accuracy(run, "accuracy_corrected") for run in runs]),
        ("with true labels", [_accuracy(run, "accuracy_true") for run in runs]),
        ("labels guessed by the learner", [attack_section.guessed(run) for run in runs]),
        ("messages", [sum(row["messages"] for row in run["messages"]) for run in runs]),
        ("bytes on the wire", [size(nbytes) for nbytes in sums] if len(runs) == 1 else [None] * len(runs)),
        ("bytes a user", [size(tradeoff.bytes_each(run)) for run in runs]),
    ]


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _accuracy(run: Document, key: str) -> str | None:
    value = None if run["accuracy"] is None else run["accuracy"].get(key)
    return None if value is None else percent(value)


FORMATS = ("html", "md", "json")
ENDINGS = {"html": (".html", ".htm"), "md": (".md", ".markdown", ".txt"), "json": (".json",)}
NAME = "report.html"
_NAMED = 3  # runs and protocols, up to which all are in the title


@dataclass(frozen=True)
class Page:
    """A report's title, what stands above its sections, and these."""

    title: str
    opening: Sequence[Block]
    sections: Sequence[Section]

    def drawings(self) -> list[Drawing]:
        """Return what the page draws, in its order."""
        blocks = [*self.opening, *(block for section in self.sections for block in section.blocks)]
        return [block.drawing for block in blocks if isinstance(block, Picture)]


def laid_out(document: Mapping[str, Any]) -> Page:
    """Return ``documents`` as the parts of a page."""
    runs = document["runs"]
    protocols = list(dict.fromkeys(run["protocol"] for run in runs))
    title = f"{_names_or_count(protocols, 'protocols')}: {_names_or_count(sections.names(runs), 'runs')} – p2p-sim"
    return Page(title, opening(runs, document["cautions"], document.get("together")), sections.sections(runs))


def page(document: Mapping[str, Any], form: str, made: Page | None = None) -> str:
    """Return ``documents`` as a page of one format; ``made``: its parts, if they are laid out already."""
    if form == "json":
        return terminal.as_json(document)
    made = laid_out(document) if made is None else made
    return (html if form == "html" else markdown)(made.title, made.opening, made.sections)


def tells_seed(document: Mapping[str, Any]) -> bool:
    """Return whether a page of ``documents`` includes a seed, with which the noise could be undone."""
    return any(run["seed"] not in (None, WITHHELD) for run in document["runs"])


def _names_or_count(found: Sequence[str], what: str) -> str:
    return ", ".join(found) if len(found) <= _NAMED else f"{len(found)} {what}"


def default(paths: Sequence[str]) -> Path:
    """Return the default place of a report: in the directory of one run, beside the first of several."""
    first = Path(paths[0]).resolve()
    return (first if len(paths) == 1 else first.parent) / NAME
