"""The words: known answers, numpy's generator, and the pure-Python cipher, at many placements."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from p2p_sim.core import random_words
from tests.exact import oracle

SEEDS = (0, 7, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
STREAMS = (0, 1, 0xDEADBEEF, 1 << 63, (1 << 64) - 1)
LAST = 2**31 - 2  # the largest row

KNOWN = [  # Random123, kat_vectors, philox4x64 with 10 rounds
    (
        [0, 0, 0, 0],
        [0, 0],
        [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B],
    ),
    (
        [0xFFFFFFFFFFFFFFFF] * 4,
        [0xFFFFFFFFFFFFFFFF] * 2,
        [0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0],
    ),
    (
        [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89],
        [0x452821E638D01377, 0xBE5466CF34E90C6C],
        [0xA528F45403E61D95, 0x38C72DBD566E9788, 0xA5A1610E72FD18B5, 0x57BD43B5E52B7FE6],
    ),
]


def numpy_outputs(seed: int, stream: int, counter: list[int], count: int) -> list[int]:
    key = np.array([seed, stream], np.uint64)
    return np.random.Philox(key=key, counter=np.array(counter, np.uint64)).random_raw(count).tolist()


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_the_pure_python_cipher_gives_the_published_answers(counter, key, expected):
    assert oracle.philox(counter, key) == expected


def test_numpy_counts_before_it_encrypts():
    before_zero = [oracle.WORD - 1] * 4
    assert numpy_outputs(0, 0, before_zero, 4) == KNOWN[0][2]
    assert oracle.output(0, 0, before_zero, 0) == KNOWN[0][2][0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", STREAMS)
def test_the_pure_python_cipher_is_numpys(seed, stream):
    for counter in ([0, 0, 0, 0], [0, 6, 0, 0], [oracle.WORD - 1, 3, 0, 0]):
        assert [oracle.output(seed, stream, counter, i) for i in range(9)] == numpy_outputs(
            seed, stream, counter, 9
        )


def test_a_stream_is_numbered_by_the_first_8_bytes_of_sha256_little_endian():
    for role, name, step in (("user", "flip", 0), ("learner", "noise", 12), ("user", "ünïcode", 3)):
        raw = hashlib.sha256(f"{role}/{name}/{step}".encode()).digest()
        assert random_words.stream(role, name, step) == sum(byte << (8 * i) for i, byte in enumerate(raw[:8]))


def test_one_stream_number_is_as_sha256sum_prints_it():
    assert random_words.stream("user", "flip", 0) == 0xFC94533955155634


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", [1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 5, 1023, LAST - 6])
def test_words_are_outputs_of_the_zero_counter(seed, stream, start):
    for count in (0, 1, 2, 6):
        expected = [oracle.output(seed, stream, (0, 0, 0, 0), start + i) for i in range(count)]
        drawn = random_words.words(seed, stream, start, count)
        assert drawn.dtype == np.uint64
        assert drawn.tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_words_at_takes_any_parties_in_any_order(seed, dtype):
    parties = np.array([5, 0, LAST, 5, 2, 3, 4, 1_000_003], dtype)
    expected = [oracle.output(seed, 99, (0, 0, 0, 0), int(u)) for u in parties]
    assert random_words.words_at(seed, 99, parties).tolist() == expected
    assert random_words.words_at(seed, 99, parties[:0]).tolist() == []


@pytest.mark.parametrize("count", [20, 21, 1_500, 1_501, 7_999, 8_000, 8_001, 130_001])
@pytest.mark.parametrize("high", [300_000, LAST])
def test_many_words_are_numpys(count, high):
    """One by one, both products at once, or lane by lane in several parts: each lane a quarter, and one lane alone."""
    start, rng = high - 300_000, np.random.Generator(np.random.Philox(count))
    places = rng.integers(0, 300_001, count)
    stretch = random_words.words(SEEDS[3], STREAMS[3], start, 300_001)
    for some in (places, places // 4 * 4, places[:0]):
        assert np.array_equal(random_words.words_at(SEEDS[3], STREAMS[3], start + some), stretch[some])
    owner, slots = rng.integers(0, 5, count) * high // 4, rng.integers(0, 3_000, count)
    drawn = random_words.item_words(SEEDS[3], STREAMS[3], owner, slots)
    for party in np.unique(owner).tolist():
        own = numpy_outputs(SEEDS[3], STREAMS[3], [0, party + 1, 0, 0], 3_000)
        assert np.array_equal(drawn[owner == party], np.array(own, np.uint64)[slots[owner == party]])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", STREAMS)
def test_item_words_are_outputs_at_counter_0_u_plus_1(seed, stream):
    parties = np.array([0, 0, 1, 17, LAST, LAST, 3, 3], np.int64)
    slots = np.array([0, 1, 0, 6, 3, 4, 2**31, 2**40 + 1], np.int64)
    drawn = random_words.item_words(seed, stream, parties, slots).tolist()
    assert drawn == [
        oracle.output(seed, stream, (0, u + 1, 0, 0), r)
        for u, r in zip(parties.tolist(), slots.tolist(), strict=True)
    ]
    for u, r, word in zip(parties.tolist(), slots.tolist(), drawn, strict=True):
        if r < 10:
            assert word == numpy_outputs(seed, stream, [0, u + 1, 0, 0], r + 1)[r]


@pytest.mark.parametrize("count", [0, 1, 20, 21, 300])
@pytest.mark.parametrize("times", [1, 3, 4, 9])
def test_several_words_are_item_words(count, times):
    parties = np.arange(count) * 12_345 % 1_000_003
    drawn = random_words.several_words(SEEDS[3], STREAMS[3], parties, times)
    assert drawn.dtype == np.uint64
    assert drawn.tolist() == [
        word
        for party in parties.tolist()
        for word in numpy_outputs(SEEDS[3], STREAMS[3], [0, party + 1, 0, 0], times)
    ]


def test_parties_items_names_and_steps_do_not_share_words():
    seen = set(random_words.words(3, random_words.stream("user", "a", 0), 0, 64).tolist())
    for role, name, step in (("user", "a", 1), ("user", "b", 0), ("learner", "a", 0)):
        seen |= set(random_words.words(3, random_words.stream(role, name, step), 0, 64).tolist())
    holders, slots = np.divmod(np.arange(64), 8)
    seen |= set(random_words.item_words(3, random_words.stream("user", "a", 0), holders, slots).tolist())
    assert len(seen) == 5 * 64


def test_high_product_is_the_high_half_of_the_128_bit_product():
    edge = [0, 1, 2, 3, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
    rng = np.random.Generator(np.random.Philox(1))
    values = edge + rng.integers(0, 2**64, 40, dtype=np.uint64).tolist()
    a, b = (grid.ravel() for grid in np.meshgrid(np.array(values, np.uint64), np.array(values, np.uint64)))
    expected = [x * y >> 64 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert random_words.high_product(a, b).tolist() == expected
