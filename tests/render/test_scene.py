"""What a diagram shows, against the messages counted one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from p2p_sim.render.lanes import MOST_ARROWS, MOST_LANES, Lane
from p2p_sim.render.scene import READ, SEALED, STRUCK, UNSEEN, scene
from p2p_sim.trace.slices import Slice
from protocols import EncryptedShuffle, PeerToPeer
from tests.render.material import PROTOCOLS, cluster_of, many, sight_of, sliced


def lane_name(end: str) -> str:
    return end.replace(":", " ")


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_few_messages_are_drawn_one_by_one(protocol):
    _, part = sliced(protocol)
    drawn = scene(part, "t")
    names = [lane.name for lane in drawn.lanes]
    events = list(part.events())
    assert [(a.id, names[a.sender], names[a.recipient]) for a in drawn.arrows] == [
        (e.id, *map(lane_name, e.ends)) for e in events
    ]
    assert [(a.round, a.kind, a.messages, a.nbytes) for a in drawn.arrows] == [
        (e.round, e.kind, 1, e.nbytes) for e in events
    ]
    assert set(names) == {lane_name(end) for e in events for end in e.ends}
    users = [name for name in names if name.startswith("user ")]
    assert names[: len(users)] == sorted(users, key=lambda name: int(name[5:]))
    assert [lane.server for lane in drawn.lanes] == [False] * len(users) + [True] * (len(names) - len(users))
    assert drawn.notes == ()
    for arrow, event in zip(drawn.arrows, events, strict=True):
        if part.sealed[event.kind]:
            assert (arrow.sight, arrow.detail) == (SEALED, f"sealed for {part.sealed[event.kind]}")
        else:
            assert arrow.sight == READ
            assert all(f"{name}=" in arrow.detail for name in part.fields(event.kind))


def test_servers_stand_in_the_order_in_which_messages_reach_them():
    _, part = sliced(EncryptedShuffle(1.0, shufflers=3))
    assert [lane.name for lane in scene(part, "t").lanes if lane.server] == [
        "shuffler3", "shuffler2", "shuffler", "learner",
    ]  # fmt: skip


def test_values_are_those_of_the_message():
    run, part = sliced(PeerToPeer(0.1))
    told = {a.id: a.detail for a in scene(part, "t").arrows if a.kind == "label"}
    labels = run.messages("label")
    for row, name in enumerate(part.ids()["label"]):
        assert told[name] == f"y_hat={str(bool(labels['y_hat'][row])).lower()}"


SHUFFLERS = ["shuffler", "shuffler+learner", "shuffler+user:4"]
VIEWS = [
    (protocol, view)
    for protocol in (PeerToPeer(0.1), EncryptedShuffle(1.0))
    for view in ["learner", "user:4", "learner+user:4", "wire", *SHUFFLERS]
    if "shuffler" in protocol.roles() or view not in SHUFFLERS
]


@pytest.mark.parametrize(("protocol", "view"), VIEWS, ids=str)
def test_a_viewpoint_sees_what_its_members_handled_and_can_open(protocol, view):
    _, part = sliced(protocol)
    drawn = scene(part, "t", viewpoint=view, sight=sight_of(protocol, part, view))
    members = set(view.split("+"))
    for arrow, event in zip(drawn.arrows, part.events(), strict=True):
        handled = bool(members & set(event.ends))
        seen = handled or ("wire" in members and event.ends[0] != event.ends[1])
        keys = {part.sealed[event.kind], *part.layers[event.kind]} - {None}
        opened = keys <= members or (event.ends[0] in members and "learner" in members)
        sight = UNSEEN if not seen else READ if opened or not part.fields(event.kind) else STRUCK
        assert arrow.sight == sight, event.id
        assert ("=" in arrow.detail) == (sight == READ and bool(part.fields(event.kind)))


def test_a_slice_through_somebody_s_eyes_needs_no_sight():
    run, _ = sliced(EncryptedShuffle(1.0))
    view = run.view("shuffler")
    part = Slice.of(view.kinds, view.messages)
    assert {arrow.sight for arrow in scene(part, "t", viewpoint="shuffler").arrows} == {STRUCK}
    assert {arrow.hidden for arrow in scene(part, "t", viewpoint="shuffler").arrows} == {"cluster, y"}


def by_lanes(part, lane):
    """Messages and bytes by (round, kind, lane, lane), counted one by one."""
    counts, sizes = Counter(), Counter()
    for event in part.events():
        key = (event.round, event.kind, *map(lane, event.ends))
        counts[key] += 1
        sizes[key] += event.nbytes
    return {key: (counts[key], sizes[key]) for key in counts}


def as_drawn(drawn):
    names = [lane.name for lane in drawn.lanes]
    found = {
        (a.round, a.kind, names[a.sender], names[a.recipient]): (a.messages, a.nbytes) for a in drawn.arrows
    }
    assert len(found) == len(drawn.arrows)
    return found


def test_many_are_drawn_by_cluster():
    _, part = sliced(PeerToPeer(0.1, theta=0.5), many())
    drawn = scene(part, "t", clusters=lambda ids: ids // 10 + 5)
    assert as_drawn(drawn) == by_lanes(
        part, lambda end: f"cluster {int(end[5:]) // 10 + 5}" if end.startswith("user:") else end
    )
    assert len(drawn.lanes) == 31
    assert {lane.parties for lane in drawn.lanes} == {10, 1}
    assert drawn.notes[0].startswith("300 users are drawn together by cluster, in 30 lanes; to see")


def test_too_many_clusters_are_drawn_by_role():
    _, part = sliced(PeerToPeer(0.1, theta=0.5), many())
    for clusters in (None, lambda ids: ids // 5):
        drawn = scene(part, "t", clusters=clusters)
        assert as_drawn(drawn) == by_lanes(part, lambda end: "users" if end.startswith("user:") else end)
        assert "300 users are drawn together by role, in 1 lane" in drawn.notes[0]


def test_those_asked_for_keep_their_lanes():
    _, part = sliced(PeerToPeer(0.1, theta=0.5), many())
    asked = (17, 18)

    def others(end: str) -> str:
        user = int(end[5:]) if end.startswith("user:") else -1
        return f"user {user}" if user in asked else f"cluster {user // 10 + 5}, others" if user >= 0 else end

    drawn = scene(part, "t", requested=asked, clusters=lambda ids: ids // 10 + 5)
    assert as_drawn(drawn) == by_lanes(part, others)
    assert [lane.name for lane in drawn.lanes if lane.requested] == ["user 17", "user 18"]
    everybody = scene(part, "t", requested=range(300), clusters=lambda ids: ids // 10 + 5)
    assert not any(lane.requested for lane in everybody.lanes)
    assert len(everybody.lanes) == 31


def test_the_limits_are_where_they_are_said_to_be():
    protocol = PeerToPeer(0.1)
    _, part = sliced(protocol)
    assert len(part) == 36
    assert len(scene(part, "t", most=36).arrows) == 36
    merged = scene(part, "t", most=35, clusters=cluster_of)
    assert {lane.name for lane in merged.lanes} == {*(f"cluster {c}" for c in (0, 4, 9, 30)), "learner"}
    cut = scene(part, "t", most=2)
    assert [(a.round, a.messages) for a in cut.arrows] == [(1, 12), (2, 12)]
    assert cut.notes[1] == "the first 2 of 3 arrows are shown; ask for one round, or for more with --limit"
    for users in (MOST_LANES - 1, MOST_LANES):
        _, part = sliced(protocol, many(users))
        assert (len(scene(part, "t").lanes) == MOST_LANES) == (users == MOST_LANES - 1)
    assert MOST_ARROWS == 400


def test_a_viewpoint_of_many_is_counted():
    protocol = PeerToPeer(0.1)
    _, part = sliced(protocol, many())
    drawn = scene(
        part, "t", clusters=lambda ids: ids // 10 + 5, viewpoint="user:17",
        sight=sight_of(protocol, part, "user:17"),
    )  # fmt: skip
    mine = Counter(e.kind for e in part.events() if "user:17" in e.ends)
    for arrow in drawn.arrows:
        home = drawn.lanes[arrow.sender].name == "cluster 6"
        assert arrow.sight == (READ if home else UNSEEN)
        if home:
            assert f"{mine[arrow.kind]} seen" in arrow.detail
    assert sum(mine.values()) > 3


def test_nothing_and_somebody_who_did_nothing():
    empty = Slice.of({}, {})
    assert (scene(empty, "t").lanes, scene(empty, "t").arrows) == ((), ())
    assert scene(empty, "t", requested=[3]).lanes == (Lane("user 3", False, 1, True),)
    _, part = sliced(EncryptedShuffle(1.0))
    assert "shuffler3" not in {lane.name for lane in scene(part, "t").lanes}


def test_long_values_are_shortened():
    _, part = sliced(PROTOCOLS["secure aggregation"])
    details = [a.detail for a in scene(part, "t").arrows]
    assert max(map(len, details)) <= 100
    assert any("… 32 bytes" in detail for detail in details)
    assert any("values]" in detail for detail in details)
    assert np.unique([a.id for a in scene(part, "t").arrows]).size == len(part)
