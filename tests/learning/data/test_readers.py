"""One battery for every way in which a table comes in, with one list of what each table means."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from p2p_sim.core import InputError, Population
from p2p_sim.learning.data.datasets import load
from p2p_sim.learning.data.reading_options import PLAIN, Reading

BIG = 2**53


@dataclass(frozen=True)
class Given:
    """A table of features by name, labels, and maybe clusters."""

    features: dict[str, Any]
    label: Any
    cluster: Any = None

    @property
    def columns(self) -> dict[str, Any]:
        return (
            self.features | ({} if self.cluster is None else {"group": self.cluster}) | {"label": self.label}
        )

    @property
    def block(self) -> np.ndarray:
        return np.column_stack(list(self.features.values()))


@dataclass(frozen=True)
class Meant:
    """What a table means: features (n, d), the class of each row, the cluster of each row."""

    x: np.ndarray
    y: list[int]
    cluster: list[int] | None = None


def numbered(column: Any) -> list[int]:
    return np.unique(np.asarray(column), return_inverse=True)[1].tolist()


def loaded(path: Path, given: Given, reading: Reading) -> Meant:
    data = load(
        str(path), cluster=None if given.cluster is None else "group", multiclass=True, reading=reading
    )
    return Meant(data.x, data.y.tolist(), None if data.cluster is None else numbered(data.cluster))


def populated(people: Population) -> Meant:
    groups = None if people.clusters is None else people.clusters.codes.tolist()
    assert people.x is not None
    return Meant(people.x, people.y.tolist(), groups)


def cell(value: Any) -> str:
    return value if isinstance(value, str) else repr(value.item() if hasattr(value, "item") else value)


def delimited(name: str, separator: str) -> Callable[[Given, Path, Reading], Meant]:
    def read(given: Given, folder: Path, reading: Reading) -> Meant:
        rows = [
            list(given.columns),
            *([cell(v) for v in row] for row in zip(*given.columns.values(), strict=True)),
        ]
        (folder / name).write_text("".join(separator.join(row) + "\n" for row in rows))
        return loaded(folder / name, given, reading)

    return read


def of_parquet(given: Given, folder: Path, reading: Reading) -> Meant:
    parquet.write_table(
        pa.table({k: pa.array(np.asarray(v)) for k, v in given.columns.items()}), folder / "a.parquet"
    )
    return loaded(folder / "a.parquet", given, reading)


def of_npz(given: Given, folder: Path, reading: Reading) -> Meant:
    more = {} if given.cluster is None else {"group": np.asarray(given.cluster)}
    np.savez(folder / "a.npz", x=given.block, label=np.asarray(given.label), **more)
    return loaded(folder / "a.npz", given, reading)


def idx(array: np.ndarray, code: int) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def of_idx(given: Given, folder: Path, reading: Reading) -> Meant:
    block = given.block.astype(">f8")
    (folder / "a-images-idx3-ubyte").write_bytes(idx(block.reshape(len(block), 1, -1), 14))
    (folder / "a-labels-idx1-ubyte").write_bytes(idx(np.asarray(given.label, ">f8"), 14))
    return loaded(folder / "a-images-idx3-ubyte", given, reading)


def of_svmlight(given: Given, folder: Path, reading: Reading) -> Meant:
    lines = [
        " ".join([cell(label), *(f"{i + 1}:{cell(v)}" for i, v in enumerate(row))])
        for label, row in zip(given.label, zip(*given.features.values(), strict=True), strict=True)
    ]
    (folder / "a.svm").write_text("\n".join(lines) + "\n")
    return loaded(folder / "a.svm", given, reading)


def of_frame(given: Given, _folder: Path, _reading: Reading) -> Meant:
    frame = pd.DataFrame(given.columns)
    cluster = None if given.cluster is None else "group"
    return populated(Population.from_table(frame, label="label", cluster=cluster))


def of_arrow(given: Given, _folder: Path, _reading: Reading) -> Meant:
    table = pa.table({k: pa.array(np.asarray(v)) for k, v in given.columns.items()})
    return populated(
        Population.from_table(table, label="label", cluster=None if given.cluster is None else "group")
    )


def own_file(ending: str) -> Callable[[Given, Path, Reading], Meant]:
    def read(given: Given, folder: Path, _reading: Reading) -> Meant:
        frame, path = pd.DataFrame(given.columns), folder / f"p{ending}"
        frame.to_csv(path, index=False) if ending == ".csv" else frame.to_parquet(path)
        cluster = None if given.cluster is None else "group"
        return populated(Population.from_file(path, label="label", cluster=cluster))

    return read


def of_arrays(given: Given, _folder: Path, _reading: Reading) -> Meant:
    return populated(Population.from_arrays(x=given.block, y=np.asarray(given.label), cluster=given.cluster))


READERS = {
    "csv": delimited("a.csv", ","),
    "semicolons": delimited("a.csv", ";"),
    "tsv": delimited("a.tsv", "\t"),
    "parquet": of_parquet,
    "npz": of_npz,
    "idx": of_idx,
    "svmlight": of_svmlight,
    "frame": of_frame,
    "arrow": of_arrow,
    "file csv": own_file(".csv"),
    "file parquet": own_file(".parquet"),
    "arrays": of_arrays,
}
TABLES = {"csv", "semicolons", "tsv", "parquet", "npz"}
FILES = TABLES | {"idx", "svmlight"}
PEOPLE = {"frame", "arrow", "file csv", "file parquet", "arrays"}
DROP, IMPUTE = Reading(missing="drop"), Reading(missing="impute")


@dataclass(frozen=True)
class Case:
    """A table, what it means, and for some readers the refusal that it meets instead; readers that cannot hold it."""

    given: Given
    meant: Meant | str
    refused: dict[str, str] = field(default_factory=dict)
    skip: frozenset[str] = frozenset()
    reading: Reading = PLAIN
    scaled: bool = False  # the features are the same up to a shift and a scale of each column


def column(*values: float) -> np.ndarray:
    return np.array([values]).T


NO_CLUSTERS = frozenset({"idx", "svmlight"})
A = [1.5, -2.0, 0.25, 8.0]
OFFSET = [5e7, 5e7 + 0.25, 5e7 + 0.75, 5e7 + 0.5]
TINY = [1e-50, 3e-50, 2e-50, 9e-50]
NAN = [1.5, float("nan"), 0.25, 8.0]
CASES = {
    "plain": Case(
        Given({"a": A, "b": [1, 2, 3, 4]}, [0, 1, 1, 0], [7, 0, 7, 0]),
        Meant(np.column_stack([A, [1, 2, 3, 4]]), [0, 1, 1, 0], [1, 0, 1, 0]),
        skip=NO_CLUSTERS,
    ),
    "three classes": Case(Given({"a": A}, [0, 2, 1, 2]), Meant(column(*A), [0, 2, 1, 2])),
    "clusters beyond 2^53": Case(
        Given({"a": A}, [0, 1, 1, 0], [BIG, BIG + 1, BIG + 1, BIG + 2]),
        Meant(column(*A), [0, 1, 1, 0], [0, 1, 1, 2]),
        skip=NO_CLUSTERS,
    ),
    "the largest cluster": Case(
        Given({"a": A}, [0, 1, 1, 0], [2**63 - 1, 2**63 - 2, 0, 0]),
        Meant(column(*A), [0, 1, 1, 0], [2, 1, 0, 0]),
        skip=NO_CLUSTERS,
    ),
    "clusters that were rounded": Case(
        Given({"a": A}, [0, 1, 1, 0], np.array([BIG, BIG + 2, 0, 0], np.float64)),
        "whole numbers up to 2.53 exactly",
        refused={"file csv": "numbers from 2.53 on"},
        skip=NO_CLUSTERS,
    ),
    "clusters that float32 rounded": Case(
        Given({"a": A}, [0, 1, 1, 0], np.array([2**24, 2**24 + 2, 0, 0], np.float32)),
        "whole numbers up to 2.24 exactly",
        skip=NO_CLUSTERS | {"csv", "semicolons", "tsv", "file csv"},
    ),
    "labels beyond 2^53": Case(
        Given({"a": A}, [BIG, BIG + 1, BIG + 1, BIG]),
        Meant(column(*A), [0, 1, 1, 0]),
        refused=dict.fromkeys(("idx", "svmlight"), "whole numbers up to 2.53 exactly")
        | dict.fromkeys(PEOPLE, "labels are 0 to k - 1"),
    ),
    "features beyond 2^53": Case(
        Given({"a": A, "b": [BIG, BIG + 1, BIG + 2, BIG + 3]}, [0, 1, 1, 0]),
        Meant(np.column_stack([A, [0, 1, 2, 3]]), [0, 1, 1, 0]),
        refused={"svmlight": "2.53 or more"}
        | dict.fromkeys(("frame", "arrow", "file csv", "file parquet"), "beyond 2.53, which float64"),
        skip=frozenset({"npz", "idx", "arrays"}),  # of one type: whoever makes the array rounds
        scaled=True,
    ),
    "large offset": Case(
        Given({"a": OFFSET}, [0, 1, 1, 0]), Meant(column(*OFFSET), [0, 1, 1, 0]), scaled=True
    ),
    "tiny scale": Case(Given({"a": TINY}, [0, 1, 1, 0]), Meant(column(*TINY), [0, 1, 1, 0]), scaled=True),
    "epochs": Case(
        Given({"a": [1700000019440, 1700000025655, 1700000021336, 1700000019441]}, [0, 1, 1, 0]),
        Meant(column(0, 6215, 1896, 1), [0, 1, 1, 0]),
        scaled=True,
    ),
    "missing": Case(
        Given({"a": NAN}, [0, 1, 1, 0]),
        "nan.* in row 2",
        refused=dict.fromkeys(PEOPLE, "x of user 1 is not finite"),
    ),
    "missing dropped": Case(
        Given({"a": NAN}, [0, 1, 1, 0]),
        Meant(column(1.5, 0.25, 8), [0, 1, 0]),
        skip=frozenset(PEOPLE),
        reading=DROP,
    ),
    "missing imputed": Case(
        Given({"a": NAN}, [0, 1, 1, 0]),
        Meant(column(1.5, 1.5, 0.25, 8), [0, 1, 1, 0]),
        skip=frozenset(PEOPLE),
        reading=IMPUTE,
    ),
    "infinite": Case(
        Given({"a": [1.5, float("inf"), 0.25, 8.0]}, [0, 1, 1, 0]),
        "inf.* in row 2",
        refused=dict.fromkeys(PEOPLE, "x of user 1 is not finite"),
        reading=IMPUTE,
    ),
    "text clusters": Case(
        Given({"a": A}, [0, 1, 1, 0], ["Rome", "Oslo", "Rome", "Bern"]),
        Meant(column(*A), [0, 1, 1, 0], [2, 1, 2, 0]),
        refused=dict.fromkeys(PEOPLE, "cluster has type"),
        skip=NO_CLUSTERS,
    ),
    "dropped": Case(
        Given({"a": A, "b": [1, 2, 3, 4]}, [0, 1, 1, 0]),
        Meant(column(*A), [0, 1, 1, 0]),
        skip=frozenset(PEOPLE),
    ),
}
SECOND = {"npz": "x1", "idx": "pixel 0,1", "svmlight": "f1"}
PAIRS = [(case, reader) for case in CASES for reader in READERS if reader not in CASES[case].skip]


@pytest.mark.parametrize(("name", "reader"), PAIRS, ids=[f"{reader}: {case}" for case, reader in PAIRS])
def test_every_reader_takes_a_table_to_mean_the_same(name, reader, tmp_path):
    case = CASES[name]
    reading = Reading(drop=(SECOND.get(reader, "b"),)) if name == "dropped" else case.reading
    says = case.refused.get(reader, case.meant if isinstance(case.meant, str) else None)
    if says is not None:
        with pytest.raises(InputError, match=says):
            READERS[reader](case.given, tmp_path, reading)
        return
    read, meant = READERS[reader](case.given, tmp_path, reading), case.meant
    assert isinstance(meant, Meant)
    assert (read.y, read.cluster) == (meant.y, meant.cluster)
    assert read.x.shape == meant.x.shape
    if case.scaled:  # float32 holds 24 bits of what differs
        np.testing.assert_allclose(_unit(read.x), _unit(meant.x), atol=2**-20)
    else:
        assert read.x.tolist() == meant.x.tolist()


def _unit(x: np.ndarray) -> np.ndarray:
    """Each column from 0 to 1."""
    apart = x.astype(np.float64) - x.min(axis=0).astype(np.float64)
    return apart / apart.max(axis=0)


def test_an_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": A, "label": [0, 1, 1, 0]}, index=[3, 1, 0, 2])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.rename_axis("id").to_parquet(tmp_path / "named.parquet")
    assert load(str(tmp_path / "a.parquet")).features == ("a",)
    assert load(str(tmp_path / "named.parquet")).features == ("a",)
    assert load(str(tmp_path / "named.parquet"), cluster="id").cluster.tolist() == [3, 1, 0, 2]
    for read in (frame, pa.Table.from_pandas(frame)):
        assert Population.from_table(read, label="label").x.tolist() == column(*A).tolist()
    assert Population.from_file(tmp_path / "a.parquet", label="label").x.tolist() == column(*A).tolist()


def test_a_name_twice_is_refused(tmp_path):
    frame = pd.DataFrame([[1.0, 2.0, 0], [3.0, 4.0, 1]], columns=["a", "a", "label"])
    twice = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 2 + [pa.array([0, 1])], names=["a", "a", "label"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    parquet.write_table(twice, tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        for read in (load, lambda p: Population.from_file(p, label="label")):
            with pytest.raises(InputError, match="two columns called 'a'"):
                read(str(path))
    for table in (frame, twice):
        with pytest.raises(InputError, match="two columns called 'a'"):
            Population.from_table(table, label="label")
