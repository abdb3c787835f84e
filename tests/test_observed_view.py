"""Views of runs against what each party sees, written out by hand; recomputed where nothing was kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population
from p2p_sim.core import Bytes, Message, Protocol, Vector
from p2p_sim.observed_view import View
from p2p_sim.trace import recompute
from protocols import PeerToPeer, RandomizedResponse
from tests.exact import oracle
from tests.tiny import CLUSTERS, LABELS, SEED, people


@dataclass(frozen=True)
class Sealing(Protocol):
    """Users ask each other, and send sealed vectors through a shuffler; the learner thanks everybody."""

    ask = Message("user", "user", "asks", n=np.uint8)
    sealed = Message("user", "shuffler", "seals", sealed_for="learner", v=Vector(np.uint8, 2), tag=Bytes(3))
    mixed = Message(
        "shuffler", "learner", "forwards", sealed_for="learner", v=Vector(np.uint8, 2), tag=Bytes(3)
    )
    thanks = Message("learner", "user", "thanks", n=np.uint8)

    def user(self, me):
        asked = yield self.ask(to=me.draw.member("peer", me.cluster, times=2), n=7)
        yield self.sealed(
            v=np.stack([me.y, me.id], 1).astype(np.uint8), tag=np.full((me.size, 3), 9, np.uint8)
        )
        yield self.thanks.receive()
        return {"asked": asked.count}

    def shuffler(self, me):
        got = yield self.sealed.receive()
        order = me.draw.permutation("order", each=got)
        yield self.mixed(v=got.v.take(order), tag=got.tag.take(order))

    def learner(self, me):
        got = yield self.mixed.receive()
        yield self.thanks(to=me.each(np.arange(12)), n=me.each(got.v.data.sum(axis=1) % 200))
        return got.columns()


PUBLIC = {"age": np.arange(12) % 5}
SECRET = {"weight": np.arange(12) * 2}
PEOPLE = people(public=PUBLIC, secret=SECRET, x=np.arange(24.0).reshape(12, 2))
RUN = p2p_sim.run(Sealing(), PEOPLE, seed=SEED, trace="full")
ADDRESS = ("round", "sender", "recipient", "seq", "nbytes")

# who looks, and what of it: by kind, whose messages ("all", or users), and whether the fields can be read
SEES: dict[str, dict[str, tuple[Any, bool]]] = {
    "learner": {"ask": ((), True), "sealed": ((), True), "mixed": ("all", True), "thanks": ("all", True)},
    "shuffler": {"ask": ((), True), "sealed": ("all", False), "mixed": ("all", False), "thanks": ((), True)},
    "shuffler+learner": {
        "ask": ((), True), "sealed": ("all", True), "mixed": ("all", True), "thanks": ("all", True),
    },
    "user:4": {"ask": ((4,), True), "sealed": ((4,), False), "mixed": ((), False), "thanks": ((4,), True)},
    "2*user+user:1": {
        "ask": ((0, 1, 2), True), "sealed": ((0, 1, 2), False), "mixed": ((), False), "thanks": ((0, 1, 2), True),
    },
    "learner + user:4": {
        "ask": ((4,), True), "sealed": ((4,), True), "mixed": ("all", True), "thanks": ("all", True),
    },
    "wire": {"ask": ("all", True), "sealed": ("all", False), "mixed": ("all", False), "thanks": ("all", True)},
    "wire+learner": {
        "ask": ("all", True), "sealed": ("all", True), "mixed": ("all", True), "thanks": ("all", True),
    },
}  # fmt: skip


def rows(columns: dict[str, Any], names: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


def concerns(kind: str, users: Any) -> list[int]:
    """The places of the messages of some users in the trace."""
    columns, message = RUN.messages(kind), Sealing.messages()[kind]
    if users == "all":
        return list(range(len(columns["round"])))
    ends = [e for e in ("sender", "recipient") if getattr(message, e) == "user"]
    return [i for i in range(len(columns["round"])) if any(int(columns[e][i]) in users for e in ends)]


def same(one: View, other: View) -> bool:
    if one.coalition != other.coalition:
        return False
    return all(
        list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)
        for a, b in ((one.messages[kind], other.messages[kind]) for kind in one.kinds)
    )


@pytest.mark.parametrize("name", SEES)
def test_what_each_party_sees(name: str) -> None:
    seen = RUN.view(name)
    for kind, (users, reads) in SEES[name].items():
        whole, columns = RUN.messages(kind), seen.messages[kind]
        places = concerns(kind, users)
        if "wire" in name:  # a message to oneself does not travel
            places = [i for i in places if kind != "ask" or whole["sender"][i] != whole["recipient"][i]]
        assert rows(columns, ADDRESS) == [rows(whole, ADDRESS)[i] for i in places]
        assert columns["readable"].tolist() == [reads] * len(places)
        for field in Sealing.messages()[kind].fields:
            expected = whole[field][places] if reads else np.zeros_like(whole[field][places])
            np.testing.assert_array_equal(columns[field], expected)
            assert columns[field].dtype == whole[field].dtype


def test_on_encrypted_channels_the_wire_reads_nothing_but_what_members_handled() -> None:
    seen = RUN.view("wire+user:4", channels="encrypted")
    asks = seen.messages["ask"]
    mine = (asks["sender"] == 4) | (asks["recipient"] == 4)
    assert 0 < mine.sum() < len(mine)
    np.testing.assert_array_equal(asks["readable"], mine)
    np.testing.assert_array_equal(asks["n"], np.where(mine, 7, 0))
    assert not seen.messages["mixed"]["readable"].any()


def test_what_cannot_be_read_is_null_in_a_table() -> None:
    seen = RUN.view("wire+user:4", channels="encrypted")
    table, columns = seen.table("ask"), seen.messages["ask"]
    expected = [
        int(n) if readable else None for n, readable in zip(columns["n"], columns["readable"], strict=True)
    ]
    assert table["n"].to_pylist() == expected
    assert RUN.view("shuffler").table("sealed")["v"].to_pylist() == [None] * 12
    assert RUN.view("learner").table("mixed")["v"].null_count == 0
    assert table.to_pandas()["n"].isna().sum() == (~columns["readable"]).sum()
    with pytest.raises(InputError, match=r"no message kind 'tell'.*ask"):
        seen.table("tell")


def test_inputs_and_what_is_public() -> None:
    seen = RUN.view("user:4+user:1")
    assert seen.inputs.keys() == {"user", "y", "secret/weight"}
    assert rows(seen.inputs, seen.inputs) == [(1, LABELS[1], 2), (4, LABELS[4], 8)]
    assert seen.public.keys() == {"user", "cluster", "x", "public/age"}
    assert seen.public["cluster"].tolist() == CLUSTERS
    assert len(RUN.view("learner").inputs["y"]) == 0


def test_own_draws_of_users_and_servers() -> None:
    seen = RUN.view("shuffler+user:4+user:9")
    assert set(seen.draws) == {"user/peer/0", "shuffler/order/1"}
    chance = oracle.Chance(SEED, "shuffler")
    order = oracle.permutation([chance.item("order", 1, 0, r) for r in range(12)])
    assert seen.draws["shuffler/order/1"]["value"].tolist() == order
    assert set(seen.draws["shuffler/order/1"]["party"].tolist()) == {0}
    peers = seen.draws["user/peer/0"]
    assert rows(peers, ("party", "slot")) == [(4, 0), (4, 1), (9, 0), (9, 1)]
    asks = RUN.messages("ask")
    for user, slot, value in rows(peers, ("party", "slot", "value")):
        assert value == asks["recipient"][(asks["sender"] == user) & (asks["seq"] == slot)]
    assert RUN.view("wire").draws == {}
    assert set(RUN.view("learner+user:4").draws) == {"user/peer/0"}


@pytest.mark.parametrize("name", SEES)
@pytest.mark.parametrize("trace", ["none", "counts", "sample=2"])
def test_what_was_not_kept_is_recomputed(name: str, trace: str) -> None:
    seen = p2p_sim.run(Sealing(), PEOPLE, seed=SEED, trace=trace, blocks=5).view(name)
    assert same(seen, RUN.view(name))
    assert seen.missing is None


@pytest.mark.parametrize("protocol", [PeerToPeer(0.2), RandomizedResponse(1.0)], ids=repr)
def test_users_alone_are_recomputed_in_their_closed_world(protocol: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(recompute, "MAX_USERS", 5)
    full, none = (p2p_sim.run(protocol, people(), seed=3, trace=level) for level in ("full", "none"))
    for name in ("user:4", "user:1+user:9"):
        assert same(none.view(name), full.view(name))
        assert none.view(name).draws.keys() == full.view(name).draws.keys() != set()
    with pytest.raises(InputError, match=r"up to 5 users.*has 12.*trace='full'"):
        none.view("learner")
    with pytest.raises(InputError, match=r"up to 5 users.*has 12: choose a view of users only"):
        list(full.view("learner+user:4").draws)
    sampled = p2p_sim.run(protocol, people(), seed=3, trace="sample=2").view("learner")
    assert sampled.missing is not None
    assert "sample=2" in sampled.missing
    assert (
        0 < len(sampled.messages["report"]["round"]) < len(full.view("learner").messages["report"]["round"])
    )


def test_a_loaded_run_has_the_same_views(tmp_path: Any) -> None:
    for trace in ("full", "none"):
        run = p2p_sim.run(PeerToPeer(0.2), people(), seed=3, trace=trace)
        loaded = p2p_sim.load(run.save(tmp_path / trace))
        for name in ("learner", "user:4", "wire", "learner+3*user"):
            assert same(loaded.view(name), run.view(name))
            assert loaded.view(name).draws.keys() == run.view(name).draws.keys()


def test_a_run_without_its_population(tmp_path: Any) -> None:
    run = p2p_sim.run(PeerToPeer(0.2), people(), seed=2**63 + 3, trace="full")
    bare = p2p_sim.load(run.save(tmp_path / "full", population=False))
    assert same(bare.view("learner+user:4"), run.view("learner+user:4"))
    for ask in (lambda v: v.draws, lambda v: v.inputs, lambda v: v.public):
        with pytest.raises(InputError, match="without its population"):
            ask(bare.view("learner"))
    with pytest.raises(InputError, match="user 12 is not in this run"):
        bare.view("user:12")
    sampled = p2p_sim.run(PeerToPeer(0.2), people(), seed=2**63 + 3, trace="sample=3")
    bare = p2p_sim.load(sampled.save(tmp_path / "sample", population=False))
    assert bare.view("learner").missing is not None
    none = p2p_sim.run(PeerToPeer(0.2), people(), seed=2**63 + 3)
    with pytest.raises(InputError, match="kept no messages"):
        p2p_sim.load(none.save(tmp_path / "none", population=False)).view("learner")


def test_worlds_are_the_clusters() -> None:
    seen = RUN.view("learner+user:4+user:1")
    asks = RUN.view("wire").messages["ask"]
    assert RUN.view("wire").cluster_of("ask").tolist() == [CLUSTERS[u] for u in asks["sender"]]
    assert set(seen.cluster_of("mixed").tolist()) == {-1}
    for code in set(CLUSTERS):
        part, group = seen.world(code), [u for u in range(12) if CLUSTERS[u] == code]
        assert sorted(part.messages["thanks"]["recipient"].tolist()) == group
        assert part.public["user"].tolist() == group
        assert part.inputs["user"].tolist() == [u for u in (1, 4) if u in group]
        assert set(part.draws["user/peer/0"]["party"].tolist()) == {1, 4} & set(group)
    with pytest.raises(InputError, match="no cluster 5"):
        seen.world(5)
    alone = p2p_sim.run(PeerToPeer(0.2), Population.from_arrays(y=LABELS), trace="full", seed=0).view(
        "learner"
    )
    assert same(alone.world(0), alone)


def test_a_program_that_changed_is_noticed() -> None:
    run = p2p_sim.run(PeerToPeer(0.2), people(), seed=3)
    with pytest.raises(InputError, match=r"digest .* instead of"):
        run.view("learner", protocol=PeerToPeer(0.5))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("boss", "unknown part 'boss'; parts are shuffler, learner, user, user:17, 3\\*user, wire"),
        ("", "unknown part ''"),
        ("learner+user:12", "user 12 is not in this run; its users are 0 to 11"),
        ("13*user", "has 13 users, the run has 12"),
        ("user:3+12*user", "has 13 users, the run has 12"),
        ("user:3+user:3", "name each party once"),
    ],
)
def test_bad_coalitions_are_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        RUN.view(name)


def test_bad_channels_are_refused() -> None:
    with pytest.raises(InputError, match=r"channels = 'open'.*plain, encrypted"):
        RUN.view("wire", channels="open")


def test_a_protocol_of_one_s_own_is_asked_for_after_loading(tmp_path: Any) -> None:
    loaded = p2p_sim.load(p2p_sim.run(Sealing(), people(), seed=SEED).save(tmp_path / "run"))
    with pytest.raises(InputError, match=r"give it, view\(name, protocol=...\)"):
        loaded.view("learner")
    assert same(loaded.view("learner", protocol=Sealing()), RUN.view("learner"))
