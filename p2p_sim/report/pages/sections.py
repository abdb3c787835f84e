"""A report's sections, from the documents of its runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import layout
from p2p_sim.report.pages import attacks, pictures, privacy, travel
from p2p_sim.report.pages.blocks import (
    Block,
    Code,
    Facts,
    Figure,
    Section,
    Words,
    facts,
    together,
    whose,
)
from p2p_sim.report.pages.document import WITHHELD
from p2p_sim.report.pages.words import Number, percent, seconds

Document = Mapping[str, Any]

_SUMS = "By role, sums over its parties; CPU: measured, and for cryptographic operations what they take here"


def sections(runs: Sequence[Document]) -> list[Section]:
    """Return the sections of a report; those that have nothing to tell are left out."""
    made = [
        ("Setting", _setting(runs)),
        ("Privacy", privacy.section(runs)),
        ("Utility", _utility(runs)),
        ("Attacks", attacks.section(runs)),
        ("Costs", _costs(runs)),
        ("What travelled", travel.section(runs)),
        ("Faults", _faults(runs)),
        ("How to reproduce", _reproduce(runs)),
        ("Versions", _versions(runs)),
    ]
    return [Section(title, blocks) for title, blocks in made if blocks]


def names(runs: Sequence[Document]) -> list[str]:
    """Return what the runs are called."""
    return [run["run"] for run in runs]


def _setting(runs: Sequence[Document]) -> list[Block]:
    rows: list[tuple[str, list[Any]]] = [("protocol", [run["protocol"] for run in runs]), *parameters(runs)]
    rows += [
        ("data", [_data(run["data"]) for run in runs]),
        ("users", [run["users"] for run in runs]),
        ("clusters", [_clusters(run["clusters"]) for run in runs]),
        ("graph", [None if run["graph"] is None else layout.graph(run["graph"]) for run in runs]),
        ("backend", [run["backend"] for run in runs]),
        ("cryptography", [run["crypto"] for run in runs]),
        ("trace", [run["trace"] for run in runs]),
    ]
    return list(facts(names(runs), rows))


def parameters(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return a fact a parameter; of several protocols, whose parameters have little in common, all in one."""
    if len({run["protocol"] for run in runs}) > 1:
        every = [[f"{name} = {_parameter(run, name)}" for name in run["parameters"]] for run in runs]
        return [("parameters", [", ".join(texts) for texts in every])]
    known = list(dict.fromkeys(name for run in runs for name in run["parameters"]))
    return [(name, [_parameter(run, name) for run in runs]) for name in known]


def _parameter(run: Document, name: str) -> str | None:
    if name not in run["parameters"]:
        return None
    value = run["parameters"][name]
    shown = "∞" if value == "inf" else value
    return f"{shown}{' (default)' if name in run['defaults'] else ''}"


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
        rows: list[tuple[str, list[Any]]] = [
            (title, [_share(run, key) for run in trained]) for key, title in pictures.ACCURACY.items()
        ]
        rows += [
            ("model", [run["accuracy"]["model"] for run in trained]),
            ("test rows", [run["accuracy"]["test_rows"] for run in trained]),
            ("labels released", [run["accuracy"]["trained_on"] for run in trained]),
        ]
        caption = (
            "Test accuracy of the model, by what it was trained on. Measured, with 95 % intervals (Clopper, Pearson) "
            "for the draw of the test rows; other seeds of the protocol are not in them."
        )
        blocks = [Figure(pictures.utility(trained), caption), *facts(names(trained), rows, "Test accuracy")]
        blocks += [
            Words(f"{whose(run, runs)}{run['accuracy']['note']}")
            for run in trained
            if run["accuracy"]["note"]
        ]
    others = [run for run in runs if run["accuracy"] is None]
    blocks += [Words(f"{whose(run, runs)}{_released(run['released'])}") for run in others]
    return blocks


def _share(run: Document, key: str) -> str | None:
    """Return an accuracy and its interval."""
    value = run["accuracy"].get(key)
    if value is None:
        return None
    ends = run["intervals"].get(key)
    return (
        percent(value)
        if ends is None
        else Number(f"{percent(value)} ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})")
    )


def _released(released: Mapping[str, Any] | None) -> str:
    if released is None:
        return "No labels were released, or it is not known which; no model was trained."
    share = released.get("positive_share")
    positive = "" if share is None else f", {percent(share)} of them positive"
    why = released.get("untrained") or "no model was trained"
    return f"{released['labels']:,} labels were released{positive}; {why}."


def _costs(runs: Sequence[Document]) -> list[Block]:
    known = [run for run in runs if not isinstance(run["costs"], str)]
    fields = ("parties", "messages_up", "messages_down", "bytes_up", "bytes_down")
    head = ["role", "parties", "messages sent", "messages received", "bytes sent", "bytes received", "CPU"]
    rows = [
        [run["run"], role["role"], *(role[name] for name in fields), seconds(role["compute_seconds"])]
        for run in known
        for role in run["costs"]["roles"]
    ]
    blocks: list[Block] = [together(runs, head, rows, _SUMS)] if rows else []
    told: Facts = [
        ("simulated time", [seconds(run["costs"]["simulated_seconds"]) for run in known]),
        ("users' links", [_link(run["costs"]["channel"]) for run in known]),
        ("servers' links", [_link(run["costs"]["server_channel"]) for run in known]),
        ("this run took", [seconds(sum(run["seconds"].values())) for run in known]),
    ]
    blocks += facts(names(known), told, "Time") if known else []
    work = [
        [run["run"], role["role"], name, times]
        for run in known
        for role in run["costs"]["roles"]
        for name, times in role["operations"].items()
    ]
    if work:
        blocks.append(together(runs, ["role", "operation", "times"], work, "Cryptographic operations"))
    blocks += [Words(f"{whose(run, runs)}{run['costs']}") for run in runs if isinstance(run["costs"], str)]
    return blocks


def _link(text: str) -> str:
    return text.replace(",", ", ")


def _faults(runs: Sequence[Document]) -> list[Block]:
    faulty = [run for run in runs if run["faults"]]
    blocks: list[Block] = []
    for run in faulty:
        users = "".join(f"; {number:,} users {what}" for what, number in run["faulty_users"].items())
        blocks.append(Words(f"{whose(run, runs)}{', '.join(run['faults'])}{users}"))
    rows = [
        [run["run"], row["fault"], row["kind"], row["messages"]]
        for run in faulty
        for row in run["faults_seen"]
    ]
    return (
        [*blocks, together(runs, ["what", "kind", "messages"], rows, "Messages that went wrong")]
        if rows
        else blocks
    )


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
    return list(facts(names(runs), rows)) if rows else []
