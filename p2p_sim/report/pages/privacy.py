"""The part of a report on privacy: every view of every run, each figure with its basis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report.figures import bracket_text, number_text
from p2p_sim.report.pages import pictures
from p2p_sim.report.pages.blocks import Block, Figure, Table, Words, whose

Document = Mapping[str, Any]


def section(runs: Sequence[Document]) -> list[Block]:
    """Return what is told of the privacy of all runs."""
    known = [run for run in runs if not isinstance(run["privacy"], str)]
    blocks: list[Block] = [
        Words(f"{whose(run, runs)}{run['privacy']}") for run in runs if isinstance(run["privacy"], str)
    ]
    if known:
        blocks.append(
            Words(
                "What each view learns of one label, replaced: ε in nats at the δ of the table. Smaller is better; at "
                "0 a view learns nothing. Every figure has a basis: exact; upper or lower, a bound that is proven; "
                "claimed, a theorem as printed; measured, with a confidence; or refused, where no guess is made."
            )
        )
    if any(row["exact"] for run in known for row in run["privacy"]["views"]):
        blocks.append(Figure(pictures.privacy(known), "ε by view, on the basis that the tables name."))
    blocks += [_views(run, runs) for run in known]
    blocks += [
        Words(f"{whose(run, runs)}{run['privacy']['hidden']}", True)
        for run in known
        if run["privacy"]["hidden"]
    ]
    return blocks


def _views(run: Document, runs: Sequence[Document]) -> Table:
    """Return the table of a run's views, with a note for every source and assumption."""
    told, notes = run["privacy"], dict[str, int]()

    def note(*texts: str) -> str:
        found = [notes.setdefault(text, len(notes) + 1) for text in texts if text]
        return " ".join(f"[{number}]" for number in found)

    rows = []
    for row in told["views"]:
        exact = row["exact"]
        if exact is None:
            cells = ["-", _none(row), note(row["refused"])]
        else:
            cells = [
                bracket_text(exact),
                exact["basis"],
                note("; ".join([exact["source"], *exact["assumes"]])),
            ]
        rows.append([row["view"], *cells, _theorems(row["theorems"], note)])
    local = told["local_epsilon"]
    caption = f"{whose(run, runs)}δ = {told['delta']:.3g}, {told['channels']} channels"
    caption += f"; faults: {', '.join(told['faults'])}" if told.get("faults") else ""
    caption += "" if local is None else f"; ε of the local randomizer alone: {number_text(local)}"
    return Table(["view", "ε", "basis", "source", "theorems"], rows, caption, list(notes))


def _theorems(theorems: Sequence[Mapping[str, Any]], note: Callable[..., str]) -> str:
    parts = []
    for found in theorems:
        if found["holds"]:
            why = ", ".join(part for part in (found["source"], found["why"]) if part)
            parts.append(f"{found['name']}: {number_text(found['epsilon'])} ({found['basis']}) {note(why)}")
        else:
            parts.append(f"{found['name']}: does not apply {note(found['why'] or 'epsilon is infinite')}")
    return "; ".join(parts) or "-"


def epsilon(run: Document, view: str) -> str | None:
    """Return a view's epsilon and its basis in a few words; None if the run has no such row."""
    if isinstance(run["privacy"], str):
        return None
    for row in run["privacy"]["views"]:
        if row["view"] == view:
            exact = row["exact"]
            return f"{bracket_text(exact)} ({exact['basis']})" if exact else _none(row)
    return None


def _none(row: Mapping[str, Any]) -> str:
    """Return why a view has no figure, in two words."""
    return "not computed" if str(row["refused"]).startswith("not computed here") else "refused"
