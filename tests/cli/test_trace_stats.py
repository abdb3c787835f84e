"""``p2p-sim trace stats``."""

from __future__ import annotations

import pytest

import p2p_sim
from protocols import PeerToPeer
from tests.tiny import people


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    return made


def test_json_and_text_say_the_same(cli, run):
    told = cli("trace", "stats", "r", "--json").json
    assert [(row["kind"], row["round"], row["messages"]) for row in told["rounds"]] == [
        ("ask", 1, 12), ("label", 2, 12), ("report", 3, 12)
    ]  # fmt: skip
    assert {(row["role"], row["way"]): row["messages"] for row in told["roles"]} == {
        ("user", "sent"): 36, ("user", "received"): 24, ("learner", "sent"): 0, ("learner", "received"): 12
    }  # fmt: skip
    asked = next(row for row in told["degrees"] if (row["way"], row["kind"]) == ("received", "ask"))
    assert asked["mean"] == 1
    done = cli("trace", "stats", "r")
    assert (done.status, done.err) == (0, "")
    for words in ("user to learner", "ask, received", f"user:{asked['busiest']}", "in all"):
        assert words in done.out


def test_bad_input(cli, run):
    assert "'nowhere' is not a run directory" in cli("trace", "stats", "nowhere").err
    assert cli("trace", "stats", "r", "--format", "csv").status == 2
