"""svmlight files in blocks of lines, plain or compressed: "label index:value ..." a line, of any number of lines.

The largest public data sets come so (kag14, kdd10, kdd12, SUSY): they are sparse, and too large to be read whole.
scikit-learn reads each block; a line that it cannot read is looked for, and named by its number.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from p2p_sim.core import random_words
from p2p_sim.core.errors import InputError

BLOCK = 1 << 24
"""Bytes of text that are read at once, about."""

_HASH = random_words.stream("svmlight", "hash", 0)
_SAMPLE = random_words.stream("svmlight", "sample", 0)
_PACKED: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZ": bz2.BZ2File,
    b"\xfd7": lzma.LZMAFile,
}
_LARGEST = 2**31 - 1
"""The largest index of a feature that scikit-learn reads."""

HASHED_LIMIT = 1 << 29
"""Cells of hashed features: 2 GiB in float32."""

_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)


class Block(NamedTuple):
    """Rows of a file: ``x`` (n, width), a scipy CSR matrix as wide as its last feature, and labels ``y`` (n,)."""

    x: Any
    y: npt.NDArray[np.float64]


class Gathered(NamedTuple):
    """Rows of a whole file, or a sample of them in the file's order; ``total``: how many rows the file has.

    ``x`` (n, d): a scipy CSR matrix, or a float32 array where features were hashed.
    """

    x: Any
    y: npt.NDArray[np.float64]
    total: int


def blocks(path: Path, *, first: int = 1, size: int = BLOCK) -> Iterator[Block]:
    """Read the rows of a file block by block; gzip, bzip2 and xz are undone.

    ``first``: the number of the first feature, 1 or 0, which becomes column 0.  ``size``: bytes of text in a block,
    about.  What follows ``#`` in a line, and empty lines, are skipped.  Raises InputError: a file that cannot be read,
    and, with the number of its line, a label or value that is no number, an index below ``first``, or one that does not
    rise.
    """
    from sklearn.datasets import load_svmlight_file

    line = 1
    for text in _texts(path, size):
        try:
            x, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
        except (ValueError, IndexError, OverflowError) as error:
            raise InputError(f"{path}: {_broken(text, line, first) or error}; correct it") from error
        if first:
            if x.indices.size and int(x.indices.min()) < first:
                raise InputError(f"{path}: {_broken(text, line, first)}; correct it")
            x.indices -= first
            x = type(x)((x.data, x.indices, x.indptr), shape=(len(y), max(x.shape[1] - first, 1)))
        if not np.isfinite(y).all():
            raise InputError(f"{path}: {_broken(text, line, first)}; correct it")
        line += text.count(b"\n")
        yield Block(x, np.asarray(y, np.float64))


def gather(
    path: Path,
    *,
    first: int = 1,
    sample: int | None = None,
    hashed: int | None = None,
    seed: int = 0,
    size: int = BLOCK,
    progress: Callable[[int], None] | None = None,
) -> Gathered:
    """Read all rows of a file, or ``sample`` of them drawn by ``seed``, each as likely.

    ``hashed``: columns into which features are hashed, see ``hash_features``.  Memory is that of the rows that are
    kept, whatever the file has.  ``progress`` is called after each block with the number of rows read.
    ``first``, ``size`` and errors: see ``blocks``; InputError also for a file without rows.
    """
    kept: list[tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.uint64]]] = []
    total, limit = 0, np.uint64(2**64 - 1)
    for x, y in blocks(path, first=first, size=size):
        drawn = random_words.words(seed, _SAMPLE, total, len(y))
        total += len(y)
        taken = drawn <= limit
        rows = x if taken.all() else x[taken]
        if hashed is not None:
            _check_size(path, rows.shape[0] + sum(len(part[1]) for part in kept), hashed)
        kept.append((rows if hashed is None else hash_features(rows, hashed), y[taken], drawn[taken]))
        if sample is not None and sum(len(part[1]) for part in kept) > 2 * sample:
            limit = _limit(kept, sample)
            kept = _below(kept, limit)
        if progress is not None:
            progress(total)
    if not total:
        raise InputError(f"{path} is empty; give a file of at least two rows")
    if sample is not None and sum(len(part[1]) for part in kept) > sample:
        kept = _below(kept, _limit(kept, sample))
    return Gathered(_stacked([part[0] for part in kept]), np.concatenate([part[1] for part in kept]), total)


def hash_features(x: Any, columns: int) -> npt.NDArray[np.float32]:
    """Return features (n, columns): each feature of the CSR matrix x goes into one column, with one sign, by its index.

    Products of rows, and so their distances, are kept on average.  Raises InputError for no columns.
    *Source:* Weinberger, Dasgupta, Langford, Smola, Attenberg 2009 (feature hashing).
    """
    if columns < 1:
        raise InputError(f"hashed = {columns}: features need at least 1 column")
    drawn = random_words.words_at(0, _HASH, x.indices.astype(np.int64))
    signs = 1.0 - 2.0 * (drawn >> np.uint64(63)).astype(np.float64)
    column = (drawn % np.uint64(columns)).astype(x.indices.dtype)
    return np.asarray(
        type(x)((x.data * signs, column, x.indptr), shape=(x.shape[0], columns)).toarray(), np.float32
    )


def _check_size(path: Path, rows: int, columns: int) -> None:
    if rows * columns > HASHED_LIMIT:
        raise InputError(
            f"{path} has {rows:,} rows or more, which take over {HASHED_LIMIT * 4 / 2**30:.0f} GiB in {columns:,} "
            "columns: give fewer columns (--hashed), or take some of the rows (--sample)"
        )


def _limit(kept: list[tuple[Any, Any, npt.NDArray[np.uint64]]], sample: int) -> np.uint64:
    """Return the word of the last row that is kept: those with the least words are a random sample."""
    drawn = np.concatenate([part[2] for part in kept])
    return np.uint64(np.partition(drawn, sample - 1)[sample - 1])


def _below(kept: list[tuple[Any, Any, Any]], limit: np.uint64) -> list[tuple[Any, Any, Any]]:
    return [(x[drawn <= limit], y[drawn <= limit], drawn[drawn <= limit]) for x, y, drawn in kept]


def _stacked(parts: list[Any]) -> Any:
    """Return blocks as one, as wide as the widest."""
    from scipy import sparse

    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    return sparse.vstack(parts, format="csr")


def _texts(path: Path, size: int) -> Iterator[bytes]:
    """Return a file's text in pieces that end with a line."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file; give the path of a file")
    try:
        with path.open("rb") as file:
            start = file.read(2)
            file.seek(0)
            text = _PACKED[start](file) if start in _PACKED else file
            while piece := text.read(size):
                yield piece + text.readline()
    except _DAMAGED as error:
        raise InputError(
            f"cannot read {path}: {error}; check the path, its permissions, and that it is whole"
        ) from error


def _broken(text: bytes, line: int, first: int) -> str:
    """Say which line of a text is broken, and how; "" where none is found.  ``line``: number of its first."""
    for number, each in enumerate(text.split(b"\n"), line):
        fault = _fault(each.split(b"#", 1)[0].decode("utf-8", "replace").split(), first)
        if fault:
            return f"line {number} is not in svmlight format ('label index:value ...'): {fault}"
    return ""


def _fault(words: list[str], first: int) -> str:
    """Say what is wrong with the words of a line; "" if nothing is."""
    if not words:
        return ""
    label = _number(words[0])
    if label is None or not math.isfinite(label):
        hint = " (if it is a table with commas, call it .csv)" if "," in words[0] else ""
        return f"its label is {words[0][:40]!r}, which is no number{hint}"
    last = first - 1
    for word in words[1:]:
        index, colon, value = word.partition(":")
        if index == "qid":
            continue
        if not colon or not (index.isascii() and index.isdigit()) or _number(value) is None:
            return f"{word!r} is no index, a colon and a number"
        if len(index) > 4000 or int(index) > _LARGEST:
            return f"the index of {word[:40]!r} is too large: at most {_LARGEST}"
        if int(index) < first:
            return f"{word!r} has index {int(index)}, and features are counted from {first}"
        if int(index) <= last:
            return f"{word!r} comes after index {last}: indices must rise"
        last = int(index)
    return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
