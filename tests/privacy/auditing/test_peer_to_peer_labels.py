"""Audits of Algorithm 2 with several labels: no honest run is accused, every broken twin is found."""

from __future__ import annotations

import math
from typing import Any

import pytest

from p2p_sim import privacy
from protocols import PeerToPeer
from tests.privacy.auditing.twins import LabelPeers

pytestmark = pytest.mark.slow

HONEST = PeerToPeer(0.1, 0.5, labels=3)


def audited(twin: Any, view: str, **options: Any) -> privacy.Audit:
    """20,000 trials, of which an honest program is rejected once in 10^9, accused once in 10^4."""
    settings: dict[str, Any] = {
        "cluster_size": 8,
        "trials": 20_000,
        "confidence": 0.9999,
        "seed": 1,
        "epsilon": 0.3,
    }
    settings |= {"pair": (0, 1), "statistic": "exact", "false_alarm": 1e-9} | options
    return privacy.audit(twin, view, against=HONEST, **settings)


@pytest.mark.parametrize("pair", [(0, 1), (0, 2)])
@pytest.mark.parametrize("view", ["learner", "user", "wire"])
def test_the_protocol_and_its_honest_twin_follow_the_law(view: str, pair: tuple[int, int]) -> None:
    for protocol in (HONEST, LabelPeers()):
        found = audited(protocol, view, pair=pair)
        assert (found.verdict, found.failed) == ("consistent", False)
        assert found.law is not None
        assert found.law.tested
        assert found.exact is not None
        assert found.lower <= found.exact


def test_much_of_what_a_view_learns_is_measured() -> None:
    for view, part in [("user", 0.8), ("wire", 0.9)]:
        found = audited(HONEST, view)
        assert found.exact is not None
        assert found.lower > part * found.exact
    worst = audited(HONEST, "learner", composition=0)
    law = privacy.profile(HONEST, cluster_size=8, composition=0)
    assert 0.6 * law.delta(0.3) < worst.lower <= law.delta(0.3)


@pytest.mark.parametrize(
    ("twin", "view"),
    [
        (LabelPeers(alpha=0.12), "learner"),
        (LabelPeers(alpha=0.12), "wire"),
        (LabelPeers(theta=0.53), "learner"),
        (LabelPeers(own=0.25), "learner"),
        (LabelPeers(near=1.0), "user"),
        (LabelPeers(near=1.0), "learner"),
        (LabelPeers(next_only=0.5), "wire"),
        (LabelPeers(next_only=1.0), "learner"),
        (LabelPeers(fresh=True), "wire"),
    ],
)
def test_broken_twins_are_found(twin: Any, view: str) -> None:
    found = audited(twin, view)
    assert found.failed
    assert found.law is not None
    assert found.law.rejected


def test_without_a_statistic_a_classifier_learns() -> None:
    """Of the learner with colluders no law of several labels is counted."""
    found = audited(PeerToPeer(0.1, 0.5, labels=3), "learner+user", statistic="auto", trials=4000)
    assert (found.verdict, found.law) == ("consistent", None)


def test_the_classifier_finds_who_reports_her_own_label() -> None:
    found = audited(LabelPeers(own=0.9), "learner", statistic="classifier", trials=4000, epsilon=1.0)
    assert found.verdict == "violated"
    assert found.exact is not None
    assert not math.isinf(found.exact)
