"""What a file holds, by its first bytes: names may say otherwise."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

from p2p_sim.core.errors import InputError

_SAVE = "open it there and save the sheet as CSV in UTF-8"
_HEAD = 4096

_STARTS = (
    (rb"PAR1", "parquet", "a Parquet file", "call it {stem}.parquet"),
    (rb"\x93NUMPY", "npy", "a NumPy array", "write features and labels with numpy.savez, as .npz"),
    (rb"ARROW1|FEA1", "arrow", "an Arrow (Feather) file", "write it as Parquet"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xls", "an old Office file, such as an Excel workbook", _SAVE),
    (rb"%PDF", "pdf", "a PDF", "give the table itself, as .csv or .parquet"),
    (rb"\x1f\x8b", "gzip", "a gzip file in a gzip file", "unpack it once"),
    (rb"BZh", "bzip2", "a bzip2 file", "unpack it"),
    (rb"\xfd7zXZ\0", "xz", "an xz file", "unpack it"),
    (rb"7z\xbc\xaf\x27\x1c|Rar!", "archive", "an archive", "unpack it, and give one file of it"),
    (rb"SQLite format 3\0", "sqlite", "a SQLite database", "write the table as .csv or .parquet"),
)
_PAGE = rb"\s*(<!doctype\s+html|<html|<head|<\?xml|<body)"
_JSON = rb"\s*(\[\s*[\[{]|\{\s*\")"
"""How HTML and JSON begin; also text with a byte order mark, which is cut before."""


_PROMISED = {
    "text": "a readable table of text", "parquet": "a readable Parquet file", "npz": "a readable npz file",
    "idx": "an IDX file", "svmlight": "a readable svmlight file",
}  # fmt: skip
"""What the endings of names promise."""


def refuse_others(data: bytes, path: Path, kind: str) -> None:
    """Refuse a file whose contents are of another kind than its name says: text, parquet, npz, idx or svmlight.

    Raises InputError with what it holds, and what to do; what is not recognized is left to the reader.
    """
    found = _recognized(data, path)
    fits = {kind} if kind != "svmlight" else {"text", "gzip", "bzip2", "xz", "json"}
    if found is None or found[0] in fits:
        return
    _, what, advice = found
    raise InputError(f"{path} is not {_PROMISED[kind]}: it holds {what}; {advice}")


def advice_by_content(data: bytes, path: Path) -> str:
    """Return what a file of an ending that is not known holds, and what to do, as far as its beginning tells."""
    found = _recognized(data, path)
    return "" if found is None else f"it holds {found[1]}; {found[2]}; "


def advice_for(ending: str) -> str | None:
    """Return what to do with a file of a well-known kind that is not read, by its ending, such as ".xlsx"."""
    if ending in (".xlsx", ".xlsm", ".xls", ".ods"):
        return f"a workbook: {_SAVE}"
    if ending in (".zip", ".7z", ".rar", ".tar", ".tgz"):
        return "an archive: unpack it, and give one file of it"
    if ending in (
        ".json",
        ".jsonl",
        ".ndjson",
        ".feather",
        ".arrow",
        ".orc",
        ".pkl",
        ".pickle",
        ".h5",
        ".npy",
    ):
        return (
            'a kind that is not read: write it as .csv or .parquet (pandas: frame.to_parquet("mine.parquet"))'
        )
    if ending in (".txt", ".dat", ".data"):
        return "of no known kind: if it is a table of text, call it .csv; the separator is found out"
    return None


_SVMLIGHT = rb"\s*[-+0-9.eE]+\s+(qid:[0-9]+\s+)?[0-9]+:[-+0-9.eE]+(\s|$)"
"""How a line of svmlight begins: a label, an index, a colon and a value."""


def _recognized(data: bytes, path: Path) -> tuple[str, str, str] | None:
    """Return the kind, what it is called, and what to do; None where it is not known."""
    unpacked = path.name.removesuffix(".gz")
    stem, packed = unpacked.rpartition(".")[0] or unpacked, path.name[len(unpacked) :]
    for start, kind, what, advice in _STARTS:
        if re.match(start, data):
            return kind, what, advice.format(stem=stem)
    if data.startswith(b"PK\x03\x04"):
        return _of_zip(data)
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    if re.match(_PAGE, head, re.IGNORECASE):
        why = "a web page, perhaps of an error or a login instead of the file"
        return "html", why, "look into it, and download the table again"
    if re.match(_JSON, head):
        return (
            "json",
            "JSON",
            'write it as .csv or .parquet (pandas: pandas.read_json(...).to_parquet("mine.parquet"))',
        )
    if b"\0" not in head and head.strip() and _is_text(head):
        line = next(each for each in head.splitlines() if each.strip())
        first = line[:40].decode("utf-8", "replace")
        if re.match(_SVMLIGHT, line):  # as LIBSVM's data sets come, without an ending
            return "text", f"text in svmlight format, which begins {first!r}", f"call it {stem}.svm{packed}"
        return "text", f"text, which begins {first!r}", f"if it is a table, call it {stem}.csv{packed}"
    return None


def _is_text(head: bytes) -> bool:
    return not re.search(rb"[\x00-\x08\x0e-\x1f]", head)


def _of_zip(data: bytes) -> tuple[str, str, str]:
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except (zipfile.BadZipFile, ValueError, OSError):  # cut off, or its beginning alone
        names = [name for name in ("xl/", ".npy") if name.encode() in data]
    if any(name.startswith("xl/") for name in names) or "mimetype" in names:
        return "xlsx", "a workbook, of Excel or the like", _SAVE
    if names and all(name.endswith(".npy") for name in names):
        return "npz", "NumPy arrays", "call it .npz"
    return "zip", "a zip archive", "unpack it, and give one file of it"
