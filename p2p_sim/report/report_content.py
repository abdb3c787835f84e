"""The content of a report as JSON values: a document for each run, and cautions on comparing them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.core.sealing import MODELLED
from p2p_sim.report import privacy_table, run_summary, several_runs, terminal
from p2p_sim.report.cautions import Document, cautions
from p2p_sim.report.delta import DELTA
from p2p_sim.report.kept_file import ATTACKS, AUDITS
from p2p_sim.run import Run, load
from p2p_sim.rundir.run_json import on_command_line, without_seed
from p2p_sim.rundir.trace_reader import stored_of
from p2p_sim.trace import query

FORMAT = 1
"""Version of the JSON format: names keep their meaning while it stays the same."""

CONFIDENCE = 0.95
"""Confidence of the intervals of accuracies."""

WITHHELD = "withheld"
"""Stands in place of a seed that is left out."""


def documents(paths: Sequence[str], seed: bool = True, delta: float | None = None) -> dict[str, Any]:
    """Return ``{"format": 1, "runs": [...], "cautions": [...], "together": ...}`` of some run directories, in order.

    ``seed``: whether to include seeds, also in commands.  ``delta``: account again, at
    this one.  Raises InputError for a folder that is no run directory, for
    one that is named twice, and for a seed that is left out but could be guessed.
    """
    places = [Path(os.path.realpath(path)) for path in paths]  # resolve() fails for links in a circle
    for i, place in enumerate(places):
        if place in places[:i]:
            raise InputError(f"run {paths[i]!r}: named twice; leave one out")
    names = [place.name for place in places]
    short = len(set(names)) == len(names)
    loaded = [_load(Path(path)) for path in paths]
    runs = [
        document(run, name if short else path, Path(path), seed, delta)
        for run, path, name in zip(loaded, paths, names, strict=True)
    ]
    joint = several_runs.together(loaded, _joint_delta(runs) if delta is None else delta)
    found = {"format": FORMAT, "runs": runs, "cautions": cautions(runs)}
    return found if joint is None else found | {"together": terminal.plain(joint)}


def _joint_delta(runs: Sequence[Document]) -> float:
    """Return the smallest delta of some runs' tables."""
    found = [run["privacy"]["delta"] for run in runs if not isinstance(run["privacy"], str)]
    return min(found, default=DELTA)


def _load(path: Path) -> Run:
    """Load a run and verify that its messages are those of its manifest."""
    run = load(path)
    stored = stored_of(run)
    if stored is not None:
        stored.verify()
    return run


def document(
    run: Run, name: str, path: Path, seed: bool = True, delta: float | None = None
) -> dict[str, Any]:
    """Return the document of one run; ``name``: its name in the report; ``delta``: see ``documents``.

    Raises InputError if its notes were altered, and for a seed that is left out but could be guessed.
    """
    from p2p_sim.report import notes_declaration

    notes = run.notes
    wrong = notes_declaration.mismatch(terminal.plain(notes))
    if wrong is not None:
        raise InputError(
            f"{str(path / 'run.json')!r} was altered, or another version wrote it ({wrong}): run it again"
        )
    if not seed:
        seeds.check_secret(run.seed, run.seed_source, "--no-seed")
    result = run_summary.document(run, _protocol(run), notes.get("defaults", []), path, {})
    result |= {
        "run": name,
        "privacy": (notes.get("privacy") if delta is None else None) or _privacy(run, delta),
        "costs": notes.get("costs") or _costs(run),
        "attacks": _kept(AUDITS.read(path, run), seed),
        "messages": _messages(run),
        "versions": run.versions,
        "command": _command(run, seed),
        "intervals": intervals(result["accuracy"]),
        "seed": run.seed if seed or run.seed is None else WITHHELD,
        "data": notes.get("data") or {"name": "a population of your own", "source": "given from Python"},
    }
    if guesses := _kept(ATTACKS.read(path, run), seed):
        result["label_inference"] = guesses
    del result["peak_memory"], result["directory"]
    plain: dict[str, Any] = terminal.plain(result)
    return plain


def intervals(accuracy: Mapping[str, Any] | None) -> dict[str, list[float]]:
    """Return the Clopper-Pearson interval of every accuracy, for the draw of the test rows."""
    from scipy.special import betaincinv

    rows = 0 if accuracy is None else accuracy["test_rows"]
    found: dict[str, list[float]] = {}
    for key in ("accuracy_private", "accuracy_corrected", "accuracy_true"):
        share = (accuracy or {}).get(key)
        if share is not None and rows:
            right, tail = round(share * rows), (1 - CONFIDENCE) / 2
            low = float(betaincinv(right, rows - right + 1, tail)) if right else 0.0
            high = float(betaincinv(right + 1, rows - right, 1 - tail)) if right < rows else 1.0
            found[key] = [low, high]
    return found


def _protocol(run: Run) -> str:
    """Return the protocol's name on the command line, or its class."""
    return str(run.source.command_name()) if run.source is not None else run.protocol


def _privacy(run: Run, delta: float | None) -> dict[str, Any] | str:
    """Return the privacy table of a run at a delta, by default the usual one, or why there is none."""
    if run.source is None or run.population is None:
        missing = (
            f"its protocol is not a shipped one{on_command_line(run)}"
            if run.source is None
            else "it was saved without its population"
        )
        return f"not accounted: {missing}"
    try:
        return privacy_table.privacy_of(
            run.source, run.population, run.faults, DELTA if delta is None else delta
        )
    except InputError as error:
        return f"not accounted: {error}"


def _costs(run: Run) -> dict[str, Any] | str:
    """Return the costs of a run made in Python, or why they are not known."""
    try:
        return run_summary.costs_document(run.costs())
    except InputError as error:
        return f"not known: {error}"


def _kept(found: list[dict[str, Any]], seed: bool) -> list[dict[str, Any]]:
    """Return saved audits or attacks, without their seeds unless these are wanted."""
    return (
        found
        if seed
        else [row | {"seed": WITHHELD, "command": _without_seed(row["command"])} for row in found]
    )


def _without_seed(command: str) -> str:
    return shlex.join(without_seed(shlex.split(command)))


def _messages(run: Run) -> list[dict[str, Any]]:
    """Return message counts by round and kind, with roles if the protocol or a trace gives them."""
    kept = run.source is not None or stored_of(run) is not None
    kinds = query.recorded_trace(run, run.source)[1] if kept else {}
    order = list(kinds)
    rows = []
    for (kind, round), count in run.counts.items():
        if not count.messages:
            continue
        about: dict[str, Any] = {"kind": kind, "round": round}
        about |= {"sender": None, "recipient": None, "sealed_for": None, "text": ""}
        if kind in kinds:
            about |= {
                name: getattr(kinds[kind], name) for name in ("sender", "recipient", "sealed_for", "text")
            }
        rows.append(about | {"messages": count.messages, "travelled": count.travelled, "bytes": count.nbytes})
    return sorted(
        rows,
        key=lambda row: (row["round"], order.index(row["kind"]) if row["kind"] in kinds else 0, row["kind"]),
    )


def _command(run: Run, seed: bool) -> str:
    """Return the command, or the Python code, that repeats a run."""
    words = run.notes.get("command")
    if words:
        return shlex.join(words if seed else without_seed(words))
    module, _, name = run.protocol.partition(":")
    given = ", ".join(f"{key}={value!r}" for key, value in run.parameters.items())
    number = repr(run.seed) if seed and run.seed is not None else "..."
    faults = f", faults={run.faults.texts()!r}" if run.faults is not None else ""
    sealed = f", crypto={run.crypto!r}" if run.crypto != MODELLED else ""
    return (
        f"import p2p_sim\nfrom {module} import {name}\n\n"
        f"run = p2p_sim.run({name}({given}), population, seed={number}{faults}{sealed})"
    )
