"""What a program may not do, each with a tiny protocol that does it; errors name role, step, message and fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Protocol, ProtocolError, Vector
from p2p_sim.core.ledger import TraceLevel
from protocols import PeerToPeer
from tests.unit.tiny import LABELS, people


@dataclass(frozen=True)
class Stage(Protocol):
    """Three kinds of messages; what users and learner do comes from outside."""

    as_user: Any = field(compare=False)
    as_learner: Any = field(default=lambda self, me: receive(self), compare=False)
    dim: int = 2

    ask = Message("user", "user", "asks", n=np.int8)
    answer = Message("user", "user", "answers", n=np.int8)
    report = Message("user", "learner", "reports", y=bool, v=Vector(np.uint8, "dim"))
    order = Message("learner", "user", "orders", n=int)

    def user(self, me):
        return (yield from self.as_user(self, me))

    def learner(self, me):
        return (yield from self.as_learner(self, me))


def receive(self):
    got = yield self.report.receive()
    return got.columns()


def silent(self, me):
    return
    yield


def perform(as_user, as_learner=None, **how):
    stage = Stage(as_user) if as_learner is None else Stage(as_user, as_learner)
    return local.run(stage, people(), 1, trace=TraceLevel("full"), **how)


def refused(text, as_user, as_learner=None, **how):
    with pytest.raises(ProtocolError, match=text):
        perform(as_user, as_learner, **how)


def asks(**how):
    """A user program of one ask, with arguments computed from ``me``."""

    def program(self, me):
        given = {name: value(me) for name, value in how.items()}
        yield self.ask(**({"to": me.id, "n": 1} | given))

    return program


def reports(**how):
    def program(self, me):
        given = {name: value(me) for name, value in how.items()}
        yield self.report(**({"y": me.y, "v": 0} | given))

    return program


def test_the_stage_itself_is_sound():
    finished = perform(reports())
    assert finished.outputs["learner"]["y"].tolist() == LABELS


def test_blocks_of_a_role_must_yield_the_same_kinds():
    def by_data(self, me):
        if me.id[0] == 0:
            yield self.ask(to=me.id, n=1)
        yield self.report(y=me.y, v=0)

    refused(r"role 'user': one block comes to send ask, another to send report.*when=", by_data, blocks=3)

    def stops(self, me):
        yield self.report(y=me.y, v=0)
        if me.id[0]:
            yield self.ask(to=me.id, n=1)

    refused(r"role 'user': one block comes to the end, another to send ask", stops, blocks=3)


def test_roles_that_wait_for_each_other_are_named():
    def waits(self, me):
        yield self.order.receive()

    refused(r"no role can go on: 'user' waits for 'order' after round .*'learner' waits for 'report'", waits)


def test_a_message_that_nobody_receives_is_named():
    refused(r"message 'report' was sent 1 more time.*yield self.report.receive\(\).*'learner'", reports(), silent)

    def twice(self, me):
        yield from reports()(self, me)
        yield from reports()(self, me)

    refused("message 'report' was sent 1 more time", twice)


def test_a_receive_after_the_last_send_waits_forever():
    def greedy(self, me):
        yield self.report.receive()
        yield self.report.receive()

    refused("no role can go on: 'learner' waits for 'report' after round 2", reports(), greedy)


@pytest.mark.parametrize(
    ("handed", "text"),
    (
        (lambda s: 1, "role 'user', step 0: yields 1"),
        (lambda s: None, "yields None"),
        (lambda s: [s.ask(to=0, n=1)], r"yields \[.*a tuple of them"),
        (lambda s: (), "an empty tuple"),
        (lambda s: (s.ask(to=0, n=1), s.ask(to=0, n=1)), "sends 'ask' twice in a step.*times="),
        (lambda s: (s.order.receive(), s.order.receive()), "receives 'order' twice in a step"),
        (lambda s: s.report.receive(), "receives 'report', which goes to 'learner'"),
        (lambda s: s.ask.receive(), "'ask' is sent by this role itself"),
        (lambda s: s.order(to=0, n=1), "message 'order': this kind is sent by 'learner'"),
        (lambda s: PeerToPeer.label(to=0, y_hat=True), "message 'label' is not declared"),
    ),
)
def test_what_may_be_yielded(handed, text):
    def program(self, me):
        yield handed(self)

    refused(text, program)


def test_one_name_drawn_twice_in_a_step():
    def program(self, me):
        me.draw.bernoulli("coin", 0.5)
        yield from reports()(self, me)
        me.draw.bernoulli("coin", 0.5)
        me.draw.below("coin", 2)

    refused("role 'user', step 1, draw 'coin' is drawn twice in a step", program)


@pytest.mark.parametrize(
    ("program", "text"),
    (
        (asks(n=lambda me: me.id / 2), "message 'ask', field 'n' has type float64; declared is int8.*fixed point"),
        (asks(n=lambda me: me.id * 100), "field 'n' holds 0 to 1100, more than int8 can"),
        (asks(n=lambda me: -129), "field 'n' holds -129 to -129"),
        (asks(n=lambda me: np.arange(5)), r"length 5 is neither one a party \(12\)"),
        (asks(n=lambda me: np.zeros((12, 2), np.int8)), r"field 'n' has shape \(2,\) a message; declared is \(\)"),
        (reports(y=lambda me: me.id), "field 'y' has type int64; declared is bool"),
        (reports(v=lambda me: me.id), r"field 'v' has shape \(\) a message; declared is \(2,\)"),
        (reports(v=lambda me: np.zeros((12, 3), np.uint8)), r"field 'v' has shape \(3,\) a message; declared is \(2,\)"),
        (reports(when=lambda me: me.id), "when= has type int64; give a bool column"),
        (asks(when=lambda me: 0), "when= has type int64"),
        (asks(to=lambda me: me.id + 1), r"message 'ask': to= names users 1 to 12; they are 0 to 11"),
        (asks(to=lambda me: -1), "to= names users -1 to -1"),
        (asks(to=lambda me: me.id * 1.0), "to= has type float64; give users' ids"),
        (asks(to=lambda me: me.y), "to= has type bool"),
    ),
)
def test_what_may_be_sent(program, text):
    refused(rf"role 'user', step 0.*{text}" if "length" not in text else text, program)


def test_one_number_a_party_is_not_a_vector_even_if_there_are_as_many_parties():
    with pytest.raises(ProtocolError, match=r"field 'v' has shape \(\) a message; declared is \(2,\)"):
        local.run(Stage(reports(v=lambda me: me.id.astype(np.uint8))), people().part(np.array([0, 2])), 1)


def test_users_who_are_not_there_matter_only_if_they_are_written_to():
    finished = perform(lambda self, me: after(asks(to=lambda me: me.id + 1, when=lambda me: me.id < 11)(self, me), self, me))
    assert finished.totals.counts["ask", 1].messages == 11


def after(first, self, me):
    yield from first
    yield from reports()(self, me)


def test_a_user_outside_a_part_is_named():
    def program(self, me):
        yield self.ask(to=5, n=1)

    part = people().part(np.array([0, 2, 7]))
    with pytest.raises(ProtocolError, match=r"message 'ask': user 5 is outside"):
        local.run(Stage(program), part, 1)


def test_a_reply_goes_back_where_the_question_came_from():
    def program(self, me):
        orders = yield self.order.receive()
        yield self.answer.reply(orders, n=1)

    def orders(self, me):
        yield self.order(to=3, n=1)

    refused("message 'answer'.*'order' came from 'learner', but this reply goes to 'user'", program, orders)


def test_a_sealed_column_may_not_be_sent_in_the_open():
    @dataclass(frozen=True)
    class Leaky(Protocol):
        sealed = Message("user", "shuffler", "seals", sealed_for="learner", y=bool)
        opened = Message("shuffler", "learner", "opens", y=bool)

        def user(self, me):
            yield self.sealed(y=me.y)

        def shuffler(self, me):
            got = yield self.sealed.receive()
            yield self.opened(y=got.y)

        def learner(self, me):
            yield self.opened.receive()

    with pytest.raises(ProtocolError, match=r"role 'shuffler', step 1, message 'opened', field 'y' is sealed for 'learner'"):
        local.run(Leaky(), people(), 1)


@pytest.mark.parametrize("name", ("n", "to"))
def test_an_array_that_was_sent_cannot_be_changed(name):
    def program(self, me):
        kept = {"n": np.ones(me.size, np.int8), "to": np.zeros(me.size, np.int32)}
        yield self.ask(**kept)
        kept[name][0] = 5

    with pytest.raises(ValueError, match="read-only"):
        perform(program)


@pytest.mark.parametrize("cut", (lambda a: a[:], lambda a: a.view(), lambda a: a.reshape(-1)))
def test_changing_what_a_sent_array_is_a_view_of_does_not_change_the_message(cut):
    def program(self, me):
        buffer = np.array(me.y)
        yield self.report(y=cut(buffer), v=0)
        try:
            buffer[:] = False
        except ValueError:
            return

    assert perform(program).outputs["learner"]["y"].tolist() == LABELS


@pytest.mark.parametrize(
    ("value", "text"),
    (
        ([1, 2], "role 'learner' returns list"),
        ({1: 2}, "role 'learner' returns dict"),
        ({"name": np.array(["a"])}, "output 'name' of role 'learner' has type"),
    ),
)
def test_a_role_returns_a_dict_of_columns(value, text):
    def returns(self, me):
        yield self.report.receive()
        return value

    refused(text, reports(), returns)


def test_blocks_return_the_same_columns():
    def by_block(self, me):
        yield from reports()(self, me)
        return {f"from {me.id[0]}": me.y}

    refused(r"role 'user': blocks return different columns, \['from 0'\] and \['from 4'\]", by_block, blocks=3)


def test_a_users_output_has_one_entry_a_party_or_a_message():
    def one_number_a_block(self, me):
        yield from reports()(self, me)
        return {"size": me.size}

    refused("role 'user'.*'size'", one_number_a_block, blocks=3)


@pytest.mark.parametrize("blocks", (-1, 0))
def test_the_number_of_blocks_is_at_least_1(blocks):
    with pytest.raises(ValueError, match=f"blocks = {blocks}"):
        perform(reports(), blocks=blocks)


def test_an_error_inside_a_program_is_the_programs_own():
    def program(self, me):
        yield from reports()(self, me)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        perform(program)


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    local.run(PeerToPeer(0.1, 0.5), people(), 1)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
