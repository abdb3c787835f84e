"""Corners: no noise, all noise, hardly any report, one user, a million, tiny deltas, odd confidences."""

from __future__ import annotations

import math
from typing import Any

import pytest

from p2p_sim import privacy
from p2p_sim.privacy.auditing import confidence_bounds
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Peers

pytestmark = pytest.mark.slow

HONEST = PeerToPeer(0.1, 0.5)
VIEWS = ["learner", "user", "learner+user", "wire", "learner+wire"]


def audited(protocol: Any = HONEST, view: str = "learner", **options: Any) -> privacy.Audit:
    """An audit, checked for what must hold of all of them."""
    point = {} if "epsilon" in options else {"delta": 0.0}
    found = privacy.audit(protocol, view, **({"cluster_size": 6, "trials": 1000} | point | options))
    assert 0 <= found.lower <= found.cap < math.inf
    assert found.verdict in ("violated", "consistent", "inconclusive")
    assert found.needed is None or found.verdict == "inconclusive"
    assert found.needed is None or found.needed > found.trials
    assert not found.failed
    return found


@pytest.mark.parametrize("view", VIEWS)
def test_all_noise_shows_nothing_and_none_everything(view: str) -> None:
    for options in ({"delta": 0.0}, {"delta": 0.1}, {"epsilon": 0.0}, {"epsilon": 2.0}):
        nothing = audited(PeerToPeer(0.5), view, **options)
        assert nothing.exact == nothing.lower == 0
        assert nothing.verdict == "consistent"
    everything = audited(PeerToPeer(0.0), view, epsilon=1.0)
    assert everything.exact is not None
    assert everything.lower > 0.5 * everything.exact > 0
    assert audited(PeerToPeer(0.0), view, delta=0.0).exact == math.inf


def test_few_reports_are_inconclusive_and_say_how_many_trials_would_decide() -> None:
    """With theta = 1e-6 five reports come in a million worlds."""
    found = audited(
        PeerToPeer(0.1, 1e-6), cluster_size=10
    )  # half of epsilon is out of reach of any likely event
    assert found.verdict == "inconclusive"
    assert found.needed is not None
    assert 10**6 < found.needed < 10**10
    assert found.law is not None
    assert not found.law.rejected
    assert audited(PeerToPeer(0.1, 1e-6), delta=0.01).exact == 0


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("view", VIEWS)
def test_the_smallest_clusters(size: int, view: str) -> None:
    if size == 1 and "user" in view:
        return  # refused, see test_bad_input
    found = audited(view=view, cluster_size=size, trials=3000)
    assert found.exact is not None
    assert 0.7 * found.exact < found.lower <= found.exact


def test_a_cluster_of_a_million_works_with_as_many_trials_as_can_say_something() -> None:
    # Two users, her own bit: a law of a million others takes a minute, and is not what is tested here.
    few = audited(RandomizedResponse(3.0), cluster_size=1_000_000, trials=7)
    assert few.law is not None
    assert "7 worlds: the law is tested with 100 or more" in few.law.why
    assert few.trials == 7


@pytest.mark.parametrize("confidence", [1e-9, 0.5, 0.95, 0.9999999, 1 - 2.0**-53])
def test_every_confidence_is_served(confidence: float) -> None:
    assert audited(confidence=confidence).confidence == confidence
    found = audited(trials=20_000, confidence=confidence, statistic="exact")
    assert found.confidence == confidence
    assert found.cap == confidence_bounds.cap_epsilon(20_000, 0.0, 1, confidence)
    assert found.exact is not None
    assert 0 < found.lower <= found.exact


def test_a_surer_bound_is_lower() -> None:
    bounds = [audited(confidence=confidence).lower for confidence in (0.5, 0.9, 0.99, 0.999)]
    assert bounds == sorted(bounds, reverse=True)
    assert len(set(bounds)) == 4


def test_delta_0_is_measured_itself_and_a_tiny_delta_at_points_of_the_curve() -> None:
    pure = audited(trials=5000)
    assert pure.points == ()
    assert pure.lower > 0
    tiny = audited(trials=5000, delta=1e-12)
    assert tiny.verdict == "consistent"
    assert tiny.why == "delta is too small to be measured; the curve was, at several epsilons"
    assert [point.epsilon for point in tiny.points] == sorted({point.epsilon for point in tiny.points})
    for point in tiny.points:
        assert point.exact == pytest.approx(
            privacy.profile(HONEST, cluster_size=6, composition=tiny.composition).delta(point.epsilon)
        )
        assert 0.1 * point.exact < point.lower <= point.exact
        assert point.verdict == "consistent"


def test_points_of_the_curve_find_a_twin() -> None:
    """At delta = 1e-12 itself the bound could be explained; at a point of the curve it is not."""
    twin = privacy.audit(
        Peers(near=1.0), against=HONEST, cluster_size=6, trials=5000, delta=1e-12, confidence=0.999
    )
    assert "violated" in {point.verdict for point in twin.points}
    assert twin.failed


def test_a_delta_that_explains_everything_leaves_0() -> None:
    found = audited(delta=0.99)
    assert (found.exact, found.lower, found.verdict) == (0.0, 0.0, "consistent")


@pytest.mark.parametrize("epsilon", [50.0, 800.0, 1e308])
def test_a_huge_epsilon_is_no_overflow(epsilon: float) -> None:
    found = audited(epsilon=epsilon)
    assert found.exact == found.lower == 0


def test_a_view_that_can_read_nothing_has_no_law_to_test() -> None:
    found = audited(view="wire", channels="encrypted", statistic="exact")
    assert (found.exact, found.lower) == (0.0, 0.0)
    assert found.law is not None
    assert not found.law.tested
    assert "can read nothing" in found.law.why


def test_an_infinite_claim_is_not_undecided_and_a_name_twice_is_judged_twice() -> None:
    found = privacy.audit(
        HONEST, cluster_size=6, trials=3000, delta=0.0, claims={"none": math.inf, "exact": 0.01}
    )
    verdicts = {(claim.name, claim.source == "given"): claim.verdict for claim in found.claims}
    assert verdicts["none", True] == "consistent"
    assert verdicts["exact", False] == "consistent"
    assert verdicts["exact", True] == "violated"
    assert found.exact is not None
    assert found.exact > 1, "the accountant's figure, not a claim of that name"


def test_labels_that_the_law_does_not_have_are_no_answers_of_it() -> None:
    twin = privacy.audit(RandomizedResponse(1.0, 5), against=RandomizedResponse(1.0), delta=0.0, trials=1000)
    assert twin.law is not None
    assert twin.law.rejected
    assert "labels are 0 to 4; the law knows 0 to 1" in twin.law.why
    assert twin.failed
