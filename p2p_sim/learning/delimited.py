"""CSV bytes to columns, by pyarrow: numbers where the caller says numbers, categories elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.table import Array, Category, category


def read_known(
    data: bytes, what: str, numeric: Collection[str], *, names: Sequence[str] | None = None, skip: int = 0
) -> dict[str, Array | Category]:
    """Read CSV whose columns are known: those in ``numeric`` as float64, others as stripped categories.

    ``names`` are the columns of a file without a header, ``skip`` is how many lines to pass over before it.
    InputError: the bytes are not such a table.
    """
    import pyarrow
    from pyarrow import csv

    reading = csv.ReadOptions(column_names=names, skip_rows=skip)
    try:
        header = names or csv.open_csv(pyarrow.BufferReader(data), read_options=reading).schema.names
        text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {name: pyarrow.float64() if name in numeric else text for name in header}
        table = csv.read_csv(
            pyarrow.BufferReader(data),
            read_options=reading,
            convert_options=csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pyarrow.ArrowInvalid as error:
        raise InputError(
            f"{what} is not the expected table: {' '.join(str(error).split())}; get it again"
        ) from error
    return {name: _column(table[name].combine_chunks()) for name in header}


def _column(array: Any) -> Array | Category:
    if not hasattr(array, "dictionary"):
        numbers: Array = array.to_numpy(zero_copy_only=False)
        return numbers
    return category(np.asarray(array.indices), [str(value) for value in array.dictionary.to_pylist()])
