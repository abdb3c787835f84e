"""The compiled inner loops equal the numpy ones bit for bit, and both equal plain Python where that is cheap."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from p2p_sim.core import exact, kernels_numba, kernels_numpy
from tests.exact import oracle

BOTH = pytest.mark.parametrize("module", [kernels_numpy, kernels_numba], ids=("plain", "kernels"))
SEEDS = (0, 41, 1 << 63, (1 << 64) - 1)
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 63, 1000)
STARTS = (0, 1, 2, 3, 4, 5, 999, 2**31 - 1008)
THRESHOLDS = (0, 1, 2**32, 2**63, 2**64 - 2**11, 2**64 - 1, 2**64)
ROWS = 2**31 - 1  # as many users as there can be


def rng() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(2026))


def some_words(count: int) -> np.ndarray:
    drawn = rng().integers(0, 2**64, count, dtype=np.uint64)
    drawn[: min(count, 3)] = np.array([0, 2**64 - 1, 2**63], np.uint64)[:count]
    return drawn


def locked(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    for array in arrays:
        array.flags.writeable = False
    return arrays


def same(one: np.ndarray, other: np.ndarray) -> None:
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


def test_both_modules_offer_the_same_functions():
    assert set(kernels_numpy.__all__) == set(kernels_numba.__all__)
    public = {
        name
        for name, value in vars(kernels_numpy).items()
        if callable(value) and name in kernels_numpy.__all__
    }
    assert public == set(kernels_numpy.__all__) - {"BLOCK"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("stream", [5, (1 << 64) - 1])
def test_words(seed, stream):
    for start in STARTS:
        for count in SIZES:
            same(
                kernels_numba.words(seed, stream, start, count),
                kernels_numpy.words(seed, stream, start, count),
            )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_bernoulli(seed, threshold):
    for start in STARTS:
        for count in SIZES:
            flips = kernels_numba.bernoulli(seed, 1 << 63, start, count, threshold)
            same(flips, kernels_numpy.bernoulli(seed, 1 << 63, start, count, threshold))
            same(
                flips,
                np.array(
                    [w < threshold for w in kernels_numpy.words(seed, 1 << 63, start, count).tolist()],
                    np.bool_,
                ),
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_words_below_are_words_taken_below(seed):
    for start in STARTS:
        for count in (*SIZES, 1025):  # tiles of 512
            for owner in (0, 1, ROWS):
                drawn = kernels_numpy.words(seed, 1 << 63, start, count, owner)
                same(kernels_numba.words(seed, 1 << 63, start, count, owner), drawn)
                for limit in (
                    np.uint64(3),
                    *locked(np.arange(1, count + 1, dtype=np.uint64) << np.uint64(31)),
                ):
                    expected = kernels_numpy.below(drawn, limit)
                    for module in (kernels_numpy, kernels_numba):
                        same(module.words_below(seed, 1 << 63, start, count, limit, owner), expected)


@BOTH
def test_bernoulli_thresholds_cut_exactly_at_the_word(module):
    for word in kernels_numpy.words(9, 9, 4, 5).tolist():
        at, above = (module.bernoulli(9, 9, 4, 5, threshold).tolist() for threshold in (word, word + 1))
        assert sum(above) - sum(at) == 1, "only the word itself lies between"


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_words_at_and_item_words(dtype):
    for size in (0, 1, 5, 300):
        parties, slots = locked(
            rng().integers(0, ROWS, size).astype(dtype), rng().integers(0, 2**31 - 1, size).astype(dtype)
        )
        for seed in SEEDS:
            same(
                kernels_numba.words_at(seed, 1 << 63, parties), kernels_numpy.words_at(seed, 1 << 63, parties)
            )
            same(
                kernels_numba.item_words(seed, 7, parties, slots),
                kernels_numpy.item_words(seed, 7, parties, slots),
            )


@BOTH
@pytest.mark.parametrize("times", [1, 2, 3, 4, 5, 9])
def test_several_words_are_item_words_in_their_order(module, times):
    for size in (0, 1, 7, 513):  # tiles of 512
        (parties,) = locked(rng().integers(0, ROWS, size).astype(np.int64))
        holder, slots = np.repeat(parties, times), np.tile(np.arange(times), size)
        same(
            module.several_words(SEEDS[-1], 1 << 63, parties, times),
            kernels_numpy.item_words(SEEDS[-1], 1 << 63, holder, slots),
        )


@BOTH
@pytest.mark.parametrize(("size", "times"), [(0, 2), (5, 3), (9_001, 2), (3, 9_000)])
def test_several_words_are_picked_as_they_come(module, size, times):
    (parties,) = locked(rng().integers(0, ROWS, size).astype(np.int64))
    table = exact.laplace_thresholds(Fraction(16))[0]
    (worth,) = locked(rng().normal(size=len(table) + 1))
    for owners in (parties, range(ROWS - size, ROWS)):
        words = kernels_numpy.several_words(SEEDS[-1], 7, np.array(owners, np.int64), times)
        picked = np.searchsorted(table, words, side="right")
        same(module.several_picked(table, SEEDS[-1], 7, owners, times), picked)
        same(module.several_looked_up(table, worth, SEEDS[-1], 7, owners, times), worth[picked])


@BOTH
@pytest.mark.parametrize("count", [0, 1, exact.GUIDED - 1, exact.GUIDED, 50_000])
@pytest.mark.parametrize(
    "table",
    [
        np.zeros(0, np.uint64),
        np.array([0, 1, 2, 2**52 - 1, 2**52, 2**52, 2**63, 2**64 - 2, 2**64 - 1], np.uint64),
        exact.laplace_thresholds(Fraction(16))[0],
    ],
    ids=("empty", "edges", "laplace"),
)
def test_pick_counts_thresholds_up_to_the_word(module, table, count):
    drawn = some_words(count)
    at = np.concatenate([table, table - np.uint64(1), table + np.uint64(1)])[:count]
    drawn[: len(at)] = at
    found = module.pick(table, *locked(drawn))
    same(found, np.searchsorted(table, drawn, side="right"))


NUMBERS = {
    "ties": lambda n: (np.arange(n) - n // 2) / 2,
    "any": lambda n: rng().normal(size=n) * 50,
    "bool": lambda n: np.arange(n) % 3 == 0,
    "float32": lambda n: rng().normal(size=n).astype(np.float32),
    "integers": lambda n: np.arange(n, dtype=np.int16) - n // 2,
}


@BOTH
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("resolution", [1.0, 2**-7, 0.1])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_multiples_are_the_nearest_integers_and_even_at_a_tie(module, name, resolution, dtype):
    least, most = np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2**50)
    for shape in ((0,), (), (40,), (20, 2), (20_001, 2)):  # parts of 16,384
        (values,) = locked(np.asarray(NUMBERS[name](int(np.prod(shape)))).reshape(shape))
        expected = [round(value / resolution) for value in values.astype(float).ravel().tolist()]
        found = module.multiples(values, resolution, least, most, np.dtype(dtype))
        if all(least <= multiple <= most for multiple in expected):
            same(found, np.array(expected, dtype).reshape(shape))
        else:
            assert found is None


@BOTH
@pytest.mark.parametrize("dtype", [np.int32, np.uint16])
def test_multiples_end_where_the_range_does(module, dtype):
    most = np.iinfo(dtype).max
    for value in (most, most + 0.49, most + 0.51, most + 1, -1, -0.5, np.nan, np.inf, -np.inf, 1e300):
        values = np.zeros(9)
        values[7] = value
        found = module.multiples(values, 1.0, 0, most, np.dtype(dtype))
        assert (found is None) == (value not in (most, most + 0.49, -0.5)), value


@BOTH
@pytest.mark.parametrize("width", [1, 2, 3, 3_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_chosen_by_a_mask_and_added(module, width, dtype):
    count = 20 if width > 9 else 5_000
    one, other = (rng().permuted(rng().normal(size=(count, width)).astype(dtype), axis=i) for i in (0, 1))
    mask = rng().integers(0, 2, count).astype(np.bool_)
    locked(one, other, mask)
    chosen = np.where(mask[:, None], one, other)
    for resolution, dtype_out in ((2**-16, np.int32), (2**-4, np.int16), (0.1, np.int32)):
        found = module.choose_multiples(mask, one, other, resolution, -(2**20), 2**20, np.dtype(dtype_out))
        same(found, np.rint(chosen.astype(float) / resolution).astype(dtype_out))
    assert module.choose_multiples(mask, one, other, 2**-16, 0, 2**20, np.dtype(np.int32)) is None
    table, which = locked(rng().normal(size=(7, width)), rng().integers(0, 7, count))
    for places in (which, which.astype(np.uint8)):
        out = other.astype(float)
        module.add_rows(table, places, out)
        same(out, other.astype(float) + table[which])


LIMITS = (1, 2, 3, 10, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**53 + 1, 2**62, 2**63 - 1)


@BOTH
@pytest.mark.parametrize("limit", LIMITS)
def test_below_one_limit_is_the_high_half_of_a_big_integer_product(module, limit):
    (drawn,) = locked(some_words(100))
    expected = [oracle.below(word, limit) for word in drawn.tolist()]
    for given in (np.uint64(limit), np.full(100, limit, np.uint64), np.broadcast_to(np.uint64(limit), 100)):
        values = module.below(drawn, given)
        assert values.dtype == np.int64
        assert values.tolist() == expected
    assert max(expected) < limit


@BOTH
def test_below_a_column_of_limits(module):
    for chosen in (LIMITS, LIMITS[:6]):  # with and without limits beyond 32 bits
        drawn, limits = locked(some_words(70), np.resize(np.array(chosen, np.uint64), 70))
        expected = [oracle.below(w, m) for w, m in zip(drawn.tolist(), limits.tolist(), strict=True)]
        assert module.below(drawn, limits).tolist() == expected
    assert module.below(drawn[:0], limits[:0]).tolist() == []


WEIGHTS = {
    "one": [[1], [7]],
    "two": [[1, 1], [0, 5], [5, 0], [2**62, 2**62 - 1]],
    "three": [[3, 1, 2], [0, 0, 1], [2**40, 1, 2**40]],
    "many": [[(7 * i + row) % 5 for i in range(256)] for row in range(3)],
}


@BOTH
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_weighted_falls_where_the_integer_below_the_total_does(module, weights):
    sums, rows = locked(
        np.cumsum(np.array(weights, np.int64), axis=1).view(np.uint64),
        rng().integers(0, len(weights), 300).astype(np.int32),
    )
    (drawn,) = locked(some_words(300))
    found = module.weighted(drawn, sums, rows)
    expected = [
        oracle.weighted(w, weights[row]) for w, row in zip(drawn.tolist(), rows.tolist(), strict=True)
    ]
    same(found, np.array(expected, np.uint8))
    same(module.weighted(drawn[:0], sums[:0], rows[:0]), found[:0])


@pytest.mark.parametrize("seed", SEEDS)
def test_words_weighted_are_words_weighted(seed):
    sums = np.cumsum(np.array(WEIGHTS["three"], np.int64), axis=1).view(np.uint64)
    for start in STARTS:
        for count in (*SIZES, 2049, 4500):  # tiles of 2,048
            rows = rng().integers(0, 3, count).astype(np.int32)
            for owner in (0, ROWS):
                drawn = kernels_numpy.words(seed, 1 << 63, start, count, owner)
                expected = kernels_numpy.weighted(drawn, sums, rows)
                for module in (kernels_numpy, kernels_numba):
                    same(module.words_weighted(seed, 1 << 63, start, sums, rows, owner), expected)


@BOTH
@pytest.mark.parametrize("count", [0, 1, 2, 7, 500])
def test_contingency(module, count):
    groups, values = locked(
        rng().integers(0, 6, count).astype(np.int32), rng().integers(0, 3, count).astype(np.uint8)
    )
    pairs = list(zip(groups.tolist(), values.tolist(), strict=True))
    expected = [[pairs.count((group, value)) for value in range(3)] for group in range(7)]
    same(module.contingency(groups, values, (7, 3)), np.array(expected, np.int64))


@BOTH
def test_member_is_the_kth_of_the_group(module):
    starts = np.array([0, 1, 4, 4, 9], np.int64)  # a group of one, an empty one
    order = np.array([6, 0, 3, 8, 1, 2, 4, 5, 7], np.int32)
    codes = np.resize(np.array([0, 1, 3, 3], np.int32), 200)
    drawn, codes, starts, order = locked(some_words(200), codes, starts, order)
    place = [
        starts[c] + oracle.below(w, int(starts[c + 1] - starts[c]))
        for w, c in zip(drawn.tolist(), codes, strict=True)
    ]
    same(module.member(drawn, codes, starts, None), np.array(place, np.int32))
    same(module.member(drawn, codes, starts, order), order[place])
    assert module.member(drawn[:0], codes[:0], starts, order).tolist() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_words_member_are_members_by_words(seed):
    starts = np.array([0, 1, 4, 9], np.int64)
    (order,) = locked(np.array([6, 0, 3, 8, 1, 2, 4, 5, 7], np.int32))
    for start in STARTS:
        for count in (*SIZES, 2049, 4500):  # tiles of 2,048
            codes = rng().integers(0, 3, count).astype(np.int32)
            for owner, rows in ((0, None), (ROWS, None), (0, order)):
                drawn = kernels_numpy.words(seed, 1 << 63, start, count, owner)
                expected = kernels_numpy.member(drawn, codes, starts, rows)
                for module in (kernels_numpy, kernels_numba):
                    same(module.words_member(seed, 1 << 63, start, codes, starts, rows, owner), expected)


@BOTH
def test_member_of_the_largest_population(module):
    drawn = np.array([0, 2**63, 2**64 - 1], np.uint64)
    chosen = module.member(drawn, np.zeros(3, np.int32), np.array([0, ROWS], np.int64), None)
    same(chosen, np.array([0, ROWS // 2, ROWS - 1], np.int32))


@BOTH
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.uint64])
@pytest.mark.parametrize("first", [0, 10, ROWS - 50])
def test_gather(module, dtype, first):
    values, rows = locked(
        rng().integers(0, 2 if dtype == np.bool_ else 120, 50).astype(dtype),
        (first + rng().integers(0, 50, 200)).astype(np.int32),
    )
    same(module.gather(values, rows, first), np.array([values[r - first] for r in rows.tolist()], dtype))
    same(module.gather(values, rows[:0], first), values[:0])


@BOTH
@pytest.mark.parametrize("sizes", [(7,), (0, 5, 0, 13, 1, 0), (1 << 20, 3), (5, 1 << 20, 8)])
def test_a_table_of_parts_is_their_whole(module, sizes):
    for dtype in (np.bool_, np.int32, np.int64):
        parts = [rng().integers(0, 2, size).astype(dtype) for size in sizes]
        whole, backwards = np.concatenate(parts), []

        def each(work, items, done=backwards):
            done += [work(item) for item in reversed(items)]
            return done

        rows = np.arange(len(whole), dtype=np.int32)
        same(module.gather(module.table(parts, each), rows, 0), whole)
        same(module.gather(module.table(parts), rows[::-1].copy(), 0), whole[::-1])


@BOTH
def test_gather_of_vectors_and_of_strided_columns(module):
    (table,) = locked(rng().integers(0, 250, (20, 3)).astype(np.uint8))
    rows = np.array([3, 19, 3, 0], np.int32)
    same(module.gather(table, rows, 0), np.stack([table[r] for r in rows]))
    same(module.gather(table[:, 1], rows, 0), np.array([table[r, 1] for r in rows]))


@BOTH
@pytest.mark.parametrize("first", [0, 10, ROWS - 50])
def test_tally(module, first):
    rows, others = locked(
        *((first + rng().integers(low, 50, 200)).astype(np.int32) for low in (0, 30)),
    )
    spans = range(first + 5, first + 45), range(first + 10, first + 50)
    for one, other in ((rows, others), (rows, None), (spans[0], None), spans, (spans[0], rows[:40])):
        out, expected = np.full(50, 3, np.uint8), [3] * 50
        assert not len(module.tally(one, other, first, out))
        for place, row in enumerate(one):
            expected[row - first] += other is None or row != other[place]
        same(out, np.array(expected, np.uint8))
    assert any(a == b for a, b in zip(rows, others, strict=True))


@BOTH
@pytest.mark.parametrize("before", [0, 1, 255])
def test_tally_beyond_eight_bits(module, before):
    (rows,) = locked(np.repeat(np.array([2, 1, 2, 0], np.int32), [100_000, 65_535, 40_000, 3]))
    out = np.full(4, before, np.uint8)
    around = module.tally(rows, None, 0, out)
    counted = np.bincount(around, minlength=4) * 256 + out
    same(counted, np.array([3, 65_535, 140_000, 0]) + before)


@BOTH
def test_a_tally_that_comes_around_where_no_row_comes_often(module):
    (rows,) = locked(np.arange(7, 107, dtype=np.int32))
    for others in (None, range(7, 107), range(8, 108), np.full(100, 9, np.int32)):
        out = np.full(200, 255, np.uint8)
        around = module.tally(rows, others, 5, out)
        ends = [None] * 100 if others is None else list(others)
        counted = [row - 5 for row, other in zip(rows.tolist(), ends, strict=True) if row != other]
        assert sorted(around.tolist()) == counted
        same(np.flatnonzero(out == 0), np.array(counted, np.int64))


@BOTH
def test_group_is_a_stable_sort(module):
    for parties, count in ((1, 0), (1, 5), (4, 3), (30, 500), (1000, 10)):
        (local,) = locked(rng().integers(0, parties, count).astype(np.int32))
        order, starts = module.group(local, parties)
        assert order.tolist() == sorted(range(count), key=lambda i: (local[i], i))
        assert starts.tolist() == [sum(1 for r in local if r < p) for p in range(parties + 1)]


@BOTH
def test_divide_is_a_stable_sort_by_shard(module):
    for bounds in ([], [10], [3, 10, 17], [0, 30]):
        (to,) = locked(rng().integers(0, 30, 200).astype(np.int32))
        edges = np.array(bounds, np.int64)
        shard = [sum(1 for bound in bounds if row >= bound) for row in to.tolist()]
        order, starts = module.divide(to, edges)
        assert order.tolist() == sorted(range(200), key=lambda i: (shard[i], i))
        assert starts.tolist() == [sum(1 for s in shard if s < p) for p in range(len(bounds) + 2)]


@BOTH
def test_meetings(module):
    first = ROWS - 20
    home = range(first, first + 20)
    away = np.arange(first, first + 20, dtype=np.int32)[::-1].copy()
    away[3] = first + 3
    (away,) = locked(away)
    here = np.arange(first, first + 20, dtype=np.int32)
    expected = sum(int(a) == b for a, b in zip(away, home, strict=True))
    assert expected == 1
    for one, other in ((away, home), (home, away), (away, here), (here, away)):
        assert module.meetings(one, other) == expected
    assert module.meetings(home, home) == 20
    assert module.meetings(home, range(first + 1, first + 21)) == 0
    assert module.meetings(here[::2], away[::2]) == sum(
        a == b for a, b in zip(here[::2], away[::2], strict=True)
    )


COLUMNS = {
    "zero": lambda n: 0,
    "largest": lambda n: (1 << 64) - 1,
    "range": lambda n: range(5, 5 + n),
    "last rows": lambda n: range(ROWS - n, ROWS),
    "bool": lambda n: rng().integers(0, 2, n).astype(np.bool_),
    "uint8": lambda n: rng().integers(0, 256, n).astype(np.uint8),
    "int8": lambda n: rng().integers(-128, 128, n).astype(np.int8),
    "int16": lambda n: rng().integers(-(2**15), 2**15, n).astype(np.int16),
    "uint16": lambda n: rng().integers(0, 2**16, n).astype(np.uint16),
    "int32": lambda n: rng().integers(-(2**31), 2**31, n).astype(np.int32),
    "uint32": lambda n: rng().integers(0, 2**32, n).astype(np.uint32),
    "int64": lambda n: rng().integers(-(2**63), 2**63 - 1, n),
    "uint64": lambda n: rng().integers(0, 2**64, n, dtype=np.uint64),
    "strided bytes": lambda n: rng().integers(0, 256, (n, 3)).astype(np.uint8)[:, 1],
    "strided int32": lambda n: rng().integers(-9, 9, (n, 2)).astype(np.int32)[:, 1],
    "vector": lambda n: rng().integers(0, 2**64, (n, 4), dtype=np.uint64).T[2],
}


def as_integers(column: object, count: int) -> list[int]:
    return [column] * count if isinstance(column, int) else [int(value) for value in column]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("salt", [0, 1 << 63, (1 << 64) - 1])
def test_absorb_one_column(name, salt):
    for count in (0, 1, 2, 50):
        column = COLUMNS[name](count)
        if isinstance(column, np.ndarray):
            locked(column)
        expected = oracle.absorb(salt, [[v] for v in as_integers(column, count)])
        assert kernels_numpy.absorb(salt, [column], count) == expected
        assert kernels_numba.absorb(salt, [column], count) == expected


def test_absorb_all_columns_together_and_their_order():
    count = 60
    columns = [make(count) for make in COLUMNS.values()]
    rows = list(zip(*(as_integers(column, count) for column in columns), strict=True))
    for order in (1, -1):
        expected = oracle.absorb(12345, [row[::order] for row in rows])
        assert kernels_numpy.absorb(12345, columns[::order], count) == expected
        assert kernels_numba.absorb(12345, columns[::order], count) == expected
    assert kernels_numpy.absorb(12345, columns, count) != kernels_numpy.absorb(12345, columns[::-1], count)


@BOTH
def test_what_all_rows_begin_with_alike(module):
    values = rng().integers(0, 2**64, 40, dtype=np.uint64)
    for head in ([0], [0, 0, (1 << 64) - 1], [0, range(40), 0]):
        rows = [[v[i] if isinstance(v, range) else v for v in head] + [int(values[i])] for i in range(40)]
        assert module.absorb(77, [*head, values], 40) == oracle.absorb(77, rows)
    assert module.absorb(77, [5, 6], 40) == oracle.absorb(77, [[5, 6]] * 40), "nothing else"


@pytest.mark.parametrize("count", [4095, 4096, 4097, 9000])
def test_absorb_in_several_cache_blocks(count):
    columns = [make(count) for make in COLUMNS.values()]
    assert kernels_numba.absorb((1 << 64) - 1, columns, count) == kernels_numpy.absorb(
        (1 << 64) - 1, columns, count
    )


@BOTH
def test_absorb_does_not_depend_on_the_order_of_rows(module):
    values, senders = rng().integers(-5, 5, 500).astype(np.int8), np.arange(500, dtype=np.int32)
    shuffled = rng().permutation(500)
    assert module.absorb(3, [senders, values], 500) == module.absorb(
        3, [senders[shuffled], values[shuffled]], 500
    )
    moved = np.roll(values, 1)
    assert module.absorb(3, [senders, values], 500) != module.absorb(3, [senders, moved], 500)
