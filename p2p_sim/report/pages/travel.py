"""The part of a report on what travelled: kinds, rounds, messages, bytes, and who sent what to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import Message
from p2p_sim.report.pages import pictures
from p2p_sim.report.pages.blocks import Block, Figure, Table, Words, together, whose
from p2p_sim.trace.diagram.overview import overview
from p2p_sim.trace.diagram.svg import svg

Document = Mapping[str, Any]


def section(runs: Sequence[Document]) -> list[Block]:
    """Return what is told of the messages of all runs."""
    blocks: list[Block] = [
        Words(f"{whose(run, runs)}{_kept(run)}") for run in runs if run["messages_kept"] is not None
    ]
    apart = len(runs) == 1 and pictures.by_round(runs[0])
    caption = f"Bytes on the wire by {'round and ' if apart else ''}message kind."
    blocks += [Figure(pictures.traffic(runs), caption), _kinds(runs), _counts(runs)]
    drawn: set[str] = set()
    for run in runs:
        every = run["messages"]
        if run["protocol"] in drawn or not every or not all(row["sender"] for row in every):
            continue
        drawn.add(run["protocol"])
        if len(every) <= pictures.MOST_BARS:
            blocks.append(Figure(_sequence(run), f"{whose(run, runs)}who sent what to whom, round by round."))
        else:
            text = f"Who sent what to whom is not drawn: {len(every):,} rounds and kinds are too many here"
            blocks.append(Words(f"{whose(run, runs)}{text}. See p2p-sim trace diagram."))
    return blocks


def _kept(run: Document) -> str:
    """Return what the trace holds of the messages, in words."""
    whole, kept = sum(row["messages"] for row in run["messages"]), run["messages_kept"]
    left = "all of them" if kept == whole else f"{whole - kept:,} were left out"
    return f"Of {whole:,} messages the trace ({run['trace']}) keeps {kept:,}: {left}. See p2p-sim trace show."


def _kinds(runs: Sequence[Document]) -> Table:
    """Return what each kind of message does; kinds of several protocols that say the same are one."""
    seen: dict[tuple[Any, ...], list[str]] = {}
    for run in runs:
        for row in run["messages"]:
            about = tuple(row[name] for name in ("kind", "sender", "recipient", "sealed_for", "text"))
            protocols = seen.setdefault(about, [])
            if run["protocol"] not in protocols:
                protocols.append(run["protocol"])
    several = len({run["protocol"] for run in runs}) > 1
    rows = [[*about, ", ".join(protocols)][: 6 if several else 5] for about, protocols in seen.items()]
    head = ["kind", "from", "to", "sealed for", "what it does", "protocol"][: 6 if several else 5]
    shown = [i for i in range(len(head)) if i != 3 or any(row[3] for row in rows)]
    return Table([head[i] for i in shown], [[row[i] for i in shown] for row in rows], "Kinds of messages")


def _counts(runs: Sequence[Document]) -> Table:
    """Return counts by round and kind, or by kind where the rounds are too many."""
    few = sum(len(run["messages"]) for run in runs) <= pictures.MOST_BARS
    names = ("round", "kind", "messages", "travelled", "bytes")
    rows = [
        [run["run"], *(row[name] for name in names)]
        for run in runs
        for row in (run["messages"] if few else _by_kind(run["messages"]))
    ]
    caption = "Messages; those to oneself are delivered, but do not travel"
    caption += "" if few else "; the rounds of a kind are added up, --json has each"
    return together(runs, ["round", "kind", "delivered", "travelled", "bytes"], rows, caption)


def _by_kind(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum up the rounds of each kind."""
    sums: dict[str, dict[str, Any]] = {}
    for row in rows:
        known = sums.setdefault(row["kind"], dict(row, messages=0, travelled=0, bytes=0, first=row["round"]))
        known["round"] = (
            row["round"] if known["first"] == row["round"] else f"{known['first']} to {row['round']}"
        )
        for name in ("messages", "travelled", "bytes"):
            known[name] += row[name]
    return list(sums.values())


def _sequence(run: Document) -> str:
    """Draw a run's counts as a sequence diagram, one lane a role."""
    kinds = {}
    for row in run["messages"]:
        message = Message(row["sender"], row["recipient"], row["text"], sealed_for=row["sealed_for"])
        message.kind = row["kind"]
        kinds[row["kind"]] = message
    counts = {
        (row["kind"], row["round"]): Count(row["messages"], row["travelled"], row["bytes"])
        for row in run["messages"]
    }
    return svg(overview(kinds, counts, run["users"], f"{run['run']}: {run['protocol']}"), dark=False)
