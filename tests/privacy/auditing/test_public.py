"""Audits of programs that read public columns: those of a run's users, or those that are given."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import InputError, Population, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.core import Message, Party, Protocol, Rounds
from p2p_sim.core.errors import MissingColumnError
from p2p_sim.network import topologies
from p2p_sim.privacy.auditing import worlds
from p2p_sim.privacy.auditing.worlds import Situation
from p2p_sim.privacy.auditing.worlds_of_run import world_of
from protocols import (
    EncryptedShuffle,
    LaplaceLabelProportions,
    NetworkShuffle,
    PeerToPeer,
    RandomizedResponse,
)

CLUSTERS = np.array([8, 3, 3, 8, 4, 8, 4, 3, 4, 8, 8, 4, 3, 8])
TOWN = np.arange(14) * 10
PEOPLE = Population.from_arrays(
    y=np.arange(14) % 2 == 0, cluster=CLUSTERS, public={"town": TOWN, "pair": np.stack([TOWN, -TOWN], axis=1)}
)
HOW: dict[str, Any] = {"delta": 0.0, "trials": 1000, "confidence": 0.99}


@dataclass(frozen=True)
class Careful(Protocol):
    """Users who are marked flip a fair coin, all others tell their label."""

    report = Message("user", "learner", "hands in a label, maybe a coin", y=bool)

    def user(self, me: Party) -> Rounds:
        yield self.report(y=np.where(me.public["careful"], me.draw.bernoulli("coin", 0.5), me.y))

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


@dataclass(frozen=True)
class Hidden(Protocol):
    """Reads what no world has."""

    part: str

    report = Message("user", "learner", "hands in a label", y=bool)

    def user(self, me: Party) -> Rounds:
        column = me.x[:, 0] if self.part == "x" else me.secret["age"]
        yield self.report(y=me.y, when=column > 0)

    def learner(self, me: Party) -> Rounds:
        reports = yield self.report.receive()
        return reports.columns()


def test_a_world_has_the_columns_that_are_given_row_by_row():
    """The victim is the first: a careful one hides behind her coin, one who is not does not, whoever the others are."""
    shown = {}
    for careful in ([True, False, False], [False, True, True]):
        found = privacy.audit(
            Careful(), cluster_size=3, public={"careful": careful, "town": [1, 2, 3]}, **HOW
        )
        shown[careful[0]] = found.lower
        assert found.assumes == (
            "public columns 'careful', 'town' of all users of a world are known to the view, and the same whatever "
            "the victim's label is; with other values the view may learn more or less",
        )
    assert shown[True] == 0  # to be wrong, each way, has at most one chance in a hundred
    assert shown[False] > 3
    assert privacy.audit(RandomizedResponse(1.0), **HOW).assumes == ()


def test_all_worlds_are_copies():
    columns = {
        "town": np.array([7, 8, 9]),
        "pair": np.arange(6).reshape(3, 2),
        "name": np.array(["a", "bc", ""]),
    }
    situation = Situation(
        RandomizedResponse(1.0), Coalition.parse("learner", ("learner",)), 3, 1, public=columns
    )
    public = situation.population(4).public
    for name, column in columns.items():
        assert public[name].dtype == column.dtype
        assert public[name].tolist() == column.tolist() * 4


def test_wide_columns_make_smaller_batches(monkeypatch):
    """The results are those of any number of worlds a batch; but draws of another number are others."""
    narrow, wide = {"a": np.zeros(5, np.int8)}, {"a": np.zeros((5, 1 << 12))}
    asked = RandomizedResponse(1.0), 5, 10**6
    assert worlds.users_a_batch(*asked) == worlds.users_a_batch(*asked, narrow) == 1_000_000
    users = worlds.users_a_batch(*asked, wide)
    assert 0 < users * wide["a"][0].nbytes <= 1 << 28
    monkeypatch.setattr(worlds, "_MOST_OCTETS", 1)
    assert worlds.users_a_batch(*asked, wide) == 10


@pytest.mark.parametrize(
    ("protocol", "view", "users"),
    [
        (PeerToPeer(0.2), "learner", [1, 2, 7, 12]),  # the first of the smallest clusters, 3, before 4
        (PeerToPeer(0.2), "learner+4*user", [0, 3, 5, 9, 10, 13]),  # there is room for four
        (LaplaceLabelProportions(1.0, bag_size=2), "learner", [1, 2]),
        (
            LaplaceLabelProportions(1.0, bag_size=3),
            "learner",
            [0, 3, 5],
        ),  # 8 is cut into two, 3 and 4 are not
        (RandomizedResponse(1.0), "learner+2*user", [1, 2, 7]),
        (EncryptedShuffle(1.0, over="everybody"), "learner", list(range(14))),
    ],
)
def test_the_users_of_a_run_whose_columns_its_worlds_have(protocol, view, users):
    world = world_of(p2p_sim.run(protocol, PEOPLE, seed=1), view)
    assert world.public["town"].tolist() == TOWN[users].tolist()
    assert world.public["pair"].tolist() == PEOPLE.public["pair"][users].tolist()
    assert world.description.endswith(f"the victim's those of user {users[0]}")
    same = {CLUSTERS[user] for user in users}
    assert (f"of users of cluster {CLUSTERS[users[0]]} of the run" in world.description) == (len(same) == 1)


def test_on_a_graph_rows_follow_the_numbers_of_the_world():
    walks = NetworkShuffle(epsilon=2.0, steps=2)
    joined = topologies.join(
        Population.from_arrays(y=np.zeros(12, bool), public={"id": np.arange(12)}), "grid", 1
    )
    for people in (joined, topologies.join(joined, "complete", 1)):
        world = world_of(p2p_sim.run(walks, people, seed=1))
        rows = world.public["id"]
        assert sorted(rows.tolist()) == list(range(12))
        if isinstance(world.graph, str):
            continue
        edges = {frozenset(rows[list(pair)].tolist()) for pair in world.graph.tolist()}
        assert people.graph is not None
        near, starts = people.graph.everybody()
        user = np.repeat(np.arange(12), np.diff(starts))
        assert edges == {frozenset(pair) for pair in zip(user.tolist(), near.tolist(), strict=True)}
        assert f"the victim is user {rows[0]}," in world.description


def test_a_run_on_a_part_knows_the_columns_of_whole_clusters():
    part = PEOPLE.part(np.array([1, 2, 4, 6, 7, 8, 11]))  # of cluster 3 user 12 is missing, 4 is whole
    world = world_of(p2p_sim.run(EncryptedShuffle(1.0), part, seed=1), cluster_size=4)
    assert world.public["town"].tolist() == [40, 60, 80, 110]
    assert world_of(p2p_sim.run(EncryptedShuffle(1.0), part, seed=1), cluster_size=6).public == {}


def test_a_run_is_audited_with_its_own_columns(tmp_path):
    careful = np.array([True, True, False, False, True, True])
    people = Population.from_arrays(
        y=np.arange(6) % 2 == 0, cluster=[1, 1, 1, 0, 0, 0], public={"careful": careful}
    )
    run = p2p_sim.run(Careful(), people, seed=2**63)
    found = privacy.audit(run, **HOW)
    same = privacy.audit(Careful(), cluster_size=3, public={"careful": careful[3:]}, **HOW)
    assert found == replace(same, not_varied=found.not_varied)
    with pytest.raises(InputError, match="public contradicts the run, which has its own: leave public out"):
        privacy.audit(run, public={"careful": careful[3:]}, **HOW)
    run.save(tmp_path / "bare", population=False)
    bare = p2p_sim.load(tmp_path / "bare")
    bare.source = Careful()
    with pytest.raises(
        InputError, match="reads public column 'careful', which the worlds of an audit do not have"
    ):
        privacy.audit(bare, cluster_size=3, **HOW)
    again = privacy.audit(bare, cluster_size=3, public={"careful": careful[3:]}, **HOW)
    assert replace(again, not_varied=found.not_varied) == found


def test_what_worlds_do_not_have_is_named():
    with pytest.raises(
        InputError,
        match=r"public column 'careful', .* \(they have: 'town'\): .*public=\{'careful': values\}\) with a row for "
        r"each of the 2 users of a world, the victim first; or audit a run whose population has it",
    ):
        privacy.audit(Careful(), cluster_size=2, public={"town": [1, 2]}, **HOW)
    for part, what in (("x", "me.x"), ("secret", "secret column 'age'")):
        with pytest.raises(
            InputError, match=f"reads {what}, which the worlds of an audit do not have: they have labels and"
        ):
            privacy.audit(Hidden(part), **HOW)


@pytest.mark.parametrize(
    ("public", "why"),
    [
        ([1, 2], "public = .*: give columns by name"),
        ({"town": [1, 2]}, "public column 'town' has 2 rows, a world has 3 users: give one row a user"),
        ({"town": 7}, "public column 'town' = 7: give one row a user"),
        ({"town": [{}, 1, 2]}, "public column 'town' holds objects: give numbers"),
        ({7: [0, 1, 2]}, "public = {7: .*: give columns by name"),
    ],
)
def test_columns_that_cannot_be(public, why):
    with pytest.raises(InputError, match=why):
        privacy.audit(Careful(), cluster_size=3, public=public, **HOW)


def test_the_error_comes_whole_from_another_process():
    """From an actor, whose column an audit then names as it does here."""
    error = pickle.loads(pickle.dumps(MissingColumnError("there is none", "public", "careful")))
    assert (type(error), str(error), error.part, error.name) == (
        MissingColumnError,
        "there is none",
        "public",
        "careful",
    )
