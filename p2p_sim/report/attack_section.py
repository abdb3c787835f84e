"""The section of a report on label inference: what attackers guess, in words, as a table, and who is at risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.leakage.advantage import of_canaries
from p2p_sim.report import attack_table, per_user_certainty
from p2p_sim.report.figure_text import percent, typeset
from p2p_sim.report.page_layout import Block, Paragraph, Picture, Table, whose

Document = Mapping[str, Any]


def attacks_section(runs: Sequence[Document]) -> list[Block]:
    """Return the section on the attacks on labels of all runs; empty if none was attacked."""
    attacked = [run for run in runs if run.get("label_inference")]
    if not attacked:
        return []
    blocks: list[Block] = [
        Paragraph(
            "Attackers guessed the label of every user, with the messages that a view sees and without them "
            "(p2p-sim attack). The advantage is the difference. Without messages an attacker still knows features and "
            "how labels depend on them: what she guesses by that alone no protection of the labels can prevent."
        )
    ]
    for number, run in enumerate(attacked, 1):
        name = whose(run, runs)
        for each, title in zip(
            run["label_inference"], attack_table.titles(run["label_inference"]), strict=True
        ):
            blocks += _of_view(each, f"{name}{title}")
        kept = attack_table.kept_counts(run["label_inference"])
        if kept:
            file = "users-at-risk" if len(attacked) == 1 else f"users-at-risk-{number}"
            caption = f"{name}of how many users an attacker is how sure, before the messages and with them."
            blocks.append(Picture(per_user_certainty.plot(file, kept), caption))
    return blocks


def guessed(run: Document) -> str | None:
    """Return the share of labels that the learner guesses right, and that without messages; None if no attack says.

    Of several attacks that are kept it is the one that guesses most.
    """
    found = [
        attack_table.best(each)
        for each in run.get("label_inference", ())
        if each["name"] == attack_table.LEARNER and each["utility"] != attack_table.WEIGHTED
    ]
    attacks = [each for each in found if each is not None and not of_canaries(each["name"])]
    if not attacks:
        return None
    one = max(attacks, key=lambda each: each["utility"]["value"])
    without = one["baseline"]["value"]
    with_them = max(one["utility"]["value"], without)  # she may leave the messages out
    return f"{percent(with_them)}; without messages {percent(without)}"


def _of_view(each: Document, title: str) -> list[Block]:
    head, lines = attack_table.head(each), attack_table.lines(each)
    notes = [f"{attack_table.SOURCES} {'; '.join(attack_table.notes(each))}"]
    notes.append(
        f"{each['users']:,} users; P(label | features): {each['eta_from']}; seed of the estimates "
        f"{each['seed']}. Attacked {each['when']} by p2p-sim "
        f"{each['version']}: {each['command']}"
    )
    blocks: list[Block] = [
        Paragraph(f"{title}: {' '.join(each['sentences'])}"),
        *(Paragraph(f"{title}: {text}", True) for text in attack_table.exceeded(each)),
        Table(head, [[typeset(cell) for cell in line] for line in lines], f"Attackers, view {title}", notes),
    ]
    if each["bounds"]:
        rows = [[typeset(cell) for cell in line] for line in attack_table.bound_lines(each)]
        blocks.append(Table(attack_table.BOUND_HEAD, rows, f"What bounds allow, view {title}"))
    return blocks
