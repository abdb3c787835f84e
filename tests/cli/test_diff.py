"""``p2p-sim diff``: exit status 0 for equal runs, 1 for others, and the first message that differs."""

from __future__ import annotations

import pytest

import p2p_sim
from p2p_sim.trace.diff import compare
from protocols import PeerToPeer
from tests.cli.test_app import plain
from tests.tiny import people


@pytest.fixture
def runs(tmp_path):
    made = {}
    for name, alpha, seed, trace in (
        ("a", 0.1, 3, "full"), ("again", 0.1, 3, "full"), ("b", 0.1, 4, "full"), ("none", 0.1, 3, "none")
    ):  # fmt: skip
        made[name] = p2p_sim.run(PeerToPeer(alpha), people(), seed=seed, trace=trace)
        made[name].save(tmp_path / name)
    return made


def test_equal(cli, runs):
    done = cli("diff", "a", "again")
    assert (done.status, done.err) == (0, "")
    assert done.out == "a and again: equal\n\nMessages: 36 compared; all are equal.\n"
    told = cli("diff", "a", "again", "--json").json
    assert (told["equal"], told["messages"]["different"], told["messages"]["first"]) == (True, [], None)


def test_different(cli, runs):
    found = compare(runs["a"], runs["b"])
    done = cli("diff", "a", "b", "--json")
    assert done.status == 1
    assert done.json["messages"]["first"] == found.messages[0].least
    assert [row["what"] for row in done.json["settings"]] == ["seed"]
    text = cli("diff", "a", "b")
    assert text.status == 1
    first = found.messages[0].least
    assert (
        f"The first that differs: {first['id']}, from {first['sender']} to {first['recipient']}" in text.out
    )
    assert "not there" in text.out


def test_what_was_not_compared_is_said(cli, runs):
    done = cli("diff", "a", "none")
    assert done.status == 0
    assert "note: trace: full and none, which is no difference" in done.out
    assert "messages were not compared, only counts, outputs and digests: the digests are equal" in done.out
    assert cli("diff", "a", "none", "--json").json["messages"] is None


def test_bad_input(cli, runs):
    assert "'nowhere' is not a run directory" in cli("diff", "a", "nowhere").err
    assert cli("diff", "a").status == 2
    assert cli("diff", "a", "b", "--format", "csv").status == 2
    assert "Example: p2p-sim diff runs/first runs/second" in plain(cli("diff", "--help").out)
