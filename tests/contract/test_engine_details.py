"""Details of engine and run directory that a mutated program would get wrong unseen."""

from __future__ import annotations

import stat
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, ProtocolError
from p2p_sim.core import Message, Party, Protocol, Rounds, Vector, kernels
from p2p_sim.core.ledger import Totals
from p2p_sim.core.run_digest import output_lanes
from protocols import PeerToPeer, RandomizedResponse
from tests.backends.programs import Gossip
from tests.contract.test_battery import equal


@dataclass(frozen=True)
class Echo(Protocol):
    """Users report twice before the learner reads; she reads in order and answers each."""

    first = Message("user", "learner", "says a number and the round it was said in", n=np.int64)
    back = Message("learner", "user", "says the number back", n=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.first(n=me.id)
        yield self.first(n=me.id + 100)
        one = yield self.back.receive()
        two = yield self.back.receive()
        return {"one": one.n.first(-1), "two": two.n.first(-1), "size": me.cluster.size}

    def learner(self, me: Party) -> Rounds:
        one = yield self.first.receive()
        two = yield self.first.receive()
        yield self.back.reply(one, n=one.n)
        yield self.back.reply(two, n=two.n)


@dataclass(frozen=True)
class Several(Protocol):
    """Users ask two peers at once; answers carry the number of the question."""

    ask = Message("user", "user", "asks a random peer of the cluster")
    label = Message("user", "user", "answers", y=bool)

    def user(self, me: Party) -> Rounds:
        asks = yield self.ask(to=me.draw.member("peer", me.cluster, times=2))
        labels = yield self.label.reply(asks, y=me.y)
        return {"ones": labels.y.sum()}


@dataclass(frozen=True)
class TwoInboxes(Protocol):
    """Users ask twice, then answer the first or the second, depending on who they are."""

    ask = Message("user", "user", "asks a random peer of the cluster")
    label = Message("user", "user", "answers", who=np.int64)

    def user(self, me: Party) -> Rounds:
        one = yield self.ask(to=me.draw.member("peer", me.cluster))
        two = yield self.ask(to=me.draw.member("peer", me.cluster))
        labels = yield self.label.reply(one if me.id[0] < 10 else two, who=me.id)
        return {"from": labels.who.sum()}


@dataclass(frozen=True)
class Loner(Protocol):
    """Reports the size of the cluster and a member of it, without a word to anybody else."""

    report = Message("user", "learner", "says size and member", size=np.int64, member=np.int64)
    tally = Message("learner", "learner", "notes the reports to herself", n=np.int64)

    def user(self, me: Party) -> Rounds:
        yield self.report(size=me.cluster.size, member=me.draw.member("any", me.cluster))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        yield self.tally(n=reports.count)
        return {"size": reports.size, "total": reports.count}


@dataclass(frozen=True)
class Wide(Protocol):
    """Vectors that nobody sends."""

    word = Message("user", "learner", "carries a vector", v=Vector(np.uint64, 3))

    def user(self, me: Party) -> Rounds:
        yield self.word(v=np.zeros((me.size, 3), np.uint64), when=False)

    def learner(self, me: Party) -> Rounds:
        words = yield self.word.receive()
        return words.columns()


def people(users: int = 20, clusters: int = 3) -> Population:
    return Population.from_arrays(y=np.arange(users) % 2 == 0, cluster=np.arange(users) % clusters)


@pytest.mark.parametrize("blocks", [1, 3, 20])
def test_issues_of_a_kind_are_read_in_the_order_in_which_they_were_sent(blocks: int) -> None:
    run = p2p_sim.run(Echo(), people(), blocks=blocks, seed=0)
    assert run.output("user")["one"].tolist() == list(range(20))
    assert run.output("user")["two"].tolist() == list(range(100, 120))


@pytest.mark.parametrize("blocks", [1, 3, 20])
def test_answers_take_the_number_of_their_question(blocks: int) -> None:
    run = p2p_sim.run(Several(), people(), blocks=blocks, trace="full", seed=0)
    asks, labels = run.messages("ask"), run.messages("label")
    asked = sorted(zip(*(asks[n].tolist() for n in ("sender", "recipient", "seq")), strict=True))
    answered = sorted(zip(*(labels[n].tolist() for n in ("recipient", "sender", "seq")), strict=True))
    assert asked == answered
    assert {seq for *_, seq in asked} == {0, 1}


def test_blocks_may_answer_different_inboxes() -> None:
    whole = p2p_sim.run(TwoInboxes(), people(), blocks=20, trace="full", seed=0)
    halves = p2p_sim.run(TwoInboxes(), people(), blocks=2, trace="full", seed=0)
    assert whole.digest == halves.digest
    asks, labels = whole.messages("ask"), whole.messages("label")
    for who in range(20):
        wanted = (asks["recipient"] == who) & (asks["round"] == (1 if who < 10 else 2))
        assert sorted(labels["recipient"][labels["who"] == who]) == sorted(asks["sender"][wanted])


@pytest.mark.parametrize("protocol", [Loner(), PeerToPeer(0.1), RandomizedResponse(1.0), Echo(), Gossip()])
@pytest.mark.parametrize("clustered", [True, False])
def test_replay_of_everybody_with_and_without_a_graph(protocol: Any, clustered: bool) -> None:
    whole = people(15) if clustered else Population.from_arrays(y=np.arange(15) % 2 == 0)
    ring = whole.with_graph(np.array([(i, (i + 5) % 15) for i in range(15)]))
    for population in (ring,) if isinstance(protocol, Gossip) else (whole, ring):
        run = p2p_sim.run(protocol, population, seed=5, trace="full")
        for user in range(15):
            life = run.replay(user)
            for end, mine in (("sender", life.sent), ("recipient", life.received)):
                for kind, columns in mine.items():
                    rows = run.messages(kind)[end] == user
                    assert equal(columns, {k: column[rows] for k, column in run.messages(kind).items()})


def test_replay_tells_what_was_drawn() -> None:
    run = p2p_sim.run(PeerToPeer(0.3, 0.5), people(), seed=3, trace="full")
    for user in range(20):
        drawn = {draw.name: (draw.step, draw.value) for draw in run.replay(user).drawn}
        assert drawn["peer"] == (0, run.messages("ask")["recipient"][run.messages("ask")["sender"] == user])
        assert drawn["subsample"] == (2, user in run.messages("report")["sender"])
        answers = run.messages("label")
        for y_hat in answers["y_hat"][answers["sender"] == user]:
            assert drawn["flip"] == (0, bool(y_hat) != bool(run.population.y[user]))  # type: ignore[union-attr]


def test_a_sample_keeps_the_messages_of_its_users() -> None:
    full = p2p_sim.run(PeerToPeer(0.1), people(), trace="full", seed=0)
    sample = p2p_sim.run(PeerToPeer(0.1), people(), trace="sample=4", seed=0)
    watched = [0, 5, 10, 15]
    for kind in ("ask", "label", "report"):
        columns = full.messages(kind)
        keep = np.isin(columns["sender"], watched)
        keep |= np.isin(columns["recipient"], watched) if kind != "report" else False
        assert 0 < keep.sum() < len(keep)
        assert equal(sample.messages(kind), {name: column[keep] for name, column in columns.items()})


def test_a_server_s_word_to_itself_does_not_travel() -> None:
    run = p2p_sim.run(Loner(), people(), trace="full", seed=0)
    assert (
        run.by_kind()["tally"].messages,
        run.by_kind()["tally"].travelled,
        run.by_kind()["tally"].nbytes,
    ) == (1, 0, 0)
    assert run.messages("tally")["nbytes"].tolist() == [0]


def test_outputs_of_several_lengths_are_saved(tmp_path: Path) -> None:
    run = p2p_sim.run(Loner(), people(), seed=0)
    loaded = p2p_sim.load(run.save(tmp_path / "run"))
    assert loaded.output("learner")["total"].tolist() == [20]
    assert loaded.output("learner")["size"].tolist() == run.output("learner")["size"].tolist()


def test_no_rows_of_vectors() -> None:
    run = p2p_sim.run(Wide(), people(), seed=0)
    assert run.output("learner")["v"].shape == (0, 3)


def test_float_outputs_count_in_the_digest_by_their_bits() -> None:
    plain = kernels.load(kernels.NUMPY)
    lanes = [output_lanes("learner", {"a": np.array([x])}, plain) for x in (0.25, 0.5, 0.0, -0.0)]
    assert len(set(lanes)) == 4
    assert Totals().digest == "0" * 32


def test_a_graph_is_saved(tmp_path: Path) -> None:
    ring = people().with_graph(np.array([(i, (i + 1) % 20) for i in range(20)]))
    run = p2p_sim.run(Gossip(), ring, seed=2)
    loaded = p2p_sim.load(run.save(tmp_path / "run"))
    assert loaded.population is not None
    assert p2p_sim.run(Gossip(), loaded.population, seed=2).digest == run.digest


def test_only_the_owner_reads_a_run_and_without_population_no_seed_is_left(tmp_path: Path) -> None:
    run = p2p_sim.run(PeerToPeer(0.1), people(), seed=9182730000001234567)
    run.notes["command"] = ["p2p-sim", "run", "--seed", "9182730000001234567"]
    kept = run.save(tmp_path / "kept")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
    assert stat.S_IMODE((kept / "population.parquet").stat().st_mode) == 0o600
    bare = run.save(tmp_path / "bare", population=False)
    assert not (bare / "population.parquet").exists()
    text = (bare / "run.json").read_text()
    assert "9182730000001234567" not in text
    assert run.population is not None
    assert run.population.hash not in text
    with pytest.raises(InputError, match="saved without its population"):
        p2p_sim.load(bare).replay(3)


def test_a_changed_population_is_noticed(tmp_path: Path) -> None:
    one = p2p_sim.run(PeerToPeer(0.1), people(), seed=1).save(tmp_path / "one")
    two = p2p_sim.run(PeerToPeer(0.1), people(clusters=4), seed=1).save(tmp_path / "two")
    (two / "population.parquet").replace(one / "population.parquet")
    with pytest.raises(InputError, match=r"population\.parquet' is damaged: its SHA-256 is"):
        p2p_sim.load(one)


def test_kernels_are_compiled_from_a_size_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer users are enough once they are compiled."""
    monkeypatch.delenv("P2P_SIM_NUMBA", raising=False)
    monkeypatch.delitem(sys.modules, "p2p_sim.core.kernels_numba", raising=False)
    monkeypatch.delattr("p2p_sim.core.kernels_numba", raising=False)  # or it is found without being imported
    for least in (kernels.WORTH_COMPILING, kernels.WORTH_CALLING):
        chosen = [kernels.choose(users).__name__ for users in (least - 1, least)]
        assert chosen == ["p2p_sim.core.kernels_numpy", "p2p_sim.core.kernels_numba"]


@pytest.mark.parametrize("role", ["fault", "graph", "split", "synthetic"])
def test_the_engine_s_own_roles_cannot_be_taken(role: str) -> None:
    def user(self: Any, me: Party) -> Rounds:
        yield self.word()

    taken = type("Taken", (Protocol,), {"word": Message("user", role, "a word"), "user": user, role: user})
    with pytest.raises(ProtocolError, match=f"role name '{role}' is reserved"):
        p2p_sim.run(dataclass(frozen=True)(taken)(), people(), seed=0)


def test_errors_inside_a_program_say_where() -> None:
    def user(self: Any, me: Party) -> Rounds:
        me.draw.bernoulli("flip", 1.5)
        yield self.word()

    bad = type(
        "Bad", (Protocol,), {"word": Message("user", "learner", "a word"), "user": user, "learner": user}
    )
    with pytest.raises(
        ProtocolError, match=r"role 'user', step 0: p of draw 'flip' = 1.5: a probability lies"
    ):
        p2p_sim.run(dataclass(frozen=True)(bad)(), people(), seed=0)


def test_randomized_response_is_consistent_and_never_overflows() -> None:
    with pytest.raises(InputError, match="contradicts epsilon"):
        RandomizedResponse(5.0, 2, lie=Fraction(1, 2))
    for epsilon in (800.0, 1e7, 1e300):
        with pytest.raises(ProtocolError, match=r"a lie would be less likely than one random word in 2\^64"):
            p2p_sim.run(RandomizedResponse(epsilon), people(), seed=0)
    run = p2p_sim.run(RandomizedResponse(float("inf")), people(), seed=0)
    assert run.output("learner")["y"].tolist() == people().y.tolist()
    assert RandomizedResponse(0.0, labels=4).lying() == Fraction(3, 4)


def test_protocols_and_populations_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"give an object, such as PeerToPeer"):
        p2p_sim.run(PeerToPeer, people(), seed=0)
    with pytest.raises(InputError, match=r"population = \[1\]"):
        p2p_sim.run(PeerToPeer(0.1), [1], seed=0)  # type: ignore[arg-type]
