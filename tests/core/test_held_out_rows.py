"""Rows that test a model: those with the smallest random words, found without sorting all of them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from p2p_sim.core import held_out_rows
from p2p_sim.core.errors import InputError
from p2p_sim.core.held_out_rows import HeldOutRows
from p2p_sim.core.random_words import stream, words


def sorted_mask(rows: int, share: float, seed: int) -> Any:
    """The rows with the smallest words, by a stable sort of all of them."""
    chosen = np.zeros(rows, np.bool_)
    drawn = words(seed, stream("split", "test", 0), 0, rows)
    chosen[np.argsort(drawn, kind="stable")[: round(rows * share)]] = True
    return chosen


@pytest.mark.parametrize(
    ("rows", "share", "seed"),
    [
        (2, 0.5, 0),
        (7, 0.2, 1),
        (1000, 0.001, 2),
        (1000, 0.999, 3),
        (200_001, 0.2, 2**64 - 1),
        (150_000, 1e-5, 5),
    ],
)
def test_they_are_those_of_a_sort(rows: int, share: float, seed: int) -> None:
    held_out, expected = HeldOutRows(rows, share, seed), sorted_mask(rows, share, seed)
    assert np.array_equal(held_out.mask(0, rows), expected)
    assert (held_out.size, held_out.users) == (int(expected.sum()), int((~expected).sum()))
    low, high = rows // 3, rows - rows // 4
    assert np.array_equal(held_out.mask(low, high), expected[low:high])
    assert np.array_equal(held_out.user_rows(), np.flatnonzero(~expected))


@pytest.mark.parametrize("block", [1, 10, 64, 10_000])
def test_users_find_their_rows(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out_rows, "_BLOCK", block)
    rows = np.flatnonzero(~sorted_mask(997, 0.7, 4))
    held_out = pickle.loads(pickle.dumps(HeldOutRows(997, 0.7, 4)))
    assert "_found" in vars(held_out)  # and need not be found once more
    for low, high in ((0, 0), (0, 1), (0, 299), (17, 203), (298, 299)):
        first, end = held_out.rows_of(low, high)
        found = np.flatnonzero(~held_out.mask(first, end)) + first
        assert np.array_equal(found, rows[low:high])


def test_a_word_that_is_not_where_it_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on, further and further around; and equal words come by row."""
    monkeypatch.setattr(held_out_rows, "_WIDE", 0)
    drawn = words(0, stream("split", "test", 0), 0, 1000)
    for word in (drawn >> np.uint64(4), drawn | np.uint64(2**64 - 2**60), drawn >> np.uint64(60)):
        monkeypatch.setattr(
            held_out_rows, "words", lambda _seed, _stream, low, count, word=word: word[low : low + count]
        )
        expected = np.zeros(1000, np.bool_)
        expected[np.argsort(word, kind="stable")[:300]] = True
        assert np.array_equal(HeldOutRows(1000, 0.3, 0).mask(0, 1000), expected)


@pytest.mark.parametrize(
    ("rows", "share"), [(10, 0.0), (10, 1.0), (10, -1.0), (10, 0.01), (10, 0.99), (10, float("nan"))]
)
def test_no_part_is_empty(rows: int, share: float) -> None:
    with pytest.raises(
        InputError, match=r"test share .* of 10 rows leaves \d+ test rows; give a share between 0 and 1"
    ):
        HeldOutRows(rows, share, 0)
