"""The law of multi-stage response: against enumeration, stage by stage, and by audits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from p2p_sim import Population, privacy
from p2p_sim.core import Inbox, Party
from protocols import MultiStage

pytestmark = pytest.mark.usefixtures("ways_once")

EPSILONS = (0.0, 0.3, 0.9, 1.0, 1.2)


def staged(y: list[int], stage: list[int]) -> Population:
    labels = np.array(y, np.uint8) if max(y) > 1 else np.array(y, np.bool_)
    return Population.from_arrays(y=labels, public={"stage": np.array(stage)})


@pytest.mark.parametrize("view", ["learner", "user", "wire"])
@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize("stage", [[1, 1, 2], [1, 2, 3], [2, 2, 2]])
def test_no_victim_shows_more_than_the_law(view: str, victim: int, stage: list[int]) -> None:
    protocol, people = MultiStage(1.0, 2, max(stage), "public"), staged([0, 1, 0], stage)
    law = privacy.profile(protocol, view, cluster_size=3)
    found = privacy.enumerate_view(protocol, people, view=view, change=victim)
    for at in EPSILONS:
        assert found.delta(at) <= law.delta(at) + 1e-12
        if view != "user" and stage[victim] == 1:  # as the basis "exact" says
            assert float(found.delta(at)) == pytest.approx(law.delta(at), abs=1e-12)


def test_who_answers_later_shows_less_where_the_prior_is_clear() -> None:
    people = staged([1, 1, 0], [1, 1, 2])
    protocol = MultiStage(1.0, 2, 2, "public")
    later = privacy.enumerate_view(protocol, people, change=2)
    assert 0 < float(later.delta(0.3)) < privacy.profile(protocol, cluster_size=3).delta(0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("y", "victim"), [([0, 1, 2], 0), ([1, 1, 0], 2)])
def test_nor_of_three_labels(y: list[int], victim: int) -> None:
    protocol = MultiStage(1.0, 3, 2, "public")
    law = privacy.profile(protocol, cluster_size=3)
    assert law.basis == "upper"
    for to in {0, 1, 2} - {y[victim]}:
        found = privacy.enumerate_view(protocol, staged(y, [1, 1, 2]), change=victim, to=to)
        assert all(found.delta(at) <= law.delta(at) + 1e-12 for at in EPSILONS)
        first = privacy.LocalResponse(1.0, 3).delta(0.3).value
        assert victim == 2 or float(found.delta(0.3)) == pytest.approx(first, abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "view", "basis", "delta"),
    [
        (MultiStage(1.0, 2, 2, "public"), "learner", "exact", privacy.LocalResponse(1.0)),
        (MultiStage(1.0, 5, 1, "public"), "learner", "exact", privacy.LocalResponse(1.0, 5)),
        (MultiStage(1.0, 5, 1), "wire", "exact", privacy.LocalResponse(1.0, 5)),
        (MultiStage(1.0), "learner", "upper", privacy.LocalResponse(1.0)),
        (MultiStage(1.0, 5), "learner", "upper", privacy.LocalResponse(1.0)),
        (MultiStage(1.0, 5), "user", "upper", privacy.LocalResponse(1.0, 5)),
        (MultiStage(1.0, 5, 3), "user", "upper", privacy.LocalResponse(1.0)),
        (MultiStage(1.0, 5, 1), "user", "exact", privacy.Nothing()),
        (MultiStage(0.0, 5, 3), "learner", "upper", privacy.Nothing()),
    ],
)
def test_views_and_their_bases(protocol: Any, view: str, basis: str, delta: Any) -> None:
    found = privacy.profile(protocol, view, cluster_size=4)
    assert found.basis == basis
    assert all(found.delta(at) == pytest.approx(delta.delta(at).value, abs=1e-15) for at in EPSILONS)


def test_the_wire_reads_nothing_where_channels_are_encrypted() -> None:
    found = privacy.profile(MultiStage(1.0, 3), "wire", channels="encrypted")
    assert (found.basis, found.delta(0.0)) == ("exact", 0.0)
    assert privacy.profile(MultiStage(math.inf), "learner").epsilon(0) == math.inf


@dataclass(frozen=True)
class Honest(MultiStage):
    """Whoever has a label that cannot be reported says it, as somebody might think is harmless."""

    def answers(self, me: Party, told: Inbox | None = None) -> Any:
        said = super().answers(me, told)
        if told is None:
            return said
        order, m = self.response.reportable(told.p.data)
        y = told.layout.spread(me.y.view(np.uint8))
        place = np.argsort(order, axis=1)[np.arange(len(y)), y]
        return np.where(place < m, said, y)


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = MultiStage(1.0, 4)
    options: dict[str, Any] = {"cluster_size": 6, "delta": 1e-3, "trials": 4000, "seed": 1}
    audit = privacy.audit(protocol, **options)
    assert audit.verdict == "consistent"
    assert audit.lower > 0.5  # of 1
    broken = privacy.audit(Honest(1.0, 4), against=protocol, **options)
    assert broken.verdict == "violated"
