"""Output of commands: safe streams, JSON, text tables, and the numbers in them."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import math
import os
import re
import signal
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from p2p_sim.report import narrow_table
from p2p_sim.result_summary import visible as visible  # for those who import this module

_ASCII = {"ε": "eps", "δ": "delta", "α": "alpha", "θ": "theta", "√": "sqrt", "±": "+-", "…": "..."}


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace letters that an encoding lacks: some by ASCII names, others by question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_ASCII.get(letter, "?") for letter in text), error.end


def ready() -> None:
    """Prepare stdout and stderr (also closed ones, and any encoding), and treat SIGTERM like Ctrl-C."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 (for the rest of the program)
    sys.stdout = _writing_all(sys.stdout)
    codecs.register_error("p2p-sim", _to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and "utf" not in stream.encoding.lower():
            stream.reconfigure(errors="p2p-sim")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stop)


STDOUT = "standard output"


class _Stdout(io.FileIO):
    """Standard output, whose errors say so."""

    def write(self, data: Any, /) -> int:
        """Write; the name of the file in an OSError is ``STDOUT``."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def _writing_all(stream: TextIO) -> TextIO:
    """Return a stream that writes all it is given, or raises OSError.

    That of an unbuffered Python (``PYTHONUNBUFFERED``, ``-u``) drops what a short write leaves: on a
    nearly full disk, a document would be cut without an error.
    """
    if stream is not sys.__stdout__ or not isinstance(stream, io.TextIOWrapper):
        return stream
    try:
        raw = _Stdout(stream.fileno(), "wb", closefd=False)
    except (OSError, ValueError):
        return stream
    stream.flush()
    at_once = stream.line_buffering or isinstance(stream.buffer, io.RawIOBase)
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=at_once)


def drop_stdout() -> None:
    """Write nothing more to stdout, or Python would try once more when it ends, and complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect to stderr what libraries print, so that stdout holds only results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show this project's warnings as one line on stderr."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int,
            file: TextIO | None = None, line: str | None = None,
        ) -> None:  # fmt: skip
            if category is UserWarning:
                print(f"warning: {visible(str(message))}", file=sys.stderr)
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        warnings.simplefilter("always", UserWarning)
        yield


def as_json(document: Any) -> str:
    """Return a document as JSON: infinity as "inf", not-a-number as null."""
    return json.dumps(plain(document), indent=2, allow_nan=False) + "\n"


def json_pieces(document: Any, depth: int = 4, margin: str = "") -> Iterator[str]:
    """Yield ``as_json`` in pieces, for documents whose rows are many and made as they are asked for.

    ``depth``: how many levels down a value is one piece.
    """
    inside = margin + "  "
    if (
        not document
        or not depth
        or not isinstance(document, (Mapping, Sequence))
        or isinstance(document, str)
    ):
        text = json.dumps(plain(document), indent=2, allow_nan=False)
        yield text.replace("\n", "\n" + margin)
    elif isinstance(document, Mapping):
        for number, (key, value) in enumerate(document.items()):
            yield f"{',' if number else '{'}\n{inside}{json.dumps(str(key))}: "
            yield from json_pieces(value, depth - 1, inside)
        yield f"\n{margin}}}"
    else:
        for number, value in enumerate(document):
            yield f"{',' if number else '['}\n{inside}"
            yield from json_pieces(value, depth - 1, inside)
        yield f"\n{margin}]"
    if not margin:
        yield "\n"


def plain(value: Any) -> Any:
    """Turn a value into JSON values: mappings, lists, text, numbers, None; see ``as_json``."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value)


def measured(result: Mapping[str, Any]) -> str:
    """Return a benchmark's result as text: the machine, and a table of its rows."""
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    rows = [dict(row) for row in result["rows"]]
    for row in rows:
        goals = row.get("target")
        if isinstance(goals, Mapping):
            row["target"] = ", ".join(f"{name} {cell(value)}" for name, value in goals.items())
    head = list(
        dict.fromkeys(name for row in rows for name in row if any(r.get(name) is not None for r in rows))
    )
    return f"{machine}\n\n{table_of(head, rows)}"


def table_of(head: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows that are mappings as a text table with the columns ``head``."""
    return table(head, [[row.get(name) for name in head] for row in rows]) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], most: int | None = None) -> str:
    """Return a text table; columns of numbers are aligned right, others left.

    It fits into the terminal, and into ``most`` letters: see ``narrow_table``.
    """
    every, right = _cells(head, rows)
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    room = min((each for each in (columns(), most) if each is not None), default=None)
    if room is not None and sum(widths) + len(_GAP) * (len(widths) - 1) > room:
        return "\n".join(narrow_table.lines(every, right, room))
    return _aligned(every, right, widths)


def whole_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a text table as ``table`` does, however wide it is."""
    every, right = _cells(head, rows)
    return _aligned(every, right, [max(map(len, column)) for column in zip(*every, strict=True)])


_GAP = "   "


def _cells(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[list[str]], list[bool]]:
    """Return the lines of a table as text, the head first, and which columns hold numbers."""
    right = [
        bool(rows) and all(_is_number(row[i]) or row[i] is None for row in rows) for i in range(len(head))
    ]
    return [[visible(name) for name in head], *([cell(value) for value in row] for row in rows)], right


def _aligned(every: Sequence[Sequence[str]], right: Sequence[bool], widths: Sequence[int]) -> str:
    lines = []
    for line in every:
        padded = [
            text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)
        ]
        lines.append(_GAP.join(padded).rstrip())
    return "\n".join(lines)


def cell(value: Any) -> str:
    """Return one value of a table as text: integers with commas, floats with four digits."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))


WIDTH = 100
"""No line of a text for people is wider, unless a single word is."""

_NARROWEST = 20
_ENTRY = re.compile(r"\S.{0,22}?  +(?=\S)")
"""The name at the left of a line, and the gap behind it."""

_COMMAND = re.compile(r"(?:^|: |  )p2p-sim [a-z]")
"""Where a command begins that the reader may want to copy."""


def columns() -> int | None:
    """Return how many letters fit into a line of the terminal; None where stdout goes elsewhere.

    The variable COLUMNS says otherwise.
    """
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return max(int(said), _NARROWEST)
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError, AttributeError):  # closed, or a stand-in without a file
        return None
    return max(found, _NARROWEST) if found else None


def folded(line: str, indent: int, most: int = WIDTH) -> list[str]:
    """Return a line, or several if it is wide; all but the first are indented.

    ``most``: letters of a line, in a terminal that has room for them.
    """
    room = min(most, columns() or most)
    return textwrap.wrap(
        line,
        room,
        subsequent_indent=" " * min(indent, room // 3),
        break_long_words=False,
        break_on_hyphens=False,
    )


def fitted(text: str) -> str:
    """Return a text of which no line is wider than the terminal; where stdout goes elsewhere, lines stay whole.

    A folded line continues below its beginning, to the right of the name at its left if it has one.  A line with a
    command stays whole, so that it can be copied.
    """
    room = columns()
    if room is None:
        return text
    return "\n".join(
        part
        for line in text.split("\n")
        for part in (
            [line] if len(line) <= room or _COMMAND.search(line) else folded(line, _hang(line), room)
        )
    )


def _hang(line: str) -> int:
    """Return where the further lines of a folded line begin."""
    margin = len(line) - len(line.lstrip())
    named = _ENTRY.match(line, margin)
    return named.end() if named else margin + 2


def nbytes(count: float) -> str:
    """Return a number of bytes with a suitable unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def parameters(document: Mapping[str, Any]) -> str:
    """Return a protocol's parameters as text; those that were not given are marked as defaults."""
    defaults = document["defaults"]
    shown = [
        f"{k} = {'none' if v == '' else v}" + (" (default)" if k in defaults else "")
        for k, v in document["parameters"].items()
    ]
    return ", ".join(shown) or "no parameters"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def graph(about: Mapping[str, Any]) -> str:
    """Return a graph's figures in words."""
    over = "over everybody" if about["over"] == "everybody" else "within each cluster"
    least, most = about["minimum"], about["maximum"]
    each = (
        f"{least:,} each"
        if least == most
        else f"minimum {least:,}, median {about['median']:,g}, maximum {most:,}"
    )
    return f"{about['source']} {over}; neighbours: {each}" + (
        ", herself included" if about["complete"] else ""
    )
