"""Runs with real cryptography: what modelled runs deliver, by way of ciphertexts that nobody else can open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.core import InputError, Message, Protocol, ProtocolError
from p2p_sim.crypto import encode
from p2p_sim.crypto.envelopes import Envelopes
from protocols import EncryptedShuffle, PeerPermutation, PeerToPeer, SecureAggregation
from tests.contract.cases import POPULATIONS, PROTOCOLS, people_of

ATTACKS = ["tamper=0.1", "misdirect=0.1", "replay=0.2", "loss=0.05", "late=0.05", "duplicate=0.1"]
SEALING = {name: p for name, p in PROTOCOLS.items() if any(m.sealed_for for m in p.messages().values())}
KEYED = {("advertise", "key"), ("neighbour", "key"), ("report", "value")}
"""What secure aggregation makes of keys: other keys, other values."""


def both(protocol: Any, people: Population, **how: Any) -> list[p2p_sim.run.Run]:  # type: ignore[name-defined]
    return [
        p2p_sim.run(protocol, people, seed=5, trace="full", crypto=c, **how) for c in ("modelled", "real")
    ]


def same_messages(one: Any, other: Any) -> None:
    """Every column of every kind is equal but for keys and what is made of them."""
    masked = isinstance(one.source, SecureAggregation)
    for kind in one.source.messages():
        for name, column in one.messages(kind).items():
            if not (masked and (kind, name) in KEYED):
                assert np.array_equal(column, other.messages(kind)[name]), (kind, name)


@pytest.mark.slow
@pytest.mark.parametrize("faults", [None, ATTACKS], ids=["all well", "attacked"])
@pytest.mark.parametrize("name", SEALING)
def test_both_modes_deliver_the_same(name: str, faults: list[str] | None) -> None:
    people = people_of(SEALING[name], "scattered", 60)
    modelled, real = both(SEALING[name], people, faults=faults)
    same_messages(modelled, real)
    assert modelled.counts == real.counts
    assert modelled.work == real.work
    assert modelled.faults_seen == real.faults_seen
    for role, columns in modelled.outputs.items():
        assert all(np.array_equal(columns[key], real.outputs[role][key]) for key in columns)
    assert (modelled.digest == real.digest) != isinstance(SEALING[name], SecureAggregation)


@pytest.mark.parametrize("name", ["encrypted shuffle by three", "peer permutation", "secure aggregation"])
def test_real_runs_do_not_depend_on_blocks_and_are_replayed(name: str) -> None:
    people = POPULATIONS["scattered"](60)
    one, parts = (
        p2p_sim.run(SEALING[name], people, seed=5, trace="full", crypto="real", blocks=b, faults=ATTACKS)
        for b in (1, 7)
    )
    assert one.digest == parts.digest
    life = one.replay(17)
    for kind, columns in life.sent.items():
        whole = one.messages(kind)
        mine = whole["sender"] == 17
        assert all(np.array_equal(columns[key], whole[key][mine]) for key in columns), kind


@pytest.mark.slow
def test_real_runs_are_equal_on_shards() -> None:
    people = POPULATIONS["scattered"](40)
    for protocol in (EncryptedShuffle(1.0, shufflers=2), SecureAggregation(4, threshold=3)):
        here = p2p_sim.run(protocol, people, seed=5, crypto="real", faults=["tamper=0.1"])
        there = p2p_sim.run(
            protocol, people, seed=5, crypto="real", faults=["tamper=0.1"], backend="shards", shards=2
        )
        assert here.digest == there.digest
        assert here.work == there.work
        assert here.faults_seen == there.faults_seen


def test_what_travels_is_as_long_as_counted_and_differs_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[Any]] = {}
    opened = Envelopes.open

    def watch(self: Any, message: Message, batch: Any, attack: Any) -> Any:
        seen.setdefault(message.kind, []).append(batch.fields["_sealed"])
        return opened(self, message, batch, attack)

    monkeypatch.setattr(Envelopes, "open", watch)
    people, protocol = POPULATIONS["contiguous"](40), EncryptedShuffle(1.0, shufflers=2)
    digests = {p2p_sim.run(protocol, people, seed=5, crypto="real").digest for _ in range(2)}
    assert len(digests) == 1
    for kind, (first, second) in seen.items():
        message = protocol.messages()[kind]
        assert first.shape == (40, message.nbytes({}) - 16)
        assert not (first == second).all(axis=1).any()
        plain = encode.pack({"cluster": np.zeros(1, np.int64), "y": np.ones(1, np.uint8)}, message.fields)
        assert plain.tobytes() not in first.tobytes()
    assert set(seen) == {"report2", "passed2", "mixed"}


def test_every_layer_needs_its_own_key_and_its_own_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens in another context opens nothing; the run goes on, and says so."""
    people = POPULATIONS["contiguous"](30)
    infos = Envelopes._info
    for wrong in (
        lambda o, r: (("other", o[1]), r),
        lambda o, r: ((o[0], o[1] + 1), r),
        lambda o, r: (o, r + "?"),
    ):
        opening: list[bool] = []

        def info(self: Any, origin: Any, role: str, wrong: Any = wrong, opening: Any = opening) -> bytes:
            return infos(self, *(wrong(origin, role) if opening else (origin, role)))

        real = Envelopes.open

        def watched(*given: Any, real: Any = real, opening: Any = opening) -> Any:
            opening.append(True)
            return real(*given)

        monkeypatch.setattr(Envelopes, "_info", info)
        monkeypatch.setattr(Envelopes, "open", watched)
        run = p2p_sim.run(EncryptedShuffle(1.0), people, crypto="real", seed=0)
        assert run.faults_seen == {("unopened", "report", 1): 30}
        assert not len(run.output("learner")["y"])
        monkeypatch.undo()


def test_attacks_are_refused_and_counted() -> None:
    people, protocol = Population.synthetic(users=2000, cluster_size=2000, seed=1), EncryptedShuffle(3.0)
    clean = p2p_sim.run(protocol, people, seed=5)
    for name, fault in (("tampered", "tamper"), ("misdirected", "misdirect"), ("replayed", "replay")):
        run = p2p_sim.run(protocol, people, seed=5, faults=[f"{fault}=0.1"])
        first, second = (run.faults_seen[name, kind, r] for kind, r in (("report", 1), ("mixed", 2)))
        # of 1,800 to 2,000 messages with chance 0.1: outside with probability below 1e-9
        assert 90 < first < 300
        assert 90 < second < 300
        lost = 0 if fault == "replay" else first + second
        assert len(run.output("learner")["y"]) == 2000 - lost
        extra = first if fault == "replay" else 0
        assert run.by_kind()["report"].travelled == 2000 + extra
        assert (run.digest == clean.digest) == (fault == "replay")


def test_operations_are_those_of_the_program() -> None:
    """By hand: 22 users, two shufflers: 3 layers each; 2 clusters of 11: 11 * 10 contributions each."""
    people = POPULATIONS["contiguous"](22)
    shuffle = p2p_sim.run(EncryptedShuffle(1.0, shufflers=2), people, seed=0)
    assert shuffle.work == {
        ("learner", 4, "open"): 22, ("shuffler", 3, "open"): 22, ("shuffler2", 2, "open"): 22,
        ("user", 1, "seal"): 66,
    }  # fmt: skip
    agreed = p2p_sim.run(PeerPermutation(0.1), people, seed=0)
    assert agreed.work == {("user", 1, "seal"): 220, ("user", 2, "open"): 220}
    # 2 bags of 11: 10 neighbours each, 8 of whom recover a secret: min(6, 9 - 1) = 6 shares
    summed = p2p_sim.run(SecureAggregation(11), people, seed=0).work
    assert summed["user", 1, "key"] == 22
    assert summed["user", 3, "seal"] == summed["user", 5, "open"] == summed["user", 5, "agree"] == 220
    assert summed["user", 3, "share"] == 220 * 5 * 10
    assert summed["user", 5, "mask"] == 220 + 22
    assert summed["aggregator", 8, "recover"] == 22 * 6**2
    assert p2p_sim.run(PeerToPeer(0.1), people, seed=0).work == {}


def test_saved_and_loaded(tmp_path: Any) -> None:
    run = p2p_sim.run(EncryptedShuffle(1.0), POPULATIONS["contiguous"](22), crypto="real", seed=0)
    again = p2p_sim.load(run.save(tmp_path / "run"))
    assert again.crypto == "real"
    assert again.work == run.work


@dataclass(frozen=True)
class Forwarding(Protocol):
    """A server hands on sealed fields: as they came, of two messages joined, with more beside, to the wrong user."""

    how: str

    given = Message("user", "post", "gives two sealed numbers", sealed_for="learner", a=np.int32, b=np.int32)
    passed = Message("post", "learner", "passes them on", sealed_for="learner", a=np.int32, b=np.int32)
    letter = Message("user", "post", "writes to the next user", sealed_for="user", a=np.int32)
    handed = Message("post", "user", "hands a letter over", sealed_for="user", a=np.int32)

    def user(self, me: Any) -> Any:
        yield self.given(a=me.id, b=me.id)
        after = (me.id + 1) % 4
        yield self.letter(a=me.id, **({} if self.how == "nobody" else {"reader": after}))
        letters = yield self.handed.receive()
        return {"from": letters.a}

    def post(self, me: Any) -> Any:
        came = yield self.given.receive()
        back = me.draw.permutation("order", each=came)
        b = came.b.take(back) if self.how == "joined" else came.b
        yield self.passed(a=came.a, b=came.sender if self.how == "added" else b)
        letters = yield self.letter.receive()
        to = letters.sender if self.how == "astray" else (letters.sender + 1) % 4
        yield self.handed(to=to, a=letters.a)

    def learner(self, me: Any) -> Any:
        came = yield self.passed.receive()
        return came.columns()


def test_letters_are_opened_by_their_reader_alone() -> None:
    people = Population.from_arrays(y=np.zeros(4, np.bool_))
    modelled, real = both(Forwarding("as it came"), people)
    assert modelled.digest == real.digest
    assert real.output("user")["from"].tolist() == [3, 0, 1, 2]
    for astray in both(Forwarding("astray"), people):
        assert astray.faults_seen == {("unopened", "handed", 4): 4}
        assert not len(astray.output("user")["from"])


@pytest.mark.parametrize(
    ("how", "crypto", "words"),
    [
        ("joined", "real", ["joins fields of different messages"]),
        ("joined", "modelled", ["joins fields of different messages"]),
        ("added", "real", ["hands on a as sealed", "adds b"]),
        ("added", "modelled", ["hands on a as sealed", "adds b"]),
        ("nobody", "modelled", ["sealed for a user", "reader="]),
    ],
)
def test_what_no_ciphertext_can_do_is_refused(how: str, crypto: str, words: list[str]) -> None:
    people = Population.from_arrays(y=np.zeros(4, np.bool_))
    with pytest.raises(ProtocolError) as caught:
        p2p_sim.run(Forwarding(how), people, crypto=crypto, seed=1)
    assert all(word in str(caught.value) for word in words), caught.value


def test_bad_input_is_named() -> None:
    people = POPULATIONS["contiguous"](22)
    with pytest.raises(InputError, match="crypto = 'rael': must be one of modelled, real"):
        p2p_sim.run(PeerToPeer(0.1), people, crypto="rael", seed=0)
    for fault in ("tamper", "misdirect", "replay"):
        with pytest.raises(InputError, match=f"{fault} = 0.1: PeerToPeer seals nothing"):
            p2p_sim.run(PeerToPeer(0.1), people, faults=[f"{fault}=0.1"], seed=0)
    with pytest.raises(ProtocolError, match="takes no reader="):
        EncryptedShuffle.mixed(cluster=1, y=1, reader=0)
