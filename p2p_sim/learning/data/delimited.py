"""Delimited text to columns of text: its encoding, separator and header are found out, or given."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import cells
from p2p_sim.learning.data.reading_options import Reading
from p2p_sim.learning.data.tables import check_names, listing

_BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\0\0": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
_CALLED = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
_LOOKED_AT = 50
_SHOWN = 60  # letters of a line
_BLOCK = 16 << 20


@dataclass(frozen=True)
class Text:
    """Cells as text: a column (chunks of Arrow strings) by name, and what was understood of the file."""

    columns: dict[str, Any]
    read_as: tuple[str, ...]


def read(data: bytes, what: str, usual: str, reading: Reading) -> Text:
    """Read delimited text; ``usual`` is the separator that the file's name promises.

    InputError: not text, an unclear separator, no header, names missing or twice, unequal lines, no rows.
    """
    text, encoding = _decoded(data, what, reading.encoding)
    first_line = re.match(rb"sep=([\t -~])\r?\n", text)  # the first line that names Excel's separator
    text = text[first_line.end() :] if first_line else text
    separator = reading.mark or (first_line[1].decode() if first_line else _sniffed(text, usual, what))
    first = next(_lines(text, separator), None)
    if first is None and text.strip():
        raise InputError(
            f"the first line of {what} has a name of more than {csv.field_size_limit():,} characters between "
            f"{separator!r}: say which character separates cells (--separator)"
        )
    if first is None or not text.strip():
        raise InputError(f"{what} is empty; give a file with a header and at least two rows")
    names = [name.strip() for name in first] if reading.header else [f"c{i + 1}" for i in range(len(first))]
    if reading.header and all(cells.is_number(name) for name in names):
        raise _no_names(names, what)
    check_names(names, what)
    parts = _split(text, what, separator, len(names))
    if reading.header:
        parts = [part.slice(1) for part in parts]
    if not len(parts[0]):
        raise InputError(f"{what} has a header and no rows; give at least two rows, of different labels")
    if reading.header:
        _check_header(names, parts, what)
    read_as = (encoding, f"{_CALLED.get(separator, repr(separator))} between cells")
    return Text(dict(zip(names, parts, strict=True)), read_as)


def _decoded(data: bytes, what: str, encoding: str | None) -> tuple[bytes, str]:
    """Return text as UTF-8, and the encoding that it came in."""
    if encoding is None:
        encoding = next((name for bom, name in _BOMS.items() if data.startswith(bom)), "utf-8")
    try:
        text = data.decode(encoding)
    except (UnicodeError, ValueError, LookupError) as error:  # LookupError: base64 and the like
        raise InputError(_undecodable(data, what, encoding, error)) from error
    if "\0" in text:
        wide = None if encoding != "utf-8" else _wide(data)
        advice = (
            "it is no table of text"
            if wide is None
            else f"it is text in {wide.upper()}: say --encoding {wide}"
        )
        raise InputError(f"{what} holds NUL bytes, which no text in {encoding.upper()} has: {advice}")
    if encoding == "utf-8":
        return data.removeprefix(b"\xef\xbb\xbf"), "UTF-8"
    return text.removeprefix("\ufeff").encode(errors="surrogatepass"), encoding.upper().removesuffix("-SIG")


def _wide(data: bytes) -> str | None:
    """Return the encoding of more than a byte a letter in which bytes without a mark are text; None if in none."""
    head = data[: _LOOKED_AT * 64]
    if b"\0" not in head:
        return None
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        try:
            text = head.decode(encoding)
        except UnicodeError:
            continue
        if "\0" not in text and ("," in text or "\n" in text or ";" in text or "\t" in text):
            return encoding
    return None


def _undecodable(data: bytes, what: str, encoding: str, error: Exception) -> str:
    start = f"{what} is not a readable table: it is not in {encoding.upper()}"
    if not isinstance(error, UnicodeDecodeError) or encoding != "utf-8":
        return f"{start} ({error}); give its encoding (--encoding), or save it in UTF-8"
    if wide := _wide(data):
        return f"{start} but in {wide.upper()}, without a mark that says so: say --encoding {wide}"
    low = data.rfind(b"\n", 0, error.start) + 1
    piece = data[max(low, error.start - 12) : error.start + 12].splitlines()[0].decode("cp1252", "replace")
    row = data.count(b"\n", 0, error.start) + 1
    return (
        f"{start}: line {row} holds byte 0x{data[error.start]:02x}, as Windows-1252 it would read {piece!r}; if that "
        "is right, say --encoding cp1252, otherwise give its encoding (--encoding), or save the file in UTF-8"
    )


def _lines(text: bytes, separator: str) -> Iterator[list[str]]:
    """Yield lines that are not empty, as cells."""
    lines = csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=separator)
    try:
        yield from filter(None, lines)
    except csv.Error:  # a cell over 128 KiB: stop here; what is wrong is reported when cells are read
        return


def _sniffed(text: bytes, usual: str, what: str) -> str:
    """Return the separator that divides the first lines into equally many cells, more than one."""
    fits = []
    for separator in dict.fromkeys((usual, *",;\t|")):
        widths = {len(line) for line in islice(_lines(text, separator), _LOOKED_AT)}
        if len(widths) == 1 and widths != {1}:
            fits.append(separator)
    if len(fits) > 1:
        *others, last = fits
        raise InputError(
            f"{', '.join(map(repr, others))} and {last!r} {'all' if len(fits) > 2 else 'both'} divide the lines of "
            f"{what} evenly: say which separates cells ({' or '.join(f'--separator {each!r}' for each in fits)})"
        )
    return fits[0] if fits else usual


def _split(text: bytes, what: str, separator: str, width: int) -> list[Any]:
    import pyarrow
    from pyarrow import csv as arrow_csv

    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    longest = int(np.diff(ends, prepend=0, append=len(text)).max())
    names = [str(i) for i in range(width)]
    how = arrow_csv.ConvertOptions(
        column_types={name: pyarrow.string() for name in names},
        strings_can_be_null=False, quoted_strings_can_be_null=False,
    )  # fmt: skip
    try:
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(text),
            # a block must hold a whole line, and a line may hold quoted lines
            arrow_csv.ReadOptions(column_names=names, block_size=min(max(_BLOCK, 4 * longest), 2**31 - 1)),
            arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            how,
        )
    except pyarrow.ArrowInvalid as error:
        raise InputError(
            f"{what} is not a readable table: {_ragged(text, separator, width, error)}; every line needs the header's "
            f"columns, with {separator!r} between them (say --separator if it is another)"
        ) from error
    return list(table.columns)


def _ragged(text: bytes, separator: str, width: int, error: Exception) -> str:
    """Say which line has more or fewer cells than the first; otherwise what Arrow says."""
    lines = csv.reader(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), delimiter=separator)
    try:
        for cells_of in lines:
            if cells_of and len(cells_of) != width:
                have = "1 cell" if len(cells_of) == 1 else f"{len(cells_of)} cells"
                shown = separator.join(cells_of)
                shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
                return f"line {lines.line_num} has {have}, the first line {width}: {shown!r}"
    except (csv.Error, UnicodeError):
        pass
    return " ".join(str(error).split())


def _no_names(names: list[str], what: str) -> InputError:
    return InputError(
        f"{what} starts with {listing(names, 5)}, which looks like a row; put a line of column names first, or say "
        "--no-header (columns are then c1, c2, ...)"
    )


def _check_header(names: list[str], parts: list[Any], what: str) -> None:
    """Refuse a first line that is a row: with a decimal for a name, or with names that are values of their columns.

    One such value may be chance (a column "yes" of yes and no), two are not, nor is one beside a number.
    """
    from pyarrow import compute

    if any(cells.is_number(name) and not name.isdigit() for name in names):
        raise _no_names(names, what)
    texts = [(name, part) for name, part in zip(names, parts, strict=True) if not cells.is_number(name)]
    own = sum(bool(compute.any(compute.equal(part, name)).as_py()) for name, part in texts[:_LOOKED_AT])
    if own > 1 or (own and len(texts) < len(names)):
        raise _no_names(names, what)
