"""Bags: how users are divided, against a plain loop, in blocks and in parts of a population."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2p_sim import InputError
from p2p_sim.core.groups import clusters
from p2p_sim.network.bags import Ring, bag_numbers, bags_of, smallest
from protocols import LabelProportions

CASES = {
    "one cluster": np.zeros(23, int),
    "in order": np.repeat([0, 1, 2, 3, 4], [1, 7, 4, 11, 3]),
    "scattered": np.arange(40) * 7 % 5 * 10,
    "of one user": np.arange(9),
}


def by_hand(labels: Any, size: int) -> list[int]:
    numbers, first = [0] * len(labels), 0
    for label in sorted(set(labels.tolist())):
        users = np.flatnonzero(labels == label).tolist()
        bags = max(1, len(users) // size)
        for place, user in enumerate(users):
            numbers[user] = first + min(place // size, bags - 1)
        first += bags
    return numbers


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("labels", CASES.values(), ids=CASES.keys())
def test_bags_are_those_of_a_plain_loop(labels: Any, size: int) -> None:
    members, ids = clusters(labels), np.arange(len(labels))
    right = by_hand(labels, size)
    assert bag_numbers(members, ids, size).tolist() == right
    for cut in (1, len(labels) // 2):
        parts = [bag_numbers(members.block(a, b), ids[a:b], size) for a, b in ((0, cut), (cut, len(labels)))]
        assert np.concatenate(parts).tolist() == right
    some = ids[::3]
    assert bag_numbers(members.pick(some), some, size).tolist() == np.array(right)[::3].tolist()
    assert bag_numbers(members.block(0, 0), ids[:0], size).tolist() == []


def test_the_last_bag_takes_the_rest() -> None:
    for users in range(1, 60):
        sizes = np.bincount(bag_numbers(clusters(np.zeros(users, int)), np.arange(users), 8))
        assert len(sizes) == bags_of(users, 8)
        assert sizes.min() == smallest(users, 8) == sizes[0]
        assert sizes.max() < 16
        assert users < 8 or sizes.min() >= 8


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", 2**31])
def test_other_sizes_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="bag_size"):
        LabelProportions(value)


@pytest.mark.parametrize("degree", [2, 4, 10])
def test_rings_are_regular_both_ways_and_within_bags(degree: int) -> None:
    rng = np.random.default_rng(degree)
    bag = np.sort(rng.integers(0, 6, 50))
    ring = Ring.of(bag, rng.permutation(50), degree)
    size = np.bincount(bag)[bag]
    assert np.bincount(ring.owner, minlength=50).tolist() == np.minimum(size - 1, degree).tolist()
    assert (bag[ring.owner] == bag[ring.peer]).all()
    assert (ring.owner != ring.peer).all()
    assert len(set(zip(ring.owner.tolist(), ring.peer.tolist(), strict=True))) == len(ring.owner)
    assert (ring.owner[ring.back] == ring.peer).all()
    assert (ring.peer[ring.back] == ring.owner).all()
    for user in range(50):
        mine = np.sort(ring.place[ring.owner == user])
        assert mine.tolist() == list(range(1, len(mine) + 1))


def test_another_order_makes_another_ring() -> None:
    bag = np.zeros(20, int)
    one, two = (Ring.of(bag, np.random.default_rng(i).permutation(20), 4) for i in (1, 2))
    assert set(zip(one.owner, one.peer, strict=True)) != set(zip(two.owner, two.peer, strict=True))
