"""Profiles of whole populations: the worst cluster, and the labels as they really are."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy.law import Bracket
from p2p_sim.privacy.laws.finite import Nothing
from p2p_sim.privacy.laws.mixtures import Scaled, Worst
from p2p_sim.privacy.laws.randomized_response import LocalResponse
from p2p_sim.privacy.mechanisms.peer_to_peer.cluster_reports import ClusterReports
from protocols import PeerToPeer, RandomizedResponse

pytestmark = pytest.mark.slow

PROTOCOL = PeerToPeer(0.2)


def people() -> Population:
    return Population.from_arrays(y=[0, 0, 0, 1, 1, 0, 1, 0], cluster=[7, 7, 7, 7, 9, 9, 9, 2])


def test_the_worst_cluster() -> None:
    each = [privacy.profile(PROTOCOL, cluster_size=n).delta(0.3) for n in (1, 3, 4)]
    assert privacy.profile(PROTOCOL, population=people()).delta(0.3) == max(each)


def test_labels_as_they_are() -> None:
    """Every user's neighbours, one by one: the worst of them is the profile."""
    found = privacy.profile(PROTOCOL, population=people(), composition="population")
    labels, cluster = people().y, people().clusters.label  # type: ignore[union-attr]
    each = []
    for user in range(8):
        others = (cluster == cluster[user]) & (np.arange(8) != user)
        size, ones = int(others.sum()) + 1, int(labels[others].sum())
        each.append(privacy.profile(PROTOCOL, cluster_size=size, composition=ones).delta(0.3))
    assert found.delta(0.3) == max(each)
    assert found.delta(0.3) <= privacy.profile(PROTOCOL, population=people()).delta(0.3)
    assert "labels as they are in this population" in found.assumes[-1]


def test_labels_as_they_are_by_enumeration() -> None:
    trio = Population.from_arrays(y=[1, 0, 0])
    found = privacy.profile(PeerToPeer(0.25), population=trio, composition="population")
    by_hand = max(
        privacy.enumerate_view(PeerToPeer(0.25), trio, change=user).delta_at(Fraction(1)) for user in range(3)
    )
    assert found.delta(0.0) == pytest.approx(float(by_hand), abs=1e-12)


def test_randomized_response_does_not_depend_on_them() -> None:
    real = privacy.profile(RandomizedResponse(1.0), population=people(), composition="population")
    assert real.epsilon(0.0) == pytest.approx(1.0)


def test_refusals() -> None:
    with pytest.raises(InputError, match="needs a population"):
        privacy.profile(PROTOCOL, cluster_size=5, composition="population")
    with pytest.raises(InputError, match="a view without users of it"):
        privacy.profile(PROTOCOL, "learner+user", population=people(), composition="population")


LAWS = (
    Scaled(1e-4, LocalResponse(1.0)),
    ClusterReports(0.1, 1.0, 60),
    ClusterReports(0.1, 0.5, 30),
    Nothing(),
)
"""A rare local answer, large and small crowds, nothing: which of them is the worst depends on delta."""

ORDERS = [
    (0, 1, 2, 3),
    (1, 2, 3, 0),
    (2, 3, 0, 1),
    (3, 0, 1, 2),
    (3, 2, 1, 0),
    (2, 1, 0, 3),
    (1, 0, 3, 2),
    (0, 3, 2, 1),
]
"""Each law at each place, and of any two each before the other."""


@cache
def of_each(delta: float) -> list[Bracket]:
    return [law.epsilon_bracket(delta) for law in LAWS]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9])
def test_the_worst_of_several_laws_in_any_order(order: tuple[int, ...], delta: float) -> None:
    worst = Worst(tuple(LAWS[i] for i in order))
    each = of_each(delta)
    assert worst.epsilon(delta) == pytest.approx(max(bracket.value for bracket in each), rel=1e-12)
    low, _, high = worst.epsilon_bracket(delta)
    assert low == pytest.approx(max(bracket.lower for bracket in each), rel=1e-12)
    assert high == pytest.approx(max(bracket.upper for bracket in each), rel=1e-12)
