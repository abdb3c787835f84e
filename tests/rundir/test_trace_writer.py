"""Traces on disk: what is left out, what a killed run leaves, what altered files provoke, old and new formats."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.rundir import parquet_columns, run_directory, trace_writer
from protocols import PeerToPeer, RandomizedResponse
from tests.run_json_files import cut_off

ROOT = Path(__file__).parents[2]
PEOPLE = Population.synthetic(users=90, cluster_size=30, seed=2)


def entries(path: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of the file of each kind."""
    told = json.loads((path / "messages/manifest.json").read_text())
    return {entry["kind"]: entry for entry in told["files"]}


def test_what_position_says_is_not_stored(tmp_path):
    p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", out=tmp_path / "run", blocks=4, seed=0)
    found = entries(tmp_path / "run")
    ask, label, report = (found[kind] for kind in ("ask", "label", "report"))
    assert (ask["sender"], ask["recipient"], ask["seq"]) == ({"from": 0}, "stored", {"all": 0})
    assert (label["sender"], label["recipient"]) == ({"as": [ask["file"], "recipient"]}, {"from": 0})
    assert (report["sender"], report["recipient"]) == ("stored", {"all": 0})


def test_the_form_follows_the_messages_not_the_protocol(tmp_path):
    p2p_sim.run(RandomizedResponse(1.0), PEOPLE, trace="full", out=tmp_path / "all", seed=0)
    assert entries(tmp_path / "all")["report"]["sender"] == {"from": 0}
    p2p_sim.run(
        RandomizedResponse(1.0), PEOPLE, trace="full", faults=["drop=0.3"], out=tmp_path / "some", seed=0
    )
    assert entries(tmp_path / "some")["report"]["sender"] == "stored"
    faulty = p2p_sim.run(
        PeerToPeer(0.1), PEOPLE, trace="full", faults=["loss=0.2"], out=tmp_path / "lossy", seed=0
    )
    found = entries(tmp_path / "lossy")
    assert {found[kind]["sender"] for kind in ("ask", "label")} == {"stored"}
    assert faulty.messages("ask")["sender"].tolist() != list(range(90))


def test_long_files_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(trace_writer, "MOST_ROWS", 20)
    monkeypatch.setattr(trace_writer, "_GROUP", 8)
    monkeypatch.setattr(trace_writer, "_MAX_GROUP", 6)
    whole = p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", seed=0)
    cut = p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=tmp_path / "run", blocks=30, seed=0)
    again = p2p_sim.load(whole.save(tmp_path / "saved"))
    for path in (tmp_path / "run", tmp_path / "saved"):
        assert len(list((path / "messages/label").rglob("*.parquet"))) == 5
    for kind in ("ask", "label", "report"):
        for run in (cut, again):
            for name, column in whole.messages(kind).items():
                np.testing.assert_array_equal(run.messages(kind)[name], column)
        for user in range(90):
            mine = run_directory.source(cut).rows(kind, user=user)
            assert mine[0].keys() == whole.messages(kind).keys()
            assert mine[1] == run_directory.source(whole).rows(kind, user=user)[1]


def test_a_saved_trace_can_be_saved_again_elsewhere(tmp_path):
    run = p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=tmp_path / "one", seed=0)
    before = run.messages("label")
    run.save(tmp_path / "other/two")
    shutil.rmtree(tmp_path / "one")
    for again in (run, p2p_sim.load(tmp_path / "other/two")):
        assert all(np.array_equal(again.messages("label")[name], column) for name, column in before.items())
    run.save(tmp_path / "other/two", force=True)
    assert p2p_sim.load(tmp_path / "other/two").kept() == run.kept() == 270


def test_out_must_be_free_and_nothing_is_left_of_bad_input(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        p2p_sim.run(PeerToPeer(0.1), PEOPLE, out=tmp_path / "there", trace="full", seed=0)
    with pytest.raises(InputError, match="fewer steps"):
        p2p_sim.run(
            RandomizedResponse(1.0), PEOPLE, out=tmp_path / "deep/new", faults=["stop=learner:9"], seed=0
        )
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_no_room_left(tmp_path, monkeypatch):
    def full(*_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_columns.Stream, "write", full)
    with pytest.raises(InputError, match=r"cannot be written to .*: No space left on device; make room"):
        p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=tmp_path / "run", seed=0)
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_before_the_disk_was_full_stays(tmp_path, monkeypatch):
    def full(self, columns):
        if "y" in columns:
            raise OSError(28, "No space left on device")
        write(self, columns)

    write = parquet_columns.Stream.write
    monkeypatch.setattr(parquet_columns.Stream, "write", full)
    with (
        pytest.warns(UserWarning, match="the messages so far of the run that failed are in"),
        pytest.raises(InputError, match="No space left on device"),
    ):
        p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=tmp_path / "run", seed=0)
    (left,) = tmp_path.iterdir()
    assert "report: none" in str(run_directory.open_trace(left).missing)


def test_views_of_a_stored_trace_are_those_of_one_in_memory(tmp_path):
    whole = p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", seed=0)
    kept = p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", out=tmp_path / "run", seed=0)
    for run in (kept, p2p_sim.load(tmp_path / "run")):
        for name in ("learner", "user:17", "wire", "learner+2*user"):
            one, other = whole.view(name), run.view(name)
            for kind in ("ask", "label", "report"):
                for column, values in one.messages[kind].items():
                    np.testing.assert_array_equal(other.messages[kind][column], values)


KILLED = """
import os, signal, sys
import p2p_sim
from p2p_sim.core.population import Population
from p2p_sim.rundir import trace_writer as writer
from protocols import PeerToPeer

def part(self, *arguments):
    if arguments[3] == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return before(self, *arguments)

before = writer.Part.__init__
writer.Part.__init__ = part
people = Population.synthetic(users=90, cluster_size=30, seed=2)
p2p_sim.run(PeerToPeer(0.1, 0.5), people, trace="full", out=sys.argv[1], seed=0)
"""


@pytest.mark.parametrize(("kind", "held"), [("label", ["ask"]), ("report", ["ask", "label"])])
def test_a_killed_run_leaves_what_it_had_and_says_what_is_missing(kind, held, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "run", kind], env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL
    (left,) = (path for path in tmp_path.iterdir() if path.name != ".run.claim")
    assert left.name.startswith("run.partial-")
    with pytest.raises(InputError, match="its trace can be opened"):
        p2p_sim.load(left)
    whole = p2p_sim.run(PeerToPeer(0.1, 0.5), PEOPLE, trace="full", seed=0)
    found = run_directory.open_trace(left)
    assert not found.complete
    assert found.missing is not None
    assert "90 in round 1" in found.missing
    for name in ("ask", "label", "report"):
        rows, matched = found.rows(name)
        assert matched == (90 if name in held else 0)
        assert (f"{name}: none" in found.missing) == (name not in held)
        if name in held:
            assert all(np.array_equal(rows[key], column) for key, column in whole.messages(name).items())


def test_a_file_that_was_being_written_is_told(tmp_path):
    path = tmp_path / "run"
    p2p_sim.run(PeerToPeer(0.1), PEOPLE, trace="full", out=path, seed=0)
    place = path / entry_path(path, "report")
    (path / entry_path(path, "ask")).rename(place.with_name(f".{place.name}.tmp"))
    cut_off(path / "messages")
    found = run_directory.open_trace(path / "messages")
    assert "2 unfinished file(s) cannot be read" in str(found.missing)  # it, and the answers, which need it
    assert found.rows("report")[1] == 90


def test_other_programs_pass_over_what_was_being_written(tmp_path):
    ids = np.arange(9, dtype=np.int32)
    addresses = {"sender": ids[::-1].copy(), "recipient": ids, "seq": 0 * ids}
    whole = trace_writer.Writer(tmp_path, 0)
    whole.take("ask", 1, addresses, {})
    assert len(whole.cut()) == 1
    part = trace_writer.Part(tmp_path, 0, 7, "ask", 1, dict.fromkeys(addresses, "stored"))
    part.add(addresses, {})
    part._flush()  # and killed here
    assert len(list((tmp_path / "ask/round=1").iterdir())) == 2
    assert len(pandas.read_parquet(tmp_path / "ask")) == 9


def entry_path(path: Path, kind: str) -> str:
    return next((path / "messages" / kind).rglob("*.parquet*")).relative_to(path).as_posix()
