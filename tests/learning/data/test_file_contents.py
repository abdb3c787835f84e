"""Files that are not what their names say, labels that are not what was meant: told in words; advice is followed."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from p2p_sim.core import InputError
from p2p_sim.learning.data import datasets
from p2p_sim.learning.data.reading_options import Reading

ROWS = [(i % 7 / 10, ("yes", "no")[i % 2]) for i in range(40)]
TEXT = "a,y\n" + "".join(f"{a},{y}\n" for a, y in ROWS)


def zipped(**files: str) -> bytes:
    """Return a zip archive; underscores in names are slashes."""
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "/"), text)
    return into.getvalue()


def parquet(**columns: object) -> bytes:
    """Return a Parquet file of some columns."""
    into = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), into)
    return into.getvalue()


PARQUET = parquet(a=[a for a, _ in ROWS], y=[y for _, y in ROWS])
BOOK = zipped(xl_workbook="<x/>")

SVMLIGHT = b"-1 3:0.5 17:1\n+1 qid:4 3:1e-3\n"

WRONG: dict[str, tuple[str, bytes, str]] = {
    "parquet as csv": ("own.csv", PARQUET, r"holds a Parquet file; call it own\.parquet"),
    "parquet as csv.gz": ("own.csv.gz", gzip.compress(PARQUET), r"call it own\.parquet"),
    "csv as parquet": ("own.parquet", TEXT.encode(), r"holds text, which begins 'a,y'; .* call it own\.csv"),
    "csv as npz": ("own.npz", TEXT.encode(), r"call it own\.csv"),
    "csv as idx": ("own-images-idx3-ubyte", TEXT.encode(), "not an IDX file: it holds text"),
    "csv as svmlight": ("own.svm", TEXT.encode(), r"its label is 'a,y', .* call it \.csv"),
    "parquet as svmlight": ("own.svm", PARQUET, r"not a readable svmlight file: it holds a Parquet file"),
    "xlsx as csv": ("own.csv", BOOK, "a workbook, .* save the sheet as CSV in UTF-8"),
    "xlsx as parquet": ("own.parquet", BOOK, "a workbook"),
    "xlsx as svmlight": ("own.svm", BOOK, "a workbook"),
    "xlsx": ("own.xlsx", BOOK, "own.xlsx is a workbook: .* save the sheet as CSV"),
    "xls as csv": ("own.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "Excel workbook; .* as CSV"),
    "zip as csv": ("own.csv", zipped(one="1", two="2"), "a zip archive; unpack it"),
    "zip": ("own.zip", zipped(one="1"), "an archive: unpack it"),
    "npz as csv": ("own.csv", zipped(**{"x.npy": "1"}), "NumPy arrays; call it .npz"),
    "pdf": ("own.csv", b"%PDF-1.4\n%\xe2\xe3", "holds a PDF"),
    "html": ("own.csv", b"<!DOCTYPE html>\n<html><title>404, sorry</title></html>\n", "holds a web page"),
    "html of one word a line": ("own.csv", b"\xef\xbb\xbf \n<HTML>\nAccess denied\n</HTML>\n", "holds a web page"),
    "json": ("own.csv", json.dumps([{"a": 1, "y": 0}]).encode(), "holds JSON; .*read_json"),
    "json by name": ("own.json", b"{}", r"is a kind that is not read: write it as \.csv or \.parquet"),
    "text by name": ("own.txt", TEXT.encode(), r"call it \.csv"),
    "gzip twice": ("own.csv.gz", gzip.compress(gzip.compress(TEXT.encode())), "unpack it once"),
    "svmlight without an ending": ("kdd12", SVMLIGHT, r"holds text in svmlight format, .*; call it kdd12\.svm;"),
    "svmlight packed": ("kdd12.gz", gzip.compress(SVMLIGHT), r"call it kdd12\.svm\.gz;"),
    "csv packed": ("own.gz", gzip.compress(TEXT.encode()), r"if it is a table, call it own\.csv\.gz;"),
    "nothing": ("own.csv", b"", "is empty"),
    "blank lines": ("own.csv", b"\n\n  \n", "is empty; give a file with a header"),
    "a header alone": ("own.csv", b"a,y\n", "has a header and no rows"),
    "names twice": ("own.csv", b"a,a,y\n1,2,yes\n3,4,no\n", "two columns called 'a'; rename"),
    "a short line": ("own.csv", b"a,b,y\n1,2,yes\n\n3,no\n", "line 4 has 2 cells, the first line 3: '3,no'"),
    "a long line": ("own.csv", b"a,y\n1,yes\n2,no,more\n", "line 3 has 3 cells, the first line 2: '2,no,more'"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_a_file_holds_is_said(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        datasets.load(str(tmp_path / name))
    assert str(caught.value).isprintable()


def test_a_gzip_file_may_be_called_csv(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(gzip.compress(TEXT.encode()))
    assert _loaded(tmp_path / "own.csv").y.sum() == 20


def _loaded(path: Path, **how: object) -> datasets.Dataset:
    return datasets.load(str(path), **({"classes": ["no", "yes"]} | how))  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["parquet", "csv"])
def test_a_file_that_is_called_as_advised_is_read(tmp_path: Path, call: str) -> None:
    wrong = tmp_path / ("own.csv" if call == "parquet" else "own.parquet")
    wrong.write_bytes(PARQUET if call == "parquet" else TEXT.encode())
    with pytest.raises(InputError) as caught:
        _loaded(wrong)
    found = re.search(r"call it (\S+)$", str(caught.value))
    assert found
    wrong.rename(tmp_path / found[1])
    assert len(_loaded(tmp_path / found[1]).y) == 40


WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@pytest.mark.parametrize(
    ("encoding", "letter"),
    [("cp1252", "é"), ("latin-1", "é"), *((each, letter) for each in WIDE for letter in "ée")],
)
def test_the_encoding_that_is_advised_reads_the_file(tmp_path: Path, encoding: str, letter: str) -> None:
    """UTF-16-BE without a mark was read as other letters by the encoding that was advised, utf-16."""
    path = tmp_path / "own.csv"
    path.write_bytes(TEXT.replace("a,y", f"caf{letter},y").encode(encoding))
    with pytest.raises(InputError) as caught:
        _loaded(path)
    advised = re.search(r"--encoding ([\w-]+)", str(caught.value))
    assert advised
    assert _loaded(path, reading=Reading(encoding=advised[1])).features == (f"caf{letter}",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_file_with_a_mark_is_read_as_it_is(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "own.csv").write_bytes(TEXT.encode(encoding))
    assert _loaded(tmp_path / "own.csv").features == ("a",)


def test_columns_that_are_not_read_are_named_together_and_left_out_as_advised(tmp_path: Path) -> None:
    days = pd.date_range("2020-01-01", periods=40)
    nested = {"n": [{"p": 1}] * 40, "l": [[1]] * 40, "d": days}
    path = tmp_path / "own.parquet"
    path.write_bytes(parquet(a=[a for a, _ in ROWS], **nested, y=[y for _, y in ROWS]))
    with pytest.raises(
        InputError, match=r"of type struct.* \('l', 'd' too\); nested columns are not"
    ) as caught:
        _loaded(path)
    advised = re.search(r"--drop ([\w,]+)", str(caught.value))
    assert advised
    assert _loaded(path, reading=Reading(drop=tuple(advised[1].split(",")))).features == ("a",)
    path.write_bytes(parquet(d=days, y=[y for _, y in ROWS]))
    with pytest.raises(InputError, match=r"timestamp.*make numbers of it, such as days, or text"):
        _loaded(path)


def _labelled(folder: Path, labels: list[object]) -> Path:
    path = folder / "own.csv"
    path.write_text("a,y\n" + "".join(f"{i % 7 / 10},{label}\n" for i, label in enumerate(labels)))
    return path


def test_a_label_of_very_many_values_is_refused_in_a_line(tmp_path: Path) -> None:
    texts, numbers = _labelled(tmp_path, [f"z{i}" for i in range(100_000)]), tmp_path / "numbers.csv"
    with pytest.raises(
        InputError, match=r"100,000 classes.*--positive.*another column \(--label\)"
    ) as caught:
        datasets.load(str(texts))
    assert len(str(caught.value)) < 500
    assert datasets.load(str(texts), positive=["z1"]).y.sum() == 1
    _labelled(tmp_path, list(range(1000))).rename(numbers)
    for multiclass in (False, True):
        with pytest.raises(InputError, match=r"1,000 classes.*unbiased-response.*--low, --high"):
            datasets.load(str(numbers), multiclass=multiclass)
    [note] = [each for each in datasets.describe(str(numbers))["notes"] if "label" in each]
    assert "1,000 different numbers" in note


def test_missing_labels_are_not_advised_to_be_imputed_or_dropped(tmp_path: Path) -> None:
    path = _labelled(tmp_path, [("yes", "no", "")[i % 3] for i in range(60)])
    with pytest.raises(InputError, match=r"never imputed.*--missing drop: 20 of 60 rows") as caught:
        _loaded(path)
    assert "--missing impute" not in str(caught.value)
    assert len(_loaded(path, reading=Reading(missing="drop")).y) == 40


def test_classes_in_other_case_are_told_and_put_together(tmp_path: Path) -> None:
    path = _labelled(tmp_path, [("yes", "Yes", "no", "NO")[i % 4] for i in range(60)])
    with pytest.raises(InputError, match=r"'NO' and 'no', 'Yes' and 'yes' differ .*--positive Yes,yes\)"):
        datasets.load(str(path))
    both = datasets.load(str(path), positive=["Yes", "yes"])
    assert (both.y.mean(), both.cautions) == (0.5, ())
    [caution] = datasets.load(str(path), positive=["yes"]).cautions
    assert "'Yes' and 'yes'" in caution
    assert len(datasets.load(str(path), multiclass=True).cautions) == 2


def test_blanks_around_labels_are_cut(tmp_path: Path) -> None:
    path = _labelled(tmp_path, [("yes", " yes ", "no", "no ")[i % 4] for i in range(40)])
    assert _loaded(path).classes == ("y = no", "y = yes")
    columns = {"a": np.arange(40) % 7 / 10, "y": [("yes", "yes ", "no", " no")[i % 4] for i in range(40)]}
    pd.DataFrame(columns).to_parquet(tmp_path / "own.parquet")
    assert _loaded(tmp_path / "own.parquet").classes == ("y = no", "y = yes")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["yes"] * 40, "warning: label 'y' holds 'yes' alone: at least two"),
        ([f"2020-01-{1 + i % 28:02d}" for i in range(40)], "warning: label 'y' holds dates: make classes of them"),
        ([f"z{i}" for i in range(300)], "warning: label 'y' holds 300 different texts.*256 classes at most"),
        (["Yes", "yes"] * 20, "warning: label 'y': 'Yes' and 'yes' differ in upper and lower case"),
        ([0] * 99 + [1], "note: only 1 of 100 labels are '1'"),
    ],
)  # fmt: skip
def test_a_label_is_looked_at_before_anything_is_run(
    tmp_path: Path, labels: list[object], words: str
) -> None:
    assert re.search(words, " ".join(datasets.describe(str(_labelled(tmp_path, labels)))["notes"]))


def test_dates_are_no_classes(tmp_path: Path) -> None:
    path = _labelled(tmp_path, [f"2020-01-{1 + i % 28:02d}" for i in range(60)])
    with pytest.raises(InputError, match="these are dates: make classes of them first"):
        datasets.load(str(path))


def test_a_file_of_no_known_ending_is_named_for_what_it_holds_and_can_be_called_so(tmp_path: Path) -> None:
    for name in ("table", "table.mine"):
        file = tmp_path / name
        file.write_text("a,y\n" + "".join(f"{i % 7 / 10},{('no', 'yes')[i % 2]}\n" for i in range(20)))
        with pytest.raises(
            InputError, match=r"if it is a table, call it table\.csv; what is read ends in \.csv"
        ):
            _loaded(file)
        assert len(_loaded(file.rename(tmp_path / "table.csv")).y) == 20


def test_numbers_that_are_too_many_for_classes_are_not_advised_to_be_classes(tmp_path: Path) -> None:
    many = _labelled(tmp_path, list(range(600)))
    with pytest.raises(InputError, match=r"--positive.*, or take another column") as caught:
        datasets.load_by_kind(str(many), range=None)
    assert "--categorical" not in str(caught.value)
    few = _labelled(tmp_path, [i % 200 for i in range(600)])
    with pytest.raises(InputError, match="or say --categorical y if each is a class"):
        datasets.load_by_kind(str(few), range=None)
    assert (
        len(datasets.load_by_kind(str(few), range=None, reading=Reading(categorical=("y",))).classes) == 200
    )
