"""Parallel composition over disjoint users: the worst of its parts, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy import PrivacyProfile, parallel
from protocols import LabelProportions, MultiStage, PeerToPeer, PriorResponse, RandomizedResponse

EPSILONS = (0.0, 0.3, 0.9, 1.5, 3.0)


def of(epsilon: float, labels: int = 2, basis: str = "exact") -> PrivacyProfile:
    return PrivacyProfile("learner", basis, "by hand", law=privacy.LocalResponse(epsilon, labels))


def test_it_is_the_worst_of_its_parts_and_no_sum() -> None:
    parts = [of(1.0), of(2.0, 9), of(0.5)]
    both = parallel(parts)
    for at in EPSILONS:
        assert both.delta(at) == max(part.delta(at) for part in parts)
    assert both.basis == "exact"
    assert both.epsilon(0) == 2.0
    assert privacy.compose(parts).epsilon(0) == pytest.approx(3.5)


def test_bounds_stay_bounds_unless_an_exact_part_is_as_large() -> None:
    assert parallel([of(1.0), of(2.0, basis="upper")]).basis == "upper"
    assert parallel([of(1.0), of(1.0, basis="upper")]).basis == "exact"
    assert parallel([of(1.0, basis="upper")] * 2).basis == "upper"
    for basis in ("lower", "claimed", "measured"):
        assert parallel([of(1.0), of(1.0, basis=basis)]).basis == basis


def test_it_is_what_disjoint_halves_of_a_population_show() -> None:
    """By enumeration: users 0 and 1 answer with one budget, user 2 with another."""
    people = Population.from_arrays(y=[True, False, True])
    halves = [privacy.profile(RandomizedResponse(epsilon)) for epsilon in (1.0, 0.5)]
    found = [privacy.enumerate_view(RandomizedResponse(epsilon), people, change=0) for epsilon in (1.0, 0.5)]
    for at in EPSILONS:
        assert max(float(view.delta(at)) for view in found) == pytest.approx(
            parallel(halves).delta(at), abs=1e-12
        )


def test_one_part_is_itself_and_a_refused_one_refuses_all() -> None:
    assert parallel([of(1.0)]) == of(1.0)
    refused = PrivacyProfile.refused("learner", "nobody knows")
    assert parallel([of(1.0), refused]) is refused


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="profiles = "):
        parallel([])
    other = privacy.profile(RandomizedResponse(1.0), "wire")
    with pytest.raises(InputError, match="profiles of views learner, wire"):
        parallel([of(1.0), other])
    one = privacy.profile(LabelProportions(4), cluster_size=4, composition=2)
    with pytest.raises(InputError, match="one composition"):
        parallel([of(1.0), one])


def test_a_group_may_have_members_in_several_mechanisms() -> None:
    """One member in each shows more than two in either."""
    where: dict[str, Any] = {"view": "learner+wire", "channels": "encrypted", "cluster_size": 100}
    kinds = (PeerToPeer(alpha=0.0, theta=0.1), RandomizedResponse(1.0))
    one = [privacy.profile(kind, **where) for kind in kinds]
    two = [privacy.profile(kind, group=2, **where) for kind in kinds]
    assert privacy.compose(one).delta(0.0) > max(each.delta(0.0) for each in two)
    with pytest.raises(InputError, match=r"apply privacy\.grouped to what comes out"):
        parallel(two)
    assert privacy.grouped(parallel(one), 2).delta(0.0) >= privacy.compose(one).delta(0.0)
    apart = privacy.profile(MultiStage(1.0, 3, 2, "public"), group=2, cluster_size=4)
    assert apart.members == 2


def test_multi_stage_is_made_of_it() -> None:
    found = privacy.profile(MultiStage(1.0, 3, 2, "public"))
    parts = [privacy.profile(RandomizedResponse(1.0, 3)), privacy.profile(PriorResponse(1.0, 3, "public"))]
    assert all(found.delta(at) == parallel(parts).delta(at) for at in EPSILONS)
