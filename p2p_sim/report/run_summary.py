"""The summary of a run, with its costs: as a JSON document and as text, all of it; ``run_screen`` has the short one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from p2p_sim.core.sealing import REAL
from p2p_sim.core.seeds import FRESH
from p2p_sim.costing import RunCosts
from p2p_sim.report import privacy_table
from p2p_sim.report.terminal import graph, nbytes, parameters, table
from p2p_sim.run import Run

SHOWN = 12
"""The text shows at most so many rounds, the longest ones."""


def costs_document(bill: RunCosts) -> dict[str, Any]:
    """Return the costs of a run as JSON values: for each role the sums over its parties, and the seconds of one."""
    roles = [
        {**asdict(done), "parties": bill.parties[role], "compute_seconds_each": _each(bill, role)}
        for role, done in bill.roles.items()
    ]
    return {
        "channel": bill.channel,
        "server_channel": bill.servers,
        "roles": roles,
        "simulated_seconds": bill.seconds,
        "path": [asdict(leg) | {"seconds": leg.seconds} for leg in bill.path],
        "seconds_an_operation": None if bill.rates is None else asdict(bill.rates),
    }


def costs_text(result: Mapping[str, Any]) -> list[str]:
    """Return the document of ``costs_document`` as blocks of text: tables of roles, operations and rounds."""
    head = ["Costs", "parties", "sent", "received", "bytes up", "bytes down", "CPU s", "CPU s each"]
    names = ("role", "parties", "messages_up", "messages_down", "bytes_up", "bytes_down")
    seconds = ("compute_seconds", "compute_seconds_each")
    rows = [[role[name] for name in (*names, *seconds)] for role in result["roles"]]
    work = [
        [role["role"], name, count] for role in result["roles"] for name, count in role["operations"].items()
    ]
    operations = [table(["Operations", "", "times"], work)] if work else []
    return [table(head, rows), *operations, _path(result)]


def _path(result: Mapping[str, Any]) -> str:
    legs = sorted(result["path"], key=lambda leg: leg["seconds"], reverse=True)
    shown = sorted(legs[:SHOWN], key=lambda leg: leg["round"])
    names = ("round", "seconds", "sender", "computing", "sending", "recipient", "receiving")
    head = ["Round", "seconds", "slowest sender", "computing", "sending", "slowest recipient", "receiving"]
    rest = legs[SHOWN:]
    more = [f"and {len(rest):,} shorter rounds, {sum(leg['seconds'] for leg in rest):.4g} s"] if rest else []
    return "\n".join(
        [
            f"Simulated   {result['simulated_seconds']:.4g} s; users at {result['channel']}, servers at "
            f"{result['server_channel']}",
            table(head, [[leg[name] for name in names] for leg in shown]),
            *more,
        ]
    )


def _each(bill: RunCosts, role: str) -> float:
    return bill.roles[role].compute_seconds / bill.parties[role]


METRICS = {
    "balanced_accuracy": "balanced", "auc": "AUC", "log_loss": "log loss", "calibration_error": "ECE",
    "rarest_recall": "rarest",
}  # fmt: skip
"""Metrics beside accuracy, by their names in the document, with what stands above their columns."""

WEIGHTED = {"average_precision": "AP"}
"""One more, where a class is rare."""

_WIDTH = 12


def document(
    run: Run, name: str, defaults: Sequence[str], directory: Path, peak: dict[str, Any]
) -> dict[str, Any]:
    """Return the summary of a run as JSON values.  ``defaults``: names of parameters that were not given."""
    notes = run.notes
    options = {key: value for key, value in run.parameters.items() if value is not None}
    kinds = [
        {"kind": kind, "messages": c.messages, "travelled": c.travelled, "bytes": c.nbytes}
        for kind, c in run.by_kind().items()
        if run.source is None or kind in run.source.kinds_at_work()
    ]
    return {
        "protocol": name,
        "parameters": options,
        "defaults": list(defaults),
        "seed": run.seed,
        "seed_source": run.seed_source,
        "backend": run.backend,
        "crypto": run.crypto,
        "trace": run.trace,
        "messages_kept": run.kept(),
        "data": notes.get("data"),
        "users": run.users,
        **({"canaries": notes["canaries"]} if notes.get("canaries") else {}),
        "clusters": notes.get("clusters"),
        "graph": notes.get("graph"),
        "messages": kinds,
        "costs": notes.get("costs"),
        **_faults(run),
        "seconds": run.timings,
        "peak_memory": peak,
        "released": notes.get("released"),
        "accuracy": notes.get("accuracy"),
        **({"regression": notes["regression"]} if notes.get("regression") else {}),
        "digest": run.digest,
        "directory": str(directory),
        "privacy": notes.get("privacy"),
    }


def as_text(result: Mapping[str, Any]) -> str:
    """Return a run's document as text, with every table, note and source."""
    spent = [
        entry("Seconds", _seconds(result["seconds"])),
        entry("Peak memory", peak_text(result["peak_memory"])),
    ]
    blocks = [
        [f"{result['protocol']}: {parameters(result)}; {how_text(result)}"],
        setting_lines(result),
        [_messages(result["messages"])],
        *([block] for block in costs_text(result["costs"])),
        [*faults_lines(result), *_faults_table(result)],
        spent,
        _released(result),
        [privacy_table.as_text(result["privacy"])],
        *_guessed(result),
        kept_lines(result),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def how_text(result: Mapping[str, Any]) -> str:
    """Return seed and backend, and whether cryptography was carried out."""
    sealed = "; sealed for real, under keys that follow from the seed" if result["crypto"] == REAL else ""
    return f"seed {_seed(result)}, backend {result['backend']}{sealed}"


def setting_lines(result: Mapping[str, Any]) -> list[str]:
    """Return lines on the data, the users and how they are grouped."""
    return [
        entry("Data", _data(result)),
        entry("Users", _users(result)),
        *([entry("Canaries", canaries(result["canaries"]))] if result.get("canaries") else []),
        entry("Clusters", _clusters(result["clusters"])),
        *([entry("Graph", graph(result["graph"]))] if result.get("graph") else []),
    ]


def kept_lines(result: Mapping[str, Any]) -> list[str]:
    """Return lines on what is left of the run, and where."""
    return [
        *([] if result["messages_kept"] is None else [entry("Trace", _trace(result))]),
        entry("Digest", result["digest"] or "not asked for"),
        entry("Saved in", result["directory"]),
    ]


def _guessed(result: Mapping[str, Any]) -> list[list[str]]:
    """Return what attackers guess, a block a view; what attacks need is not loaded where none was asked for."""
    if "label_inference" not in result:
        return []
    from p2p_sim.report import attack_table

    return [[attack_table.view_text(each)] for each in result["label_inference"]]


def _seed(result: Mapping[str, Any]) -> str:
    return f"{result['seed']} (a fresh one)" if result["seed_source"] == FRESH else f"{result['seed']}"


def _trace(result: Mapping[str, Any]) -> str:
    whole, kept = sum(row["messages"] for row in result["messages"]), result["messages_kept"]
    left = "nothing is left out" if kept == whole else f"{whole - kept:,} are left out"
    return f"{result['trace']}: {kept:,} of {whole:,} messages kept; {left}"


def entry(name: str, text: str) -> str:
    """Return a line with a name at its left."""
    return f"{name:<{_WIDTH}}{text}"


def _data(result: Mapping[str, Any]) -> str:
    data = result["data"]
    if "label" not in data:
        return _named(data)
    classes = data["classes"]
    if "range" in data:
        meaning = _numbers(data)
    elif data["positive"] is None:
        shown = ", ".join(classes[:12]) + (f" and {len(classes) - 12} more" if len(classes) > 12 else "")
        meaning = f"{len(classes)} classes, {shown}"
    else:
        meaning = f"1 means {data['positive']}, 0 means {classes[0]}"
    size = f"{data['rows']:,} rows" + (f", {data['features']:,} features" if "features" in data else "")
    size += f" ({data['left_out']:,} rows with missing values left out)" if data.get("left_out") else ""
    label = f"label {data['label']}: {meaning}{_classes_from(data)}"
    warned = "".join(f"\n{'':{_WIDTH}}warning: {each}" for each in data.get("warnings", ()))
    return f"{_named(data)}; {size}\n{'':{_WIDTH}}{label}{warned}"


def _named(data: Mapping[str, Any]) -> str:
    """Return the name and where it is from; a file in the current folder is both."""
    return ", ".join(dict.fromkeys([data["name"], data["source"]]))


def _numbers(data: Mapping[str, Any]) -> str:
    """Say in which public range numbers are taken, to how many they are rounded, and how many were clipped."""
    low, high = data["range"]
    clipped = (
        f"; {data['clipped']:,} of {data['rows']:,} lie outside and were clipped" if data["clipped"] else ""
    )
    return (
        f"numbers from {low:g} to {high:g}, which is taken as public, rounded to {len(data['classes'])} of them"
        f"{clipped}"
    )


def _classes_from(data: Mapping[str, Any]) -> str:
    """Say where the list of classes comes from, which every promise takes as public."""
    where = {"inferred": "taken from the labels, and assumed to be public", "declared": "declared"}.get(
        data.get("classes_from", "")
    )
    return "" if where is None else f"\n{'':{_WIDTH}}classes: {where}"


def _users(result: Mapping[str, Any]) -> str:
    data, users = result["data"], f"{result['users']:,}"
    if "test_rows" not in data:
        return users
    split = f"; split seed {data['split_seed']}" if "split_seed" in data else ""
    return f"{users}, one row each; {data['test_rows']:,} further rows test the model ({data['test_rows_are']}{split})"


def canaries(planted: Mapping[str, Any]) -> str:
    """Return how many labels a coin flipped before the run, so that these are not the data that were given."""
    flipped = f"a coin flipped the labels of {planted['flipped']:,} of them before the run"
    return f"{planted['users']:,} of the users; {flipped}"


def _clusters(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return "none"
    sizes = f"users in each: minimum {result['minimum']:,}, median {result['median']:,g}, maximum {result['maximum']:,}"
    return f"{result['count']:,} {result['origin']}; {sizes}"


def _messages(kinds: Sequence[Mapping[str, Any]]) -> str:
    rows = [[k["kind"], k["messages"], k["travelled"], k["bytes"]] for k in kinds]
    if len(rows) > 1:
        rows.append(["in all", *(sum(row[i] for row in rows) for i in (1, 2, 3))])
    return table(["Messages", "delivered", "travelled", "bytes"], rows)


def _faults(run: Run) -> dict[str, Any]:
    """Return the injected faults, the affected messages by fault and kind, and the number of faulty users."""
    seen: dict[tuple[str, str], int] = {}
    for (what, kind, _), number in run.faults_seen.items():
        seen[what, kind] = seen.get((what, kind), 0) + number
    return {
        "faults": [] if run.faults is None else run.faults.texts(),
        "faults_seen": [{"fault": f, "kind": k, "messages": number} for (f, k), number in seen.items()],
        "faulty_users": {what: len(users) for what, users in run.faulty.items()},
    }


def faults_lines(result: Mapping[str, Any]) -> list[str]:
    """Return a line on the injected faults, and how many users they struck; none without faults."""
    if not result["faults"]:
        return []
    users = "".join(f"; {number:,} users {what}" for what, number in result["faulty_users"].items())
    return [entry("Faults", ", ".join(result["faults"]) + users)]


def _faults_table(result: Mapping[str, Any]) -> list[str]:
    rows: dict[str, dict[str, int]] = {}
    for row in result["faults_seen"]:
        rows.setdefault(row["fault"], {})[row["kind"]] = row["messages"]
    kinds = [row["kind"] for row in result["messages"]]
    cells = [[what, *(found.get(kind, 0) for kind in kinds)] for what, found in rows.items()]
    return [table(["Messages", *kinds], cells)] if cells else []


def _seconds(seconds: Mapping[str, float]) -> str:
    parts = [f"{phase} {value:.2f}" for phase, value in seconds.items()]
    return f"{', '.join(parts)}; in all {sum(seconds.values()):.2f}"


def peak_text(peak: Mapping[str, Any]) -> str:
    """Return the most memory that was in use, and by whom."""
    size = "not known here" if peak["bytes"] is None else nbytes(peak["bytes"])
    return f"{size} ({peak['covers']})"


def _released(result: Mapping[str, Any]) -> list[str]:
    accuracy = result["accuracy"]
    if result.get("regression"):
        return errors_lines(result["regression"])
    if accuracy is not None:
        metrics = METRICS | (WEIGHTED if result["data"].get("utility") == "auc" else {})
        head = [f"Test accuracy, {accuracy['model']}", "", *metrics.values()]
        text = table(head, accuracy_rows(accuracy, metrics))
        return [text, f"note: {accuracy['note']}"] if accuracy["note"] else [text]
    return released_text(result["released"])


def accuracy_rows(accuracy: Mapping[str, Any], metrics: Mapping[str, str] = METRICS) -> list[list[str]]:
    """Return a row for each model that was tested: how it was trained, its accuracy, and further metrics."""
    released_as = f"{accuracy['trained_on']:,} {accuracy.get('what', 'labels')} released"
    named = [
        (f"trained on the {released_as}", "accuracy_private"),
        (f"the same, {accuracy.get('correction', '')}", "accuracy_corrected"),
        (f"trained on the {accuracy['of']:,} true labels", "accuracy_true"),
        ("always the true labels' majority", "baseline"),
    ]
    return [
        [name, _percent(accuracy[key]), *metrics_of(accuracy, key, metrics)]
        for name, key in named
        if accuracy.get(key) is not None
    ]


def released_text(released: Mapping[str, Any] | None) -> list[str]:
    """Return the lines that say what the learner has, and why no model was trained on it."""
    if released is None:
        return [entry("Released", "no labels: the learner of this protocol returns something else")]
    share = released["positive_share"]
    positive = "" if share is None else f", {_percent(share)} of them {positive_word(released)}"
    bags = f" in {released['bags']:,} bags" if "bags" in released else ""
    what = "numbers" if released.get("numbers") else "labels"
    line = entry("Released", f"{released['labels']:,} {what}{bags}{positive}")
    return [line, *(f"note: {released[why]}" for why in ("refused", "untrained") if released.get(why))]


def errors_lines(found: Mapping[str, Any]) -> list[str]:
    """Return the test errors of models of numbers, as a table and a note."""
    named = [
        (f"trained on the {found['trained_on']:,} numbers released", "released"),
        (f"trained on the {found['of']:,} true numbers", "true"),
        ("always the true numbers' mean", "constant"),
    ]
    rows = [[name, *errors_of(found, key)] for name, key in named]
    text = table([f"Test errors, {found['model']}", *ERRORS.values()], rows)
    return [text, f"note: {found['note']}"] if found["note"] else [text]


def errors_of(regression: Mapping[str, Any], key: str) -> list[str]:
    """Return the errors of the model of numbers ``key`` as text, "-" where one is not defined."""
    errors = regression["errors"][key]
    shown = {"r2": "{:.3f}".format}
    return [
        "-" if errors[name] is None else shown.get(name, "{:.4g}".format)(errors[name]) for name in ERRORS
    ]


ERRORS = {"rmse": "RMSE", "mae": "MAE", "r2": "R²"}
"""Errors of models of numbers, by their names in the document, with what stands above their columns."""


def positive_word(released: Mapping[str, Any]) -> str:
    """Return what the labels are called whose share a run's notes tell."""
    return "not 0" if "label_values" in released else "positive"


def metrics_of(accuracy: Mapping[str, Any], key: str, metrics: Mapping[str, str] = METRICS) -> list[str]:
    """Return the metrics of the model with the accuracy ``key`` as text, "-" where there is none."""
    found = (accuracy.get("metrics") or {}).get(key) or {}
    shown = {"balanced_accuracy": _percent, "rarest_recall": _percent}
    return [
        "-" if found.get(name) is None else shown.get(name, "{:.3f}".format)(found[name]) for name in metrics
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
