"""Programs that send floats as fixed point: their law is found, enumerated and audited as that of the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import FixedPoint, Message, Party, Protocol, Rounds
from tests.privacy.enumeration.own import law_of

pytestmark = pytest.mark.slow

STEP = FixedPoint(resolution=0.5, low=-2, high=2)
WEIGHTS = (Fraction(1, 8), Fraction(3, 4), Fraction(1, 8))


@dataclass(frozen=True)
class Noisy(Protocol):
    """A number between the steps is rounded, then noise of one step either way is added."""

    report = Message("user", "learner", "reports a noisy number", score=STEP)

    def user(self, me: Party) -> Rounds:
        noise = me.draw.categorical("noise", WEIGHTS, values=np.array([-0.5, 0.0, 0.5]))
        yield self.report(score=np.where(me.y, 0.3, 0.1) + noise)

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


@dataclass(frozen=True)
class Rounded(Protocol):
    """Both labels round to the same number."""

    report = Message("user", "learner", "reports a number", score=STEP)

    def user(self, me: Party) -> Rounds:
        yield self.report(score=np.where(me.y, 0.7, 0.3))

    def learner(self, me: Party) -> Rounds:
        return (yield self.report.receive()).columns()


def test_the_law_is_that_of_what_travels() -> None:
    """Labels are one step apart (0.3 rounds to 0.5, 0.1 to 0), so e^ε is 6 where both can be."""
    found = law_of(Noisy(), "learner")
    people = Population.from_arrays(y=[True, False, True])
    seen = privacy.enumerate_view(Noisy(), people, view="learner", to=0)
    for ratio in (Fraction(1), Fraction(2), Fraction(6), Fraction(7)):
        assert found.delta(math.log(ratio)) == pytest.approx(float(seen.delta_at(ratio)), abs=1e-13)
    assert seen.delta_at(6) == Fraction(1, 8)  # what only one label can give


def test_what_rounding_hides_is_hidden() -> None:
    assert law_of(Rounded(), "learner").delta(0.0) == 0.0
    seen = privacy.enumerate_view(Rounded(), Population.from_arrays(y=[True, False]), view="learner", to=0)
    assert seen.delta_at(1) == 0


def test_an_audit_measures_it() -> None:
    """At δ = 0.2 it is ε = ln 5.4 exactly; the bound is above that with probability 1e-6."""
    measured = privacy.audit(
        Noisy(), trials=4000, seed=1, delta=0.2, confidence=1 - 1e-6, claims={"half": 0.5}
    )
    assert 0.5 < measured.lower <= math.log(5.4)
    assert [claim.verdict for claim in measured.claims if claim.name == "half"] == ["violated"]
