"""An audit is the same on every backend and for any number of blocks, as long as its worlds fit in one batch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2p_sim import backends, privacy
from p2p_sim.coalition import Coalition
from p2p_sim.privacy.auditing import evidence
from p2p_sim.privacy.auditing.audit import statistic_of
from p2p_sim.privacy.auditing.worlds import Situation
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Shuffled

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"protocol": PeerToPeer(0.1, 0.5), "view": "learner", "cluster_size": 7, "delta": 0.01},
    {"protocol": PeerToPeer(0.1, 0.5), "view": "learner+2*user", "cluster_size": 5, "epsilon": 0.3},
    {"protocol": PeerToPeer(0.1, 0.5), "view": "wire", "cluster_size": 7, "delta": 0.0},
    {"protocol": RandomizedResponse(1.0, 5), "delta": 0.0, "statistic": "classifier"},
    {
        "protocol": Shuffled(3, 0.25), "cluster_size": 3, "epsilon": 0.5,
        "against": privacy.shuffled_response(3, math.log(3)),
    },
]  # fmt: skip


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_shards_measure_what_one_process_does() -> None:
    for case in CASES:
        here, there = (
            privacy.audit(**case, trials=1000, **where) for where in ({}, {"backend": "shards", "shards": 2})
        )
        assert there == here
        assert here.lower > 0
        assert privacy.audit(**case, trials=1000, seed=1) != here, "another audit is another"


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_one_actor_a_user_measures_it_too() -> None:
    """Eight users, a process each: all that such a backend is for."""
    case: dict[str, Any] = {"protocol": RandomizedResponse(math.inf), "delta": 0.0, "confidence": 0.5}
    here, there = (privacy.audit(**case, trials=4, backend=backend) for backend in ("local", "actors"))
    assert there == here
    assert here.lower == pytest.approx(here.cap) != 0


@pytest.mark.parametrize("view", ["learner", "learner+2*user", "wire"])
def test_blocks_do_not_matter(view: str) -> None:
    protocol = PeerToPeer(0.1, 0.5)
    who = Coalition.parse(view, protocol.roles())
    stat = statistic_of(protocol, who, size=7, composition=2)
    assert stat is not None
    situation, whole = Situation(protocol, who, 7, 2), backends.Settings("local", digest=False)

    def told(*_: Any) -> None:
        pass

    first = evidence.by_law(situation, stat, 500, 3, whole, told)
    learned = evidence.by_learning(situation, 500, 3, whole, told)
    for blocks in (3, 1000):
        settings = replace(whole, blocks=blocks)
        again = evidence.by_law(situation, stat, 500, 3, settings, told)
        for one, other in zip(first.scores, again.scores, strict=True):
            assert np.array_equal(one, other)
        other_learned = evidence.by_learning(situation, 500, 3, settings, told)
        assert all(np.array_equal(a, b) for a, b in zip(learned.scores, other_learned.scores, strict=True))


def test_progress_is_told_up_to_the_last_trial() -> None:
    said: list[tuple[int, int]] = []
    privacy.audit(
        RandomizedResponse(1.0),
        delta=0.0,
        trials=1000,
        progress=lambda _, done, total: said.append((done, total)),
    )
    assert (1000, 1000) in said  # the classifier beside the law has worlds of its own
