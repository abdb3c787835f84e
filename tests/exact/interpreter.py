"""Two protocols run by hand from the papers and the bit contract: one user at a time, plain Python integers.

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
