"""Network shuffling against runs by hand: every hop, every report and the digest, on graphs of every kind."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from p2p_sim.core import Population
from p2p_sim.network import topologies
from protocols import NetworkShuffle, RandomizedResponse
from tests.exact import interpreter
from tests.exact.test_protocols import SEEDS, compare, count_bytes, traced

GRAPHS: dict[str, Any] = {
    "path": [(u, u + 1) for u in range(12)],
    "star": [(0, u) for u in range(1, 13)],
    "regular": "regular:4",
    "scale-free": "scale-free:2",
    "complete": "complete",
}


@pytest.fixture(params=("0", "1"), ids=("numpy", "numba"))
def numba(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("P2P_SIM_NUMBA", request.param)
    return request.param


def near(people: Population) -> list[list[int]]:
    assert people.graph is not None
    return [people.graph.rows_of(code).tolist() for code in people.graph.codes.tolist()]


@pytest.mark.slow
@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("seed", SEEDS)
def test_walks_by_hand(graph: Any, seed: int) -> None:
    y = [u % 5 for u in range(13)]
    people = topologies.join(Population.from_arrays(y=y), graph, 3)
    protocol = NetworkShuffle(0.7, steps=4, labels=5)
    lie = RandomizedResponse(0.7, 5).lying()
    hand = interpreter.network_shuffle(y, near(people), lie, 5, 4, seed)
    for blocks in (1, 4, 13):
        finished = traced(protocol, people, seed, blocks=blocks)
        compare(finished, hand)
    if graph != "complete":  # there a hop to oneself does not travel
        count_bytes(finished, hand, {"hop": 1 + 48, "report": 1 + 48})


@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_any_number_of_steps(steps: int) -> None:
    y = [u % 2 for u in range(40)]
    people = topologies.join(Population.from_arrays(y=np.array(y, np.bool_)), "small-world:4,0.5", 1)
    lie = NetworkShuffle(1.0).randomizer.lying()
    hand = interpreter.network_shuffle(y, near(people), lie, 2, steps, 6)
    compare(traced(NetworkShuffle(1.0, steps), people, 6, blocks=3), hand)


@pytest.mark.usefixtures("numba")
def test_a_hub_that_holds_much() -> None:
    """More than are sorted by insertion: half of all reports are at the star's centre at a time."""
    y = [u % 3 == 0 for u in range(300)]
    people = topologies.join(Population.from_arrays(y=y), [(0, u) for u in range(1, 300)], 0)
    hand = interpreter.network_shuffle([int(v) for v in y], near(people), Fraction(0), 2, 3, 2)
    compare(traced(NetworkShuffle(float("inf"), 3), people, 2, blocks=5), hand)
