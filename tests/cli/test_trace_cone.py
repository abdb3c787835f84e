"""``p2p-sim trace cone``."""

from __future__ import annotations

import pytest

import p2p_sim
from p2p_sim.trace.causality import cone
from protocols import EncryptedShuffle, PeerToPeer
from tests.tiny import people


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    p2p_sim.run(EncryptedShuffle(1.0), people(), seed=3).save(tmp_path / "s")
    return made


def test_json_and_text_say_the_same(cli, run):
    told = cli("trace", "cone", "r", "--message", "report:3:4:0:0", "--json").json
    found = cone(run, "report:3:4:0:0")
    assert told["message"]["id"] == "report:3:4:0:0"
    assert told["before"]["messages"] == found.before.messages
    assert {row["id"] for part in told["before"]["nearest"] for row in part["rows"]} == {
        event.id for event in found.before.nearest.events()
    }
    assert told["after"] == {"messages": 0, "users": 0, "rounds": [], "nearest": []}
    assert (told["hidden"]["users"], told["hidden"]["cluster"]) == (4, 4)
    done = cli("trace", "cone", "r", "--message", "report:3:4:0:0")
    assert (done.status, done.err) == (0, "")
    assert told["hidden"]["text"] in done.out
    assert "rounds, and so on): nothing" in done.out


def test_what_is_cut_is_said(cli, run):
    text = cli("trace", "cone", "s", "--message", "mixed:2:0:0:3", "--limit", 2).out
    assert "note: recomputed from the seed, by running 12 users again" in text
    assert "2 of 12 shown; --limit shows the other 10" in text
    assert "The protocol hides its origin: learner does not see the 12 report messages" in text


BAD = {
    "none": ((), ["--message is missing", "report:3:17:0:0"]),
    "no id": (("--message", "report"), ["'report' is no id", "KIND:ROUND:SENDER:RECIPIENT:SEQ"]),
    "not there": (("--message", "report:3:99:0:0"), ["there is none in this run"]),
    "limit": (("--message", "report:3:4:0:0", "--limit", 0), ["--limit 0", "at least 1"]),
}


@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input(words, told, cli, run):
    done = cli("trace", "cone", "r", *words)
    assert (done.status, done.out) == (2, "")
    assert all(word in done.err for word in told), done.err
