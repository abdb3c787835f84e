"""Bad input: each case is refused; the error names the thing, its value, what is allowed, what to do."""

from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pandas as pd
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.datasets import load


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def parquet(**columns):
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


X = np.ones((2, 2))
IDX = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 1, 1) + b"\1\2"
MANY = "label,a\n" + "".join(f"{i},1\n" for i in range(257))

CASES = {
    "no such column": ("a.csv", "a,label\n1,0\n2,1\n", {"label": "z"}, ["'z'", "'a', 'label'"]),
    "no label said": ("a.csv", "a,b\n1,0\n2,1\n", {}, ["which column", "--label", "'a', 'b'"]),
    "no such positive": ("a.csv", "a,label\n1,0\n2,1\n", {"positive": ["7"]}, ["'7'", "'label'", "'0', '1'"]),
    "no positive": ("a.csv", "a,label\n1,0\n2,1\n", {"positive": []}, ["names none", "'0', '1'"]),
    "all positive": ("a.csv", "a,label\n1,0\n2,1\n", {"positive": ["0", "1"]}, ["every one", "leave some"]),
    "positive and multiclass": (
        "a.csv",
        "a,label\n1,0\n2,1\n",
        {"positive": ["1"], "multiclass": True},
        ["both"],
    ),
    "one class": ("a.csv", "a,label\n1,1\n2,1\n", {}, ["'label'", "one class, '1'", "at least two"]),
    "one class of many": ("a.csv", "a,label\n1,1\n2,1\n", {"multiclass": True}, ["one class, '1'"]),
    "three classes": ("a.csv", "a,label\n1,x\n2,y\n3,z\n", {}, ["3 classes", "'x', 'y', 'z'", "--positive"]),
    "257 classes": ("a.csv", MANY, {"multiclass": True}, ["257 classes", "at most 256"]),
    "nan": ("a.csv", "a,label\n1,0\nnan,1\n", {}, ["column 'a'", "'nan'", "row 2", "fill it"]),
    "empty cell": ("a.csv", "a,label\n1,0\n3,1\n,1\n", {}, ["column 'a'", "''", "row 3"]),
    "empty text": ("a.csv", "a,label\nx,0\n,1\n", {}, ["column 'a'", "row 2", "'?'"]),
    "missing label": ("a.csv", "a,label\n1,0\n2,NA\n", {}, ["column 'label'", "'NA'", "row 2"]),
    "infinite": ("a.csv", "a,label\n1,0\ninf,1\n", {}, ["column 'a'", "inf", "row 2"]),
    "mixed types": (
        "a.csv",
        "a,label\n1,0\n2,0\nblue,1\n",
        {},
        ["'a'", "mixes", "'1' in row 1", "'blue' in row 3"],
    ),
    "mixed label": ("a.csv", "a,label\n1,0\n2,yes\n", {}, ["'label'", "mixes", "'yes' in row 2"]),
    "too large": ("a.csv", "a,label\n1,0\n1e300,1\n", {}, ["column 'a'", "1e+300", "3.4e38"]),
    "empty file": ("a.csv", "", {}, ["is empty"]),
    "empty gz": ("a.csv.gz", gzip.compress(b""), {}, ["is empty"]),
    "header only": ("a.csv", "a,label\n", {}, ["no rows"]),
    "no header": ("a.csv", "1,0\n2,1\n3,1\n", {}, ["looks like a row", "column names first"]),
    "label only": ("a.csv", "label\n1\n0\n", {}, ["no feature column", "'label'"]),
    "unequal lines": ("a.csv", "a,label\n1,0\n2,1,5\n", {}, ["not a readable table", "columns"]),
    "not utf-8": ("a.csv", b"a,label\n\xff\xfe,0\nx,1\n", {}, ["not a readable table", "UTF-8"]),
    "name twice": ("a.csv", "a,a,label\n1,1,0\n2,2,1\n", {}, ["two columns called 'a'", "rename"]),
    "no name": ("a.csv", ",a,label\n0,1,0\n1,2,1\n", {}, ["column 1", "no name", "remove it"]),
    "cut gz": ("a.csv.gz", gzip.compress(b"a,label\n1,0\n2,1\n" * 9)[:-9], {}, ["not a whole gzip file"]),
    "unknown kind": ("a.docx", "x", {}, ["'.docx'", ".csv", ".parquet", "IDX"]),
    "bad parquet": ("a.parquet", "PAR1 nonsense", {}, ["not a readable Parquet file"]),
    "null in parquet": ("a.parquet", parquet(a=[1, None], label=[0, 1]), {}, ["column 'a'", "row 2"]),
    "null text": ("a.parquet", parquet(a=["x", None], label=[0, 1]), {}, ["column 'a'", "row 2"]),
    "parquet type": ("a.parquet", parquet(a=[[1], [2]], label=[0, 1]), {}, ["column 'a'", "of type list"]),
    "empty parquet": ("a.parquet", parquet(a=np.zeros(0), label=np.zeros(0)), {}, ["no rows"]),
    "open quote": ("a.csv", 'a,label\n"1,0\n2,1\n', {}, ["not a readable table"]),
    "npy for npz": ("a.npz", npy(X), {}, ["not a readable npz"]),
    "bad npz": ("a.npz", "PK nonsense", {}, ["not a readable npz"]),
    "npz of objects": (
        "a.npz",
        npz(x=np.array([{}], object), y=[0]),
        {},
        ["not a readable npz", "no objects"],
    ),
    "npz without x": ("a.npz", npz(z=X, y=[0, 1]), {}, ["no array 'x'", "'z', 'y'"]),
    "npz flat": ("a.npz", npz(x=[1, 2], y=[0, 1]), {}, ["'x'", "(2,)", "(n, d)"]),
    "npz lengths": ("a.npz", npz(x=X, y=[0, 1, 1]), {}, ["'y'", "(3,)", "2 rows"]),
    "npz nan": ("a.npz", npz(x=[[1, 2], [3, np.nan]], y=[0, 1]), {}, ["'x'", "nan", "row 2", "feature 'x1'"]),
    "npz no rows": ("a.npz", npz(x=np.zeros((0, 2)), y=np.zeros(0)), {}, ["no rows"]),
    "npz complex": ("a.npz", npz(x=X * 1j, y=[0, 1]), {}, ["complex"]),
    "not idx": ("a-images-idx3-ubyte", "hello there", {}, ["not an IDX file"]),
    "cut idx": ("a-images-idx3-ubyte", IDX[:-1], {}, ["cut or damaged"]),
    "idx without labels": ("a-images-idx3-ubyte", IDX, {}, ["not beside it", "a-labels-idx1-ubyte"]),
    "idx labels": (
        "a-labels-idx1-ubyte",
        bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]),
        {},
        ["pass the file of images"],
    ),
    "bad svmlight": ("a.svm", "one two three\n", {}, ["not in svmlight format"]),
    "svmlight nan": ("a.svm", "1 1:nan\n0 1:2\n", {}, ["a feature is nan in row 1"]),
    "negative cluster": (
        "a.csv",
        "g,a,label\n-1,1,0\n2,2,1\n",
        {"cluster": "g"},
        ["'g'", "-1", "row 1", "0 or more"],
    ),
    "half cluster": (
        "a.csv",
        "g,a,label\n1,1,0\n2.5,2,1\n",
        {"cluster": "g"},
        ["'g'", "2.5", "row 2", "whole"],
    ),
    "missing cluster": ("a.csv", "g,a,label\n1,1,0\n,2,1\n", {"cluster": "g"}, ["'g'", "row 2"]),
    "no such cluster": (
        "a.csv",
        "a,label\n1,0\n2,1\n",
        {"cluster": "g"},
        ["no cluster column 'g'", "'a', 'label'"],
    ),
    "cluster is label": (
        "a.csv",
        "a,label\n1,0\n2,1\n",
        {"cluster": "label"},
        ["'label'", "clusters are public"],
    ),
}


@pytest.mark.parametrize(("name", "content", "options", "says"), CASES.values(), ids=CASES.keys())
def test_bad_file(tmp_path, name, content, options, says):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        load(str(path), **options)
    text = str(caught.value)
    assert [part for part in says if part not in text] == [], text
    assert "\n" not in text.strip()


def test_idx_pair_of_unequal_length(tmp_path):
    (tmp_path / "a-images-idx3-ubyte").write_bytes(IDX)
    (tmp_path / "a-labels-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 1, 5]))
    with pytest.raises(InputError, match=r"labels of shape \(1,\).* 2 images"):
        load(str(tmp_path / "a-images-idx3-ubyte"))


def test_unknown_names_and_missing_files(tmp_path):
    with pytest.raises(
        InputError,
        match=r"unknown data set 'mnits'; did you mean 'mnist'\?; known names are digits, .*path of a file",
    ):
        load("mnits")
    for other in ("zero.csv", "nearly.txt"):
        (tmp_path / other).touch()
    with pytest.raises(InputError, match=r"no data file '.*nothere.csv'; check the path"):
        load(str(tmp_path / "nothere.csv"))  # an ending and a folder in common make no name alike
    with pytest.raises(InputError, match=r"no data file '.*'; did you mean '.*nearly.txt'\?; check the path"):
        load(str(tmp_path / "neary.csv"))
    with pytest.raises(InputError, match=r"no data file 'nothing.csv'; check the path"):
        load("nothing.csv")
    with pytest.raises(InputError, match="no data file"):
        load(str(tmp_path / "a" / "b"))
    with pytest.raises(InputError, match="unknown data set ''"):
        load("")
    with pytest.raises(InputError, match="is a folder; pass one file in it"):
        load(str(tmp_path))


def test_named_sets_refuse_too():
    with pytest.raises(InputError, match=r"'11' does not occur in label 'digit' of digits"):
        load("digits", positive=["11"])
    with pytest.raises(InputError, match=r"digits has no label column 'age'"):
        load("digits", label="age")
