"""Data sets from OpenML: fetched by pinned id, checked, and put in the order of the folder's copy."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from p2p_sim.core.errors import InputError
from p2p_sim.learning.data import named_datasets, sources
from p2p_sim.learning.data.datasets import load
from p2p_sim.learning.data.named_datasets import NAMED, OpenML
from p2p_sim.learning.data.tables import Category
from tests.learning.conftest import need


@pytest.fixture
def serve(monkeypatch):
    """Serve a bunch, or raise an error, in place of OpenML; returns the list of what was asked for."""
    asked = []

    def install(answer):
        def fetch_openml(**wanted):
            asked.append(wanted)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
        monkeypatch.delenv(sources.VARIABLE, raising=False)
        return asked

    return install


def small(monkeypatch, name, **changes):
    """Replace a named set by one of a few rows."""
    changed = replace(NAMED[name], **{"openml": OpenML(NAMED[name].openml.id, "small"), **changes})
    monkeypatch.setitem(NAMED, name, changed)
    return changed


def frame_of(named, order):
    """Write the folder's table as OpenML would give it: text as categories, '?' as missing."""
    table = named_datasets.from_folder(named)
    cells = {}
    for name, column in table.columns.items():
        if isinstance(column, Category):
            text = np.array(column.values, object)[column.codes[order]]
            cells[name] = pd.Categorical(np.where(text == "?", np.nan, text))
        else:
            cells[name] = column[order].astype(np.int64)
    frame = pd.DataFrame(cells)
    return SimpleNamespace(data=frame.drop(columns=named.label), target=frame[named.label])


def adult_rows():
    """Five rows, test part first: two of the test part (one positive), then three."""
    n = 5
    cells = {name: pd.Categorical(["a", "b", "a", "b", "a"]) for name in NAMED["adult"].columns[:-1]}
    cells.update({name: np.arange(n, dtype=float) for name in NAMED["adult"].numeric})
    cells["workclass"] = pd.Categorical(["Private", np.nan, "Private", " Private", "State-gov"])
    target = pd.Series(pd.Categorical([">50K", "<=50K", "<=50K", "<=50K", "<=50K"]), name="class")
    return SimpleNamespace(data=pd.DataFrame(cells, columns=NAMED["adult"].columns[:-1]), target=target)


def test_a_table_is_reordered_and_coded(monkeypatch, serve):
    small(monkeypatch, "adult", counts=((3, 0), (1, 1)))
    asked = serve(adult_rows())
    data = load("adult")
    assert asked == [{"data_id": 1590, "as_frame": True, "parser": "auto"}]
    assert data.source == "OpenML 1590 (small)"
    assert data.test.tolist() == [False, False, False, True, True]
    assert data.y.tolist() == [False, False, False, True, False]
    assert data.x[:, data.features.index("age")].tolist() == [2, 3, 4, 0, 1]
    workclass = [name for name in data.features if name.startswith("workclass")]
    assert workclass == ["workclass=?", "workclass=Private", "workclass=State-gov"]
    assert data.x[:, data.features.index("workclass=?")].tolist() == [0, 0, 0, 0, 1]


def test_other_class_counts_are_refused(monkeypatch, serve):
    small(monkeypatch, "adult", counts=((2, 1), (1, 1)))
    serve(adult_rows())
    with pytest.raises(InputError, match=r"OpenML 1590 .* its classes have \[4, 1\] rows"):
        load("adult")


def test_parts_in_no_known_order_have_no_test_rows(monkeypatch, serve):
    small(monkeypatch, "adult", counts=((3, 0), (1, 1)))
    bunch = adult_rows()
    bunch.target = pd.Series(pd.Categorical(["<=50K", "<=50K", ">50K", "<=50K", "<=50K"]))
    serve(bunch)
    assert load("adult").test is None


def test_wrong_columns_are_refused(monkeypatch, serve):
    small(monkeypatch, "adult", counts=((3, 0), (1, 1)))
    bunch = adult_rows()
    serve(SimpleNamespace(data=bunch.data.drop(columns="age"), target=bunch.target))
    with pytest.raises(InputError, match="it has 14 columns, not 15"):
        load("adult")
    bunch.data["age"] = ["a", "b", "c", "d", "e"]
    serve(bunch)
    with pytest.raises(InputError, match="column 'age'"):
        load("adult")


def test_images_are_reordered_and_colours_interleaved(monkeypatch, serve):
    small(monkeypatch, "cifar10", counts=((1,) * 10, (1,) * 10))
    pixels = np.zeros((20, 3, 32, 32))
    pixels[:, 1] = 7  # green
    pixels[5, 2, 0, 1] = 9
    asked = serve(
        SimpleNamespace(data=pixels.reshape(20, -1), target=np.array([str(i % 10) for i in range(20)]))
    )
    data = load("cifar10")
    assert asked[0]["data_id"] == 40927
    assert data.x[0, :6].tolist() == [0, 7, 0, 0, 7, 0]
    assert data.x[5, data.features.index("pixel 0,1,2")] == 9
    assert data.test.tolist() == [False] * 10 + [True] * 10
    assert data.y[:10].tolist() == [False, False, True, True, True, True, True, True, False, False]
    serve(SimpleNamespace(data=pixels.reshape(20, -1)[:, 1:], target=np.zeros(20)))
    with pytest.raises(InputError, match="shape"):
        load("cifar10")


def test_content_is_checked_against_the_pinned_sum(monkeypatch, serve):
    pixels = np.arange(20 * 4).reshape(20, 4) % 256
    target = np.array([str(i % 10) for i in range(20)])
    rows = [bytes([*row, i % 10]) for i, row in enumerate(pixels.tolist())]
    pin = sum(int.from_bytes(hashlib.sha256(row).digest()[:8], "little") for row in rows) % 2**64
    counts = ((1,) * 10, (1,) * 10)
    small(monkeypatch, "mnist", counts=counts, shape=(2, 2), width=4, openml=OpenML(554, "t", f"{pin:016x}"))
    serve(SimpleNamespace(data=pixels, target=target))
    assert load("mnist").x.tolist() == pixels.tolist()
    pixels[3, 3] += 1
    with pytest.raises(InputError, match="another checksum"):
        load("mnist")


def test_content_sum_is_free_of_order_and_known():
    assert named_datasets.content_sum([]) == "0" * 16
    assert named_datasets.content_sum([b"abc"]) == "eacf018fbf1678ba"  # SHA-256("abc") = ba7816bf8f01cfea...
    assert named_datasets.content_sum([b"abc", b"d"]) == named_datasets.content_sum([b"d", b"abc"])
    assert named_datasets.content_sum([b"abc", b"abc"]) != named_datasets.content_sum([b"abc"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "magic"])
def test_openml_gives_what_the_folder_gives(name, monkeypatch, serve):
    need(name)
    named = NAMED[name]
    here = load(name)
    bunch = frame_of_magic(named) if name == "magic" else frame_of(named, np.r_[32561:48842, 0:32561])
    serve(bunch)
    there = load(name)
    assert there.source.startswith("OpenML")
    assert there.features == here.features
    assert (there.x == here.x).all()
    assert (there.y == here.y).all()
    assert (there.test is None) == (here.test is None)
    assert here.test is None or (there.test == here.test).all()
    if named.openml.content:
        bunch.data.iloc[7, 0] += 1
        with pytest.raises(InputError, match="another checksum"):
            load(name)


def frame_of_magic(named):
    """OpenML's copy has a column of row numbers, ID, before the features."""
    table = named_datasets.from_folder(named)
    label = table.columns[named.label]
    frame = pd.DataFrame({f"{name}:": table.columns[name] for name in named.numeric})
    frame.insert(0, "ID", np.arange(len(frame)))
    return SimpleNamespace(data=frame, target=pd.Series(pd.Categorical.from_codes(label.codes, label.values)))


def test_the_pinned_sum_of_images_is_that_of_the_folder():
    need("fashion-mnist")
    table = named_datasets.from_folder(NAMED["fashion-mnist"])
    rows = named_datasets.image_rows(table.matrix, table.columns["class"].codes)
    assert named_datasets.content_sum(rows) == NAMED["fashion-mnist"].openml.content


@pytest.mark.parametrize("error", [URLError("no route"), TimeoutError("slow"), ValueError("OpenML says no")])
def test_no_network_says_what_to_do(serve, error):
    serve(error)
    with pytest.raises(
        InputError, match=r"mnist .* could not be fetched from OpenML 554 .*; set P2P_SIM_DATA"
    ):
        load("mnist")
