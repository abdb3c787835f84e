"""``p2p-sim run --log``: what happens, as JSON lines."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any


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
    assert events(log)[-1]["error"] == "InputError"


def test_a_log_that_cannot_be_written_is_refused(cli, tmp_path):
    done = cli("run", "peer-to-peer", "--users", "300", "--log", tmp_path / "no" / "log.jsonl")
    assert done.status == 2
    assert "--log " in done.err
    assert "No such file or directory" in done.err
