"""``p2p-sim run --log``: what happens, as JSON lines."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest


def events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_what_happens_is_appended_as_json_lines(cli, tmp_path):
    log = tmp_path / "log.jsonl"
    words = (
        "run",
        "peer-to-peer",
        "--users",
        "300",
        "--cluster-size",
        "30",
        "--seed",
        "1234567",
        "--log",
        log,
    )
    plain = cli(*words[:-2], "--json").json
    done = cli(*words, "--json").json
    assert (done["digest"], done["messages"]) == (plain["digest"], plain["messages"])
    told = events(log)
    assert [each["event"] for each in told if each["event"] != "round"] == [
        "started",
        "phase",
        "phase",
        "finished",
    ]
    rounds = [each for each in told if each["event"] == "round"]
    assert [(each["role"], each["round"]) for each in rounds if each["messages"]] == [
        ("user", 1), ("user", 2), ("user", 3),
    ]  # fmt: skip
    assert sum(each["messages"] for each in rounds) <= told[-1]["messages"] == 900
    times = [datetime.datetime.fromisoformat(each["time"]) for each in told]
    assert times == sorted(times)
    assert "1234567" not in log.read_text()  # whoever reads a log is not told the seed
    assert cli(*words).status == 0
    assert len(events(log)) == 2 * len(told)


def test_a_run_that_fails_says_so(cli, tmp_path):
    log = tmp_path / "log.jsonl"
    done = cli("run", "peer-to-peer", "--data", "breast-cancer", "--label", "nothing", "--log", log)
    assert done.status == 2
    assert [each["event"] for each in events(log)] == ["started", "failed"]
    assert events(log)[-1].keys() == {"time", "event", "error"}, "its text may quote a row of the data"
    assert events(log)[-1]["error"] == "InputError"


def test_a_log_that_cannot_be_written_is_refused(cli, tmp_path):
    done = cli("run", "peer-to-peer", "--users", "300", "--log", tmp_path / "no" / "log.jsonl")
    assert done.status == 2
    assert "--log " in done.err
    assert "give a file in a folder that exists" in done.err


def test_a_log_is_no_other_file_of_the_command_and_none_of_a_run(cli, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("age,label\n" + "".join(f"{i},{i % 2}\n" for i in range(60)))
    text = people.read_bytes()
    done = cli("run", "randomized-response", "--data", people, "--log", people)
    assert "names this file twice" in done.err
    assert people.read_bytes() == text
    assert cli("run", "randomized-response", "--users", "50", "--out", tmp_path / "one").status == 0
    done = cli("run", "randomized-response", "--users", "50", "--log", tmp_path / "one" / "run.json")
    assert "belongs to the run" in done.err
    same = tmp_path / "same"
    assert cli("run", "randomized-response", "--users", "50", "--log", same, "--out", same).status == 2
    assert not same.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux's")
def test_a_log_on_a_full_disk_is_named(cli):
    done = cli("run", "randomized-response", "--users", "50", "--log", "/dev/full")
    assert done.status == 2
    assert "--log '/dev/full' cannot be written (No space left on device)" in done.err
