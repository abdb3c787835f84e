"""What a program can say: tuples, servers that send to users, replies, retries, masks.  Checked by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim.core import Message, Protocol
from tests.exact import oracle
from tests.tiny import LABELS, SEED, column, everywhere, group_of, messages, peer, people

USERS = range(len(LABELS))
CHANCE = oracle.Chance(SEED)


@dataclass(frozen=True)
class Tuples(Protocol):
    """Two sends in one yield, two receives in one yield: answers come in the order of the items."""

    ask = Message("user", "user", "asks")
    note = Message("user", "learner", "notes", y=bool)
    total = Message("user", "learner", "tells", n=int)

    def user(self, me):
        nothing, asks = yield self.note(y=me.y), self.ask(to=me.draw.member("peer", me.cluster))
        assert nothing is None
        yield (self.total(n=asks.count),)

    def learner(self, me):
        totals, notes = yield self.total.receive(), self.note.receive()
        return {"n": totals.n, "y": notes.y}


def test_tuple_yields():
    finished = everywhere(Tuples(), people())
    asked = [peer(CHANCE, "peer", 0, u) for u in USERS]
    assert column(finished, "learner", "n") == [asked.count(u) for u in USERS]
    assert column(finished, "learner", "y") == LABELS
    assert messages(finished, "ask") == sorted((1, u, v, 0) for u, v in enumerate(asked))
    assert {row[0] for row in messages(finished, "total")} == {2}


@dataclass(frozen=True)
class Survey(Protocol):
    """A server sends to some users, one of them twice; those who were asked answer every question."""

    question = Message("server", "user", "asks", number=int)
    answer = Message("user", "server", "answers", value=int)

    def server(self, me):
        whom = me.each(np.array([7, 2, 7, 11]))
        yield self.question(to=whom, number=me.each([10, 20, 30, 40]))
        answers = yield self.answer.receive()
        return answers.columns() | {"rank": answers.rank}

    def user(self, me):
        questions = yield self.question.receive()
        yield self.answer.reply(questions, value=questions.number + me.id)


def test_a_server_sends_to_users_and_they_answer():
    finished = everywhere(Survey(), people())
    assert messages(finished, "question") == [
        (1, 0, 2, 1, 20),
        (1, 0, 7, 0, 10),
        (1, 0, 7, 2, 30),
        (1, 0, 11, 3, 40),
    ]
    assert messages(finished, "answer") == [
        (2, 2, 0, 1, 22),
        (2, 7, 0, 0, 17),
        (2, 7, 0, 2, 37),
        (2, 11, 0, 3, 51),
    ]
    assert column(finished, "server", "sender") == [2, 7, 7, 11]
    assert column(finished, "server", "value") == [22, 17, 37, 51]
    assert column(finished, "server", "rank") == [0, 1, 2, 3]


@dataclass(frozen=True)
class Gossip(Protocol):
    """A user looks at what she was sent and answers everybody with the sum."""

    share = Message("user", "user", "shares a number", v=np.int16)
    total = Message("user", "user", "answers with the sum", total=int)

    def user(self, me):
        value = me.draw.below("value", 100) - 50
        shares = yield self.share(to=me.draw.member("peer", me.cluster), v=value)
        totals = yield self.total.reply(shares, total=shares.v.sum())
        return {"total": totals.total.first(0), "from": totals.sender}


def test_replies_after_a_look_at_the_inbox():
    finished = everywhere(Gossip(), people())
    value = [oracle.below(CHANCE.word("value", 0, u), 100) - 50 for u in USERS]
    asked = [peer(CHANCE, "peer", 0, u) for u in USERS]
    total = [sum(value[v] for v in USERS if asked[v] == u) for u in USERS]
    assert column(finished, "user", "total") == [total[asked[u]] for u in USERS]
    assert column(finished, "user", "from") == asked
    assert messages(finished, "total") == sorted((2, asked[u], u, 0, total[asked[u]]) for u in USERS)


@dataclass(frozen=True)
class Retries(Protocol):
    """Users ask until somebody answers, at most ``retries`` times; an answer is lost with probability 1/2."""

    retries: int = 4

    ask = Message("user", "user", "asks")
    label = Message("user", "user", "answers", y=bool)
    report = Message("user", "learner", "reports", y=bool, tries=int)

    def user(self, me):
        got, tries, y = np.zeros(me.size, bool), np.zeros(me.size, int), np.zeros(me.size, bool)
        for _ in range(self.retries):
            asks = yield self.ask(to=me.draw.member("peer", me.cluster), when=~got)
            labels = yield self.label.reply(asks, y=me.y, when=me.draw.bernoulli("heard", 0.5, each=asks))
            tries = tries + ~got
            y = np.where(got, y, labels.y.first(False))
            got = got | (labels.count > 0)
        yield self.report(y=y, tries=tries, when=got)

    def learner(self, me):
        reports = yield self.report.receive()
        return reports.columns()


def retries_by_hand(retries):
    done = {}
    for attempt in range(retries):
        step = 2 * attempt
        asked = {u: peer(CHANCE, "peer", step, u) for u in USERS if u not in done}
        for u, v in asked.items():
            slot = sorted(w for w in asked if asked[w] == v).index(u)
            if oracle.bernoulli(CHANCE.item("heard", step + 1, v, slot), 0.5):
                done[u] = (LABELS[v], attempt + 1)
    return done


@pytest.mark.parametrize("retries", [1, 4])
def test_loops_with_retries(retries):
    finished = everywhere(Retries(retries), people())
    done = retries_by_hand(retries)
    assert 0 < len(done) < len(LABELS) or retries > 1
    assert column(finished, "learner", "sender") == sorted(done)
    assert column(finished, "learner", "y") == [done[u][0] for u in sorted(done)]
    assert column(finished, "learner", "tries") == [done[u][1] for u in sorted(done)]
    assert {row[0] for row in messages(finished, "report")} == {2 * retries + 1}


@dataclass(frozen=True)
class Masks(Protocol):
    """``when`` as a party column, as a message column, and as False for everyone."""

    ask = Message("user", "user", "asks", n=int)
    label = Message("user", "user", "answers", n=int)
    report = Message("user", "learner", "reports", n=int)
    never = Message("user", "learner", "is never sent", n=int)

    def user(self, me):
        asks = yield self.ask(to=me.draw.member("peer", me.cluster), n=me.id, when=me.id % 3 != 0)
        labels = yield self.label.reply(asks, n=asks.n * 10, when=asks.sender % 2 == 0)
        yield self.report(n=labels.n + me.id, when=me.y), self.never(n=1, when=False)

    def learner(self, me):
        reports, never = yield self.report.receive(), self.never.receive()
        return {"n": reports.n, "sender": reports.sender, "never": never.n}


def test_when_masks_on_ask_reply_and_report():
    finished = everywhere(Masks(), people())
    asks = [(u, peer(CHANCE, "peer", 0, u)) for u in USERS if u % 3]
    assert [row[1:] for row in messages(finished, "ask")] == [(u, v, 0, u) for u, v in asks]
    answered = [(u, v) for u, v in asks if u % 2 == 0]
    assert messages(finished, "label") == sorted((2, v, u, 0, u * 10) for u, v in answered)
    told = [u for u, _ in answered if LABELS[u]]
    assert told, "the case must not be empty"
    assert column(finished, "learner", "sender") == told
    assert column(finished, "learner", "n") == [11 * u for u in told]
    assert column(finished, "learner", "never") == []


@dataclass(frozen=True)
class Several(Protocol):
    """``times=3``: three questions a user, three answers in the order of the questions' senders."""

    ask = Message("user", "user", "asks", n=int)
    answer = Message("user", "user", "answers", n=int)

    def user(self, me):
        peers = me.draw.member("peer", me.cluster, times=3)
        asks = yield self.ask(to=peers, n=peers.rank, when=me.draw.bernoulli("sent", 0.7, times=3))
        answers = yield self.answer.reply(asks, n=asks.n * 100 + me.id)
        return {"n": answers.n, "from": answers.sender, "count": answers.count, "sum": answers.n.sum()}


def test_several_sends_with_times():
    finished = everywhere(Several(), people())
    asks = []
    for u in USERS:
        group = group_of(u)
        for r in range(3):
            if oracle.bernoulli(CHANCE.item("sent", 0, u, r), 0.7):
                asks.append((u, group[oracle.below(CHANCE.item("peer", 0, u, r), len(group))], r))
    assert messages(finished, "ask") == sorted((1, u, v, r, r) for u, v, r in asks)
    held = [sorted((v, r) for w, v, r in asks if w == u) for u in USERS]
    assert column(finished, "user", "from") == [v for each in held for v, _ in each]
    assert column(finished, "user", "n") == [100 * r + v for each in held for v, r in each]
    assert column(finished, "user", "count") == [len(each) for each in held]
    assert column(finished, "user", "sum") == [sum(100 * r + v for v, r in each) for each in held]


@dataclass(frozen=True)
class Herald(Protocol):
    """A server that never receives, users that never send, and a role that ends at once after one send."""

    news = Message("server", "user", "announces", v=np.uint8)

    def server(self, me):
        everybody = me.each(np.arange(12))
        yield self.news(to=everybody, v=me.draw.below("v", 256, each=everybody))
        return {"sent": 12}

    def user(self, me):
        news = yield self.news.receive()
        return {"v": news.v.first(0)}


def test_a_role_may_finish_without_receiving():
    finished = everywhere(Herald(), people())
    server = oracle.Chance(SEED, "server")
    assert column(finished, "user", "v") == [oracle.below(server.item("v", 0, 0, r), 256) for r in range(12)]
    assert column(finished, "server", "sent") == [12]


@dataclass(frozen=True)
class Clocks(Protocol):
    """The learner hears of the users in round 3 and speaks to them in the round after, her first send."""

    ask = Message("user", "user", "asks")
    answer = Message("user", "user", "answers")
    report = Message("user", "learner", "reports")
    order = Message("learner", "user", "orders")
    done = Message("user", "learner", "obeys")

    def user(self, me):
        asks = yield self.ask(to=me.id)
        yield self.answer.reply(asks)
        yield self.report()
        orders = yield self.order.receive()
        yield self.done.reply(orders)

    def learner(self, me):
        reports = yield self.report.receive()
        yield self.order.reply(reports.where(reports.sender < 3))
        done = yield self.done.receive()
        return done.columns()


def test_a_round_is_one_more_than_every_round_heard_of():
    finished = everywhere(Clocks(), people())
    rounds = {kind: {row[0] for row in messages(finished, kind)} for kind in Clocks.messages()}
    assert rounds == {"ask": {1}, "answer": {2}, "report": {3}, "order": {4}, "done": {5}}
    assert messages(finished, "order") == [(4, 0, u, 0) for u in range(3)]
    assert column(finished, "learner", "sender") == [0, 1, 2]
