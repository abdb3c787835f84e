"""Counters of a run on a Ray cluster, which Ray's agents offer to Prometheus with the cluster's own."""

from __future__ import annotations

from collections.abc import Callable

from ray.util.metrics import Counter, Histogram

_TAGS = ("protocol", "role")
_SECONDS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def counters(protocol: str) -> Callable[[str, int, float], None]:
    """Return what counts a round: the role that came through it, messages delivered since the last, and its seconds.

    The names are ``p2p_sim_messages_total``, ``p2p_sim_rounds_total`` and ``p2p_sim_round_seconds``; Ray puts
    ``ray_`` before them.
    """
    messages = Counter("p2p_sim_messages_total", "Messages delivered.", _TAGS)
    rounds = Counter("p2p_sim_rounds_total", "Rounds that a role has come through.", _TAGS)
    seconds = Histogram("p2p_sim_round_seconds", "Wall seconds of a round.", _SECONDS, _TAGS)

    def count(role: str, delivered: int, took: float) -> None:
        tags = {"protocol": protocol, "role": role}
        if delivered:
            messages.inc(delivered, tags)
        rounds.inc(1, tags)
        seconds.observe(took, tags)

    return count
