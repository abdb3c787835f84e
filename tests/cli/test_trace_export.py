"""``p2p-sim trace diagram`` and ``export``: pictures of runs, what is said of them, and what is refused."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import networkx
import pytest

import p2p_sim
from p2p_sim.render import sequence
from p2p_sim.trace.neighbourhood import around
from protocols import PeerToPeer
from tests.cli.conftest import below
from tests.cli.test_app import plain
from tests.render.material import many
from tests.render.test_mermaid import parsed
from tests.render.test_perfetto import checked
from tests.tiny import CLUSTERS, people


@pytest.fixture
def run(tmp_path):
    made = p2p_sim.run(PeerToPeer(0.1), people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    p2p_sim.run(PeerToPeer(0.1), people(), seed=3).save(tmp_path / "bare")
    return made


DRAW, EXPORT = ("trace", "diagram", "r"), ("trace", "export", "r", "--format")
RECOMPUTED = (
    "note: recomputed from the seed, by running 4 users again: the trace (none) does not hold all of it"
)


def said(done) -> list[str]:
    """What is told on stderr, beside the progress that a busy machine shows."""
    return [line for line in done.err.splitlines() if line.partition(":")[0] in ("note", "error", "warning")]


def arrows(page: str) -> int:
    root = ElementTree.fromstring(page)
    return sum("arrow" in g.get("class", "").split() for g in root.iter("{http://www.w3.org/2000/svg}g"))


def mine(run, *users):
    names = {f"user:{user}" for user in users}
    return [event for event in around(run).events() if names & set(event.ends)]


def test_a_picture_of_a_user_stored_or_not(cli, run, tmp_path):
    done = cli(*DRAW, "--user", 4)
    assert (done.status, said(done)) == (0, [])
    assert arrows(done.out) == len(mine(run, 4))
    bare = cli("trace", "diagram", "bare", "--user", 4)
    assert said(bare) == [RECOMPUTED]
    assert arrows(bare.out) == len(mine(run, 4))
    assert RECOMPUTED[6:] in " ".join("".join(ElementTree.fromstring(bare.out).itertext()).split())
    two = cli(*DRAW, "--user", 4, "--user", 7, "--round", 2, "--format", "mermaid").out
    assert sum(name == "message" for name, _ in parsed(two)) == sum(e.round == 2 for e in mine(run, 4, 7))


def test_a_picture_of_a_cluster(cli, run):
    told = cli(*DRAW, "--cluster", 4, "--json")
    inside = [user for user, number in enumerate(CLUSTERS) if number == 4]
    assert [lane["name"] for lane in told.json["lanes"]] == [*(f"user {u}" for u in inside), "learner"]
    assert [a["id"] for a in told.json["arrows"]] == [e.id for e in mine(run, *inside)]
    assert (
        told.json["title"]
        == "PeerToPeer(alpha=0.1, theta=1.0, retries=0, over=cluster, labels=2), r, cluster 4"
    )
    assert cli(*DRAW, "--cluster", 4, "--format", "json").out == told.out


def test_a_viewpoint(cli, run):
    told = cli(*DRAW, "--as", "user:4", "--json").json
    assert told["viewpoint"] == "user:4"
    assert {a["id"] for a in told["arrows"] if a["sight"] == "read"} == {e.id for e in mine(run, 4)}
    assert {a["sight"] for a in told["arrows"]} == {"read", "unseen"}
    wire = cli(*DRAW, "--as", "wire", "--channels", "encrypted", "--json").json["arrows"]
    assert {a["sight"] for a in wire if a["kind"] == "label"} == {"struck", "unseen"}


def test_many_are_put_together_and_it_is_said(cli, tmp_path, monkeypatch):
    p2p_sim.run(PeerToPeer(0.1), many(), seed=3).save(tmp_path / "r")
    done = cli(*DRAW)
    assert arrows(done.out) == 3 * 30
    assert said(done)[0].startswith("note: 300 users are drawn together by cluster, in 30 lanes")
    assert "by role" in cli(*DRAW, "--limit", 80).err
    assert "the first 2 of 3 arrows" in cli(*DRAW, "--limit", 2).err
    monkeypatch.setattr(sequence, "MAX_MESSAGES_DRAWN", 899)
    whole = cli(*DRAW, "--json")
    assert said(whole) == [
        "note: drawn by role from the counts of 900 messages; --cluster or --user draws single ones: "
        "p2p-sim trace diagram r with the option in a lane's box"
    ]
    assert [(a["kind"], a["messages"]) for a in whole.json["arrows"]] == [
        ("ask", 300), ("label", 300), ("report", 300)
    ]  # fmt: skip
    assert [(lane["name"], lane["parties"]) for lane in whole.json["lanes"]] == [
        ("users", 300),
        ("learner", 1),
    ]
    merged = p2p_sim.load(tmp_path / "r")
    monkeypatch.setattr(sequence, "MAX_MESSAGES_DRAWN", 900)
    one_by_one = cli(*DRAW, "--limit", 3, "--json").json["arrows"]
    assert one_by_one == whole.json["arrows"]
    assert sum(a["nbytes"] for a in one_by_one) == sum(c.nbytes for c in merged.counts.values())
    monkeypatch.setattr(sequence, "MAX_MESSAGES_DRAWN", 899)
    refused = cli(*DRAW, "--as", "learner")
    assert (refused.status, "--cluster or --user" in refused.err) == (2, True)
    assert len(cli(*DRAW, "--round", 2, "--json").json["arrows"]) == 30


def test_exports(cli, run):
    events = mine(run, 4)
    graph = networkx.read_graphml(
        io.BytesIO(cli(*EXPORT, "graphml", "--user", 4).out.encode()), force_multigraph=True
    )
    assert {key for _, _, key in graph.edges(keys=True)} == {event.id for event in events}
    trace = checked(cli(*EXPORT, "perfetto", "--user", 4).out)
    assert sum(e["ph"] == "s" for e in trace["traceEvents"]) == len(events)
    assert trace["otherData"]["run"].endswith("r, user 4")
    whole = checked(cli(*EXPORT, "perfetto", "--cluster", 30).out)
    assert sum(e["ph"] == "s" for e in whole["traceEvents"]) == len(mine(run, 10))


def test_an_export_says_what_it_cut_and_recomputed(cli, run, tmp_path):
    done = cli("trace", "export", "bare", "--format", "perfetto", "--user", 4, "--limit", 2)
    assert sum(e["ph"] == "s" for e in checked(done.out)["traceEvents"]) == 2
    assert said(done) == [
        RECOMPUTED,
        f"note: the first 2 of {len(mine(run, 4))} messages; --limit 5 shows all",
    ]
    told = cli(*EXPORT, "graphml", "--limit", 5, "--out", "g.graphml", "--json")
    assert told.json == {
        "out": "g.graphml", "format": "graphml", "view": None, "messages": 5, "left_out": 31,
        "notes": ["the first 5 of 36 messages; --limit 36 shows all"],
    }  # fmt: skip
    assert networkx.read_graphml(tmp_path / "g.graphml").graph["notes"] == told.json["notes"][0]


def test_files_are_written_whole_and_replaced(cli, run, tmp_path):
    page = cli(*DRAW).out
    (tmp_path / "a.svg").write_text("old")
    before = below(tmp_path).keys()
    done = cli(*DRAW, "--out", "a.svg")
    assert (done.status, done.out) == (0, "")
    assert (tmp_path / "a.svg").read_text() == page
    assert below(tmp_path).keys() == before
    assert cli(*DRAW, "--user", 99, "--out", "a.svg").status == 2
    assert (tmp_path / "a.svg").read_text() == page


BAD = {
    "format": ((*DRAW, "--format", "png"), ["--format 'png'", "svg, mermaid, json"]),
    "no format": (("trace", "export", "r"), ["--format is missing", "graphml, perfetto"]),
    "other format": ((*EXPORT, "dot"), ["--format 'dot'", "graphml, perfetto"]),
    "limit": ((*DRAW, "--limit", 0), ["--limit 0", "at least 1"]),
    "user": ((*DRAW, "--user", 12), ["user 12", "0 to 11"]),
    "no number": ((*DRAW, "--user", "x"), ["--user", "'x'"]),
    "cluster": ((*EXPORT, "graphml", "--cluster", 5), ["cluster 5", "0 to 30"]),
    "round": ((*DRAW, "--round", 9), ["round 9", "[1, 2, 3]"]),
    "view": ((*DRAW, "--as", "boss"), ["'boss'", "learner, user, user:17"]),
    "channels": ((*DRAW, "--channels", "open"), ["channels = 'open'", "plain, encrypted"]),
    "folder": ((*DRAW, "--out", "nowhere/a.svg"), ["--out 'nowhere/a.svg'", "folder that exists"]),
    "a folder": ((*DRAW, "--out", "r"), ["--out 'r'", "give a file"]),
    "json": ((*EXPORT, "graphml", "--json"), ["--json", "give --out"]),
    "no run": (("trace", "diagram", "nowhere"), ["'nowhere'", "not a run directory"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "told"), BAD.values(), ids=BAD.keys())
def test_bad_input(words, told, cli, run):
    done = cli(*words)
    assert (done.status, done.out) == (2, "")
    assert len(said(done)) == 1
    assert all(word in done.err for word in told), done.err


def test_help_has_examples(cli):
    for verb in ("diagram", "export"):
        assert f"Example: p2p-sim trace {verb} " in plain(cli("trace", verb, "--help").out)


def test_more_messages_than_are_written_are_refused_with_their_number(cli, tmp_path, monkeypatch):
    p2p_sim.run(PeerToPeer(0.1), many(), seed=3).save(tmp_path / "r")
    monkeypatch.setattr("p2p_sim.trace.neighbourhood.MAX_MESSAGES", 899)
    words = ("trace", "export", "r", "--format", "graphml", "--out", "all.graphml")
    refused = cli(*words, "--limit", 900)
    assert (refused.status, (tmp_path / "all.graphml").exists()) == (2, False)
    assert "--limit 900: of 900 messages at most 899 are written: choose some by --user" in refused.err
    monkeypatch.setattr("p2p_sim.trace.neighbourhood.MAX_MESSAGES", 900)
    assert cli(*words, "--limit", 10**6).status == 0
