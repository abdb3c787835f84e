"""Pictures of many users: the command in every lane's box works, and leads to single messages."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.render import sequence
from p2p_sim.trace.neighbourhood import around
from protocols import EncryptedShuffle, NetworkShuffle, PeerToPeer
from tests.cli.test_trace_export import said
from tests.render.material import many

RING = Population.from_arrays(y=np.arange(60) % 3 == 0).with_graph(
    np.array([[i, (i + d) % 60] for i in range(60) for d in (1, 2, 3)])
)
ASKED = [word for user in range(17, 140, 10) for word in ("--user", user)]
ALONE = Population.from_arrays(y=np.arange(60) % 3 == 0)

PICTURES = {
    "small clusters": (PeerToPeer(0.1), many(), (), "cluster"),
    "by role": (PeerToPeer(0.1), many(), ("--limit", 80), "cluster"),
    "a round": (PeerToPeer(0.1), many(), ("--round", 2), "cluster"),
    "large clusters": (PeerToPeer(0.1), many(300, 100), (), "user"),
    "one large cluster": (PeerToPeer(0.1), many(300, 100), ("--cluster", 6), "user"),
    "no clusters": (PeerToPeer(0.1), ALONE, (), "user"),
    "with somebody": (
        PeerToPeer(0.1),
        many(),
        ("--cluster", 30, *ASKED),
        "cluster",
    ),
    "somebody looks": (
        PeerToPeer(0.1),
        many(),
        ("--as", "user:17+wire", "--channels", "encrypted"),
        "cluster",
    ),
    "a server between": (EncryptedShuffle(1.0), many(), (), "cluster"),
    "a graph": (NetworkShuffle(1.0, steps=9), RING, (), "user"),
}


def touching(events, users: set[int], round: int | None) -> int:
    """How many messages some users sent or received, counted one by one."""
    names = {f"user:{user}" for user in users}
    return sum(bool(names & set(e.ends)) and round in (None, e.round) for e in events)


def chosen(run, words: list[str]) -> set[int]:
    """The users whom a command chooses."""
    if "--user" in words:
        return {int(words[words.index("--user") + 1])}
    number = int(words[words.index("--cluster") + 1])
    codes = run.population.clusters.pick(np.arange(run.population.users)).label
    return set(np.flatnonzero(codes == number).tolist())


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "people", "words", "opens"), PICTURES.values(), ids=PICTURES.keys())
def test_every_box_opens_on_single_messages(protocol, people, words, opens, cli, tmp_path):
    run = p2p_sim.run(protocol, people, seed=3, trace="full")
    run.save(tmp_path / "a run's folder")
    picture = cli("trace", "diagram", "a run's folder", *words, "--json").json
    shared = [lane for lane in picture["lanes"] if lane["opens"]]
    assert {lane["name"] for lane in shared} == {
        lane["name"] for lane in picture["lanes"] if not lane["server"] and lane["name"][:5] != "user "
    }
    assert {lane["opens"].split()[0] for lane in shared} == {f"--{opens}"}
    assert picture["command"] in picture["notes"][0]
    events = list(around(run).events())
    for lane in shared:
        program, *asked = shlex.split(f"{picture['command']} {lane['opens']}")
        assert program == "p2p-sim"
        closer = cli(*asked, "--json").json
        assert all(one["parties"] == 1 for one in closer["lanes"])
        round = int(asked[asked.index("--round") + 1]) if "--round" in asked else None
        assert len(closer["arrows"]) == touching(events, chosen(run, asked), round) > 0
        assert all(arrow["messages"] == 1 for arrow in closer["arrows"])
        assert closer["viewpoint"] == picture["viewpoint"]


@pytest.mark.parametrize("size", [10, 100])
def test_a_run_drawn_from_its_counts_opens_too(size, cli, tmp_path, monkeypatch):
    p2p_sim.run(PeerToPeer(0.1), many(300, size), seed=3).save(tmp_path / "r")
    monkeypatch.setattr(sequence, "MAX_MESSAGES_DRAWN", 899)
    command, steps = "p2p-sim trace diagram r", 0
    while command:
        picture = cli(*shlex.split(command)[1:], "--json").json
        (lane,) = [lane for lane in picture["lanes"] if lane["parties"] > 1] or [None]
        command, steps = f"{picture['command']} {lane['opens']}" if lane else "", steps + 1
    assert steps == (2 if size == 10 else 3)
    assert {arrow["messages"] for arrow in picture["arrows"]} == {1}


def test_the_pictures_say_it(cli, tmp_path):
    p2p_sim.run(PeerToPeer(0.1), many(), seed=3).save(tmp_path / "r")
    page = cli("trace", "diagram", "r", "--out", "r.svg")
    assert said(page)[0] == (
        "note: 300 users are drawn together by cluster, in 30 lanes; to see single messages ask for one --cluster "
        "or a few users (--user): p2p-sim trace diagram r with the option in a lane's box"
    )
    text = (tmp_path / "r.svg").read_text()
    for number in range(5, 35):
        assert (
            text.count(f"<title>p2p-sim trace diagram r --cluster {number}</title>") == 2
        )  # above and below
        assert text.count(f">--cluster {number}<") == 2


def test_a_picture_that_knows_no_folder_offers_no_command():
    drawn = sequence.draw(p2p_sim.run(PeerToPeer(0.1), many(), seed=3))
    assert drawn.command is None
    assert {lane.opens for lane in drawn.lanes} == {""}
    assert drawn.notes[0].endswith("ask for one --cluster or a few users (--user)")
    odd = sequence.draw(p2p_sim.run(PeerToPeer(0.1), many(), seed=3), name="two\nlines")
    assert (odd.command, {lane.opens for lane in odd.lanes}) == (None, {""})
