"""Both protocols under faults by hand: one message at a time, decisions from the pure-Python Philox.

Imports nothing of the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.exact import oracle
from tests.exact.interpreter import Rows


@dataclass
class Wire:
    """What goes wrong on the way, and what went wrong."""

    seed: int
    faults: dict[str, Any]
    seen: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    gone: set[int] = field(default_factory=set)

    def decide(self, name: str, kind: str, message: tuple[int, ...]) -> bool:
        round, sender, recipient, seq = message[:4]
        chance = oracle.Chance(self.seed, "fault")
        word = chance.item(f"{name}:{kind}", round, sender, recipient * 2**31 + seq)
        return oracle.bernoulli(word, self.faults.get(name, 0.0))

    def leave(self, step: int, users: Sequence[int]) -> None:
        """Before a step in which users send, some drop out."""
        for u in users:
            word = oracle.Chance(self.seed, "fault").word("drop", step, u)
            if u not in self.gone and oracle.bernoulli(word, self.faults.get("drop", 0.0)):
                self.gone.add(u)

    def send(
        self, kind: str, messages: Rows, *, to_users: bool, between_users: bool, stopped: bool = False
    ) -> tuple[Rows, Rows]:
        """Return what is delivered, and what of it is read."""
        delivered, read = [], []
        for message in messages:
            round, sender, recipient = message[:3]
            travels = not (between_users and sender == recipient)
            if sender in self.gone:
                self.seen["unsent", kind, round] += 1
            elif travels and self.decide("loss", kind, message):
                self.seen["lost", kind, round] += 1
            elif (to_users and recipient in self.gone) or (stopped and not to_users):
                self.seen["undelivered", kind, round] += 1
            else:
                delivered.append(message)
                if travels and self.decide("duplicate", kind, message):
                    self.seen["duplicate", kind, round] += 1
                if travels and self.decide("late", kind, message):
                    self.seen["late", kind, round] += 1
                else:
                    read.append(message)
        return delivered, read


def said(y: Sequence[int], labels: int, seed: int, faults: dict[str, Any]) -> list[int]:
    """The labels that the programs are given."""
    if "lie" not in faults:
        return list(y)
    kind, share = faults["lie"]
    chance = oracle.Chance(seed, "fault")
    ways: dict[str, Callable[[int], int]] = {
        "flip": lambda u: (y[u] + 1) % labels,
        "random": lambda u: oracle.below(chance.word("label", 0, u), labels),
        "constant1": lambda u: 1,
    }
    return [
        ways[kind](u) if oracle.bernoulli(chance.word("lie", 0, u), share) else y[u] for u in range(len(y))
    ]


@dataclass
class Hand:
    """What a run by hand leaves."""

    messages: dict[str, Rows]
    outputs: dict[str, dict[str, list[int]]]
    wire: Wire

    @property
    def digest(self) -> str:
        return oracle.digest(self.messages, self.outputs)


def algorithm_2(
    y: Sequence[int], cluster: Sequence[int], alpha: Any, theta: Any, retries: int, seed: int, faults: dict[str, Any]
) -> Hand:  # fmt: skip
    """Clustering 2022, Algorithm 2, with retries."""
    users, chance, wire = range(len(y)), oracle.Chance(seed), Wire(seed, faults)
    told = said(y, 2, seed, faults)
    y_hat = [told[u] ^ oracle.bernoulli(chance.word("flip", 0, u), alpha) for u in users]
    heard: dict[int, int] = {}
    sent: dict[str, Rows] = {"ask": [], "label": [], "report": []}
    between = {"to_users": True, "between_users": True}
    for turn in range(1 + retries):
        step = 2 * turn
        wire.leave(step, users)
        asks: Rows = []
        for u in users:
            group = [v for v in users if cluster[v] == cluster[u]]
            peer = group[oracle.below(chance.word("peer", step, u), len(group))]
            if u not in heard:
                asks.append((step + 1, u, peer, 0))
        delivered, asks = wire.send("ask", asks, **between)
        sent["ask"] += delivered
        wire.leave(step + 1, users)
        labels = [(step + 2, peer, u, seq, y_hat[peer]) for _, u, peer, seq in asks]
        delivered, labels = wire.send("label", labels, **between)
        sent["label"] += delivered
        heard |= {u: noisy for _, _, u, _, noisy in labels}
    step = 2 + 2 * retries
    wire.leave(step, users)
    kept = [u for u in sorted(heard) if oracle.bernoulli(chance.word("subsample", step, u), theta)]
    reports = [(step + 1, u, 0, 0, heard[u]) for u in kept]
    stop = faults.get("stop", ("", None))[1]
    alone = {"to_users": False, "between_users": False}
    sent["report"], read = wire.send("report", reports, **alone, stopped=stop == 0)
    received = {"sender": [r[1] for r in read], "y": [r[4] for r in read]} if stop is None else {}
    return Hand(sent, {"user": {}, "learner": received}, wire)


def randomized_response(y: Sequence[int], lie: Any, labels: int, seed: int, faults: dict[str, Any]) -> Hand:
    """k-ary randomized response."""
    chance, wire, reports = oracle.Chance(seed), Wire(seed, faults), []
    for u, truth in enumerate(said(y, labels, seed, faults)):
        lies = oracle.bernoulli(chance.word("lie", 0, u), lie)
        step = 1 + oracle.below(chance.word("other", 0, u), labels - 1)
        reports.append((1, u, 0, 0, (truth + step) % labels if lies else truth))
    wire.leave(0, range(len(y)))
    delivered, read = wire.send("report", reports, to_users=False, between_users=False)
    received = {"sender": [r[1] for r in read], "y": [r[4] for r in read]}
    return Hand({"report": delivered}, {"user": {}, "learner": received}, wire)
