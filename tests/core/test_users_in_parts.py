"""Synthetic users who are made where and when a program looks at them: the same users, in a fraction of the memory."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import p2p_sim
from p2p_sim import Population
from p2p_sim.backends import layout, local
from p2p_sim.core import Label, Message, Party, Protocol, Rounds
from p2p_sim.core.party import FleetingColumns
from p2p_sim.core.population_in_parts import PopulationInParts
from protocols.label_proportions import LabelProportions
from protocols.peer_to_peer import PeerToPeer

HOW: list[dict[str, Any]] = [
    {"cluster_size": 7},
    {"cluster_size": 1000, "positive": 0.2, "seed": 3},
    {"cluster_size": None, "labels": 5, "shares": [0.2, 0.1, 0.3, 0.3, 0.1], "seed": 9},
]


@pytest.mark.parametrize("how", HOW)
def test_parts_are_those_of_the_whole(how: dict[str, Any]) -> None:
    whole, unmade = Population.synthetic(users=100, **how), PopulationInParts.drawn(users=100, **how)
    assert unmade.hash == whole.hash
    for low, high in ((0, 100), (0, 1), (6, 8), (13, 14), (14, 99), (99, 100)):
        part, makes = whole.piece(low, high), unmade.origin.columns(low, high)
        assert makes is not None
        np.testing.assert_array_equal(makes["y"](), part.y)
        if part.clusters is None:
            assert "cluster" not in makes
            continue
        found = makes["cluster"]()
        for name in ("codes", "starts", "label", "size", "has_empty"):
            np.testing.assert_array_equal(getattr(found, name), getattr(part.clusters, name))


def test_an_origin_is_small_where_it_is_sent() -> None:
    unmade = PopulationInParts.drawn(users=1_000_000, cluster_size=2)
    unmade.piece(5, 7)
    assert len(pickle.dumps(unmade)) < 1000
    assert pickle.loads(pickle.dumps(unmade)).piece(5, 7).y.tolist() == unmade.piece(5, 7).y.tolist()


@dataclass(frozen=True)
class Looks(Protocol):
    """Reads labels, clusters and ids before and after a wait, and says whether they were the same."""

    note = Message("user", "user", "writes down her label", y=Label())

    def user(self, me: Party) -> Rounds:
        """Read everything twice."""
        assert isinstance(me.columns, FleetingColumns)
        before = [me.y, me.cluster.codes, me.id]
        yield self.note(to=me.id, y=me.y)
        after = [me.y, me.cluster.codes, me.id]
        assert all(one is not other for one, other in zip(before, after, strict=True))
        return {"same": np.all([one == other for one, other in zip(before, after, strict=True)], axis=0)}


def test_a_column_that_was_let_go_comes_back_the_same() -> None:
    done = local.run(Looks(), PopulationInParts.drawn(users=50, cluster_size=4), 0, blocks=3)
    assert done.outputs["user"]["same"].all()


def test_nothing_is_held_while_a_block_waits() -> None:
    unmade = PopulationInParts.drawn(users=10, cluster_size=4)
    world = layout.world_of(PeerToPeer(0.1), unmade)
    columns = layout.PartToMake(unmade.origin, 0, 10, True).block(2, 9, world, 2, None)
    assert columns["y"] is columns["y"]
    kept = columns["y"]
    columns.let_go()
    assert columns["y"] is not kept
    assert not columns["y"].flags.writeable
    assert not columns["cluster"].codes.flags.writeable


@pytest.mark.parametrize("faults", [None, ["lie=random:0.3"], ["lie=flip:0.5", "drop=0.1"]])
@pytest.mark.parametrize("protocol", [PeerToPeer(0.25, 0.5), LabelProportions(5)])
def test_a_run_has_the_bits_of_users_in_memory(protocol: Protocol, faults: list[str] | None) -> None:
    how: dict[str, Any] = {"seed": 4, "faults": faults, "costs": True}
    whole = p2p_sim.run(protocol, Population.synthetic(users=500, cluster_size=30), **how)
    for more in ({}, {"blocks": 1}, {"blocks": 11, "threads": 3}, {"blocks": 500, "threads": 2}):
        run = p2p_sim.run(protocol, PopulationInParts.drawn(users=500, cluster_size=30), **how, **more)
        assert (run.digest, run.counts, run.most) == (whole.digest, whole.counts, whole.most)
        np.testing.assert_equal(run.faulty, whole.faulty)


def grown(kind: Any, few: int, many: int) -> float:
    """Return the bytes that a run takes for each further user."""
    peaks = []
    for users in (few, many):
        tracemalloc.start()
        people = kind(users=users, cluster_size=1000)
        local.run(PeerToPeer(0.25, 0.1), people, 0, blocks=users // 10_000, costs=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (many - few)


def test_memory_grows_by_few_bytes_a_user() -> None:
    """What waits is whom she asked (4), how many asked her (2), what she says (2); users in memory are 5 more."""
    assert grown(PopulationInParts.drawn, 200_000, 800_000) < 9
    assert grown(Population.synthetic, 200_000, 800_000) > 12  # the twin
