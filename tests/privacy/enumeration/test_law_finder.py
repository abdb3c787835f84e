"""Laws found on the program, against the enumerator for three users and against laws written down."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, privacy
from p2p_sim.privacy.enumeration.enumerate import enumerate_view
from protocols import RandomizedResponse
from tests.privacy.enumeration.own import (
    Hidden,
    Leaky,
    Reused,
    Shy,
    Subset,
    Thanked,
    ToPeers,
    Twice,
    Unary,
    WhichPeer,
    law_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

ANY = "holds for any number of users"


def people(*y: int) -> Population:
    return Population.from_arrays(y=np.array(y, np.uint8), cluster=np.zeros(len(y), int))


def enumerated(protocol: Any, view: str, channels: str) -> list[Any]:
    """The enumerator's laws of every pair of her labels, the two others having other labels or the same."""
    labels = protocol.label_count()
    many = isinstance(protocol, (ToPeers, WhichPeer))
    compositions = ((0, labels - 1),) if many else ((0, 0), (1, labels - 1))
    return [
        enumerate_view(protocol, people(one, *others), view=view, to=two, channels=channels)
        for one, two in itertools.combinations(range(labels), 2)
        for others in compositions
    ]


CASES = [
    (RandomizedResponse.flipping(0.25), ("learner", "user", "wire", "learner+2*user")),
    (Leaky(3), ("learner",)),
    (Unary(), ("learner",)),
    (Shy(), ("learner", "user", "wire", "learner+user")),
    (Reused(), ("learner", "user", "wire")),
    (ToPeers(), ("learner", "user", "2*user", "wire")),
    (WhichPeer(), ("user", "wire")),
    (Thanked(), ("learner", "user", "wire", "learner+user")),
    (Hidden(), ("mixer", "user", "wire", "mixer+user", "learner+mixer")),
]


@pytest.mark.parametrize("channels", ["plain", "encrypted"])
@pytest.mark.parametrize(("protocol", "view"), [(p, v) for p, views in CASES for v in views])
def test_the_law_is_that_of_the_enumerator_at_every_atom(protocol: Any, view: str, channels: str) -> None:
    if isinstance(protocol, WhichPeer) and channels == "encrypted":
        pytest.skip("its messages have no fields to hide, and 3 users who draw twice each have 729 ways")
    found = law_of(protocol, view, channels=channels)
    truth = enumerated(protocol, view, channels)
    assert found.basis == "exact", found.why
    pairs = {pair for law in truth for pair in law.pairs() if all(pair)}
    for ratio in {Fraction(1), Fraction(5, 4), *(max(p / q, q / p) for p, q in pairs)}:
        deltas = {law.delta_at(ratio) for law in truth}
        low, value, high = found.delta_bracket(math.log(ratio))
        assert value == pytest.approx(float(max(deltas)), abs=1e-13), ratio
        assert low - 1e-15 <= float(max(deltas)) <= high + 1e-13
    assert found.epsilon(0) == pytest.approx(max(law.pure_epsilon for law in truth), rel=1e-12)


def test_subset_selection_by_hand() -> None:
    """A pair has probability 3/4 * 1/2 + 1/4 * 1/3 with her label in it, and 1/4 * 1/3 without."""
    found = law_of(Subset(3), "learner")
    assert found.epsilon(0) == pytest.approx(math.log((3 / 8 + 1 / 12) / (1 / 12)), rel=1e-14)
    assert found.delta(0.0) == pytest.approx(3 / 8, rel=1e-14)
    assert "found on the program" in found.source
    assert ANY in found.source


@pytest.mark.parametrize("labels", [2, 10])
def test_randomized_response_has_its_written_law(labels: int) -> None:
    protocol = RandomizedResponse(1.0, labels=labels)
    for view, channels in itertools.product(
        ("learner", "user", "wire", "learner+user"), ("plain", "encrypted")
    ):
        written = privacy.profile(protocol, view, channels=channels)
        found = law_of(protocol, view, None, channels=channels)
        assert found.epsilon(0) == pytest.approx(written.epsilon(0), rel=1e-12)
        for epsilon in (0.0, 0.3, 0.9, 1.5):
            assert found.delta(epsilon) == pytest.approx(written.delta(epsilon), rel=1e-12, abs=1e-15)


def test_the_number_of_users_matters_where_users_are_drawn() -> None:
    """Among n users one who looks is drawn with probability 1/n each time; both bits then add up."""
    for size in (3, 100, 10**9):
        hit, flip, second = Fraction(1, size), Fraction(1, 4), Fraction(1, 8)
        one = hit * (1 - hit) * ((1 - 2 * flip) + (1 - 2 * second))
        both = hit**2 * (1 - 2 * second)  # the better bit alone decides at epsilon 0
        found = law_of(Twice(), "user", size)
        assert found.delta(0.0) == pytest.approx(float(one + both), rel=1e-12)
        assert f"a cluster of {size:,} users" in found.source
    assert ANY in law_of(Reused(), "learner", None).source
    assert "give cluster_size" in law_of(ToPeers(), "user", None).why


def test_deviating_and_many_colluders_learn_no_more() -> None:
    assert law_of(Unary(2), "5*user", 10**6, users="deviating").epsilon(0) == 0
    many, some = (law_of(Twice(), f"{c}*user", 10**9).delta(0.0) for c in (10**8, 10**7))
    assert many > some > 0


def test_profile_uses_it() -> None:
    found = privacy.profile(Unary(3), cluster_size=50)
    assert found.epsilon(0) == pytest.approx(2 * math.log(3), rel=1e-14)
    assert "9 ways" not in found.source
    assert "8 ways a label" in found.source
    mixed = Population.from_arrays(y=np.zeros(12, np.uint8), cluster=np.repeat([0, 1], [4, 8]))
    assert privacy.profile(Unary(3), population=mixed).epsilon(0) == found.epsilon(0)
    worst = privacy.profile(Twice(), "user", population=mixed).delta(0.0)
    assert worst == privacy.profile(Twice(), "user", cluster_size=4).delta(0.0)
    faulty = privacy.profile(Unary(3), cluster_size=50, faults=["loss=0.1"])
    assert "faults (loss=0.1) are not accounted for Unary" in faulty.why
    with pytest.raises(InputError, match="a cluster of 3 has 2 users beside the victim"):
        privacy.profile(Unary(3), "3*user", cluster_size=3)


def test_several_runs_of_it_add_up() -> None:
    twice = privacy.composed(privacy.profile(Unary(2)), 2)
    assert twice.epsilon(1e-9) <= 4 * math.log(3) * (1 + 1e-9)
    assert twice.epsilon(1e-9) > 2 * math.log(3)
