"""``trace export --as`` and ``trace show --cluster``, against all messages of the run looked at one by one."""

from __future__ import annotations

import io
from xml.etree import ElementTree

import networkx
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.render import sequence
from p2p_sim.trace.neighbourhood import around
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.test_perfetto import checked
from tests.tiny import CLUSTERS, people

pytestmark = pytest.mark.slow

PROTOCOLS = {"peers": PeerToPeer(0.1), "sealed": EncryptedShuffle(0.1)}
VIEWS = ("learner", "user:4", "learner+user:4", "wire", "2*user")


@pytest.fixture(params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def run(tmp_path, request):
    made = p2p_sim.run(request.param, people(), seed=3, trace="full")
    made.save(tmp_path / "r")
    p2p_sim.run(request.param, people(), seed=3).save(tmp_path / "bare")
    return made


def expected(run, view, users=None):
    """What a coalition sees of each message: its fields, None if it cannot read them; by id."""
    seen = {}
    names = {f"user:{user}" for user in range(12) if users is None or user in users}
    for event in around(run).events():
        columns = run.view(view).messages[event.kind]
        address = (event.round, event.sender, event.recipient, event.seq)
        keys = zip(*(columns[name].tolist() for name in ("round", "sender", "recipient", "seq")), strict=True)
        place = {key: row for row, key in enumerate(keys)}.get(address)
        if place is not None and (users is None or names & set(event.ends)):
            seen[event.id] = event.fields if columns["readable"][place] else None
    return seen


def perfetto(done):
    """Of each message the text of its fields, by id."""
    events = checked(done.out)["traceEvents"]
    return {e["args"]["id"]: e["args"]["fields"] for e in events if "id" in e.get("args", {})}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("users", [None, {4, 7}], ids=["all", "two"])
def test_an_export_holds_what_its_viewpoint_sees_and_reads(cli, run, view, users):
    who = [word for user in sorted(users or ()) for word in ("--user", user)]
    words = ("--as", view, *who)
    wanted = expected(run, view, users)
    done = cli("trace", "export", "r", "--format", "perfetto", *words)
    found = perfetto(done)
    assert found.keys() == wanted.keys()
    for name, fields in wanted.items():
        texts = found[name].values()
        blind = {text for text in texts if text == "not readable" or text.startswith("sealed for ")}
        assert len(blind) == (0 if fields else len(set(texts)))
        assert fields is None or [text.lower() for text in texts] == [str(v).lower() for v in fields.values()]
    page = cli("trace", "export", "r", "--format", "graphml", *words).out
    graph = networkx.read_graphml(io.BytesIO(page.encode()), force_multigraph=True)
    edges = {key: about["readable"] for _, _, key, about in graph.edges(keys=True, data=True)}
    assert edges == {name: fields is not None for name, fields in wanted.items()}
    assert "struck out" in graph.graph["notes"]
    blind = sum(fields is None for fields in wanted.values())
    assert f"(in {blind:,} messages here)" in done.err
    bare = cli("trace", "export", "bare", "--format", "perfetto", *words)
    assert perfetto(bare) == found


def test_a_limit_is_of_what_is_seen(cli, run):
    wanted = list(expected(run, "learner"))
    done = cli("trace", "export", "r", "--format", "perfetto", "--as", "learner", "--limit", 3)
    assert list(perfetto(done)) == wanted[:3]
    assert f"the first 3 of {len(wanted)} messages; --limit {len(wanted)} shows all" in done.err


def test_who_sees_nothing_gets_a_whole_file(cli, run):
    words = ("--as", "learner", "--round", 1)
    nothing = expected(run, "learner")
    assert not any(name.split(":")[1] == "1" for name in nothing)
    assert perfetto(cli("trace", "export", "r", "--format", "perfetto", *words)) == {}
    page = cli("trace", "export", "r", "--format", "graphml", *words).out
    assert len(networkx.read_graphml(io.BytesIO(page.encode()))) == 0


@pytest.mark.parametrize("name", ["r", "bare"])
@pytest.mark.parametrize("view", [None, "learner+user:4"])
def test_messages_of_a_cluster(cli, run, name, view):
    users = {user for user, number in enumerate(CLUSTERS) if number == 4}
    who = [] if view is None else ["--as", view]
    told = cli("trace", "show", name, "--cluster", 4, *who, "--json").json
    shown = {row["id"]: row["fields"] for part in told["messages"] for row in part["rows"]}
    names = {f"user:{user}" for user in users}
    everything = {event.id: event.fields for event in around(run).events() if names & set(event.ends)}
    assert shown == (everything if view is None else expected(run, view, users))
    pages = []
    for offset in range(0, 12, 2):
        part = cli(
            "trace", "show", name, "--cluster", 4, *who, "--limit", 2, "--offset", offset, "--json"
        ).json
        pages += [row["id"] for table in part["messages"] for row in table["rows"]]
        assert [table["seen"] for table in part["messages"]] == [len(t["rows"]) for t in told["messages"]]
    assert sorted(pages) == sorted(shown)
    if view is not None:
        assert {row["user"] for row in told["inputs"]["rows"]} == {4}
        other = cli("trace", "show", name, "--cluster", 9, *who, "--json").json
        assert (other["inputs"]["rows"], other["draws"]["rows"]) == ([], [])


def test_a_kind_and_a_round_of_a_cluster(cli, run):
    told = cli(
        "trace", "show", "r", "--cluster", 4, "--kind", "ask" if "ask" in run.counts else "report", "--json"
    )
    for words in (("--kind", "boss"), ("--round", 77), ("--cluster", 5)):
        assert cli("trace", "show", "r", "--cluster", 4, *words).status == 2
    assert len(told.json["messages"]) <= 1
    both = cli("trace", "show", "r", "--cluster", 4, "--user", 4)
    assert (both.status, "--user and --cluster are both given" in both.err) == (2, True)


def test_a_picture_says_who_looks(cli, run):
    page = cli("trace", "diagram", "r", "--cluster", 4, "--as", "learner").out
    assert "as learner" in " ".join("".join(ElementTree.fromstring(page).itertext()).split())


def test_advice_speaks_of_clusters_only_where_there_are_some(cli, tmp_path, monkeypatch):
    labels = [True, False] * 30
    p2p_sim.run(PeerToPeer(0.1), Population.from_arrays(y=labels), seed=3).save(tmp_path / "alone")
    p2p_sim.run(PeerToPeer(0.1), Population.from_arrays(y=labels, cluster=[0, 1] * 30), seed=3).save(
        tmp_path / "two"
    )

    def told(name, *words):
        return cli("trace", "diagram", name, *words).err

    assert "ask for a few users (--user): " in told("alone")
    assert "ask for one --cluster or a few users (--user): " in told("two")
    assert "ask for a few users (--user) or --limit 90: " in told("two", "--cluster", 1, "--limit", 80)
    for verb in (["diagram"], ["show"], ["export", "--format", "graphml"]):
        done = cli("trace", verb[0], "alone", *verb[1:], "--cluster", 3)
        assert (done.status, done.out) == (2, "")
        assert "cluster 3: this run has no clusters; all its 60 users count as cluster 0" in done.err
    monkeypatch.setattr(sequence, "MAX_MESSAGES_DRAWN", 100)
    assert "messages; --user draws single ones" in told("alone")
    assert "messages; --cluster or --user draws single ones" in told("two")
    assert "also give --user" in told("alone", "--as", "learner")


def test_a_run_without_its_population_has_no_clusters_to_ask_for(cli, tmp_path):
    p2p_sim.run(PeerToPeer(0.1), people(), seed=2**63 + 3, trace="full").save(
        tmp_path / "r", population=False
    )
    for verb in (["diagram"], ["show"], ["export", "--format", "graphml"]):
        done = cli("trace", verb[0], "r", *verb[1:], "--cluster", 4)
        assert (done.status, done.out) == (2, "")
        assert "saved without its population, so its clusters are not known" in done.err
