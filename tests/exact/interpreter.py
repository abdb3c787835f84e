"""Three protocols run by hand from the papers and the bit contract: one user at a time, plain Python integers.

Imports nothing of the engine.  Messages are (round, sender, recipient, sequence number, fields ...); a server is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.exact import oracle

Rows = list[tuple[int, ...]]


@dataclass
class Hand:
    """What a run by hand leaves."""

    messages: dict[str, Rows]
    outputs: dict[str, dict[str, list[int]]]

    @property
    def digest(self) -> str:
        return oracle.digest(self.messages, self.outputs)


def algorithm_2(y: Sequence[int], cluster: Sequence[int], alpha: Any, theta: Any, seed: int) -> Hand:
    """Clustering 2022, Algorithm 2: line 3 flips, line 5 picks a peer, line 9 subsamples."""
    users, chance = range(len(y)), oracle.Chance(seed)
    y_hat = [y[u] ^ oracle.bernoulli(chance.word("flip", 0, u), alpha) for u in users]
    asks: Rows = []
    for u in users:
        group = [v for v in users if cluster[v] == cluster[u]]
        asks.append((1, u, group[oracle.below(chance.word("peer", 0, u), len(group))], 0))
    labels = [(2, peer, u, 0, y_hat[peer]) for _, u, peer, _ in asks]
    reports = [
        (3, u, 0, 0, noisy)
        for _, _, u, _, noisy in labels
        if oracle.bernoulli(chance.word("subsample", 2, u), theta)
    ]
    received = {"sender": [r[1] for r in reports], "y": [r[4] for r in reports]}
    return Hand({"ask": asks, "label": labels, "report": reports}, {"user": {}, "learner": received})


def lie_probability(epsilon: float, labels: int) -> Fraction:
    """(k - 1) / (k - 1 + e^epsilon), with e^epsilon to 100 digits."""
    if math.isinf(epsilon):
        return Fraction(0)
    with localcontext() as context:
        context.prec = 100
        return (labels - 1) / (labels - 1 + Fraction(Decimal(epsilon).exp()))


def randomized_response(y: Sequence[int], lie: Fraction, labels: int, seed: int) -> Hand:
    """k-ary randomized response: the truth, or with probability ``lie`` one of the k - 1 others."""
    chance, reports = oracle.Chance(seed), []
    for u, truth in enumerate(y):
        lies = oracle.bernoulli(chance.word("lie", 0, u), lie)
        step = 1 + oracle.below(chance.word("other", 0, u), labels - 1)
        reports.append((1, u, 0, 0, (truth + step) % labels if lies else truth))
    received = {"sender": [r[1] for r in reports], "y": [r[4] for r in reports]}
    return Hand({"report": reports}, {"user": {}, "learner": received})


def network_shuffle(
    y: Sequence[int], near: Sequence[Sequence[int]], lie: Any, labels: int, steps: int, seed: int
) -> Hand:
    """Noisy labels walk from neighbour to neighbour; what a user holds is put in a random order each time it came."""
    chance, users = oracle.Chance(seed), range(len(y))
    held: list[list[int]] = []
    for u in users:
        lies = oracle.bernoulli(chance.word("lie", 0, u), lie)
        step = 1 + (oracle.below(chance.word("other", 0, u), labels - 1) if labels > 2 else 0)
        held.append([(y[u] + step) % labels if lies else y[u]])
    hops: Rows = []
    for t in range(steps):
        sent: Rows = []
        for u in users:
            for rank, value in enumerate(held[u]):
                word = chance.item("next", t, u, rank) if t else chance.word("next", 0, u)
                sent.append((t + 1, u, near[u][oracle.below(word, len(near[u]))], rank, value))
        hops += sent
        for u in users:
            came = [value for _, _, to, _, value in sorted(sent) if to == u]
            order = oracle.permutation([chance.item("order", t + 1, u, rank) for rank in range(len(came))])
            held[u] = [came[rank] for rank in order]
    reports = [(steps + 1, u, 0, rank, value) for u in users for rank, value in enumerate(held[u])]
    received = {"sender": [row[1] for row in reports], "y": [row[4] for row in reports]}
    return Hand({"hop": hops, "report": reports}, {"user": {}, "learner": received})
