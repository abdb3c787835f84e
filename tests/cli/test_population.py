"""``run --population`` of a raw table: labels of text, and test rows among the others, as ``--data`` takes them."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import p2p_sim
from p2p_sim import InputError, parquet_users
from p2p_sim.cli import population_option
from p2p_sim.learning.data.stored_table import StoredTable
from tests.learning.test_stored_table import IS_TEST, RAW, SEED, SHARE, YES, prepared, written

COLUMNS = ["age", "hours", "member", "site", "text"]
RUN = ("run", "peer-to-peer", "--alpha", 0.1, "--cluster-column", "site", "--seed", SEED, "--json")
LABEL = ("--label", "text", "--classes", "no,yes")
TRAINED = ("--model", "logistic-regression")


@pytest.fixture
def raw(tmp_path: Path) -> str:
    return written(tmp_path / "raw", RAW[COLUMNS], (800,), 300)


def test_it_is_the_run_of_a_prepared_table(cli: Any, raw: str, tmp_path: Path) -> None:
    users, test = prepared(tmp_path, YES)
    mine = cli(*RUN, *LABEL, *TRAINED, "--population", raw, "--test", SHARE, "--out", "mine")
    theirs = cli(*RUN, *TRAINED, "--population", users, "--test-population", test, "--out", "theirs")
    assert (mine.status, theirs.status) == (0, 0), mine.err + theirs.err
    for same in ("digest", "released", "accuracy", "clusters", "privacy", "users"):
        assert mine.json[same] == theirs.json[same], same
    assert mine.json["accuracy"]["accuracy_corrected"] is not None
    data = mine.json["data"]
    assert (data["label"], data["positive"], data["classes_from"]) == ("text", "text = yes", "declared")
    assert (data["test_rows"], data["test_rows_are"]) == (900, "30 % of the rows, drawn by seed")
    again = cli(*p2p_sim.load("mine").notes["command"][1:], "--json", "--out", "again").json
    assert (again["digest"], again["accuracy"]) == (mine.json["digest"], mine.json["accuracy"])
    shown = cli("report", "mine", "--format", "md").out
    assert "3,000 rows, 3 features; label text" in shown
    assert "1 means text = yes" in shown


def test_it_is_the_run_of_data(cli: Any, tmp_path: Path) -> None:
    """Which are read whole; there the split seed draws the test rows, too."""
    RAW[COLUMNS].to_parquet(tmp_path / "raw.parquet", index=False)
    split = ("--test", SHARE, "--split-seed", 8)
    found = [
        cli(*RUN, *LABEL, *split, *kind, "--out", name).json
        for name, kind in (("here", ("--data", "raw.parquet")), ("there", ("--population", "raw.parquet")))
    ]
    for same in ("digest", "released", "users", "privacy"):
        assert found[0][same] == found[1][same], same
    for same in (
        "label",
        "classes",
        "positive",
        "classes_from",
        "rows",
        "test_rows",
        "test_rows_are",
        "split_seed",
    ):
        assert found[0]["data"][same] == found[1]["data"][same], same
    assert found[1]["accuracy"] is None  # nobody asked for a model; the test rows are in no run all the same
    shown = cli(
        "run", *RUN[1:-1], *LABEL, *split, "--population", "raw.parquet", "--out", "shown", "--verbose"
    ).out
    assert "3,000 rows\n" in shown
    assert "900 further rows test the model (30 % of the rows, drawn by seed; split seed 8)" in shown


@pytest.mark.parametrize("kind", ["--data", "--population"])
def test_more_labels_than_classes_are_warned_of(cli: Any, kind: str, tmp_path: Path) -> None:
    RAW[COLUMNS].to_parquet(tmp_path / "raw.parquet", index=False)
    words = ("run", "randomized-response", "--epsilon", 1, "--seed", SEED, "--force", "--out", "run", *LABEL)
    told = "warning: randomized-response is set to 3 labels, and label 'text' has 2 classes: nobody has the others"
    assert told in cli(*words, kind, "raw.parquet", "--labels", 3).err
    assert "nobody has the others" not in cli(*words, kind, "raw.parquet").err


@pytest.mark.parametrize(
    "address",
    ["s3://KEY:SECRET@lab/users", "s3://KEY:SE/SECRET@lab/users", "s3://lab/users?secret_key=SECRET"],
)
def test_credentials_are_kept_nowhere(cli: Any, address: str, raw: str, tmp_path: Path) -> None:
    for words in (("--population", address), ("--population", raw, *TRAINED, "--test-population", address)):
        for more in ((), ("--plan",)):
            refused = cli(*RUN, *words, *more, "--log", "log", "--out", "kept")
            assert (refused.status, refused.out) == (2, "")
            assert "the address s3://... holds credentials" in refused.err
            assert "set environment variables instead (for s3:// AWS_ACCESS_KEY_ID" in refused.err
            assert "SECRET@" not in refused.err
            assert "=SECRET" not in refused.err
    with pytest.raises(InputError, match="holds credentials") as error:
        StoredTable(address).population()
    assert "SECRET" not in str(error.value).replace("AWS_SECRET", "")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
    parquet_users.check_address("hdfs://reader@name-node:8020/users")
    parquet_users.check_address("s3://lab/users?scheme=http&endpoint_override=127.0.0.1:5599")


def test_a_graph_of_rows_joins_users(cli: Any, tmp_path: Path) -> None:
    """Edges of a file name rows of the table, and those of test rows are left out, as of data."""
    RAW[COLUMNS].to_parquet(tmp_path / "raw.parquet", index=False)
    rows = [row for row in range(len(RAW)) if not IS_TEST[row]]
    ring = [*zip(rows, [*rows[1:], rows[0]], strict=True), (int(IS_TEST.argmax()), rows[0])]
    (tmp_path / "edges.csv").write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in ring))
    words = (
        "run",
        "network-shuffle",
        "--epsilon",
        1,
        "--steps",
        3,
        "--graph",
        "edges.csv",
        "--seed",
        SEED,
        "--json",
    )
    words += ("--test", SHARE, *LABEL)
    there = cli(*words, "--population", "raw.parquet", "--out", "there")
    assert there.status == 0, there.err
    here = cli(*words, "--data", "raw.parquet", "--model", "none", "--out", "here").json
    assert (there.json["digest"], there.json["graph"]) == (here["digest"], here["graph"])


def test_a_plan_says_what_training_takes(cli: Any, raw: str, tmp_path: Path, monkeypatch: Any) -> None:
    words = (*RUN[:-1], "--population", raw, *LABEL, "--test", SHARE, "--plan")
    plain, trained = cli(*words, "--json").json, cli(*words, *TRAINED, "--json").json
    assert (plain["users"], plain["scratch"]) == (2100, {"labels": 0, "features": 0})
    assert trained["scratch"] == {"labels": 2100 * 5, "features": 2100 * 25}
    assert trained["machines"][0]["memory"] > plain["machines"][0]["memory"] + (50 << 20)
    shown = cli(*words, *TRAINED).out
    assert "For training" in shown
    assert "labels 10.5 kB, features 52.5 kB; " in shown
    saved = sum(trained["disk"].values())
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 99_000))
    shown = " ".join(cli(*words, *TRAINED).out.split())
    assert (
        "features, for which 105 kB would have to be free, are not kept: each pass makes them anew" in shown
    )
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, saved + 9000))
    refused = cli(*words, *TRAINED)
    assert (refused.status, "(TMPDIR), needs 10.5 kB of disk for training and has" in refused.err) == (
        2,
        True,
    )
    assert refused.err.endswith(
        "on disk "
        + refused.err.partition("on disk ")[2].partition("): ")[0]
        + "): name another folder for temporary "
        "files by the variable TMPDIR, or take fewer users\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_a_plan_of_features_that_are_drawn(cli: Any) -> None:
    words = (
        "run",
        "randomized-response",
        "--epsilon",
        1,
        "--users",
        "1e7",
        "--features",
        8,
        "--plan",
        "--json",
    )
    found = cli(*words).json
    assert found["scratch"] == {"labels": 5 * 10**7, "features": 65 * 10**7}
    assert cli(*words, "--model", "none").json["scratch"] == {"labels": 0, "features": 0}


def test_an_interrupted_run_goes_on(cli: Any, raw: str, monkeypatch: Any) -> None:
    """With the same labels and test rows, which are noted; and not with other files."""
    from p2p_sim.rundir.growing_columns import GrowingColumns

    words = (*RUN, *LABEL, *TRAINED, "--population", raw, "--test", SHARE)
    whole = cli(*words, "--out", "whole").json

    def stop(*_words: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GrowingColumns, "close", stop)
        assert cli(*words, "--out", "cut").status == 130
    refused = cli("run", "--resume", "cut", "--test", 0.2)
    assert (refused.status, "--test 0.2 contradicts run" in refused.err) == (2, True)
    file = Path(raw) / "1.parquet"
    honest = file.read_bytes()
    RAW[COLUMNS][800:].assign(text="yes").to_parquet(file, index=False)
    refused = cli("run", "--resume", "cut")
    assert (refused.status, f"data {file} differs" in refused.err) == (2, True)
    file.write_bytes(honest)
    shutil.copytree("whole", "cut")  # the same command, given again
    refused = cli("run", "--resume", *[path.name for path in Path().glob("cut.partial-*")])
    assert (refused.status, "remove what was cut off: p2p-sim rm cut.partial-" in refused.err) == (2, True)
    shutil.rmtree("cut")
    assert cli("run", "--resume", "cut").status == 0
    cut = p2p_sim.load("cut")
    assert (cut.digest, cut.notes["accuracy"], cut.notes["data"]) == (
        whole["digest"],
        whole["accuracy"],
        whole["data"],
    )


SWAPS = {
    "other labels": lambda file: RAW[COLUMNS][800:].assign(text="yes").to_parquet(file, index=False),
    "other rows": lambda file: RAW[COLUMNS][:900].to_parquet(file, index=False),
    "no label": lambda file: RAW[["age", "site"]][800:].to_parquet(file, index=False),
    "no file": lambda file: file.unlink(),
    "no folder": lambda file: shutil.rmtree(file.parent),
}


@pytest.mark.parametrize(
    ("when", "swap"),
    [
        *(("users", swap) for swap in SWAPS),
        ("examples", "no label"),
        ("examples", "no file"),
        ("released", "other labels"),
        ("saved", "other labels"),
        ("saved", "no file"),
    ],
)
def test_a_file_that_changes_during_a_run_is_named(
    cli: Any, raw: str, swap: str, when: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """Before users are read, before rows train a model, and when all is computed; the run then goes on."""
    from p2p_sim.cli import run
    from p2p_sim.learning import training_in_batches
    from p2p_sim.rundir import population_file

    shutil.copytree(raw, tmp_path / "kept")
    where, name = {
        "users": (population_option, "users"), "examples": (training_in_batches, "train_beside"),
        "released": (run.RunCommand, "_account"), "saved": (population_file, "write"),
    }[when]  # fmt: skip
    honest = getattr(where, name)

    def swapped(*words: Any) -> Any:
        found = honest(*words) if when == "users" else None
        SWAPS[swap](Path(raw) / "1.parquet")
        return found if when == "users" else honest(*words)

    words = (*RUN, *LABEL, *TRAINED, "--population", raw, "--test", SHARE, "--out", "cut")
    with monkeypatch.context() as patch:
        patch.setattr(where, name, swapped)
        refused = cli(*words)
    assert (refused.status, refused.out) == (2, "")
    assert (
        "1.parquet' was changed" in refused.err or "1.parquet' is gone" in refused.err or swap == "no folder"
    )
    assert "while the run was under way" in refused.err
    assert "put them back as they were, and go on with --resume" in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "cut").exists()
    shutil.rmtree(raw, ignore_errors=True)
    shutil.copytree(tmp_path / "kept", raw)
    assert cli("run", "--resume", "cut").status == 0


def test_a_run_begun_in_another_folder(cli: Any, raw: str, tmp_path: Path, monkeypatch: Any) -> None:
    from p2p_sim.cli import run

    def stop(*_words: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run.RunCommand, "_account", stop)
        assert cli(*RUN, *LABEL, "--population", "raw", "--out", "cut").status == 130
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    refused = cli("run", "--resume", "../cut")
    assert (refused.status, f"was begun in {str(tmp_path)!r}: go on with it there" in refused.err) == (
        2,
        True,
    )
    monkeypatch.chdir(tmp_path)
    assert cli("run", "--resume", "cut").status == 0


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("gs://lab/users", "gs://lab/users?retry_limit_seconds=30"),
        ("gcs://lab/users?scheme=http", "gcs://lab/users?scheme=http&retry_limit_seconds=30"),
        ("gs://lab/users?retry_limit_seconds=5", "gs://lab/users?retry_limit_seconds=5"),
        ("s3://lab/users", "s3://lab/users"),
        ("/lab/gs://users", "/lab/gs://users"),
    ],
)
def test_a_store_that_does_not_answer_is_not_asked_for_long(
    given: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Google's is asked for 15 minutes by default, in which neither Ctrl-C nor SIGTERM is heard."""
    from pyarrow import fs

    heard: list[str] = []
    monkeypatch.setattr(fs, "FileSystem", SimpleNamespace(from_uri=lambda uri: (heard.append(uri), "")))
    monkeypatch.setattr(parquet_users, "whole_address", lambda place: place)
    parquet_users.system_of(given)
    assert heard == [asked]
