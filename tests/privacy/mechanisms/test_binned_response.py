"""The law of randomized response on bins, against the matrix of its reports."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.privacy.mechanisms import binned_response
from protocols import BinnedResponse


@pytest.mark.parametrize("epsilon0", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("prior", ["uniform", "0.9,0.04,0.03,0.02,0.01"])
def test_the_law_is_that_of_the_worst_pair_of_labels(prior: str, epsilon0: float) -> None:
    protocol = BinnedResponse(epsilon0, 5, prior=prior)
    rows = binned_response.matrix(protocol)
    assert rows.sum(axis=1) == pytest.approx(1)
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0):
        worst = max(
            float(np.maximum(rows[a] - math.exp(epsilon) * rows[b], 0).sum())
            for a, b in itertools.permutations(range(5), 2)
        )
        assert law.delta(epsilon) == pytest.approx(worst, abs=1e-14)


def test_two_labels_of_a_bin_are_alike() -> None:
    protocol = BinnedResponse(2.0, 8)
    rows, bin_of = binned_response.matrix(protocol), protocol.bins()[0]
    alike = bin_of[:, None] == bin_of[None, :]
    assert ((rows[:, None] == rows[None]).all(axis=2) == alike).all()


@dataclass(frozen=True)
class TwoBinsForOne(BinnedResponse):
    """Draws its lies as if there were two bins, as one who forgets that a lie has several to go to."""

    def user(self, me: Party) -> Rounds:
        bin_of, values = self.bins()
        lies = me.draw.bernoulli("lie", self.lying(2) / len(values))
        moved = lies * (1 + me.draw.below("other", len(values) - 1))
        yield self.report(bin=((bin_of[me.y] + moved) % len(values)).astype(np.uint8))


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = BinnedResponse(3.0, 6)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert len(protocol.bins()[1]) == 3
    assert audit.verdict == "consistent"
    assert audit.lower > 2.5  # the true value is 3.0
    broken = privacy.audit(TwoBinsForOne(3.0, 6), delta=1e-3, trials=20_000, seed=1, against=protocol)
    assert broken.verdict == "violated"
