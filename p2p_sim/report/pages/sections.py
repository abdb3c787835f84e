"""A report's sections, from the documents of its runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import Message
from p2p_sim.report import layout
from p2p_sim.report.pages import attacks, pictures, privacy
from p2p_sim.report.pages.blocks import Block, Code, Figure, Section, Table, Words, beside, whose
from p2p_sim.report.pages.document import WITHHELD
from p2p_sim.trace.diagram.overview import overview
from p2p_sim.trace.diagram.svg import svg

Document = Mapping[str, Any]


def sections(runs: Sequence[Document]) -> list[Section]:
    """Return the sections of a report; those that have nothing to tell are left out."""
    made = [
        ("Setting", _setting(runs)),
        ("Privacy", privacy.section(runs)),
        ("Utility", _utility(runs)),
        ("Attacks", attacks.section(runs)),
        ("Costs", _costs(runs)),
        ("What travelled", _travelled(runs)),
        ("Faults", _faults(runs)),
        ("How to reproduce", _reproduce(runs)),
        ("Versions", _versions(runs)),
    ]
    return [Section(title, blocks) for title, blocks in made if blocks]


def names(runs: Sequence[Document]) -> list[str]:
    """Return what the runs are called."""
    return [run["run"] for run in runs]


def _setting(runs: Sequence[Document]) -> list[Block]:
    parameters = list(dict.fromkeys(name for run in runs for name in run["parameters"]))
    rows: list[tuple[str, list[Any]]] = [("protocol", [run["protocol"] for run in runs])]
    rows += [(name, [_parameter(run, name) for run in runs]) for name in parameters]
    rows += [
        ("data", [_data(run["data"]) for run in runs]),
        ("users", [run["users"] for run in runs]),
        ("clusters", [_clusters(run["clusters"]) for run in runs]),
        ("graph", [None if run["graph"] is None else run["graph"]["source"] for run in runs]),
        ("backend", [run["backend"] for run in runs]),
        ("trace", [run["trace"] for run in runs]),
    ]
    return [beside(names(runs), rows)]


def _parameter(run: Document, name: str) -> str | None:
    if name not in run["parameters"]:
        return None
    return f"{run['parameters'][name]}{' (default)' if name in run['defaults'] else ''}"


def _data(data: Mapping[str, Any]) -> str:
    text = f"{data['name']}, {data['source']}"
    if "rows" in data:
        text += f"; {data['rows']:,} rows, {data['features']:,} features; label {data['label']}"
    return text + (f"; 1 means {data['positive']}" if data.get("positive") is not None else "")


def _clusters(told: Mapping[str, Any] | None) -> str | None:
    if told is None:
        return None
    text, least, most = f"{told['count']:,} {told['origin']}", told["minimum"], told["maximum"]
    return text if least == most else f"{text}, {least:,} to {most:,} users in each"


def _utility(runs: Sequence[Document]) -> list[Block]:
    trained = [run for run in runs if run["accuracy"] is not None]
    blocks: list[Block] = []
    if trained:
        rows = [
            (title, [run["accuracy"].get(key) for run in trained]) for key, title in pictures.ACCURACY.items()
        ]
        shown = [
            (title, [None if v is None else f"{100 * v:.2f} %" for v in values]) for title, values in rows
        ]
        told: list[tuple[str, list[Any]]] = [
            ("model", [run["accuracy"]["model"] for run in trained]),
            ("test rows", [run["accuracy"]["test_rows"] for run in trained]),
            ("labels released", [run["accuracy"]["trained_on"] for run in trained]),
        ]
        blocks = [
            Figure(pictures.utility(trained), "Test accuracy of the model, by what it was trained on."),
            beside(names(trained), [*shown, *told], "Test accuracy"),
        ]
        blocks += [
            Words(f"{whose(run, runs)}{run['accuracy']['note']}")
            for run in trained
            if run["accuracy"]["note"]
        ]
    others = [run for run in runs if run["accuracy"] is None]
    blocks += [Words(f"{whose(run, runs)}{_released(run['released'])}") for run in others]
    return blocks


def _released(released: Mapping[str, Any] | None) -> str:
    if released is None:
        return "No labels were released, or it is not known which; no model was trained."
    share = released.get("positive_share")
    positive = "" if share is None else f", {100 * share:.2f} % of them positive"
    return f"{released['labels']:,} labels were released{positive}; no model was trained."


def _costs(runs: Sequence[Document]) -> list[Block]:
    blocks: list[Block] = []
    known = [run for run in runs if not isinstance(run["costs"], str)]
    fields = ("parties", "messages_up", "messages_down", "bytes_up", "bytes_down", "compute_seconds")
    head = ["role", "parties", "messages sent", "received", "bytes sent", "received", "CPU seconds"]
    for run in known:
        rows = [[role["role"], *(role[name] for name in fields)] for role in run["costs"]["roles"]]
        blocks.append(Table(head, rows, f"{whose(run, runs)}by role, sums over its parties"))
    rows_of: list[tuple[str, list[Any]]] = [
        ("simulated seconds", [run["costs"]["simulated_seconds"] for run in known]),
        ("users' links", [run["costs"]["channel"] for run in known]),
        ("servers' links", [run["costs"]["server_channel"] for run in known]),
        ("seconds that this run took", [sum(run["seconds"].values()) for run in known]),
    ]
    blocks += [beside(names(known), rows_of)] if known else []
    blocks += [Words(f"{whose(run, runs)}{run['costs']}") for run in runs if isinstance(run["costs"], str)]
    return blocks


def _travelled(runs: Sequence[Document]) -> list[Block]:
    blocks: list[Block] = [Figure(pictures.traffic(runs), "Bytes on the wire by round and message kind.")]
    head = ["round", "kind", "from", "to", "delivered", "travelled", "bytes", "what it does"]
    names_of = ("round", "kind", "sender", "recipient", "messages", "travelled", "bytes", "text")
    for run in runs:
        every = run["messages"]
        shown = every if len(every) <= pictures.MOST_BARS else _by_kind(every)
        rows = [[row[name] for name in names_of] for row in shown]
        blocks.append(Table(head, rows, whose(run, runs).removesuffix(": ")))
        if every and shown is every and all(row["sender"] for row in every):
            caption = f"{whose(run, runs)}who sent what to whom, round by round; see p2p-sim trace diagram"
            blocks.append(Figure(_sequence(run), caption))
    return blocks


def _by_kind(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum up the rounds of each kind."""
    sums: dict[str, dict[str, Any]] = {}
    for row in rows:
        known = sums.setdefault(row["kind"], dict(row, messages=0, travelled=0, bytes=0))
        known["round"] = f"{str(known['round']).partition(' ')[0]} to {row['round']}"
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


def _faults(runs: Sequence[Document]) -> list[Block]:
    faulty = [run for run in runs if run["faults"]]
    blocks: list[Block] = []
    for run in faulty:
        users = "".join(f"; {number:,} users {what}" for what, number in run["faulty_users"].items())
        blocks.append(Words(f"{whose(run, runs)}{', '.join(run['faults'])}{users}"))
        rows = [[row["fault"], row["kind"], row["messages"]] for row in run["faults_seen"]]
        blocks += [Table(["what", "kind", "messages"], rows)] if rows else []
    return blocks


def _reproduce(runs: Sequence[Document]) -> list[Block]:
    blocks: list[Block] = []
    for run in runs:
        known = run["digest"] and run["seed"] is not None
        told = f"It gives the digest {run['digest']}." if known else ""
        blocks += [Words(f"{whose(run, runs)}{told}")] if told or len(runs) > 1 else []
        blocks.append(Code(run["command"]))
    if any(run["seed"] not in (None, WITHHELD) for run in runs):
        blocks.append(
            Words(
                "This page tells the seed. Whoever has it and what was released can undo the noise: keep the page as "
                "the labels are kept, or make it with --no-seed.", True,
            )
        )  # fmt: skip
    if any(run["seed"] == WITHHELD for run in runs):
        blocks.append(
            Words("The seed is withheld: with it the noise could be undone. Its owner can reproduce the run.")
        )
    return blocks


def _versions(runs: Sequence[Document]) -> list[Block]:
    packages = list(dict.fromkeys(name for run in runs for name in run["versions"]))
    rows = [(name, [run["versions"].get(name) for run in runs]) for name in packages]
    return [beside(names(runs), rows)] if rows else []


def glance(runs: Sequence[Document]) -> Table:
    """Return what one looks for first, a column a run."""
    views = list(dict.fromkeys(
        row["view"] for run in runs if not isinstance(run["privacy"], str) for row in run["privacy"]["views"]
        if row["name"] in ("learner", "user", "wire")
    ))  # fmt: skip
    rows: list[tuple[str, list[Any]]] = [
        (f"ε: {view}", [privacy.epsilon(run, view) for run in runs]) for view in views
    ]
    rows += [
        ("δ", [None if isinstance(run["privacy"], str) else run["privacy"]["delta"] for run in runs]),
        ("test accuracy", [_accuracy(run, "accuracy_private") for run in runs]),
        ("with true labels", [_accuracy(run, "accuracy_true") for run in runs]),
        ("messages", [sum(row["messages"] for row in run["messages"]) for run in runs]),
        ("bytes on the wire", [layout.nbytes(sum(row["bytes"] for row in run["messages"])) for run in runs]),
        ("digest", [run["digest"] for run in runs]),
    ]
    return beside(names(runs), rows)


def _accuracy(run: Document, key: str) -> str | None:
    return None if run["accuracy"] is None else f"{100 * run['accuracy'][key]:.2f} %"
