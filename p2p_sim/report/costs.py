"""What a run cost, as JSON values and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from p2p_sim.costing import Bill
from p2p_sim.report.layout import table

SHOWN = 12
"""Rounds that text shows, the longest ones."""


def document(bill: Bill) -> dict[str, Any]:
    """Return a bill as JSON values: of each role the sums over its parties, and seconds of one of them."""
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


def as_text(told: Mapping[str, Any]) -> list[str]:
    """Return what ``document`` returned as blocks of text: a table of roles, and one of rounds."""
    head = ["Costs", "parties", "sent", "received", "bytes up", "bytes down", "CPU s", "CPU s each"]
    names = ("role", "parties", "messages_up", "messages_down", "bytes_up", "bytes_down")
    seconds = ("compute_seconds", "compute_seconds_each")
    rows = [[role[name] for name in (*names, *seconds)] for role in told["roles"]]
    work = [
        [role["role"], name, count] for role in told["roles"] for name, count in role["operations"].items()
    ]
    operations = [table(["Operations", "", "times"], work)] if work else []
    return [table(head, rows), *operations, _path(told)]


def _path(told: Mapping[str, Any]) -> str:
    legs = sorted(told["path"], key=lambda leg: leg["seconds"], reverse=True)
    shown = sorted(legs[:SHOWN], key=lambda leg: leg["round"])
    names = ("round", "seconds", "sender", "computing", "sending", "recipient", "receiving")
    head = ["Round", "seconds", "slowest sender", "computing", "sending", "slowest recipient", "receiving"]
    rest = legs[SHOWN:]
    more = [f"and {len(rest):,} shorter rounds, {sum(leg['seconds'] for leg in rest):.4g} s"] if rest else []
    return "\n".join(
        [
            f"Simulated   {told['simulated_seconds']:.4g} s; users at {told['channel']}, servers at "
            f"{told['server_channel']}",
            table(head, [[leg[name] for name in names] for leg in shown]),
            *more,
        ]
    )


def _each(bill: Bill, role: str) -> float:
    return bill.roles[role].compute_seconds / bill.parties[role]
