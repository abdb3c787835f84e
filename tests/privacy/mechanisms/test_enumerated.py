"""The laws against the program itself, enumerated draw by draw for three users."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Protocol
from protocols import PeerToPeer, RandomizedResponse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

CASES = [  # protocol, view of the law, view enumerated, ones among the other honest users
    (PeerToPeer(0.25, 0.5), "learner", "learner", 1),
    (PeerToPeer(0.25), "user", "user:2", 0),
    (PeerToPeer(0.25), "learner+user", "learner+user:2", 0),
    (PeerToPeer(0.25), "learner+2*user", "learner+user:1+user:2", 0),
    (RandomizedResponse.flipping(0.25), "learner", "learner", 0),
    (RandomizedResponse.flipping(0.25), "user", "user:1", 0),
]


@pytest.mark.parametrize(("protocol", "view", "seen", "ones"), CASES)
def test_laws_equal_the_enumerated_program(protocol: Protocol, view: str, seen: str, ones: int) -> None:
    population = Population.from_arrays(y=np.array([False, ones == 1, False]))
    truth = privacy.enumerate_view(protocol, population, view=seen, change=0)
    profile = privacy.profile(protocol, view, cluster_size=3, composition=ones)
    for ratio in (Fraction(1), Fraction(5, 4), Fraction(2)):
        exact = float(truth.delta_at(ratio))
        low, value, high = profile.delta_bracket(math.log(ratio))
        assert value == pytest.approx(exact, rel=1e-11, abs=1e-15)
        assert low - 1e-15 <= exact <= high + 1e-15
