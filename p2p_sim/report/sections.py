"""The sections of a report, made from the documents of its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.privacy.auditing.claims import CONSISTENT
from p2p_sim.report import (
    audit_table,
    diagram,
    figure_text,
    figures,
    privacy_table,
    run_summary,
    terminal,
)
from p2p_sim.report.attacked_labels import guesses_section
from p2p_sim.report.document import WITHHELD
from p2p_sim.report.figure_text import Number, number_text, percent, seconds
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


def attacks_section(runs: Sequence[Document]) -> list[Block]:
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
        blocks += [_attacks_table(run, runs), *_reasons(run, runs), *_limits(run, runs)]
    return blocks


def _attacks_table(run: Document, runs: Sequence[Document]) -> Table:
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


_SUMS = "By role, sums over its parties; CPU: measured, and for cryptographic operations what they take here"


def sections(runs: Sequence[Document]) -> list[Section]:
    """Return the sections of a report, without empty ones."""
    made = [
        ("Setting", _setting(runs)),
        ("Privacy", privacy_section(runs)),
        ("Label inference", guesses_section(runs)),
        ("Utility", _utility(runs)),
        ("Attacks", attacks_section(runs)),
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
        text += f"; {data['rows']:,} rows, {data['features']:,} features; label {data['label']}"
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
