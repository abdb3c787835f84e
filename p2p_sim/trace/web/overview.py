"""What the page says of a run as a whole: its setting, rounds, kinds, roles, and who can be looked through."""

from __future__ import annotations

from typing import Any

from p2p_sim.core.ledger import Count
from p2p_sim.core.message import USER, Message

EVERYBODY = ""
"""The viewpoint of somebody who sees all."""


def overview(run: Any, name: str, program: Any) -> dict[str, Any]:
    """Return the run's setting, its rounds, its roles, clusters and viewpoints, as JSON values."""
    kinds: dict[str, Message] = program.messages()
    users = run.population.users if run.population is not None else run.users
    return {
        "name": name,
        "protocol": run.protocol.partition(":")[2],
        "parameters": {key: str(value) for key, value in run.parameters.items() if value is not None},
        "seed": run.seed, "backend": run.backend, "trace": run.trace, "digest": run.digest, "users": users,
        "crypto": run.crypto, "faults": [] if run.faults is None else run.faults.texts(),
        "kinds": {kind: _told(message, program.vector_lengths()) for kind, message in kinds.items()},
        "rounds": _rounds(run.counts, list(kinds)),
        "roles": _roles(run.counts, kinds, program.roles()),
        "clusters": _clusters(run.population),
        "viewpoints": _viewpoints(program),
    }  # fmt: skip


def _told(message: Message, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "sender": message.sender, "recipient": message.recipient, "text": message.text,
        "sealed_for": message.sealed_for, "layers": list(message.layers), "fields": list(message.fields),
        "nbytes": message.nbytes(sizes),
    }  # fmt: skip


def _rounds(counts: dict[tuple[str, int], Count], order: list[str]) -> list[dict[str, Any]]:
    rows = [
        {"round": round, "kind": kind, "messages": c.messages, "travelled": c.travelled, "nbytes": c.nbytes}
        for (kind, round), c in counts.items()
        if round and (c.messages or c.travelled)
    ]
    return sorted(rows, key=lambda row: (row["round"], order.index(str(row["kind"]))))


def _roles(
    counts: dict[tuple[str, int], Count], kinds: dict[str, Message], roles: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Return what each role sent and received on the wire."""
    found = {
        role: {"role": role, "sent": 0, "sent_bytes": 0, "received": 0, "received_bytes": 0} for role in roles
    }
    for (kind, _), count in counts.items():
        for role, way in ((kinds[kind].sender, "sent"), (kinds[kind].recipient, "received")):
            row: dict[str, Any] = found[role]
            row[way] += count.travelled
            row[f"{way}_bytes"] += count.nbytes
    return list(found.values())


def _clusters(people: Any) -> dict[str, Any] | None:
    """Return how many clusters there are, of how many users, and the first of them; None if that was not kept."""
    if people is None:
        return None
    if people.clusters is None:
        return {"count": 1, "least": people.users, "most": people.users, "first": 0}
    sizes = people.sizes
    return {
        "count": len(sizes), "least": int(sizes.min()), "most": int(sizes.max()),
        "first": 0 if people.clusters.labels is None else int(people.clusters.labels[0]),
    }  # fmt: skip


def _viewpoints(program: Any) -> list[dict[str, str]]:
    servers = [role for role in program.roles() if role != USER]
    idle: tuple[str, ...] = getattr(program, "idle_roles", tuple)()
    found = [{"view": EVERYBODY, "title": "everything"}]
    found += [{"view": role, "title": role} for role in servers if role not in idle]
    found += [{"view": "user:*", "title": "the user in focus"}]
    if "learner" in servers:
        found.append({"view": "learner+user:*", "title": "learner and the user in focus"})
    return [*found, {"view": "wire", "title": "wire"}]
