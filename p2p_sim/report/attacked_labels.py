"""The section of a report on label inference: what attackers guess, in words, as a table, and who is at risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import attack_table, users_at_risk
from p2p_sim.report.figure_text import percent, typeset
from p2p_sim.report.page_layout import Block, Paragraph, Picture, Table, whose

Document = Mapping[str, Any]


def guesses_section(runs: Sequence[Document]) -> list[Block]:
    """Return the section on the attacks on labels of all runs; empty if none was attacked."""
    attacked = [run for run in runs if run.get("label_inference")]
    if not attacked:
        return []
    blocks: list[Block] = [
        Paragraph(
            "p2p-sim attack let attackers guess the label of every user, with the messages that a view sees and "
            "without them. The advantage is the difference. Without messages an attacker still knows features and how "
            "labels depend on them: what she guesses by that alone no protection of the labels can prevent."
        )
    ]
    for number, run in enumerate(attacked, 1):
        name = whose(run, runs)
        for each in run["label_inference"]:
            blocks += _of_view(each, name)
        kept = attack_table.kept_counts(run["label_inference"])
        if kept:
            file = "users-at-risk" if len(attacked) == 1 else f"users-at-risk-{number}"
            caption = f"{name}of how many users an attacker is how sure, before the messages and with them."
            blocks.append(Picture(users_at_risk.plot(file, kept), caption))
    return blocks


def guessed(run: Document) -> str | None:
    """Return the share of labels that the learner guesses right, and that without messages; None if none was told."""
    for each in run.get("label_inference", ()):
        one = attack_table.best(each)
        if (
            each["name"] == attack_table.LEARNER
            and each["utility"] != attack_table.WEIGHTED
            and one is not None
        ):
            return f"{percent(one['utility']['value'])}; without messages {percent(one['baseline']['value'])}"
    return None


def _of_view(each: Document, name: str) -> list[Block]:
    head, lines = attack_table.head(each), attack_table.lines(each)
    notes = attack_table.notes(each)
    notes.append(
        f"{each['users']:,} users; P(label | features): {each['eta_from']}. Attacked {each['when']} by p2p-sim "
        f"{each['version']}: {each['command']}"
    )
    title = f"{name}{attack_table.title(each)}"
    blocks: list[Block] = [
        Paragraph(f"{title}: {' '.join(each['sentences'])}"),
        *(Paragraph(f"{title}: {text}", True) for text in attack_table.exceeded(each)),
        Table(head, [[typeset(cell) for cell in line] for line in lines], f"Attackers, view {title}", notes),
    ]
    if each["bounds"]:
        rows = [[typeset(cell) for cell in line] for line in attack_table.bound_lines(each)]
        blocks.append(Table(attack_table.BOUND_HEAD, rows, f"What bounds allow, view {title}"))
    return blocks
