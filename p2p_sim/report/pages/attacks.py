"""The part of a report on attacks: what audits of a run measured, beside what it must not exceed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.privacy.auditing.claims import CONSISTENT
from p2p_sim.report import measured
from p2p_sim.report.figures import number_text
from p2p_sim.report.pages.blocks import Block, Table, Words, whose

Document = Mapping[str, Any]


def section(runs: Sequence[Document]) -> list[Block]:
    """Return what is told of the attacks on all runs; nothing if none was audited."""
    attacked = [run for run in runs if run["attacks"]]
    if not attacked:
        return []
    blocks: list[Block] = [
        Words(
            "p2p-sim audit ran the protocol many times more, in worlds that differ in one label alone, and let an "
            "attack guess that label from what the view sees. With the confidence beside it, ε or δ is at least what "
            "was measured. Positives are counted at the threshold that gives this bound; the advantage is their "
            "difference. What must not be exceeded is that of the worlds which ran. Consistent: it was not, which "
            "is no proof."
        )
    ]
    for run in attacked:
        blocks += [_table(run, runs), *_reasons(run, runs)]
    return blocks


def _table(run: Document, runs: Sequence[Document]) -> Table:
    notes: dict[str, int] = {}
    rows = []
    for row in run["attacks"]:
        note = notes.setdefault(_note(row), len(notes) + 1)
        hit, wrong = row["true_positive"], row["false_positive"]
        rows.append([
            f"{measured.title(row)} [{note}]", measured.attack(row)[0],
            f"{measured.bound(row)} ({measured.confidence(row)})", measured.limit(row), measured.verdict_of(row),
            f"{number_text(hit)}, {number_text(wrong)}", hit - wrong,
        ])  # fmt: skip
    head = ["view", "attack", "measured", "must not exceed", "verdict", "true, false positives", "advantage"]
    return Table(head, rows, whose(run, runs).removesuffix(": "), list(notes))


def _note(row: Document) -> str:
    size = row["cluster_size"]
    users = "one user" if size == 1 else f"{size:,} users"
    worlds = f"{row['trials']:,} worlds a label, each of {users}: {row['world']}"
    worlds += "".join(f"; {how}" for how in measured.attack(row)[1:] if how)
    return f"{worlds}. Audited {row['when']} by p2p-sim {row['version']}: {row['command']}"


def _reasons(run: Document, runs: Sequence[Document]) -> list[Block]:
    """Say of every view that is not consistent with what is claimed why it is not."""
    return [
        Words(
            f"{whose(run, runs)}{row['view']}: {measured.verdict_of(row)}: {measured.why(row)}", row["failed"]
        )
        for row in run["attacks"]
        if row["verdict"] != CONSISTENT
    ]
