"""The law of uniform randomized response: against enumeration, Renyi divergences, and an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Party, Rounds
from p2p_sim.privacy.bounds import release2023
from p2p_sim.privacy.mechanism_parts.uniform_labels import budget
from protocols import DummyFeatures


@pytest.mark.parametrize(("lam", "labels"), [(0.25, 2), (0.5, 3), (0.75, 5), (1.0, 3)])
def test_the_law_equals_the_enumerated_program(lam: float, labels: int) -> None:
    y = np.array([0, 1], np.uint8)
    people = Population.from_arrays(y=y if labels > 2 else y > 0)
    truth = privacy.enumerate_view(DummyFeatures(lam, labels), people)
    keep, lie = Fraction(1 - lam) + Fraction(lam) / labels, Fraction(lam) / labels
    for ratio in (Fraction(1), Fraction(5, 4), Fraction(3)):
        exact = truth.delta_at(ratio)
        assert exact == max(0, keep - ratio * lie)
        found = privacy.profile(DummyFeatures(lam, labels)).delta(math.log(ratio))
        assert found == pytest.approx(float(exact), abs=1e-14)


@pytest.mark.parametrize(("lam", "labels"), [(0.3, 2), (1e-12, 10), (5e-324, 2), (0.999999, 256)])
def test_the_budget_is_right_to_the_last_digit(lam: float, labels: int) -> None:
    with mpmath.workdps(400):
        rate = mpmath.mpf(lam)
        wanted = float(mpmath.log1p((1 - rate) * labels / rate))
    assert budget(lam, labels) == pytest.approx(wanted, rel=3e-16)


def test_the_papers_divergences_are_those_of_the_law() -> None:
    """Orders from 2 up: exact as of the law's outcomes, and Theorem 7.2 below."""
    law = privacy.profile(DummyFeatures(0.4, 4)).law
    assert law is not None
    p, q = (np.exp(side) for side in law.outcomes() or ([], []))
    for order in (2.0, 5.0, 40.0):
        found = release2023.renyi_divergence(p, q, order)
        assert release2023.label_divergence(order, 0.4, 4).epsilon == pytest.approx(found, rel=1e-12)
        assert release2023.theorem7_2(order, 0.4, 4).epsilon <= found + 1e-12
    assert (
        release2023.theorem7_2(2.0, 0.4, 4).epsilon < release2023.label_divergence(2.0, 0.4, 4).epsilon - 0.01
    )


def test_ends_of_lambda() -> None:
    told, uniform = privacy.profile(DummyFeatures(0.0)), privacy.profile(DummyFeatures(1.0, 5))
    assert (told.epsilon(0.5), told.delta(100.0)) == (math.inf, 1.0)
    assert (uniform.epsilon(0.0), uniform.delta(0.0)) == (0.0, 0.0)


def test_a_group_is_as_many_runs() -> None:
    protocol: Any = DummyFeatures(0.5)
    two = privacy.profile(protocol, cluster_size=5, group=2)
    assert two.basis == "exact"
    assert two.epsilon(0.0) == pytest.approx(2 * math.log(3))


@dataclass(frozen=True)
class Other(DummyFeatures):
    """Lies half as often as it says."""

    def user(self, me: Party) -> Rounds:
        lies = me.draw.bernoulli("new label", self.lam / 2)
        yield self.report(y=np.where(lies, me.draw.below("label", self.labels), me.y).astype(np.uint8))


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = DummyFeatures(0.5, 3)
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.lower > 1.2  # the true value is 1.384
    broken = privacy.audit(Other(0.5, 3), delta=1e-3, trials=20_000, seed=1, against=protocol)
    assert broken.verdict == "violated"
