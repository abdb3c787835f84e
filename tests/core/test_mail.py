"""Columns that meet again in a mailbox: copied only where their blocks do not lie one after the other already."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim.core.mail import _joined
from p2p_sim.core.threads import Threads

WHOLE = np.arange(12, dtype=np.int32)
WHOLE.flags.writeable = False
TABLE = np.arange(24, dtype=np.int64).reshape(12, 2)
TABLE.flags.writeable = False
OTHER = WHOLE.copy()
OTHER.flags.writeable = False


@pytest.mark.parametrize("column", [WHOLE, TABLE, WHOLE.view(np.uint32), WHOLE[2:9]])
def test_blocks_of_one_column_are_not_copied(column):
    joined = _joined([column[:3], column[3:4], column[4:]])
    assert np.shares_memory(joined, WHOLE if column is not TABLE else TABLE)
    assert not joined.flags.writeable
    assert joined.dtype == column.dtype
    np.testing.assert_array_equal(joined, column)
    assert _joined([column]) is column


@pytest.mark.parametrize(
    "parts",
    [
        [WHOLE[3:], WHOLE[:3]],
        [WHOLE[:3], WHOLE[4:]],
        [WHOLE[:3], WHOLE[2:]],
        [WHOLE[:3], OTHER[3:]],
        [WHOLE[:3], WHOLE[3:].view(np.uint32)],
        [WHOLE[:6:2], WHOLE[6:]],
        [TABLE[:3, 1], TABLE[3:, 1]],
        [TABLE[5:], TABLE[:5], TABLE[:0], TABLE[3:7]],
        [WHOLE[:3].copy(), WHOLE[3:].copy()],
    ],
    ids=("order", "gap", "overlap", "other", "type", "stride", "columns", "vectors", "copies"),
)
def test_others_are(parts):
    with Threads(3) as threads:
        for each in (map, threads.map):
            joined = _joined(parts, each)
            assert not any(np.shares_memory(joined, part) for part in parts)
            assert joined.dtype == np.concatenate(parts).dtype
            np.testing.assert_array_equal(joined, np.concatenate(parts))


def test_what_can_be_written_to_is_copied():
    column = np.arange(6)
    for parts in ([column], [column[:3], column[3:]]):
        assert not np.shares_memory(_joined(parts), column)
