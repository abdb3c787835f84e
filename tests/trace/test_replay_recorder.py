"""Who is watched in a block whose ids follow each other, or do not; where ids stand among others."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from p2p_sim.core.address_book import World
from p2p_sim.core.errors import ProtocolError
from p2p_sim.trace.replay import Recorder

IDS = ([3, 4, 5], [1, 4, 6], [0], [7])


@pytest.mark.parametrize("ids", IDS)
def test_the_watched_of_a_block_are_those_who_are_in_it(ids):
    block = np.array(ids) if ids[-1] - ids[0] + 1 != len(ids) else range(ids[0], ids[-1] + 1)
    for some in (some for size in range(4) for some in combinations(range(9), size)):
        recorder = Recorder({"user": np.array(some, np.int64)})
        told = recorder.watch("user", block)
        here = [one for one in some if one in ids]
        assert (told is None) == (not here)
        if told is not None:
            told("flip", 2, 10 * np.array(ids))
            drawn = recorder.columns()["user/flip/2"]
            assert drawn["party"].tolist() == here
            assert drawn["value"].tolist() == [10 * one for one in here]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("ids", [*IDS, [0, 2**30, 2**31 - 2]])
def test_rows_of_users_are_their_places(ids, dtype):
    world = World(len(ids), np.array(ids), {})
    places = np.random.default_rng(0).integers(0, len(ids), 50)
    assert world.rows(np.array(ids, dtype)[places], "here").tolist() == places.tolist()
    assert world.rows(np.zeros(0, dtype), "here").tolist() == []
    for stranger in (2, 8, 2**31 - 1, 2**31 + 4, 2**32 + 3, 2**40, -1, -(2**32) + 4):
        if not np.iinfo(dtype).min <= stranger <= np.iinfo(dtype).max:
            continue
        with pytest.raises(ProtocolError, match=f"user {stranger} is outside the closed world"):
            world.rows(np.array([ids[0], stranger, ids[0]], dtype), "here")
