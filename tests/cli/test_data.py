"""``p2p-sim data FILE``, and the options that say how a file is read, on every verb that reads one."""

from __future__ import annotations

import json

import pytest

TABLE = "id;acid;town;label\n" + "".join(
    f"{i};{i % 7},5;{'Rome' if i % 2 else 'Oslo'};{'ill' if i % 3 else 'well'}\n" for i in range(40)
)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TABLE)
    return str(path)


def test_data_says_what_it_understood_of_every_column(cli, table):
    told = cli("data", table).out
    assert told.splitlines()[0] == f"{table}: 40 rows; UTF-8; semicolons between cells; a comma for decimals"
    for line in ("id whole numbers 0 to 39 0 40 1 feature", "acid numbers 0.5 to 6.5 0 7 1 feature"):
        assert line in [" ".join(row.split()) for row in told.splitlines()]
    assert "warning: column id: another one in every row" in told
    assert "note: label 'label' holds 'ill', 'well'" in told
    found = cli("data", table, "--drop", "id", "--categorical", "acid", "--json").json
    assert [row["column"] for row in found["columns"]] == ["acid", "town", "label"]
    assert found["columns"][0]["becomes"] == "7 features"
    assert cli("data", "digits", "--json").json["rows"] == 1797


def test_data_refuses_options_without_a_file(cli):
    for words, says in (
        (("--drop", "a"), "--drop goes with a file"),
        (("nothing.csv",), "no data file 'nothing.csv'"),
    ):
        done = cli("data", *words)
        assert (done.status, says in done.err) == (2, True), done.err


def test_run_takes_the_same_options(cli, table, tmp_path):
    common = ("--data", table, "--epsilon", "2", "--model", "none", "--seed", "1", "--json")
    words = ("--drop", "id", "--cluster-column", "town", "--classes", "well,ill")
    told = cli("run", "randomized-response", *common, *words, "--out", str(tmp_path / "r"))
    data = told.json["data"]
    assert (data["features"], data["classes_from"], data["positive"]) == (1, "declared", "label = ill")
    assert told.json["clusters"]["count"] == 2
    again = " ".join(json.loads((tmp_path / "r" / "run.json").read_text())["notes"]["command"])
    assert "--classes well,ill" in again
    assert "--drop id" in again
    bare = cli("run", "randomized-response", *common, "--out", str(tmp_path / "s"))
    assert bare.json["data"]["classes_from"] == "inferred"
    assert "was taken from the labels of 'label'" in bare.err


@pytest.mark.parametrize("verb", ["run", "account"])
def test_options_of_files_go_with_data(cli, verb):
    done = cli(verb, "randomized-response", "--epsilon", "1", "--users", "100", "--separator", ";")
    assert (done.status, "--separator needs --data" in done.err) == (2, True), done.err


def test_account_reads_a_table_as_run_does(cli, table):
    words = ("--data", table, "--cluster-column", "town", "--positive", "ill", "--view", "learner")
    told = cli("account", "peer-to-peer", *words, "--json")
    assert told.json["clusters"]["count"] == 2
