"""Agreed permutations and shuffles are uniform; broken twins are not."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import Message, Protocol
from protocols import EncryptedShuffle, PeerPermutation, peer_permutation
from tests.statistical import chi

pytestmark = pytest.mark.slow

ORDERS = dict.fromkeys(permutations(range(4)), Fraction(1, 24))
WORLDS = 20_000


def orders(seeds: np.ndarray) -> dict[tuple[int, ...], int]:
    return chi.tally(*np.array([peer_permutation.agreed_order(int(seed), 4) for seed in seeds]).T)


def test_seeds_give_uniform_orders() -> None:
    assert chi.follows(orders(np.arange(WORLDS)), ORDERS)
    assert chi.follows(orders(np.arange(WORLDS) * (2**62 // WORLDS)), ORDERS)


def test_few_seeds_do_not() -> None:
    assert not chi.follows(orders(np.arange(WORLDS) % 100), ORDERS)


def permuted(protocol: Protocol, seed: int = 3) -> dict[tuple[int, ...], int]:
    """To whom the labels of each cluster of four went."""
    people = Population.synthetic(users=4 * WORLDS, cluster_size=4, seed=1)
    labels = p2p_sim.run(protocol, people, seed=seed, trace="full").messages("label")
    to = np.empty(4 * WORLDS, np.int64)
    to[labels["sender"]] = labels["recipient"] % 4
    return chi.tally(*to.reshape(WORLDS, 4).T)


@dataclass(frozen=True)
class OneHonest(Protocol):
    """Of four users only the last contributes anything; the others say 0."""

    alpha: float

    share = Message("user", "user", "contributes to the seed", sealed_for="user", word=np.uint64)
    label = Message("user", "user", "hands the noisy label on", y_hat=bool)
    everybody_lies: bool = False

    def user(self, me):
        word = me.draw.below("share", peer_permutation.SHARES).astype(np.uint64)
        word[me.id % 4 < (4 if self.everybody_lies else 3)] = 0
        shares = yield self.share(to=me.all_of(me.cluster), word=word)
        to = peer_permutation.successors(me.cluster, me.id, shares.word.sum())
        yield self.label.reply(shares.where(shares.sender == to), y_hat=me.y)


def test_clusters_permute_uniformly() -> None:
    assert chi.follows(permuted(PeerPermutation(0.1)), ORDERS)


def test_one_honest_contribution_is_enough() -> None:
    assert chi.follows(permuted(OneHonest(0.1)), ORDERS)


def test_none_is_not() -> None:
    assert not chi.follows(permuted(OneHonest(0.1, everybody_lies=True)), ORDERS)


def arrived(size: int, worlds: int, shufflers: int = 1, seed: int = 3) -> np.ndarray:
    """The order in which the reports of each cluster arrive, a row a cluster; labels tell users apart."""
    people = Population.from_arrays(
        y=np.arange(worlds * size) % size, cluster=np.arange(worlds * size) // size
    )
    protocol = EncryptedShuffle(float("inf"), labels=size, shufflers=shufflers)
    got = p2p_sim.run(protocol, people, seed=seed, digest=False).output("learner")
    return got["y"][np.argsort(got["cluster"], kind="stable")].reshape(worlds, size)


@pytest.mark.parametrize("shufflers", [1, 2, 3])
def test_reports_of_a_cluster_come_in_any_order(shufflers: int) -> None:
    assert chi.follows(chi.tally(*arrived(4, WORLDS, shufflers).T), ORDERS)


@pytest.mark.parametrize("shufflers", [1, 3])
def test_whose_report_comes_first_is_uniform(shufflers: int) -> None:
    """Each of 250 labels is its owner: the first to arrive is anybody, as is the last.

    Everybody is shuffled at once, so a world is a run: as many as leave 200 to a quarter.
    """
    people = Population.from_arrays(y=np.arange(250))
    protocol = EncryptedShuffle(float("inf"), labels=250, over="everybody", shufflers=shufflers)
    runs = [
        p2p_sim.run(protocol, people, seed=seed, digest=False).output("learner")["y"] for seed in range(900)
    ]
    for place in (0, 100, 249):
        quarter = [int(run[place]) // 63 for run in runs]
        law = [Fraction(63, 250)] * 3 + [Fraction(61, 250)]
        assert chi.follows(np.bincount(quarter, minlength=4).tolist(), law)


def far_apart(orders: np.ndarray) -> bool:
    """Whether the place of user 0's report tells nothing of that of user 1's."""
    place = np.argsort(orders, axis=1)[:, :2]
    gap = (place[:, 1] - place[:, 0]) % 16
    return chi.follows(np.bincount(gap, minlength=16)[1:].tolist(), [Fraction(1, 15)] * 15)


def test_neighbours_are_torn_apart() -> None:
    assert far_apart(arrived(16, WORLDS))


def test_neighbours_who_stay_together_are_found() -> None:
    """A twin that turns the order round, and no more, in one cluster of ten."""
    orders = arrived(16, WORLDS)
    orders[::10] = (orders[::10, :1] + np.arange(16)) % 16
    assert not far_apart(orders)
