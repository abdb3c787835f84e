"""Every verb of ``p2p-sim trace`` on a run that was killed: what is left is shown, and it says that it is not all."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time

import pytest

import p2p_sim
from p2p_sim.render.known_run import KnownRun
from p2p_sim.rundir.run_directory import LazyRun
from protocols import PeerToPeer
from tests.run_json_files import cut_off
from tests.tiny import people

SAYS = "the run was cut off, and its trace (full) is incomplete"
VERBS = {
    "show": ("show",),
    "csv": ("show", "--format", "csv"),
    "user": ("show", "--user", 4),
    "view": ("show", "--as", "learner+user:4"),
    "diagram": ("diagram",),
    "picture": ("diagram", "--user", 4, "--as", "user:4"),
    "graph": ("export", "--format", "graphml"),
    "viewed": ("export", "--format", "perfetto", "--as", "learner"),
    "stats": ("stats",),
    "cone": ("cone", "--message", "ask:1:0:2:0"),
}


@pytest.fixture
def left(tmp_path):
    """What is left of a run that was killed in its last round."""
    path = tmp_path / "whole"
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full", out=path)
    folder = tmp_path / "left" / "messages"
    shutil.copytree(path / "messages", folder)
    shutil.rmtree(folder / "report")
    cut_off(folder)
    return run


@pytest.mark.slow
@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS.keys())
def test_what_is_left_is_shown_and_said_not_to_be_all(cli, left, words):
    verb, *more = words
    if verb == "cone":
        columns = left.messages("ask")
        more = ["--message", f"ask:1:{columns['sender'][0]}:{columns['recipient'][0]}:0"]
    done = cli("trace", verb, "left", *more)
    assert done.status == 0, done.err
    assert SAYS in " ".join((done.out + done.err).split()), done.err


def test_a_view_of_what_is_left_is_that_of_the_run(cli, left, tmp_path):
    left.save(tmp_path / "r")
    for view in ("user:4", "learner+user:4", "wire"):
        told, whole = (cli("trace", "show", name, "--as", view, "--json").json for name in ("left", "r"))
        tables = {part["kind"]: part["rows"] for part in whole["messages"]}
        for part in told["messages"]:
            assert part["rows"] == ([] if part["kind"] == "report" else tables[part["kind"]])
    assert "nothing but messages is left" in cli("trace", "show", "left", "--as", "user:4").out
    strange = cli("trace", "show", "left", "--as", "boss")
    assert (strange.status, "unknown part 'boss'" in strange.err) == (2, True)


@pytest.mark.parametrize(
    "words", [("replay", "left", "--user", 4), ("report", "left")], ids=["replay", "report"]
)
def test_what_takes_more_than_messages_says_what_to_do(cli, left, words):
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert "its trace can be opened (p2p-sim trace), the run was cut off: run it again" in done.err


@pytest.mark.slow
def test_a_run_that_is_really_killed(cli, tmp_path):
    words = [
        "--users",
        "3000",
        "--graph",
        "regular:4",
        "--steps",
        "400",
        "--trace",
        "full",
        "--out",
        "killed",
    ]
    run = subprocess.Popen(
        [sys.executable, "-m", "p2p_sim.cli", "run", "network-shuffle", *words],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("killed.partial-*/messages/hop/round=5/*")):
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    (place,) = tmp_path.glob("killed.partial-*")
    for more in (("show",), ("diagram", "--user", 0), ("export", "--format", "graphml", "--user", 0)):
        done = cli("trace", more[0], place, *more[1:])
        assert (done.status, SAYS in " ".join((done.out + done.err).split())) == (0, True)


def test_a_message_that_was_not_written_before_the_end(cli, left):
    done = cli("trace", "cone", "left", "--message", "report:3:4:0:0")
    assert done.status == 2
    assert f"there is none in what was kept of this run ({SAYS}" in done.err


def test_messages_that_are_whole_without_the_rest_of_the_run(cli, left, tmp_path):
    shutil.copytree(tmp_path / "whole" / "messages", tmp_path / "alone" / "messages")
    says = "the run was cut off after its messages: parameters, seed, labels and outputs are not known"
    for words in (("show",), ("stats",), ("diagram", "--user", 4), ("show", "--format", "csv")):
        done = cli("trace", words[0], "alone", *words[1:])
        assert (done.status, says in " ".join((done.out + done.err).split())) == (0, True)
    shown = cli("trace", "show", "alone", "--json").json
    assert says in shown["notes"]
    assert [part["seen"] for part in shown["messages"]] == [
        len(left.messages(kind)["round"]) for kind in ("ask", "label", "report")
    ]
    assert KnownRun.of(LazyRun(tmp_path / "alone")).cut == says
    assert KnownRun.of(LazyRun(tmp_path / "whole")).cut == ""
