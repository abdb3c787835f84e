"""Shuffles: every view's law against the program itself, enumerated draw by draw for three users."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, ProtocolError, privacy
from protocols import EncryptedShuffle, PeerPermutation, peer_permutation

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ways_once")]

RATIOS = (Fraction(1), Fraction(5, 4), Fraction(3))


def agree(protocol: Any, view: str, ones: int, channels: str = "plain", size: int = 3) -> None:
    """Compare a view's law with the enumerated program; users are ``ones`` with label 1, the victim, others.

    In this order one composition's second world is the first of the next, and is followed once.
    """
    people = Population.from_arrays(y=np.arange(size) < ones)
    truth = privacy.enumerate_view(protocol, people, view=view, change=ones, channels=channels)
    profile = privacy.profile(protocol, view, cluster_size=size, composition=ones, channels=channels)
    assert profile.basis == "exact"
    for ratio in RATIOS:
        exact = float(truth.delta_at(ratio))
        low, value, high = profile.delta_bracket(math.log(ratio))
        assert value == pytest.approx(exact, rel=1e-11, abs=1e-15)
        assert low - 1e-15 <= exact <= high + 1e-15


ONE, CROWD, TWO = (
    EncryptedShuffle(1.0),
    EncryptedShuffle(2.0, over="everybody"),
    EncryptedShuffle(1.0, shufflers=2),
)
SHUFFLED = [
    *((ONE, view, ones) for view in ("learner", "learner+shuffler2", "learner+wire") for ones in (0, 1)),
    *((ONE, view, 0) for view in ("shuffler", "user:2", "wire", "shuffler+user:2+wire", "shuffler+learner+wire")),
    (ONE, "learner+user:2", 1), (ONE, "learner+wire+user:2", 0), (ONE, "learner+user:1+user:2", 0),
    (ONE, "shuffler+learner+user:2", 1),
    (CROWD, "learner", 1), (CROWD, "learner+user:2", 0), (CROWD, "shuffler+learner", 0), (CROWD, "shuffler", 1),
    *((TWO, view, 0) for view in ("learner", "shuffler2+learner", "shuffler+learner", "shuffler+shuffler2+wire")),
    (TWO, "shuffler+shuffler2+learner", 0), (TWO, "shuffler2+learner+wire+user:2", 0),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "view", "ones"), SHUFFLED)
def test_encrypted_shuffle(protocol: EncryptedShuffle, view: str, ones: int) -> None:
    agree(protocol, view, ones)
    if "wire" in view and protocol is ONE:
        agree(protocol, view, ones, "encrypted")


def test_encrypted_shuffle_of_three_labels() -> None:
    protocol = EncryptedShuffle(1.0, labels=3)
    for rest in ([0, 0], [1, 0], [1, 2]):
        people = Population.from_arrays(y=np.array([0, *rest], np.uint8))
        truth = privacy.enumerate_view(protocol, people, change=0, to=1)
        ones = rest.count(1)
        one = privacy.profile(protocol, cluster_size=3, composition=ones)
        worst = privacy.profile(protocol, cluster_size=3)
        for ratio in RATIOS:
            exact = float(truth.delta_at(ratio))
            assert exact <= worst.delta_bracket(math.log(ratio)).upper + 1e-15
            if 2 not in rest:
                assert one.delta(math.log(ratio)) == pytest.approx(exact, rel=1e-11, abs=1e-15)
    both = privacy.enumerate_view(protocol, people, view="shuffler+learner", change=0)
    local = privacy.profile(protocol, "shuffler+learner", cluster_size=3)
    assert float(both.delta_at(2)) == pytest.approx(local.delta(math.log(2)), rel=1e-11)


@pytest.fixture
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six seeds, as uniform over the orders of up to three users as 2^62 seeds and a random function are."""
    monkeypatch.setattr(peer_permutation, "SHARES", 6)
    monkeypatch.setattr(peer_permutation, "agreed_order", one_of_few)


def one_of_few(seed: int, size: int) -> np.ndarray:
    """The order of one of six seeds; one function for all tests, so that they share the ways that they follow."""
    return np.array(orders(size)[seed])


def orders(size: int) -> list[tuple[int, ...]]:
    """Return six orders, each of ``size`` users equally often."""
    every = list(itertools.permutations(range(size)))
    return every * (6 // len(every))


PERMUTED = [  # users, view, ones among the honest others, channels
    (3, "learner", 1, "plain"), (3, "user:2", 0, "plain"), (3, "wire+user:2", 0, "encrypted"),
    (3, "learner+wire", 1, "encrypted"), (2, "learner", 1, "plain"), (2, "user:1", 0, "plain"),
    (2, "learner+user:1", 0, "plain"), (2, "wire", 1, "plain"), (2, "wire", 0, "encrypted"),
    (2, "wire+user:1", 0, "encrypted"), (2, "wire+user:1", 0, "plain"), (2, "learner+wire", 1, "plain"),
    (1, "learner", 0, "plain"), (1, "wire", 0, "plain"), (1, "learner+wire", 0, "encrypted"),
]  # fmt: skip


@pytest.mark.parametrize(("size", "view", "ones", "channels"), PERMUTED)
@pytest.mark.usefixtures("few_seeds")
def test_peer_permutation(size: int, view: str, ones: int, channels: str) -> None:
    agree(PeerPermutation(0.25), view, ones, channels, size)


def test_the_shipped_number_of_seeds_is_too_much_to_enumerate() -> None:
    people = Population.from_arrays(y=np.array([False, True]))
    with pytest.raises(ProtocolError, match=r"draw 'share' has 4611686018427387904 outcomes.*audit instead"):
        privacy.enumerate_view(PeerPermutation(0.25), people)
