"""Slices: ids, causal order, what was cut."""

from __future__ import annotations

import itertools

import pytest

import p2p_sim
from p2p_sim.trace.slices import Slice, message_id, party
from protocols import EncryptedShuffle, PeerToPeer
from tests.tiny import people


def sliced(protocol, **how):
    run = p2p_sim.run(protocol, people(), seed=3, trace="full")
    columns = {kind: run.messages(kind) for kind in protocol.messages()}
    return run, Slice.of(protocol.messages(), columns, **how)


@pytest.mark.parametrize("protocol", [PeerToPeer(0.1), EncryptedShuffle(1.0, shufflers=2)], ids=str)
def test_events_are_all_messages_in_causal_order(protocol):
    run, part = sliced(protocol)
    kinds = list(protocol.messages())
    wanted = sorted(
        (row[0], kinds.index(kind), row[2], row[1], row[3])
        for kind in kinds
        for row in zip(
            *(run.messages(kind)[name].tolist() for name in ("round", "sender", "recipient", "seq")),
            strict=True,
        )
    )
    events = list(part.events())
    assert [(e.round, kinds.index(e.kind), e.recipient, e.sender, e.seq) for e in events] == wanted
    assert len(part) == len(events) == sum(part.total.values())
    assert sorted(event.id for event in events) == sorted(itertools.chain(*part.ids().values()))
    assert part.cut == {}


def test_an_event_holds_its_row():
    run, part = sliced(PeerToPeer(0.1))
    labels = run.messages("label")
    for event in part.events():
        if event.kind == "label":
            row = part.ids()["label"].index(event.id)
            assert event.fields == {"y_hat": labels["y_hat"][row]}
            assert event.nbytes == labels["nbytes"][row]
            assert event.ends == (f"user:{event.sender}", f"user:{event.recipient}")
    report = next(event for event in part.events() if event.kind == "report")
    assert report.ends[1] == "learner"
    assert report.id == f"report:3:{report.sender}:0:0"


def test_what_cannot_be_read_is_not_in_an_event():
    run, _ = sliced(EncryptedShuffle(1.0))
    view = run.view("shuffler")
    part = Slice.of(view.kinds, view.messages)
    assert {event.fields is None for event in part.events()} == {True}
    assert part.fields("report") == ["cluster", "y"]
    assert (part.sealed["report"], part.layers["report"]) == ("learner", ("shuffler",))
    assert part.texts["mixed"].startswith("passes a report on")


def test_what_was_cut_is_counted_by_kind():
    protocol = PeerToPeer(0.1)
    run, _ = sliced(protocol)
    columns = {kind: {k: c[:5] for k, c in run.messages(kind).items()} for kind in ("label", "ask")}
    part = Slice.of(protocol.messages(), columns, total={"ask": 12, "label": 5})
    assert list(part.kinds) == ["ask", "label"]
    assert part.cut == {"ask": 7}


def test_nothing():
    part = Slice.of({}, {})
    assert (len(part), list(part.events()), part.ids(), part.cut) == (0, [], {}, {})
    assert message_id("a", 1, 2, 3, 4) == "a:1:2:3:4"
    assert (party("user", 3), party("learner", 0)) == ("user:3", "learner")
