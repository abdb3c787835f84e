"""What is shown: against all messages of the run, and against what views say each party reads."""

from __future__ import annotations

import numpy as np
import pytest

import p2p_sim
from p2p_sim.core.errors import InputError
from p2p_sim.render.known_run import KnownRun
from p2p_sim.render.sequence import draw
from p2p_sim.render.web.answers import Answers
from p2p_sim.render.web.messages import LANES, MARKS, Look, Place, gather, lanes
from p2p_sim.render.web.overview import overview
from p2p_sim.report.view_summary import VIEW_FUNCTIONS
from p2p_sim.run import load
from p2p_sim.rundir.run_directory import LazyRun
from p2p_sim.trace.slices import Slice
from protocols import NetworkShuffle, PeerPermutation, PeerToPeer, SecureAggregation
from tests.render.web.conftest import CLUSTERS, MANY, PEOPLE, make
from tests.rundir.test_lazy_run import cut_off

VIEWS = ("learner", "user:7", "user:7+user:30", "learner+user:7", "wire", "learner+2*user")


HERE = Place()


def shown(run, place=HERE, **look):
    return lanes(run, KnownRun.of(run), gather(run, place), Look(**look), VIEW_FUNCTIONS.coalition)


def ids(told):
    return [message["id"] for message in told["messages"]]


def everything(run):
    """All messages of a run in causal order, by the records of the run itself."""
    kinds = run.source.messages()
    return list(Slice.of(kinds, {kind: run.messages(kind) for kind in kinds}).events())


def touching(run, users):
    names = {f"user:{user}" for user in users}
    return [event.id for event in everything(run) if names & set(event.ends)]


@pytest.fixture(scope="module", params=["peers", "shuffle", "faults"])
def run(request):
    return make(request.param)


def test_a_cluster_shows_its_users_with_all_they_exchanged(run):
    between = [event.id for event in everything(run) if not any("user" in end for end in event.ends)]
    first = np.flatnonzero(CLUSTERS == 4)[:LANES]
    told = shown(run)
    assert sorted(ids(told)) == sorted(touching(run, first) + between)
    assert [lane["user"] for lane in told["lanes"] if lane["user"]] == [str(user) for user in first]
    rest = shown(run, Place(cluster=5, offset=LANES))
    last = np.flatnonzero(CLUSTERS == 5)[LANES:]
    assert sorted(ids(rest)) == sorted(touching(run, last) + between)
    assert (rest["users"], rest["cluster"]) == (30, 5)


def test_a_user_shows_whom_she_met(run):
    told = shown(run, Place(user=7))
    assert ids(told) == [one for one in map(str, ids(told)) if one in touching(run, [7])]
    assert len(ids(told)) == len(touching(run, [7]))
    users = [lane["user"] for lane in told["lanes"] if lane["user"]]
    ends = {end for event in everything(run) if "user:7" in event.ends for end in event.ends}
    assert users == sorted(users, key=int)
    assert {f"user:{user}" for user in users} == {"user:7"} | {end for end in ends if "user" in end}
    assert told["cluster"] == 4


def test_users_come_first_then_the_others_then_servers_as_messages_reach_them():
    told = shown(make("peers"))["lanes"]
    assert [lane["title"] for lane in told] == [
        *(f"user:{user}" for user in range(LANES)),
        "others",
        "learner",
    ]
    assert [lane["id"] for lane in told[-2:]] == ["", "learner"]
    shuffled = shown(make("shuffle"))["lanes"]
    assert [lane["title"] for lane in shuffled[-3:]] == ["shuffler2", "shuffler", "learner"]


@pytest.mark.parametrize("name", ["peers", "shuffle", "faults"])
def test_the_page_has_the_lanes_of_a_diagram_in_the_same_order(name):
    run = make(name)
    drawn = [lane.name.replace(" ", ":") for lane in draw(run, [7]).lanes]
    assert drawn == [lane["title"] for lane in shown(run, Place(user=7))["lanes"] if lane["title"] in drawn]


def test_kinds_that_the_parameters_leave_without_use_are_not_offered():
    run = make("shuffle")  # through two shufflers
    assert list(overview(run, "a run", KnownRun.of(run))["kinds"]) == ["report2", "passed2", "mixed"]
    assert list(KnownRun.of(run).kinds) == list(run.source.messages())


def test_messages_of_one_kind_and_one_round(run):
    whole = shown(run)
    for kind in run.source.messages():
        for round in sorted({message["round"] for message in whole["messages"]}):
            part = shown(run, kind=kind, round=round)
            wanted = [m["id"] for m in whole["messages"] if (m["kind"], m["round"]) == (kind, round)]
            assert ids(part) == wanted
            assert part["lanes"] == whole["lanes"], "the picture keeps its lanes while one steps through it"


@pytest.mark.parametrize("channels", ["plain", "encrypted"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_viewpoint_is_sent_what_its_view_reads_and_no_more(run, name, channels):
    view = run.view(name, channels=channels)
    readable = {}
    for kind, columns in view.messages.items():
        fields = run.source.messages()[kind].fields
        address = zip(
            *(columns[end].tolist() for end in ("round", "sender", "recipient", "seq")), strict=True
        )
        for place, one in enumerate(address):
            key = ":".join([kind, *map(str, one)])
            readable[key] = bool(columns["readable"][place]) and [
                int(columns[field][place]) for field in fields
            ]
    found = shown(run, view=name, channels=channels)["messages"]
    assert found
    for message in found:
        assert message["seen"] == (message["id"] in readable)
        reads = readable.get(message["id"], False)
        assert message["readable"] == (reads is not False)
        if reads is False:
            assert message["fields"] is None
        else:
            numbers = [{"true": 1, "false": 0}.get(text, text) for text in message["fields"].values()]
            assert [int(number) for number in numbers] == reads


def test_who_dropped_out_and_who_lied_is_told_to_nobody_in_particular():
    run = make("faults")
    told = {lane["user"]: lane["state"] for lane in shown(run)["lanes"]}
    for user in range(LANES):
        assert ("dropped" in told[str(user)]) == (user in run.faulty["dropped"])
        assert ("lied" in told[str(user)]) == (user in run.faulty["lied"])
    assert any(told.values())
    assert not any(lane["state"] for lane in shown(run, view="learner")["lanes"])


def test_no_more_than_so_many_marks():
    """Users whose labels are masked towards everybody else send a great deal."""
    run = p2p_sim.run(
        SecureAggregation(64, threshold=3, degree=62), MANY.part(np.arange(64)), trace="full", seed=0
    )
    told = shown(run)
    total = len(touching(run, range(LANES))) + len(run.messages("total")["round"])
    assert (len(told["messages"]), told["total"]) == (MARKS, total)
    assert f"only 2,000 of {total:,} messages are drawn: choose a kind or a round" in told["notes"]


def test_messages_between_servers_are_cut_too():
    run = p2p_sim.run(SecureAggregation(4, threshold=2), MANY, trace="full", seed=0)
    told = shown(run)
    assert sum(message["kind"] == "total" for message in told["messages"]) == 250
    assert (
        f"total: between servers, so not of these users alone; the first 250 of {MANY.users // 4:,}"
        in told["notes"]
    )


def test_more_users_met_than_have_lanes():
    star = PEOPLE.with_graph([(0, other) for other in range(1, 60)])
    told = shown(p2p_sim.run(NetworkShuffle(1.0, steps=2), star, trace="full", seed=0), Place(user=0))
    assert sum(lane["user"] != "" for lane in told["lanes"]) == LANES
    assert "the first 23 of the 59 users she met have lanes of their own" in told["notes"]
    assert "" in [lane["id"] for lane in told["lanes"]]


@pytest.mark.parametrize("trace", ["none", "counts", "sample=20"])
def test_what_was_not_kept_is_recomputed_and_said_to_be(trace):
    for protocol in (PeerToPeer(0.1), PeerPermutation(alpha=0.2)):
        full, part = (p2p_sim.run(protocol, PEOPLE, seed=5, trace=level) for level in ("full", trace))
        assert shown(part)["messages"] == shown(full)["messages"]
        said = " ".join(shown(part)["notes"])
        assert "recomputed from the seed, by running 30 users again" in said
        assert not shown(full)["notes"]


def test_a_run_without_its_population(tmp_path):
    whole = make("peers")
    run = load(whole.save(tmp_path / "bare", population=False))
    told = shown(run)
    assert ids(told) == ids(shown(whole))
    assert "the population was not kept: who belongs to which cluster is not known" in told["notes"]
    assert (told["users"], told["cluster"]) == (60, None)
    assert ids(shown(run, Place(user=7))) == ids(shown(whole, Place(user=7)))
    assert "user 99 occurs in no message" in " ".join(shown(run, Place(user=99))["notes"])
    with pytest.raises(InputError, match="who belongs to which cluster is not known; search for a user"):
        shown(run, Place(cluster=4))


def test_a_run_that_was_cut_off_is_shown_as_far_as_it_goes(tmp_path):
    whole = make("peers")
    cut = LazyRun(cut_off(whole, tmp_path / "cut", without="report"))
    told = shown(cut)
    assert ids(told) == [one["id"] for one in shown(whole)["messages"] if one["kind"] != "report"]
    about = overview(cut, "cut", KnownRun.of(cut))
    assert about["cut"].startswith("the run was cut off")
    assert overview(whole, "whole", KnownRun.of(whole))["cut"] == ""
    assert about["cut"] not in told["notes"], "it is said once, of the run"
    assert [(row["round"], row["kind"], row["messages"]) for row in about["rounds"]] == [
        (1, "ask", 60),
        (2, "label", 60),
    ]
    answers = Answers(tmp_path, VIEW_FUNCTIONS)
    assert answers.names() == ["cut"]
    assert ids(answers.answer("lanes", {"view": "user:7"})) == ids(told)


@pytest.mark.parametrize(
    ("place", "look", "said"),
    [
        (Place(user=60), {}, "user 60: not in this run; its users are 0 to 59"),
        (Place(cluster=7), {}, "cluster 7: not in this run; it has 2, numbered from 4 to 5"),
        (Place(offset=30), {}, "offset = 30: there are 30 users to show"),
        (Place(), {"kind": "gossip"}, "kind 'gossip': this protocol's kinds are ask, label, report"),
        (Place(), {"round": 9}, r"round 9: this run has messages in rounds \[1, 2, 3\]"),
        (Place(), {"view": "learner+nobody"}, "unknown part 'nobody'"),
        (Place(), {"view": "user:99"}, "user 99 is not in this run"),
    ],
)
def test_what_there_is_not_is_named(place, look, said):
    with pytest.raises(InputError, match=said):
        shown(make("peers"), place, **look)


def test_a_protocol_of_ones_own_is_shown_without_its_program(tmp_path):
    """A run of it that is read back knows kinds from its trace."""
    run = make("shuffle")
    saved = load(run.save(tmp_path / "run"))
    saved.source = None
    saved.protocol = "mine:Shuffle"
    for look in ({}, {"view": "learner"}, {"view": "shuffler+learner"}):
        assert shown(saved, **look)["messages"] == shown(run, **look)["messages"]
