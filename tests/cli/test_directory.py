"""Where a run is written: names, the link to the newest, and nothing by halves."""

from __future__ import annotations

import os
import stat

import p2p_sim
from p2p_sim.trace import reader
from tests.cli.conftest import below

MANY = ("run", "peer-to-peer", "--users", "500", "--cluster-size", "100")


def test_directory_population_trace_and_digest(cli, tmp_path):
    whole = tmp_path / cli(*MANY, "--trace", "full", "--json").json["directory"]
    names = set(below(whole))
    assert {
        "run.json",
        "population.parquet",
        "outputs/learner.parquet",
        "messages/ask/round=1/part-00000-00000.parquet",
    } <= names
    assert stat.S_IMODE((whole / "population.parquet").stat().st_mode) == 0o600
    told = cli(
        *MANY, "--no-population", "--no-digest", "--trace", "counts", "--out", "elsewhere/bare", "--json"
    ).json
    assert (told["digest"], told["directory"]) == (None, "elsewhere/bare")
    assert set(below(tmp_path / "elsewhere")) == {
        "bare",
        "bare/run.json",
        "bare/messages",
        "bare/messages/manifest.json",
        "bare/outputs",
        "bare/outputs/learner.parquet",
    }
    assert "Digest      not asked for" in cli(*MANY, "--no-digest").out


def test_names_count_up_and_latest_follows(cli, tmp_path):
    for number in (1, 2, 3):
        cli(*MANY)
        assert os.readlink(tmp_path / "runs/latest") == f"peer-to-peer-synthetic-{number}"  # noqa: PTH115
    assert cli(*MANY, "--out", "runs/mine").status == 0
    assert os.readlink(tmp_path / "runs/latest") == "mine"  # noqa: PTH115
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {
        "latest", "mine", *(f"peer-to-peer-synthetic-{n}" for n in (1, 2, 3)),
    }  # fmt: skip


def test_force_replaces_a_run(cli, tmp_path):
    first = cli(*MANY, "--out", "runs/mine", "--trace", "full", "--json").json
    second = cli(*MANY, "--out", "runs/mine", "--seed", "5", "--force", "--json").json
    assert first["digest"] != second["digest"] == p2p_sim.load(tmp_path / "runs/mine").digest
    assert not (tmp_path / "runs/mine/messages").exists()
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["latest", "mine"]


def test_a_latest_that_is_no_link_is_left_alone(cli, tmp_path):
    (tmp_path / "runs/latest").mkdir(parents=True)
    done = cli(*MANY)
    assert done.status == 0
    assert "latest is not a link" in done.err
    assert (tmp_path / "runs/latest").is_dir()


def test_a_failed_write_leaves_nothing(cli, tmp_path, monkeypatch):
    def full(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("p2p_sim.trace.tables.write", full)
    done = cli(*MANY)
    assert done.status == 2
    assert done.err == "error: cannot write to 'runs': No space left on device\n"
    assert list(below(tmp_path)) == []


def test_an_interrupt_leaves_nothing(cli, tmp_path, monkeypatch):
    def stop(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("p2p_sim.trace.tables.write", stop)
    done = cli(*MANY)
    assert (done.status, done.out, done.err) == (130, "", "interrupted\n")
    assert list(below(tmp_path)) == []


def test_a_traced_run_says_beforehand_what_it_takes(cli):
    assert cli(*MANY).err == ""
    done = cli(*MANY, "--trace", "full")
    assert done.err.startswith("trace full: about 1,500 messages, ")
    assert "; sample=1000: about 1,500 messages" in done.err


def test_messages_of_a_run_that_is_interrupted_stay(cli, tmp_path, monkeypatch):
    def stop(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("p2p_sim.trace.tables.write", stop)
    done = cli(*MANY, "--trace", "full", "--out", "runs/mine")
    assert done.status == 130
    (left,) = (tmp_path / "runs").iterdir()
    assert f"the messages of the run that failed are in 'runs/{left.name}'" in done.err
    assert {path.name for path in left.iterdir()} == {"messages"}
    assert reader.open_trace(left).kept == 1500
