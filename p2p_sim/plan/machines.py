"""The machines of a run: this one, or those of a Ray cluster."""

from __future__ import annotations

from dataclasses import dataclass

from p2p_sim.backends.settings import Settings
from p2p_sim.core.threads import cores
from p2p_sim.network.room import memory


@dataclass(frozen=True)
class Machine:
    """A machine: its name, processors, bytes of memory that a run may have, and whether the caller runs there."""

    name: str
    cpus: int
    memory: int
    here: bool = True


def machines(settings: Settings) -> list[Machine]:
    """Return the machines on which a run with some settings takes place; joins a Ray cluster to ask for them.

    Raises InputError if no Ray answers at the address.
    """
    if settings.address is None:
        return [Machine("this machine", cores(), memory())]
    from p2p_sim.backends import cluster_nodes

    return [Machine(*node) for node in cluster_nodes.nodes(settings.address)]
