"""What a program may not do between its sends; errors name role, step, message and fix."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import p2p_sim
from p2p_sim.backends import local
from p2p_sim.core import InputError, ProtocolError
from protocols import PeerToPeer
from tests.core.stage import perform, refused, reports, silent
from tests.tiny import LABELS, people


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
    refused(
        r"message 'report' was sent 1 more time.*yield self.report.receive\(\).*'learner'", reports(), silent
    )

    def twice(self, me):
        yield from reports()(self, me)
        yield from reports()(self, me)

    refused("message 'report' was sent 1 more time", twice)


def test_a_program_that_ends_its_process_is_named():
    """Otherwise its exit status would be taken for ours."""

    def leaves(self, me):
        yield self.report(y=me.y, v=0)
        sys.exit(1)

    refused(r"role 'user', step 1: the program calls sys.exit\(1\)", leaves)


def test_a_receive_after_the_last_send_waits_forever():
    def greedy(self, me):
        yield self.report.receive()
        yield self.report.receive()

    refused("no role can go on: 'learner' waits for 'report' after round 2", reports(), greedy)


@pytest.mark.parametrize(
    ("handed", "text"),
    [
        (lambda s: 1, "role 'user', step 0: yields a int"),
        (lambda s: None, "yields a NoneType"),
        (lambda s: [s.ask(to=0, n=1)], r"yields a list.*a tuple of them"),
        (lambda s: (), "an empty tuple"),
        (lambda s: (s.ask(to=0, n=1), s.ask(to=0, n=1)), "sends 'ask' twice in a step.*times="),
        (lambda s: (s.order.receive(), s.order.receive()), "receives 'order' twice in a step"),
        (lambda s: s.report.receive(), "receives 'report', which goes to 'learner'"),
        (lambda s: s.ask.receive(), "'ask' is sent by this role itself"),
        (lambda s: s.order(to=0, n=1), "message 'order': this kind is sent by 'learner'"),
        (lambda s: PeerToPeer.label(to=0, y_hat=True), "message 'label' is not declared"),
    ],
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
    ("drawn", "text"),
    [
        (lambda me: me.draw.bernoulli(3, 0.5), "draw 3: a draw's first argument is its name"),
        (lambda me: me.draw.bernoulli(None, 0.5), "draw None: a draw's first argument is its name"),
        (
            lambda me: me.draw.member("peer", me.cluster, times=2, distinct="no"),
            "distinct = 'no': must be True",
        ),
        (lambda me: me.draw.member("peer", me.cluster, others=1), "others = 1: must be True or False"),
    ],
)
def test_arguments_of_draws_are_what_they_say(drawn, text):
    def program(self, me):
        drawn(me)
        yield from reports()(self, me)

    refused(text, program)


@pytest.mark.parametrize("flag", ["digest", "costs"])
def test_a_text_is_no_flag(flag):
    with pytest.raises(InputError, match=f"{flag} = 'no': must be True or False"):
        p2p_sim.run(PeerToPeer(0.1), people(), **{flag: "no"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2], "role 'learner', at its end: returns list"),
        ({1: 2}, "role 'learner', at its end: returns dict"),
        ({"name": np.array(["a"])}, "output 'name' is <U1"),
    ],
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

    refused(
        r"role 'user': blocks return different columns, \['from 0'\] and \['from 4'\]", by_block, blocks=3
    )


def test_a_users_output_has_one_entry_a_party_or_a_message():
    def one_number_a_block(self, me):
        yield from reports()(self, me)
        return {"size": me.size}

    refused("role 'user'.*'size'", one_number_a_block, blocks=3)


@pytest.mark.parametrize("blocks", [-1, 0, 2.0, True])
def test_the_number_of_blocks_is_at_least_1(blocks):
    with pytest.raises(InputError, match=f"blocks = {blocks}.*at least 1"):
        p2p_sim.run(PeerToPeer(0.1), people(), blocks=blocks, seed=0)


def test_more_blocks_than_users_are_as_many_as_users():
    assert perform(reports(), blocks=100).totals.digest == perform(reports(), blocks=12).totals.digest


def test_an_error_inside_a_program_is_placed_and_keeps_the_programs_own_as_its_cause():
    def program(self, me):
        yield from reports()(self, me)
        raise KeyError("mine")

    text = (
        r"^role 'user', step 1: KeyError: 'mine' \(test_engine_errors.py, line \d+\); mend the program there$"
    )
    with pytest.raises(ProtocolError, match=text) as caught:
        perform(program)
    assert isinstance(caught.value.__cause__, KeyError)


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    local.run(PeerToPeer(0.1, 0.5), people(), 1)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
