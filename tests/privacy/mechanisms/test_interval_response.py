"""The law of randomized response in an interval, against the matrix of its reports."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.privacy.mechanisms import interval_response
from protocols import IntervalResponse


def worst(rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], epsilon: float) -> float:
    return max(
        float(np.maximum(rows[a] - math.exp(epsilon) * rows[b], 0).sum())
        for a, b in itertools.permutations(range(len(rows)), 2)
    )


@pytest.mark.parametrize("epsilon0", [0.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("window", [0, 1, 2, 9])
@pytest.mark.parametrize("prior", ["uniform", "0.9,0.04,0.03,0.02,0.01", "0.02,0.38,0.3,0.2,0.1"])
def test_the_law_is_that_of_the_worst_pair_of_labels(prior: str, window: int, epsilon0: float) -> None:
    protocol = IntervalResponse(epsilon0, 5, window=window, prior=prior)
    rows = interval_response.matrix(protocol)
    assert rows.sum(axis=1) == pytest.approx(1)
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 6.0):
        assert law.delta(epsilon) == pytest.approx(worst(rows, epsilon), abs=1e-14)
    twice = np.stack([np.outer(row, row).ravel() for row in rows])
    composed = privacy.compose([(law, 2)])
    for epsilon in (0.0, 1.0, 3.0):
        assert composed.delta_bracket(epsilon).lower <= worst(twice, epsilon) + 1e-13
        assert worst(twice, epsilon) <= composed.delta_bracket(epsilon).upper + 1e-13


def test_an_interval_of_one_label_tells_nothing() -> None:
    protocol = IntervalResponse(0.1, 3, window=0, prior="0.05,0.9,0.05")
    assert protocol.interval() == (1, 1)
    assert privacy.profile(protocol).delta(0.0) == 0
    assert interval_response.local_epsilon(protocol) == 0


@dataclass(frozen=True)
class FarTooRarely(IntervalResponse):
    """Reports one that is not near half as often as it should."""

    def user(self, me: Party) -> Rounds:
        first, last = self.interval()
        near = 2 * self.window + 1
        least = np.clip(me.y.astype(np.int64), first, last) - first
        other = me.draw.below("other", last - first)
        far = me.draw.bernoulli("far", Fraction((last - first) * self.words()[1], 2**65))
        said = np.where(far, other + near * (other >= least), least + me.draw.below("near", near))
        yield self.report(output=said.astype(np.uint16))


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = IntervalResponse(2.0, 4)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.lower > 1.6  # the true value is 2.0
    broken = privacy.audit(FarTooRarely(2.0, 4), delta=1e-3, trials=20_000, seed=1, against=protocol)
    assert broken.verdict == "violated"
