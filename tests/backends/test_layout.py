"""Into how many blocks users are cut."""

from __future__ import annotations

import pytest

from p2p_sim.backends.layout import blocks_of

MOST = 1000


@pytest.mark.parametrize(
    ("users", "blocks"),
    [(1, 1), (1000, 1), (1001, 2), (2001, 4), (4001, 8), (16_000, 16), (32_000, 16), (32_001, 20)],
)
def test_many_users_are_cut_into_larger_blocks_but_no_fewer_than_16(users: int, blocks: int) -> None:
    assert blocks_of(users, MOST) == blocks


def test_more_users_are_never_cut_into_fewer_blocks_nor_into_ones_of_more_than_twice_the_size() -> None:
    several = [blocks_of(users, MOST) for users in range(1, 100_000, 37)]
    assert several == sorted(several)
    assert all(
        users <= 2 * MOST * blocks for users, blocks in zip(range(1, 100_000, 37), several, strict=True)
    )
