"""The benchmark of faults at a small size; what kills is run by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path

from benchmarks import faults


def test_what_checkpoints_would_take_is_measured() -> None:
    found = faults.checkpoints(2_000)
    assert found["bytes_a_user"] > 2.1  # a byte for each message at least
    assert found["write_seconds"] > 0
    assert found["write_over_rounds"] > 0


def test_kills_fall_within_their_phase() -> None:
    killed: list[str] = []
    killing = faults.Killing("second", 0.0, lambda: killed.append("dead"))
    for label in ("first", "second (before: 2M a second users)", "", "second"):
        killing(label, 0, 1)
    killing.wait()
    assert killed == ["dead"]
    assert killing.detection == 0, "the run ended without a repeat"
    killing("starting again", 0, 1)
    assert 0 < killing.detection < 10
    phases = killing.phases(killing.begun["second"] + 2.0)
    assert list(phases) == ["first", "second"]
    assert phases["second"] == 2.0


def test_a_kill_that_finds_nothing_is_none() -> None:
    killing = faults.Killing("first", 0.0, lambda: False)
    killing("first", 0, 1)
    killing.wait()
    assert killing.killed == math.inf


def test_the_log_of_a_run_says_in_which_phase_it_was_killed(tmp_path: Path) -> None:
    command = faults._command(tmp_path, "a", 2_000, [])
    faults._wait_until_asked(tmp_path, "a", command)
    assert command.wait() == 0
    lines = (tmp_path / "a.log").read_text().splitlines(keepends=True)
    seen = [faults.phase_of("".join(lines[:number]) + '{"event": "pha') for number in range(len(lines) + 1)]
    phases = list(dict.fromkeys(seen))
    assert phases[:3] == ["not begun", "started", "after round 1 of user"]
    assert phases[-4:] == ["after round 4 of learner", "accounting", "writing the run", "finished"]
    assert faults._files(tmp_path / "a").keys() >= {"outputs/learner.parquet"}


def test_kills_are_counted_by_place_and_phase() -> None:
    rows = [
        {"at": "local", "phase": "started", "killed": True},
        {"at": "local", "phase": "started", "killed": True},
        {"at": "shards", "phase": "starting Ray", "killed": True},
        {"at": "shards", "phase": "started", "killed": False},
    ]
    assert faults._by_phase(rows, "at") == {"local": {"started": 2}, "shards": {"starting Ray": 1}}


def test_runs_are_compared_by_all_but_their_messages(tmp_path: Path) -> None:
    for name, outputs, messages in (("a", "1", "1"), ("b", "1", "2"), ("c", "2", "1")):
        (tmp_path / name).mkdir()
        sums = {"outputs/learner.parquet": outputs, "messages/manifest.json": messages}
        (tmp_path / name / "run.json").write_text(json.dumps({"digest": "d", "sha256": sums}))
    assert faults._same(tmp_path / "a", tmp_path / "b")
    assert not faults._same(tmp_path / "a", tmp_path / "c")
    assert not faults._same(tmp_path / "a", tmp_path / "none")
