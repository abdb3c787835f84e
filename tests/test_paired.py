"""Paired runs: what one label changes, against a comparison of all messages one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError
from p2p_sim.core import Message, Protocol, Vector
from protocols import PeerToPeer, RandomizedResponse
from tests.test_observed_view import Sealing
from tests.tiny import LABELS, people


@dataclass(frozen=True)
class Telltale(Protocol):
    """Users with label 1 report, twice over; the learner tells everybody how many did."""

    report = Message("user", "learner", "reports", n=int, v=Vector(np.uint8, 2))
    total = Message("learner", "user", "tells", n=int)

    def user(self, me):
        n = me.draw.below("n", 9, times=2)
        yield self.report(n=n, v=np.full((me.size, 2), 3, np.uint8), when=me.y)
        yield self.total.receive()

    def learner(self, me):
        got = yield self.report.receive()
        yield self.total(to=me.each(np.arange(12)), n=me.each(np.full(12, got.n.data.sum())))


def messages(run: Any, kind: str) -> dict[tuple[int, ...], tuple[Any, ...]]:
    columns = run.messages(kind)
    fields = [columns[name].tolist() for name in run.source.messages()[kind].fields]
    address = zip(*(columns[n].tolist() for n in ("round", "sender", "recipient", "seq")), strict=True)
    return dict(
        zip(address, zip(*fields, strict=True) if fields else [()] * len(columns["round"]), strict=True)
    )


def by_hand(pair: Any, kind: str) -> dict[tuple[int, ...], tuple[Any, Any]]:
    one, other = (messages(run, kind) for run in pair.runs)
    keys = sorted(one.keys() | other.keys(), key=lambda k: (k[0], k[2], k[1], k[3]))
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def told(pair: Any, kind: str, columns: dict[str, Any]) -> dict[tuple[int, ...], tuple[Any, Any]]:
    """A table of differences as ``by_hand`` gives them."""
    names, found = list(pair.runs[0].source.messages()[kind].fields), {}
    for i in range(len(columns["round"])):
        key = tuple(int(columns[n][i]) for n in ("round", "sender", "recipient", "seq"))
        ends = [
            tuple(columns[f"{n}_{end}"][i].tolist() for n in names) if columns[end][i] else None
            for end in ("first", "second")
        ]
        found[key] = (ends[0], ends[1])
    return found


@pytest.mark.parametrize("protocol", [PeerToPeer(0.1), RandomizedResponse(1.0), Telltale()], ids=repr)
@pytest.mark.parametrize("change", [0, 4, 9])
def test_the_wire_sees_every_difference(protocol: Any, change: int) -> None:
    pair = p2p_sim.paired(protocol, people(), change=change, seed=2)
    assert [int(run.population.y[change]) for run in pair.runs] == [LABELS[change], 1 - LABELS[change]]
    found = pair.diff("wire+12*user")
    for kind in protocol.messages():
        expected = by_hand(pair, kind)
        assert (kind in found) == bool(expected)
        if expected:
            assert told(pair, kind, found[kind]) == expected
            assert list(told(pair, kind, found[kind])) == list(expected)


def test_who_is_told_what() -> None:
    pair = p2p_sim.paired(Telltale(), people(), change=4, seed=2)
    assert pair.labels == (1, 0)
    found = pair.diffs()
    assert found.keys() == {"learner", "wire", *(f"user:{u}" for u in range(12))}
    reports = found["learner"]["report"]
    assert reports["sender"].tolist() == [4, 4]
    assert (reports["first"].tolist(), reports["second"].tolist()) == ([True, True], [False, False])
    assert reports["n_second"].tolist() == [0, 0]
    assert reports["v_first"].tolist() == [[3, 3], [3, 3]]
    assert found["user:7"].keys() == {"total"}
    assert found["user:7"]["total"]["recipient"].tolist() == [7]
    assert found["user:4"].keys() == {"report", "total"}


def test_one_answer_differs_and_only_her_peer_sees_it() -> None:
    run = p2p_sim.run(PeerToPeer(0.0), people(), seed=2, trace="full")
    asks = run.messages("ask")
    changed = next(u for u in range(12) if (asks["recipient"][asks["sender"] != u] == u).sum() == 1)
    pair = p2p_sim.paired(PeerToPeer(0.0), people(), change=changed, seed=2)
    assert pair.runs[0].digest == run.digest != pair.runs[1].digest
    peer = next(int(s) for s, r in zip(asks["sender"], asks["recipient"], strict=True) if r == changed != s)
    found = pair.diffs()
    assert set(found) == {"learner", "wire", f"user:{changed}", f"user:{peer}"}
    assert found[f"user:{peer}"]["label"]["sender"].tolist()[-1] == changed
    assert found["learner"].keys() == {"report"}


def test_what_cannot_be_read_does_not_differ() -> None:
    pair = p2p_sim.paired(Sealing(), people(), change=4, seed=2)
    found = pair.diffs()
    assert found["shuffler"] == {}
    assert found["learner"].keys() == {"mixed", "thanks"}
    assert found["wire"].keys() == {"thanks"}
    assert pair.diff("wire", channels="encrypted") == {}
    assert pair.diff("shuffler+learner").keys() == {"sealed", "mixed", "thanks"}
    whole = pair.diff("shuffler+learner")["sealed"]
    assert whole["v_first"].tolist() == [[LABELS[4], 4]]
    assert whole["v_second"].tolist() == [[1 - LABELS[4], 4]]


def test_a_sealed_message_that_is_not_sent_is_a_difference_without_its_fields() -> None:
    @dataclass(frozen=True)
    class Absent(Protocol):
        sealed = Message("user", "shuffler", "seals", sealed_for="learner", n=np.uint8)
        count = Message("shuffler", "learner", "counts", n=int)

        def user(self, me):
            yield self.sealed(n=5, when=me.y)

        def shuffler(self, me):
            got = yield self.sealed.receive()
            yield self.count(n=got.count)

        def learner(self, me):
            yield self.count.receive()

    pair = p2p_sim.paired(Absent(), people(), change=4, seed=2)
    sealed = pair.diff("shuffler")["sealed"]
    assert [sealed[name].tolist() for name in ("sender", "first", "second", "readable")] == [
        [4],
        [True],
        [False],
        [False],
    ]
    assert sealed["n_first"].tolist() == [0]
    assert pair.diff("shuffler+learner")["sealed"]["n_first"].tolist() == [5]


def test_more_labels() -> None:
    crowd = p2p_sim.Population.from_arrays(y=[0, 1, 2, 3])
    pair = p2p_sim.paired(RandomizedResponse(9.0, labels=5), crowd, change=2, to=4, seed=0)
    assert pair.labels == (2, 4)
    assert p2p_sim.paired(RandomizedResponse(9.0, labels=5), crowd, change=2, seed=0).labels == (2, 3)
    assert told(pair, "report", pair.diff("learner")["report"]) == {(1, 2, 0, 0): ((2,), (4,))}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"change": 12}, "change = 12: users are 0 to 11"),
        ({"change": -1}, "change = -1"),
        ({"change": True}, "change = True"),
        ({"change": 4, "to": 1}, "to = 1: must be another label than user 4's, from 0 to 1"),
        ({"change": 4, "to": 2}, "to = 2"),
        ({"change": 4, "backend": "moon"}, "moon"),
    ],
)
def test_bad_input(how: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        p2p_sim.paired(PeerToPeer(0.1), people(), **how)


def test_a_view_that_there_is_not() -> None:
    pair = p2p_sim.paired(PeerToPeer(0.1), people(), change=4, seed=0)
    for name in ("boss", "user:12", "13*user"):
        with pytest.raises(InputError):
            pair.diff(name)
    with pytest.raises(InputError, match="channels = 'x'"):
        pair.diff("wire", channels="x")


def test_the_user_of_a_part_is_given_by_id() -> None:
    whole = people()
    rows = np.array([1, 4, 7])
    pair = p2p_sim.paired(RandomizedResponse(1.0), whole.part(rows), change=7, seed=2)
    assert pair.labels == (LABELS[7], 1 - LABELS[7])
    assert pair.diff("learner")["report"]["sender"].tolist() == [7]
    for stranger in (2, 0, 8, -1, True, "7"):
        with pytest.raises(InputError, match="users are 1 to 7, 3 of them"):
            p2p_sim.paired(RandomizedResponse(1.0), whole.part(rows), change=stranger, seed=0)
