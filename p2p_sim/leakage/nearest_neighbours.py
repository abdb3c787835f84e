"""``label_shares``: how often each label occurs among the rows nearest to each row, an estimate of P(y | x).

Exact for any number of rows.  Of many rows, tables become codes and numbers, and compiled loops compare them; what has
more columns goes through scikit-learn's matrix products.
"""

from __future__ import annotations

import math
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from p2p_sim.core import kernels
from p2p_sim.core.errors import InputError
from p2p_sim.core.threads import cores
from p2p_sim.privacy.bounds.bound import whole
from p2p_sim.progress import Asked, reporter_of, showing

Floats = npt.NDArray[np.float64]

SMALL = 10**9
"""Differences of numbers up to which numpy is quick enough: loading the compiled loops takes seconds the first time."""

NARROW = 160
"""Columns, after columns of 0 and 1 are packed, up to which the compiled loops are the faster way."""
_LARGEST = 1e15  # of a feature, so that squared distances fit a float32
_SAMPLE = 4096  # rows that tell about how far the k-th nearest is
_BLOCK = 1 << 24  # distances that are held at once, about


@showing
def label_shares(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    k: int,
    *,
    exclude_self: bool = True,
    groups: npt.NDArray[np.int64] | None = None,
    labels: int | None = None,
    progress: Asked = None,
) -> Floats:
    """Return the share (n, labels) of each label among the ``k`` rows nearest to each row.

    ``x`` (n, d): finite numbers, compared by Euclidean distance in float32; see ``scaled``.  ``y`` (n,): whole numbers
    from 0 to ``labels`` - 1 (default: the largest label).  ``exclude_self``: a row is no neighbour of its own; needed
    wherever the row's own label is guessed.  ``groups`` (n,): rows of one group are no neighbours of each other either.
    Rows at the same distance as the k-th share what places are left, as a
    random choice among them would on average, so that neither the order of rows nor a seed decides.
    Raises InputError for other shapes, labels or k > n (n - 1 with ``exclude_self``, n less the largest group).
    *Source:* Pitfalls 2021, Section 3.  *Assumes:* whoever computes this has the true labels.
    """
    table, codes, count = _checked(x, y, labels)
    n = len(table)
    apart = groups if groups is not None else np.arange(n) if exclude_self else None
    spare = 0 if apart is None else largest_group(apart)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n - spare:
        without = "" if apart is None else f", without {'the row itself' if groups is None else 'its group'}"
        of = f"{n:,} rows{without}"
        raise InputError(f"k = {k!r}: must be a whole number from 1 to {n - spare:,}, of {of}")
    tell = reporter_of(progress) or (lambda *_: None)
    if table.size * n > SMALL or os.environ.get("P2P_SIM_NUMBA") == "1":
        packed = _packed(table)
        compiled = _loops() if packed.columns <= NARROW else None
        if compiled is not None:
            return _by_loops(compiled, packed, codes, int(k), apart, count, tell)
    return _by_blocks(table, codes, int(k), apart, count, tell)


def largest_group(groups: npt.NDArray[np.int64]) -> int:
    """Return how many rows the largest group has, of ``groups`` (n,)."""
    return int(np.unique(groups, return_counts=True)[1].max())


def scaled(x: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return features (n, d) in which columns count alike: numbers with variance 1, columns of 0 and 1 as they are.

    So two people differ by 2 in the squared distance where they differ in a category, and by 2 on average in a number.
    Constant columns become 0.  Raises InputError for another shape, or values that are not finite.
    """
    table = _matrix(x)
    out = np.zeros(table.shape, np.float32)
    for j in range(table.shape[1]):
        column = table[:, j]
        if bool(np.isin(column, (0, 1)).all()):
            out[:, j] = column
            continue
        wide = column.astype(np.float64)
        wide /= max(float(np.abs(wide).max()), math.ulp(0.0))  # or squares of large numbers would overflow
        deviation = float(wide.std())
        if deviation > 0:
            out[:, j] = (wide - wide.mean()) / deviation
    return out


def _matrix(x: npt.ArrayLike) -> npt.NDArray[Any]:
    table = np.asarray(x)
    if table.ndim != 2 or table.dtype.kind not in "biuf" or not table.size:
        raise InputError(
            f"x of shape {table.shape}, {table.dtype}: needs numbers, (rows, columns), not empty"
        )
    if table.dtype.kind == "f" and not bool(np.isfinite(table).all()):
        raise InputError("x holds NaN or an infinite number: fill them in, or leave the rows out")
    return table


def _checked(
    x: npt.ArrayLike, y: npt.ArrayLike, labels: int | None
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], int]:
    table, codes = _matrix(x), np.asarray(y)
    largest = max(abs(float(table.max())), abs(float(table.min())))
    if largest > _LARGEST:
        raise InputError(f"x holds a number of size {largest:g}: needs at most {_LARGEST:g}; see ``scaled``")
    if codes.shape != (len(table),) or codes.dtype.kind not in "biu":
        raise InputError(
            f"y of shape {codes.shape}, {codes.dtype}: needs a whole number for each of the {len(table):,} rows"
        )
    codes = codes.astype(np.int64)
    count = int(codes.max()) + 1 if labels is None else whole("labels", labels, 1)
    if count >= 1 << 16 or int(codes.min()) < 0 or int(codes.max()) >= count:
        raise InputError(
            f"y holds labels from {codes.min()} to {codes.max()}: needs labels from 0 to {count - 1}, at most 65,535"
        )
    return table.astype(np.float32), codes, count


@dataclass(frozen=True, eq=False)
class _Packed:
    """Columns of features by kind: ``codes`` (groups, n) of columns that are 0 or 1, of which at most one in a row is
    1 (its place, from 1; 0 where none is), ``numbers`` (m, n), and how many ones each row has.
    """

    codes: npt.NDArray[np.uint8]
    numbers: npt.NDArray[np.float32]
    ones: npt.NDArray[np.float32]

    @property
    def columns(self) -> int:
        return len(self.codes) + 4 * len(self.numbers)  # numbers are four times as wide


def _packed(table: npt.NDArray[np.float32]) -> _Packed:
    """Pack neighbouring columns that exclude each other, such as those of one category, into one of codes."""
    n = len(table)
    groups: list[npt.NDArray[np.uint8]] = []
    numbers: list[npt.NDArray[np.float32]] = []
    ones, size = np.zeros(n, np.float32), 255
    for j in range(table.shape[1]):
        column = np.ascontiguousarray(table[:, j])
        one = column == 1
        if not bool((one | (column == 0)).all()):
            numbers.append(column)
            continue
        if size == 255 or bool((one & (groups[-1] > 0)).any()):
            groups.append(np.zeros(n, np.uint8))
            size = 0
        size += 1
        groups[-1][one] = size
        ones[one] += 1
    return _Packed(
        np.array(groups, np.uint8).reshape(len(groups), n),
        np.array(numbers, np.float32).reshape(len(numbers), n),
        ones,
    )


def _loops() -> Any:
    """Return the compiled loops; None where P2P_SIM_NUMBA=0 forbids them, or numba cannot compile."""
    if os.environ.get("P2P_SIM_NUMBA") == "0":
        return None
    try:
        from p2p_sim.leakage import nearest_loops
    except kernels.REFUSED as error:
        warnings.warn(kernels.missing_numba_text(error), stacklevel=2)
        return None
    return nearest_loops


def _by_loops(
    loops: Any,
    packed: _Packed,
    y: npt.NDArray[np.int64],
    k: int,
    apart: npt.NDArray[np.int64] | None,
    count: int,
    tell: Any,
) -> Floats:
    n = len(y)
    step = max(1, n // _SAMPLE)
    some = np.arange(0, n, step)
    sample = [np.ascontiguousarray(part[..., some]) for part in (packed.codes, packed.numbers, packed.ones)]
    owner = np.full(n, -1) if apart is None else np.asarray(apart, np.int64)
    share = (k + (0 if apart is None else largest_group(apart))) / n * len(some)
    rank = int(np.ceil(share + 4 * np.sqrt(share) + 4))  # too small for one row in thousands
    out = np.zeros((n, count))
    size = int(np.clip(_BLOCK // n, 1, 64))
    starts = range(0, n, size)

    def block(start: int) -> None:
        places = np.arange(start, min(start + size, n))
        loops.shares(
            packed.codes,
            packed.numbers,
            packed.ones,
            y,
            *sample,
            places,
            k,
            rank,
            owner,
            out[start : start + size],
        )

    threads = ThreadPoolExecutor(cores())
    try:
        for done, _ in enumerate(threads.map(block, starts), 1):
            tell("nearest neighbours", min(done * size, n), n)
    finally:
        threads.shutdown(cancel_futures=True)  # whoever interrupts waits for no more than what has begun
    return out


def _by_blocks(
    table: npt.NDArray[np.float32],
    y: npt.NDArray[np.int64],
    k: int,
    apart: npt.NDArray[np.int64] | None,
    count: int,
    tell: Any,
) -> Floats:
    n = len(y)
    out = np.empty((n, count))
    size = max(1, _BLOCK // n)
    for start in range(0, n, size):
        stop = min(start + size, n)
        far = _distances(table[start:stop], table)
        if apart is not None:
            far[apart[start:stop, None] == apart] = np.inf
        edge = np.partition(far, k - 1, axis=1)[:, k - 1]
        row, neighbour = np.nonzero(far <= edge[:, None])
        tied = far[row, neighbour] == edge[row]
        place, size_out = row * count + y[neighbour], (stop - start) * count
        counts = [
            np.bincount(place[which], minlength=size_out).reshape(stop - start, count)
            for which in (~tied, tied)
        ]
        left, total = k - counts[0].sum(axis=1), counts[1].sum(axis=1)
        out[start:stop] = (counts[0] + counts[1] * left[:, None] / total[:, None]) / k
        tell("nearest neighbours", stop, n)
    return out


def _distances(queries: npt.NDArray[np.float32], table: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return squared distances (queries, n): by differences where there are few, else by products, which round more."""
    if table.size * len(table) > SMALL:
        from sklearn.metrics.pairwise import euclidean_distances

        return np.asarray(euclidean_distances(queries, table, squared=True))
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(queries, table, "sqeuclidean"))
