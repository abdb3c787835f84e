"""Where a run is written: names, the link to the newest, and nothing by halves."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

import p2p_sim
from p2p_sim.rundir import run_directory
from tests.cli.conftest import below

USERS = ("run", "peer-to-peer", "--users", "500", "--cluster-size", "100")
MANY = (*USERS, "--seed", "0")


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
        *USERS, "--no-population", "--no-digest", "--trace", "counts", "--out", "elsewhere/bare", "--json"
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


@pytest.mark.slow
def test_names_count_up_and_latest_follows(cli, tmp_path):
    for number in (1, 2, 3):
        cli(*MANY)
        assert os.readlink(tmp_path / "runs/latest") == f"peer-to-peer-synthetic-{number}"  # noqa: PTH115
    assert cli(*MANY, "--out", "runs/mine").status == 0
    assert os.readlink(tmp_path / "runs/latest") == "mine"  # noqa: PTH115
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {
        "latest", "mine", *(f"peer-to-peer-synthetic-{n}" for n in (1, 2, 3)),
    }  # fmt: skip


@pytest.mark.slow
def test_latest_follows_runs_that_are_written_elsewhere(cli, tmp_path):
    def links():
        found = {
            path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if path.is_symlink()
        }
        return {name: path.resolve().relative_to(tmp_path).as_posix() for name, path in found.items()}

    cli(*MANY, "--out", "first")
    assert links() == {}
    assert cli("trace", "stats", "runs/latest").err == (
        "error: 'runs/latest' is not a run directory: there is no such folder; p2p-sim run makes one and says where "
        "it is\n"
    )
    cli(*MANY)
    cli(*MANY, "--out", "second")
    assert links() == {"runs/latest": "second"}
    cli(*MANY, "--out", tmp_path / "deep/runs/third")
    assert links() == {"runs/latest": "deep/runs/third", "deep/runs/latest": "deep/runs/third"}
    assert os.readlink(tmp_path / "deep/runs/latest") == "third"  # noqa: PTH115
    assert os.readlink(tmp_path / "runs/latest") == "../deep/runs/third"  # noqa: PTH115
    cli(*MANY)
    assert links() == {"runs/latest": "runs/peer-to-peer-synthetic-2", "deep/runs/latest": "deep/runs/third"}
    shutil.rmtree(tmp_path / "runs/peer-to-peer-synthetic-2")
    gone = cli("trace", "stats", "runs/latest")
    assert (gone.status, "links to 'runs/peer-to-peer-synthetic-2', which is gone" in gone.err) == (2, True)


def test_a_link_through_another_link_leads_to_the_run(cli, tmp_path):
    (tmp_path / "disk/a/b").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "disk/a/b")
    cli(*MANY, "--out", "first")
    assert (tmp_path / "runs/latest").resolve() == tmp_path / "first"
    cli(*MANY)
    assert (tmp_path / "runs/latest").resolve() == tmp_path / "disk/a/b/peer-to-peer-synthetic-1"


def test_a_run_whose_link_fails_is_there(cli, tmp_path, monkeypatch):
    def denied(*_words, **_more):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.symlink_to", denied)
    done = cli(*MANY, "--json")
    assert done.status == 0
    assert "latest could not be linked to the run: Permission denied" in done.err
    assert p2p_sim.load(tmp_path / done.json["directory"]).digest == done.json["digest"]


def test_force_replaces_a_run(cli, tmp_path):
    first = cli(*MANY, "--out", "runs/mine", "--trace", "full", "--json").json
    second = cli(*USERS, "--out", "runs/mine", "--seed", "5", "--force", "--json").json
    assert first["digest"] != second["digest"] == p2p_sim.load(tmp_path / "runs/mine").digest
    assert not (tmp_path / "runs/mine/messages").exists()
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["latest", "mine"]


def test_a_latest_that_is_no_link_is_left_alone(cli, tmp_path):
    (tmp_path / "runs/latest").mkdir(parents=True)
    done = cli(*MANY)
    assert done.status == 0
    assert "latest is not a link" in done.err
    assert (tmp_path / "runs/latest").is_dir()


def test_a_failed_write_leaves_no_more_than_what_was_asked(cli, tmp_path, monkeypatch):
    def full(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("p2p_sim.rundir.population_file.write", full)
    done = cli(*MANY)
    assert done.status == 2
    says = r"\nerror: the run cannot be written to 'runs/.*partial-\w+': No space left on device; make room, or .*\n$"
    assert re.search(says, done.err)
    assert_only_asked(tmp_path, done.err)


def assert_only_asked(folder: Path, said: str) -> None:
    """Nothing is left but what was asked of the run, and how it goes on was said."""
    draft, asked = sorted((folder / "runs").rglob("*"))
    assert asked == draft / "asked.json"
    words = f"p2p-sim run --resume {draft.relative_to(folder)}"
    assert said.startswith(f"warning: the run was cut off; it goes on, with the same bits, by: {words}\n")


def test_an_interrupt_leaves_no_more_than_what_was_asked(cli, tmp_path, monkeypatch):
    def stop(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("p2p_sim.rundir.population_file.write", stop)
    done = cli(*MANY)
    assert (done.status, done.out, done.err.endswith("\ninterrupted\n")) == (130, "", True)
    assert_only_asked(tmp_path, done.err)


def test_a_traced_run_says_beforehand_what_it_takes(cli):
    assert cli(*MANY).err == ""
    done = cli(*MANY, "--trace", "full")
    assert done.err.startswith("trace full: about 1,500 messages, ")
    assert "; sample=1000: about 1,500 messages" in done.err
    assert cli(*MANY, "--trace", "counts").err.startswith("trace counts: no messages, 1.")


def test_messages_of_a_run_that_is_interrupted_stay(cli, tmp_path, monkeypatch):
    def stop(*_words):
        raise KeyboardInterrupt

    monkeypatch.setattr("p2p_sim.rundir.population_file.write", stop)
    done = cli(*MANY, "--trace", "full", "--out", "runs/mine")
    assert done.status == 130
    (left,) = (tmp_path / "runs").iterdir()
    assert f"the messages of the run that failed are in 'runs/{left.name}'" in done.err
    assert {path.name for path in left.iterdir()} == {"messages", "asked.json"}
    assert run_directory.open_trace(left).kept == 1500
