"""What is accounted of a run, within two seconds."""

from __future__ import annotations

from typing import Any

from p2p_sim.privacy import promises
from p2p_sim.report import account, console
from p2p_sim.report.question import Question


def table_of(
    protocol: Any, population: Any, faults: Any = None, only: tuple[str, ...] = (), channels: str = "plain"
) -> dict[str, Any]:
    """Return the privacy table of a run's users: delta = min(1e-6, 1 / users^2).

    ``only``: names of views, all rows if empty.  Raises InputError as ``Question`` does.
    """
    delta = min(account.DELTA, 1 / population.users**2)
    asked = Question(
        protocol, delta, population=population, channels=channels, quick=True, only=only, faults=faults
    )
    return account.table_of(asked, promises.of, promises.local_epsilon(protocol))


def privacy_of(protocol: Any, population: Any, faults: Any = None) -> dict[str, Any]:
    """Return the privacy table of a run as JSON values, plain channels."""
    table: dict[str, Any] = console.plain(table_of(protocol, population, faults))
    return table
