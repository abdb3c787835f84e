"""The law of randomized response with a prior, against the matrix of its reports."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from p2p_sim import privacy
from p2p_sim.core import Party
from p2p_sim.privacy.mechanisms import prior_response
from protocols import PriorResponse

PRIORS = ("uniform", "0.7,0.15,0.1,0.05", "0.3,0.3,0.3,0.1", "0.05,0.5,0.05,0.4", "0.97,0.01,0.01,0.01")
EPSILONS = (0.0, 0.1, 0.5, 1.0, 1.9, 2.0, 2.5)


def hockey_stick(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("prior", PRIORS)
def test_the_law_is_that_of_the_worst_pair_of_rows(prior: str, epsilon0: float) -> None:
    protocol = PriorResponse(epsilon0, 4, prior)
    rows = prior_response.matrix(protocol)
    assert rows is not None
    assert rows.sum(axis=1) == pytest.approx(1)
    law = privacy.profile(protocol)
    assert law.basis == "exact"
    for epsilon in EPSILONS:
        worst = max(hockey_stick(rows[a], rows[b], epsilon) for a, b in itertools.permutations(range(4), 2))
        assert law.delta(epsilon) == pytest.approx(worst, abs=1e-14)


@pytest.mark.parametrize("prior", PRIORS)
def test_no_pair_exceeds_the_law_in_two_runs(prior: str) -> None:
    protocol = PriorResponse(1.0, 4, prior)
    rows = prior_response.matrix(protocol)
    assert rows is not None
    both = privacy.compose([(privacy.profile(protocol), 2)])
    twice = [np.multiply.outer(row, row).ravel() for row in rows]
    for epsilon in EPSILONS:
        worst = max(hockey_stick(twice[a], twice[b], epsilon) for a, b in itertools.permutations(range(4), 2))
        assert worst == pytest.approx(both.delta(epsilon), abs=1e-12)


def test_priors_of_each_user_have_the_law_of_the_worst_one() -> None:
    law = privacy.profile(PriorResponse(1.0, 4, "public"))
    assert law.basis == "upper"
    for prior in PRIORS:
        assert all(privacy.profile(PriorResponse(1.0, 4, prior)).delta(e) <= law.delta(e) for e in EPSILONS)
    two = privacy.profile(PriorResponse(1.0, 4, "0.6,0.3,0.06,0.04"))
    assert two.delta(0.5) == law.delta(0.5)


def test_one_label_that_can_be_reported_shows_nothing() -> None:
    law = privacy.profile(PriorResponse(1.0, 4, "0.97,0.01,0.01,0.01"))
    assert (law.delta(0.0), law.basis) == (0.0, "exact")


@dataclass(frozen=True)
class Honest(PriorResponse):
    """Who has a label that cannot be reported says it, as somebody might think is harmless."""

    def answers(self, me: Party, order: Any, m: Any, each: Any = None, which: Any = None) -> Any:
        said = super().answers(me, order, m, each, which)
        return np.where(np.isin(me.y, order[0, :m]), said, me.y.astype(np.uint8))


@pytest.mark.slow
def test_an_audit_agrees_and_finds_a_broken_twin() -> None:
    protocol = PriorResponse(1.0, 4, "0.6,0.3,0.06,0.04")
    audit = privacy.audit(protocol, delta=1e-3, trials=20_000, seed=1)
    assert audit.verdict == "consistent"
    assert audit.lower > 0.8  # the true value is 0.998
    broken = privacy.audit(
        Honest(1.0, 4, "0.6,0.3,0.06,0.04"), delta=1e-3, trials=20_000, seed=1, against=protocol
    )
    assert broken.verdict == "violated"
