"""The privacy table of a run, within two seconds."""

from __future__ import annotations

from typing import Any

from p2p_sim.privacy import promises
from p2p_sim.report import account, console, question


def privacy_of(protocol: Any, population: Any, faults: Any = None) -> dict[str, Any]:
    """Return the privacy table of a run as JSON values: plain channels, delta = min(1e-6, 1 / users^2)."""
    delta = min(account.DELTA, 1 / population.users**2)
    asked = question.Question(protocol, delta, population=population, quick=True, faults=faults)
    table: dict[str, Any] = console.plain(
        account.table_of(asked, promises.of, promises.local_epsilon(protocol))
    )
    return table
