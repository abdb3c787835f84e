"""The sections of a report, made from the documents of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from p2p_sim.report import (
    attack_section,
    audit_section,
    diagram,
    figures,
    privacy_section,
    run_summary,
    terminal,
)
from p2p_sim.report.figure_text import Number, percent, seconds
from p2p_sim.report.page_layout import (
    Block,
    CodeBlock,
    Facts,
    Paragraph,
    Picture,
    Section,
    Table,
    facts,
    together,
    whose,
)
from p2p_sim.report.report_content import WITHHELD

Document = Mapping[str, Any]


def travel_section(runs: Sequence[Document]) -> list[Block]:
    """Return the section on the messages of all runs."""
    blocks: list[Block] = [
        Paragraph(f"{whose(run, runs)}{_kept(run)}") for run in runs if run["messages_kept"] is not None
    ]
    apart = len(runs) == 1 and figures.by_round(runs[0])
    caption = f"Bytes on the wire by {'round and ' if apart else ''}message kind."
    blocks += [Picture(figures.traffic(runs), caption), _kinds(runs), _counts(runs)]
    drawn: set[str] = set()
    several = len({run["protocol"] for run in runs}) > 1
    for run in runs:
        every = run["messages"]
        if run["protocol"] in drawn or not every or not all(row["sender"] for row in every):
            continue
        drawn.add(run["protocol"])
        if len(every) <= figures.MAX_BARS:
            name = f"messages-{len(drawn)}" if several else "messages"
            caption = f"{whose(run, runs)}who sent what to whom, round by round."
            blocks.append(Picture(diagram.sequence(run, name), caption))
        else:
            text = f"Who sent what to whom is not drawn: {len(every):,} rounds and kinds are too many here"
            blocks.append(Paragraph(f"{whose(run, runs)}{text}. See p2p-sim trace diagram."))
    return blocks


def _kept(run: Document) -> str:
    """Return how many messages the trace keeps, in words."""
    whole, kept = sum(row["messages"] for row in run["messages"]), run["messages_kept"]
    left = "all of them" if kept == whole else f"{whole - kept:,} were left out"
    return f"Of {whole:,} messages the trace ({run['trace']}) keeps {kept:,}: {left}. See p2p-sim trace show."


def _kinds(runs: Sequence[Document]) -> Table:
    """Return a table of message kinds; equal kinds of several protocols share a row."""
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
    """Return a table of counts by round and kind, or by kind if there are too many rounds."""
    few = sum(len(run["messages"]) for run in runs) <= figures.MAX_BARS
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


_SUMS = "By role, sums over its parties; CPU: measured, and for cryptographic operations what they take here"


def sections(runs: Sequence[Document]) -> list[Section]:
    """Return the sections of a report, without empty ones."""
    made = [
        ("Setting", _setting(runs)),
        ("Privacy", privacy_section.privacy_section(runs)),
        ("Label inference", attack_section.attacks_section(runs)),
        ("Utility", _utility(runs)),
        ("Attacks", audit_section.audits_section(runs)),
        ("Costs", _costs(runs)),
        ("What travelled", travel_section(runs)),
        ("Faults", _faults(runs)),
        ("How to reproduce", _reproduce(runs)),
        ("Versions", _versions(runs)),
    ]
    return [Section(title, blocks) for title, blocks in made if blocks]


def names(runs: Sequence[Document]) -> list[str]:
    """Return the names of the runs."""
    return [run["run"] for run in runs]


def _setting(runs: Sequence[Document]) -> list[Block]:
    rows: list[tuple[str, list[Any]]] = [("protocol", [run["protocol"] for run in runs]), *parameters(runs)]
    rows += [
        ("data", [_data(run["data"]) for run in runs]),
        ("users", [run["users"] for run in runs]),
        *_planted(runs),
        ("clusters", [_clusters(run["clusters"]) for run in runs]),
        ("graph", [None if run["graph"] is None else terminal.graph(run["graph"]) for run in runs]),
        ("backend", [run["backend"] for run in runs]),
        ("cryptography", [run["crypto"] for run in runs]),
        ("trace", [run["trace"] for run in runs]),
    ]
    return list(facts(names(runs), rows))


def _planted(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return one fact on canaries, if a run had some."""
    found = [run.get("canaries") for run in runs]
    return (
        [("canaries", [None if each is None else run_summary.canaries(each) for each in found])]
        if any(found)
        else []
    )


def parameters(runs: Sequence[Document]) -> list[tuple[str, list[Any]]]:
    """Return one fact a parameter; for several protocols, one fact with all parameters."""
    if len({run["protocol"] for run in runs}) > 1:
        every = [[f"{name} = {_parameter(run, name)}" for name in run["parameters"]] for run in runs]
        return [("parameters", [", ".join(texts) for texts in every])]
    known = list(dict.fromkeys(name for run in runs for name in run["parameters"]))
    return [(name, [_parameter(run, name) for run in runs]) for name in known]


def _parameter(run: Document, name: str) -> str | None:
    if name not in run["parameters"]:
        return None
    value = run["parameters"][name]
    shown = {"inf": "∞", "": "none"}.get(value, value) if isinstance(value, str) else value
    return f"{shown}{' (default)' if name in run['defaults'] else ''}"


def _data(data: Mapping[str, Any]) -> str:
    text = f"{data['name']}, {data['source']}"
    if "rows" in data:
        features = f", {data['features']:,} features" if "features" in data else ""
        text += f"; {data['rows']:,} rows{features}; label {data['label']}"
    if "range" in data:
        low, high = data["range"]
        text += f", numbers from {low:g} to {high:g}, which is taken as public; {data.get('clipped', 0):,} clipped"
    if "split_seed" in data:
        text += f"; split seed {data['split_seed']}"
    return text + (f"; 1 means {data['positive']}" if data.get("positive") is not None else "")


def _clusters(document: Mapping[str, Any] | None) -> str | None:
    if document is None:
        return None
    text, least, most = (
        f"{document['count']:,} {document['origin']}",
        document["minimum"],
        document["maximum"],
    )
    return text if least == most else f"{text}, {least:,} to {most:,} users in each"


METRIC_NAMES = ("balanced accuracy", "AUC", "log loss", "calibration error", "recall, rarest class")
_METRICS = (
    "Further metrics on the test rows. Balanced accuracy: the mean of the classes' recalls, which are their shares of "
    "right rows. AUC: the area under the ROC curve, of several classes the mean of each against the rest. Log loss in "
    "nats. Expected calibration error: how far the probability of the predicted class is from the share that is right, "
    "in 15 bins. Last the recall of the class with the fewest test rows."
)


def _utility(runs: Sequence[Document]) -> list[Block]:
    trained = [run for run in runs if run["accuracy"] is not None]
    blocks: list[Block] = []
    if trained:
        rows: list[tuple[str, list[Any]]] = [
            (title, [_share(run, key) for run in trained]) for key, title in figures.ACCURACY.items()
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
        blocks = [Picture(figures.utility(trained), caption), *facts(names(trained), rows, "Test accuracy")]
        metrics = [
            [run["run"], title, *run_summary.metrics_of(run["accuracy"], key)]
            for run in trained
            if run["accuracy"].get("metrics")
            for key, title in figures.ACCURACY.items()
            if run["accuracy"].get(key) is not None
        ]
        blocks += [together(runs, ["trained", *METRIC_NAMES], metrics, _METRICS)] if metrics else []
        notes: dict[str, list[str]] = {}
        for run in trained:
            if run["accuracy"]["note"]:
                notes.setdefault(run["accuracy"]["note"], []).append(run["run"])
        blocks += [
            Paragraph(f"{', '.join(named)}: {note}" if len(runs) > 1 else note)
            for note, named in notes.items()
        ]
    warned: dict[str, list[str]] = {}
    for run in runs:
        for each in run["data"].get("warnings", ()):
            warned.setdefault(each, []).append(run["run"])
    blocks += [
        Paragraph(f"{', '.join(named)}: {each}." if len(runs) > 1 else f"{each[0].upper()}{each[1:]}.")
        for each, named in warned.items()
    ]
    numbers = [run for run in runs if run.get("regression")]
    blocks += _errors(runs, numbers) if numbers else []
    others = [run for run in runs if run["accuracy"] is None and not run.get("regression")]
    blocks += [Paragraph(f"{whose(run, runs)}{_released(run['released'])}") for run in others]
    return blocks


_TRAINED_ON = {"released": "numbers released", "true": "true numbers", "constant": "always their mean"}


def _errors(runs: Sequence[Document], numbers: Sequence[Document]) -> list[Block]:
    """Return the test errors of models of numbers, and what to know before they are read."""
    rows = [
        [run["run"], title, *run_summary.errors_of(run["regression"], key), run["regression"]["test_rows"]]
        for run in numbers
        for key, title in _TRAINED_ON.items()
    ]
    caption = (
        "Test errors, in the label's unit: root mean square and mean absolute error; R² is the share of the variance "
        "that is explained, below 0 for what is worse than the mean. Measured."
    )
    head = ["trained on", *run_summary.ERRORS.values(), "test rows"]
    notes = [
        Paragraph(f"{whose(run, runs)}{run['regression']['note']}")
        for run in numbers
        if run["regression"]["note"]
    ]
    return [together(runs, head, rows, caption), *notes]


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
    positive = "" if share is None else f", {percent(share)} of them {run_summary.positive_word(released)}"
    why = released.get("untrained") or "no model was trained"
    what = "numbers" if released.get("numbers") else "labels"
    return f"{released['labels']:,} {what} were released{positive}; {why}."


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
    times_taken: Facts = [
        ("simulated time", [seconds(run["costs"]["simulated_seconds"]) for run in known]),
        ("users' links", [_link(run["costs"]["channel"]) for run in known]),
        ("servers' links", [_link(run["costs"]["server_channel"]) for run in known]),
        ("this run took", [seconds(sum(run["seconds"].values())) for run in known]),
    ]
    blocks += facts(names(known), times_taken, "Time") if known else []
    work = [
        [run["run"], role["role"], name, times]
        for run in known
        for role in run["costs"]["roles"]
        for name, times in role["operations"].items()
    ]
    if work:
        blocks.append(together(runs, ["role", "operation", "times"], work, "Cryptographic operations"))
    blocks += [
        Paragraph(f"{whose(run, runs)}{run['costs']}") for run in runs if isinstance(run["costs"], str)
    ]
    return blocks


def _link(text: str) -> str:
    return text.replace(",", ", ")


def _faults(runs: Sequence[Document]) -> list[Block]:
    faulty = [run for run in runs if run["faults"]]
    blocks: list[Block] = []
    for run in faulty:
        users = "".join(f"; {number:,} users {what}" for what, number in run["faulty_users"].items())
        blocks.append(Paragraph(f"{whose(run, runs)}{', '.join(run['faults'])}{users}"))
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
        text = f"It gives the digest {run['digest']}." if known else ""
        blocks += [Paragraph(f"{whose(run, runs)}{text}")] if text or len(runs) > 1 else []
        blocks.append(CodeBlock(run["command"]))
    if any(run["seed"] not in (None, WITHHELD) for run in runs):
        blocks.append(
            Paragraph(
                "This page tells the seed. Whoever has it and what was released can undo the noise: keep the page as "
                "the labels are kept, or make it with --no-seed.", True,
            )
        )  # fmt: skip
    if any(run["seed"] == WITHHELD for run in runs):
        blocks.append(
            Paragraph(
                "The seed is withheld: with it the noise could be undone. Its owner can reproduce the run."
            )
        )
    return blocks


def _versions(runs: Sequence[Document]) -> list[Block]:
    packages = list(dict.fromkeys(name for run in runs for name in run["versions"]))
    rows = [(name, [run["versions"].get(name) for run in runs]) for name in packages]
    return list(facts(names(runs), rows)) if rows else []
