"""Cautions on comparing runs in one report: sentences on what differs between them, and why that matters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2p_sim.report.figure_text import number

Document = Mapping[str, Any]


def cautions(runs: Sequence[Document]) -> list[str]:
    """Return a sentence for each difference that makes the runs hard to compare."""
    checks = [
        ("The data differ", data_text, "accuracies belong to their data and do not compare"),
        ("The numbers of users differ", _users, "of clusters of other sizes, views learn more or less"),
        ("δ differs", _delta, "an ε holds at its own δ"),
        ("The channels differ", _channels, "the wire reads more of plain ones"),
        ("Canaries differ", _canaries, "labels that a coin flipped before the run change accuracy"),
        ("Faults differ", _faults, "lost messages change accuracy, costs and what views learn"),
        ("Code or versions of p2p-sim differ", _code, "figures may come from other methods"),
    ]
    return [sentence for what, of, why in checks if (sentence := _sentence(runs, what, of, why))]


def _sentence(runs: Sequence[Document], what: str, of: Callable[[Document], str | None], why: str) -> str:
    """Return which runs differ and why that matters; empty if all are equal or unknown."""
    groups: dict[str, list[str]] = {}
    for run in runs:
        value = of(run)
        if value is not None:
            groups.setdefault(value, []).append(run["run"])
    if len(groups) < 2:
        return ""
    each = "; ".join(f"{value}: {', '.join(names)}" for value, names in groups.items())
    return f"{what} ({each}): {why}."


def data_text(run: Document) -> str | None:
    """Return the data on which accuracy was measured, in words; None without accuracy."""
    found = run["data"]
    if run["accuracy"] is None:
        return None
    meaning = f", 1 means {found['positive']}" if found.get("positive") is not None else ""
    return f"{found['name']}{meaning}, {run['accuracy']['test_rows']:,} test rows"


def _users(run: Document) -> str | None:
    return None if run["users"] is None else f"{run['users']:,}"


def _canaries(run: Document) -> str:
    return f"{run['canaries']['users']:,}" if run.get("canaries") else "none"


def _delta(run: Document) -> str | None:
    return None if isinstance(run["privacy"], str) else number(run["privacy"]["delta"])


def _channels(run: Document) -> str | None:
    return None if isinstance(run["privacy"], str) else run["privacy"]["channels"]


def _faults(run: Document) -> str:
    return ", ".join(run["faults"]) or "none"


def _code(run: Document) -> str | None:
    known = [run["versions"].get(name) for name in ("p2p-sim", "code")]
    return " ".join(str(value) for value in known if value) or None
