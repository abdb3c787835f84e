"""What the Parquet files of a run directory hold, declared as Arrow types, and checked from their footers.

A footer says types and numbers of rows before anything is read, so that nothing is allocated for a file that is not
what it should be.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.rundir.regular_files import RESTORE


@dataclass(frozen=True)
class Fits:
    """Which Arrow types a column may have; ``allowed``: the same in words."""

    allowed: str
    of: Callable[[Any], bool]


MOST_GROUP = 1 << 18
"""Rows of a row group of a trace, at most: of so many rows, memory is taken at once."""

MOST_COLUMNS = 10_000
"""Columns of a file, at most."""


def exactly(dtype: Any, length: int | None = None, *, octets: bool = True) -> Fits:
    """Return what fits a column of numpy's type ``dtype``; ``length``: of vectors.

    ``octets``: whether vectors of uint8 are stored as fixed-size binary values.
    """
    import pyarrow as pa

    kind = pa.string() if dtype is None else pa.from_numpy_dtype(np.dtype(dtype))
    if length is None:
        return Fits(str(kind), lambda found: bool(found == kind))
    if octets and kind == pa.uint8():
        return Fits(f"{length} octets", lambda found: bool(found == pa.binary(length)))
    return Fits(
        f"lists of {length} {kind}",
        lambda found: _is_vector(found) and found.list_size == length and found.value_type == kind,
    )


def _is_of_values(found: Any) -> bool:
    import pyarrow as pa

    kind, is_ = (found.value_type if _is_vector(found) else found), pa.types
    return bool(is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind) or is_.is_string(kind))


VALUES = Fits("bools, numbers or text, or lists of them of one length", _is_of_values)


def _is_vector(found: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(found))


def footer(file: Path) -> Any:
    """Return the metadata of a Parquet file; raises InputError naming it if there are none."""
    from pyarrow import ArrowException, parquet

    try:
        found = parquet.read_metadata(file)
        names = found.schema.to_arrow_schema().names
    except PermissionError:
        raise
    except (ArrowException, OSError, ValueError) as error:
        raise damaged(file, f"its Parquet footer cannot be read ({error})") from error
    if len(names) > MOST_COLUMNS:
        raise damaged(file, f"it has {len(names):,} columns, and at most {MOST_COLUMNS:,} are read")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise damaged(file, f"it has the column {twice[0]!r} twice")
    sizes = [found.row_group(group).num_rows for group in range(found.num_row_groups)]
    if found.num_rows < 0 or min(sizes, default=0) < 0 or sum(sizes) != found.num_rows:
        raise damaged(
            file, f"its footer says {found.num_rows:,} rows, and its row groups have {sum(sizes):,}"
        )
    return found


def check_types(file: Path, schema: Any, declared: Mapping[str, Fits], *, more: Fits | None = None) -> None:
    """Check the columns of a file; raises InputError naming one that is missing, has another type, or is not declared.

    ``schema``: its Arrow schema; ``more``: what fits columns that are not declared, of which there may be some.
    """
    for name in declared:
        if name not in schema.names:
            raise damaged(file, f"it lacks the column {name!r}")
    for name, kind in zip(schema.names, schema.types, strict=True):
        fits = declared.get(name, more)
        if fits is None:
            raise damaged(file, f"it has a column {name!r:.60}, which such a file does not have")
        if not fits.of(kind):
            raise damaged(
                file, f"its column {name!r:.60} has the type {str(kind)!r:.60}: must be {fits.allowed}"
            )


def check_rows(file: Path, meta: Any, expected: int | None, who: str) -> None:
    """Check the number of rows in a footer against what ``who`` says; raises InputError."""
    if expected is not None and meta.num_rows != expected:
        raise damaged(file, f"it has {meta.num_rows:,} rows, and {who} says {expected:,}")


def check_memory(file: Path, rows: int, width: int, advice: str) -> None:
    """Check that rows of ``width`` bytes fit into the memory of this machine; raises InputError."""
    if rows * width > (most := _memory()):
        raise InputError(
            f"{str(file)!r} holds {rows:,} rows, which take {rows * width / 1e9:,.1f} GB, and this process may have "
            f"{most / 1e9:,.1f} GB of memory: {advice}"
        )


def width_of(schema: Any) -> int:
    """Return the bytes that a row takes in memory; for text, the least."""
    return sum(_bytes_of(kind) for kind in schema.types)


def _bytes_of(kind: Any) -> int:
    import pyarrow as pa

    if _is_vector(kind):
        return int(kind.list_size) * _bytes_of(kind.value_type)
    return 8 if pa.types.is_string(kind) else max(1, int(kind.bit_width) // 8)


def _memory() -> int:
    """Return how many bytes of memory this process may have: those of the machine, or less if it is limited."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        import resource
    except ImportError:
        return machine
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min([machine, *(limit for limit in limits if limit != resource.RLIM_INFINITY)])


def damaged(file: Path, what: str) -> InputError:
    """Return the error for a file that is not what it should be."""
    return InputError(f"{str(file)!r} is damaged: {what}; {RESTORE}")
