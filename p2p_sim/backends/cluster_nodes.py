"""The nodes of a Ray cluster, as Ray counts them: ``plan`` asks, and Ray is imported only in this package."""

from __future__ import annotations

from p2p_sim.backends.ray_session import STORE_LIMITS, session

import ray  # isort: skip (the session sets what Ray reads on import)


def nodes(address: str) -> list[tuple[str, int, int, bool]]:
    """Return name, processors, bytes of memory of each live node of a cluster, and whether it is this machine.

    Raises InputError if no Ray answers at the address.
    """
    with session(address, 1, STORE_LIMITS[0]):
        here = ray.util.get_node_ip_address()
        found = []
        for node in ray.nodes():
            if node["Alive"]:
                has = node["Resources"]
                name = str(node["NodeManagerAddress"])
                found.append((name, int(has.get("CPU", 0)), int(has.get("memory", 0)), name == here))
        return found
