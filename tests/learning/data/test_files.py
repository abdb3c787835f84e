"""A person's own files: every format gives the same examples, and columns are encoded as documented."""

from __future__ import annotations

import gzip
import hashlib
import struct

import numpy as np
import pandas as pd
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data.datasets import load

CSV = "age,town,label\n30,Rome,1\n41.5,Oslo,0\n22,Rome,0\n"
X = [[30.0, 0, 1], [41.5, 1, 0], [22, 0, 1]]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# mtime: contents name the tests, and processes that share them must agree on their names, whenever they start
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV.encode()),
        ("a.CSV", CSV.encode()),
        ("a.csv", b"\xef\xbb\xbf" + CSV.encode()),
        ("a.csv", CSV.replace("\n", "\r\n").encode()),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("a.tsv", CSV.replace(",", "\t").encode()),
        ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode(), mtime=0)),
    ],
)
def test_delimited(tmp_path, name, content):
    path = write(tmp_path / name, content)
    data = load(path)
    assert data.x.tolist() == X
    assert data.x.dtype == np.float32
    assert data.features == ("age", "town=Oslo", "town=Rome")
    assert data.y.tolist() == [True, False, False]
    assert data.y.dtype == np.bool_
    assert (data.name, data.source, data.label, data.test) == (name, path, "label", None)
    assert data.classes == ("label = 0", "label = 1")
    assert data.positive == "label = 1"


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {"age": [30, 41.5, 22], "town": ["Rome", "Oslo", "Rome"], "label": [True, False, False]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    data = load(str(tmp_path / "a.parquet"))
    assert data.x.tolist() == X
    assert data.y.tolist() == [True, False, False]
    frame["town"] = frame["town"].astype("category")
    frame["age"] = frame["age"].astype("float32")
    frame.to_parquet(tmp_path / "b.parquet")
    again = load(str(tmp_path / "b.parquet"), positive=["True"])
    assert again.x.tolist() == X
    assert again.y.tolist() == [True, False, False]


@pytest.mark.parametrize("name", ["x", "X"])
def test_npz(tmp_path, name):
    block = np.arange(24).reshape(3, 2, 4)
    more = {"y": np.array([2, 5, 5]), "town": np.array(["b", "a", "b"]), "group": np.array([4, 0, 4])}
    np.savez_compressed(tmp_path / "a.npz", **{name: block}, **more)
    data = load(str(tmp_path / "a.npz"), cluster="group")
    assert data.x.tolist() == block.reshape(3, 8).tolist()
    assert data.features == tuple(f"{name}{i}" for i in range(8))
    assert data.y.tolist() == [False, True, True]
    assert data.positive == "y = 5 (of the two values, the larger in sorted order)"
    assert data.cluster.tolist() == [4, 0, 4]
    other = load(str(tmp_path / "a.npz"), label="town", positive=["a"])
    assert other.y.tolist() == [False, True, False]
    assert other.x.shape == (3, 8)  # y is no feature


def idx(array, code):
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.mark.parametrize(
    ("images", "labels", "packed"),
    [
        ("t-images-idx3-ubyte", "t-labels-idx1-ubyte", False),
        ("t-images-idx3-ubyte.gz", "t-labels-idx1-ubyte.gz", True),
        ("t-images-idx3-ubyte.gz", "t-labels-idx1-ubyte", True),
        ("t-images.idx3-ubyte", "t-labels.idx1-ubyte", False),
    ],
)
def test_idx(tmp_path, images, labels, packed):
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    write(tmp_path / labels, idx(np.array([7, 1], np.uint8), 8))
    content = idx(pixels, 8)
    data = load(write(tmp_path / images, gzip.compress(content) if packed else content))
    assert data.x.tolist() == pixels.reshape(2, 6).tolist()
    assert data.features[:4] == ("pixel 0,0", "pixel 0,1", "pixel 0,2", "pixel 1,0")
    assert data.y.tolist() == [True, False]


def test_idx_of_floats(tmp_path):
    write(tmp_path / "f-labels-idx1-ubyte", idx(np.array([0, 1], np.uint8), 8))
    path = write(tmp_path / "f-images-idx3-ubyte", idx(np.array([[[0.5]], [[-2.0]]], ">f4"), 13))
    assert load(path).x.tolist() == [[0.5], [-2.0]]


@pytest.mark.parametrize("name", ["a.svm", "a.libsvm", "a.svmlight", "a.svm.gz"])
def test_svmlight(tmp_path, name):
    text = b"+1 1:0.5 3:2\n-1 2:1\n+1 3:-1\n"
    data = load(write(tmp_path / name, gzip.compress(text) if name.endswith("gz") else text))
    assert data.x.tolist() == [[0.5, 0, 2], [0, 1, 0], [0, 0, -1]]
    assert data.y.tolist() == [True, False, True]
    assert data.positive == "label = 1 (of the two values, the larger in sorted order)"


def test_default_label_columns(tmp_path):
    path = write(tmp_path / "a.csv", "y,target,a\n0,1,5\n1,1,6\n")
    assert load(path).label == "y"
    path = write(tmp_path / "b.csv", "Class,a\nham,5\nspam,6\n")
    data = load(path)
    assert data.label == "Class"
    assert data.y.tolist() == [False, True]
    assert data.classes == ("Class = ham", "Class = spam")


def test_cluster_column_is_taken_out_and_may_have_gaps(tmp_path):
    path = write(tmp_path / "a.csv", "g,a,label\n7,1,0\n0,2,1\n7.0,3,1\n")
    data = load(path, cluster="g")
    assert data.cluster.tolist() == [7, 0, 7]
    assert data.cluster.dtype == np.int64
    assert data.features == ("a",)
    assert load(path).features == ("g", "a")


def test_classes_in_number_order_and_positive_lists(tmp_path):
    path = write(tmp_path / "a.csv", "label,a\n10,1\n9,2\n9,3\n2,4\n")
    many = load(path, multiclass=True)
    assert many.y.tolist() == [2, 1, 1, 0]
    assert many.y.dtype == np.uint8
    assert many.classes == ("2", "9", "10")
    data = load(path, positive=["2", "10.0"])
    assert data.y.tolist() == [True, False, False, True]
    assert data.classes == ("label not in {2, 10}", "label in {2, 10}")
    assert load(path, positive="9").y.tolist() == [False, True, True, False]


def test_64_values_are_one_hot_and_65_are_hashed(tmp_path):
    for count in (64, 65):
        rows = "".join(f"v{i % count},{i % 2}\n" for i in range(count + 1))
        data = load(write(tmp_path / "a.csv", "town,label\n" + rows))
        assert data.x.shape == (count + 1, 64)
        assert (data.x.sum(axis=1) == 1).all()
        if count == 64:
            assert data.features[:2] == ("town=v0", "town=v1")
            assert (data.x[:count].sum(axis=0) == 1).all()
        else:
            assert data.features[:2] == ("town#00", "town#01")
            place = int.from_bytes(hashlib.sha256(b"v17").digest()[:8], "little") % 64
            assert data.x[17].argmax() == place


def test_question_marks_are_a_category(tmp_path):
    data = load(write(tmp_path / "a.csv", "town,label\nRome,1\n?,0\n"))
    assert data.features == ("town=?", "town=Rome")


def test_a_quoted_cell_may_hold_commas_and_lines(tmp_path):
    data = load(write(tmp_path / "a.csv", 'town,label\n"Rome, It",1\n"Os\nlo",0\n'))
    assert data.features == ("town=Os\nlo", "town=Rome, It")
    long = "town,label\n" + '"Rome, It",1\n"Os\nlo",0\n' * 60_000  # over the reader's block of 1 MiB
    assert load(write(tmp_path / "b.csv", long)).x.sum(axis=0).tolist() == [60_000, 60_000]


def test_numbers_keep_their_values(tmp_path):
    data = load(write(tmp_path / "a.csv", "a,b,label\n1e3,-0.25,1\n 5 ,007,0\n"))
    assert data.x.tolist() == [[1000, -0.25], [5, 7]]


def test_too_many_cells_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("p2p_sim.learning.data.encoding.CELL_LIMIT", 8)
    path = write(tmp_path / "a.csv", CSV)
    with pytest.raises(InputError, match="3 rows of 3 features, over the 8 cells"):
        load(path)
