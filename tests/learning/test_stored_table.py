"""A raw table in Parquet files: the bits of one that pandas prepared from the same rows, however they are stored."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import parquet

import p2p_sim
from p2p_sim import InputError, parquet_users
from p2p_sim.backends import layout
from p2p_sim.core.random_words import stream, words
from p2p_sim.learning import data_split, experiment
from p2p_sim.learning.data import datasets, stored_examples
from p2p_sim.learning.data.stored_table import StoredTable
from protocols import PeerToPeer, RandomizedResponse

ROWS, SHARE, SEED = 3000, 0.3, 11
FEATURES = ["age", "hours", "member"]


def raw() -> pandas.DataFrame:
    """A table sorted by site, with labels of several types that mean the same."""
    rng = np.random.default_rng(5)
    high = rng.random(ROWS) < 0.4
    site = np.sort(rng.integers(0, 25, ROWS)) * 2
    frame = pandas.DataFrame(
        {"age": rng.normal(40 + 9 * high, 10), "hours": rng.integers(0, 60, ROWS), "site": site}
    )
    frame["member"] = rng.random(ROWS) < 0.2 + 0.5 * high
    frame["text"] = np.where(high, np.where(rng.random(ROWS) < 0.5, " yes", "yes"), "no ")
    frame["category"] = pandas.Categorical(np.where(high, "yes", "no"), ["yes", "maybe", "no"])
    frame["number"], frame["flag"], frame["decimal"] = np.where(high, 3, 7), high, np.where(high, 3.0, 7.0)
    frame["grade"] = np.array(["good", "fair", "poor"])[rng.integers(0, 3, ROWS)]
    return frame


RAW = raw()
IS_TEST = np.zeros(ROWS, np.bool_)
IS_TEST[
    np.argsort(words(SEED, stream("split", "test", 0), 0, ROWS), kind="stable")[: round(ROWS * SHARE)]
] = True


def written(place: Path, frame: pandas.DataFrame, cuts: tuple[int, ...] = (), group: int = ROWS) -> str:
    place.mkdir(parents=True)
    for number, (low, high) in enumerate(itertools.pairwise([0, *cuts, len(frame)])):
        frame[low:high].to_parquet(place / f"{number}.parquet", index=False, row_group_size=group)
    return str(place)


def prepared(folder: Path, y: Any) -> tuple[str, str]:
    """The users and the test rows, divided and labelled by pandas."""
    frame = RAW[[*FEATURES, "site"]].assign(y=np.asarray(y))
    return written(folder / "users", frame[~IS_TEST]), written(folder / "test", frame[IS_TEST])


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_users, "_BATCH", 130)
    monkeypatch.setattr(stored_examples, "READ", 170)


STORED = {
    "one file": {},
    "small row groups": {"group": 37},
    "many files": {"cuts": (1, 2, 1100, 1101, 2999), "group": 500},
}
YES = RAW["text"].str.strip() == "yes"
MEANT: dict[str, tuple[dict[str, Any], Any]] = {
    "text, positive": ({"label": "text", "positive": ["yes"]}, YES),
    "text, classes": ({"label": "text", "classes": ["yes", "no"]}, ~YES),
    "text, both": ({"label": "text", "classes": ["no", "yes", "never"], "positive": ["yes"]}, YES),
    "categories": ({"label": "category", "classes": ["no", "yes"]}, YES),
    "numbers, positive": ({"label": "number", "positive": ["3"]}, YES),
    "numbers, classes": ({"label": "number", "classes": ["3.0", "7"]}, ~YES),
    "decimals": ({"label": "decimal", "classes": ["7", "3"]}, YES),
    "bools": ({"label": "flag", "classes": ["true", "false"]}, ~YES),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("test", [None, SHARE])
def test_users_are_those_that_pandas_prepares(
    stored: str, test: float | None, tmp_path: Path, small_batches: None
) -> None:
    place = written(tmp_path / "raw", RAW, **STORED[stored])
    for how, y in MEANT.values():
        people = StoredTable(place, cluster="site", test=test, seed=SEED, **how).population()
        kept = RAW.assign(y=np.asarray(y))[~IS_TEST if test else slice(None)]
        theirs = p2p_sim.Population.from_arrays(y=kept["y"].to_numpy(), cluster=kept["site"].to_numpy())
        assert people.hash == theirs.hash, how
        assert people.sizes.tolist() == theirs.sizes.tolist()


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_each_shard_reads_its_own(shards: int, tmp_path: Path, small_batches: None) -> None:
    place = written(tmp_path / "raw", RAW, (700,), 300)
    table = StoredTable(
        place, label="grade", cluster="site", classes=["poor", "fair", "good"], test=SHARE, seed=SEED
    )
    origin: Any = table.population().origin
    bounds = list(itertools.pairwise(layout.edges(origin.users, shards)))
    looked = origin.looked([origin.look(low, high) for low, high in bounds])
    parts = [looked.part(low, high) for low, high in bounds]
    users = RAW[~IS_TEST]
    expected = users["grade"].map({"poor": 0, "fair": 1, "good": 2}).to_numpy()
    assert np.array_equal(np.concatenate([part.y for part in parts]), expected)
    assert np.array_equal(np.concatenate([part.clusters.label for part in parts]), users["site"])
    assert (looked.labels, int(looked.sizes.sum())) == (3, len(users))


@pytest.mark.parametrize("how", MEANT)
def test_it_means_what_it_means_of_data(how: str, tmp_path: Path) -> None:
    """The same rows by ``--data``, which reads them whole: users, test rows and every bit of the run."""
    label = MEANT[how][0]["label"]
    frame = RAW[[*FEATURES, "site", label]]
    place = written(tmp_path / "raw", frame, (), 400)
    table = StoredTable(place, cluster="site", test=SHARE, seed=SEED, **MEANT[how][0])
    words_ = {name: each for name, each in MEANT[how][0].items() if name != "label"}
    data = datasets.load(f"{place}/0.parquet", label=label, cluster="site", **words_)
    found = data_split.gather(PeerToPeer(0.1), data, test=SHARE, seed=SEED)
    here = p2p_sim.run(PeerToPeer(0.1), found.population, seed=3)
    there = p2p_sim.run(PeerToPeer(0.1), table.population(), seed=3)
    assert there.digest == here.digest
    x, y = stored_examples.held_out(table.examples()).spread(ROWS)
    assert np.array_equal(y, found.y_test)
    assert np.allclose(x, found.x_test)


@pytest.mark.parametrize("stored", STORED)
def test_what_is_learnt_is_that_of_a_prepared_table(stored: str, tmp_path: Path, small_batches: None) -> None:
    users, test = prepared(tmp_path, YES)
    place = written(tmp_path / "raw", RAW[[*FEATURES, "site", "text"]], **STORED[stored])
    table = StoredTable(place, label="text", cluster="site", positive=["yes"], test=SHARE, seed=SEED)
    ready = stored_examples.of_users(users, cluster="site")
    mine, theirs = (
        experiment.among(RandomizedResponse(1.0), people, "here", examples=examples, test=tests, seed=SEED)
        for people, examples, tests in (
            (table.population(), table.examples(), stored_examples.held_out(table.examples())),
            (parquet_users.population(users, cluster="site"), ready, stored_examples.of_test(test, ready)),
        )
    )
    assert mine.digest == theirs.digest
    assert mine.notes["accuracy"] == theirs.notes["accuracy"]  # bit by bit
    assert mine.notes["accuracy"]["accuracy_true"] > 0.7
    for column, values in theirs.output("learner").items():
        assert np.array_equal(mine.output("learner")[column], values)
    assert mine.notes["data"] | {"source": ""} == {
        "name": "population", "source": "", "rows": ROWS, "label": "text", "positive": "text = yes",
        "classes": ["text is not yes", "text = yes"], "features": 3, "test_rows": 900,
        "test_rows_are": "30 % of the rows, drawn by seed",
    }  # fmt: skip


def test_test_rows_elsewhere_mean_the_same(tmp_path: Path) -> None:
    place, further = (written(tmp_path / name, RAW) for name in ("raw", "further"))
    users = StoredTable(place, label="category", cluster="site", classes=["no", "yes"]).examples(
        drop=["text", "number", "flag", "decimal", "grade"]
    )
    _, y = stored_examples.of_test(further, users).spread(ROWS)
    assert np.array_equal(y, YES)
    with pytest.raises(InputError, match=r"no rows of .* are held out: give test"):
        stored_examples.held_out(users)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"label": "text"}, r"column 'text' of .* has the type .*string: .* --positive A,B .* or --classes A,B,C"),
        ({"label": "text", "classes": ["yes", "noo"]}, r"'text' of '.*0\.parquet' holds 'no', not among the declared "
         r"classes 'yes', 'noo'; did you mean 'noo'\?; add it to the classes"),
        ({"label": "text", "positive": ["Yes"]}, r"positive value 'Yes' does not occur .*; did you mean 'yes'\?; its "
         "values are 'no', 'yes'"),
        ({"label": "text", "positive": ["yes", "no"]}, r"positive \['yes', 'no'\] names every one of the classes"),
        ({"label": "text", "positive": []}, "positive names none of the classes"),
        ({"label": "text", "classes": ["yes"]}, r"classes \['yes'\]: list at least two, each once"),
        ({"label": "number", "classes": ["3", "3.0"]}, r"classes \['3', '3.0'\]: list at least two, each once"),
        ({"label": "text", "classes": ["no", "yes"], "positive": ["maybe"]}, "positive value 'maybe' does not occur"),
        ({"label": "constant", "classes": ["1", "2"]}, "label 'constant' of .* has one class, '1'"),
        ({"label": "holes", "classes": ["a", "b"]}, r"column 'holes' of .* has missing values \(nulls\): fill them in"),
        ({"label": "day", "classes": ["1", "2"]}, r"label 'day' of .* has the type timestamp.*: needed are text"),
        ({"label": "text", "classes": [str(each) for each in range(257)]}, "257 are declared, and 256 are allowed"),
        ({"label": "flag", "test": 1.5}, "test share 1.5 of 3000 rows"),
        ({"label": "site", "cluster": "site"}, "cluster column 'site' is the label too"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(how: dict[str, Any], says: str, tmp_path: Path) -> None:
    frame = RAW.assign(constant=1, day=pandas.Timestamp("2026-01-01"))
    frame["holes"] = pandas.Series(["a", None, "b"] * 1000)
    with pytest.raises(InputError, match=says):
        StoredTable(written(tmp_path / "raw", frame, (), 400), **how).population().hash  # noqa: B018


def test_a_value_of_test_rows_alone_occurs(tmp_path: Path, small_batches: None) -> None:
    """As ``--data`` takes it; and a strange one there is found before the run."""
    frame = RAW.assign(text=RAW["text"].mask(IS_TEST, "rare"))
    place = written(tmp_path / "raw", frame, (700,))
    how: dict[str, Any] = {"label": "text", "test": SHARE, "seed": SEED}
    people = StoredTable(place, positive=["yes", "rare"], **how).population()
    assert np.array_equal(people.y, YES[~IS_TEST])
    with pytest.raises(InputError, match="holds 'rare', not among the declared classes"):
        StoredTable(place, classes=["no", "yes"], **how).population().hash  # noqa: B018


def test_a_strange_value_is_named_with_its_row(tmp_path: Path, small_batches: None) -> None:
    frame = RAW.assign(text=np.where(np.arange(ROWS) == 2500, "never", "no"))
    people = StoredTable(
        written(tmp_path / "raw", frame, (1000,)), label="text", classes=["no", "yes"]
    ).population()
    with pytest.raises(
        InputError, match=r"1\.parquet', row 1,431 or later, holds 'never', not among the declared"
    ):
        people.hash  # noqa: B018


def test_no_number_is_a_missing_value(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"y": [1.0, float("nan")]}), tmp_path / "table.parquet")
    with pytest.raises(InputError, match=r"column 'y' of .* has missing values \(nan\): fill them in"):
        StoredTable(str(tmp_path / "table.parquet"), classes=["a", "b"]).population().hash  # noqa: B018


def test_many_numbers_beside_the_positive_ones(tmp_path: Path) -> None:
    """What occurs is remembered in part; positive values are not forgotten among the others."""
    frame = pandas.DataFrame({"y": np.arange(5000) % 2500})
    people = StoredTable(written(tmp_path / "raw", frame, (3000,)), positive=["2400", "7"]).population()
    assert np.flatnonzero(people.y).tolist() == [7, 2400, 2507, 4900]
