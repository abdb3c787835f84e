"""How fast a run goes, round by round: users and messages a second, the slowest shard; for people and programs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from p2p_sim.core.engine import Progress
from p2p_sim.core.message import USER
from p2p_sim.core.site import SiteReport

Log = Callable[[str, Mapping[str, Any]], None]
"""Called with the name of an event and its details, JSON values."""


@dataclass
class Speeds:
    """Takes what the sites report of each round; tells it to ``progress``, a ``log`` and ``metrics``.

    ``users``: how many there are; ``names``: of the sites, for people.
    """

    users: int
    names: Sequence[str]
    progress: Progress | None = None
    log: Log | None = None
    metrics: Callable[[str, int, float], None] | None = None
    _last: float = field(default_factory=time.perf_counter)
    _delivered: int = 0
    _messages: dict[int, int] = field(default_factory=dict)
    _said: str = ""

    def tell(self, label: str, done: int, total: int) -> None:
        """Report progress, with the speed of the round before."""
        if self.progress is not None:
            self.progress(f"{label}{self._said}" if label else "", done, total)

    def round(self, role: str, number: int, sites: Sequence[int], reports: Sequence[SiteReport]) -> None:
        """Take down that a role has come through a round at some sites."""
        now = time.perf_counter()
        seconds, self._last = max(now - self._last, 1e-9), now
        self._messages |= {site: report.delivered for site, report in zip(sites, reports, strict=True)}
        delivered = sum(self._messages.values())
        fresh, self._delivered = delivered - self._delivered, delivered
        slow = max(range(len(reports)), key=lambda place: reports[place].seconds)
        name, longest = self.names[sites[slow]], reports[slow].seconds
        users = self.users if role == USER else 0
        rates = [
            f"{rate(count / seconds)} {what}"
            for count, what in ((users, "users"), (fresh, "messages"))
            if count
        ]
        slowest = f"; slowest: {name}, {longest:.3g} s" if len(reports) > 1 else ""
        self._said = f" (before: {', '.join(rates)}{slowest})" if rates else self._said
        if self.metrics is not None:
            self.metrics(role, fresh, seconds)
        if self.log is not None:
            times = sorted(report.seconds for report in reports)
            details = {
                "role": role, "round": number, "seconds": seconds, "users": users, "messages": fresh,
                "users_per_second": users / seconds, "messages_per_second": fresh / seconds,
                "sites": len(reports), "slowest": name, "slowest_seconds": longest,
                "median_seconds": times[len(times) // 2],
            }  # fmt: skip
            self.log("round", details)


def rate(number: float) -> str:
    """Return a number a second in words: ``2.1M a second``."""
    thousands = 0
    while number >= 1000 and thousands < 3:
        number, thousands = number / 1000, thousands + 1
    return f"{number:.3g}{'kMG'[thousands - 1] if thousands else ''} a second"


_TAGS = ("protocol", "role")
_SECONDS = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def counters(protocol: str) -> Callable[[str, int, float], None]:
    """Return what counts a round for Prometheus, beside the cluster's own figures.

    It is called with the role that came through the round, messages delivered since the last, and seconds.

    The names are ``p2p_sim_messages_total``, ``p2p_sim_rounds_total`` and ``p2p_sim_round_seconds``; Ray puts
    ``ray_`` before them.
    """
    from ray.util.metrics import Counter, Histogram

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
