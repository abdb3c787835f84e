"""Rows of numbers from what was seen: against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from p2p_sim.core.message import Vector
from p2p_sim.privacy.auditing.features import ROUNDS, common, features
from p2p_sim.privacy.auditing.seen import Seen
from tests.privacy.auditing.seen import columns, forwarded, message, reports, told


def by_name(seen):
    table, names = features(seen)
    assert table.shape == (seen.worlds, len(names))
    assert table.dtype == np.float64
    assert len(set(names)) == len(names)
    return dict(zip(names, table.T.tolist(), strict=True))


def test_messages_between_users_by_both_ends():
    """Two worlds of three users, the second a colluder: who asked whom, and what could be read of the answers."""
    kind = message("label", "user", "user", y_hat=int)
    sender, recipient = [0, 0, 1, 2, 3, 4, 5], [1, 2, 0, 0, 4, 4, 3]
    values = np.array([5, 0, 7, 0, 2, 3, 0])
    readable = np.array([1, 0, 1, 0, 1, 1, 0], bool)
    seen = Seen(
        3,
        2,
        1,
        {"label": columns(kind, sender, recipient, {"y_hat": values}, [2, 2, 4, 4, 2, 40, 40], readable)},
    )
    found = by_name(seen)
    expected = {
        "messages in all": [4, 3],
        "messages in round 2": [2, 1],
        "messages in round 4": [2, 0],
        f"messages in round {ROUNDS} or later": [0, 2],
        "messages from the victim": [2, 1],
        "messages from colluders": [1, 1],
        "messages to colluders": [1, 2],
        "messages to user 2": [1, 0],
        "messages from user 2 to the victim": [1, 1],
        "messages to user 1 from the victim": [1, 1],
        "readable in all": [2, 2],
        "readable from user 2": [0, 0],
        "y_hat in all": [12, 5],
        "y_hat in round 2": [5, 2],
        "y_hat from the victim": [5, 2],
        "y_hat to the victim": [7, 0],
        "y_hat from colluders": [7, 3],
        "y_hat to colluders": [5, 5],
        "y_hat from colluders to the victim": [7, 0],
        "y_hat to user 1 from the victim": [5, 2],
    }
    assert {name: found[f"label.{name}"] for name in expected} == expected


def test_what_counts_through_all_worlds_is_told_by_its_place_in_the_world():
    """Ids of the next user, bags of which each world has two, and a number that is no such thing."""
    worlds, size = 12, 8
    world, place = np.divmod(np.arange(worlds * size), size)
    kind = message("report", "user", "learner", next=int, bag=int, other=int, hidden=int)
    fields = {
        "next": world * size + (place + 1) % size, "bag": 2 * world + place % 2, "other": place + world % 2,
        "hidden": np.where(place > 2, world * size + place, 0),
    }  # fmt: skip
    sent = columns(kind, np.arange(worlds * size), 0, fields)
    half = columns(kind, np.arange(worlds * size), 0, {"next": fields["hidden"]}, None, place > 2)
    found = by_name(Seen(size, worlds, 0, {"report": sent, "half": half}))
    assert found["report.next from the victim"] == [1] * worlds
    assert found["report.bag in all"] == [size // 2] * worlds
    assert found["report.other from user 3"] == [3, 4] * (worlds // 2)
    assert found["half.next in all"] == [3 + 4 + 5 + 6 + 7] * worlds


def test_reports_by_sender_and_not_by_order():
    found = by_name(reports(np.array([[1, 0, 1], [0, 0, 1]], bool)))
    assert found["report.y in all"] == [2, 1]
    assert [found[f"report.y from {who}"] for who in ("the victim", "user 1", "user 2")] == [
        [1, 0],
        [0, 0],
        [1, 1],
    ]
    assert not any("rank" in name or "colluders" in name for name in found)


def test_a_servers_messages_by_order_whatever_the_rows_order():
    bits = np.array([[1, 0, 1], [0, 1, 1]], bool)
    seen = forwarded(bits)
    mixed = seen.kinds["mixed"]
    woven = [3, 0, 4, 1, 5, 2]  # the two worlds in turn
    other = Seen(
        3,
        2,
        0,
        {
            "mixed": columns(
                mixed.message, 0, 0 * mixed.sender, {n: v[woven] for n, v in mixed.fields.items()}
            )
        },
    )
    for found in (by_name(seen), by_name(other)):
        assert [found[f"mixed.y at rank {r}"] for r in range(4)] == [[1, 0], [0, 1], [1, 1], [0, 0]]
        assert not any("cluster" in name for name in found), "the number of the world would tell the label"


def test_vectors_by_component_and_long_ones_by_their_sum():
    kind = message("share", "user", "server", v=Vector(np.int64, 3), w=Vector(np.uint8, 9))
    fields = {"v": np.arange(12).reshape(4, 3), "w": np.full((4, 9), 200, np.uint8)}
    found = by_name(Seen(2, 2, 0, {"share": columns(kind, range(4), 0, fields)}))
    assert found["share.v[1] in all"] == [1 + 4, 7 + 10]
    assert found["share.v[2] from user 1"] == [5, 11]
    assert found["share.w in all"] == [3600, 3600]


@pytest.mark.parametrize("kind", [np.uint64, np.uint32])
def test_masks_cancel(kind):
    top = int(np.iinfo(kind).max) + 1
    shares = np.array([top - 5, 8, 7, top - 9], kind)
    declared = message("share", "user", "server", v=kind)
    found = by_name(Seen(2, 2, 0, {"share": columns(declared, range(4), 0, {"v": shares})}))
    assert found["share.v in all"] == [3, -2]
    assert found["share.v from the victim"] == [-5, 7]


def test_large_whole_numbers_are_summed_exactly():
    values = np.array([2**53 + 1, -(2**53)])
    declared = message("share", "user", "server", v=int)
    assert by_name(Seen(2, 1, 0, {"share": columns(declared, [0, 1], 0, {"v": values})}))[
        "share.v in all"
    ] == [1]


def test_large_worlds_tell_few_users_apart():
    found = by_name(reports(np.ones((3, 50), bool)))
    assert found["report.y from the victim"] == [1, 1, 1]
    assert len(found) < 15


def test_nothing_seen_is_a_table_without_columns():
    table, names = features(Seen(3, 5, 0, {}))
    assert table.shape == (5, 0)
    assert names == []


def test_batches_that_lack_a_kind_or_a_round_count_zero():
    first, second = features(reports(np.ones((2, 2), bool))), features(told(np.array([4, 5, 6]), 2))
    (a, b), names = common([first, second])
    assert len(names) == len(first[1]) + len(second[1])
    assert np.array_equal(a[:, : first[0].shape[1]], first[0])
    assert not a[:, first[0].shape[1] :].any()
    assert b[:, names.index("total.s in all")].tolist() == [4, 5, 6]
    assert not b[:, names.index("report.y in all")].any()


def test_one_batch_or_several_give_the_same_rows():
    """A round without a message, and a field that cannot be read, in one batch must not tell which batch it is."""
    kind = message("label", "user", "user", y=int)
    rounds, readable, values = [1, 1, 2, 1], np.array([0, 0, 1, 1], bool), np.array([0, 0, 3, 4])

    def part(rows, worlds, fields, mask):
        ends = [2 * i for i in range(worlds)], [2 * i + 1 for i in range(worlds)]
        return features(
            Seen(2, worlds, 1, {"label": columns(kind, *ends, fields, np.array(rounds)[rows], mask)})
        )

    whole = part(slice(4), 4, {"y": values}, readable)
    parts = part(slice(2), 2, {}, readable[:2]), part(slice(2, 4), 2, {"y": values[2:]}, None)
    (a, b, everything), _ = common([*parts, whole])
    assert np.array_equal(np.concatenate([a, b]), everything)
