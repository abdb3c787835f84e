"""The enumerator against values worked out by hand, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.privacy.enumeration.enumerate import enumerate_view
from protocols import PeerToPeer, RandomizedResponse

QUARTER = PeerToPeer(alpha=0.25)


def zeros(users: int, cluster: Any = None) -> Population:
    return Population.from_arrays(y=np.zeros(users, np.bool_), cluster=cluster)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "at_one", "at_five_quarters"),
    [
        ("user", "1/6", "7/48"),
        ("learner+1*user", "37/108", "9/32"),
        ("learner+user:2", "37/108", "9/32"),
        ("wire", "19/54", "133/432"),  # rho = 1 - (2/3)^2 (1 - 1/3) = 19/27 of delta_RR = 1/2 and 7/16
        ("learner+wire", "19/54", "133/432"),  # rho = 1 - (1 - 1/3)^3 = 19/27
    ],
)
def test_peer_to_peer_with_three_users(view: str, at_one: str, at_five_quarters: str) -> None:
    found = enumerate_view(QUARTER, zeros(3), view=view)
    assert found.delta_at(1) == Fraction(at_one)
    assert found.delta_at(Fraction(5, 4)) == Fraction(at_five_quarters)


def test_the_learner_s_law_by_the_formula() -> None:
    """K given N is Bin(3, N / 3); N is the number of ones among three noisy labels."""
    a = Fraction(1, 4)

    def law(ones: int) -> dict[int, Fraction]:
        of_n = {0: Fraction(1)}
        for i in range(3):
            p = 1 - a if i < ones else a
            shifted = {n: w * (1 - p) for n, w in of_n.items()}
            for n, w in of_n.items():
                shifted[n + 1] = shifted.get(n + 1, Fraction(0)) + w * p
            of_n = shifted

        def of_k(k: int, n: int) -> Fraction:
            return math.comb(3, k) * Fraction(n, 3) ** k * Fraction(3 - n, 3) ** (3 - k)

        return {k: sum((w * of_k(k, n) for n, w in of_n.items()), Fraction(0)) for k in range(4)}

    one, other = law(0), law(1)
    found = enumerate_view(QUARTER, zeros(3))
    for ratio in (Fraction(1), Fraction(6, 5), Fraction(2)):
        by_hand = max(
            sum(max(Fraction(0), one[k] - ratio * other[k]) for k in range(4)),
            sum(max(Fraction(0), other[k] - ratio * one[k]) for k in range(4)),
        )
        assert found.delta_at(ratio) == by_hand


def test_probabilities_sum_to_one_and_weight_zero_is_pruned() -> None:
    found = enumerate_view(PeerToPeer(alpha=0.0, theta=0.5), zeros(3))
    assert sum(found.world.values()) == sum(found.neighbour.values()) == 1
    assert set(found.world) != set(found.neighbour)
    assert all(found.world.values())
    assert found.pure_epsilon == math.inf
    assert found.delta(math.inf) > 0


def test_randomized_response_attains_its_epsilon() -> None:
    for labels in (2, 3):
        found = enumerate_view(RandomizedResponse(1.0, labels=labels), zeros(2))
        assert found.pure_epsilon == pytest.approx(1.0, abs=1e-12)
        assert found.delta(1.0) == pytest.approx(0.0, abs=1e-15)
    assert enumerate_view(RandomizedResponse.flipping(0.25), zeros(2)).delta_at(1) == Fraction(1, 2)


def test_another_user_sees_nothing_of_randomized_response() -> None:
    assert enumerate_view(RandomizedResponse(1.0), zeros(3), view="user").delta_at(1) == 0
    assert enumerate_view(RandomizedResponse(1.0), zeros(3), view="wire").delta_at(1) > 0
    assert (
        enumerate_view(RandomizedResponse(1.0), zeros(3), view="wire", channels="encrypted").delta_at(1) == 0
    )


@pytest.mark.slow
def test_other_clusters_do_not_matter() -> None:
    apart = enumerate_view(QUARTER, zeros(4, cluster=[5, 5, 5, 9]))
    assert apart.delta_at(1) == enumerate_view(QUARTER, zeros(3)).delta_at(1)
    assert enumerate_view(QUARTER, zeros(4, cluster=[5, 5, 5, 9]), view="user:3").delta_at(1) == 0


@dataclass(frozen=True)
class SealedShuffle(Protocol):
    """Noisy labels, sealed for the learner, through a shuffler; ``honest`` permutes."""

    alpha: float
    honest: bool = True

    envelope = Message("user", "shuffler", "hands in a sealed noisy label", sealed_for="learner", y=bool)
    batch = Message(
        "shuffler", "learner", "passes the labels on in another order", sealed_for="learner", y=bool
    )

    def user(self, me: Party) -> Rounds:
        yield self.envelope(y=me.y ^ me.draw.bernoulli("flip", self.alpha))

    def shuffler(self, me: Party) -> Rounds:
        envelopes = yield self.envelope.receive()
        order = me.draw.permutation("order", each=envelopes)
        yield self.batch(y=envelopes.y.take(order) if self.honest else envelopes.y)

    def learner(self, me: Party) -> Rounds:
        batch = yield self.batch.receive()
        return {"y": batch.y}


def test_a_sealed_shuffle() -> None:
    """The shuffler alone learns nothing; the learner, the sum; both together, or without a permutation, all."""
    shuffle = SealedShuffle(0.25)
    assert enumerate_view(shuffle, zeros(3), view="shuffler").delta_at(1) == 0
    assert enumerate_view(shuffle, zeros(3), view="wire").delta_at(1) == 0
    sums = [Fraction(math.comb(2, k) * 3 ** (2 - k), 16) for k in range(3)]  # of the two others
    kept = [sums[0] * 3, sums[0] + sums[1] * 3, sums[1] + sums[2] * 3, sums[2]]  # K with her label 0, times 4
    turned = [sums[0], sums[0] * 3 + sums[1], sums[1] * 3 + sums[2], sums[2] * 3]
    by_hand = sum(max(Fraction(0), p - q) for p, q in zip(kept, turned, strict=True)) / 4
    assert enumerate_view(shuffle, zeros(3)).delta_at(1) == by_hand
    for broken, view in ((shuffle, "shuffler+learner"), (SealedShuffle(0.25, honest=False), "learner")):
        assert enumerate_view(broken, zeros(3), view=view).delta_at(1) == Fraction(1, 2) > by_hand


@dataclass(frozen=True)
class Endless(Protocol):
    """Adds noise without an end."""

    noisy = Message("user", "learner", "a label with noise", y=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.noisy(y=me.y + me.draw.laplace("noise", 2))

    def learner(self, me: Party) -> Rounds:
        yield self.noisy.receive()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"population": zeros(7)}, "7 users: at most 6"),
        ({"view": "teacher"}, "unknown part 'teacher'; parts are learner, user, user:17"),
        ({"view": "user:0"}, "user 0 is the one it learns about"),
        ({"view": "learner+user:9"}, "its users must be among"),
        ({"view": "3*user"}, "3 users beside those named; there are only 2"),
        ({"change": 3}, "change = 3: users are 0 to 2"),
        ({"to": 0}, "must be another label"),
        ({"channels": "pigeon"}, "channels = 'pigeon': must be one of plain, encrypted"),
        ({"protocol": Endless()}, "draw 'noise' of role 'user' is Laplace: too many outcomes"),
    ],
)
def test_refusals(arguments: dict[str, Any], words: str) -> None:
    setting: dict[str, Any] = {"protocol": QUARTER, "population": zeros(3)} | arguments
    with pytest.raises((InputError, ProtocolError)) as caught:
        enumerate_view(setting.pop("protocol"), setting.pop("population"), **setting)
    assert words in str(caught.value)


def test_coalitions_are_read() -> None:
    mixed = Coalition.parse("learner + user:17+2*user+wire", ("user", "learner"))
    assert mixed == Coalition(frozenset({"learner"}), frozenset({17}), 2, True)
    assert mixed.named([3, 17, 40, 50]).users == {17, 3, 40}
