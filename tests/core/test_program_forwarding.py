"""Tokens that walk, sealed messages through a shuffler, vectors and bytes, late and double answers, joins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2p_sim.core import Bytes, Message, Protocol, Vector
from tests.exact import oracle
from tests.tiny import LABELS, SEED, column, everywhere, group_of, messages, peer, people

USERS = range(len(LABELS))
CHANCE = oracle.Chance(SEED)


@dataclass(frozen=True)
class Walk(Protocol):
    """Every user starts two tokens; each takes three random steps within its cluster and is then handed in."""

    token = Message("user", "user", "hands on a token", origin=np.int32, number=np.uint8)
    hand_in = Message("user", "learner", "hands in a token", origin=np.int32, number=np.uint8)

    def user(self, me):
        start = me.draw.member("start", me.cluster, times=2)
        held = yield self.token(to=start, origin=me.id, number=start.rank)
        for _ in range(2):
            hop = me.draw.member("hop", me.cluster, each=held)
            held = yield self.token(to=hop, origin=held.origin, number=held.number)
        yield self.hand_in(origin=held.origin, number=held.number)

    def learner(self, me):
        tokens = yield self.hand_in.receive()
        return tokens.columns()


def walk_by_hand():
    """Where the tokens are after each step: lists of (holder, origin, number) as they arrive, in order."""
    steps = []
    sent = []  # (sender, seq, to, origin, number)
    for u in USERS:
        group = group_of(u)
        for r in range(2):
            sent.append((u, r, group[oracle.below(CHANCE.item("start", 0, u, r), len(group))], u, r))
    for step in (1, 2, 3):
        held = {u: [token[3:] for token in sorted(sent) if token[2] == u] for u in USERS}
        steps.append(sent)
        sent = []
        for u in USERS:
            group = group_of(u)
            for r, (origin, number) in enumerate(held[u]):
                to = group[oracle.below(CHANCE.item("hop", step, u, r), len(group))] if step < 3 else 0
                sent.append((u, r, to, origin, number))
    return steps, sent


def test_tokens_walk_three_steps():
    finished = everywhere(Walk(), people())
    steps, handed_in = walk_by_hand()
    expected = [(i + 1, u, to, r, *token) for i, sent in enumerate(steps) for u, r, to, *token in sent]
    assert messages(finished, "token") == sorted(expected)
    assert messages(finished, "hand_in") == [(4, u, 0, r, *token) for u, r, _, *token in sorted(handed_in)]
    assert column(finished, "learner", "origin") == [origin for *_, origin, _ in sorted(handed_in)]


@dataclass(frozen=True)
class Shares(Protocol):
    """Vectors of a length that is a parameter, summed modulo 2^64, and opaque bytes."""

    dim: int = 3

    share = Message("user", "user", "hands over a share", part=Vector(np.uint64, "dim"), tag=Bytes(4))
    total = Message(
        "user", "learner", "hands in a sum", total=Vector(np.uint64, "dim"), pair=Vector(np.int8, 2)
    )

    def user(self, me):
        words = np.stack(
            [me.draw.below(f"w{i}", 2**62).astype(np.uint64) * np.uint64(5) for i in range(self.dim)], 1
        )
        tag = (me.id[:, None] + np.arange(4)).astype(np.uint8)
        shares = yield self.share(to=me.draw.member("peer", me.cluster), part=words, tag=tag)
        pair = np.stack([-me.id, me.id], 1)
        yield self.total(total=shares.part.sum(), pair=pair, when=shares.count > 0)
        return {"tag": shares.tag.first(np.array([9, 9, 9, 9], np.uint8))}

    def learner(self, me):
        totals = yield self.total.receive()
        return totals.columns()


def test_vector_and_bytes_fields():
    finished = everywhere(Shares(), people())
    parts = {u: [oracle.below(CHANCE.word(f"w{i}", 0, u), 2**62) * 5 for i in range(3)] for u in USERS}
    asked = [peer(CHANCE, "peer", 0, u) for u in USERS]
    holders = sorted(set(asked))
    assert any(word >= 2**63 for part in parts.values() for word in part)
    total = {v: [sum(parts[u][i] for u in USERS if asked[u] == v) % 2**64 for i in range(3)] for v in holders}
    assert column(finished, "learner", "total") == [total[v] for v in holders]
    assert column(finished, "learner", "pair") == [[-v, v] for v in holders]
    first = [min((u for u in USERS if asked[u] == v), default=None) for v in USERS]
    expected = [[9] * 4 if u is None else [u, u + 1, u + 2, u + 3] for u in first]
    assert column(finished, "user", "tag") == expected
    assert finished.totals.counts["total", 2].nbytes == len(holders) * (16 + 3 * 8 + 2)
    away = sum(u != v for u, v in enumerate(asked))
    assert finished.totals.counts["share", 1].nbytes == away * (16 + 3 * 8 + 4)


@dataclass(frozen=True)
class Shuffle(Protocol):
    """The shuffler forwards what it cannot read, in random order, and drops every message of an even sender."""

    sealed = Message("user", "shuffler", "seals a label", sealed_for="learner", y=bool, who=int)
    mixed = Message("shuffler", "learner", "forwards it", sealed_for="learner", y=bool, who=int)

    def user(self, me):
        yield self.sealed(y=me.y, who=me.id)

    def shuffler(self, me):
        got = yield self.sealed.receive()
        odd = got.where(got.sender % 2 == 1)
        order = me.draw.permutation("order", each=odd)
        yield self.mixed(y=odd.y.take(order), who=odd.who.take(order))

    def learner(self, me):
        mixed = yield self.mixed.receive()
        return {"y": mixed.y, "who": mixed.who, "sender": mixed.sender}


def test_a_shuffler_forwards_sealed_messages():
    finished = everywhere(Shuffle(), people())
    odd = [u for u in USERS if u % 2]
    shuffler = oracle.Chance(SEED, "shuffler")
    order = oracle.permutation([shuffler.item("order", 1, 0, r) for r in range(len(odd))])
    assert order != sorted(order)
    assert column(finished, "learner", "who") == [odd[i] for i in order]
    assert column(finished, "learner", "y") == [LABELS[odd[i]] for i in order]
    assert column(finished, "learner", "sender") == [0] * len(odd)
    assert finished.totals.counts["sealed", 1].nbytes == 12 * (16 + 9 + 48)


@dataclass(frozen=True)
class TwoAnswers(Protocol):
    """Two kinds of answers to the same questions, in one yield, without a look at the questions."""

    ask = Message("user", "user", "asks")
    label = Message("user", "user", "answers with the label", y=bool)
    name = Message("user", "user", "answers with the id", n=int)

    def user(self, me):
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        labels, names = yield self.label.reply(asks, y=me.y), self.name.reply(asks, n=me.id)
        return {"y": labels.y.first(False), "n": names.n.first(-1)}


@dataclass(frozen=True)
class AnswerTwice(Protocol):
    """The same questions answered in two steps with the same kind."""

    ask = Message("user", "user", "asks")
    label = Message("user", "user", "answers", n=int)

    def user(self, me):
        asks = yield self.ask(to=me.draw.member("peer", me.cluster))
        first = yield self.label.reply(asks, n=me.id)
        second = yield self.label.reply(asks, n=me.id * 2)
        return {"n": first.n.first(-1), "twice": second.n.first(-1)}


def test_two_kinds_of_answers_to_one_question():
    finished = everywhere(TwoAnswers(), people())
    asked = [peer(CHANCE, "peer", 0, u) for u in USERS]
    assert column(finished, "user", "n") == asked
    assert column(finished, "user", "y") == [LABELS[v] for v in asked]


def test_one_question_answered_in_two_steps():
    finished = everywhere(AnswerTwice(), people())
    asked = [peer(CHANCE, "peer", 0, u) for u in USERS]
    assert column(finished, "user", "n") == asked
    assert column(finished, "user", "twice") == [2 * v for v in asked]


@dataclass(frozen=True)
class LateAnswer(Protocol):
    """Questions are answered after another round of questions, some of them before a look and some after."""

    ask = Message("user", "user", "asks")
    label = Message("user", "user", "answers", n=int)

    def user(self, me):
        early = yield self.ask(to=me.draw.member("one", me.cluster))
        late = yield self.ask(to=me.draw.member("two", me.cluster))
        two = yield self.label.reply(late, n=me.id)
        one = yield self.label.reply(early, n=early.count)
        return {"two": two.n.first(-1), "one": one.n.first(-1)}


def test_questions_answered_in_another_order():
    finished = everywhere(LateAnswer(), people())
    one, two = ([peer(CHANCE, name, step, u) for u in USERS] for step, name in enumerate(("one", "two")))
    assert column(finished, "user", "two") == two
    assert column(finished, "user", "one") == [one.count(v) for v in one]


@dataclass(frozen=True)
class Join(Protocol):
    """Two inboxes joined by sender: who shared a number with me, and what she noted besides."""

    share = Message("user", "user", "shares", v=int)
    note = Message("user", "user", "notes", w=int)

    def user(self, me):
        shares = yield self.share(to=me.draw.member("a", me.cluster, times=2), v=me.id)
        notes = yield self.note(to=me.draw.member("b", me.cluster, times=2), w=me.id * 10)
        matched = notes.find(sender=shares.sender)
        own = notes.find(sender=me.id)
        return {"w": matched.w, "count": matched.count, "own": own.count, "ten": own.w.first(-1)}


def test_find_joins_inboxes_by_sender():
    finished = everywhere(Join(), people())

    def draws(name, step):
        groups = {u: group_of(u) for u in USERS}
        return [
            (u, groups[u][oracle.below(CHANCE.item(name, step, u, r), len(groups[u]))])
            for u in USERS
            for r in (0, 1)
        ]

    shares, notes = draws("a", 0), draws("b", 1)
    matched = [[u for u, v in shares if v == holder and (u, holder) in notes] for holder in USERS]
    assert column(finished, "user", "count") == [len(each) for each in matched]
    assert column(finished, "user", "w") == [10 * u for each in matched for u in each]
    assert column(finished, "user", "own") == [int((u, u) in notes) for u in USERS]
    assert column(finished, "user", "ten") == [10 * u if (u, u) in notes else -1 for u in USERS]


@dataclass(frozen=True)
class Ring(Protocol):
    """Neighbours in a graph: everybody asks one of hers."""

    ask = Message("user", "user", "asks a neighbour")

    def user(self, me):
        asks = yield self.ask(to=me.draw.member("who", me.neighbours))
        return {"from": asks.sender, "degree": me.neighbours.size}


def test_neighbours_in_a_graph():
    edges = [(u, (u + 1) % 12) for u in USERS] + [(0, 6)]
    finished = everywhere(Ring(), people().with_graph(np.array(edges)))
    near = [sorted({b for a, b in edges if a == u} | {a for a, b in edges if b == u}) for u in USERS]
    asked = [near[u][oracle.below(CHANCE.word("who", 0, u), len(near[u]))] for u in USERS]
    assert messages(finished, "ask") == [(1, u, asked[u], 0) for u in USERS]
    assert column(finished, "user", "degree") == [len(each) for each in near]
