"""The order of words and a server's stretch of its stream, against the definitions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from p2p_sim.core import kernels_numba, kernels_numpy
from p2p_sim.core.random_words import item_words, order, own_words

WORDS = np.random.default_rng(5).integers(0, 2**64, 5000, dtype=np.uint64)
CASES = {
    "random": WORDS,
    "none": WORDS[:0],
    "one": WORDS[:1],
    "equal in their upper half": (WORDS & np.uint64(0xFFFF)) | np.uint64(7 << 40),
    "few values": WORDS >> np.uint64(60),
    "few upper halves": (WORDS & np.uint64(0x30000000F)),
    "all equal": np.full(100, 9, np.uint64),
    "the ends": np.array([2**64 - 1, 0, 2**32, 2**32 - 1, 2**64 - 1, 0], np.uint64),
}


@pytest.mark.parametrize("name", CASES)
def test_order_is_that_of_the_words_and_then_of_the_index(name: str) -> None:
    words = CASES[name]
    assert order(words).tolist() == sorted(range(len(words)), key=lambda i: (int(words[i]), i))


@pytest.mark.parametrize("party", [0, 7, 2**31 - 2])
def test_own_words_are_item_words(party: int) -> None:
    slots = np.arange(1001)
    expected = item_words(2**64 - 1, 2**63 + 5, np.full(1001, party), slots)
    assert np.array_equal(own_words(2**64 - 1, 2**63 + 5, party, 1001), expected)


COUNTS = {
    "nobody": [],
    "one party": [5000],
    "few each": [0, 1, 2, 3, 0, 7, 32, 1, 0],
    "many here and there": [3, 33, 0, 1, 400, 32, 2, 64, 5],
}


@pytest.mark.parametrize("module", [kernels_numpy, kernels_numba], ids=("plain", "kernels"))
@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS.keys())
@pytest.mark.parametrize("name", ["random", "few values", "few upper halves", "equal in their upper half"])
def test_orders_are_those_of_each_party_s_words(module: Any, counts: list[int], name: str) -> None:
    starts = np.array([0, *np.cumsum(counts)], np.int64)
    words = CASES[name][: starts[-1]]
    expected = [
        sorted(range(b - a), key=lambda i, a=a: (int(words[a + i]), i))
        for a, b in itertools.pairwise(starts.tolist())
    ]
    found = module.orders(words, starts)
    assert found.dtype == np.int64
    assert found.tolist() == [rank for ranks in expected for rank in ranks]
