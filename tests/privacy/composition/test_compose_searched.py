"""Compositions of laws whose worst case is searched for: above every fixed case, by their certified upper ends."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from p2p_sim import InputError, privacy
from p2p_sim.privacy.composition.compose import compose, composed
from p2p_sim.privacy.laws.finite import Atoms
from p2p_sim.privacy.laws.mixtures import Scaled, Worst
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from p2p_sim.privacy.profile import PrivacyProfile
from protocols import PeerToPeer
from tests.privacy.composition.composing import FOUR, of, rr

pytestmark = pytest.mark.slow


def outcomes(alpha: float, theta: float, n: int, ones: int) -> Atoms:
    """The law of (reports, ones among them) from its definition, with ``ones`` among the other users."""

    def law(label: int) -> list[float]:
        urn = [1.0]
        for i in range(n):
            p = 1 - alpha if i < ones + label else alpha
            urn = [a * (1 - p) + b * p for a, b in zip([*urn, 0], [0, *urn], strict=True)]
        found = []
        for m in range(n + 1):
            come = math.comb(n, m) * theta**m * (1 - theta) ** (n - m)
            found += [
                come
                * math.comb(m, k)
                * sum(w * (r / n) ** k * (1 - r / n) ** (m - k) for r, w in enumerate(urn))
                for k in range(m + 1)
            ]
        return found

    return Atoms.of(law(0), law(1))


def searched(alpha: float, theta: float, n: int) -> PrivacyProfile:
    """A profile whose law is the worst of all compositions, called lower."""
    return PrivacyProfile("learner", "lower", "Algorithm 2", (), "", ClusterReports(alpha, theta, n))


@pytest.mark.parametrize(
    ("alpha", "theta", "n", "times"), [(0.2, 0.5, 3, 3), (0.3, 0.7, 4, 5), (0.1, 0.9, 3, 4)]
)
def test_above_every_fixed_composition(alpha: float, theta: float, n: int, times: int) -> None:
    found = composed(searched(alpha, theta, n), times)
    assert found.basis == "upper"
    alone = [composed(of(outcomes(alpha, theta, n, ones)), times) for ones in range(n)]
    for delta in (1e-2, 1e-4, 1e-7):
        low, value, high = found.epsilon_bracket(delta)
        worst = max(one.epsilon_bracket(delta).lower for one in alone)
        assert low * (1 - 1e-9) <= worst <= value == high
        assert high <= 1.05 * worst
    for epsilon in (0.0, 0.3, 1.0):
        assert max(one.delta_bracket(epsilon).lower for one in alone) <= found.delta(epsilon)


def test_mixed_with_others() -> None:
    first, second = searched(0.2, 0.5, 3), rr(0.5)
    both = compose([first, (second, 2)])
    assert both.basis == "upper"
    alone = [compose([of(outcomes(0.2, 0.5, 3, ones)), (second, 2)]) for ones in range(3)]
    assert max(one.epsilon_bracket(1e-4).lower for one in alone) <= both.epsilon(1e-4)
    basic = compose([first, (second, 2)], method="basic")
    assert basic.basis == "upper"
    assert both.epsilon(1e-4) <= basic.epsilon(1e-4)


def test_one_run_stays_what_it_is() -> None:
    one = searched(0.2, 0.5, 3)
    assert composed(one, 1).basis == "lower"
    assert composed(one, 1).epsilon(1e-4) == one.epsilon(1e-4)
    assert compose([one, (rr(0.0), 4)]).basis == "lower"
    assert composed(one, 0).basis == "exact"


def test_of_a_larger_cluster() -> None:
    one = searched(0.25, 0.5, 25)
    twice = composed(one, 2)
    assert twice.basis == "upper"
    low, value, high = twice.epsilon_bracket(1e-5)
    assert one.epsilon(1e-5) < low <= value == high <= 2 * one.epsilon_bracket(5e-6).upper


def test_of_a_coalition_that_is_searched_for() -> None:
    one = replace(privacy.profile(PeerToPeer(0.3), "learner+user", cluster_size=9), basis="lower")
    twice = composed(one, 2)
    assert twice.basis == "upper"
    assert one.epsilon(1e-3) < twice.epsilon_bracket(1e-3).lower <= twice.epsilon(1e-3) <= 2 * math.log(7 / 3)


def test_upper_ends_must_be_known_to_hold() -> None:
    drawn = ClusterReports(0.2, 0.5, 5)
    local = rr(1.0).law
    assert local is not None
    assert drawn.cases_covered == "searched"
    assert Scaled(0.5, drawn).cases_covered == "searched"
    assert Worst((drawn, local)).cases_covered == "searched"
    assert FOUR.cases_covered != "searched"
    assert Worst((drawn, FOUR)).cases_covered != "searched"
    assert Worst((local,)).cases_covered != "searched"
    with pytest.raises(InputError, match="basis 'lower'"):
        composed(of(Worst((drawn, FOUR)), basis="lower"), 2)
    with pytest.raises(InputError, match="basis 'measured'"):
        composed(of(drawn, basis="measured"), 2)
