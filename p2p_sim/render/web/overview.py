"""What the web page shows of a run before any messages: its settings, rounds, roles, and views to choose from."""

from __future__ import annotations

from typing import Any

from p2p_sim.core.message import USER
from p2p_sim.render import text_labels
from p2p_sim.render.known_run import KnownRun
from p2p_sim.rundir.run_record import RunRecord
from p2p_sim.trace import query

EVERYBODY = ""
"""The name of the view that sees everything."""

FOCUS = "user:*"
"""Stands for the user in focus, in the name of a view."""


def overview(run: RunRecord, name: str, info: KnownRun) -> dict[str, Any]:
    """Return the run's settings, rounds, roles and views as JSON values; the population is not read."""
    people = query.census(run)
    return {
        "name": text_labels.clean(name, 200),
        "protocol": run.protocol.partition(":")[2],
        "parameters": {key: str(value) for key, value in run.parameters.items() if value is not None},
        "seed": None if run.seed is None else str(run.seed),  # JavaScript has no whole numbers of 64 bits
        "backend": run.backend, "trace": run.trace, "digest": run.digest,
        "users": run.users if people is None else people.users,
        "crypto": run.crypto, "faults": [] if run.faults is None else run.faults.texts(),
        "kinds": _kinds(info), "rounds": _rounds(info), "roles": _roles(info),
        "faults_seen": [
            {"what": what, "kind": kind, "round": round, "messages": count}
            for (what, kind, round), count in run.faults_seen.items()
        ],
        "viewpoints": _viewpoints(info), "main": info.main, "cut": info.cut,
    }  # fmt: skip


def _kinds(info: KnownRun) -> dict[str, Any]:
    return {
        kind: {
            "text": message.text, "sealed_for": message.sealed_for, "layers": list(message.layers),
            "fields": list(message.fields),
        }
        for kind, message in info.kinds.items()
        if kind in info.at_work
    }  # fmt: skip


def _rounds(info: KnownRun) -> list[dict[str, Any]]:
    """Return counts of each round and kind: ``messages`` delivered, ``travelled``, ``nbytes`` on the wire."""
    order = list(info.kinds)
    rows = [
        {"round": round, "kind": kind, "messages": c.messages, "travelled": c.travelled, "nbytes": c.nbytes}
        for (kind, round), c in info.counts.items()
        if round and (c.messages or c.travelled)
    ]
    return sorted(rows, key=lambda row: (row["round"], order.index(str(row["kind"]))))


def _roles(info: KnownRun) -> list[dict[str, Any]]:
    """Return what travelled from and to each role, including lost and duplicate messages."""
    found = {
        role: {"role": role, "sent": 0, "sent_bytes": 0, "received": 0, "received_bytes": 0}
        for role in info.roles()
    }
    for (kind, _), count in info.counts.items():
        for role, way in ((info.kinds[kind].sender, "sent"), (info.kinds[kind].recipient, "received")):
            if role in found:  # a server that does nothing has no row
                row: dict[str, Any] = found[role]
                row[way] += count.travelled
                row[f"{way}_bytes"] += count.nbytes
    return list(found.values())


def _viewpoints(info: KnownRun) -> list[dict[str, str]]:
    """Return the views to choose from; others can be typed."""
    servers = info.servers
    found = {EVERYBODY: "everything", **{role: role for role in servers}}
    if len(servers) > 1:
        found["+".join(servers)] = "all servers together"
    found[FOCUS] = "the user in focus"
    if servers:
        found[f"{info.main}+{FOCUS}"] = f"{info.main} and the user in focus"
    found["wire"] = "the wire"
    return [{"view": view, "title": title} for view, title in found.items()]


def in_focus(view: str, user: int | None) -> str:
    """Return a view's name with the id of the user in focus in place of ``FOCUS``."""
    return view if user is None else view.replace(FOCUS, f"{USER}:{user}")
