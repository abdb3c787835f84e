"""The section of a report on privacy: what each view learns of one label, on what basis, and what theorems promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report import audit_table, figure_text, figures, privacy_table
from p2p_sim.report.page_layout import Block, Paragraph, Picture, Table, together, whose

Document = Mapping[str, Any]

_RARE = ("ε by cluster", "measured")
"""Columns that are left out if they are empty."""


def privacy_section(runs: Sequence[Document]) -> list[Block]:
    """Return the section on the privacy of all runs."""
    known = [run for run in runs if not isinstance(run["privacy"], str)]
    blocks: list[Block] = [
        Paragraph(f"{whose(run, runs)}{run['privacy']}") for run in runs if isinstance(run["privacy"], str)
    ]
    if known:
        blocks.append(
            Paragraph(
                "What each view learns of one label, replaced: ε in nats at the δ of the table. Smaller is better; at "
                "0 a view learns nothing. Whatever it may see has, with one label, at most e^ε times the probability "
                "that it has with another, plus δ. At δ = 0, who held both for equally likely ends up at odds of at "
                "most 1.6 to 1 where ε is 0.5, 2.7 where it is 1, 7.4 where it is 2, 20 where it is 3; a small δ "
                "leaves a small chance of more. Every figure has a basis: exact; upper or lower, a bound that is "
                "proven; claimed, a theorem as printed; measured, with a confidence; or refused, where no guess is "
                "made. A view such as learner+3*user is the learner together with three users."
            )
        )
    if any(row["exact"] for run in known for row in run["privacy"]["views"]):
        blocks.append(Picture(figures.privacy(known), _caption(known)))
    blocks += _tables(known)
    blocks += [
        Paragraph(f"{whose(run, runs)}{run['privacy']['hidden']}", True)
        for run in known
        if run["privacy"]["hidden"]
    ]
    return blocks


def _caption(known: Sequence[Document]) -> str:
    text = "ε by view, its basis told by the mark; sources are in the table."
    if any(figures.audit_of(run, row["view"]) for run in known for row in run["privacy"]["views"]):
        text += " What was measured holds with the confidence in the table."
    every, drawn = len(figures.views(known, 1)), len(figures.drawn(known))
    return text if drawn == every else f"{text} {every - drawn} views that one run alone has are not drawn."


def _tables(known: Sequence[Document]) -> list[Table]:
    """Return one table for each group of runs with the same delta, channels and faults."""
    groups: dict[str, list[Document]] = {}
    for run in known:
        privacy = run["privacy"]
        caption = f"δ = {figure_text.number(privacy['delta'])}, {privacy['channels']} channels"
        caption += f"; faults: {', '.join(privacy['faults'])}" if privacy.get("faults") else ""
        groups.setdefault(caption, []).append(run)
    return [_table(runs, known, caption) for caption, runs in groups.items()]


def _table(runs: Sequence[Document], known: Sequence[Document], caption: str) -> Table:
    """Return the table of the views of some runs, with notes on sources and assumptions."""
    notes: dict[str, int] = {}

    def note(*texts: str) -> str:
        found = [notes.setdefault(text, len(notes) + 1) for text in texts if text]
        return " ".join(f"[{number}]" for number in found)

    rows = [
        [run["run"], row["view"], *_figure(row, note), _theorems(row["theorems"], note), _measured(run, row)]
        for run in runs
        for row in run["privacy"]["views"]
    ]
    head = ["run", "view", "ε", "ε by cluster", "basis", "source", "promised by theorems", "measured"]
    shown = [i for i, name in enumerate(head) if name not in _RARE or any(row[i] for row in rows)]
    if head.index("ε by cluster") in shown:
        caption += "; ε by cluster: of the smallest, the median and the largest"
    cells = [[row[i] for i in shown] for row in rows]
    made = together(known, [head[i] for i in shown[1:]], cells, caption + _local(runs, known))
    return Table(made.head, made.rows, made.caption, list(notes))


def _figure(row: Mapping[str, Any], note: Callable[..., str]) -> list[str | None]:
    """Return the cells of a view's figure."""
    exact = row["exact"]
    if exact is None:
        return [None, None, none(row), note(row["refused"])]
    text = "; ".join([exact["source"], *exact["assumes"]])
    return [
        figure_text.epsilon(exact),
        _by_cluster(row),
        exact["basis"],
        note(text, privacy_table.pinned(row)),
    ]


def _measured(run: Document, row: Mapping[str, Any]) -> str | None:
    """Return the cell of the measured bound; None if this view was not audited."""
    found = figures.audit_of(run, row["view"])
    return (
        None
        if found is None
        else figure_text.typeset(f"{audit_table.bound(found)}, {audit_table.confidence(found)}")
    )


def _by_cluster(row: Mapping[str, Any]) -> str | None:
    """Return the figures of the smallest, median and largest cluster; None if they are equal."""
    found = [entry for entry in (row["by_cluster"] or {}).values() if entry is not None]
    texts = [figure_text.epsilon(entry) for entry in found]
    return "; ".join(texts) if len(set(texts)) > 1 else None


def _local(runs: Sequence[Document], known: Sequence[Document]) -> str:
    """Return the epsilons of the local randomizers, as part of a caption."""
    found = [(run, run["privacy"]["local_epsilon"]) for run in runs]
    figures_text = [
        f"{whose(run, known)}{figure_text.number(value)}" for run, value in found if value is not None
    ]
    return f"; ε of the local randomizer alone: {', '.join(figures_text)}" if figures_text else ""


def _theorems(theorems: Sequence[Mapping[str, Any]], note: Callable[..., str]) -> str:
    parts = []
    for found in theorems:
        if found["holds"]:
            why = ", ".join(part for part in (found["source"], found["why"]) if part)
            parts.append(f"{found['name']}: {figure_text.bound(found)} ({found['basis']}) {note(why)}")
        else:
            parts.append(f"{found['name']}: does not apply {note(found['why'] or 'epsilon is infinite')}")
    return "; ".join(parts) or "-"


def epsilon(run: Document, view: str) -> str | None:
    """Return a view's epsilon and its basis as text; None if the run has no such row."""
    if isinstance(run["privacy"], str):
        return None
    for row in run["privacy"]["views"]:
        if row["view"] == view:
            exact = row["exact"]
            return f"{figure_text.epsilon(exact)} ({exact['basis']})" if exact else none(row)
    return None


def none(row: Mapping[str, Any]) -> str:
    """Return why a view has no figure, in two words."""
    return "not computed" if str(row["refused"]).startswith("not computed here") else "refused"
