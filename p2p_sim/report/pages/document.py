"""What a report tells of a run, as JSON values."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2p_sim.core import seeds
from p2p_sim.core.errors import InputError
from p2p_sim.core.sealing import MODELLED
from p2p_sim.report import console, costs, kept, quick, ran
from p2p_sim.report.pages.alike import cautions
from p2p_sim.report.pages.shape import NOTES, misfit
from p2p_sim.run import Run, load
from p2p_sim.trace import query
from p2p_sim.trace.command import without_seed
from p2p_sim.trace.stored import OnDemand

FORMAT = 1
"""Of the JSON: names keep their meaning while it stays the same."""

CONFIDENCE = 0.95
"""Of the intervals of accuracies."""

WITHHELD = "withheld"
"""What stands in place of a seed that is not to be told."""


def documents(paths: Sequence[str], seed: bool = True) -> dict[str, Any]:
    """Return ``{"format": 1, "runs": [...], "cautions": [...]}``, a document each of some run directories, in order.

    ``seed``: whether seeds, and commands that hold them, are told.  Raises InputError for a folder that is no run, for
    one that is named twice, and for a seed that could be guessed and is not to be told.
    """
    places = [Path(os.path.realpath(path)) for path in paths]  # resolve() fails for links in a circle
    for i, place in enumerate(places):
        if place in places[:i]:
            raise InputError(f"run {paths[i]!r}: named twice; leave one out")
    names = [place.name for place in places]
    short = len(set(names)) == len(names)
    runs = [
        document(_whole(path), name if short else str(path), path, seed)
        for path, name in zip(map(Path, paths), names, strict=True)
    ]
    return {"format": FORMAT, "runs": runs, "cautions": cautions(runs)}


def _whole(path: Path) -> Run:
    """Load a run whose messages are those of which its manifest, and so the page, tells."""
    run = load(path)
    if isinstance(run._trace, OnDemand):
        run._trace.stored.verify()
    return run


def document(run: Run, name: str, path: Path, seed: bool = True) -> dict[str, Any]:
    """Return what is told of one run; ``name``: what it is called beside others.

    Raises InputError if its notes were altered.
    """
    notes = run.notes
    bad = misfit(console.plain(notes), NOTES)
    if bad:
        raise InputError(
            f"{str(path / 'run.json')!r} was altered, or another version wrote it ({bad}): run it again"
        )
    if not seed and run.seed is not None:
        seeds.check_secret(run.seed, run.seed_source, "--no-seed")
    told = ran.document(run, _protocol(run), notes.get("defaults", []), path, {})
    told |= {
        "run": name,
        "privacy": notes.get("privacy") or _privacy(run),
        "costs": notes.get("costs") or _costs(run),
        "attacks": _attacks(run, path, seed),
        "messages": _messages(run),
        "versions": run.versions,
        "command": _command(run, seed),
        "intervals": intervals(told["accuracy"]),
        "seed": run.seed if seed or run.seed is None else WITHHELD,
        "data": notes.get("data") or {"name": "a population of your own", "source": "given from Python"},
    }
    del told["peak_memory"], told["directory"]
    plain: dict[str, Any] = console.plain(told)
    return plain


def intervals(accuracy: Mapping[str, Any] | None) -> dict[str, list[float]]:
    """Return Clopper and Pearson's interval of every accuracy, for the draw of the test rows."""
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


def _privacy(run: Run) -> dict[str, Any] | str:
    """Return the privacy table of a run that was not started on the command line, or why there is none."""
    if run.source is None or run.population is None:
        missing = (
            "its protocol is not a shipped one"
            if run.source is None
            else "it was saved without its population"
        )
        return f"not accounted: {missing}"
    try:
        return quick.privacy_of(run.source, run.population, run.faults)
    except InputError as error:
        return f"not accounted: {error}"


def _costs(run: Run) -> dict[str, Any] | str:
    """Return what a run cost that was not started on the command line, or why that is not known."""
    try:
        return costs.document(run.costs())
    except InputError as error:
        return f"not known: {error}"


def _attacks(run: Run, path: Path, seed: bool) -> list[dict[str, Any]]:
    """Return the audits that are kept of a run; raises InputError if their file cannot be read."""
    found = kept.read(path, run)
    hidden = [row | {"seed": WITHHELD, "command": _hidden(row["command"])} for row in found]
    return found if seed else hidden


def _hidden(command: str) -> str:
    return shlex.join(without_seed(shlex.split(command)))


def _messages(run: Run) -> list[dict[str, Any]]:
    """Return what travelled by round and kind, with roles where the protocol is known, or a trace tells of it."""
    kept = run.source is not None or isinstance(run._trace, OnDemand)
    kinds = query.kept_of(run, run.source)[1] if kept else {}
    order = list(kinds)
    rows = []
    for (kind, number), count in run.counts.items():
        if not count.messages:
            continue
        about: dict[str, Any] = {"kind": kind, "round": number}
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
    """Return the command that gives a run again, or Python that does the same."""
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
