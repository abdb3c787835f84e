"""What a program knows of its block: its columns, read-only, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from p2p_sim.backends import local
from p2p_sim.core import Message, Population, Protocol, ProtocolError
from tests.tiny import CLUSTERS, LABELS, people


@dataclass(frozen=True)
class Show(Protocol):
    """Hands every block of users, and the server, to a visitor."""

    visit: Any = field(compare=False)
    at: str = "user"
    labels: int = 2

    report = Message("user", "learner", "reports")

    def label_count(self):
        return self.labels

    def user(self, me):
        if self.at == "user":
            self.visit(me)
        yield self.report()

    def learner(self, me):
        if self.at == "learner":
            self.visit(me)
        yield self.report.receive()


def shown(population, at="user", blocks=1, labels=2):
    seen = []
    local.run(Show(seen.append, at, labels), population, 1, blocks=blocks)
    return seen


def test_the_columns_of_a_block_are_those_of_its_users():
    x, public, secret = (
        np.arange(24.0).reshape(12, 2),
        {"town": np.arange(12) * 3},
        {"age": np.arange(12) + 20},
    )
    blocks = shown(people(x=x, public=public, secret=secret), blocks=5)
    assert [me.size for me in blocks] == [2, 2, 3, 2, 3]
    assert np.concatenate([me.id for me in blocks]).tolist() == list(range(12))
    assert np.concatenate([me.y for me in blocks]).tolist() == LABELS
    assert np.concatenate([me.x for me in blocks]).tolist() == x.tolist()
    assert np.concatenate([me.public["town"] for me in blocks]).tolist() == public["town"].tolist()
    assert np.concatenate([me.secret["age"] for me in blocks]).tolist() == secret["age"].tolist()
    assert np.concatenate([me.cluster.label for me in blocks]).tolist() == CLUSTERS
    assert np.concatenate([me.cluster.size for me in blocks]).tolist() == [
        CLUSTERS.count(c) for c in CLUSTERS
    ]
    assert {me.id.dtype for me in blocks} == {np.dtype(np.int64)}


def test_labels_are_bits_for_binary_protocols_and_bytes_for_others():
    for y in ([0, 1, 1], [False, True, True]):
        (me,) = shown(Population.from_arrays(y=y))
        assert me.y.dtype == np.bool_
        (me,) = shown(Population.from_arrays(y=y), labels=5)
        assert me.y.dtype == np.uint8
        assert me.y.tolist() == [0, 1, 1]


def test_columns_are_read_only():
    population = people(x=np.zeros((12, 2)), public={"a": np.zeros(12)}, secret={"b": np.zeros(12)})
    (me,) = shown(population)
    for column in (me.y, me.x, me.public["a"], me.secret["b"]):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_without_clusters_everybody_is_in_one():
    (me,) = shown(Population.from_arrays(y=LABELS))
    assert me.cluster.size.tolist() == [12] * 12
    assert me.cluster.rows_of(0).tolist() == list(range(12))


def test_a_missing_column_says_where_it_comes_from():
    (me,) = shown(Population.from_arrays(y=LABELS))
    with pytest.raises(ProtocolError, match=r"no 'x'.*x="):
        me.x  # noqa: B018
    with pytest.raises(ProtocolError, match=r"no 'neighbours'.*with_graph"):
        me.neighbours  # noqa: B018


def test_a_server_has_no_columns_and_one_party():
    (me,) = shown(people(), at="learner", blocks=3)
    assert (me.size, me.id.tolist(), me.role) == (1, [0], "learner")
    for name in ("y", "x", "cluster", "neighbours", "public", "secret"):
        with pytest.raises(ProtocolError, match=f"'learner' is a server and has no '{name}'"):
            getattr(me, name)


def test_each_is_for_servers():
    (server,) = shown(people(), at="learner")
    column = server.each([5, 6, 7])
    assert column.data.tolist() == [5, 6, 7]
    assert column.count.tolist() == [3]
    assert (column + server.each(np.array([1, 1, 2]))).data.tolist() == [6, 7, 9]
    for me in shown(people(), blocks=12)[:2]:
        with pytest.raises(ProtocolError, match=r"me\.each is for servers.*times="):
            me.each([1])


def test_users_of_a_part_keep_their_ids_and_draws():
    population = people()
    whole = shown(population)[0].draw.below("n", 1000)
    part = population.part(np.array([1, 3, 6, 9]))
    blocks = shown(part, blocks=2)
    assert [me.id.tolist() for me in blocks] == [[1, 3], [6, 9]]
    assert (
        np.concatenate([me.draw.below("n", 1000) for me in blocks]).tolist() == whole[[1, 3, 6, 9]].tolist()
    )
    assert set(np.concatenate([me.draw.member("m", me.cluster) for me in blocks]).tolist()) <= {1, 3, 6, 9}


def test_a_contingency_table_counts_values_beside_groups():
    (me,) = shown(people(), at="learner")
    groups, values = np.array([3, 0, 3, 3], np.int32), np.array([1, 0, 2, 1], np.uint8)
    expected = [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 2, 1]]
    assert me.contingency(groups, values, 3).tolist() == expected
    assert me.contingency(groups[:0], values[:0], 3).shape == (0, 3)
    for one, other, outcomes in (
        (groups, values[1:], 3),
        (groups, values, 2),
        (groups - np.int32(1), values, 3),
    ):
        with pytest.raises(ProtocolError, match="contingency: "):
            me.contingency(one, other, outcomes)


def test_numbers_of_clusters_cannot_be_written_to():
    (me,) = shown(people())
    with pytest.raises(ValueError, match="read-only"):
        me.cluster.codes[0] = 1
