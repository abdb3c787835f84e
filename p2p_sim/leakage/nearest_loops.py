"""The compiled loops of ``nearest_neighbours.py``: distances of a block of queries to all rows, and the nearest labels.

Columns of codes are compared a register of bytes at a time, so that a pair of rows costs about a nanosecond.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,assignment"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types

_CODES = types.Array(types.uint8, 2, "C", readonly=True)
_NUMBERS = types.Array(types.float32, 2, "C", readonly=True)
_ONES = types.Array(types.float32, 1, "C", readonly=True)
_PLACES = types.Array(types.int64, 1, "C", readonly=True)
_SHARES = types.Array(types.float64, 2, "C")
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}
_TILE = 2048  # rows whose columns stay in the cache while all queries of a block pass over them


@njit(**_OPTIONS)
def _distances(codes, numbers, ones, row, query_codes, query_numbers, query_ones, matches, out):
    """Fill ``out`` with squared distances of a query to the rows from ``row`` on."""
    size = len(out)
    matches[:size] = np.uint8(0)
    for j in range(len(codes)):
        code, column = query_codes[j], codes[j, row : row + size]
        if code != 0:  # 0: the query has no 1 in this group of columns
            for t in range(size):
                matches[t] += np.uint8(column[t] == code)
    for t in range(size):
        out[t] = (ones[row + t] + query_ones) - np.float32(2) * np.float32(matches[t])
    for j in range(len(numbers)):
        number, values = query_numbers[j], numbers[j, row : row + size]
        for t in range(size):
            difference = values[t] - number
            out[t] += difference * difference


@njit(**_OPTIONS)
def _count(near, who, k, out):
    edge = np.partition(near, k - 1)[k - 1]
    inside, tied = 0, np.zeros(len(out), np.int64)
    for t in range(len(near)):
        if near[t] < edge:
            out[who[t]] += 1.0
            inside += 1
        elif near[t] == edge:
            tied[who[t]] += 1
    left, total = k - inside, tied.sum()
    for label in range(len(out)):
        out[label] = (
            out[label] + (tied[label] * left) / total
        ) / k  # in this order a share of 1 is 1 exactly


@njit(
    types.void(
        _CODES, _NUMBERS, _ONES, _PLACES, _CODES, _NUMBERS, _ONES, _PLACES, types.int64, types.int64,
        _PLACES, _SHARES,
    ),
    **_OPTIONS,
)  # fmt: skip
def shares(
    codes, numbers, ones, labels, sample_codes, sample_numbers, sample_ones, queries, k, rank, owner, out
):  # fmt: skip
    """Fill ``out`` (queries, labels) with the label shares of the k rows nearest to each query, a row's place.

    The ``rank``-th smallest distance to a sample of the rows is a guess of the k-th smallest of all: only rows within
    it are kept, and none of the query's ``owner`` (rows,), unless that is below 0.  Where the guess was too small,
    all are.  Equal distances share what is left.
    """
    rows, many, n = len(ones), len(queries), len(sample_ones)
    matches, tile = np.empty(_TILE, np.uint8), np.empty(_TILE, np.float32)
    sample = np.empty(n, np.float32)
    kept, who = np.empty((many, rows), np.float32), np.empty((many, rows), np.uint16)
    found, limit = np.zeros(many, np.int64), np.empty(many, np.float32)
    query_codes = np.empty((many, len(codes)), np.uint8)
    query_numbers = np.empty((many, len(numbers)), np.float32)
    for i in range(many):
        query_codes[i], query_numbers[i] = codes[:, queries[i]], numbers[:, queries[i]]
        for start in range(0, n, _TILE):
            _distances(
                sample_codes, sample_numbers, sample_ones, start, query_codes[i], query_numbers[i],
                ones[queries[i]], matches, sample[start : min(start + _TILE, n)],
            )  # fmt: skip
        limit[i] = np.partition(sample, rank)[rank] if rank < n else np.float32(np.inf)
    todo = np.arange(many)
    while len(todo):
        for start in range(0, rows, _TILE):
            near = tile[: min(_TILE, rows - start)]
            for i in todo:
                _distances(
                    codes, numbers, ones, start, query_codes[i], query_numbers[i], ones[queries[i]], matches,
                    near,
                )  # fmt: skip
                at, most = found[i], limit[i]
                for t in range(len(near)):
                    if near[t] <= most and (owner[queries[i]] < 0 or owner[start + t] != owner[queries[i]]):
                        kept[i, at], who[i, at] = near[t], labels[start + t]
                        at += 1
                found[i] = at
        for i in todo:
            if found[i] >= k:
                _count(kept[i, : found[i]], who[i, : found[i]], k, out[i])
        todo = todo[found[todo] < k]
        found[todo], limit[todo] = 0, np.float32(np.inf)
