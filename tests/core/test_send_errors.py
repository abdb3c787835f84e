"""What may be sent and to whom; errors name role, step, message and field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Protocol, ProtocolError
from tests.core.stage import Stage, asks, perform, refused, reports
from tests.tiny import LABELS, people


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            asks(n=lambda me: me.id / 2),
            "message 'ask', field 'n' has type float64; declared is int8.*fixed point",
        ),
        (asks(n=lambda me: me.id * 100), "field 'n' holds 0 to 1100, more than int8 can"),
        (asks(n=lambda me: -129), "field 'n' holds -129 to -129"),
        (asks(n=lambda me: np.arange(5)), r"n has 5 entries for 12 parties; use times="),
        (
            asks(n=lambda me: np.zeros((12, 2), np.int8)),
            r"field 'n' has shape \(2,\) a message; declared is \(\)",
        ),
        (reports(y=lambda me: me.id), "field 'y' has type int64; declared is bool"),
        (reports(v=lambda me: me.id), r"field 'v' has shape \(\) a message; declared is \(2,\)"),
        (
            reports(v=lambda me: np.zeros((12, 3), np.uint8)),
            r"field 'v' has shape \(3,\) a message; declared is \(2,\)",
        ),
        (reports(when=lambda me: me.id), "when= has type int64; give a bool column"),
        (asks(when=lambda me: 0), "when= has type int64"),
        (
            reports(when=lambda me: 0.3),
            "when= has type float64; give a bool column",
        ),  # true, as any number but 0
        (asks(when=lambda me: "no"), "when= has type <U2"),
        (asks(to=lambda me: me.id + 1), r"message 'ask': to= names users 1 to 12; they are 0 to 11"),
        (asks(to=lambda me: -1), "to= names users -1 to -1"),
        (asks(to=lambda me: me.id * 1.0), "to= has type float64; give users' ids"),
        (asks(to=lambda me: me.y), "to= has type bool"),
    ],
)
def test_what_may_be_sent(program, text):
    refused(rf"role 'user', step 0.*{text}" if "length" not in text else text, program)


def test_one_number_a_party_is_not_a_vector_even_if_there_are_as_many_parties():
    with pytest.raises(ProtocolError, match=r"field 'v' has shape \(\) a message; declared is \(2,\)"):
        local.run(Stage(reports(v=lambda me: me.id.astype(np.uint8))), people().part(np.array([0, 2])), 1)


def test_users_who_are_not_there_matter_only_if_they_are_written_to():
    finished = perform(
        lambda self, me: after(asks(to=lambda me: me.id + 1, when=lambda me: me.id < 11)(self, me), self, me)
    )
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

    with pytest.raises(
        ProtocolError, match=r"role 'shuffler', step 1, message 'opened', field 'y' is sealed for 'learner'"
    ):
        local.run(Leaky(), people(), 1)


def test_the_addresses_of_a_send_cannot_be_changed_afterwards():
    def program(self, me):
        to = np.zeros(me.size, np.int32)
        yield self.ask(to=to, n=1)
        to[0] = 5

    with pytest.raises(ProtocolError, match="step 1: ValueError: assignment destination is read-only"):
        perform(program)


@pytest.mark.parametrize("cut", [lambda a: a, lambda a: a[:], lambda a: a.view(), lambda a: a.reshape(-1)])
def test_changing_what_a_sent_array_is_a_view_of_does_not_change_the_message(cut):
    def program(self, me):
        buffer = np.array(me.y)
        yield self.report(y=cut(buffer), v=0)
        try:
            buffer[:] = False
        except ValueError:
            return

    assert perform(program).outputs["learner"]["y"].tolist() == LABELS
