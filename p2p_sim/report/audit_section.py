"""The section of a report on audits: what was measured of each view, and what it must not exceed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.privacy.auditing.claims import CONSISTENT
from p2p_sim.report import audit_table
from p2p_sim.report.figure_text import number_text
from p2p_sim.report.page_layout import Block, Paragraph, Table, whose

Document = Mapping[str, Any]


def audits_section(runs: Sequence[Document]) -> list[Block]:
    """Return the section on the audits of all runs; empty if none was audited."""
    attacked = [run for run in runs if run["attacks"]]
    if not attacked:
        return []
    blocks: list[Block] = [
        Paragraph(
            "p2p-sim audit ran the protocol many times more, in worlds that differ in one label alone, and let an "
            "attack guess that label from what the view sees. With the confidence beside it, ε or δ is at least what "
            "was measured. Positives are counted at the threshold that gives this bound; the advantage is their "
            "difference. What must not be exceeded is that of the worlds which ran. Consistent: it was not, which "
            "is no proof."
        )
    ]
    for run in attacked:
        blocks += [_table(run, runs), *_reasons(run, runs), *_limits(run, runs)]
    return blocks


def _table(run: Document, runs: Sequence[Document]) -> Table:
    notes: dict[str, int] = {}
    rows = []
    for row in run["attacks"]:
        note = notes.setdefault(_note(row), len(notes) + 1)
        hit, wrong = row["true_positive"], row["false_positive"]
        rows.append([
            f"{audit_table.title(row)} [{note}]", audit_table.attack(row)[0],
            f"{audit_table.bound(row)} ({audit_table.confidence(row)})", audit_table.limit(row),
            audit_table.verdict_of(row),
            f"{number_text(hit)}, {number_text(wrong)}", hit - wrong,
        ])  # fmt: skip
    head = ["view", "attack", "measured", "must not exceed", "verdict", "true, false positives", "advantage"]
    return Table(head, rows, whose(run, runs).removesuffix(": "), list(notes))


def _note(row: Document) -> str:
    size = row["cluster_size"]
    users = "one user" if size == 1 else f"{size:,} users"
    worlds = f"{row['trials']:,} worlds a label, each of {users}: {row['world']}"
    worlds += "".join(f"; {how}" for how in audit_table.attack(row)[1:] if how)
    worlds += "".join(f"; assumes: {text}" for text in row.get("assumes") or ())
    return f"{worlds}. Audited {row['when']} by p2p-sim {row['version']}: {row['command']}"


def _reasons(run: Document, runs: Sequence[Document]) -> list[Block]:
    """Return a paragraph for every view that is not consistent with the claims, with the reason."""
    return [
        Paragraph(
            f"{whose(run, runs)}{audit_table.title(row)}: {audit_table.verdict_of(row)}: {audit_table.why(row)}",
            row["failed"],
        )
        for row in run["attacks"]
        if row["verdict"] != CONSISTENT
    ]


def _limits(run: Document, runs: Sequence[Document]) -> list[Block]:
    """Return a paragraph for every view: the smallest violation that could have been shown, and what stood still."""
    said = []
    for row in run["attacks"]:
        texts = [*audit_table.smallest(row), *(f"not varied: {text}" for text in row["not_varied"])]
        said += [f"{whose(run, runs)}{audit_table.title(row)}: {'; '.join(texts)}."] if texts else []
    return [Paragraph(text) for text in said]
