"""What a run computed once, whoever holds it: a ``Run``, or a run directory that is read when it is asked."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from p2p_sim.core.faults import Faults
from p2p_sim.core.ledger import Count, Most
from p2p_sim.core.population import Population
from p2p_sim.core.protocol import Protocol

if TYPE_CHECKING:
    from p2p_sim.rundir.trace_reader import Source

Columns = dict[str, npt.NDArray[Any]]


class RunRecord(typing.Protocol):
    """The record of a run; ``p2p_sim.run.Run`` says what each part means.

    Of a run that was cut off only ``protocol``, ``trace``, ``users`` and the messages are known; the rest is empty.
    """

    protocol: str
    parameters: dict[str, Any]
    seed: int | None
    seed_source: str | None
    backend: str
    trace: str
    digest: str | None
    counts: dict[tuple[str, int], Count]
    timings: dict[str, float]
    source: Protocol | None
    notes: dict[str, Any]
    faults: Faults | None
    faults_seen: dict[tuple[str, str, int], int]
    versions: dict[str, str]
    crypto: str
    users: int | None
    compute: dict[tuple[str, int], float]
    work: dict[tuple[str, int, str], int]
    most: Most | None

    @property
    def outputs(self) -> Mapping[str, Columns]:
        """What each role returned, columns by role."""

    @property
    def faulty(self) -> dict[str, npt.NDArray[Any]]:
        """Ids of the users who "dropped" out and who "lied", ascending."""

    @property
    def canaries(self) -> Columns:
        """Users whose label a coin might flip before the run, as columns; empty for a run without."""

    @property
    def population(self) -> Population | None:
        """Who took part; None if that was not kept."""

    @property
    def kept_messages(self) -> Mapping[str, Columns]:
        """The messages of the trace by kind: in memory, or an ``OnDemand`` over a folder."""

    def messages_source(self, protocol: Protocol | None = None) -> Source:
        """Return where the messages are read from: ``Kept``, in memory, or ``Stored``, in a folder.

        ``protocol``: the run's, if it is not a shipped one.  Raises InputError if messages in memory need it.
        """
