"""Message columns and party columns: arithmetic, spreading, and the ways back to parties."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim.core import Message, ProtocolError
from p2p_sim.core.columns import Inbox, Layout, PerMessage, Rows

HELD = Layout(np.array([0, 2, 2, 5]))  # three parties hold 2, 0 and 3 messages
ONE_EACH = Layout.one_each(3)


def per_message(values, layout=HELD, sealed_for=None):
    return PerMessage(np.asarray(values), layout, sealed_for)


def values(column):
    assert isinstance(column, PerMessage)
    return column.data.tolist()


def inbox(layout=HELD, sender=(1, 2, 0, 0, 2), reader="user", sealed_for=None, **fields):
    message = Message("user", "user", "says", sealed_for=sealed_for, **dict.fromkeys(fields, np.int64))
    message.kind = "note"
    rows = Rows(
        layout, np.asarray(sender), None, {name: np.asarray(column) for name, column in fields.items()}
    )
    return Inbox(message, lambda: rows, reader)


def test_layout_knows_count_holder_and_rank():
    assert (HELD.parties, HELD.size, HELD.dense) == (3, 5, False)
    assert HELD.count.tolist() == [2, 0, 3]
    assert HELD.holder.tolist() == [0, 0, 2, 2, 2]
    assert HELD.rank.tolist() == [0, 1, 0, 1, 2]
    assert HELD.filter(np.array([False, True, True, False, True])).starts.tolist() == [0, 1, 1, 3]


def test_layout_with_one_each_is_dense_however_it_was_made():
    for layout in (ONE_EACH, Layout(np.array([0, 1, 2, 3]))):
        assert layout.dense
        assert layout.starts.tolist() == [0, 1, 2, 3]
        assert layout.holder.tolist() == [0, 1, 2]
        assert layout.same(ONE_EACH)
    assert not Layout(np.array([0, 0, 1, 3])).dense, "as many messages as parties is not one each"


def test_layout_of_holders_is_that_of_starts():
    for held in ([], [0], [1, 2], [0, 1, 2, 3]):
        counts = np.isin(np.arange(4), held)
        made, plain = Layout.one_at_most_each(np.array(held, np.int64), 4), Layout(np.cumsum([0, *counts]))
        for name in ("parties", "size", "dense", "one_at_most", "starts", "count", "holder", "rank"):
            assert np.array_equal(getattr(made, name), getattr(plain, name)), name
        assert made.filter(np.arange(len(held)) == 0).count.tolist() == [
            *np.eye(4, dtype=int)[held[:1]].sum(0)
        ]


@pytest.mark.parametrize("times", [1, 3])
def test_layout_of_as_many_each_is_that_of_starts(times):
    for parties in (0, 1, 4):
        made, plain = Layout(None, parties, times), Layout(np.arange(parties + 1) * times)
        for name in ("parties", "size", "dense", "starts", "count", "holder", "rank"):
            assert np.array_equal(getattr(made, name), getattr(plain, name)), name


def test_arithmetic_spreads_party_values_over_their_messages():
    column, party = per_message([1, 2, 3, 4, 5]), np.array([10, 20, 30])
    assert values(column + party) == [11, 12, 33, 34, 35]
    assert values(party - column) == [9, 8, 27, 26, 25]
    assert values(column * column) == [1, 4, 9, 16, 25]
    assert values(column % 2 == 1) == [True, False, True, False, True]
    assert values(-column) == [-1, -2, -3, -4, -5]
    assert values(~(column > 3) & (party > 10)) == [False, False, True, False, False]
    assert values(2 + column) == [3, 4, 5, 6, 7]
    assert values(np.maximum(column, 3)) == [3, 3, 3, 4, 5]


def test_a_function_with_two_results_gives_two_columns():
    quotient, remainder = divmod(per_message([7, 8, 9, 10, 11]), 4)
    assert (values(quotient), values(remainder)) == ([1, 2, 2, 2, 2], [3, 0, 1, 2, 3])


def test_np_where_chooses_by_message():
    column = per_message([1, 2, 3, 4, 5])
    assert values(np.where(column > 2, column, 0)) == [0, 0, 3, 4, 5]
    assert values(np.where(np.array([True, False, False]), -1, column)) == [-1, -1, 3, 4, 5]


def test_count_rank_and_length():
    column = per_message([1, 2, 3, 4, 5])
    assert column.count.tolist() == [2, 0, 3]
    assert values(column.rank) == [0, 1, 0, 1, 2]
    assert len(column) == 5


def test_sum_is_int64_by_party():
    for dtype in (np.bool_, np.int8, np.uint8, np.int32, np.int64):
        total = per_message(np.array([1, 1, 0, 1, 1], dtype)).sum()
        assert total.dtype == np.int64
        assert total.tolist() == [2, 0, 2]
    assert per_message(np.full(5, 127, np.int8)).sum().tolist() == [254, 0, 381]
    assert per_message(np.full(5, -1, np.int8)).sum().tolist() == [-2, 0, -3]


def test_sum_of_uint64_is_modulo_2_to_the_64():
    top = 2**64 - 1
    total = per_message(np.array([top, 5, top, top, 7], np.uint64)).sum()
    assert total.dtype == np.uint64
    assert total.tolist() == [4, 0, 5]


def test_sum_of_vectors():
    column = per_message(np.arange(10, dtype=np.uint64).reshape(5, 2) + np.uint64(2**63))
    assert column.sum().tolist() == [[2, 4], [0, 0], [(3 * 2**63 + 18) % 2**64, (3 * 2**63 + 21) % 2**64]]


def test_sum_of_no_messages():
    assert per_message(np.zeros(0, np.int64), Layout(np.array([0, 0, 0]))).sum().tolist() == [0, 0]


def test_sum_never_cuts_fractions_off_silently():
    try:
        total = per_message([0.5, 0.75, 1.5, 0.25, 0.25]).sum()
    except ProtocolError:
        return
    assert total.tolist() == [1.25, 0.0, 2.0]


def test_first_takes_a_default_for_who_holds_none():
    column = per_message([1, 2, 3, 4, 5])
    assert column.first(-1).tolist() == [1, -1, 3]
    assert column.first(np.array([7, 8, 9])).tolist() == [1, 8, 3]
    assert per_message([4, 5, 6], ONE_EACH).first(-1).tolist() == [4, 5, 6]
    assert per_message(np.arange(10).reshape(5, 2)).first(0).tolist() == [[0, 1], [0, 0], [4, 5]]


def test_first_never_turns_its_default_into_another_value():
    for column, default in (
        ([True, False, True, True, True], 2),
        (np.zeros(5, np.uint8), np.array([1, -1, 1])),
    ):
        try:
            first = per_message(column).first(default)
        except (ProtocolError, ValueError, OverflowError):
            continue
        assert first[1] == np.broadcast_to(default, 3)[1]


def test_where_keeps_messages():
    column = per_message([1, 2, 3, 4, 5])
    kept = column.where(column % 2 == 1)
    assert values(kept) == [1, 3, 5]
    assert kept.count.tolist() == [1, 0, 2]
    assert values(column.where(np.array([False, True, True]))) == [3, 4, 5]
    assert values(column.where(True)) == [1, 2, 3, 4, 5]
    assert values(column.where(np.False_)) == []


def test_take_reorders_within_each_holder():
    column = per_message([10, 11, 20, 21, 22])
    assert values(column.take(per_message([1, 0, 2, 0, 1]))) == [11, 10, 22, 20, 21]


def test_columns_of_different_inboxes_do_not_meet():
    other = per_message([1, 2, 3, 4, 5], Layout(np.array([0, 1, 2, 5])))
    for meet in (
        lambda a, b: a + b,
        lambda a, b: np.where(a > 1, a, b),
        lambda a, b: a.where(b > 1),
        lambda a, b: a.take(b),
    ):
        with pytest.raises(ProtocolError, match=r"columns of different inboxes meet .*\.first\(default\)"):
            meet(per_message([1, 2, 3, 4, 5]), other)


def test_where_everybody_holds_one_message_columns_of_two_inboxes_may_meet():
    assert values(per_message([1, 2, 3], ONE_EACH) + per_message([4, 5, 6], Layout(np.arange(4)))) == [
        5,
        7,
        9,
    ]


def test_a_column_of_another_length_is_neither():
    with pytest.raises(ProtocolError, match=r"length 5 is neither one a party \(3\) nor a message column"):
        per_message([1, 2, 3, 4, 5]) + np.arange(5)


@pytest.mark.parametrize(
    "use",
    [
        np.sum,
        np.mean,
        np.asarray,
        np.array,
        np.sort,
        lambda c: np.concatenate([c, c]),
        np.add.reduce,
        lambda c: np.add(c, 1, out=np.zeros(5)),
    ],
)
def test_numpy_functions_that_would_mix_parties_are_refused(use):
    with pytest.raises(ProtocolError, match="message column"):
        use(per_message([1, 2, 3, 4, 5]))


@pytest.mark.parametrize(
    "use",
    [
        lambda c: c + 1,
        lambda c: c == c,
        lambda c: c.sum(),
        lambda c: c.first(0),
        lambda c: c.data,
        lambda c: np.where(c, 1, 0),
        lambda c: per_message([1, 2, 3, 4, 5]) * c,
        lambda c: c.rank.where(c),
    ],
)
def test_arithmetic_on_a_sealed_column_names_whom_it_is_sealed_for(use):
    with pytest.raises(ProtocolError, match="sealed for 'learner'"):
        use(per_message([1, 0, 1, 0, 1], sealed_for="learner"))


def test_a_sealed_column_can_be_counted_filtered_and_reordered_but_stays_sealed():
    sealed = per_message([1, 2, 3, 4, 5], sealed_for="learner")
    assert sealed.count.tolist() == [2, 0, 3]
    for kept in (sealed.where(sealed.rank > 0), sealed.take(per_message([1, 0, 2, 0, 1]))):
        assert kept.sealed_for == "learner"
        with pytest.raises(ProtocolError, match="sealed for 'learner'"):
            kept.sum()
    assert "sealed for learner" in repr(sealed)
    assert "3" not in repr(sealed.where(sealed.rank < 0)).replace("3 parties", "")


def test_inbox_has_fields_sender_count_and_rank():
    box = inbox(v=[1, 2, 3, 4, 5])
    assert values(box.v) == [1, 2, 3, 4, 5]
    assert values(box.sender) == [1, 2, 0, 0, 2]
    assert box.count.tolist() == [2, 0, 3]
    assert values(box.rank) == [0, 1, 0, 1, 2]
    assert {name: column.tolist() for name, column in box.columns().items()} == {
        "sender": [1, 2, 0, 0, 2],
        "v": [1, 2, 3, 4, 5],
    }
    with pytest.raises(ProtocolError, match=r"message 'note' has no field 'w'; it has \['v'\]"):
        box.w  # noqa: B018


def test_inbox_loads_only_when_a_program_looks():
    rows, loads = Rows(ONE_EACH, np.arange(3), None, {}), []
    box = Inbox(Message("user", "user", "says"), lambda: loads.append(1) or rows, "user")
    assert (box.looked, loads) == (False, [])
    assert box.count.tolist() == [1, 1, 1]
    assert values(box.sender) == [0, 1, 2]
    assert (box.looked, loads) == (True, [1])


def test_inbox_where_filters_all_its_columns_alike():
    box = inbox(v=[1, 2, 3, 4, 5], w=[10, 20, 30, 40, 50])
    kept = box.where(box.v > 1)
    assert values(kept.v + kept.w) == [22, 33, 44, 55]
    assert values(kept.sender) == [2, 0, 0, 2]
    assert values(box.where(np.array([True, True, False])).v) == [1, 2]
    assert values(box.where(False).v) == []
    with pytest.raises(ProtocolError, match="different inboxes"):
        kept.v + box.v


def test_inbox_fields_are_sealed_for_all_but_their_reader():
    box = inbox(reader="shuffler", sealed_for="learner", v=[1, 2, 3, 4, 5])
    with pytest.raises(ProtocolError, match="sealed for 'learner'"):
        box.columns()
    assert values(box.sender) == [1, 2, 0, 0, 2]
    assert values(inbox(reader="learner", sealed_for="learner", v=[1, 2, 3, 4, 5]).v) == [1, 2, 3, 4, 5]


def test_find_joins_by_sender():
    box = inbox(v=[1, 2, 3, 4, 5])
    found = box.find(sender=np.array([2, 2, 0]))
    assert values(found.v) == [2, 3], (
        "party 0 has one of sender 2, party 1 holds nothing, party 2's first of sender 0"
    )
    assert found.count.tolist() == [1, 0, 1]
    assert box.find(sender=0).v.first(-1).tolist() == [-1, -1, 3]
    wanted = per_message([2, 9, 2, 2, 0], Layout(np.array([0, 1, 3, 5])))
    assert box.find(sender=wanted).count.tolist() == [1, 0, 2], "nobody has one of 9, party 1 holds nothing"
    assert values(box.find(sender=wanted).v) == [2, 5, 3]


def test_find_of_a_sender_that_nobody_can_be_finds_nothing():
    box = inbox(v=[1, 2, 3, 4, 5])
    for nobody in (-1, np.array([-1, -1, -2]), 10**9):
        assert box.find(sender=nobody).count.tolist() == [0, 0, 0]


def test_find_in_what_was_found():
    box = inbox(v=[1, 2, 3, 4, 5])
    backwards = box.find(sender=per_message([2, 1, 2, 0, 0]))
    assert values(backwards.v) == [2, 1, 5, 3, 3]
    assert values(backwards.find(sender=np.array([1, 1, 0])).v) == [1, 3]
