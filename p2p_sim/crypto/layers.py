"""Layers of sealing for a chain of servers: each peels one layer and sees neither the layers within nor the sender.

Source: RFC 9180 for a layer; Chaum 1981 for the chain.
"""

from __future__ import annotations

from collections.abc import Sequence

from p2p_sim.core.errors import InputError
from p2p_sim.core.message import SEAL_BYTES
from p2p_sim.crypto.octets import Infos, Octets, Opened, Some
from p2p_sim.crypto.seal import open_all, seal_all


def wrap(
    publics: Sequence[Some], rows: Octets, infos: Sequence[Infos], *, workers: int | None = None
) -> Octets:
    """Seal rows (n, k) once a server, the last of the path innermost; returns (n, k + 48 m) for m servers.

    ``publics``: the servers' public keys in the order in which the messages travel; ``infos``: the context of each
    server's layer, in the same order.  Raises InputError for an empty path or another number of contexts.
    """
    if not publics or len(publics) != len(infos):
        raise InputError(
            f"a path of {len(publics)} servers with {len(infos)} contexts: "
            "needs at least one server, and one context a server"
        )
    for public, info in zip(reversed(publics), reversed(infos), strict=True):
        rows = seal_all(public, rows, info, workers=workers)
    return rows


def peel(private: Some, rows: Octets, infos: Infos, *, workers: int | None = None) -> Opened:
    """Take off the outermost layer with its server's private key; rows that do not open are counted, as in open_all."""
    return open_all(private, rows, infos, workers=workers)


def layered_bytes(plain: int, servers: int) -> int:
    """Return the bytes of a message of ``plain`` bytes under the layers of ``servers`` servers."""
    return plain + SEAL_BYTES * servers
