"""Honest protocols over 20 seeds: false alarms at the stated rate at most, and a law test that never rejects."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2p_sim import privacy
from p2p_sim.privacy.auditing import confidence_bounds
from p2p_sim.privacy.auditing.evidence import Evidence
from p2p_sim.privacy.auditing.measure import measured
from protocols import PeerToPeer, RandomizedResponse
from tests.privacy.auditing.twins import Counted, Peers, Shuffled

pytestmark = pytest.mark.slow

SEEDS = 20
CONFIDENCE = 0.95
FALSE_ALARM = 1e-9
HONEST = PeerToPeer(0.1, 0.5)
MOST = int(stats.binom.isf(FALSE_ALARM, SEEDS, 1 - CONFIDENCE))
"""Violations in 20 audits of which each has at most 5 in 100: more have a chance of 1e-9."""

CASES: dict[str, dict[str, Any]] = {
    "learner": {"protocol": HONEST, "view": "learner", "cluster_size": 20, "delta": 0.01},
    "learner, delta": {"protocol": HONEST, "view": "learner", "cluster_size": 20, "epsilon": 0.2},
    "learner, many points": {"protocol": HONEST, "view": "learner", "cluster_size": 20, "delta": 1e-9},
    "user": {"protocol": HONEST, "view": "user", "cluster_size": 5, "delta": 0.0},
    "learner+user": {"protocol": HONEST, "view": "learner+user", "cluster_size": 5, "epsilon": 0.3},
    "wire": {"protocol": HONEST, "view": "wire", "cluster_size": 5, "delta": 0.0},
    "twin without a fault": {"protocol": Peers(), "against": HONEST, "cluster_size": 20, "delta": 0.01},
    "two labels": {"protocol": RandomizedResponse(1.0), "delta": 0.0},
    "five labels": {"protocol": RandomizedResponse(1.0, 5), "delta": 0.0},
    "five labels, delta": {"protocol": RandomizedResponse(1.0, 5), "epsilon": 0.5},
    "nothing to find": {"protocol": RandomizedResponse(0.0), "epsilon": 0.0},
    "learned": {"protocol": RandomizedResponse(1.0), "delta": 0.0, "statistic": "classifier"},
    "nothing to learn": {"protocol": RandomizedResponse(0.0), "epsilon": 0.0, "statistic": "classifier"},
    "shuffler": {
        "protocol": Shuffled(3, 0.25), "cluster_size": 3, "epsilon": 0.5,
        "against": privacy.shuffled_response(3, math.log(3)),
    },
    "noise": {
        "protocol": Counted(3, Fraction(2)), "cluster_size": 3, "delta": 0.0, "against": privacy.laplace(2.0),
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_honest_protocols_are_not_accused(case: str) -> None:
    violated = 0
    for seed in range(SEEDS):
        audit = privacy.audit(
            **CASES[case],
            trials=1000,
            confidence=CONFIDENCE,
            seed=seed,
            false_alarm=FALSE_ALARM / SEEDS / len(CASES),
        )
        violated += audit.verdict == "violated"
        assert audit.law is None or not audit.law.rejected, audit.law.why
        assert audit.lower <= audit.cap
    assert violated <= MOST


def test_a_best_event_that_is_not_paid_for_is_accused_far_more_often() -> None:
    """The broken twin of the audit: where there is nothing, the best of 200 thresholds of the counted scores."""
    paid = free = 0
    for seed in range(SEEDS):
        scores = np.random.default_rng(seed).normal(size=(2, 2000))
        cuts = np.quantile(scores, np.linspace(0.01, 0.99, 200))
        evidence = Evidence((scores[0], scores[1]), "", {}, cuts, cuts)
        paid += measured("epsilon", 0.0, evidence, CONFIDENCE, None).lower > 0
        single = (confidence_bounds.count(*scores, [cut]) for cut in cuts)
        free += any(confidence_bounds.delta_lower(one, 0.0, 0.5).value > 0 for one in single)
    assert paid <= MOST < free
