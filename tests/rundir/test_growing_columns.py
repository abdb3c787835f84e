"""Columns written block by block: the files of one write, names only for what is whole, nothing left of what failed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from p2p_sim.rundir import growing_columns, parquet_columns
from p2p_sim.rundir.growing_columns import GrowingColumns
from p2p_sim.testing import equal

CHANCE = np.random.default_rng(0)


def drawn(rows: int) -> dict[str, np.ndarray]:
    """Columns of every kind that outputs may have."""
    return {
        "rising": np.arange(rows, dtype=np.int32),
        "bit": CHANCE.random(rows) < 0.3,
        "real": CHANCE.random(rows),
        "vector": CHANCE.integers(0, 9, (rows, 3)).astype(np.uint8),
    }


def grown(folder: Path, columns: dict[str, np.ndarray], cuts: list[int], site: int | None = None) -> None:
    growing, rows = GrowingColumns(folder, "user", site), max(map(len, columns.values()))
    for low, high in zip([0, *cuts], [*cuts, rows], strict=True):
        growing.add({name: column[low:high] for name, column in columns.items()})
    growing.close()


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("rows", [0, 5, 2_200_000])
def test_the_bytes_are_those_of_one_write(tmp_path: Path, rows: int) -> None:
    columns = {name: column for name, column in drawn(rows).items() if rows < 10 or name in ("rising", "bit")}
    parquet_columns.write(tmp_path / "whole" / "user.parquet", columns)
    grown(tmp_path / "one", columns, [])
    grown(tmp_path / "many", columns, [rows // 10, rows // 5, rows // 5, rows - 1] if rows else [])
    assert files(tmp_path / "whole") == files(tmp_path / "one") == files(tmp_path / "many")


@pytest.mark.parametrize("site", [None, 2])
@pytest.mark.parametrize("odd", [True, False])
def test_files_do_not_show_the_blocks(tmp_path: Path, monkeypatch, site, odd) -> None:
    """Of many row groups, of columns of one length and of several."""
    monkeypatch.setattr(growing_columns, "_ROWS", 8)
    columns = drawn(45)
    if odd:
        columns["bit"] = columns["bit"][:30]
    grown(tmp_path / "one", columns, [], site)
    found = files(tmp_path / "one")
    parts = "" if site is None else "user/parts/00002"
    if odd:
        start = "user/" if site is None else f"{parts}-"
        assert sorted(found) == sorted(f"{start}{name}.parquet" for name in columns)
    else:
        assert list(found) == [f"{parts or 'user'}.parquet"]
        file = parquet.ParquetFile(tmp_path / "one" / next(iter(found)))
        assert [file.metadata.row_group(i).num_rows for i in range(6)] == [8, 8, 8, 8, 8, 5]
    back = parquet_columns.read_apart(tmp_path, "one")["user"]
    assert equal({name: back[name] for name in columns}, columns)
    if not odd:
        for cuts in ([3], [8, 9, 40], list(range(1, 45))):
            grown(tmp_path / str(len(cuts)), columns, cuts, site)
            assert files(tmp_path / str(len(cuts))) == found


@pytest.mark.parametrize("even", [3, 8, 11, 27])
def test_columns_that_part_ways_are_read_back(tmp_path: Path, monkeypatch, even: int) -> None:
    """They were of one length for some rows, perhaps already written."""
    monkeypatch.setattr(growing_columns, "_ROWS", 8)
    first, more = drawn(even), drawn(20)
    growing = GrowingColumns(tmp_path / "outputs", "user")
    growing.add(first)
    growing.add({name: column[: 5 if name == "vector" else 20] for name, column in more.items()})
    growing.add({name: column[:0] if name == "bit" else column for name, column in first.items()})
    growing.close()
    back = parquet_columns.read_apart(tmp_path, "outputs")["user"]
    for name, column in first.items():
        parts = [column, more[name][: 5 if name == "vector" else 20], column[: 0 if name == "bit" else None]]
        assert np.array_equal(back[name], np.concatenate(parts))
        assert back[name].dtype == column.dtype
    assert sorted(files(tmp_path / "outputs")) == sorted(f"user/{name}.parquet" for name in first)


def test_columns_that_part_ways_in_vain_leave_no_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(growing_columns, "_ROWS", 8)
    growing, columns = GrowingColumns(tmp_path, "user"), drawn(20)
    growing.add(columns)

    def fail(_self: object, _group: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", fail)
    with pytest.raises(OSError, match="No space"):
        growing.add(columns | {"bit": columns["bit"][:3]})
    growing.abandon()
    assert files(tmp_path) == {}


def test_a_file_has_its_name_when_it_is_whole(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(growing_columns, "_ROWS", 8)
    whole, left = GrowingColumns(tmp_path, "user"), GrowingColumns(tmp_path, "learner")
    for growing in (whole, left):
        growing.add(drawn(20))
    assert sorted(files(tmp_path)) == [".learner.parquet.tmp", ".user.parquet.tmp"]
    whole.close()
    left.abandon()
    assert list(files(tmp_path)) == ["user.parquet"]
