"""The law of ALIBI, against the noise of two numbers multiplied out, and audits of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.privacy import building_blocks
from p2p_sim.privacy.mechanisms import alibi
from protocols import Alibi


def by_brute_force(epsilon0: float, grid: int, epsilon: float) -> float:
    """The hockey-stick divergence of two noisy numbers, each table 40 scales long."""
    scale = 2 * grid / epsilon0
    far = math.ceil(40 * scale)
    j = np.arange(-far, far + grid + 1)
    own, other = np.exp(-np.abs(j - grid) / scale), np.exp(-np.abs(j) / scale)
    p, q = np.outer(own / own.sum(), other / other.sum()), np.outer(other / other.sum(), own / own.sum())
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("epsilon0", "grid"), [(0.5, 1), (1.0, 4), (3.0, 2), (2.0, 8)])
def test_the_law_is_that_of_two_noisy_numbers(epsilon0: float, grid: int) -> None:
    law = privacy.profile(Alibi(epsilon0, 3, grid))
    assert law.basis == "exact"
    for epsilon in (0.0, 0.2, 0.45, 1.0, 1.7, 2.9):
        assert law.delta(epsilon) == pytest.approx(by_brute_force(epsilon0, grid, epsilon), abs=1e-12)
    assert law.delta(epsilon0) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(("epsilon0", "grid"), [(0.1, 3), (20.0, 2), (700.0, 5), (1.0, 256)])
def test_the_table_is_right_to_40_digits_rounded(epsilon0: float, grid: int) -> None:
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(epsilon0) / (2 * grid))
        one = [1 / (1 + q), *((1 - q) / (1 + q) * q**j for j in range(1, grid)), q**grid / (1 + q)]
        table = alibi.differences(epsilon0, grid)
        assert math.fsum(table) == pytest.approx(1, abs=1e-15)
        for place in {0, 1, grid - 1, grid, grid + 1, 2 * grid}:
            pairs = ((2 * grid - place - b, b) for b in range(grid + 1))
            wanted = mpmath.fsum(one[a] * one[b] for a, b in pairs if 0 <= a <= grid)
            assert table[place] == pytest.approx(float(wanted), rel=2e-16)


def test_the_law_does_not_depend_on_the_number_of_labels_or_the_prior() -> None:
    laws = [privacy.profile(p).delta(0.3) for p in (Alibi(1.0), Alibi(1.0, 10), Alibi(1.0, prior="0.9,0.1"))]
    assert len(set(laws)) == 1


def test_compositions_are_those_of_twice_as_many_numbers() -> None:
    twice = privacy.compose([(privacy.profile(Alibi(1.0, 2, 2)), 2)])
    once = privacy.compose(
        [(building_blocks.discrete_laplace(4.0, 2), 4)]
    )  # scale 2 grid / epsilon, 2 steps a label
    for epsilon in (0.0, 0.4, 1.1, 1.9):
        assert twice.delta(epsilon) == pytest.approx(once.delta(epsilon), abs=1e-10)


@dataclass(frozen=True)
class Half(Alibi):
    """As if one label moved one entry only: half the noise that is needed."""

    def user(self, me: Party) -> Rounds:
        noise = me.draw.laplace("noise", self.grid / self.epsilon, times=self.labels)
        scores = noise.data.reshape(me.size, self.labels).astype(np.int32)
        scores[np.arange(me.size), me.y.astype(np.intp)] += self.grid
        yield self.report(scores=scores)


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = Alibi(1.0, 3, 4)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.lower > 0.8
    broken = privacy.audit(Half(1.0, 3, 4), delta=1e-3, trials=20_000, seed=1, against=protocol)
    assert broken.verdict == "violated"
